"""Columns of a table and how they share its width.

There is no horizontal scrolling: a narrow terminal drops whole columns, least important first, and a
wide one gives what is over to the columns that ask for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gputop.widgets.cells import Align

GAP = 1
"""Blank cells between two columns."""


class Column(Struct, frozen=True):
    """One column of a table.

    Attributes:
        key: Names the column in messages and in the configuration.
        title: Its heading.
        width: The width it would like, in cells.
        min_width: The width below which it is dropped; 0 for the same as ``width``.
        flex: Its share of the cells left over once every column has its ``width``; 0 for none.
        align: Where text stands in it; numbers stand right.
        priority: Columns with a higher number are dropped first; of equals, the one further right.
        sortable: Whether a click on the heading asks for sorting.
        descending: Whether it first sorts from high to low, as one wants of numbers.
    """

    key: str
    title: str
    width: int
    min_width: int = 0
    flex: int = 0
    align: Align = "left"
    priority: int = 0
    sortable: bool = True
    descending: bool = False

    @property
    def least(self) -> int:
        """The narrowest it may become, in cells."""
        return self.min_width or self.width


class Placed(Struct, frozen=True):
    """A column in its place.

    Attributes:
        index: Its index among all columns of the table.
        column: The column.
        x: Its first cell.
        width: Its width in cells.
    """

    index: int
    column: Column
    x: int
    width: int


def lay_out(columns: Sequence[Column], width: int, gap: int = GAP) -> tuple[Placed, ...]:
    """Place the columns that fit into so many cells.

    Columns come in by priority until one does not fit; what remains widens those from least to wanted
    width in the same order, and the rest goes to the flexible ones by their share. The first column by
    priority is always there, cut if it must be.
    """
    if not columns or width <= 0:
        return ()
    by_priority = sorted(range(len(columns)), key=lambda index: (columns[index].priority, index))
    chosen: list[int] = []
    spare = width
    for index in by_priority:
        need = columns[index].least + (gap if chosen else 0)
        if need > spare:
            break
        chosen.append(index)
        spare -= need
    if not chosen:
        index = by_priority[0]
        return (Placed(index, columns[index], 0, width),)
    widths = {index: columns[index].least for index in chosen}
    for index in chosen:
        more = min(spare, max(0, columns[index].width - widths[index]))
        widths[index] += more
        spare -= more
    shares = sum(columns[index].flex for index in chosen)
    for index in chosen:
        if spare <= 0 or shares <= 0:
            break
        flex = columns[index].flex
        more = spare * flex // shares
        widths[index] += more
        spare -= more
        shares -= flex
    placed: list[Placed] = []
    x = 0
    for index in sorted(chosen):
        placed.append(Placed(index, columns[index], x, widths[index]))
        x += widths[index] + gap
    return tuple(placed)
