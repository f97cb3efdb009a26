"""The immutable records that a view of the fleet is made of."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from gputop.model.facts import DeviceCount, NodeCondition, NodeTrouble, PciGpu, Presence, XidKind
from gputop.model.identity import GpuKey, NodeKey
from gputop.model.process import GpuProcess
from gputop.model.reading import Absent, Origin, Reading
from gputop.model.status import SourceStatus
from gputop.model.workload import Holder, Workload

NO_RIVALS: Final[dict[str, tuple[Reading, ...]]] = {}


class Join(Struct, frozen=True, gc=False):
    """Why facts of one source were put on a row.

    Attributes:
        source: Name of the source.
        how: The reason in words, such as "UUID" or "PCI bus id on the same host".
    """

    source: str
    how: str


class Sighting(Struct, frozen=True, gc=False):
    """How one source sees a GPU.

    Attributes:
        origin: Source and time of the last word.
        listed: Whether the source still lists it.
        since: Since when `listed` and `presence` are so.
        presence: What the source says of it, None when it only lists it.
        reason: One phrase with the presence.
        silent: Why the source cannot speak for the GPU's node now, "" when it can.
    """

    origin: Origin
    listed: bool
    since: float
    presence: Presence | None = None
    reason: str = ""
    silent: str = ""


class ProcessTable(Struct, frozen=True, gc=False):
    """The processes on a GPU as one source tells them, or why it cannot."""

    processes: tuple[GpuProcess, ...] | Absent
    origin: Origin


class HolderClaim(Struct, frozen=True, gc=False):
    """The workloads that one source names on a GPU; an empty tuple is not "free"."""

    holders: tuple[Holder, ...]
    origin: Origin


class XidRecord(Struct, frozen=True, gc=False):
    """An Xid of a GPU as one source knows it.

    Attributes:
        xid: Number.
        kind: How much the source knows: an event, the standing last number, or a window's count.
        source: Name of the source.
        first_seen: First time it was told to us, seconds since the epoch.
        last_seen: Last time it was told.
        count: Events counted, or the window's count; 1 for a standing number, whose repeats are hidden.
        window_s: Length of the window, 0 for other kinds.
        text: Words that came with it.
        from_start: It stood there when the source was first read, so it happened at an unknown time.
    """

    xid: int
    kind: XidKind
    source: str
    first_seen: float
    last_seen: float
    count: int = 1
    window_s: float = 0.0
    text: str = ""
    from_start: bool = False


class GpuState(Struct, frozen=True, gc=False):
    """All that is known of one GPU or MIG instance.

    Attributes:
        key: Identity.
        index: Index on its host as last told, -1 if never; shown, never a key.
        bus_id: Normalised PCI bus id, "" if never told.
        mig_uuid: UUID of the MIG instance, "" for a board.
        readings: The reading that counts for each quantity: the nearest fresh one.
        rivals: The other sources' readings of the same quantities.
        presence: Whether it is there.
        presence_reason: One phrase with it.
        presence_since: Since when.
        sightings: How each source sees it.
        processes: What each source that lists processes says, nearest first.
        holders: What each source says of its workloads, nearest first.
        xids: Xids, oldest first.
        joins: Why each source's facts are on this row.
        pci: What the PCI bus shows of it.
    """

    key: GpuKey
    index: int
    bus_id: str
    mig_uuid: str
    readings: dict[str, Reading]
    rivals: dict[str, tuple[Reading, ...]]
    presence: Presence
    presence_reason: str
    presence_since: float
    sightings: tuple[Sighting, ...]
    processes: tuple[ProcessTable, ...]
    holders: tuple[HolderClaim, ...]
    xids: tuple[XidRecord, ...]
    joins: tuple[Join, ...]
    pci: PciGpu | None = None

    @property
    def last_seen(self) -> float:
        """Time of the newest word of any source that lists it; 0 if none ever did."""
        return max((s.origin.at for s in self.sightings if s.listed and not s.silent), default=0.0)


class HostName(Struct, frozen=True, gc=False):
    """A name under which a source knows a node, and why it is taken for the same node."""

    name: str
    source: str
    how: str


class Coverage(Struct, frozen=True, gc=False):
    """What a source last listed on a node.

    Attributes:
        origin: Source and time of the last list.
        boards: Number of boards in it.
        silent: Why the source cannot speak for the node now, "" when it can.
        since: Since when it is silent or has this number of boards.
    """

    origin: Origin
    boards: int
    silent: str
    since: float


class Trouble(Struct, frozen=True, gc=False):
    """A trouble of a node, who says so and since when."""

    fact: NodeTrouble
    source: str
    since: float


class NodeState(Struct, frozen=True, gc=False):
    """All that is known of one node but for its GPUs' own readings.

    Attributes:
        key: Identity.
        names: Every name it goes by.
        gpus: Keys of its boards and instances, boards by index and bus id, instances under their board.
        readings: As in `GpuState`.
        rivals: As in `GpuState`.
        pci: GPUs its PCI bus shows; None when nobody looked.
        coverage: What each source lists on it.
        troubles: Troubles of the node.
        devices: What schedulers advertise, by (source, resource).
        device_origin: Source and time of `devices`.
        conditions: What schedulers say of it, with source and time.
    """

    key: NodeKey
    names: tuple[HostName, ...] = ()
    gpus: tuple[GpuKey, ...] = ()
    readings: dict[str, Reading] = {}
    rivals: dict[str, tuple[Reading, ...]] = {}
    pci: tuple[PciGpu, ...] | None = None
    coverage: tuple[Coverage, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    devices: tuple[tuple[DeviceCount, Origin], ...] = ()
    conditions: tuple[tuple[NodeCondition, Origin], ...] = ()


class WorkloadState(Struct, frozen=True, gc=False):
    """A workload, the node row it is on (None when it is placed nowhere), and who says so."""

    workload: Workload
    node: NodeKey | None
    origin: Origin


class View(Struct, frozen=True, gc=False):
    """A snapshot of the fleet that pure code may keep as long as it likes.

    Attributes:
        version: Grows with every change.
        nodes: Nodes by key.
        revisions: Grows, by node, with every new record of the node's own GPUs.
        gpus: Boards and MIG instances by key.
        workloads: Workloads by (cluster, uid).
        placed: Workloads by the node they are on.
        tellers: (source, cluster) of everyone who tells of a workload.
        sources: Status of every source by name.
    """

    version: int
    nodes: Mapping[NodeKey, NodeState]
    revisions: Mapping[NodeKey, int]
    gpus: Mapping[GpuKey, GpuState]
    workloads: Mapping[tuple[str, str], WorkloadState]
    placed: Mapping[NodeKey, tuple[WorkloadState, ...]]
    tellers: frozenset[tuple[str, str]]
    sources: Mapping[str, SourceStatus]

    def on_node(self, node: NodeKey) -> tuple[GpuState, ...]:
        """Return the node's boards and instances in their order; none for an unknown node."""
        state = self.nodes.get(node)
        return tuple(self.gpus[key] for key in state.gpus) if state else ()

    def instances(self, board: GpuKey) -> tuple[GpuState, ...]:
        """Return the MIG instances of a board in their order; none for any other GPU."""
        return tuple([g for g in self.on_node(board.node) if g.key.instance and g.key.board == board])
