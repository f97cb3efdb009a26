"""The Fleet pane: one line a node, what needs a look first."""

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from msgspec import Struct

from gputop.fleet import GpuState
from gputop.fleet.allocation import is_cordoned, is_ready
from gputop.model.demand import Demand
from gputop.model.facts import Presence
from gputop.model.identity import NodeKey
from gputop.model.reading import STALE
from gputop.panes.ascii import Titled, fold_cells
from gputop.panes.base import PaneContext
from gputop.panes.errors import QUANTITIES
from gputop.panes.filter import Searchable, matches, terms_of
from gputop.panes.format import age, gib, is_na, kilowatt, last
from gputop.panes.gpu_table import SEARCHABLE as GPU_SEARCHABLE
from gputop.panes.gpu_table import no_rows, text_of
from gputop.panes.gpus import IDLE_PERCENT, activity
from gputop.panes.groups import group_heading, grouped
from gputop.panes.node_summary import SUMMARIES, NodeSummary
from gputop.panes.sorting import sort_known_first
from gputop.panes.temperature import HOT, degrees
from gputop.panes.trend import TREND_WIDTH, least_width, utilisation_trend
from gputop.panes.words import BROKEN, PRESENCE_WORDS
from gputop.widgets.cells import Cell
from gputop.widgets.columns import Column
from gputop.widgets.levels import level_glyph, util_role
from gputop.widgets.row_order import Group


class Row(Struct, frozen=True):
    """A node with its summary, as the columns need it."""

    key: NodeKey
    context: PaneContext
    summary: NodeSummary


def gpu_glyph(gpu: GpuState, load: float | None, *, held: bool | None, ascii_only: bool) -> tuple[str, str]:
    """Return the glyph and the role of one GPU: height is utilisation, and each state has a glyph of its own.

    Args:
        gpu: The GPU.
        load: Its fresh utilisation in percent, None when nobody tells one.
        held: Whether a workload or process is on it; None when nobody can say.
        ascii_only: Draw with ASCII characters only.
    """
    if gpu.presence in BROKEN:
        return "X", "bad"
    if gpu.presence is not Presence.PRESENT:
        return "?", "unknown"
    if load is None:
        # A board in MIG mode has no load of its own: its instances have.
        return ("-", "na") if is_na(gpu.readings.get(activity(gpu))) else ("?", "unknown")
    if load < IDLE_PERCENT and held is False:
        return ("." if ascii_only else "·"), "free"
    if load < IDLE_PERCENT:
        return (("_" if ascii_only else "▁"), "idle") if held else ("o", "dim")
    # An activity may pass 100 % (NVIDIA/DCGM#152): that is a full GPU, not an unknown one. The lowest levels
    # look like idle, and in ASCII like free, so a busy GPU starts above them.
    drawn = min(max(load, 25.0 if ascii_only else 12.5), 100.0)
    return level_glyph(drawn, ascii_only=ascii_only), util_role(min(load, 100.0))


def _state(row: Row) -> Cell:
    node = row.context.view.nodes[row.key]
    if is_ready(node) is False:
        return Cell("xN" if row.context.ascii_only else "✗N", "bad")
    letter = "C" if is_cordoned(node) else " "
    silent = bool(node.coverage) and all(c.silent for c in node.coverage)
    if silent:
        return Cell(f"?{letter}", "unknown")
    if row.summary.needs_a_look >= 4.0:
        return Cell(("*" if row.context.ascii_only else "◐") + letter, row.summary.finding_role or "warn")
    mark = "o" if row.context.ascii_only else "●"
    return Cell(mark + letter, "draining" if letter == "C" else "ok" if node.coverage else "dim")


def _glyphs(row: Row) -> Cell:
    summary, ascii_only = row.summary, row.context.ascii_only
    if not summary.boards:
        return Cell("?", "unknown")
    return Cell.of(
        *(
            gpu_glyph(g, d.load, held=d.held, ascii_only=ascii_only)
            for g, d in zip(summary.boards, summary.digests, strict=True)
        )
    )


def _trend(row: Row) -> Cell:
    if row.context.width < _ROOM_FOR_TREND:
        return Cell("")
    return utilisation_trend([g for g in row.summary.boards if g.presence is Presence.PRESENT], row.context)


def _count(value: float | None, *, closed: bool = False) -> Cell:
    if value is None:
        return Cell("?", "unknown")
    return Cell("-", "dim") if closed else Cell(f"{value:.0f}")


def _free(row: Row) -> Cell:
    node = row.context.view.nodes[row.key]
    allocation = row.summary.allocation
    closed = bool(is_cordoned(node)) or is_ready(node) is False
    return _count(allocation.free if allocation else None, closed=closed)


def _healthy(row: Row) -> Cell:
    allocation = row.summary.allocation
    cell = _count(allocation.healthy if allocation else None)
    short = allocation and None not in (allocation.healthy, allocation.advertised)
    return Cell(cell.plain, "warn") if short and allocation and allocation.healthy != allocation.advertised else cell


def _advertised(row: Row) -> Cell:
    cell = _count(row.summary.allocation.advertised if row.summary.allocation else None)
    # Shares of boards are not boards: the number is marked as one of another kind.
    return Cell(cell.plain, "info") if row.summary.sliced else cell


def _role(row: Row, quantity: str) -> str:
    """Return "stale" when any board's reading in a sum is."""
    now = row.context.now
    for gpu in row.summary.boards:
        reading = gpu.readings.get(quantity)
        if reading is not None and reading.state(now) == STALE:
            return "stale"
    return ""


def _vram(row: Row) -> Cell:
    used, total, ascii_only = row.summary.memory_used, row.summary.memory_total, row.context.ascii_only
    if not used.told and not total.told:
        return Cell("?", "unknown")
    parts = (used.text(gib, ascii_only=ascii_only), total.text(gib, ascii_only=ascii_only))
    return Cell("/".join(parts), _role(row, "memory_used_mib"))


def _power(row: Row) -> Cell:
    power = row.summary.power
    if not power.told:
        return Cell("?", "unknown")
    return Cell(power.text(kilowatt, ascii_only=row.context.ascii_only), _role(row, "power_w"))


def _cap(row: Row) -> Cell:
    limit = row.summary.power_limit
    return Cell(limit.text(kilowatt, ascii_only=row.context.ascii_only), "dim" if limit.told else "unknown")


def _heat(row: Row) -> Cell:
    value = row.summary.hottest_c
    if value is None:
        return Cell("?", "unknown")
    hot = HOT if row.summary.is_hot else ""
    return Cell(degrees(value, hot), _role(row, "temperature_c") or ("bad" if hot else ""))


def _links(row: Row) -> Cell:
    links = row.summary.links
    if links is None:
        return Cell("?", "unknown")
    active, of = links
    return Cell(f"{active:.0f}/{of:.0f}", "warn" if active < of else "")


def _pcie(row: Row) -> Cell:
    """Return the slowest link of the node, marked when a busy board has less than it could."""
    link = row.summary.pcie
    if link is None:
        return Cell("?", "unknown")
    slow = any(
        d.pcie is not None and d.pcie.is_below and d.load is not None and d.load >= IDLE_PERCENT
        for d in row.summary.digests
    )
    return Cell(f"{link.words}!", "warn") if slow else Cell(link.words, "dim" if link.is_below else "")


def _age(row: Row) -> Cell:
    seen = row.summary.last_seen
    return Cell(age(max(0.0, row.context.now - seen)) if seen else "?", "dim")


def _finding(row: Row) -> Cell:
    return Cell(row.summary.finding, row.summary.finding_role)


def _model(row: Row) -> str:
    models = {text_of(g, "model") for g in row.summary.boards} - {""}
    return models.pop() if len(models) == 1 else f"{len(models)} models" if models else ""


def _driver(row: Row) -> str:
    reading = row.context.view.nodes[row.key].readings.get("driver_version")
    return (reading.text or "") if reading else ""


class FleetColumn(Struct, frozen=True):
    """A column with what stands in it and what it is sorted by."""

    column: Column
    cell: Callable[[Row], Cell]
    value: Callable[[Row], float | str | None]


def _told(value: float, count: int) -> float | None:
    return value if count else None


def _number(key: str, title: str, priority: int, part: str, cell: Callable[[Row], Cell] | None = None) -> FleetColumn:
    def value(row: Row) -> float | None:
        return getattr(row.summary.allocation, part) if row.summary.allocation else None

    column = Column(key, title, 3, align="right", priority=priority, descending=True)
    return FleetColumn(column, cell or (lambda row: _count(value(row))), value)


_TREND: Final = Column("trend", "LAST MINUTES", TREND_WIDTH, priority=7, sortable=False)

COLUMNS: Final = (
    FleetColumn(Column("node", "NODE", 10, min_width=8, flex=2), lambda r: Cell(r.key.host), lambda r: r.key.host),
    FleetColumn(Column("state", "S", 2), _state, lambda r: r.summary.needs_a_look),
    FleetColumn(Column("gpus", "GPUS", 8, flex=2, descending=True), _glyphs, lambda r: float(r.summary.busy)),
    FleetColumn(_TREND, _trend, lambda r: float(r.summary.busy)),
    _number("advertised", "ADV", 2, "advertised", _advertised),
    _number("healthy", "HLT", 2, "healthy", _healthy),
    _number("used", "USE", 2, "used"),
    _number("free", "FRE", 1, "free", _free),
    FleetColumn(
        Column("vram", "VRAM G", 9, align="right", priority=3, descending=True),
        _vram,
        lambda r: _told(r.summary.memory_used.value, r.summary.memory_used.told),
    ),
    FleetColumn(
        Column("power", "kW", 4, align="right", priority=4, descending=True),
        _power,
        lambda r: _told(r.summary.power.value, r.summary.power.told),
    ),
    FleetColumn(
        Column("temp", "°C", 3, align="right", priority=4, descending=True), _heat, lambda r: r.summary.hottest_c
    ),
    FleetColumn(
        Column("health", "HEALTH", 16, min_width=12, flex=4, priority=1, descending=True),
        _finding,
        lambda r: r.summary.needs_a_look,
    ),
    FleetColumn(
        Column("age", "AGE", 3, align="right", priority=5, descending=True),
        _age,
        lambda r: -r.summary.last_seen or None,
    ),
    FleetColumn(
        Column("holder", "TOP HOLDER", 24, flex=1, priority=6),
        lambda r: Cell(r.summary.holder),
        lambda r: r.summary.holder or None,
    ),
    FleetColumn(
        Column("holders", "PODS", 4, align="right", priority=6, descending=True),
        lambda r: _count(r.summary.holders),
        lambda r: r.summary.holders,
    ),
    FleetColumn(
        Column("model", "MODEL", 22, priority=7), lambda r: Cell(_model(r), "dim"), lambda r: _model(r) or None
    ),
    FleetColumn(
        Column("driver", "DRIVER", 12, priority=8), lambda r: Cell(_driver(r), "dim"), lambda r: _driver(r) or None
    ),
    FleetColumn(
        Column("cap", "CAP kW", 6, align="right", priority=10, descending=True),
        _cap,
        lambda r: _told(r.summary.power_limit.value, r.summary.power_limit.told),
    ),
    FleetColumn(
        Column("pcie", "PCIE", 5, priority=9, descending=True),
        _pcie,
        lambda r: r.summary.pcie.speed if r.summary.pcie else None,
    ),
    FleetColumn(
        Column("links", "NVLINKS", 7, align="right", priority=11, descending=True),
        _links,
        lambda r: r.summary.links[0] if r.summary.links else None,
    ),
    FleetColumn(
        Column("cluster", "CLUSTER", 12, priority=9),
        lambda r: Cell(r.key.cluster, "dim"),
        lambda r: r.key.cluster or None,
    ),
)
_ROOM_FOR_TREND: Final = least_width([c.column for c in COLUMNS], _TREND)
_GROUP_BY: Final[dict[str, Callable[[Row], str]]] = {
    "cluster": lambda r: r.key.cluster or "cluster not told",
    "model": lambda r: _model(r) or "model not told",
    "driver": lambda r: _driver(r) or "driver not told",
    "health": lambda r: "needs a look" if r.summary.needs_a_look >= 1 else "nothing to say",
}
_TITLED: Final = Titled.of(c.column for c in COLUMNS)


def _by_name(key: NodeKey) -> tuple[str, str]:
    return key.cluster, key.host


def _states(row: Row) -> str:
    node = row.context.view.nodes[row.key]
    states = {PRESENCE_WORDS[g.presence] for g in row.summary.boards}
    states |= {"cordoned"} if is_cordoned(node) else set()
    states |= {"not ready"} if is_ready(node) is False else set()
    return " ".join(sorted(states))


def _highest(row: Row, quantity: str) -> float | None:
    told = (last(g.readings.get(quantity)) for g in row.summary.boards)
    return max((v for v in told if v is not None), default=None)


def _of_all_gpus(text: Callable[[GpuState], str]) -> Callable[[Row], str]:
    """Return the texts of a node's boards and instances: with MIG on, workloads are on the instances."""
    return lambda row: " ".join([text(g) for g in row.context.view.on_node(row.key)])


SEARCHABLE: Final[Searchable[Row]] = Searchable(
    {
        "node": lambda r: " ".join([r.key.host, *[n.name for n in r.context.view.nodes[r.key].names]]),
        "model": _model,
        "cluster": lambda r: r.key.cluster,
        "driver": _driver,
        "health": lambda r: "; ".join([f.words for f in r.summary.findings]),
        "state": _states,
        **{key: _of_all_gpus(GPU_SEARCHABLE.texts[key]) for key in ("holder", "user", "command", "pid")},
    },
    _highest,
)
"""What a filter may look at in a node."""


class FleetPane:
    """One line a node."""

    id = "fleet"
    title = "Fleet"
    groupings = (("", "nothing"), *((g, g) for g in _GROUP_BY))

    def columns(self, context: PaneContext) -> tuple[Column, ...]:
        """Return all columns."""
        return _TITLED.fitting(ascii_only=context.ascii_only)

    def _rows(self, context: PaneContext) -> list[Row]:
        made = SUMMARIES.all(context.view, context.now).of
        return [Row(key, context, made[key]) for key in sorted(made, key=_by_name)]

    def order(self, context: PaneContext) -> Sequence[Hashable]:
        """Return nodes, what needs a look first unless sorted otherwise."""
        rows = self._rows(context)
        if context.filter:
            terms = terms_of(context.filter)
            rows = [r for r in rows if matches(terms, r, SEARCHABLE)]
        if context.sort is not None:
            key, descending = context.sort
            column = next((c for c in COLUMNS if c.column.key == key), None)
            if column is not None:
                rows = sort_known_first(rows, column.value, descending=descending)
        else:
            rows.sort(key=lambda r: -r.summary.needs_a_look)
        if not context.group:
            return [r.key for r in rows]
        return grouped(rows, _GROUP_BY[context.group], lambda row: row.key, context.collapsed)

    def cells(self, context: PaneContext, key: Hashable) -> tuple[Cell | None, ...]:
        """Return the cells of a node, or of a heading."""
        if isinstance(key, Group):
            return (group_heading(context, key),)
        if not isinstance(key, NodeKey) or key not in context.view.nodes:
            return (Cell("gone", "dim"),)
        row = Row(key, context, SUMMARIES.of(context.view, key, context.now))
        cells = tuple([c.cell(row) for c in COLUMNS])
        return fold_cells(cells) if context.ascii_only else cells

    def empty(self, context: PaneContext) -> Cell:
        """Return why there is no row."""
        return no_rows(context)

    def demand(self, context: PaneContext) -> Demand:
        """Return what the lines and their findings need, for every node."""
        del context
        return Demand(quantities=QUANTITIES, hosts=frozenset(), processes=True)
