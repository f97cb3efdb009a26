"""The heat map: one glyph a GPU, for thousands at a glance."""

from collections.abc import Iterator
from functools import partial

from textual.app import ComposeResult
from textual.events import ScreenResume

from gputop.fleet import Changes
from gputop.model.identity import GpuKey, NodeKey
from gputop.panes.base import Pane, PaneContext
from gputop.panes.heat import heat_glyph, heat_rows, heat_summary, heat_title
from gputop.screens.base import Step, WatchScreen
from gputop.screens.details import DetailsScreen
from gputop.screens.footer import Footer
from gputop.screens.state import PaneState
from gputop.widgets.canvas import LineCanvas
from gputop.widgets.heatmap import Heatmap, HeatRow
from gputop.widgets.status_line import StatusLines


class HeatScreen(WatchScreen):
    """GPUs by node; the line below tells of the one under the cursor.

    Args:
        pane: The pane that the map was opened from, whose filter means what it means there; None for all GPUs.
        filter_: The pane's filter.
        node: The node the pane is narrowed to.
    """

    def __init__(self, pane: Pane | None = None, filter_: str = "", node: NodeKey | None = None) -> None:
        super().__init__()
        self._filter, self._node = filter_, node
        self._state = PaneState(pane) if pane is not None and (filter_ or node) else None
        self._rows: list[HeatRow] = []
        self._shown: PaneContext | None = None

    def compose(self) -> ComposeResult:
        """Lay out title, map, the line of the cursor and the footer."""
        ascii_only = self.watch_app.ascii_only
        yield StatusLines(1, ascii_only=ascii_only, id="heat-title")
        empty = f"no GPU matches /{self._filter}" if self._filter else "no GPU yet"
        yield Heatmap(self._glyph, empty=empty, ascii_only=ascii_only)
        yield StatusLines(1, ascii_only=ascii_only, id="heat-cursor")
        yield Footer(ascii_only=ascii_only, read_only=self.watch_app.read_only)

    def on_mount(self) -> None:
        """Show the map at once."""
        self.query_one(Heatmap).focus()
        self.redraw()

    def on_screen_resume(self, _event: ScreenResume) -> None:
        """Show what changed while another screen was on top."""
        self.redraw()

    def movable(self) -> LineCanvas | None:
        """Return the map."""
        return self.query_one(Heatmap)

    def context(self) -> PaneContext:
        """Return what the screen is set to."""
        app = self.watch_app
        return PaneContext(
            view=app.shown_view(),
            now=app.shown_now(),
            filter=self._filter,
            node=self._node,
            width=self.size.width,
            ascii_only=app.ascii_only,
        )

    def _glyph(self, key: object) -> tuple[str, str]:
        return heat_glyph(self._shown or self.context(), key)

    def steps(self) -> Iterator[Step]:
        """Bring the map up to date."""
        if not self.is_mounted:
            return
        first = self._shown is None
        changes = self.watch_app.take_changes()
        self._follow(changes)
        context = self._shown = self.context()
        rows = None
        if self._state is None:
            rows = heat_rows(context) if first or changes.rows else None
        elif self._state.is_due(context, rows_changed=True):
            # Which GPUs a filter leaves depends on their values, not only on which there are.
            yield partial(self._narrow, self._state, context)
            rows = self._rows
        # The glyph of a board in MIG mode is made of its instances.
        boards = {key.board for key in changes.gpus}
        self.query_one(Heatmap).update(rows, None if first or changes.rows else boards)
        yield None
        self.query_one("#heat-title", StatusLines).set_line(0, heat_title(context))
        self._tell_cursor()
        self.query_one(Footer).show("heat")

    def _narrow(self, state: PaneState, context: PaneContext) -> None:
        state.take_order(context)
        self._rows = heat_rows(context, state.order)

    def _follow(self, changes: Changes) -> None:
        """Stay with a node that goes on under another key."""
        for old, new in changes.replaced.items():
            if self._node == old.node and new is not None:
                self._node = new.node

    def _tell_cursor(self) -> None:
        key = self.query_one(Heatmap).cursor
        cells = heat_summary(self._shown or self.context(), key) if isinstance(key, GpuKey) else []
        self.query_one("#heat-cursor", StatusLines).set_line(0, cells)

    def on_heatmap_cursor_moved(self, _event: Heatmap.CursorMoved) -> None:
        """Tell of the GPU under the cursor."""
        self._tell_cursor()

    def on_heatmap_activated(self, _event: Heatmap.Activated) -> None:
        """Open the GPU under the cursor."""
        self.do_open()

    def do_open(self) -> None:
        """Show everything known of the GPU under the cursor."""
        key = self.query_one(Heatmap).cursor
        if isinstance(key, GpuKey):
            self.app.push_screen(DetailsScreen(key))

    def do_details(self) -> None:
        """Show everything known of the GPU under the cursor."""
        self.do_open()

    def do_copy(self) -> None:
        """Copy the line of the GPU under the cursor."""
        key = self.query_one(Heatmap).cursor
        if isinstance(key, GpuKey):
            words = "  ".join(cell.plain for cell in heat_summary(self.context(), key))
            self.app.copy_to_clipboard(words)
            self.query_one(Footer).say(f"copied: {words}")

    def do_heat(self) -> None:
        """Leave the map by the key that opened it."""
        self.do_back()
