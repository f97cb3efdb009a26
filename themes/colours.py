"""Colours as a theme file writes them, and how well one is read on another."""

from __future__ import annotations

import re
from typing import Final

_HEX: Final = re.compile(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})")

_HUES: Final = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")

ANSI_COLOURS: Final = frozenset(
    ("ansi_default", *(f"ansi_{hue}" for hue in _HUES), *(f"ansi_bright_{hue}" for hue in _HUES))
)
"""The terminal's own 16 colours and its default, as Textual names them."""


def colour_problem(value: object, *, ansi: bool) -> str | None:
    """Say what is wrong with a colour, or None.

    Args:
        value: What the file holds.
        ansi: Whether the theme uses the terminal's palette. Such a theme holds no other colours, since
            they would not follow the palette; and others hold none of the palette, since how those are
            read on a background is not known.
    """
    if not isinstance(value, str):
        return f"{value!r} is not a colour: write it in quotes"
    if ansi:
        if value in ANSI_COLOURS:
            return None
        return f"{value!r} is none of the terminal's colours: ansi_red, ansi_bright_blue, ansi_default, ..."
    if _HEX.fullmatch(value):
        return None
    if value in ANSI_COLOURS:
        return f"{value!r} is the terminal's own, which only a theme with ansi = true may use"
    return f"{value!r} is not a colour: write #rrggbb"


def luminance(colour: str) -> float:
    """Return the relative luminance of ``#rrggbb`` or ``#rgb``, 0 to 1 (WCAG 2.2, relative luminance)."""
    digits = colour.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(digit * 2 for digit in digits)
    parts = [int(digits[start : start + 2], 16) / 255 for start in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21 (WCAG 2.2, contrast ratio)."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)
