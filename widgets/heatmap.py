"""Thousands of things at a glance, one glyph each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from msgspec import Struct
from textual.binding import Binding, BindingType
from textual.message import Message

from gputop.widgets.canvas import LineCanvas
from gputop.widgets.cells import BLANK, Cell, Line, Run, fit, wrap
from gputop.widgets.row_order import Key
from gputop.widgets.scroll_mark import scroll_mark

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from textual import events

GlyphOf: TypeAlias = Callable[[Key], Run]

_LABEL_GAP = 1
_WHEEL_LINES = 3
_CURSOR_ROLE = "caret"


class HeatRow(Struct, frozen=True):
    """A group of cells with a label; it takes as many lines as it needs.

    Attributes:
        label: What stands at its left.
        keys: The identities of its cells, in their order.
    """

    label: Cell
    keys: Sequence[Key]


class _Stretch(Struct, frozen=True):
    """The part of a row that stands on one line: keys ``start`` to ``end`` of row ``row``."""

    row: int
    start: int
    end: int


class Heatmap(LineCanvas, can_focus=True):
    """A map of one glyph a cell, grouped by row, with a cursor that is an identity.

    The callback ``glyph`` is asked for the cells of lines in sight that hold a changed key; it returns
    a character of one cell and a role. Height or shape of the glyph has to tell the state, the role
    repeats it.
    """

    DEFAULT_CSS = "Heatmap { height: 1fr; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "cursor_left", "Left", show=False),
        Binding("right", "cursor_right", "Right", show=False),
        Binding("up", "cursor_up", "Up", show=False),
        Binding("down", "cursor_down", "Down", show=False),
        Binding("pageup", "page_up", "Page up", show=False),
        Binding("pagedown", "page_down", "Page down", show=False),
        Binding("home", "top", "First", show=False),
        Binding("end", "bottom", "Last", show=False),
        Binding("enter", "activate", "Open", show=False),
    ]

    class Event(Message):
        """What this map tells its owner.

        Attributes:
            heatmap: The sender.
            key: The identity under the cursor; None in an empty map.
        """

        def __init__(self, heatmap: Heatmap, key: Key | None) -> None:
            """Remember the sender and the identity."""
            super().__init__()
            self.heatmap = heatmap
            self.key = key

        @property
        def control(self) -> Heatmap:
            """The map that sent it, for ``@on(..., selector)``."""
            return self.heatmap

    class CursorMoved(Event):
        """The cursor stands on another identity."""

        def can_replace(self, message: Message) -> bool:
            """Let the last of a burst stand for all."""
            return isinstance(message, Heatmap.CursorMoved) and message.heatmap is self.heatmap

    class Activated(Event):
        """The user opened a cell."""

    def __init__(
        self,
        glyph: GlyphOf,
        *,
        empty: str = "",
        ascii_only: bool = False,
        id: str | None = None,  # noqa: A002 - Textual's own name for it
        classes: str | None = None,
    ) -> None:
        """Make an empty map.

        Args:
            glyph: Called with a key in sight; returns its glyph and role.
            empty: What to say when there is no cell.
            ascii_only: Draw with ASCII characters only.
            id: The widget's id, for Textual.
            classes: The widget's CSS classes, for Textual.
        """
        super().__init__(ascii_only=ascii_only, id=id, classes=classes)
        self._glyph = glyph
        self._empty = empty
        self._rows: tuple[HeatRow, ...] = ()
        self._starts: list[int] = []
        self._places: dict[Key, int] | None = None
        self._total = 0
        self._cursor: Key | None = None
        self._cursor_at = -1
        self._top = 0
        self._stretches: list[_Stretch] = []
        self._stretched_for: tuple[int, int] | None = None
        self._glyphs: dict[Key, Run] = {}

    # -- what the owner gives ---------------------------------------------------------------------------

    def update(self, rows: Sequence[HeatRow] | None = None, dirty: AbstractSet[Key] | None = None) -> None:
        """Take new cells.

        Args:
            rows: All rows in their order, each key once; None keeps them.
            dirty: The keys whose glyph may differ; None for all.
        """
        if dirty is None:
            self._glyphs.clear()
        else:
            for key in [key for key in self._glyphs if key in dirty]:
                del self._glyphs[key]
        if rows is not None and tuple(rows) != self._rows:
            self._take_rows(tuple(rows))
        self.repaint()

    def _take_rows(self, rows: tuple[HeatRow, ...]) -> None:
        self._rows = rows
        self._starts = []
        self._total = 0
        for row in rows:
            self._starts.append(self._total)
            self._total += len(row.keys)
        self._places = None
        self._stretched_for = None
        place = self._place(self._cursor) if self._cursor_at >= 0 else None
        if place is None:
            # The neighbours of a vanished cell are not known; the same place is the next best.
            place = min(max(self._cursor_at, 0), self._total - 1)
        self._set_cursor(place)
        self._bring_into_sight()

    def move_cursor(self, key: Key) -> bool:
        """Put the cursor on an identity; False if there is no such cell."""
        place = self._place(key)
        if place is None:
            return False
        self._move_to(place)
        return True

    @property
    def cursor(self) -> Key | None:
        """The identity under the cursor; None in an empty map."""
        return self._cursor

    # -- places -----------------------------------------------------------------------------------------

    def _key_at(self, place: int) -> Key:
        row = bisect_right(self._starts, place) - 1
        return self._rows[row].keys[place - self._starts[row]]

    def _place(self, key: Key | None) -> int | None:
        if 0 <= self._cursor_at < self._total and self._key_at(self._cursor_at) == key:
            return self._cursor_at
        if self._places is None:
            keys = (key for row in self._rows for key in row.keys)
            self._places = {each: place for place, each in enumerate(keys)}
        return self._places.get(key)

    def _label_width(self, width: int) -> int:
        widest = max((row.label.width for row in self._rows), default=0)
        return min(widest, max(0, width // 3))

    def _layout(self) -> list[_Stretch]:
        size = self.size
        if self._stretched_for != (size.width, size.height):
            self._stretched_for = (size.width, size.height)
            columns = self._columns(size.width)
            self._stretches = [
                _Stretch(number, start, min(start + columns, len(row.keys)))
                for number, row in enumerate(self._rows)
                for start in range(0, max(1, len(row.keys)), columns)
            ]
            self._top = min(self._top, max(0, len(self._stretches) - max(1, size.height)))
        return self._stretches

    def _columns(self, width: int) -> int:
        """How many cells a line holds; one column is kept for the scroll bar."""
        return max(1, width - self._label_width(width) - _LABEL_GAP - 1)

    def _line_of(self, place: int) -> tuple[int, int]:
        """Return the line, among all, and the column of a place."""
        row = bisect_right(self._starts, place) - 1
        offset = place - self._starts[row]
        stretches = self._layout()
        first = bisect_right(stretches, (row, offset), key=lambda each: (each.row, each.start)) - 1
        return first, offset - stretches[first].start

    # -- drawing ----------------------------------------------------------------------------------------

    def line_at(self, y: int, width: int) -> Line:
        """Return a line of the map, or what an empty one says."""
        if not self._total:
            lines = wrap(Cell(self._empty, "dim"), max(1, width))
            return Line(fit(lines[y] if y < len(lines) else BLANK, width, "left", self.ellipsis))
        stretches = self._layout()
        number = self._top + y
        bar: tuple[Run, ...] = ()
        if len(stretches) > self.size.height:
            bar = (scroll_mark(y, self._top, self.size.height, len(stretches), ascii_only=self.ascii_only),)
        if number >= len(stretches):
            return Line((*fit(BLANK, width - len(bar)), *bar))
        stretch = stretches[number]
        label_width = self._label_width(width)
        row = self._rows[stretch.row]
        label = fit(row.label if stretch.start == 0 else BLANK, label_width, "left", self.ellipsis)
        runs = self._cells(row.keys[stretch.start : stretch.end], self._starts[stretch.row] + stretch.start)
        spare = width - label_width - _LABEL_GAP - (stretch.end - stretch.start) - len(bar)
        if spare > 0:
            runs.append((" " * spare, ""))
        line = (*label, (" " * _LABEL_GAP, ""), *runs, *bar)
        # A terminal of a few columns has no room for even one cell beside gap and bar.
        return Line(line if spare >= 0 else fit(Cell.of(*line), width, "left", self.ellipsis))

    def _cells(self, keys: Sequence[Key], first_place: int) -> list[Run]:
        runs: list[Run] = []
        texts: list[str] = []
        last = ""
        for place, key in enumerate(keys, first_place):
            run = self._glyphs.get(key)
            if run is None:
                # One cell whatever the callback says: a wider one would push the others off their places.
                (run,) = fit(Cell.of(self._glyph(key)), 1, "left", "?") or ((" ", ""),)
                self._glyphs[key] = run
            text, role = run
            if place == self._cursor_at:
                role = _CURSOR_ROLE
            if role != last and texts:
                runs.append(("".join(texts), last))
                texts = []
            texts.append(text)
            last = role
        if texts:
            runs.append(("".join(texts), last))
        return runs

    # -- the cursor -------------------------------------------------------------------------------------

    def _set_cursor(self, place: int) -> None:
        key = self._key_at(place) if 0 <= place < self._total else None
        self._cursor_at = place if key is not None else -1
        if key != self._cursor:
            self._cursor = key
            self.post_message(self.CursorMoved(self, key))

    def _move_to(self, place: int) -> None:
        was = self._cursor_at
        self._set_cursor(min(max(place, 0), self._total - 1))
        if self._bring_into_sight():
            self.repaint()
            return
        lines = {self._line_of(each)[0] - self._top for each in (was, self._cursor_at) if each >= 0}
        self.repaint(sorted(line for line in lines if 0 <= line < self.size.height))

    def _bring_into_sight(self) -> bool:
        if self._cursor_at < 0:
            return False
        line, _ = self._line_of(self._cursor_at)
        top = min(self._top, line)
        top = max(top, line - max(1, self.size.height) + 1)
        changed = top != self._top
        self._top = top
        return changed

    def _step_lines(self, lines: int) -> None:
        if self._cursor_at < 0:
            return
        stretches = self._layout()
        line, column = self._line_of(self._cursor_at)
        step = 1 if lines > 0 else -1
        target = min(max(line + lines, 0), len(stretches) - 1)
        # A row without cells has a line with a label, on which the cursor cannot stand.
        while 0 <= target < len(stretches) and stretches[target].start == stretches[target].end:
            target += step
        if not 0 <= target < len(stretches):
            return
        stretch = stretches[target]
        column = min(column, stretch.end - stretch.start - 1)
        self._move_to(self._starts[stretch.row] + stretch.start + column)

    # -- actions ----------------------------------------------------------------------------------------

    def action_cursor_left(self) -> None:
        """Move the cursor to the cell before."""
        if self._cursor_at > 0:
            self._move_to(self._cursor_at - 1)

    def action_cursor_right(self) -> None:
        """Move the cursor to the cell after."""
        if 0 <= self._cursor_at < self._total - 1:
            self._move_to(self._cursor_at + 1)

    def action_cursor_up(self) -> None:
        """Move the cursor a line up."""
        self._step_lines(-1)

    def action_cursor_down(self) -> None:
        """Move the cursor a line down."""
        self._step_lines(1)

    def action_page_up(self) -> None:
        """Move the cursor a screen up."""
        self._step_lines(-max(1, self.size.height - 1))

    def action_page_down(self) -> None:
        """Move the cursor a screen down."""
        self._step_lines(max(1, self.size.height - 1))

    def action_top(self) -> None:
        """Move the cursor to the first cell."""
        if self._total:
            self._move_to(0)

    def action_bottom(self) -> None:
        """Move the cursor to the last cell."""
        if self._total:
            self._move_to(self._total - 1)

    def action_activate(self) -> None:
        """Open the cell under the cursor."""
        if self._cursor_at >= 0:
            self.post_message(self.Activated(self, self._cursor))

    # -- input ------------------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """Move to the cell that was clicked; a second click opens it."""
        offset = event.get_content_offset(self)
        stretches = self._layout()
        if offset is None or not self._total or self._top + offset.y >= len(stretches):
            return
        stretch = stretches[self._top + offset.y]
        column = offset.x - self._label_width(self.size.width) - _LABEL_GAP
        if 0 <= column < stretch.end - stretch.start:
            self._move_to(self._starts[stretch.row] + stretch.start + column)
            if event.chain > 1:
                self.action_activate()

    def scroll_lines(self, lines: int) -> None:
        """Move the map under the screen's edge, leaving the cursor where it is."""
        last = max(0, len(self._layout()) - max(1, self.size.height))
        top = min(max(self._top + lines, 0), last)
        if top != self._top:
            self._top = top
            self.repaint()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down by the wheel."""
        event.stop()
        self.scroll_lines(_WHEEL_LINES)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up by the wheel."""
        event.stop()
        self.scroll_lines(-_WHEEL_LINES)

    def on_resize(self) -> None:
        """Keep the cursor in sight."""
        self._bring_into_sight()
        self.repaint()
