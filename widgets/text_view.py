"""Plain text with roles that scrolls, of which only changed cells are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from gputop.widgets.canvas import LineCanvas
from gputop.widgets.cells import BLANK, Cell, Line, Run, fit, wrap
from gputop.widgets.scroll_mark import scroll_mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

_MARGIN = 1
_WHEEL_LINES = 3


class TextView(LineCanvas, can_focus=True):
    """Lines of text, such as the details of a row or the help."""

    DEFAULT_CSS = "TextView { height: 1fr; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "cursor_up", "Up", show=False),
        Binding("down", "cursor_down", "Down", show=False),
        Binding("pageup", "page_up", "Page up", show=False),
        Binding("pagedown", "page_down", "Page down", show=False),
        Binding("home", "top", "Start", show=False),
        Binding("end", "bottom", "End", show=False),
    ]

    def __init__(
        self,
        lines: Sequence[Cell] = (),
        *,
        wrapped: bool = True,
        indent: int = 2,
        ascii_only: bool = False,
        id: str | None = None,  # noqa: A002 - Textual's own name for it
        classes: str | None = None,
    ) -> None:
        """Make a view.

        Args:
            lines: What it shows.
            wrapped: Whether a line too long goes on below; otherwise it is cut.
            indent: Spaces before what goes on below.
            ascii_only: Draw with ASCII characters only.
            id: The widget's id, for Textual.
            classes: The widget's CSS classes, for Textual.
        """
        super().__init__(ascii_only=ascii_only, id=id, classes=classes)
        self._lines = tuple(lines)
        self._wrapped = wrapped
        self._indent = indent
        self._top = 0
        self._made: list[Cell] = []
        self._made_for = -1

    def set_lines(self, lines: Sequence[Cell]) -> None:
        """Show other lines; the place stays as far as there is text."""
        lines = tuple(lines)
        if lines != self._lines:
            self._lines = lines
            self._made_for = -1
            self._go_to(self._top)
            self.repaint()

    @property
    def plain(self) -> str:
        """The whole text, for copying."""
        return "\n".join(line.plain for line in self._lines)

    def _laid_out(self) -> list[Cell]:
        width = self.size.width
        if width != self._made_for:
            self._made_for = width
            room = max(1, width - 2 * _MARGIN)
            self._made = (
                [part for line in self._lines for part in wrap(line, room, self._indent)]
                if self._wrapped
                else list(self._lines)
            )
        return self._made

    def line_at(self, y: int, width: int) -> Line:
        """Return a line of the text."""
        lines = self._laid_out()
        number = self._top + y
        cell = lines[number] if number < len(lines) else BLANK
        margin = _MARGIN if width > 2 * _MARGIN else 0
        bar: tuple[Run, ...] = ((" " * margin, ""),) if margin else ()
        if margin and len(lines) > self.size.height:
            bar = (scroll_mark(y, self._top, self.size.height, len(lines), ascii_only=self.ascii_only),)
        body = fit(cell, width - 2 * margin, "left", self.ellipsis)
        return Line((*(((" " * margin, ""),) if margin else ()), *body, *bar))

    def _go_to(self, top: int) -> bool:
        last = max(0, len(self._laid_out()) - max(1, self.size.height))
        top = min(max(top, 0), last)
        changed = top != self._top
        self._top = top
        return changed

    def scroll_lines(self, lines: int) -> None:
        """Scroll down by so many lines, up if negative."""
        if self._go_to(self._top + lines):
            self.repaint()

    def action_cursor_up(self) -> None:
        """Scroll a line up."""
        self.scroll_lines(-1)

    def action_cursor_down(self) -> None:
        """Scroll a line down."""
        self.scroll_lines(1)

    def action_page_up(self) -> None:
        """Scroll a screen up."""
        self.scroll_lines(-max(1, self.size.height - 1))

    def action_page_down(self) -> None:
        """Scroll a screen down."""
        self.scroll_lines(max(1, self.size.height - 1))

    def action_half_page_up(self) -> None:
        """Scroll half a screen up."""
        self.scroll_lines(-max(1, self.size.height // 2))

    def action_half_page_down(self) -> None:
        """Scroll half a screen down."""
        self.scroll_lines(max(1, self.size.height // 2))

    def action_top(self) -> None:
        """Scroll to the start."""
        self.scroll_lines(-self._top)

    def action_bottom(self) -> None:
        """Scroll to the end."""
        self.scroll_lines(len(self._laid_out()))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down by the wheel."""
        event.stop()
        self.scroll_lines(_WHEEL_LINES)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up by the wheel."""
        event.stop()
        self.scroll_lines(-_WHEEL_LINES)

    def on_resize(self) -> None:
        """Stay within the text."""
        self._go_to(self._top)
        self.repaint()
