"""Sparklines: one glyph for each of the last values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gputop.widgets.levels import GAP_GLYPH, is_gap, level_glyph

if TYPE_CHECKING:
    from collections.abc import Sequence


def spark(
    values: Sequence[float | None],
    width: int,
    low: float = 0.0,
    high: float = 100.0,
    *,
    ascii_only: bool = False,
) -> str:
    """Return the last values as text, the newest at the right.

    Args:
        values: From old to new. None or NaN, where nothing was measured, leaves a gap; a value outside
            the range is a ``?``.
        width: Cells to fill.
        low: The value of the lowest glyph.
        high: The value of the highest.
        ascii_only: Use ASCII characters only.
    """
    if width <= 0:
        return ""
    shown = values[-width:]
    glyphs = (GAP_GLYPH if is_gap(value) else level_glyph(value, low, high, ascii_only=ascii_only) for value in shown)
    return "".join(glyphs).rjust(width)
