"""A scroll bar of one cell to a line, drawn with the line it stands beside.

Textual's own is a widget of its own: it is written whole at every step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gputop.widgets.cells import Run


def thumb(offset: int, page: int, total: int) -> tuple[int, int]:
    """Return the first line of the thumb and the line after its last.

    Args:
        offset: Lines above the page.
        page: Lines on the page, which is also the length of the bar.
        total: Lines there are, more than on a page.
    """
    size = max(1, page * page // max(1, total))
    travel = page - size
    hidden = max(1, total - page)
    start = min(travel, offset * travel // hidden)
    if travel > 0 and offset > 0:
        # Not at the top although something is above, nor at the bottom although something is below.
        start = max(1, start)
    if travel > 1 and offset < hidden:
        start = min(travel - 1, start)
    return start, start + size


def scroll_mark(row: int, offset: int, page: int, total: int, *, ascii_only: bool = False) -> Run:
    """Return the bar's cell beside a line of the page; the arguments are those of :func:`thumb`."""
    start, end = thumb(offset, page, total)
    inside = start <= row < end
    glyphs = "#|" if ascii_only else "█│"
    return (glyphs[0] if inside else glyphs[1]), "axis"
