"""The Sources pane: how each source is, what reading it costs, and what it lacks."""

from collections.abc import Hashable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputop.model.demand import Demand
from gputop.model.status import Finding, SourceState, SourceStatus
from gputop.panes.ascii import Titled, fold_cell, fold_cells
from gputop.panes.base import PaneContext
from gputop.panes.filter import Searchable, matches, terms_of
from gputop.panes.format import age, size
from gputop.widgets.cells import Cell, wrap
from gputop.widgets.columns import Column


class Mark(Struct, frozen=True):
    """How a state is drawn: glyph, letter and role."""

    glyph: str
    letter: str
    role: str


MARKS: Final = {
    SourceState.STARTING: Mark("○", "S", "info"),
    SourceState.LIVE: Mark("●", "L", "ok"),
    SourceState.DEGRADED: Mark("◐", "D", "warn"),
    SourceState.DENIED: Mark("✗", "F", "bad"),
    SourceState.DOWN: Mark("✗", "X", "bad"),
    SourceState.RELEASED: Mark("–", "R", "info"),
}


class LineKey(Struct, frozen=True):
    """A line below a source: why it is not well, or what it says of itself, broken to the width."""

    source: str
    number: int


def mark(status: SourceStatus, *, ascii_only: bool) -> str:
    """Return the mark of a state."""
    drawn = MARKS[status.state]
    return drawn.letter if ascii_only else drawn.glyph


_SEARCHABLE: Final[Searchable[SourceStatus]] = Searchable(
    {
        "name": lambda s: s.name,
        "state": lambda s: s.state.value,
        "why": lambda s: s.reason,
        "health": lambda s: "; ".join([f.text for f in s.findings]),
    },
    lambda _status, _quantity: None,
)


class SourcesPane:
    """Sources, each with its findings below."""

    id = "sources"
    title = "Sources"
    groupings = (("", "nothing"),)
    _COLUMNS: Final = tuple(replace(c, sortable=False, descending=False) for c in (
        Column("name", "SOURCE", 16, min_width=10),
        Column("state", "STATE", 11, min_width=10),
        Column("since", "FOR", 4, align="right", priority=2),
        Column("age", "DATA", 4, align="right", priority=1),
        Column("next", "NEXT TRY", 8, align="right", priority=2),
        Column("target", "READS", 24, min_width=20, flex=4),
        Column("took", "TOOK", 6, align="right", priority=3, descending=True),
        Column("cpu", "CPU s", 6, align="right", priority=4, descending=True),
        Column("requests", "CALLS", 6, align="right", priority=4, descending=True),
        Column("bytes", "BYTES", 7, align="right", priority=5, descending=True),
        Column("found", "FOUND BY", 30, flex=1, priority=6),
    ))  # fmt: skip
    _TITLED: Final = Titled.of(_COLUMNS)

    def columns(self, context: PaneContext) -> tuple[Column, ...]:
        """Return all columns."""
        return self._TITLED.fitting(ascii_only=context.ascii_only)

    def order(self, context: PaneContext) -> Sequence[Hashable]:
        """Return sources in their order, each followed by what it says of itself."""
        terms = terms_of(context.filter)
        order: list[Hashable] = []
        for name, status in context.view.sources.items():
            if matches(terms, status, _SEARCHABLE):
                order.append(name)
                order += [LineKey(name, n) for n in range(len(_lines(status, context.width)))]
        return order

    def cells(self, context: PaneContext, key: Hashable) -> tuple[Cell | None, ...]:
        """Return the cells of a source, or of a finding."""
        if isinstance(key, LineKey):
            status = context.view.sources.get(key.source)
            lines = _lines(status, context.width) if status is not None else ()
            cell = lines[key.number] if key.number < len(lines) else Cell("")
            return (fold_cell(cell) if context.ascii_only else cell,)
        status = context.view.sources.get(str(key))
        cells = _cells(status, context) if status else (Cell("gone", "dim"),)
        return fold_cells(cells) if context.ascii_only else cells

    def empty(self, context: PaneContext) -> Cell:
        """Return why there is no row."""
        if context.filter:
            return Cell(f"nothing matches /{context.filter}; Esc clears the filter", "warn")
        return Cell("no source: name one with --prometheus or --exporter, or see `gputop doctor`", "warn")

    def demand(self, context: PaneContext) -> Demand:
        """Return the least: the pane shows only how sources are."""
        del context
        return Demand(quantities=frozenset({"utilization"}), hosts=frozenset(), processes=False)


_INDENT: Final = 3
_MARGINS: Final = 2
_FINDING_ROLES: Final = {"ok": "dim", "info": "dim", "warning": "warn", "critical": "bad"}


def _lines(status: SourceStatus, width: int) -> tuple[Cell, ...]:
    """Return all that a source has to say, in lines that fit: a reason that is cut is no reason."""
    pad = (" " * _INDENT, "")
    told = [Cell.of(pad, (status.reason, MARKS[status.state].role))] if status.reason else []
    told += [_finding_cell(f, pad) for f in status.findings]
    return tuple(line for cell in told for line in wrap(cell, width - _MARGINS, _INDENT + 2))


def _finding_cell(finding: Finding, pad: tuple[str, str]) -> Cell:
    advice = (f" \u2192 {finding.advice}", "key") if finding.advice else ("", "")
    return Cell.of(pad, (finding.text, _FINDING_ROLES.get(finding.severity, "")), advice)


def _cells(status: SourceStatus, context: PaneContext) -> tuple[Cell, ...]:
    now, cost = context.now, status.cost
    told = age(max(0.0, now - status.last_data_at)) if status.last_data_at is not None else "?"
    wait = f"in {age(max(0.0, status.next_try_at - now))}" if status.next_try_at is not None else ""
    role = MARKS[status.state].role
    return (
        Cell(status.name),
        Cell(f"{mark(status, ascii_only=context.ascii_only)} {status.state}", role),
        Cell(age(max(0.0, now - status.since)), "dim"),
        Cell(told, "" if told != "?" else "unknown"),
        Cell(wait, "dim"),
        Cell(status.target, "dim"),
        Cell(f"{cost.last_s:.2f}s" if cost.last_s is not None else "?", "dim"),
        Cell(f"{cost.cpu_s:.1f}", "dim"),
        Cell(str(cost.requests), "dim"),
        Cell(size(cost.bytes_read), "dim"),
        Cell(status.found, "dim"),
    )
