"""Lines of a table: its headings and its rows, set into placed columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from gputop.widgets.cells import BLANK, ELLIPSIS, Cell, Run, fit
from gputop.widgets.columns import Placed

RowCells: TypeAlias = Sequence[Cell | None]
"""A cell for each column of the table; None lets the one to its left spread over the column."""


def row_runs(
    cells: RowCells, columns: int, placed: Sequence[Placed], width: int, *, ellipsis: str = ELLIPSIS
) -> tuple[Run, ...]:
    """Return a row's runs.

    Args:
        cells: Its cells; a single one spreads over the whole line.
        columns: How many columns the table has, in sight or not.
        placed: The columns in sight.
        width: Cells to fill.
        ellipsis: What stands in place of what was cut.
    """
    if width <= 0:
        return ()
    if len(cells) == 1 and columns > 1:
        return fit(cells[0] or BLANK, width, "left", ellipsis)
    runs: list[Run] = []
    x = 0
    number = 0
    while number < len(placed):
        place = placed[number]
        end = place.x + place.width
        cell = cells[place.index] if place.index < len(cells) else BLANK
        align = place.column.align
        number += 1
        while number < len(placed) and _spread_over(cells, placed[number].index):
            end = placed[number].x + placed[number].width
            align = "left"
            number += 1
        if place.x > x:
            runs.append((" " * (place.x - x), ""))
        runs.extend(fit(cell or BLANK, end - place.x, align, ellipsis))
        x = end
    if x < width:
        runs.append((" " * (width - x), ""))
    return tuple(runs)


def _spread_over(cells: RowCells, index: int) -> bool:
    return index < len(cells) and cells[index] is None


def header_runs(
    placed: Sequence[Placed],
    width: int,
    sort: tuple[str, bool] | None,
    *,
    ascii_only: bool = False,
    ellipsis: str = ELLIPSIS,
) -> tuple[Run, ...]:
    """Return the runs of the headings.

    Args:
        placed: The columns in sight.
        width: Cells to fill.
        sort: The key of the column that sorts, and whether from high to low; None for no order.
        ascii_only: Use ASCII characters only.
        ellipsis: What stands in place of what was cut.
    """
    runs: list[Run] = []
    x = 0
    for place in placed:
        if place.x > x:
            runs.append((" " * (place.x - x), ""))
        column = place.column
        if sort is None or sort[0] != column.key:
            cell = Cell(column.title, "header")
        else:
            arrow = ("v" if sort[1] else "^") if ascii_only else ("▼" if sort[1] else "▲")
            # The arrow is what is looked for; a title that leaves it no cell gives way.
            title = Cell.of(*fit(Cell(column.title), place.width - 1, ellipsis=ellipsis))
            cell = Cell(title.plain.rstrip() + arrow, "sorted")
        runs.extend(fit(cell, place.width, column.align, ellipsis))
        x = place.x + place.width
    if width > x:
        runs.append((" " * (width - x), ""))
    return tuple(runs)
