"""Which ranges of a line are written again."""

from __future__ import annotations

import random

import pytest

from gputop.widgets.cells import Cell, Line, fit
from gputop.widgets.line_diff import cells_of, changed_ranges


def line(text: str, role: str = "", base: str = "") -> Line:
    return Line(((text, role),), base)


@pytest.mark.parametrize(
    ("old", "new", "ranges"),
    [
        (line("abcdef"), line("abcdef"), []),
        (line("abcdef"), line("abXdef"), [(2, 3)]),
        (line("abcdef"), line("aXcdXf"), [(1, 5)]),
        (line("a" * 40), line("X" + "a" * 38 + "X"), [(0, 1), (39, 40)]),
        (line("X" + "a" * 9 + "X"), line("Y" + "a" * 9 + "Y"), [(0, 11)]),
        (line("X" + "a" * 10 + "X"), line("Y" + "a" * 10 + "Y"), [(0, 1), (11, 12)]),
        (line("X▇▇▇X"), line("Y▇▇▇Y"), [(0, 5)]),
        (line("X▇▇▇▇X"), line("Y▇▇▇▇Y"), [(0, 1), (5, 6)]),
        (
            Line((("X", "a"), ("-", "b"), ("X", "a"))),
            Line((("Y", "a"), ("-", "b"), ("Y", "a"))),
            [(0, 1), (2, 3)],
        ),
        (Line((("X-", "a"), ("X", "b"))), Line((("Y-", "a"), ("Y", "b"))), [(0, 3)]),
        (line("abc", "ok"), line("abc", "bad"), [(0, 3)]),
        (line("a  ", "ok"), line("a  ", "bad"), [(0, 1)]),
        (line("abc"), line("abc", base="cursor"), [(0, 3)]),
        (line("ab"), line("abc"), [(0, 3)]),
        (line("日本"), line("日x "), [(2, 4)]),
        (line(" 日 "), line("日  "), [(0, 3)]),
        (line("e\u0301x"), line("ex"), [(0, 1)]),
        (Line((("a", "x"), ("b", "x"))), Line((("ab", "x"),)), []),
    ],
)
def test_ranges(old: Line, new: Line, ranges: list[tuple[int, int]]):
    assert changed_ranges(old, new) == ranges


def test_a_space_counts_where_its_role_shows_on_it():
    old, new = line("a  ", "ok"), line("a  ", "caret")
    assert changed_ranges(old, new, {"caret"}) == [(0, 3)]


def test_ranges_cover_every_difference_and_cut_no_wide_character():
    chance = random.Random(3)
    pieces = ["a", "b", " ", "日", "本", "e\u0301", "█"]
    for _ in range(3000):
        lines = [
            Line(
                fit(
                    Cell.of(*(("".join(chance.choices(pieces, k=5)), chance.choice(["x", "y"])) for _ in "123")),
                    24,
                )
            )
            for _ in "12"
        ]
        old, new = cells_of(lines[0].runs), cells_of(lines[1].runs)
        ranges = changed_ranges(lines[0], lines[1])
        covered = {cell for start, end in ranges for cell in range(start, end)}
        for position, (was, now) in enumerate(zip(old, new, strict=True)):
            if was[0] != now[0]:
                assert position in covered
        for start, end in ranges:
            for cells in (old, new):
                assert not cells[start][0].startswith("\0")
                assert end == len(cells) or not cells[end][0].startswith("\0")
