"""The map of one glyph a cell."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from gputop.widgets.cells import Cell
from gputop.widgets.heatmap import Heatmap, HeatRow
from tests.unit.widgets.conftest import Dirty, Stage

Staging = Callable[..., Stage]


class Owner:
    def __init__(self) -> None:
        self.glyphs: dict[Hashable, str] = {}
        self.asked: list[Hashable] = []

    def glyph(self, key: Hashable) -> tuple[str, str]:
        self.asked.append(key)
        return self.glyphs.get(key, "#"), "ok"


def rows(**sizes: int) -> list[HeatRow]:
    return [HeatRow(Cell(name, "dim"), [f"{name}{each}" for each in range(size)]) for name, size in sizes.items()]


async def test_rows_go_on_below_and_cells_line_up(stage: Staging):
    owner = Owner()
    owner.glyphs = {"a1": "x", "a21": "日", "b0": "\x1b", "b1": "??"}
    heat = Heatmap(owner.glyph)
    app = stage(heat)
    async with app.run_test(size=(24, 6)) as pilot:
        heat.update(rows(a=25, b=3, empty=0))
        await pilot.pause()
        # Five cells of label, a gap, seventeen cells, one column for the scroll bar.
        assert app.lines() == [
            "a     #x###############",
            "      ####?###",
            "b      ?#",
            "empty",
            "",
            "",
        ]


async def test_thousands_of_cells_ask_only_for_what_is_seen_and_dirty(stage: Staging, dirty: Callable[..., Dirty]):
    owner = Owner()
    heat = Heatmap(owner.glyph)
    async with stage(heat).run_test(size=(100, 20)) as pilot:
        many = [HeatRow(Cell(f"rack{rack:02}"), [(rack, each) for each in range(256)]) for rack in range(40)]
        heat.update(many)
        await pilot.pause()
        assert 20 * 60 < len(set(owner.asked)) < 20 * 100
        owner.asked.clear()
        watched = dirty(heat)
        owner.glyphs[(1, 3)] = "X"
        heat.update(many, {(1, 3), (39, 255)})
        assert owner.asked == [(1, 3)]
        assert watched.taken() == {(7 + 3, 3)}
        heat.update(list(many), set())
        assert watched.taken() == set()
        assert watched.whole == 0


async def test_the_cursor_is_an_identity(stage: Staging):
    heat = Heatmap(Owner().glyph)
    app = stage(heat)
    async with app.run_test(size=(24, 6)) as pilot:
        heat.update(rows(a=25, b=3))
        await pilot.press("right", "right")
        assert heat.cursor == "a2"
        heat.update(rows(z=4, a=25))
        await pilot.pause()
        assert heat.cursor == "a2"
        await pilot.press("up")
        assert heat.cursor == "z2"
        heat.update(rows(a=25))
        assert heat.cursor is not None
        heat.update([])
        await pilot.press("up", "left", "end", "enter")
        assert heat.cursor is None
        heat.update(rows(c=1))
        await pilot.pause()
        assert [each.key for each in app.sent_of(Heatmap.CursorMoved)][-2:] == [None, "c0"]
        assert app.sent_of(Heatmap.Activated) == []


async def test_moving_over_rows_of_unlike_length(stage: Staging):
    heat = Heatmap(Owner().glyph, empty="nothing")
    app = stage(heat)
    async with app.run_test(size=(24, 4)) as pilot:
        await pilot.pause()
        assert app.lines()[0] == "nothing"
        heat.update(rows(a=25, b=3, empty=0, c=60))
        await pilot.press("end")
        assert heat.cursor == "c59"
        await pilot.press("home", *["right"] * 10, "down", "down")
        assert heat.cursor == "b2"
        await pilot.press("down")  # over the row without cells
        assert heat.cursor == "c2"
        await pilot.press("up", "up", "up", "up", "up")
        assert heat.cursor == "a2"
        await pilot.press("pagedown", "pagedown", "pagedown", "pagedown")
        assert heat.cursor == "c53"
        assert heat.move_cursor("b1")
        assert not heat.move_cursor("zz")
        await pilot.press("enter")
        assert [each.key for each in app.sent_of(Heatmap.Activated)] == ["b1"]


async def test_clicks_and_wheel(stage: Staging):
    heat = Heatmap(Owner().glyph)
    app = stage(heat)
    async with app.run_test(size=(24, 4)) as pilot:
        heat.update(rows(a=300))
        await pilot.pause()
        await pilot.click(heat, offset=(5, 1))
        assert heat.cursor == "a24"  # 21 cells on a line, the third of the second
        await pilot.click(heat, offset=(0, 1))  # the label
        assert heat.cursor == "a24"
        await pilot.click(heat, offset=(2, 0), times=2)
        assert [each.key for each in app.sent_of(Heatmap.Activated)] == ["a0"]
        heat.scroll_lines(5)
        await pilot.pause()
        assert heat.cursor == "a0"
        assert app.lines()[0][0] == " "


async def test_odd_sizes_do_not_break(stage: Staging):
    heat = Heatmap(Owner().glyph, ascii_only=True)
    app = stage(heat)
    async with app.run_test(size=(80, 24)) as pilot:
        heat.update(rows(a=100, long_name_of_a_pool=30))
        for size in ((20, 3), (5, 2), (2, 1), (1, 1), (300, 80)):
            await pilot.resize_terminal(*size)
            await pilot.press("down", "end", "home", "right")
            assert max(len(line) for line in app.lines()) <= size[0]
            assert all(line.isascii() for line in app.lines())
