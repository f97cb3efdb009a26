"""Short ways to say what a source says, for tests of the fleet."""

from gputop.fleet import Fleet, GpuState, NodeState
from gputop.model.facts import Batch, Fact, GpuFact, Roster
from gputop.model.identity import GpuRef, NodeRef
from gputop.model.reading import Value

NVML, EXPORTER, PROMETHEUS = ("nvml", 0), ("exporter", 1), ("prometheus", 2)

UUIDS = tuple(f"GPU-0000000{i}-0000-0000-0000-000000000000" for i in range(8))
BUSES = tuple(f"00000000:{i + 1:02x}:00.0" for i in range(8))


def tell(fleet: Fleet, source: tuple[str, int], at: float, *facts: Fact, stale_after_s: float = 5.0) -> None:
    """Apply one batch."""
    fleet.apply(Batch(source[0], source[1], at, stale_after_s, facts))


def gpu(host: str, i: int, cluster: str = "", **readings: Value) -> GpuFact:
    """Return readings of the i-th GPU of a host."""
    return GpuFact(ref(host, i, cluster), dict(readings))


def ref(host: str, i: int, cluster: str = "") -> GpuRef:
    """Return the full name of the i-th GPU of a host."""
    return GpuRef(host, cluster, UUIDS[i], BUSES[i], i)


def roster(host: str, *which: int, cluster: str = "", silent: str = "") -> Roster:
    """Return the list of a host's GPUs."""
    return Roster(NodeRef(host, cluster), tuple(ref(host, i, cluster) for i in which), silent)


def rows(fleet: Fleet) -> list[GpuState]:
    """Return all rows, node by node."""
    view = fleet.view()
    return [g for n in sorted(view.nodes) for g in view.on_node(n)]


def nodes(fleet: Fleet) -> list[NodeState]:
    """Return all nodes in order of their keys."""
    view = fleet.view()
    return [view.nodes[k] for k in sorted(view.nodes)]
