"""Facts: what one source says, stamped with where and when. Sources make them, only the fleet reads them."""

from enum import StrEnum

from msgspec import Struct

from gputop.model.identity import GpuRef, NodeRef
from gputop.model.process import GpuProcess
from gputop.model.reading import Absent, Value
from gputop.model.workload import Holder, Workload


class Presence(StrEnum):
    """Whether a GPU is there, as far as can be told."""

    PRESENT = "present"
    LOST = "lost"
    """The driver says that the GPU is lost (NVML_ERROR_GPU_IS_LOST, fallen off the bus)."""
    RESET_REQUIRED = "reset_required"
    DENIED = "denied"
    """It is counted, but this user may not open it."""
    ERROR = "error"
    """Each call on it fails for another reason."""
    MISSING = "missing"
    """It was listed and no source that covers its host lists it any more."""
    DRIVERLESS = "driverless"
    """The PCI bus shows it, but the NVIDIA driver does not hold it."""
    UNKNOWN = "unknown"
    """Nobody who could tell answers."""


class PciGpu(Struct, frozen=True, gc=False):
    """A GPU as the PCI bus shows it.

    Attributes:
        bus_id: `normal_bus_id`.
        device_id: PCI device id in hex, such as "2330"; "" if not told.
        name: Name from the PCI id database, "" if not told.
        driver: Kernel driver that holds it: "nvidia", "nouveau", "vfio-pci", …; "" for none; None when
            not told.
        asleep: Runtime power management has it suspended.
    """

    bus_id: str
    device_id: str = ""
    name: str = ""
    driver: str | None = None
    asleep: bool = False


class GpuFact(Struct, frozen=True, gc=False):
    """Readings of one GPU or MIG instance.

    Attributes:
        ref: The GPU as this source names it.
        readings: Value by quantity id, in the quantity's unit and already judged.
        presence: How the source finds the GPU; None leaves what it said before.
        presence_reason: One phrase with it.
        at: Sample time, seconds since the epoch on this machine's clock; None for the batch's.
    """

    ref: GpuRef
    readings: dict[str, Value]
    presence: Presence | None = None
    presence_reason: str = ""
    at: float | None = None


class NodeFact(Struct, frozen=True, gc=False):
    """Readings of one node, and what its PCI bus shows (None when not looked at)."""

    ref: NodeRef
    readings: dict[str, Value] = {}
    pci: tuple[PciGpu, ...] | None = None
    at: float | None = None


class NodeTrouble(Struct, frozen=True, gc=False):
    """A trouble of a whole node or of the source's view of it; an empty `text` ends it.

    Attributes:
        ref: The node.
        code: Stable word: "driver_mismatch", "driver_not_loaded", "no_library", "no_permission",
            "no_gpu", "exporter_silent", "exporter_no_data", "frozen", "clock_skew", "duplicates", …
        text: One sentence for people, with the next step where there is one.
        severity: "info", "warning" or "critical".
    """

    ref: NodeRef
    code: str
    text: str
    severity: str = "warning"


class Roster(Struct, frozen=True, gc=False):
    """All GPUs that a source lists on a node now; one listed before and not any more is missing.

    Attributes:
        ref: The node.
        gpus: Everything listed, boards and instances.
        silent: Why nothing can be said of the node now ("" when it answers). The GPUs listed before are
            then unknown, not missing.
    """

    ref: NodeRef
    gpus: tuple[GpuRef, ...]
    silent: str = ""
    at: float | None = None


class ProcessesFact(Struct, frozen=True, gc=False):
    """All processes on one GPU, or why they cannot be told."""

    ref: GpuRef
    processes: tuple[GpuProcess, ...] | Absent
    at: float | None = None


class HoldersFact(Struct, frozen=True, gc=False):
    """All workloads that this source says hold a GPU; empty when it names none (which is not "free")."""

    ref: GpuRef
    holders: tuple[Holder, ...]
    at: float | None = None


class XidKind(StrEnum):
    """How much an Xid report says."""

    EVENT = "event"
    """One Xid, at a known time."""
    LAST = "last"
    """The standing number of the last Xid, which may be old and hides repeats (NVIDIA/DCGM#277)."""
    WINDOW = "window"
    """A count within a sliding window (DCGM_EXP_XID_ERRORS_COUNT)."""


class XidFact(Struct, frozen=True, gc=False):
    """An Xid of one GPU.

    Attributes:
        ref: The GPU.
        xid: Number; 0 is not an Xid and is never emitted.
        kind: What the report says.
        count: Number within the window for `WINDOW`, else 1.
        window_s: Length of the window for `WINDOW`, else 0.
        text: Words that came with it.
    """

    ref: GpuRef
    xid: int
    kind: XidKind
    count: int = 1
    window_s: float = 0.0
    text: str = ""
    at: float | None = None


class DeviceCount(Struct, frozen=True, gc=False):
    """What a scheduler knows of one device resource on a node.

    Attributes:
        ref: The node.
        resource: Resource name, such as "nvidia.com/gpu".
        advertised: What the device plugin registered (Kubernetes capacity).
        healthy: What of it may be placed (Kubernetes allocatable).
    """

    ref: NodeRef
    resource: str
    advertised: float | Absent
    healthy: float | Absent
    at: float | None = None


class NodeCondition(Struct, frozen=True, gc=False):
    """What a scheduler says of a node; None where it does not say."""

    ref: NodeRef
    cordoned: bool | None = None
    ready: bool | None = None
    taints: tuple[str, ...] = ()
    reason: str = ""
    at: float | None = None


class WorkloadFact(Struct, frozen=True, gc=False):
    """A workload that holds or wants GPUs."""

    workload: Workload
    at: float | None = None


class WorkloadsRoster(Struct, frozen=True, gc=False):
    """All workloads a source lists in a cluster; those it listed before and not any more are gone."""

    cluster: str
    uids: frozenset[str]


Fact = (
    GpuFact
    | NodeFact
    | NodeTrouble
    | Roster
    | ProcessesFact
    | HoldersFact
    | XidFact
    | DeviceCount
    | NodeCondition
    | WorkloadFact
    | WorkloadsRoster
)
"""Anything a source can say."""


class Batch(Struct, frozen=True, gc=False):
    """Facts of one source that are applied together.

    Kept to some hundred facts, so that a key press is never held up by the applying.

    Attributes:
        source: Name of the source.
        rank: Nearness to the device, as in `Origin`.
        at: Time of the facts that carry none of their own.
        stale_after_s: Age from which these facts are stale: a multiple of the source's own cadence.
        facts: What it says.
        interval_s: Cadence of the samples; decides how finely history is kept.
        round_done: The source has now told everything it set out to tell in this round. The first such
            batch ends the wait of one-shot commands.
    """

    source: str
    rank: int
    at: float
    stale_after_s: float
    facts: tuple[Fact, ...]
    interval_s: float = 1.0
    round_done: bool = False
