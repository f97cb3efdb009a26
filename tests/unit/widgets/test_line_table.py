"""The table: what it asks for, what it writes, and where the cursor goes."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import pytest

from gputop.widgets.cells import BLANK, Cell
from gputop.widgets.columns import Column
from gputop.widgets.line_table import LineTable
from gputop.widgets.row_order import Group
from tests.unit.widgets.conftest import Dirty, Stage

COLUMNS = (
    Column("name", "NAME", 8),
    Column("util", "UTIL", 5, align="right", priority=1, descending=True),
    Column("note", "NOTE", 12, min_width=6, flex=1, priority=2),
    Column("age", "AGE", 4, align="right", priority=3, sortable=False),
)


class Owner:
    """What a pane is to a table: values by key, and the calls that asked for them."""

    def __init__(self) -> None:
        self.values: dict[Hashable, int] = {}
        self.asked: list[Hashable] = []

    def cells(self, key: Hashable) -> tuple[Cell | None, ...]:
        self.asked.append(key)
        if isinstance(key, Group):
            return (Cell(f"pool {key.id}", "group"),)
        value = self.values.get(key, 0)
        if value < 0:
            return (Cell(f"n{key}"), Cell("LOST at 03:08:11, last 96%", "bad"), None, Cell("4m"))
        return (Cell(f"n{key}"), Cell(f"{value}%", "ok"), BLANK, Cell("0s", "dim"))

    def taken(self) -> list[Hashable]:
        asked, self.asked = self.asked, []
        return asked


@pytest.fixture
def owner() -> Owner:
    return Owner()


@pytest.fixture
def table(owner: Owner) -> LineTable:
    return LineTable(COLUMNS, owner.cells, empty="no GPU yet: waiting for the first answer of nvml")


Staging = Callable[..., Stage]


async def test_an_empty_table_says_what_it_waits_for(table: LineTable, stage: Staging):
    app = stage(table)
    async with app.run_test(size=(30, 6)) as pilot:
        table.update([])
        await pilot.pause()
        assert app.lines()[:3] == [
            " NAME      UTIL NOTE       AGE",
            " no GPU yet: waiting for the",
            " first answer of nvml",
        ]
        table.set_empty("denied")
        await pilot.pause()
        assert app.lines()[1:3] == [" denied", ""]
        await pilot.press("down", "enter", "space", "end")
        assert table.cursor is None


async def test_rows_headings_and_lines_that_spread(table: LineTable, owner: Owner, stage: Staging):
    owner.values = {1: 97, 2: -1, 3: 5}
    app = stage(table)
    async with app.run_test(size=(40, 6)) as pilot:
        table.update([Group("h100"), 1, 2, 3])
        table.set_sort("util", descending=True)
        await pilot.pause()
        assert app.lines() == [
            " NAME     UTIL▼ NOTE                 AGE",
            " pool h100",
            "▸n1         97%                       0s",
            " n2       LOST at 03:08:11, last 9…   4m",
            " n3          5%                       0s",
            "",
        ]


async def test_ascii_mode_uses_no_other_character(owner: Owner, stage: Staging):
    table = LineTable(COLUMNS, owner.cells, ascii_only=True)
    owner.values = {1: -1}
    app = stage(table)
    async with app.run_test(size=(30, 5)) as pilot:
        table.update(list(range(30)))
        table.set_sort("name")
        await pilot.press("space", "space", "up")
        assert all(line.isascii() for line in app.lines()), app.lines()
        assert app.lines()[0].startswith(" NAME^")
        assert [line[0] for line in app.lines()[1:4]] == ["*", "#", " "]


async def test_only_rows_in_sight_are_asked_and_only_dirty_ones_again(table: LineTable, owner: Owner, stage: Staging):
    async with stage(table).run_test(size=(60, 11)) as pilot:
        order = list(range(10_240))
        table.update(order)
        await pilot.pause()
        assert set(owner.taken()) == set(range(10))
        table.update(order, {3, 5, 4000})
        await pilot.pause()
        assert sorted(owner.taken(), key=str) == [3, 5]
        table.update(list(order), set())
        await pilot.pause()
        assert owner.taken() == []
        await pilot.press("end")
        assert set(owner.taken()) == set(range(10_230, 10_240))
        assert list(table.keys_in_sight) == list(range(10_230, 10_240))


async def test_only_changed_characters_are_written(
    table: LineTable, owner: Owner, stage: Staging, dirty: Callable[..., Dirty]
):
    async with stage(table).run_test(size=(60, 11)) as pilot:
        order = list(range(8))
        owner.values = dict.fromkeys(order, 50)
        table.update(order)
        await pilot.pause()
        watched = dirty(table)
        table.update(list(order))
        assert watched.taken() == set()
        owner.values[2] = 51
        table.update(order, {2})
        assert watched.taken() == {(13, 3)}  # the second digit
        assert watched.whole == 0


async def test_a_cursor_step_writes_two_lines(table: LineTable, stage: Staging, dirty: Callable[..., Dirty]):
    async with stage(table).run_test(size=(60, 11)) as pilot:
        table.update(list(range(8)))
        await pilot.pause()
        watched = dirty(table)
        await pilot.press("down")
        assert {y for _, y in watched.taken()} == {1, 2}


async def test_nothing_is_worked_out_out_of_sight(table: LineTable, owner: Owner, stage: Staging):
    app = stage(table)
    async with app.run_test(size=(60, 11)) as pilot:
        table.update([1, 2])
        await pilot.pause()
        table.display = False
        await pilot.pause()
        owner.taken()
        owner.values[1] = 88
        table.update([1, 2])
        await pilot.pause()
        assert owner.taken() == []
        table.display = True
        await pilot.pause()
        assert "88%" in app.lines()[1]


async def test_cursor_and_marks_follow_identities(table: LineTable, stage: Staging):
    app = stage(table)
    async with app.run_test(size=(60, 11)) as pilot:
        table.update(["a", "b", "c", "d"])
        await pilot.press("down", "space")
        assert (table.cursor, table.marks) == ("c", {"b"})
        table.update(["d", "c", "b", "a"])
        await pilot.pause()
        assert (table.cursor, table.marks) == ("c", {"b"})
        assert [line[0] for line in app.lines()[1:5]] == [" ", "▸", "✓", " "]
        await pilot.press("down")
        assert app.lines()[3].startswith("◆nb")


async def test_a_vanished_row_hands_the_cursor_to_its_neighbour(table: LineTable, stage: Staging):
    app = stage(table)
    async with app.run_test(size=(60, 11)) as pilot:
        table.update(["a", "b", "c", "d"])
        await pilot.press("down")
        table.update(["a", "c", "d"])
        await pilot.pause()
        assert table.cursor == "c"
        table.update([])
        await pilot.pause()
        assert table.cursor is None
        table.update(["x", "y"])
        await pilot.pause()
        assert [each.key for each in app.sent_of(LineTable.CursorMoved)] == ["a", "b", "c", None, "x"]


async def test_a_mark_on_a_filtered_row_acts_on_nothing_and_comes_back(table: LineTable, stage: Staging):
    app = stage(table)
    async with app.run_test(size=(60, 11)) as pilot:
        table.update(["a", "b", "c"])
        await pilot.press("space", "space")
        table.update(["b", "c"])
        assert table.marks == {"b"}
        table.update(["a", "b", "c"])
        assert table.marks == {"a", "b"}
        table.action_clear_marks()
        await pilot.pause()
        assert table.marks == frozenset()
        assert len(app.sent_of(LineTable.MarksChanged)) == 3


async def test_scrolling_keeps_the_cursor_in_sight(table: LineTable, stage: Staging):
    app = stage(table)
    async with app.run_test(size=(60, 6)) as pilot:
        table.update([Group("g"), *range(50)])
        await pilot.press("pagedown", "pagedown")
        assert table.cursor == 8
        assert 8 in table.keys_in_sight
        table.update([Group("g"), *reversed(range(50))])
        await pilot.pause()
        assert table.cursor == 8
        assert 8 in table.keys_in_sight
        await pilot.resize_terminal(60, 3)
        await pilot.pause()
        assert 8 in table.keys_in_sight
        await pilot.press("home")
        assert table.cursor == 49
        await pilot.resize_terminal(60, 6)
        await pilot.pause()
        assert app.lines()[1].startswith(" pool g")  # the heading above the first row is seen again
        table.action_half_page_down()
        assert table.cursor == 47
        table.action_half_page_up()
        assert table.cursor == 49


async def test_the_wheel_moves_the_rows_and_not_the_cursor(table: LineTable, stage: Staging):
    async with stage(table).run_test(size=(60, 6)) as pilot:
        table.update(list(range(50)))
        await pilot.pause()
        table.scroll_rows(20)
        assert table.keys_in_sight[0] == 20
        assert table.cursor == 0
        table.update(None, {20})
        assert table.keys_in_sight[0] == 20
        table.scroll_rows(1000)
        assert table.keys_in_sight[-1] == 49
        await pilot.press("down")
        assert table.cursor == 1
        assert 1 in table.keys_in_sight


async def test_keys_and_clicks_tell_the_owner(table: LineTable, stage: Staging):
    app = stage(table)
    async with app.run_test(size=(60, 8)) as pilot:
        table.update([Group("g", collapsible=True), "a", "b"])
        await pilot.press("enter", "down", "enter")
        assert [each.group for each in app.sent_of(LineTable.GroupToggled)] == [Group("g")]
        assert [each.key for each in app.sent_of(LineTable.Activated)] == ["a"]
        await pilot.press("space")
        assert table.marks == {"a"}
        await pilot.click(table, offset=(3, 3))
        assert table.cursor == "b"
        await pilot.click(table, offset=(3, 2), times=2)
        assert [each.key for each in app.sent_of(LineTable.Activated)] == ["a", "a"]
        await pilot.click(table, offset=(3, 7))  # below the last row
        assert table.cursor == "a"
        assert table.move_cursor("b")
        assert not table.move_cursor("none")
        assert not LineTable(COLUMNS, lambda _: ()).move_cursor("x")


async def test_sorting_is_asked_by_headings_and_keys(table: LineTable, stage: Staging):
    app = stage(table)

    def asked() -> list[tuple[str, bool]]:
        return [(each.column, each.descending) for each in app.sent_of(LineTable.SortRequested)]

    async with app.run_test(size=(60, 8)) as pilot:
        table.update(["a"])
        await pilot.click(table, offset=(2, 0))
        assert asked() == [("name", False)]
        await pilot.click(table, offset=(12, 0))
        assert asked()[1:] == [("util", True)]
        table.set_sort("util", descending=True)
        await pilot.click(table, offset=(12, 0))
        assert asked()[2:] == [("util", False)]
        await pilot.click(table, offset=(58, 0))  # AGE does not sort
        assert len(asked()) == 3
        table.action_sort_next()
        table.action_sort_previous()
        table.action_sort_invert()
        table.set_sort("note")
        table.action_sort_next()
        await pilot.pause()
        assert asked()[3:] == [("note", False), ("name", False), ("util", False), ("name", False)]


async def test_narrow_terminals_drop_columns_and_never_break(table: LineTable, owner: Owner, stage: Staging):
    owner.values = {4: -1}
    app = stage(table)
    async with app.run_test(size=(60, 8)) as pilot:
        table.update([Group("g"), *range(100)])
        for width, height, keys in (
            (60, 8, ("name", "util", "note", "age")),
            (26, 5, ("name", "util", "note")),
            (20, 3, ("name", "util")),
            (9, 2, ("name",)),
            (1, 1, ()),
        ):
            await pilot.resize_terminal(width, height)
            await pilot.pause()
            assert table.columns_in_sight == keys
            assert max(len(line) for line in app.lines()) <= width
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        assert table.columns_in_sight[-1] == "age"


async def test_columns_can_be_changed(table: LineTable, owner: Owner, stage: Staging):
    app = stage(table)
    async with app.run_test(size=(60, 8)) as pilot:
        table.update([1])
        table.set_columns(COLUMNS[:2])
        await pilot.pause()
        assert app.lines()[:2] == [" NAME      UTIL", "▸n1          0%"]


async def test_every_theme_draws_the_table(owner: Owner, stage: Staging):
    for theme in ("dark", "light", "ansi", "high-contrast", "colour-blind", "nord"):
        app = stage(LineTable(COLUMNS, owner.cells), theme=theme)
        async with app.run_test(size=(60, 8)) as pilot:
            app.query_one(LineTable).update([1])
            await pilot.pause()
            assert app.lines()[1].startswith("▸n1")


async def test_a_change_of_theme_repaints_in_its_colours(table: LineTable, stage: Staging):
    app = stage(table)
    async with app.run_test(size=(60, 8)) as pilot:
        table.update([1])
        await pilot.pause()
        dark = table.render_line(1)
        app.theme = "light"
        await pilot.pause()
        await pilot.pause()
        assert table.render_line(1).text == dark.text
        assert list(table.render_line(1)) != list(dark)
        ok = next(segment for segment in table.render_line(1) if "0%" in segment.text)
        assert ok.style is not None
        assert ok.style.color is not None
        assert ok.style.color.name == "#116329"
