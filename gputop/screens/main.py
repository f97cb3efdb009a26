"""The main screen: header, the rows of one pane, what runs below them, keys."""

from collections.abc import Hashable, Iterator
from functools import partial
from typing import Final

from textual.app import ComposeResult
from textual.events import Resize, ScreenResume

from gputop.fleet import Changes
from gputop.model.demand import Demand
from gputop.model.identity import GpuKey, NodeKey
from gputop.panes.base import PaneContext
from gputop.panes.filter import problem_of
from gputop.panes.header import header_lines
from gputop.panes.processes import ProcessesPane
from gputop.panes.registry import PANES
from gputop.screens.base import Step, WatchScreen
from gputop.screens.footer import Footer
from gputop.screens.state import PaneState
from gputop.widgets.cells import Cell
from gputop.widgets.columns import Column
from gputop.widgets.line_table import LineTable
from gputop.widgets.prompt import Prompt
from gputop.widgets.status_line import StatusLines

_HEADER_LINES: Final = 4
_LOWER_FROM_HEIGHT: Final = 18
"""Rows of a terminal from which the processes have a place of their own below the GPUs."""
_LOWER_SHARE: Final = 0.4
_OF_GPUS: Final = frozenset({"fleet", "gpus", "memory", "errors"})
"""Panes whose rows are GPUs or the nodes they are in."""


class MainScreen(WatchScreen):
    """One pane at a time over the whole width."""

    def __init__(self, pane: str = "") -> None:
        super().__init__()
        self._states = [PaneState(p) for p in PANES]
        self._active = next((i for i, s in enumerate(self._states) if s.pane.id == pane), 0)
        self._chosen = bool(pane)
        self._node: NodeKey | None = None
        self._lower_pane = ProcessesPane()
        self._shown: PaneContext | None = None
        self._changes = Changes(rows=True)
        self._columns: tuple[Column, ...] = ()

    def compose(self) -> ComposeResult:
        """Lay out header, table, lower table, filter line and footer."""
        ascii_only = self.watch_app.ascii_only
        yield StatusLines(_HEADER_LINES, ascii_only=ascii_only, id="header")
        yield LineTable((), self._cells, ascii_only=ascii_only, id="table")
        yield LineTable((), self._lower_cells, ascii_only=ascii_only, id="lower")
        yield Prompt("/", ascii_only=ascii_only, id="filter")
        yield Footer(ascii_only=ascii_only, read_only=self.watch_app.read_only)

    def on_mount(self) -> None:
        """Show the first frame at once; data comes when it comes."""
        self.query_one(Prompt).display = False
        self._fit(self.size.height)
        self._show_pane()

    def on_resize(self, event: Resize) -> None:
        """Give way to the rows where there is little room."""
        self._fit(event.size.height)
        self.redraw()

    def on_screen_resume(self, _event: ScreenResume) -> None:
        """Show what changed while another screen was on top."""
        self.redraw()

    # -- what is shown ----------------------------------------------------------------------------------

    @property
    def pane(self) -> PaneState:
        """The pane in sight."""
        return self._states[self._active]

    @property
    def node(self) -> NodeKey | None:
        """The node that the GPUs pane is narrowed to."""
        return self._node if self.pane.pane.id in _OF_GPUS - {"fleet"} else None

    @property
    def table(self) -> LineTable:
        """The rows of the pane."""
        return self.query_one("#table", LineTable)

    @property
    def lower(self) -> LineTable:
        """The processes below the GPUs."""
        return self.query_one("#lower", LineTable)

    def context(self) -> PaneContext:
        """Return what the screen is set to, with the fleet as it is now or as it was when held."""
        app, state = self.watch_app, self.pane
        return PaneContext(
            view=app.shown_view(),
            now=app.shown_now(),
            filter=state.filter,
            sort=state.sort,
            group=state.group,
            node=self.node,
            width=self.size.width,
            ascii_only=app.ascii_only,
            series=app.session.fleet.history.series,
            collapsed=state.collapsed,
        )

    def demand(self) -> Demand:
        """Return what the pane in sight needs to be read."""
        return self.pane.pane.demand(self.context())

    def steps(self) -> Iterator[Step]:
        """Bring header, rows and footer up to date."""
        if not self.is_mounted:
            return
        context = self._shown = self.context()
        self._changes = self.watch_app.take_changes()
        self._follow_replacements()
        self._settle_first_pane(context)
        yield None
        state = self.pane
        if state.is_due(context, rows_changed=self._changes.rows):
            yield partial(state.take_order, context)
        self._place_columns(context)
        self.table.set_empty(state.pane.empty(context))
        yield from self.table.updating(state.order)
        yield from self._lower_steps(context)
        self._tick_header(context)
        yield None
        self.query_one(Footer).show(state.pane.id)

    def _place_columns(self, context: PaneContext) -> None:
        """Give the table the pane's columns when they are others: a second node brings a column of its own."""
        columns = self.pane.pane.columns(context)
        if columns is not self._columns:
            self._columns = columns
            self.table.set_columns(columns)

    def _lower_steps(self, context: PaneContext) -> Iterator[Step]:
        if self.lower.display:
            self.lower.set_empty(self._lower_pane.empty(context))
            yield from self.lower.updating(self._lower_pane.order(context))

    def _tick_header(self, context: PaneContext) -> None:
        header = self.query_one("#header", StatusLines)
        app = self.watch_app
        marks = tuple(m for m in (app.session.mark, "PAUSED" if app.paused else "") if m)
        lines = header_lines(context, marks=marks, interval_s=app.interval_s, read_only=app.read_only)
        lines = (*lines[: _HEADER_LINES - 1], (self._tabs(), self._settings()))
        # On a low terminal the first lines are what fits, and the tabs are the first to go.
        for number, (left, right) in enumerate(lines[:_HEADER_LINES]):
            header.set_line(number, left, right)

    def _tabs(self) -> list[Cell]:
        return [
            Cell.of((f"{i + 1}", "key"), (f" {s.pane.title}", "title" if i == self._active else "dim"))
            for i, s in enumerate(self._states)
        ]

    def _settings(self) -> list[Cell]:
        state, parts = self.pane, []
        if self.node is not None:
            parts.append(Cell(f"node {self.node.host}", "match"))
        if state.group:
            parts.append(Cell(f"by {dict(state.pane.groupings)[state.group]}", "match"))
        if state.filter:
            parts.append(Cell(f"/{state.filter}", "match"))
        return parts

    def _cells(self, key: Hashable) -> tuple[Cell | None, ...]:
        return self.pane.pane.cells(self._shown or self.context(), key)

    def _lower_cells(self, key: Hashable) -> tuple[Cell | None, ...]:
        return self._lower_pane.cells(self._shown or self.context(), key)

    def _follow_replacements(self) -> None:
        """Keep cursor and node on the rows that went on under another key."""
        for old, new in self._changes.replaced.items():
            if new is not None and self.table.cursor == old:
                self.pane.cursor = new
                self.call_after_refresh(self.table.move_cursor, new)
            if self._node == old.node and new is not None:
                self._node = new.node

    def _settle_first_pane(self, context: PaneContext) -> None:
        """Open on the GPUs where there is one node, on the fleet where there are several, once data tells."""
        if self._chosen or not context.view.nodes:
            return
        self._chosen = True
        if len(context.view.nodes) == 1:
            self._go("gpus")

    def _fit(self, height: int) -> None:
        header = self.query_one("#header", StatusLines)
        header.styles.height = _HEADER_LINES if height >= 12 else 1 if height >= 5 else 0
        header.display = height >= 5
        self.query_one(Footer).display = height >= 4
        roomy = height >= _LOWER_FROM_HEIGHT and self.pane.pane.id == "gpus"
        self.lower.display = roomy
        if roomy:
            self.lower.styles.height = max(4, int((height - _HEADER_LINES - 1) * _LOWER_SHARE))

    def _show_pane(self) -> None:
        context = self._shown = self.context()
        state = self.pane
        self._place_columns(context)
        column, descending = state.sort or (None, False)
        self.table.set_sort(column, descending=descending)
        self.lower.set_columns(self._lower_pane.columns(context))
        self._fit(self.size.height)
        self.table.focus()
        self._changes.rows = True
        self.watch_app.post_demand(self.demand())
        self.table.update(state.order)
        self.redraw()
        if state.cursor is not None:
            self.table.move_cursor(state.cursor)

    def _go(self, pane: str, node: NodeKey | None = None) -> None:
        index = next(i for i, s in enumerate(self._states) if s.pane.id == pane)
        self.pane.cursor = self.table.cursor
        self._active = index
        self._node = node
        self._show_pane()

    # -- actions ----------------------------------------------------------------------------------------

    def go_to(self, number: int) -> None:
        """Show the pane with this number, counted from 0."""
        if number < len(self._states):
            self._chosen = True
            self._go(self._states[number].pane.id, self._node)

    def do_next_pane(self) -> None:
        """Show the next pane."""
        self.go_to((self._active + 1) % len(self._states))

    def do_previous_pane(self) -> None:
        """Show the previous pane."""
        self.go_to((self._active - 1) % len(self._states))

    def do_open(self) -> None:
        """Open what the cursor is on: the GPUs of a node, the details of a GPU, a group."""
        key = self.table.cursor
        if isinstance(key, NodeKey):
            self._go("gpus", key)
        elif isinstance(key, GpuKey):
            self.do_details()

    def do_details(self) -> None:
        """Show everything known of the row under the cursor."""
        self._open_details()

    def do_why_holder(self) -> None:
        """Show the details of a GPU from its holders on."""
        if isinstance(self.table.cursor, GpuKey):
            self._open_details(start_at="holders")

    def _open_details(self, start_at: str = "") -> None:
        from gputop.screens.details import DetailsScreen  # noqa: PLC0415 - the first frame does without

        key = self.table.cursor
        if isinstance(key, NodeKey | GpuKey):
            self.app.push_screen(DetailsScreen(key, start_at=start_at))

    def do_heat(self) -> None:
        """Show the heat map."""
        from gputop.screens.heat import HeatScreen  # noqa: PLC0415 - the first frame does without

        pane = self.pane.pane
        if pane.id in _OF_GPUS:
            self.app.push_screen(HeatScreen(pane, self.pane.filter, self.node))
        else:
            self.app.push_screen(HeatScreen())

    def do_back(self) -> None:
        """Undo the last narrowing: marks, then the filter, then the node."""
        if self.table.marks:
            self.table.action_clear_marks()
        elif self.pane.filter:
            self.pane.filter = ""
            self.redraw()
        elif self._node is not None:
            node = self._node
            self._go("fleet")
            self.table.move_cursor(node)

    def do_filter(self) -> None:
        """Open the line for the filter."""
        prompt = self.query_one(Prompt)
        prompt.display = True
        prompt.set_value(self.pane.filter)
        prompt.focus()

    def on_prompt_changed(self, event: Prompt.Changed) -> None:
        """Filter while typing; a filter that cannot be read says why and filters nothing."""
        problem = problem_of(event.value)
        self.query_one(Prompt).set_note(Cell(problem, "warn"))
        if not problem:
            self.pane.filter = event.value
            self.redraw()

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        """Keep the filter and go back to the rows."""
        if problem_of(event.value):
            return
        self._close_prompt()

    def on_prompt_cancelled(self, _event: Prompt.Cancelled) -> None:
        """Drop the filter."""
        self.pane.filter = ""
        self._close_prompt()

    def _close_prompt(self) -> None:
        prompt = self.query_one(Prompt)
        prompt.set_note(Cell(""))
        prompt.display = False
        self.table.focus()
        self.redraw()

    def do_group(self) -> None:
        """Group by the next thing the pane can be grouped by."""
        words = self.pane.next_group()
        self.query_one(Footer).say(f"grouped by {words}" if words else "not grouped")
        self.redraw()

    def do_sort_next(self) -> None:
        """Sort by the next column."""
        self.table.action_sort_next()

    def do_sort_previous(self) -> None:
        """Sort by the previous column."""
        self.table.action_sort_previous()

    def do_sort_invert(self) -> None:
        """Turn the order round."""
        self.table.action_sort_invert()

    def do_follow(self) -> None:
        """Bring the row under the cursor into sight."""
        self.table.show_cursor()

    def do_mark(self) -> None:
        """Mark or unmark the row."""
        self.table.action_toggle_mark()

    def do_clear_marks(self) -> None:
        """Unmark all rows."""
        self.table.action_clear_marks()

    def do_copy(self) -> None:
        """Copy the marked rows, or the one under the cursor."""
        marked = self.table.marks
        keys = [k for k in self.table.order if k in marked] or [self.table.cursor]
        context = self.context()
        lines = [
            "\t".join(c.plain.strip() for c in self.pane.pane.cells(context, k) if c is not None)
            for k in keys
            if k is not None
        ]
        if lines:
            self.app.copy_to_clipboard("\n".join(lines))
            what = f"{len(lines)} rows" if len(lines) > 1 else lines[0].replace("\t", "  ")
            self.query_one(Footer).say(f"copied: {what}")

    def on_line_table_sort_requested(self, event: LineTable.SortRequested) -> None:
        """Sort by a column that was chosen by key or by a click on its heading."""
        if event.table is self.table:
            self.pane.sort = (event.column, event.descending) if event.column else None
            self.table.set_sort(event.column, descending=event.descending)
            self.redraw()

    def on_line_table_group_toggled(self, event: LineTable.GroupToggled) -> None:
        """Fold a group away or unfold it."""
        self.pane.toggle(str(event.group.id))
        self.redraw()

    def on_line_table_activated(self, event: LineTable.Activated) -> None:
        """Open the row that enter or a double click was on."""
        if event.table is self.table:
            self.do_open()
