"""Where rows stand, and where the cursor goes when its row is gone."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from gputop.widgets.row_order import Group, RowOrder


@pytest.mark.parametrize(
    ("before", "key", "after", "place"),
    [
        ("abcde", "c", "abde", 2),  # the one that followed
        ("abcde", "e", "abcd", 3),  # at the end, the one before
        ("abcde", "c", "edba", 1),  # found in another order
        ("abcde", "c", "ae", 1),  # of two as near, the one that followed
        ("abcde", "c", "xyz", 2),  # nobody left: the same place
        ("abcde", "e", "x", 0),
        ("abcde", "c", "", None),
    ],
)
def test_the_neighbour_of_a_vanished_row(before: str, key: str, after: str, place: int | None):
    order = RowOrder(list(before))
    assert order.neighbour(key, before.index(key), RowOrder(list(after))) == place


def test_headings_hold_no_cursor_unless_they_open_and_close():
    keys: list[Hashable] = [Group("a"), "x", Group("b", collapsible=True), Group("c")]
    order = RowOrder(keys)
    assert [order.selectable(at) for at in range(-1, 5)] == [False, False, True, True, False, False]
    assert order.nearest_selectable(0) == 1
    assert order.nearest_selectable(3) == 2
    assert order.nearest_selectable(3, -1) == 2
    assert order.nearest_selectable(-5, -1) == 1
    assert RowOrder([Group("a")]).nearest_selectable(0) is None


def test_a_group_is_known_by_its_id():
    assert Group("a") == Group("a", collapsible=True)
    assert Group("a") != "a"
    assert Group("a") != ("a", False)


def test_positions():
    order = RowOrder(list("abc"))
    assert order.position("b", 1) == 1
    assert order.position("c", 0) == 2
    assert order.position("z") is None
