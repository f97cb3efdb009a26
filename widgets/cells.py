"""Plain text with style roles, cut and padded to terminal cells.

Everything a widget of this package draws is a :class:`Cell`: text plus the *name* of a role ("ok",
"warn", "dim", ...). What a role looks like is the theme's business (gputop.themes.roles), so text made
here never holds markup or an escape sequence, and text from outside can be passed in as it is.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from rich.cells import cell_len, get_character_cell_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Run: TypeAlias = tuple[str, str]
"""A piece of text and its role; the empty role is ordinary text."""

Align: TypeAlias = Literal["left", "right"]

ELLIPSIS = "…"
ASCII_ELLIPSIS = "~"

_FITTED = 1024
"""Cells that are kept as fitted: most of a screen is the same from one second to the next."""

# Selects how the character before it is drawn. Terminals and width tables disagree about what it does
# to the width, which is how a row ends up one cell longer than the screen (mobile-shell/mosh#234).
_EMOJI_SELECTOR = "\ufe0f"


class Cell(NamedTuple):
    """Text with a role, or several runs of them.

    Attributes:
        text: The first run's text.
        role: The first run's role; empty for ordinary text.
        tail: Further runs, drawn after it without a gap.
    """

    text: str
    role: str = ""
    tail: tuple[Run, ...] = ()

    @classmethod
    def of(cls, *runs: Run) -> Cell:
        """Build a cell from runs; none at all makes a blank one."""
        if not runs:
            return BLANK
        (text, role), *tail = runs
        return cls(text, role, tuple(tail))

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs in drawing order."""
        return ((self.text, self.role), *self.tail)

    @property
    def plain(self) -> str:
        """The text of all runs, without roles."""
        return self.text if not self.tail else self.text + "".join(text for text, _ in self.tail)

    @property
    def width(self) -> int:
        """Width in terminal cells once shown."""
        return sum(text_width(text) for text, _ in self.runs)


BLANK = Cell("")


class Line(NamedTuple):
    """One line of a widget, ready to be drawn.

    Attributes:
        runs: Runs that together fill the width of the widget.
        base: A role laid under all of them, such as the cursor's; empty for none.
    """

    runs: tuple[Run, ...]
    base: str = ""

    @property
    def plain(self) -> str:
        """The text as it stands on the screen."""
        return "".join(text for text, _ in self.runs)


def shown(text: str) -> str:
    """Return the text without anything that a terminal would act on instead of drawing.

    Sources clean their text already; this is the last guard before the screen. White space of every
    kind becomes a space; control, format (bidirectional overrides, joiners), unassigned and surrogate
    characters go; so does a combining mark with nothing before it to combine with.
    """
    if text.isascii() and text.isprintable():
        return text
    if not text.isprintable() or _EMOJI_SELECTOR in text:
        text = "".join(
            character if character.isprintable() else " " if character.isspace() else ""
            for character in text
            if character != _EMOJI_SELECTOR
        )
    start = 0
    while start < len(text) and get_character_cell_size(text[start]) == 0:
        start += 1
    return text[start:]


def text_width(text: str) -> int:
    """Width of text in terminal cells once shown."""
    if text.isascii() and text.isprintable():
        return len(text)
    return cell_len(shown(text))


def take(text: str, width: int) -> tuple[str, int]:
    """Cut shown text to at most so many cells, never through a wide character.

    Returns:
        The start of the text, with the combining marks that belong to it, and its width in cells.
    """
    if text.isascii():
        part = text[:width]
        return part, len(part)
    used = 0
    for position, character in enumerate(text):
        size = get_character_cell_size(character)
        if used + size > width:
            return text[:position], used
        used += size
    return text, used


@lru_cache(maxsize=_FITTED)
def fit(cell: Cell, width: int, align: Align = "left", ellipsis: str = ELLIPSIS) -> tuple[Run, ...]:
    """Return runs that fill exactly so many cells: padded, or cut with an ellipsis.

    Args:
        cell: What to draw.
        width: Cells to fill; nothing is returned for 0 or less.
        align: Where the text stands when it is narrower; text that is wider always loses its end.
        ellipsis: One cell wide; what is put in place of what was cut.
    """
    if width <= 0:
        return ()
    text, role, tail = cell
    if not tail and text.isascii() and text.isprintable():
        spare = width - len(text)
        if spare >= 0:
            return ((text.ljust(width) if align == "left" else text.rjust(width), role),)
        return ((text[: width - 1] + ellipsis, role),)
    runs = [(shown(text), role) for text, role in cell.runs]
    spare = width - sum(cell_len(text) for text, _ in runs)
    if spare < 0:
        return tuple(_cut(runs, width, ellipsis))
    if spare:
        # The padding takes the role of the run it touches, so that a bar's ground has no seam.
        pad = " " * spare
        if align == "left":
            runs[-1] = (runs[-1][0] + pad, runs[-1][1])
        else:
            runs[0] = (pad + runs[0][0], runs[0][1])
    return tuple(run for run in runs if run[0])


def _cut(runs: Iterable[Run], width: int, ellipsis: str) -> Iterator[Run]:
    left = width - 1
    for text, role in runs:
        part, used = take(text, left)
        left -= used
        if part == text:
            if part:
                yield part, role
            continue
        # A wide character that does not fit leaves a cell over.
        yield part + ellipsis + " " * left, role
        return


def fill(cells: Iterable[Cell], width: int, ellipsis: str = ELLIPSIS) -> tuple[Run, ...]:
    """Return the runs of cells one after the other, cut or padded to exactly so many cells."""
    runs: list[Run] = []
    for cell in cells:
        runs.extend(cell.runs)
    return fit(Cell.of(*runs), width, "left", ellipsis)


def wrap(cell: Cell, width: int, indent: int = 0) -> list[Cell]:
    """Break a cell into lines of at most so many cells, at spaces where there are any.

    Args:
        cell: What to break. A newline in its text starts a new line.
        width: Cells in a line; taken as 2 where less, since a wide character needs them.
        indent: Spaces before every line but the first, dropped where the width leaves no room for them.

    Returns:
        At least one line.
    """
    width = max(2, width)
    indent = indent if indent < width - 1 else 0
    lines: list[list[Run]] = [[]]
    used = 0

    def break_line() -> None:
        nonlocal used
        lines.append([(" " * indent, "")] if indent else [])
        used = indent

    for text, role in cell.runs:
        for number, part in enumerate(text.split("\n")):
            if number:
                break_line()
            for word in _words(shown(part)):
                size = cell_len(word)
                started = used > (indent if len(lines) > 1 else 0)
                if used + cell_len(word.rstrip()) > width and started:
                    break_line()
                    word = word.lstrip()  # noqa: PLW2901 - the rest of the word goes on below
                    size = cell_len(word)
                while used + size > width and word.rstrip():
                    piece, taken = take(word, width - used)
                    if piece == word.rstrip():
                        break
                    if piece:
                        lines[-1].append((piece, role))
                    break_line()
                    word = word[len(piece) :]  # noqa: PLW2901 - as above
                    size -= taken
                piece, taken = take(word, max(0, width - used))
                if piece:
                    lines[-1].append((piece, role))
                    used += taken
    return [Cell.of(*runs) for runs in lines]


def _words(text: str) -> Iterator[str]:
    """Yield words with the spaces that follow them; spaces at the start are a word."""
    start = 0
    for position in range(1, len(text)):
        if text[position] != " " and text[position - 1] == " ":
            yield text[start:position]
            start = position
    if start < len(text):
        yield text[start:]
