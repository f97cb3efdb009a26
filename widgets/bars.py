"""Horizontal bars, plain and in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gputop.widgets.cells import BLANK, Cell, Run
from gputop.widgets.levels import GLYPHS, UNKNOWN_GLYPH, share

if TYPE_CHECKING:
    from collections.abc import Sequence

# Not the full block: bars of neighbouring rows would run into each other.
_WHOLE: Final = GLYPHS[6]
_PARTS: Final = GLYPHS[:6]
_ASCII_WHOLE: Final = "#"
_ASCII_PARTS: Final = ".:-="


def bar(value: float | None, width: int, low: float = 0.0, high: float = 100.0, *, ascii_only: bool = False) -> str:
    """Return a bar as text that fills so many cells.

    The last cell's height tells the rest. Only ``low`` itself is an empty bar, so that a small load can
    be told from none. A value that is unknown or outside the range is a ``?``, never a full bar.
    """
    if width <= 0:
        return ""
    part = share(value, low, high)
    if part is None:
        return UNKNOWN_GLYPH.ljust(width)
    whole, parts = (_ASCII_WHOLE, _ASCII_PARTS) if ascii_only else (_WHOLE, _PARTS)
    steps = len(parts) + 1
    filled = round(part * width * steps)
    if part > 0:
        filled = max(1, filled)
    full, rest = divmod(filled, steps)
    return (whole * full + (parts[rest - 1] if rest else "")).ljust(width)


def bar_cell(
    value: float | None,
    width: int,
    role: str,
    *,
    low: float = 0.0,
    high: float = 100.0,
    ascii_only: bool = False,
) -> Cell:
    """Return a bar as a cell; one that cannot be drawn has the role ``unknown``."""
    known = share(value, low, high) is not None
    return Cell(bar(value, width, low, high, ascii_only=ascii_only), role if known else "unknown")


class Part(NamedTuple):
    """A part of a whole.

    Attributes:
        amount: How much, in the unit of the whole.
        role: Its role.
        glyph: What it is drawn with; different from its neighbours', since colour alone tells nothing.
    """

    amount: float
    role: str
    glyph: str


def stacked_bar(parts: Sequence[Part], total: float | None, width: int) -> Cell:
    """Return a bar of parts, such as used and reserved of all memory; what is left over is blank.

    Rounding never lets a part vanish nor the parts exceed the bar. Where the whole is unknown, or the
    parts are negative or more than it, the bar is a ``?``.
    """
    if width <= 0:
        return BLANK
    sum_of_parts = sum(part.amount for part in parts)
    within = total is not None and total > 0 and sum_of_parts <= total * (1 + 1e-9)
    if not total or not within or any(part.amount < 0 for part in parts):
        return Cell(UNKNOWN_GLYPH.ljust(width), "unknown")
    runs: list[Run] = []
    end = 0
    reached = 0.0
    for number, part in enumerate(parts):
        if not part.amount:
            continue
        reached += part.amount
        later = sum(1 for each in parts[number + 1 :] if each.amount)
        upto = max(round(reached / total * width), end + 1)
        upto = min(upto, max(width - later, end))
        if upto > end:
            runs.append((part.glyph * (upto - end), part.role))
        end = upto
    if end < width:
        runs.append((" " * (width - end), ""))
    return Cell.of(*runs)
