"""What the panes with one row a GPU share: order, filter, groups, and the rows of GPUs that are not there."""

from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from gputop.fleet import GpuState
from gputop.model.demand import Demand
from gputop.model.facts import Presence
from gputop.model.identity import GpuKey
from gputop.panes.base import PaneContext
from gputop.panes.filter import Subject, matches, parse
from gputop.panes.format import last
from gputop.panes.holding import holder_cell
from gputop.panes.sorting import sort_known_first
from gputop.panes.words import PRESENCE_ROLES, PRESENCE_WORDS
from gputop.widgets.cells import Cell
from gputop.widgets.columns import Column
from gputop.widgets.row_order import Group

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


def _place(gpu: GpuState) -> float:
    return gpu.index if gpu.index >= 0 else float("inf")


def index_cell(gpu: GpuState, context: PaneContext) -> Cell:
    """Return the index, or the instance id set in under its board."""
    if gpu.key.instance:
        inset = "`-" if context.ascii_only else "└ "
        return Cell(f"{inset}{gpu.key.instance[:4]}", "dim")
    return Cell(str(gpu.index) if gpu.index >= 0 else "?", "" if gpu.index >= 0 else "unknown")


def node_cell(gpu: GpuState, _: PaneContext) -> Cell:
    """Return the node."""
    return Cell(gpu.key.host, "dim" if gpu.key.instance else "")


INDEX: Final = GpuColumn(Column("index", "#", 2, align="right"), index_cell, _place)
NODE: Final = GpuColumn(Column("node", "NODE", 14, min_width=8), node_cell, lambda gpu: gpu.key.host)
HOLDER: Final = GpuColumn(
    Column("holder", "HOLDER", 20, min_width=14, flex=3, priority=2),
    lambda gpu, _: holder_cell(gpu),
    lambda gpu: holder_cell(gpu).plain,
)

_GROUP_BY: Final[dict[str, Callable[[GpuState], str]]] = {
    "node": lambda gpu: gpu.key.host,
    "model": lambda gpu: text_of(gpu, "model") or "model not told",
    "holder": lambda gpu: holder_cell(gpu).plain,
    "state": lambda gpu: PRESENCE_WORDS[gpu.presence],
}
GROUPINGS: Final = (("", "nothing"), ("node", "node"), ("holder", "holder"), ("model", "model"), ("state", "state"))


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
        self._subjects: dict[GpuKey, tuple[GpuState, Subject]] = {}

    def _columns(self, context: PaneContext) -> tuple[GpuColumn, ...]:
        one_node = context.node is not None or len(context.view.nodes) <= 1
        return (INDEX, *self._own) if one_node else (NODE, INDEX, *self._own)

    def columns(self, context: PaneContext) -> tuple[Column, ...]:
        """Return all columns; the node's only where there are several."""
        return tuple(c.column for c in self._columns(context))

    def order(self, context: PaneContext) -> Sequence[Hashable]:
        """Return GPUs, filtered, sorted and grouped."""
        view = context.view
        nodes = [context.node] if context.node in view.nodes else sorted(view.nodes)
        gpus = [g for n in nodes if n is not None for g in view.on_node(n)]
        if context.filter:
            terms = parse(context.filter)
            gpus = [g for g in gpus if matches(terms, self._subject(g))]
        if context.sort is not None:
            key, descending = context.sort
            value = next((c.value for c in (NODE, INDEX, *self._own) if c.column.key == key), None)
            if value is not None:
                gpus = sort_known_first(gpus, value, descending=descending)
        elif self._own_order is not None:
            gpus.sort(key=self._own_order)
        return self._grouped(gpus, context) if context.group else [g.key for g in gpus]

    def _grouped(self, gpus: list[GpuState], context: PaneContext) -> list[Hashable]:
        by = _GROUP_BY[context.group]
        groups: dict[str, list[GpuKey]] = {}
        for gpu in gpus:
            groups.setdefault(by(gpu), []).append(gpu.key)
        order: list[Hashable] = []
        for name, keys in groups.items():
            order.append(Group(name, collapsible=True))
            if name not in context.collapsed:
                order += keys
        return order

    def _subject(self, gpu: GpuState) -> Subject:
        cached = self._subjects.get(gpu.key)
        if cached is not None and cached[0] is gpu:
            return cached[1]
        texts = {
            "node": gpu.key.host.lower(),
            "cluster": gpu.key.cluster.lower(),
            "uuid": gpu.key.uuid.lower(),
            "model": text_of(gpu, "model").lower(),
            "holder": holder_cell(gpu).plain.lower(),
            "state": PRESENCE_WORDS[gpu.presence].lower(),
            "driver": text_of(gpu, "driver_version").lower(),
        }
        subject = Subject(texts, lambda quantity: last(gpu.readings.get(quantity)))
        self._subjects[gpu.key] = (gpu, subject)
        return subject

    def cells(self, context: PaneContext, key: Hashable) -> tuple[Cell | None, ...]:
        """Return the cells of a GPU, or of a heading."""
        if isinstance(key, Group):
            return self._heading(context, key)
        gpu = context.view.gpus.get(key) if isinstance(key, GpuKey) else None
        if gpu is None:
            return (Cell("gone", "dim"),)
        columns = self._columns(context)
        if gpu.presence is Presence.PRESENT:
            return tuple(c.cell(gpu, context) for c in columns)
        names = [c.cell(gpu, context) for c in columns if c in (NODE, INDEX)]
        holder = [HOLDER.cell(gpu, context)] if HOLDER in columns else []
        between = len(columns) - len(names) - 1
        if HOLDER in columns:
            place = columns.index(HOLDER)
            before, after = place - len(names) - 1, len(columns) - place - 1
            return (*names, absent_cell(gpu, context), *[None] * before, *holder, *[Cell("")] * after)
        return (*names, absent_cell(gpu, context), *[None] * between)

    def _heading(self, context: PaneContext, group: Group) -> tuple[Cell, ...]:
        name = str(group.id)
        folded = ("+ " if context.ascii_only else "▸ ") if name in context.collapsed else ""
        return (Cell(f"{folded}{name}", "group"),)

    def empty(self, context: PaneContext) -> Cell:
        """Return why there is no row."""
        return no_rows(context)

    def demand(self, context: PaneContext) -> Demand:
        """Return the pane's quantities, for the node it is narrowed to."""
        hosts = None if context.node is None else frozenset({context.node.host})
        return Demand(quantities=self._quantities, hosts=hosts, processes=True)


def absent_cell(gpu: GpuState, context: PaneContext) -> Cell:
    """Return the state of a GPU that does not answer: what, since when, why, and the last that was known."""
    del context
    since = f" {clock(gpu.presence_since)}" if gpu.presence_since else ""
    word = (PRESENCE_WORDS[gpu.presence] + since, PRESENCE_ROLES[gpu.presence])
    reason = (f"  {gpu.presence_reason}" if gpu.presence_reason else "", "dim")
    util = last(gpu.readings.get("utilization"))
    told = (f"  last {util:.0f}%" if util is not None else "", "stale")
    return Cell.of(word, told, reason)


def clock(at: float) -> str:
    """Return a local time of day, with the date if it is not of the last day."""
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S")


def no_rows(context: PaneContext) -> Cell:
    """Return why there is no row, from the filter and the sources."""
    if context.filter and context.view.gpus:
        return Cell(f"nothing matches /{context.filter}; Esc clears the filter", "warn")
    troubles = [s for s in context.view.sources.values() if s.reason]
    if troubles:
        first = troubles[0]
        return Cell(f"no GPU yet: {first.name} is {first.state}: {first.reason}", "warn")
    waiting = ", ".join(sorted(context.view.sources)) or "no source"
    return Cell(f"no GPU yet: waiting for {waiting}", "dim")
