"""Details of one GPU or node: charts of the last minutes or hours, and every fact with source and age."""

import asyncio
import time
from collections.abc import Iterator
from typing import Final

from msgspec import structs
from textual.app import ComposeResult
from textual.containers import Grid
from textual.events import Resize

from gputop.fleet import Series
from gputop.model.demand import Demand
from gputop.model.identity import GpuKey, NodeKey
from gputop.model.text import clean
from gputop.panes.ascii import fold_cell
from gputop.panes.base import PaneContext
from gputop.panes.charts import ChartKind, boards_of, columns_across, draw, kinds_of
from gputop.panes.details import detail_lines, detail_title
from gputop.panes.errors import QUANTITIES as ERROR_QUANTITIES
from gputop.panes.memory import QUANTITIES as MEMORY_QUANTITIES
from gputop.screens.base import Step, WatchScreen
from gputop.screens.footer import Footer
from gputop.sources.base import SourceError
from gputop.widgets.canvas import LineCanvas
from gputop.widgets.cells import Cell
from gputop.widgets.chart import Chart
from gputop.widgets.status_line import StatusLines
from gputop.widgets.text_view import TextView

_SPANS: Final = ((0.0, "minutes"), (1.0, "1 h"), (6.0, "6 h"), (24.0, "24 h"))
"""Spans of the charts in hours; 0 is what is in memory."""
_ASK_AGAIN_S: Final = 60.0
"""Hours are asked anew so often, so that their right end stays near now."""
_ALL_QUANTITIES_TO_NODES: Final = 64
"""In a larger fleet details show what the panes read: a query names a quantity for every host, and all of them
for one GPU would cost a hundred times that GPU."""
_TWO_ROWS_FROM_HEIGHT: Final = 22
_CHARTS_FROM_HEIGHT: Final = 14


class DetailsScreen(WatchScreen):
    """All that is known of one row.

    Args:
        key: The GPU or node.
        start_at: Id of the section to begin with, "" for the top.
    """

    def __init__(self, key: GpuKey | NodeKey, start_at: str = "") -> None:
        super().__init__()
        self._key = key
        self._start_at = start_at
        self._span = 0
        self._kinds = kinds_of(key)
        self._hours: dict[GpuKey, dict[str, Series]] = {}
        self._words = Cell("")
        self._reading: asyncio.Task[None] | None = None
        self._asked_at = 0.0
        self._before: Demand | None = None
        self._posted: Demand | None = None

    def compose(self) -> ComposeResult:
        """Lay out title, charts, text and footer."""
        ascii_only = self.watch_app.ascii_only
        yield StatusLines(1, ascii_only=ascii_only, id="details-title")
        yield StatusLines(1, ascii_only=ascii_only, id="details-span")
        with Grid(id="charts"):
            for kind in self._kinds:
                yield Chart(ascii_only=ascii_only, id=f"chart-{kind.id}")
        yield TextView((), ascii_only=ascii_only)
        yield Footer(ascii_only=ascii_only, read_only=self.watch_app.read_only)

    def on_mount(self) -> None:
        """Show what is known at once."""
        self.query_one(TextView).focus()
        self._want_everything()
        self._fit(self.size.width, self.size.height)
        self.redraw()
        if self._start_at:
            lines = self.query_one(TextView).plain.splitlines()
            wanted = self._start_at.casefold()
            at = next((i for i, line in enumerate(lines) if line.casefold().startswith(wanted)), 0)
            self.call_after_refresh(self.query_one(TextView).scroll_lines, at)

    def on_resize(self, event: Resize) -> None:
        """Give way to the text where there is little room."""
        self._fit(event.size.width, event.size.height)
        self.redraw()

    def on_unmount(self) -> None:
        """Stop waiting for a range query, and want no more than before."""
        if self._reading is not None:
            self._reading.cancel()
        now = self.watch_app.session.board.current
        # A pane that was opened from here wants its own by now; the interval may have been changed here.
        if self._before and self._posted and structs.replace(now, interval_s=0.0) == self._posted:
            self.watch_app.post_demand(self._before)

    def _want_everything(self) -> None:
        board, view = self.watch_app.session.board, self.watch_app.shown_view()
        self._before = board.current
        few = len(view.nodes) <= _ALL_QUANTITIES_TO_NODES
        quantities = None if few else ERROR_QUANTITIES | MEMORY_QUANTITIES
        hosts = frozenset({self._key.host})
        wanted = structs.replace(self._before, quantities=quantities, hosts=hosts, processes=True)
        self._posted = structs.replace(wanted, interval_s=0.0)
        self.watch_app.post_demand(wanted)

    def movable(self) -> LineCanvas | None:
        """Return the text."""
        return self.query_one(TextView)

    def _fit(self, width: int, height: int) -> None:
        grid = self.query_one("#charts", Grid)
        columns = columns_across(self._key, width)
        rows = 0 if height < _CHARTS_FROM_HEIGHT else 1 if height < _TWO_ROWS_FROM_HEIGHT else 2
        grid.display = rows > 0
        self.query_one("#details-span", StatusLines).display = grid.display
        each = max(5, min(9, height // 4))
        grid.styles.grid_size_columns = columns
        grid.styles.grid_size_rows = max(1, rows)
        grid.styles.height = each * max(1, rows)
        for number, kind in enumerate(self._kinds):
            self.query_one(f"#chart-{kind.id}", Chart).display = number < columns * rows

    def context(self) -> PaneContext:
        """Return what the screen is set to."""
        app = self.watch_app
        return PaneContext(
            view=app.shown_view(),
            now=app.shown_now(),
            width=self.size.width,
            ascii_only=app.ascii_only,
            series=app.session.fleet.history.series,
        )

    def steps(self) -> Iterator[Step]:
        """Bring charts and text up to date."""
        if not self.is_mounted:
            return
        changes = self.watch_app.take_changes()
        if isinstance(self._key, GpuKey):
            self._key = changes.replaced.get(self._key) or self._key
        context = self.context()
        app = self.watch_app
        marks = [Cell(f" {m} ", "alert") for m in (app.session.mark, "PAUSED" if app.paused else "") if m]
        self.query_one("#details-title", StatusLines).set_line(0, detail_title(context, self._key), marks)
        yield None
        self._show_span()
        self._keep_hours_fresh()
        self.query_one(TextView).set_lines(detail_lines(context, self._key))
        for kind in self._kinds:
            self._draw(context, kind)
        self.query_one(Footer).show("details")

    def _draw(self, context: PaneContext, kind: ChartKind) -> None:
        chart = self.query_one(f"#chart-{kind.id}", Chart)
        if not chart.display:
            return
        # Where hours cannot be had, the minutes in memory stay, as the words above the charts say.
        from_memory = not _SPANS[self._span][0] or self._words.role == "warn"
        drawing = draw(context, self._key, kind, None if from_memory else self._hours)
        chart.show(drawing.title, drawing.series, drawing.scale)

    def _show_span(self) -> None:
        """Say which spans there are and where the lines come from; what went wrong takes the whole line."""
        hours = _SPANS[self._span][0]
        words = fold_cell(self._words) if self.watch_app.ascii_only else self._words
        if hours and words.role == "warn":
            items = [words]
        else:
            # Brackets tell the chosen one where there is no colour.
            spans = [
                Cell(f"[{name}]" if number == self._span else f" {name} ", "sorted" if number == self._span else "dim")
                for number, (_, name) in enumerate(_SPANS)
            ]
            items = [Cell.of(("s", "key"), (" span", "dim")), *spans, words if hours else Cell("from memory", "dim")]
        self.query_one("#details-span", StatusLines).set_line(0, items)

    def do_span(self) -> None:
        """Show the next longer span; hours are asked of Prometheus."""
        self._span = (self._span + 1) % len(_SPANS)
        self._hours = {}
        self._ask()
        self.redraw()

    def _keep_hours_fresh(self) -> None:
        due = time.monotonic() - self._asked_at >= _ASK_AGAIN_S
        # Held charts keep what they show.
        if self._hours and due and not self.watch_app.paused:
            self._ask()

    def _ask(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        hours, name = _SPANS[self._span]
        self._asked_at = time.monotonic()
        if not self._hours:
            self._words = Cell(f"{name}: asking Prometheus …" if hours else "", "info")
        self._reading = asyncio.create_task(self._read_hours(hours, name)) if hours else None

    async def _read_hours(self, hours: float, name: str) -> None:
        quantities = tuple(kind.quantity for kind in self._kinds)
        found: dict[GpuKey, dict[str, Series]] = {}
        try:
            # Board by board, so that a server is not asked for a whole node at once.
            for key in boards_of(self.context(), self._key):
                series = await self.watch_app.session.range_series(key, quantities, hours)
                if series:
                    found[key] = series
            self._hours = found
            whose = "GPU" if isinstance(self._key, GpuKey) else "node"
            if found:
                self._words = Cell("from Prometheus", "dim")
            else:
                self._words = Cell(f"{name}: Prometheus has nothing of this {whose}", "warn")
        except SourceError as error:
            self._words = Cell(f"{name}: {clean(error.reason)}", "warn")
        self.redraw()

    def do_details(self) -> None:
        """Leave by the key that opened it."""
        self.do_back()

    def do_copy(self) -> None:
        """Copy the whole text."""
        self.app.copy_to_clipboard(self.query_one(TextView).plain)
        self.query_one(Footer).say("copied: all details")
