"""What one file tells, before it is known which host it belongs to."""

from msgspec import Struct

from gputop.model.facts import Fact, PciGpu, Presence
from gputop.model.process import GpuProcess
from gputop.model.reading import Absent, Value
from gputop.sources.bundle.kinds import Kind


class Unit(Struct, frozen=True):
    """A board or a MIG instance as a file tells it; fields as in `gputop.model.identity.GpuRef`.

    Attributes:
        uuid: UUID of the board.
        bus_id: Bus id of the board.
        index: Index of the board, -1 if not told.
        instance: GPU instance id, "" for the board or when not told.
        mig_uuid: UUID of the MIG device.
        mig_index: Number of the MIG device on its board, by which the outputs of one machine are joined;
            -1 if not told.
        readings: Values by quantity.
        presence: How the file says the GPU is; None when it says nothing.
        presence_reason: One phrase with it.
        processes: Processes on it, why they are not told, or None when the file has no such list.
    """

    uuid: str = ""
    bus_id: str = ""
    index: int = -1
    instance: str = ""
    mig_uuid: str = ""
    mig_index: int = -1
    readings: dict[str, Value] = {}
    presence: Presence | None = None
    presence_reason: str = ""
    processes: tuple[GpuProcess, ...] | Absent | None = None

    @property
    def is_instance(self) -> bool:
        """Whether it is a MIG instance."""
        return bool(self.instance or self.mig_uuid)


class Trouble(Struct, frozen=True):
    """A trouble of the whole node; fields as in `gputop.model.facts.NodeTrouble`."""

    code: str
    text: str
    severity: str


class Page(Struct, frozen=True):
    """One output of one program.

    Attributes:
        kind: What it is.
        what: What it is, in words, with the versions it tells.
        at: Capture time that stands in it, seconds since the epoch; None if none does.
        units: Boards and MIG instances.
        node: Readings of the node by quantity.
        troubles: Troubles of the node.
        pci: What the PCI bus shows; None when it does not tell.
        hosts: Host names that stand in it.
        lists_all: It lists every GPU of its node, so that one it does not list is missing.
        notes: What was dropped or could not be told, one sentence each.
        facts: Further facts, on holders, Xids and what a scheduler says.
        facts_host: Host that `facts` name for the machine of the page.
        broken: Where it breaks off, or what of it could not be read, "" when it is whole.
        own_host: The file tells of several machines, and this page is of the one named `facts_host`.
    """

    kind: Kind
    what: str
    at: float | None = None
    units: tuple[Unit, ...] = ()
    node: dict[str, Value] = {}
    troubles: tuple[Trouble, ...] = ()
    pci: tuple[PciGpu, ...] | None = None
    hosts: tuple[str, ...] = ()
    lists_all: bool = False
    notes: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    facts_host: str = ""
    broken: str = ""
    own_host: bool = False
