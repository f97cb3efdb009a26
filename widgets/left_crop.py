"""Write a changed range of cells, and nothing to its left.

Textual 8.2.8 cuts a dirty range at its right edge only: what stands left of it in the same widget is
written again (Textualize/textual#5625, a TODO in ``_compositor.ChopsUpdate``). Here the two methods that
turn an update of the screen into bytes are replaced by ones that cut at both ends and go through
gputop.widgets.sgr. A screen of changing numbers then takes about a third of the bytes, which is what
counts over ssh.

The methods are private. :func:`install` looks whether they are the ones known here, and otherwise leaves
Textual as it is and says why. To be dropped when Textual cuts at both ends.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual import _compositor
from textual.geometry import Region
from textual.strip import Strip

from gputop.widgets.sgr import SgrWriter

if TYPE_CHECKING:
    from collections.abc import Callable


def render_chops(self: Any, console: Console) -> str:  # noqa: ANN401 - ChopsUpdate, which is private
    """Render changed spans into what is written to the terminal.

    Args:
        self: The update: ``spans`` of ``(y, x1, x2)``, ``chops`` as a mapping of x to strip for each
            line, ``chop_ends`` as the end of each of those strips.
        console: Says how many colours the terminal has.
    """
    writer = SgrWriter(console)
    at: tuple[int, int] | None = None
    for y, x1, x2 in self.spans:
        for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
            if strip is None or x >= x2 or end <= x1:
                continue
            left, right = max(x, x1), min(end, x2)
            if at != (left, y):
                writer.move(left, y)
            writer.write(strip.crop(left - x, right - x))
            at = (right, y)
    return writer.end()


def render_layout(self: Any, console: Console) -> str:  # noqa: ANN401 - LayoutUpdate, which is private
    """Render a whole screen into what is written to the terminal.

    Args:
        self: The update: ``strips`` for each line of ``region``, each a row of strips.
        console: Says how many colours the terminal has.
    """
    writer = SgrWriter(console)
    for y, strips in enumerate(self.strips, self.region.y):
        writer.move(self.region.x, y)
        for strip in strips:
            writer.write(strip)
    return writer.end()


class _Replacement(Struct, frozen=True):
    """A class of Textual, how it is known, and what takes its method's place.

    Attributes:
        name: The class in ``textual._compositor``.
        constructor: The parameters of its constructor.
        arguments: What to construct a sample with.
        theirs: What a sample's own rendering holds.
        ours: What the replacement makes of it.
        method: The replacement.
    """

    name: str
    constructor: tuple[str, ...]
    arguments: tuple[Any, ...]
    theirs: str
    ours: str
    method: Callable[[Any, Console], str]


_METHOD: Final = "render_segments"
_METHOD_PARAMETERS: Final = ("self", "console")
_SAMPLE: Final = Strip([Segment("abcdef", Style(bold=True))], 6)

_REPLACEMENTS: Final = (
    _Replacement(
        "ChopsUpdate",
        ("self", "chops", "spans", "chop_ends"),
        ([{0: _SAMPLE}], [(0, 2, 4)], [[6]]),
        "\x1b[1;1H\x1b[1mabcd\x1b[0m",
        "\x1b[1;3H\x1b[1mcd\x1b[0m",
        render_chops,
    ),
    _Replacement(
        "LayoutUpdate",
        ("self", "strips", "region"),
        ([[_SAMPLE, _SAMPLE]], Region(1, 2, 12, 1)),
        "\x1b[3;2H\x1b[1mabcdef\x1b[0m\x1b[1mabcdef\x1b[0m",
        "\x1b[3;2H\x1b[1mabcdefabcdef\x1b[0m",
        render_layout,
    ),
)


def install() -> str | None:
    """Replace both methods, or none; more than once does no harm.

    Returns:
        None once they are in place; otherwise the reason why Textual was left as it is.
    """
    if installed():
        return None
    for replacement in _REPLACEMENTS:
        if reason := _unknown(replacement):
            return reason
    for replacement in _REPLACEMENTS:
        setattr(getattr(_compositor, replacement.name), _METHOD, replacement.method)
    return None


def installed() -> bool:
    """Whether ranges of cells are cut at both ends."""
    return all(getattr(getattr(_compositor, each.name, None), _METHOD, None) is each.method for each in _REPLACEMENTS)


def _unknown(replacement: _Replacement) -> str | None:
    """Say what of a class of Textual is not as known here; None if it is."""
    name = replacement.name
    update: Any = getattr(_compositor, name, None)
    if update is None:
        return f"textual._compositor has no {name}"
    for method, known in (("__init__", replacement.constructor), (_METHOD, _METHOD_PARAMETERS)):
        function = getattr(update, method, None)
        if function is None or tuple(inspect.signature(function).parameters) != known:
            return f"{name}.{method} is missing or takes other arguments than are known here"
    console = Console(color_system="truecolor", force_terminal=True, legacy_windows=False, _environ={})
    try:
        sample = update(*replacement.arguments)
        rendered = str(sample.render_segments(console)), replacement.method(sample, console)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong here means that it is not as known
        return f"a sample {name} failed: {error!r}"
    if rendered != (replacement.theirs, replacement.ours):
        return f"{name} renders or keeps its arguments in another way; perhaps it cuts at both ends by now"
    return None
