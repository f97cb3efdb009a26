"""How a pane looks: its rows as text at a width, and the fleets it is shown."""

from collections.abc import Hashable

from gputop.fleet import Fleet
from gputop.model.facts import DeviceCount, NodeCondition, WorkloadFact
from gputop.model.identity import GpuKey, NodeKey, NodeRef
from gputop.model.workload import Workload
from gputop.panes.base import Pane, PaneContext
from gputop.panes.processes import ProcessesPane
from gputop.panes.registry import PANES
from gputop.widgets.cells import Cell, fill, fit
from gputop.widgets.columns import lay_out
from gputop.widgets.row_order import Group
from tests.unit.fleet.build import BUSES, EXPORTER, NVML, PROMETHEUS, UUIDS, gpu, ref, roster, tell

__all__ = ["BUSES", "EXPORTER", "NVML", "PROMETHEUS", "UUIDS", "gpu", "ref", "roster", "tell"]

NOW = 1_790_000_000.0
FULL = {
    "utilization": 97.0,
    "memory_used_mib": 75776.0,
    "memory_total_mib": 81559.0,
    "power_w": 690.0,
    "power_limit_w": 700.0,
    "temperature_c": 71.0,
    "sm_clock_mhz": 1755.0,
    "clock_event_reasons": 4.0,
    "model": "NVIDIA H100 80GB HBM3",
}
"""What a busy H100 tells."""


def pane(name: str) -> Pane:
    """Return a pane by its id."""
    return next(p for p in PANES if p.id == name)


def context(fleet: Fleet, now: float = NOW, **settings: object) -> PaneContext:
    """Return the context of a screen on a fleet."""
    return PaneContext(fleet.view(), now, **settings)  # type: ignore[arg-type]  # made of keywords


def row(shown: Pane | ProcessesPane, at: PaneContext, key: Hashable, width: int) -> str:
    """Return one line as the table would lay it out: a None is covered by the cell left of it."""
    cells = shown.cells(at, key)
    if isinstance(key, Group) or len(cells) == 1:
        first = cells[0]
        return "".join(t for t, _ in fit(first or Cell(""), width)).rstrip()
    placed = list(lay_out(shown.columns(at), width))
    line, end = "", 0
    while placed:
        first = placed.pop(0)
        until = first.x + first.width
        while placed and cells[placed[0].index] is None:
            until = placed[0].x + placed[0].width
            placed.pop(0)
        align = first.column.align if until == first.x + first.width else "left"
        cell = cells[first.index] or Cell("")
        line += " " * (first.x - end) + "".join(t for t, _ in fit(cell, until - first.x, align))
        end = until
    return line.rstrip()


def lines(name: str, fleet: Fleet, width: int = 80, now: float = NOW, **settings: object) -> list[str]:
    """Return all lines of a pane."""
    shown, at = pane(name), context(fleet, now, width=width, **settings)
    return [row(shown, at, key, width) for key in shown.order(at)]


def cell(name: str, fleet: Fleet, key: Hashable, column: str, now: float = NOW, **settings: object) -> Cell:
    """Return the cell of a row in a column."""
    shown, at = pane(name), context(fleet, now, **settings)
    place = [c.key for c in shown.columns(at)].index(column)
    found = shown.cells(at, key)[place]
    assert found is not None, f"{column} is covered by the cell left of it"
    return found


def key_of(host: str, i: int, instance: str = "", cluster: str = "") -> GpuKey:
    """Return the key of the i-th GPU of a host."""
    return GpuKey(cluster, host, UUIDS[i], instance)


def busy_node(fleet: Fleet, host: str = "gpu-a01", *which: int, at: float = NOW, cluster: str = "") -> NodeKey:
    """Tell of a node whose GPUs are all busy, by NVML; return its key."""
    which = which or tuple(range(8))
    facts = [gpu(host, i, cluster, **FULL) for i in which]
    tell(fleet, NVML, at, *facts, roster(host, *which, cluster=cluster))
    return NodeKey(cluster, host)


def scheduled(fleet: Fleet, host: str, advertised: float, healthy: float, *, cordoned: bool | None = False) -> None:
    """Tell what a scheduler knows of a node."""
    node = NodeRef(host)
    facts = (DeviceCount(node, "nvidia.com/gpu", advertised, healthy), NodeCondition(node, cordoned, ready=True))
    tell(fleet, PROMETHEUS, NOW, *facts, stale_after_s=60.0)


def pod(fleet: Fleet, name: str, wants: float, node: str = "", phase: str = "Running") -> None:
    """Tell of a pod that asks for GPUs."""
    work = Workload("", "kubernetes", "ml", name, f"uid-{name}", node, phase, (("nvidia.com/gpu", wants),))
    tell(fleet, PROMETHEUS, NOW, WorkloadFact(work), stale_after_s=60.0)


def text(cells: list[Cell], width: int = 200) -> str:
    """Return the text of a line of cells."""
    return "".join(t for t, _ in fill([Cell.of(*c.runs, (" ", "")) for c in cells], width)).rstrip()
