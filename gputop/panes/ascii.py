"""Text for terminals that draw ASCII alone."""

import unicodedata
from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputop.widgets.cells import Cell
from gputop.widgets.columns import Column

_SPELLED: Final = str.maketrans({
    "°": "", "≥": ">=", "≤": "<=", "≠": "!=", "…": "...", "·": ".", "–": "-", "—": "-", "×": "x", "▸": "+", "└": "`",
    "“": '"', "”": '"', "‘": "'", "’": "'", "µ": "u", "→": "->",
})  # fmt: skip


def fold(text: str) -> str:
    """Return a text in ASCII: signs spelled out, letters without their accents, anything else as "?"."""
    if text.isascii():
        return text
    spelled = text.translate(_SPELLED)
    if spelled.isascii():
        return spelled
    parts = unicodedata.normalize("NFKD", spelled)
    return "".join(c if c.isascii() else "?" for c in parts if not unicodedata.combining(c))


def fold_cell(cell: Cell) -> Cell:
    """Return a cell in ASCII."""
    if cell.plain.isascii():
        return cell
    return Cell.of(*((fold(text), role) for text, role in cell.runs))


def fold_cells(cells: Iterable[Cell | None]) -> tuple[Cell | None, ...]:
    """Return the cells of a row in ASCII."""
    return tuple([None if cell is None else fold_cell(cell) for cell in cells])


class Titled(Struct, frozen=True):
    """Columns twice: as they are, and with headings in ASCII."""

    plain: tuple[Column, ...]
    folded: tuple[Column, ...]

    @classmethod
    def of(cls, columns: Iterable[Column]) -> "Titled":
        """Fold the headings once, since columns are asked for often."""
        plain = tuple(columns)
        return cls(plain, tuple(_folded(c) for c in plain))

    def fitting(self, *, ascii_only: bool) -> tuple[Column, ...]:
        """Return the columns for a terminal."""
        return self.folded if ascii_only else self.plain


def _folded(column: Column) -> Column:
    return column if column.title.isascii() else replace(column, title=fold(column.title))
