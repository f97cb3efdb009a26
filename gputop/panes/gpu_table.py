"""What the panes with one row a GPU share: order, filter, groups, and the rows of GPUs that are not there."""

from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from gputop.fleet import GpuState
from gputop.fleet.holding import holders, processes_of
from gputop.fleet.mig import is_mig
from gputop.model.demand import Demand
from gputop.model.facts import Presence
from gputop.model.identity import GpuKey
from gputop.model.process import GpuProcess
from gputop.model.quantity import QUANTITIES, Level
from gputop.model.reading import Absent
from gputop.panes.ascii import Titled, fold_cell, fold_cells
from gputop.panes.base import PaneContext
from gputop.panes.filter import Searchable, matches, terms_of
from gputop.panes.format import NA_TEXT, last, number, reading_cell
from gputop.panes.groups import group_heading, grouped
from gputop.panes.holding import holder_cell, holder_value
from gputop.panes.sorting import sort_known_first
from gputop.panes.words import PRESENCE_ROLES, PRESENCE_WORDS
from gputop.widgets.cells import Cell
from gputop.widgets.columns import Column
from gputop.widgets.row_order import Group

STALE_MARK: Final = "~"
"""Stands before a row's number when something in the row is stale: the look of stale text needs colour or italics."""
_INSTANCE: Final = 4
"""Characters of an instance's name under its board."""

CellOf = Callable[[GpuState, PaneContext], Cell]
ValueOf = Callable[[GpuState], float | str | None]


class GpuColumn(Struct, frozen=True):
    """A column with what stands in it.

    Attributes:
        column: Heading and width.
        cell: Gives the cell of a GPU.
        value: Gives what to sort by; None where that is not known.
    """

    column: Column
    cell: CellOf
    value: ValueOf


def text_of(gpu: GpuState, quantity: str) -> str:
    """Return a text of a GPU, "" if nobody tells it."""
    reading = gpu.readings.get(quantity)
    return (reading.text or "") if reading else ""


def number_value(quantity: str) -> ValueOf:
    """Return what sorts by a quantity."""
    return lambda gpu: last(gpu.readings.get(quantity))


def quantity_cell(
    gpu: GpuState,
    quantity: str,
    context: PaneContext,
    words: Callable[[float], str] = number,
    role: str | Callable[[float], str] = "",
) -> Cell:
    """Return the cell of one quantity of a GPU; see `reading_cell`.

    What only a whole board has is "n/a" for a MIG instance: its board's row tells it, and nobody owes it.
    """
    reading = gpu.readings.get(quantity)
    if reading is None and gpu.key.instance and QUANTITIES[quantity].level is Level.BOARD:
        return Cell(NA_TEXT, "na")
    return reading_cell(reading, context.now, words, role)


def _place(gpu: GpuState) -> float:
    return gpu.index if gpu.index >= 0 else float("inf")


def index_cell(gpu: GpuState, context: PaneContext) -> Cell:
    """Return the index, or the instance id set in under its board."""
    if gpu.key.instance:
        inset = "`" if context.ascii_only else "└"
        # Where no source tells the instance's id its key is the UUID, of which the end tells instances apart.
        name = gpu.key.instance if len(gpu.key.instance) <= _INSTANCE else gpu.key.instance[-_INSTANCE:]
        return Cell(f"{inset}{name}", "dim")
    return Cell(str(gpu.index) if gpu.index >= 0 else "?", "" if gpu.index >= 0 else "unknown")


def gpu_name(gpu: GpuState) -> str:
    """Return how a GPU is called within its node."""
    return f"gpu{gpu.index}" if gpu.index >= 0 else gpu.bus_id or gpu.key.uuid[:12]


def node_cell(gpu: GpuState, _: PaneContext) -> Cell:
    """Return the node."""
    return Cell(gpu.key.host, "dim" if gpu.key.instance else "")


def _holder_cell(gpu: GpuState, context: PaneContext) -> Cell:
    instances = context.view.instances(gpu.key) if is_mig(gpu) else ()
    return holder_cell(gpu, context.now, instances=instances, ascii_only=context.ascii_only)


INDEX: Final = GpuColumn(Column("index", "#", 5, min_width=3, align="right"), index_cell, _place)
NODE: Final = GpuColumn(Column("node", "NODE", 10, min_width=8, flex=1), node_cell, lambda gpu: gpu.key.host)
HOLDER: Final = GpuColumn(
    Column("holder", "HOLDER", 20, min_width=14, flex=3, priority=2),
    _holder_cell,
    holder_value,
)

_GROUP_BY: Final[dict[str, Callable[[GpuState], str]]] = {
    "node": lambda gpu: f"{gpu.key.host} ({gpu.key.cluster})" if gpu.key.cluster else gpu.key.host,
    "model": lambda gpu: text_of(gpu, "model") or "model not told",
    "holder": lambda gpu: holder_value(gpu) or "holder not told",
    "state": lambda gpu: PRESENCE_WORDS[gpu.presence],
}
GROUPINGS: Final = (("", "nothing"), ("node", "node"), ("holder", "holder"), ("model", "model"), ("state", "state"))


def _of_processes(gpu: GpuState, text: Callable[[GpuProcess], str | Absent]) -> str:
    return " ".join([t for t in map(text, processes_of(gpu) or ()) if isinstance(t, str)])


SEARCHABLE: Final[Searchable[GpuState]] = Searchable(
    {
        "node": lambda gpu: gpu.key.host,
        "model": lambda gpu: text_of(gpu, "model"),
        "cluster": lambda gpu: gpu.key.cluster,
        "name": gpu_name,
        "uuid": lambda gpu: f"{gpu.key.uuid} {gpu.mig_uuid}",
        "bus": lambda gpu: gpu.bus_id,
        "state": lambda gpu: PRESENCE_WORDS[gpu.presence],
        "why": lambda gpu: gpu.presence_reason,
        "holder": lambda gpu: " ".join([h.label for h, _ in holders(gpu)]),
        "user": lambda gpu: _of_processes(gpu, lambda p: p.user),
        "command": lambda gpu: _of_processes(gpu, lambda p: p.command),
        "pid": lambda gpu: _of_processes(gpu, lambda p: str(p.pid)),
    },
    lambda gpu, quantity: last(gpu.readings.get(quantity)),
)
"""What a filter may look at in a GPU."""


class GpuTable:
    """A pane with one row for each board and MIG instance.

    Args:
        id_: Stable word.
        title: Words for the tab.
        quantities: What it needs to be read.
        columns: All columns but index and node.
        own_order: Sort key of the pane's own order, None for node and index.
    """

    groupings = GROUPINGS

    def __init__(
        self,
        id_: str,
        title: str,
        quantities: frozenset[str],
        columns: tuple[GpuColumn, ...],
        own_order: Callable[[GpuState], float] | None = None,
    ) -> None:
        self.id = id_
        self.title = title
        self._quantities = quantities
        self._own = columns
        self._own_order = own_order
        self._of_one: tuple[GpuColumn, ...] = (INDEX, *columns)
        self._of_many: tuple[GpuColumn, ...] = (NODE, INDEX, *columns)
        self._titles_of_one = Titled.of(c.column for c in self._of_one)
        self._titles_of_many = Titled.of(c.column for c in self._of_many)

    def _columns(self, context: PaneContext) -> tuple[GpuColumn, ...]:
        return self._of_one if context.node is not None or len(context.view.nodes) <= 1 else self._of_many

    def columns(self, context: PaneContext) -> tuple[Column, ...]:
        """Return all columns; the node's only where there are several."""
        titles = self._titles_of_one if self._columns(context) is self._of_one else self._titles_of_many
        return titles.fitting(ascii_only=context.ascii_only)

    def order(self, context: PaneContext) -> Sequence[Hashable]:
        """Return GPUs, filtered, sorted and grouped."""
        view = context.view
        nodes = [context.node] if context.node in view.nodes else sorted(view.nodes)
        gpus = [g for n in nodes if n is not None for g in view.on_node(n)]
        if context.filter:
            terms = terms_of(context.filter)
            gpus = [g for g in gpus if matches(terms, g, SEARCHABLE)]
        if context.sort is not None:
            key, descending = context.sort
            value = next((c.value for c in (NODE, INDEX, *self._own) if c.column.key == key), None)
            if value is not None:
                gpus = sort_known_first(gpus, value, descending=descending)
        elif self._own_order is not None:
            gpus.sort(key=self._own_order)
        if not context.group:
            return [g.key for g in gpus]
        return grouped(gpus, _GROUP_BY[context.group], lambda gpu: gpu.key, context.collapsed)

    def cells(self, context: PaneContext, key: Hashable) -> tuple[Cell | None, ...]:
        """Return the cells of a GPU, or of a heading."""
        if isinstance(key, Group):
            return (group_heading(context, key),)
        gpu = context.view.gpus.get(key) if isinstance(key, GpuKey) else None
        if gpu is None:
            return (Cell("gone", "dim"),)
        cells = self._cells(gpu, context)
        return fold_cells(cells) if context.ascii_only else cells

    def _cells(self, gpu: GpuState, context: PaneContext) -> tuple[Cell | None, ...]:
        columns = self._columns(context)
        if gpu.presence is Presence.PRESENT:
            cells = [c.cell(gpu, context) for c in columns]
            if any(role == "stale" for cell in cells for _, role in cell.runs):
                place = columns.index(INDEX)
                cells[place] = Cell.of((STALE_MARK, "stale"), *cells[place].runs)
            return tuple(cells)
        names = [c.cell(gpu, context) for c in columns if c in (NODE, INDEX)]
        if HOLDER not in columns or not holders(gpu):
            return (*names, absent_cell(gpu, context, step=True), *[None] * (len(columns) - len(names) - 1))
        place = columns.index(HOLDER)
        between, after = place - len(names) - 1, len(columns) - place - 2
        # Where the columns right of the holder have no room for words, they stay empty.
        roomy = context.width >= _ROOM_FOR_THE_STEP
        step = Cell(_NEXT.get(gpu.presence, "") if roomy else "", "info")
        beside = (step, *[None if roomy else Cell("")] * after) if after >= 0 else ()
        return (
            *names, absent_cell(gpu, context, step=False), *[None] * between, HOLDER.cell(gpu, context), *beside
        )  # fmt: skip

    def empty(self, context: PaneContext) -> Cell:
        """Return why there is no row."""
        return no_rows(context)

    def demand(self, context: PaneContext) -> Demand:
        """Return the pane's quantities, for the node it is narrowed to."""
        hosts = None if context.node is None else frozenset({context.node.host})
        return Demand(quantities=self._quantities, hosts=hosts, processes=True)


_ROOM_FOR_THE_STEP: Final = 140

_NEXT: Final = {
    Presence.RESET_REQUIRED: "reset it once nothing runs on it",
    Presence.DENIED: "needs the right to open it",
    Presence.LOST: "kernel log: Xid 79?",
    Presence.MISSING: "compare lspci",
}
"""What to do or to look at, for states that the reason does not explain by itself."""


def absent_cell(gpu: GpuState, context: PaneContext, *, step: bool) -> Cell:
    """Return the state of a GPU that does not answer: what, since when, the last known, why.

    Args:
        gpu: The GPU.
        context: What the screen is set to.
        step: Say also what to do or to look at next.
    """
    since = f" {clock(gpu.presence_since, context.now)}" if gpu.presence_since else ""
    word = (PRESENCE_WORDS[gpu.presence] + since, PRESENCE_ROLES[gpu.presence])
    reason = (f", {gpu.presence_reason}" if gpu.presence_reason else "", "dim")
    util = last(gpu.readings.get("utilization"))
    told = (f", last {util:.0f}%" if util is not None else "", "stale")
    words = _NEXT.get(gpu.presence, "") if step else ""
    return Cell.of(word, told, reason, (f", {words}" if words else "", "info"))


def clock(at: float, now: float) -> str:
    """Return a local time of day, with its date when it is more than a day ago."""
    moment = datetime.fromtimestamp(at).astimezone()
    return moment.strftime("%H:%M:%S" if now - at < _DAY_S else "%m-%d %H:%M")


_DAY_S: Final = 86400.0


def no_rows(context: PaneContext) -> Cell:
    """Return why there is no row, from the filter and the sources."""
    cell = _no_rows(context)
    return fold_cell(cell) if context.ascii_only else cell


def _no_rows(context: PaneContext) -> Cell:
    if context.filter and context.view.gpus:
        return Cell(f"nothing matches /{context.filter}; Esc clears the filter", "warn")
    troubles = [s for s in context.view.sources.values() if s.reason]
    if troubles:
        first = troubles[0]
        return Cell(f"no GPU yet: {first.name} is {first.state}: {first.reason}", "warn")
    waiting = ", ".join(sorted(context.view.sources)) or "no source"
    return Cell(f"no GPU yet: waiting for {waiting}", "dim")
