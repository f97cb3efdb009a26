"""The base of every widget here: lines of runs, of which only changed cells are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from gputop.widgets import left_crop
from gputop.widgets.cells import ASCII_ELLIPSIS, ELLIPSIS, Line
from gputop.widgets.line_diff import changed_ranges
from gputop.widgets.styles import RoleStyles

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual import events
    from textual.theme import Theme

_NO_SIZE = Size(-1, -1)


class LineCanvas(Widget):
    """A widget that draws itself line by line and repaints only what changed.

    A subclass says in :meth:`line_at` what stands on a line and calls :meth:`repaint` when that may be
    different. Lines are compared with what was there before, so calling it too often costs time but
    writes nothing.

    Textual asks for a refresh of the whole widget at many an occasion at which nothing looks different,
    such as each change of focus; once the widget has been drawn, such a refresh is a repaint too.
    """

    ALLOW_SELECT = False

    def __init__(
        self,
        *,
        ascii_only: bool = False,
        name: str | None = None,
        id: str | None = None,  # noqa: A002 - Textual's own name for it
        classes: str | None = None,
        disabled: bool = False,
    ) -> None:
        """Make the widget.

        Args:
            ascii_only: Draw with ASCII characters only.
            name: The widget's name, for Textual.
            id: The widget's id, for Textual.
            classes: The widget's CSS classes, for Textual.
            disabled: Whether it takes no input.
        """
        super().__init__(name=name, id=id, classes=classes, disabled=disabled)
        self.ascii_only = ascii_only
        self._drawn: dict[int, Line] = {}
        self._drawn_size = _NO_SIZE
        self._role_styles: RoleStyles | None = None
        self._ground_seen = Style.null()
        self._in_sight = True

    # -- for subclasses -------------------------------------------------------------------------------

    def line_at(self, y: int, width: int) -> Line:
        """Return what stands on line ``y`` of the widget; its runs fill exactly ``width`` cells."""
        raise NotImplementedError

    @property
    def ellipsis(self) -> str:
        """What stands in place of text that was cut."""
        return ASCII_ELLIPSIS if self.ascii_only else ELLIPSIS

    def repaint(self, lines: Iterable[int] | None = None) -> None:
        """Write what changed on these lines (all by default).

        Nothing is worked out while the widget cannot be seen; it is drawn anew when it can.
        """
        size = self.size
        if size != self._drawn_size or not self._in_sight:
            # Never drawn at this size: Textual is about to ask for every line.
            self._drawn.clear()
            return
        grounded = self.role_styles.grounded
        # Textual by itself writes all that is left of a range again, and once more for every further one.
        whole_spans = not left_crop.installed()
        regions: list[Region] = []
        for y in range(size.height) if lines is None else lines:
            old = self._drawn.get(y)
            if old is None:
                continue
            new = self.line_at(y, size.width)
            if new is old:
                continue
            ranges = changed_ranges(old, new, grounded)
            if ranges and whole_spans:
                ranges = [(ranges[0][0], ranges[-1][1])]
            # The new line is kept even if nothing can be seen of the change: the next comparison is
            # then with the same object more often.
            self._drawn[y] = new
            regions.extend(Region(start, y, end - start, 1) for start, end in ranges)
        if regions:
            self.refresh(*regions)

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Refresh as Textual does, but compare first where the whole widget is asked for."""
        drawn = self._drawn and self._in_sight and self.size == self._drawn_size
        if regions or layout or recompose or not repaint or not drawn:
            return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
        self.repaint()
        return self

    # -- styles ---------------------------------------------------------------------------------------

    @property
    def role_styles(self) -> RoleStyles:
        """The styles of roles under the present theme."""
        if self._role_styles is None:
            app = self.app
            self._ground_seen = self.rich_style
            self._role_styles = RoleStyles(
                app.theme_variables,
                Style.null() if app.no_color else self._ground_seen,
                colours=app.console.color_system,
                no_color=app.no_color,
            )
        return self._role_styles

    def _forget_styles(self) -> None:
        self._role_styles = None
        self._drawn.clear()

    def notify_style_update(self) -> None:
        """Take note, from Textual, that colours of the widget may have changed."""
        super().notify_style_update()
        if self._role_styles is not None and self.rich_style != self._ground_seen:
            self._forget_styles()
            self.refresh()

    # -- Textual --------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """Return a line for Textual to draw."""
        size = self.size
        if size != self._drawn_size:
            self._drawn.clear()
            self._drawn_size = size
        line = self._drawn.get(y)
        if line is None:
            line = self._drawn[y] = self.line_at(y, size.width)
        return self._strip(line, size.width)

    def _strip(self, line: Line, width: int) -> Strip:
        style_of = self.role_styles.style
        base = line.base
        segments: list[Segment] = []
        texts: list[str] = []
        last: Style | None = None
        for text, role in line.runs:
            style = style_of(role, base)
            if style is not last and texts and last is not None:
                segments.append(Segment("".join(texts), last))
                texts = []
            texts.append(text)
            last = style
        if texts and last is not None:
            segments.append(Segment("".join(texts), last))
        return Strip(segments, width)

    def on_mount(self) -> None:
        """Follow changes of the theme."""
        self.app.theme_changed_signal.subscribe(self, self._theme_changed)

    def _theme_changed(self, _theme: Theme) -> None:
        self._forget_styles()
        self.refresh()

    def on_show(self, _event: events.Show) -> None:
        """Draw anew what changed out of sight."""
        if not self._in_sight:
            self._in_sight = True
            self._drawn.clear()
            self.refresh()

    def on_hide(self, _event: events.Hide) -> None:
        """Stop working out lines that nobody sees."""
        self._in_sight = False
