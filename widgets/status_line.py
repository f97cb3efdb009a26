"""Lines of a header or footer: items side by side, the ones that do not fit left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gputop.widgets.canvas import LineCanvas
from gputop.widgets.cells import ELLIPSIS, Cell, Line, Run, fit

if TYPE_CHECKING:
    from collections.abc import Sequence

_MARGIN: Final = 1
_GAP: Final = 2


def status_runs(
    left: Sequence[Cell], right: Sequence[Cell], width: int, *, gap: int = _GAP, ellipsis: str = ELLIPSIS
) -> tuple[Run, ...]:
    """Set items from the left and from the right.

    Items come in by importance: those at the left in their order, then those at the right from the
    rightmost on; one that does not fit whole is left out, so that no half of a word misleads. Only the
    first of all is cut instead.

    Args:
        left: Items from the left edge on, the most important first.
        right: Items that end at the right edge, the most important last.
        width: Cells to fill.
        gap: Cells between two items.
        ellipsis: What stands in place of what was cut.
    """
    margin = _MARGIN if width > 2 * _MARGIN else 0
    spare = width - 2 * margin
    at_left: list[Cell] = []
    at_right: list[Cell] = []
    for items, chosen in ((left, at_left), (tuple(reversed(right)), at_right)):
        for item in items:
            if not item.plain:
                continue
            first = not at_left and not at_right
            need = item.width + (0 if first else gap)
            if need <= spare or first:
                chosen.append(item)
                spare -= need
    runs: list[Run] = [(" " * margin, "")] if margin else []
    if spare < 0:
        (only,) = (*at_left, *at_right)
        runs.extend(fit(only, width - 2 * margin, "left", ellipsis))
    else:
        between: Run = (" " * gap, "")
        for number, item in enumerate(at_left):
            runs.extend((between, *item.runs) if number else item.runs)
        blank = spare + (gap if at_left and at_right else 0)
        runs.append((" " * blank, ""))
        for number, item in enumerate(reversed(at_right)):
            runs.extend((between, *item.runs) if number else item.runs)
    runs.append((" " * margin, ""))
    # Once more through the one function that keeps a line at its width and free of control characters.
    return fit(Cell.of(*runs), width, "left", ellipsis)


class StatusLines(LineCanvas):
    """A few lines of items, such as the header, or one, such as the footer."""

    DEFAULT_CSS = "StatusLines { height: auto; }"

    def __init__(
        self,
        lines: int = 1,
        *,
        ascii_only: bool = False,
        id: str | None = None,  # noqa: A002 - Textual's own name for it
        classes: str | None = None,
    ) -> None:
        """Make blank lines.

        Args:
            lines: How many; the widget is that high.
            ascii_only: Draw with ASCII characters only.
            id: The widget's id, for Textual.
            classes: The widget's CSS classes, for Textual.
        """
        super().__init__(ascii_only=ascii_only, id=id, classes=classes)
        self._items: list[tuple[Sequence[Cell], Sequence[Cell]]] = [((), ())] * lines
        self.styles.height = lines

    def set_line(self, number: int, left: Sequence[Cell], right: Sequence[Cell] = ()) -> None:
        """Take other items for a line; see :func:`status_runs`.

        Raises:
            IndexError: There is no such line.
        """
        self._items[number] = (left, right)
        self.repaint((number,))

    def line_at(self, y: int, width: int) -> Line:
        """Return a line."""
        left, right = self._items[y] if y < len(self._items) else ((), ())
        return Line(status_runs(left, right, width, ellipsis=self.ellipsis))
