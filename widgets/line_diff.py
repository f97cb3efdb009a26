"""Which cells of a line changed.

Textual does not compare frames: what a widget marks as dirty is written again, changed or not. So the
comparison is made here, cell by cell, and only ranges that differ are marked.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from rich.cells import cell_len, get_character_cell_size

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from gputop.widgets.cells import Line, Run

MOVE_BYTES = 9
"""What it costs to move the cursor to a second range: ``ESC [ 12 ; 120 H``."""

COLOUR_BYTES = 14
"""What it costs to change colours: 19 bytes in truecolor, 5 to 11 with fewer colours."""


def changed_ranges(old: Line, new: Line, grounded: Collection[str] = ()) -> list[tuple[int, int]]:
    """Return the cell ranges in which two lines of the same width differ.

    Two ranges become one where writing what is between them again is no dearer than moving over it.

    Args:
        old: The line on the screen.
        new: The line to be there.
        grounded: Roles that show on a space too (a background, reverse, underline). A space in any
            other role looks like every other space.

    Returns:
        Start and end (exclusive) of each range, from left to right. A range never starts or ends
        inside a wide character of either line.
    """
    if old == new:
        return []
    if old.base != new.base:
        width = max(_width(old.runs), _width(new.runs))
        return [(0, width)] if width else []
    head, tail = _alike(old.runs, new.runs)
    offset = _width(new.runs[:head])
    before = cells_of(old.runs[head : len(old.runs) - tail])
    after = cells_of(new.runs[head : len(new.runs) - tail])
    if len(before) != len(after):
        return [(0, max(_width(old.runs), _width(new.runs)))]
    ranges: list[tuple[int, int]] = []
    start = end = -1
    for position, (was, now) in enumerate(zip(before, after, strict=True)):
        if was == now:
            continue
        if was[0] == " " and now[0] == " " and was[1] not in grounded and now[1] not in grounded:
            continue
        if start >= 0 and _dearer_than_a_move(after, end, position):
            ranges.append((start, end))
            start = -1
        if start < 0:
            start = position
        end = position + 1
    if start >= 0:
        ranges.append((start, end))
    return [(start + offset, end + offset) for start, end in ranges] if offset else ranges


def _alike(old: Sequence[Run], new: Sequence[Run]) -> tuple[int, int]:
    """Return how many runs are the same at the start and at the end: most of a line of numbers is."""
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    # A mark that combines with the cell before it is to be compared together with that cell.
    while head and any(_combines(runs, head) for runs in (old, new)):
        head -= 1
    return head, tail


def _combines(runs: Sequence[Run], number: int) -> bool:
    text = runs[number][0] if number < len(runs) else ""
    return bool(text) and not text[0].isascii() and get_character_cell_size(text[0]) == 0


def _width(runs: Iterable[Run]) -> int:
    return sum(len(text) if text.isascii() else cell_len(text) for text, _ in runs)


def _dearer_than_a_move(cells: list[tuple[str, str]], end: int, start: int) -> bool:
    """Whether writing the cells from ``end`` to ``start`` takes more bytes than moving over them."""
    if start - end > MOVE_BYTES:
        return True
    extra = 0
    role = cells[end - 1][1]
    changes = 0 if role == cells[start][1] else -1
    for character, its_role in cells[end : start + 1]:
        extra += 1 if character.isascii() else 3
        if its_role != role and character != " ":
            changes += 1
            role = its_role
    extra -= 1 if cells[start][0].isascii() else 3
    return extra + changes * COLOUR_BYTES > MOVE_BYTES


def cells_of(runs: Collection[Run]) -> list[tuple[str, str]]:
    """Return what stands in each cell: its character with its combining marks, and its role.

    The second cell of a wide character holds the character too (after a NUL, so that it equals
    nothing else): if the character changes, both cells do.
    """
    cells: list[tuple[str, str]] = []
    for text, role in runs:
        if text.isascii():
            cells.extend(zip(text, repeat(role)))
            continue
        for character in text:
            size = get_character_cell_size(character)
            if size == 1:
                cells.append((character, role))
            elif size == 2:
                cells.append((character, role))
                cells.append(("\0" + character, role))
            elif cells:
                cells[-1] = (cells[-1][0] + character, cells[-1][1])
    return cells
