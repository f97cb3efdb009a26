"""A number within its range, as one glyph or as a role.

A number outside its range is not drawn as the nearest one inside: a sensor that says 65535 % must not
look like a busy GPU.
"""

from __future__ import annotations

import math
from typing import Final

UNKNOWN_GLYPH: Final = "?"
GAP_GLYPH: Final = " "

GLYPHS: Final = "▁▂▃▄▅▆▇█"
ASCII_GLYPHS: Final = "_.:-=+*#"
"""As many as the others, from light to heavy."""

UTIL_STEPS: Final = (5.0, 35.0, 65.0, 90.0)
"""Percentages at which the role of a load changes: next to none, low, middling, high, at the top."""


def share(value: float | None, low: float, high: float) -> float | None:
    """Return where a value stands between two others, 0 to 1; None if it is unknown or outside."""
    if value is None or math.isnan(value) or not low <= value <= high or high <= low:
        return None
    return (value - low) / (high - low)


def is_gap(value: float | None) -> bool:
    """Whether there is no value at all, as opposed to one that cannot be."""
    return value is None or math.isnan(value)


def level_glyph(value: float | None, low: float = 0.0, high: float = 100.0, *, ascii_only: bool = False) -> str:
    """Return one glyph whose height is the value; ``?`` if it is unknown or outside its range."""
    part = share(value, low, high)
    if part is None:
        return UNKNOWN_GLYPH
    glyphs = ASCII_GLYPHS if ascii_only else GLYPHS
    return glyphs[min(int(part * len(glyphs)), len(glyphs) - 1)]


def util_role(percent: float | None) -> str:
    """Return the role of a load, ``util-0`` to ``util-4``; ``unknown`` outside 0 to 100."""
    if share(percent, 0.0, 100.0) is None or percent is None:
        return "unknown"
    return f"util-{sum(percent >= step for step in UTIL_STEPS)}"
