"""Details of one GPU or node: charts of the last minutes or hours, and every fact with source and age."""

import asyncio
from typing import Final

from textual.app import ComposeResult
from textual.containers import Grid
from textual.events import Resize

from gputop.fleet import Series
from gputop.model.identity import GpuKey, NodeKey
from gputop.model.text import clean
from gputop.panes.base import PaneContext
from gputop.panes.charts import CHARTS, ChartKind, draw
from gputop.panes.details import detail_lines, detail_title
from gputop.screens.base import WatchScreen
from gputop.screens.footer import Footer
from gputop.sources.base import SourceError
from gputop.widgets.canvas import LineCanvas
from gputop.widgets.cells import Cell
from gputop.widgets.chart import Chart
from gputop.widgets.status_line import StatusLines
from gputop.widgets.text_view import TextView

_SPANS: Final = ((0.0, "last minutes"), (1.0, "1 h"), (6.0, "6 h"), (24.0, "24 h"))
"""Spans of the charts in hours; 0 is what is in memory."""
_TWO_ROWS_FROM_HEIGHT: Final = 22
_CHARTS_FROM_HEIGHT: Final = 14
_TWO_COLUMNS_FROM_WIDTH: Final = 60


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
        self._hours: dict[str, Series] = {}
        self._words = ""
        self._reading: asyncio.Task[None] | None = None

    def compose(self) -> ComposeResult:
        """Lay out title, charts, text and footer."""
        ascii_only = self.watch_app.ascii_only
        yield StatusLines(1, ascii_only=ascii_only, id="details-title")
        with Grid(id="charts"):
            for kind in CHARTS:
                yield Chart(ascii_only=ascii_only, id=f"chart-{kind.id}")
        yield TextView((), ascii_only=ascii_only)
        yield Footer(ascii_only=ascii_only, read_only=self.watch_app.read_only)

    def on_mount(self) -> None:
        """Show what is known at once."""
        self.query_one(TextView).focus()
        self._fit(self.size.width, self.size.height)
        self.tick()
        if self._start_at:
            lines = self.query_one(TextView).plain.splitlines()
            wanted = self._start_at.casefold()
            at = next((i for i, line in enumerate(lines) if line.casefold().startswith(wanted)), 0)
            self.call_after_refresh(self.query_one(TextView).scroll_lines, at)

    def on_resize(self, event: Resize) -> None:
        """Give way to the text where there is little room."""
        self._fit(event.size.width, event.size.height)
        self.tick()

    def on_unmount(self) -> None:
        """Stop waiting for a range query."""
        if self._reading is not None:
            self._reading.cancel()

    def movable(self) -> LineCanvas | None:
        """Return the text."""
        return self.query_one(TextView)

    def _fit(self, width: int, height: int) -> None:
        grid = self.query_one("#charts", Grid)
        columns = 2 if width >= _TWO_COLUMNS_FROM_WIDTH else 1
        rows = 0 if height < _CHARTS_FROM_HEIGHT else 1 if height < _TWO_ROWS_FROM_HEIGHT else 2
        grid.display = isinstance(self._key, GpuKey) and rows > 0
        each = max(5, min(9, height // 5))
        grid.styles.grid_size_columns = columns
        grid.styles.grid_size_rows = max(1, rows)
        grid.styles.height = each * max(1, rows)
        for number, kind in enumerate(CHARTS):
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

    def tick(self) -> None:
        """Bring charts and text up to date."""
        if not self.is_mounted:
            return
        changes = self.watch_app.take_changes()
        if isinstance(self._key, GpuKey):
            self._key = changes.replaced.get(self._key) or self._key
        context = self.context()
        span = self._words or _SPANS[self._span][1]
        title = self.query_one("#details-title", StatusLines)
        title.set_line(0, detail_title(context, self._key), [Cell(span, "dim")])
        self.query_one(TextView).set_lines(detail_lines(context, self._key))
        if isinstance(self._key, GpuKey):
            for kind in CHARTS:
                self._draw(context, self._key, kind)
        self.query_one(Footer).show("details")

    def _draw(self, context: PaneContext, key: GpuKey, kind: ChartKind) -> None:
        chart = self.query_one(f"#chart-{kind.id}", Chart)
        if not chart.display:
            return
        hours = _SPANS[self._span][0]
        drawing = draw(context, key, kind, self._hours if hours else None)
        chart.show(drawing.title, drawing.series, drawing.scale)

    def do_span(self) -> None:
        """Show the next longer span; hours are asked of Prometheus."""
        if not isinstance(self._key, GpuKey):
            return
        self._span = (self._span + 1) % len(_SPANS)
        hours, words = _SPANS[self._span]
        self._hours = {}
        if self._reading is not None:
            self._reading.cancel()
        if hours:
            self._words = f"{words}: asking Prometheus …"
            self._reading = asyncio.create_task(self._read_hours(self._key, hours, words))
        else:
            self._words = ""
        self.tick()

    async def _read_hours(self, key: GpuKey, hours: float, words: str) -> None:
        quantities = tuple(dict.fromkeys(q for kind in CHARTS for q in kind.quantities))
        try:
            self._hours = await self.watch_app.session.range_series(key, quantities, hours)
            self._words = f"{words} from Prometheus" if self._hours else f"{words}: Prometheus has nothing of it"
        except SourceError as error:
            self._words = f"{words}: {clean(error.reason)}"
        self.tick()

    def do_details(self) -> None:
        """Leave by the key that opened it."""
        self.do_back()

    def do_copy(self) -> None:
        """Copy the whole text."""
        self.app.copy_to_clipboard(self.query_one(TextView).plain)
        self.query_one(Footer).say("copied: all details")
