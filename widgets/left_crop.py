"""Write a changed range of cells, and nothing to its left.

Textual 8.2.8 cuts a dirty range at its right edge only: what stands left of it in the same widget is
written again (Textualize/textual#5625, a TODO in ``_compositor.ChopsUpdate``). It also resets and sets
all colours for every piece of text. One method is replaced here, which cuts at both ends and names only
the colours that differ from the piece before; a screen of changing numbers then takes about a third of
the bytes, which is what counts over ssh.

The method is private. :func:`install` looks whether it is the one known here, and otherwise leaves
Textual as it is and says why. To be dropped when Textual cuts at both ends.
"""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from rich.color import Color, ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual import _compositor
from textual.strip import Strip

if TYPE_CHECKING:
    from collections.abc import Callable

_CONSTRUCTOR: Final = ("self", "chops", "spans", "chop_ends")
_METHOD: Final = ("self", "console")

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


def install() -> str | None:
    """Replace Textual's method by the one that cuts at both ends; more than once does no harm.

    Returns:
        None once it is in place; otherwise the reason why Textual was left as it is.
    """
    update: Any = getattr(_compositor, "ChopsUpdate", None)
    if update is None:
        return "textual._compositor has no ChopsUpdate"
    if getattr(update, "render_segments", None) is render_segments:
        return None
    for name, known in (("__init__", _CONSTRUCTOR), ("render_segments", _METHOD)):
        method = getattr(update, name, None)
        if method is None:
            return f"ChopsUpdate has no {name}"
        if tuple(inspect.signature(method).parameters) != known:
            return f"ChopsUpdate.{name} takes other arguments than are known here"
    reason = _differs(update)
    if reason is None:
        update.render_segments = render_segments
    return reason


def _differs(update: Callable[..., Any]) -> str | None:
    """Say what of a one-line update is not as known here, by asking Textual to render it."""
    console = Console(color_system="truecolor", force_terminal=True, legacy_windows=False, _environ={})
    strip = Strip([Segment("abcdef", Style(bold=True))], 6)
    try:
        sample = update([{0: strip}], [(0, 2, 4)], [[6]])
        stored = sample.chops[0][0] is strip and list(sample.spans) == [(0, 2, 4)]
        theirs = str(sample.render_segments(console))
        ours = render_segments(sample, console)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong here means that it is not as known
        return f"a sample update failed: {error!r}"
    if not stored:
        return "ChopsUpdate keeps its arguments in another way"
    if "abcd" not in theirs or "\x1b[1;1H" not in theirs:
        return "ChopsUpdate renders in another way; perhaps it cuts at both ends by now"
    if ours != "\x1b[1;3H\x1b[1mcd\x1b[0m":
        return "strips are cut in another way"
    return None


def render_segments(self: Any, console: Console) -> str:  # noqa: ANN401 - ChopsUpdate, which is private
    """Render the update into what is written to the terminal.

    Args:
        self: The update: ``spans`` of ``(y, x1, x2)``, ``chops`` as a mapping of x to strip for each
            line, ``chop_ends`` as the end of each of those strips.
        console: Says how many colours the terminal has.
    """
    system = console._color_system or ColorSystem.TRUECOLOR  # noqa: SLF001 - as Strip.render reads it
    output: list[str] = []
    write = output.append
    state: _Codes = _PLAIN
    at: tuple[int, int] | None = None
    for y, x1, x2 in self.spans:
        for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
            if strip is None or x >= x2 or end <= x1:
                continue
            left, right = max(x, x1), min(end, x2)
            if at != (left, y):
                # Absolute even on the same line: where terminal and width table disagree about a glyph,
                # a relative move would shift all that follows.
                write(f"\x1b[{y + 1};{left + 1}H")
            for text, style, control in strip.crop(left - x, right - x):
                if control or not text:
                    continue
                if style is not None and style.link:
                    # A hyperlink opens and closes around its text; Rich writes it whole.
                    write(_change(state, _PLAIN))
                    state = _PLAIN
                    write(style.render(text, color_system=system))
                    continue
                codes = _PLAIN if style is None else _codes(style, system)
                if codes is not state:
                    write(_change(state, codes))
                    state = codes
                write(text)
            at = (right, y)
    if state is not _PLAIN:
        write(_RESET)
    return "".join(output)


_Codes = tuple[frozenset[str], str, str]
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
