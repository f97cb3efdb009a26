"""A table of any number of rows that draws and computes only those in sight.

Textual's DataTable writes its whole viewport for one changed cell and lays out every row it holds;
with a thousand rows at 4 Hz it takes more than a core. Here the owner gives an order of identities, is
asked for the cells of the rows in sight, and only cells that differ are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from textual.binding import Binding, BindingType

from gputop.widgets.canvas import LineCanvas
from gputop.widgets.cells import BLANK, Cell, Line, Run, fit, wrap
from gputop.widgets.columns import GAP, Column, Placed, lay_out
from gputop.widgets.row_order import Group, Key, RowOrder
from gputop.widgets.scroll_mark import scroll_mark
from gputop.widgets.table_lines import RowCells, header_runs, row_runs
from gputop.widgets.table_messages import Activated, CursorMoved, GroupToggled, MarksChanged, SortRequested

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from textual import events

CellsOf: TypeAlias = Callable[[Key], RowCells]

_GUTTER = 1
_LINES_AT_ONCE = 8
_WHEEL_ROWS = 3


class LineTable(LineCanvas, can_focus=True):
    """A virtual table.

    Rows are identities (any hashable). :meth:`update` gives their order and says which changed; the
    callback ``cells`` is then asked for those in sight. It returns one cell for each column, in the
    order in which the columns were given: ``None`` lets the cell to its left spread over that column.
    A :class:`gputop.widgets.row_order.Group` in the order is a heading between rows: its cells are
    asked in the same way; a single cell spreads over the whole line.

    The cursor and the marks are identities too: when the order changes they stay with their rows.
    """

    DEFAULT_CSS = "LineTable { height: 1fr; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "cursor_up", "Up", show=False),
        Binding("down", "cursor_down", "Down", show=False),
        Binding("pageup", "page_up", "Page up", show=False),
        Binding("pagedown", "page_down", "Page down", show=False),
        Binding("home", "top", "First row", show=False),
        Binding("end", "bottom", "Last row", show=False),
        Binding("enter", "activate", "Open", show=False),
        Binding("space", "toggle_mark", "Mark", show=False),
    ]

    CursorMoved = CursorMoved
    Activated = Activated
    GroupToggled = GroupToggled
    SortRequested = SortRequested
    MarksChanged = MarksChanged

    def __init__(
        self,
        columns: Sequence[Column],
        cells: CellsOf,
        *,
        empty: str | Cell = "",
        header: bool = True,
        ascii_only: bool = False,
        id: str | None = None,  # noqa: A002 - Textual's own name for it
        classes: str | None = None,
    ) -> None:
        """Make a table.

        Args:
            columns: All columns, from left to right.
            cells: Called with a key in sight; returns its cells.
            empty: What to say when there is no row.
            header: Whether the first line holds the headings.
            ascii_only: Draw with ASCII characters only.
            id: The widget's id, for Textual.
            classes: The widget's CSS classes, for Textual.
        """
        super().__init__(ascii_only=ascii_only, id=id, classes=classes)
        self._columns = tuple(columns)
        self._cells = cells
        self._empty = Cell(empty, "dim") if isinstance(empty, str) else empty
        self._header_lines = 1 if header else 0
        self._order = RowOrder()
        self._offset = 0
        self._cursor: Key | None = None
        self._cursor_at = -1
        self._marks: set[Key] = set()
        self._sort: tuple[str, bool] | None = None
        self._rows: dict[Key, tuple[Run, ...]] = {}
        self._placed: tuple[Placed, ...] = ()
        self._placed_for: tuple[int, bool] | None = None

    # -- what the owner gives ---------------------------------------------------------------------------

    def update(self, order: Sequence[Key] | None = None, dirty: AbstractSet[Key] | None = None) -> None:
        """Take new rows; see `updating`."""
        for _ in self.updating(order, dirty):
            pass

    def updating(self, order: Sequence[Key] | None = None, dirty: AbstractSet[Key] | None = None) -> Iterator[None]:
        """Take new rows, a few lines at a time; between them other work may come first.

        Args:
            order: All keys in the order in which to show them, each once; not to be changed afterwards.
                None keeps the order.
            dirty: The keys whose cells may differ from when they were last asked; None for all.
        """
        if dirty is None:
            self._rows.clear()
        elif dirty:
            for key in [key for key in self._rows if key in dirty]:
                del self._rows[key]
        rows_before = len(self._order)
        if order is not None and order is not self._order.keys and order != self._order.keys:
            self._take_order(order)
        rows = len(self._order)
        if rows or rows_before:
            # Lines below the last row are blank before and after; each line looked at costs.
            used = self.size.height if not rows else self._header_lines + max(rows, rows_before)
            for start in range(0, min(used, self.size.height), _LINES_AT_ONCE):
                self.repaint(range(start, min(start + _LINES_AT_ONCE, used, self.size.height)))
                yield

    def _take_order(self, order: Sequence[Key]) -> None:
        before, after = self._order, RowOrder(order)
        was_in_sight = self._offset <= self._cursor_at < self._offset + max(1, self.page_rows)
        self._order = after
        place: int | None
        if self._cursor_at < 0:
            place = after.nearest_selectable(0)
        else:
            place = after.position(self._cursor, self._cursor_at)
            if place is None or not after.selectable(place):
                place = before.neighbour(self._cursor, self._cursor_at, after)
        self._set_cursor(place)
        self._clamp_offset()
        if was_in_sight:
            self._bring_into_sight()
        self._forget_distant_rows()

    def set_columns(self, columns: Sequence[Column]) -> None:
        """Take other columns; the cells of all rows are asked anew."""
        self._columns = tuple(columns)
        self._placed_for = None
        self._rows.clear()
        self.repaint()

    def set_sort(self, column: str | None, *, descending: bool = False) -> None:
        """Show by which column the rows are sorted."""
        self._sort = None if column is None else (column, descending)
        if self._header_lines:
            self.repaint((0,))

    def set_empty(self, empty: str | Cell) -> None:
        """Take what to say when there is no row."""
        cell = Cell(empty, "dim") if isinstance(empty, str) else empty
        if cell == self._empty:
            return
        self._empty = cell
        if not len(self._order):
            self.repaint()

    def set_marks(self, keys: Iterable[Key]) -> None:
        """Take other marks; no message is sent."""
        self._marks = set(keys)
        self.repaint()

    def move_cursor(self, key: Key) -> bool:
        """Put the cursor on an identity; False if there is no such row to stand on."""
        place = self._order.position(key, self._cursor_at)
        if place is None or not self._order.selectable(place):
            return False
        self._move_to(place)
        return True

    # -- what the owner may ask -------------------------------------------------------------------------

    @property
    def cursor(self) -> Key | None:
        """The identity under the cursor; None in an empty table."""
        return self._cursor

    @property
    def marks(self) -> frozenset[Key]:
        """The marked identities that are rows of the present order.

        A mark on a row that a filter took away is kept and comes back with it, but nothing may act on
        what is not shown.
        """
        return frozenset(key for key in self._marks if self._order.position(key) is not None)

    @property
    def order(self) -> Sequence[Key]:
        """All keys in their present order."""
        return self._order.keys

    @property
    def keys_in_sight(self) -> Sequence[Key]:
        """The keys of the rows on the screen."""
        return self._order.keys[self._offset : self._offset + self.page_rows]

    @property
    def columns_in_sight(self) -> tuple[str, ...]:
        """The keys of the columns for which there is room; cells of others may be ``BLANK``."""
        return tuple(placed.column.key for placed in self._layout(self.size.width))

    @property
    def sort(self) -> tuple[str, bool] | None:
        """The column that sorts and whether from high to low."""
        return self._sort

    @property
    def page_rows(self) -> int:
        """How many rows fit on the screen."""
        return max(0, self.size.height - self._header_lines)

    # -- drawing ----------------------------------------------------------------------------------------

    def line_at(self, y: int, width: int) -> Line:
        """Return the heading, a row, or what an empty table says."""
        placed = self._layout(width)
        if y < self._header_lines:
            headings = header_runs(
                placed, width - _GUTTER, self._sort, ascii_only=self.ascii_only, ellipsis=self.ellipsis
            )
            return Line(((" " * _GUTTER, ""), *headings))
        row = y - self._header_lines
        if not len(self._order):
            return self._empty_line(row, width)
        position = self._offset + row
        bar = self._scroll_bar(row)
        if position >= len(self._order):
            return Line(((" " * (width - len(bar)), ""), *bar))
        key = self._order.keys[position]
        runs = self._rows.get(key)
        if runs is None:
            runs = self._rows[key] = row_runs(
                self._cells(key),
                len(self._columns),
                placed,
                width - _GUTTER - len(bar),
                ellipsis=self.ellipsis,
            )
        at_cursor = position == self._cursor_at
        marked = key in self._marks
        base = ("cursor" if self.has_focus else "cursor-blur") if at_cursor else ""
        return Line(((self._gutter(at_cursor=at_cursor, marked=marked), "mark"), *runs, *bar), base)

    def _gutter(self, *, at_cursor: bool, marked: bool) -> str:
        if marked:
            glyphs = "#*" if self.ascii_only else "◆✓"
            return glyphs[0] if at_cursor else glyphs[1]
        return (">" if self.ascii_only else "▸") if at_cursor else " "

    def _layout(self, width: int) -> tuple[Placed, ...]:
        wanted = (width, self._overflows)
        if wanted != self._placed_for:
            self._placed_for = wanted
            self._placed = lay_out(self._columns, width - _GUTTER - int(self._overflows))
            self._rows.clear()
        return self._placed

    @property
    def _overflows(self) -> bool:
        return len(self._order) > self.page_rows > 0

    def _scroll_bar(self, row: int) -> tuple[Run, ...]:
        if not self._overflows:
            return ()
        return (scroll_mark(row, self._offset, self.page_rows, len(self._order), ascii_only=self.ascii_only),)

    def _empty_line(self, row: int, width: int) -> Line:
        lines = wrap(self._empty, max(1, width - 2 * _GUTTER))
        cell = lines[row] if row < len(lines) else BLANK
        return Line((*fit(BLANK, min(_GUTTER, width)), *fit(cell, width - _GUTTER, "left", self.ellipsis)))

    def _forget_distant_rows(self) -> None:
        # Rows are kept by identity so that a reordering recomputes none; those long out of sight go.
        if len(self._rows) > 4 * max(1, self.page_rows):
            near = set(self.keys_in_sight)
            self._rows = {key: runs for key, runs in self._rows.items() if key in near}

    # -- the cursor -------------------------------------------------------------------------------------

    def _set_cursor(self, place: int | None) -> None:
        key = None if place is None else self._order.keys[place]
        self._cursor_at = -1 if place is None else place
        if key != self._cursor:
            self._cursor = key
            self.post_message(self.CursorMoved(self, key))

    def _move_to(self, place: int) -> None:
        was_at = self._cursor_at
        self._set_cursor(place)
        if self._bring_into_sight():
            self.repaint()
            self._forget_distant_rows()
        else:
            self._repaint_rows(was_at, place)

    def _repaint_rows(self, *positions: int) -> None:
        rows = {position - self._offset for position in positions}
        self.repaint(row + self._header_lines for row in sorted(rows) if 0 <= row < self.page_rows)

    def _bring_into_sight(self) -> bool:
        offset = self._offset
        page = self.page_rows
        if page <= 0:
            # Not laid out yet, or no room for a row: what is in sight is settled by the next resize.
            return False
        if 0 <= self._cursor_at <= offset:
            offset = self._cursor_at
            # A heading that cannot hold the cursor would otherwise never be seen again.
            while offset > 0 and not self._order.selectable(offset - 1) and self._cursor_at - offset < page - 1:
                offset -= 1
        elif self._cursor_at >= offset + page:
            offset = self._cursor_at - page + 1
        changed = offset != self._offset
        self._offset = offset
        return changed

    def _clamp_offset(self) -> None:
        self._offset = min(max(self._offset, 0), max(0, len(self._order) - max(1, self.page_rows)))

    def _step(self, rows: int) -> None:
        if self._cursor_at < 0:
            return
        place = self._order.nearest_selectable(self._cursor_at + rows, 1 if rows > 0 else -1)
        if place is not None:
            self._move_to(place)

    def scroll_rows(self, rows: int) -> None:
        """Move the rows under the screen's edge, leaving the cursor on its row."""
        was = self._offset
        self._offset += rows
        self._clamp_offset()
        if self._offset != was:
            self.repaint()
            self._forget_distant_rows()

    # -- actions ----------------------------------------------------------------------------------------

    def show_cursor(self) -> None:
        """Bring the row under the cursor into sight."""
        self._bring_into_sight()
        self.repaint()

    def action_cursor_up(self) -> None:
        """Move the cursor up a row."""
        self._step(-1)

    def action_cursor_down(self) -> None:
        """Move the cursor down a row."""
        self._step(1)

    def action_page_up(self) -> None:
        """Move the cursor up a screen."""
        self._step(-max(1, self.page_rows - 1))

    def action_page_down(self) -> None:
        """Move the cursor down a screen."""
        self._step(max(1, self.page_rows - 1))

    def action_half_page_up(self) -> None:
        """Move the cursor up half a screen."""
        self._step(-max(1, self.page_rows // 2))

    def action_half_page_down(self) -> None:
        """Move the cursor down half a screen."""
        self._step(max(1, self.page_rows // 2))

    def action_top(self) -> None:
        """Move the cursor to the first row."""
        self._step(-len(self._order))

    def action_bottom(self) -> None:
        """Move the cursor to the last row."""
        self._step(len(self._order))

    def action_activate(self) -> None:
        """Open the row under the cursor, or open or close the group."""
        if isinstance(self._cursor, Group):
            self.post_message(self.GroupToggled(self, self._cursor))
        elif self._cursor_at >= 0:
            self.post_message(self.Activated(self, self._cursor))

    def action_toggle_mark(self) -> None:
        """Mark or unmark the row under the cursor and go on to the next."""
        if self._cursor_at < 0 or isinstance(self._cursor, Group):
            return
        self._marks ^= {self._cursor}
        self._repaint_rows(self._cursor_at)
        self.post_message(self.MarksChanged(self))
        self._step(1)

    def action_clear_marks(self) -> None:
        """Unmark every row, also those that a filter took away."""
        if self._marks:
            self._marks.clear()
            self.repaint()
            self.post_message(self.MarksChanged(self))

    def action_sort_next(self) -> None:
        """Ask for sorting by the next column to the right."""
        self._ask_sort(1)

    def action_sort_previous(self) -> None:
        """Ask for sorting by the next column to the left."""
        self._ask_sort(-1)

    def action_sort_invert(self) -> None:
        """Ask for the other direction of sorting."""
        if self._sort is not None:
            column, descending = self._sort
            self.post_message(self.SortRequested(self, column, descending=not descending))

    def _ask_sort(self, step: int) -> None:
        columns = [place.column for place in self._layout(self.size.width) if place.column.sortable]
        if not columns:
            return
        keys = [column.key for column in columns]
        now = self._sort[0] if self._sort else None
        number = (keys.index(now) + step) % len(keys) if now in keys else (0 if step > 0 else len(keys) - 1)
        self.post_message(self.SortRequested(self, keys[number], descending=columns[number].descending))

    # -- input ------------------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """Sort by the heading that was clicked, or move to the row; a second click opens it."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if offset.y < self._header_lines:
            self._click_heading(offset.x - _GUTTER)
            return
        row = offset.y - self._header_lines
        if self._overflows and offset.x == self.size.width - 1:
            last = max(1, self.page_rows - 1)
            self.scroll_rows(row * (len(self._order) - self.page_rows) // last - self._offset)
            return
        place = self._offset + row
        if self._order.selectable(place):
            self._move_to(place)
            if event.chain > 1:
                self.action_activate()

    def _click_heading(self, x: int) -> None:
        for place in self._layout(self.size.width):
            if place.x <= x < place.x + place.width + GAP and place.column.sortable:
                column = place.column
                same = self._sort is not None and self._sort[0] == column.key
                descending = not self._sort[1] if same and self._sort else column.descending
                self.post_message(self.SortRequested(self, column.key, descending=descending))
                return

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down by the wheel."""
        event.stop()
        self.scroll_rows(_WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up by the wheel."""
        event.stop()
        self.scroll_rows(-_WHEEL_ROWS)

    def on_focus(self) -> None:
        """Show that keys act here."""
        self._repaint_rows(self._cursor_at)

    def on_blur(self) -> None:
        """Show that keys act elsewhere."""
        self._repaint_rows(self._cursor_at)

    def on_resize(self) -> None:
        """Keep the cursor in sight."""
        self._clamp_offset()
        self._bring_into_sight()
        self.repaint()
