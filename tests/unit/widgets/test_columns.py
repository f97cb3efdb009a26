"""How columns share the width of a terminal."""

from __future__ import annotations

import itertools

import pytest

from gputop.widgets.columns import Column, lay_out

COLUMNS = (
    Column("node", "NODE", 10),
    Column("bar", "", 10, priority=2),
    Column("util", "UTIL", 5, priority=1),
    Column("health", "HEALTH", 20, min_width=6, flex=1, priority=1),
    Column("pool", "POOL", 8, priority=3, flex=3),
)


def placed(width: int) -> dict[str, tuple[int, int]]:
    return {each.column.key: (each.x, each.width) for each in lay_out(COLUMNS, width)}


def test_all_columns_and_the_rest_by_share():
    assert placed(65) == {
        "node": (0, 10),
        "bar": (11, 10),
        "util": (22, 5),
        "health": (28, 22),
        "pool": (51, 14),
    }


@pytest.mark.parametrize(
    ("width", "keys"),
    [
        (57, ["node", "bar", "util", "health", "pool"]),
        (42, ["node", "bar", "util", "health"]),
        (33, ["node", "util", "health"]),
        (22, ["node", "util"]),
        (15, ["node"]),
        (3, ["node"]),
        (0, []),
    ],
)
def test_columns_drop_by_priority(width: int, keys: list[str]):
    assert list(placed(width)) == keys


def test_nothing_sticks_out_at_any_width():
    for width in range(1, 120):
        last = max(x + size for x, size in placed(width).values())
        assert last <= width
        spots = sorted(placed(width).values())
        assert all(end[0] > start[0] + start[1] for start, end in itertools.pairwise(spots))


def test_a_column_that_does_not_fit_lets_no_lesser_one_in():
    columns = (Column("a", "A", 5), Column("wide", "W", 30, priority=1), Column("small", "S", 2, priority=2))
    assert [each.column.key for each in lay_out(columns, 20)] == ["a"]
