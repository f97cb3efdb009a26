"""From styled text to the fewest bytes a terminal needs to show it.

Rich, and so Textual, sets all colours and resets them for every piece of text. Here only what differs
from the piece before is named.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from rich.color import ColorSystem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.color import Color
    from rich.console import Console
    from rich.segment import Segment
    from rich.style import Style

_SGR: Final = (
    ("bold", "1"),
    ("dim", "2"),
    ("italic", "3"),
    ("underline", "4"),
    ("blink", "5"),
    ("blink2", "6"),
    ("reverse", "7"),
    ("conceal", "8"),
    ("strike", "9"),
    ("underline2", "21"),
    ("frame", "51"),
    ("encircle", "52"),
    ("overline", "53"),
)
"""Rich's attributes and the code that sets each (ECMA-48, 8.3.117)."""

_DEFAULT_FOREGROUND: Final = "39"
_DEFAULT_BACKGROUND: Final = "49"
_RESET: Final = "\x1b[0m"


_Codes: TypeAlias = tuple[frozenset[str], str, str]
"""What a style sets: attributes, foreground and background, each as SGR codes."""

_PLAIN: Final[_Codes] = (frozenset(), "", "")


@lru_cache(maxsize=4096)
def _codes(style: Style, system: ColorSystem) -> _Codes:
    attributes = frozenset(code for name, code in _SGR if getattr(style, name))
    codes = (
        attributes,
        _colour(style.color, system, foreground=True),
        _colour(style.bgcolor, system, foreground=False),
    )
    return codes if codes != _PLAIN else _PLAIN


def _colour(color: Color | None, system: ColorSystem, *, foreground: bool) -> str:
    """Return the codes of a colour; nothing for the terminal's own."""
    if color is None or color.is_default:
        return ""
    return ";".join(color.downgrade(system).get_ansi_codes(foreground=foreground))


@lru_cache(maxsize=4096)
def _change(before: _Codes, after: _Codes) -> str:
    """Return the shortest sequence that goes from one style to the other."""
    if before == after:
        return ""
    attributes, foreground, background = after
    anew = ";".join(code for code in (*sorted(attributes, key=int), foreground, background) if code)
    whole = f"\x1b[0;{anew}m" if anew else _RESET
    if before[0] - attributes:
        # The code that ends bold ends dim as well, and terminals disagree on others; a reset is sure.
        return whole
    parts = sorted(attributes - before[0], key=int)
    if foreground != before[1]:
        parts.append(foreground or _DEFAULT_FOREGROUND)
    if background != before[2]:
        parts.append(background or _DEFAULT_BACKGROUND)
    step = f"\x1b[{';'.join(parts)}m"
    return min(step, whole, key=len)


class SgrWriter:
    """Collects what is written to a terminal whose attributes are all off at the start and the end."""

    def __init__(self, console: Console) -> None:
        """Take the console, which says how many colours the terminal has."""
        # As Strip.render reads it; there is no public name for what the console found out.
        self._system = console._color_system or ColorSystem.TRUECOLOR  # noqa: SLF001 - Rich tells its names only
        self._output: list[str] = []
        self._state = _PLAIN

    def move(self, x: int, y: int) -> None:
        """Move to a cell, counted from 0.

        Always by its absolute place: where terminal and width table disagree about a glyph, a relative
        move would shift all that follows.
        """
        self._output.append(f"\x1b[{y + 1};{x + 1}H")

    def write(self, segments: Iterable[Segment]) -> None:
        """Write text where the cursor is."""
        write = self._output.append
        for text, style, control in segments:
            if control or not text:
                continue
            if style is not None and style.link:
                # A hyperlink opens and closes around its text; Rich writes it whole.
                write(_change(self._state, _PLAIN))
                self._state = _PLAIN
                write(style.render(text, color_system=self._system))
                continue
            codes = _PLAIN if style is None else _codes(style, self._system)
            if codes is not self._state:
                write(_change(self._state, codes))
                self._state = codes
            write(text)

    def end(self) -> str:
        """Turn all attributes off and return everything that was written."""
        if self._state is not _PLAIN:
            self._output.append(_RESET)
            self._state = _PLAIN
        return "".join(self._output)
