"""Line charts of text: braille dots, or one character a cell in ASCII.

A gap in the data is a gap in the line: nothing is drawn between the values on both its sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from rich.cells import cell_len

from gputop.widgets.canvas import LineCanvas
from gputop.widgets.cells import ASCII_ELLIPSIS, ELLIPSIS, Cell, Line, Run, fill, fit
from gputop.widgets.levels import share

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BRAILLE: Final = 0x2800
# Dots of a braille cell, by row from the top, left and right (Unicode 16.0, chapter 21.1).
_DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_DOT_ROWS: Final = 4
_DOT_COLUMNS: Final = 2
_ASCII_MARKS: Final = "*+ox%@"

LEAST_WIDTH: Final = 8
LEAST_HEIGHT: Final = 3
"""Below these there is no room for axes beside a line."""


class Series(Struct, frozen=True):
    """One line of a chart.

    Attributes:
        name: Its name; the first letter marks the line's right end where there are several.
        values: Values at even steps of time, the newest last; None or NaN where nothing was measured.
        role: Its role.
    """

    name: str
    values: Sequence[float | None]
    role: str = "chart-1"


class Scale(Struct, frozen=True):
    """What the axes of a chart say.

    Attributes:
        low: The value at the bottom.
        high: The value at the top.
        label: Turns a value into the text beside the axis.
        left: What stands under the left end, such as "-15m".
        right: What stands under the right end.
    """

    low: float
    high: float
    label: Callable[[float], str] = "{:g}".format
    left: str = ""
    right: str = "now"


def chart(series: Sequence[Series], scale: Scale, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:
    """Draw lines over time.

    Args:
        series: What to draw, the most important last: where lines cross, it is on top.
        scale: The axes. A value outside them is left out, like one that is missing.
        width: Cells of each line; with fewer than LEAST_WIDTH there is nothing but blanks.
        height: Lines; likewise with LEAST_HEIGHT.
        ascii_only: Use ASCII characters only; each series then has a mark of its own.

    Returns:
        So many lines of so many cells.
    """
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return [Line(fit(Cell(""), width)) for _ in range(height)]
    ellipsis = ASCII_ELLIPSIS if ascii_only else ELLIPSIS
    rows = height - 1
    labels = _labels(scale, rows)
    label_width = min(max(cell_len(text) for text in labels.values()), width // 2 - 2)
    tag_width = 1 if len(series) > 1 else 0
    columns = width - label_width - 1 - tag_width
    plot = _Plot(columns, rows, ascii_only=ascii_only)
    tags: dict[int, Run] = {}
    for number, each in enumerate(series):
        end = plot.draw(each, scale, number)
        if end is not None:
            tags[end] = (each.name[:1] or " ", each.role)
    edge, tick = ("|", "+") if ascii_only else ("│", "┤")
    lines: list[Line] = []
    for row in range(rows):
        label = fit(Cell(labels.get(row, ""), "axis"), label_width, "right", ellipsis)
        axis = (tick if row in labels else edge, "axis")
        tag = (fit(Cell.of(tags.get(row, (" ", ""))), 1),) if tag_width else ()
        lines.append(Line((*label, axis, *plot.runs(row), *(run for runs in tag for run in runs))))
    lines.append(_time_axis(scale, label_width, columns, tag_width, ascii_only=ascii_only))
    return lines


def _labels(scale: Scale, rows: int) -> dict[int, str]:
    """Return the labels of rows: the ends, and the middle where there is room and a row for it."""
    labels = {0: scale.label(scale.high), rows - 1: scale.label(scale.low)}
    if rows % 2 and rows >= 5:
        labels[rows // 2] = scale.label((scale.low + scale.high) / 2)
    return labels


def _time_axis(scale: Scale, label_width: int, columns: int, tag_width: int, *, ascii_only: bool) -> Line:
    corner, rule = ("+", "-") if ascii_only else ("└", "─")
    left, right = scale.left, scale.right
    if cell_len(left) + cell_len(right) + 1 > columns:
        left = ""
    if cell_len(right) > columns:
        right = ""
    middle = rule * (columns - cell_len(left) - cell_len(right))
    return Line(((" " * label_width + corner + left + middle + right + " " * tag_width, "axis"),))


class _Plot:
    """The cells between the axes."""

    def __init__(self, columns: int, rows: int, *, ascii_only: bool) -> None:
        self.ascii_only = ascii_only
        self.across = columns * (1 if ascii_only else _DOT_COLUMNS)
        self.up = rows * (1 if ascii_only else _DOT_ROWS)
        self._dots = [[0] * columns for _ in range(rows)]
        self._roles = [[""] * columns for _ in range(rows)]

    def draw(self, series: Series, scale: Scale, number: int) -> int | None:
        """Draw a series; return the row in which it ends, None if its newest value is missing."""
        mark = ord(_ASCII_MARKS[number % len(_ASCII_MARKS)])
        values = series.values
        before: tuple[int, int] | None = None
        y: int | None = None
        for position, value in enumerate(values):
            part = share(value, scale.low, scale.high)
            y = None if part is None else round((1 - part) * (self.up - 1))
            if y is None:
                before = None
                continue
            # The newest value stands at the right edge also when there are few.
            x = self.across - 1
            if len(values) > 1:
                x = position * (self.across - 1) // (len(values) - 1)
            for dot_x, dot_y in _line(before or (x, y), (x, y)):
                self._set(dot_x, dot_y, series.role, mark)
            before = (x, y)
        return None if y is None else y // (1 if self.ascii_only else _DOT_ROWS)

    def _set(self, x: int, y: int, role: str, mark: int) -> None:
        if self.ascii_only:
            self._dots[y][x] = mark
        else:
            row, dot_row = divmod(y, _DOT_ROWS)
            x, dot_column = divmod(x, _DOT_COLUMNS)
            y = row
            self._dots[y][x] |= _DOTS[dot_row][dot_column]
        self._roles[y][x] = role

    def runs(self, row: int) -> list[Run]:
        """Return a row's cells."""
        runs: list[Run] = []
        base = 0 if self.ascii_only else _BRAILLE
        for dots, role in zip(self._dots[row], self._roles[row], strict=True):
            glyph = chr(base + dots) if dots else " "
            if runs and runs[-1][1] == role:
                runs[-1] = (runs[-1][0] + glyph, role)
            else:
                runs.append((glyph, role))
        return runs


def _line(start: tuple[int, int], end: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the dots from one to another, both included."""
    (x1, y1), (x2, y2) = start, end
    steps = max(abs(x2 - x1), abs(y2 - y1))
    if not steps:
        return [end]
    return [(x1 + round((x2 - x1) * step / steps), y1 + round((y2 - y1) * step / steps)) for step in range(steps + 1)]


class Chart(LineCanvas):
    """A chart under a line of text."""

    DEFAULT_CSS = "Chart { height: 1fr; }"

    def __init__(
        self,
        *,
        ascii_only: bool = False,
        id: str | None = None,  # noqa: A002 - Textual's own name for it
        classes: str | None = None,
    ) -> None:
        """Make an empty chart.

        Args:
            ascii_only: Use ASCII characters only.
            id: The widget's id, for Textual.
            classes: The widget's CSS classes, for Textual.
        """
        super().__init__(ascii_only=ascii_only, id=id, classes=classes)
        self._title: tuple[Cell, ...] = ()
        self._series: tuple[Series, ...] = ()
        self._scale = Scale(0.0, 1.0)
        self._made: tuple[tuple[int, int], list[Line]] | None = None

    def show(self, title: Sequence[Cell], series: Sequence[Series], scale: Scale) -> None:
        """Draw something else.

        Args:
            title: The line above: what is drawn, in which unit, the last value; drop nothing that tells
                the lines apart.
            series: See :func:`chart`.
            scale: See :func:`chart`.
        """
        self._title, self._series, self._scale = tuple(title), tuple(series), scale
        self._made = None
        self.repaint()

    def line_at(self, y: int, width: int) -> Line:
        """Return the title or a line of the chart."""
        if y == 0:
            return Line(fill(self._title, width, self.ellipsis))
        size = (width, max(0, self.size.height - 1))
        if self._made is None or self._made[0] != size:
            lines = chart(self._series, self._scale, *size, ascii_only=self.ascii_only)
            self._made = (size, lines)
        return self._made[1][y - 1]
