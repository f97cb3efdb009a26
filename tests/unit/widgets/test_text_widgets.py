"""Text, status lines, the prompt and the dialogs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual import events

from gputop.widgets.cells import Cell
from gputop.widgets.dialog import MenuDialog, MenuItem, TextDialog
from gputop.widgets.line_table import LineTable
from gputop.widgets.prompt import Prompt
from gputop.widgets.status_line import StatusLines, status_runs
from gputop.widgets.text_view import TextView
from tests.unit.widgets.conftest import Dirty, Stage

Staging = Callable[..., Stage]


# -- text view


async def test_text_is_wrapped_scrolled_and_repainted_where_it_changed(stage: Staging, dirty: Callable[..., Dirty]):
    lines = [Cell.of(("ml/eval-70b", "title"), (" never fits: it asks 8 GPUs", "")), *map(Cell, "abcdefgh")]
    view = TextView(lines)
    app = stage(view)
    async with app.run_test(size=(22, 5)) as pilot:
        await pilot.pause()
        assert [line[:-1].rstrip() for line in app.lines()] == [
            " ml/eval-70b never",
            "   fits: it asks 8",
            "   GPUs",
            " a",
            " b",
        ]
        watched = dirty(view)
        view.set_lines(list(lines))
        assert watched.taken() == set()
        view.set_lines([*lines[:1], Cell("X"), *lines[2:]])
        assert watched.taken() == {(1, 3)}
        await pilot.press("end")
        assert app.lines()[-1].startswith(" h")
        view.set_lines(lines[:1])
        await pilot.pause()
        assert app.lines()[0].startswith(" ml/eval")
        assert view.plain == "ml/eval-70b never fits: it asks 8 GPUs"


async def test_text_can_be_cut_instead(stage: Staging):
    app = stage(TextView([Cell("NODE      TAINT   GPU   CPU")], wrapped=False))
    async with app.run_test(size=(20, 3)) as pilot:
        await pilot.pause()
        assert app.lines() == [" NODE      TAINT  …", "", ""]


async def test_text_scrolls_by_every_key(stage: Staging):
    view = TextView([Cell(str(number)) for number in range(40)])
    app = stage(view)

    def top() -> int:
        return int(app.lines()[0][:-1])

    async with app.run_test(size=(20, 10)) as pilot:
        seen = []
        for key in ("down", "pagedown", "up", "pageup", "end", "down", "home", "up"):
            await pilot.press(key)
            seen.append(top())
        assert seen == [1, 10, 9, 0, 30, 30, 0, 0]
        view.action_half_page_down()
        await pilot.pause()
        assert top() == 5


# -- status lines


def status(left: list[str], right: list[str], width: int) -> str:
    return "".join(
        text for text, _ in status_runs([Cell(item) for item in left], [Cell(item) for item in right], width)
    )


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (40, " nomad 403  busy 1102      ro  03:12:07 "),
        (27, " nomad 403  busy 1102   ro "),
        (20, " nomad 403       ro "),
        (11, " nomad 403 "),
        (8, " nomad… "),
        (2, "n…"),
        (0, ""),
    ],
)
def test_items_that_do_not_fit_are_left_out_whole(width: int, text: str):
    assert status(["nomad 403", "busy 1102"], ["ro", "03:12:07"], width) == text


def test_status_text_is_never_an_escape_and_fills_any_width():
    for width in range(60):
        assert len(status(["a\x1b[31mb", "", "c" * 9], ["d\n", "e"], width)) == width
    assert "\x1b" not in status(["a\x1b[31mb"], [], 20)


async def test_a_clock_writes_only_its_changed_digits(stage: Staging, dirty: Callable[..., Dirty]):
    header = StatusLines(2)
    app = stage(header)
    async with app.run_test(size=(40, 5)) as pilot:
        header.set_line(0, [Cell("gputop", "title")], [Cell("03:12:07")])
        header.set_line(1, [Cell("busy 1102")])
        await pilot.pause()
        assert app.lines()[:2] == [" gputop                        03:12:07", " busy 1102"]
        watched = dirty(header)
        header.set_line(0, [Cell("gputop", "title")], [Cell("03:12:08")])
        assert watched.taken() == {(38, 0)}
        with pytest.raises(IndexError):
            header.set_line(2, [])


# -- prompt


async def test_typing_editing_and_leaving(stage: Staging):
    prompt = Prompt("/", hint="filter")
    app = stage(prompt)
    async with app.run_test(size=(30, 3)) as pilot:
        assert app.lines()[0] == "/ filter"
        await pilot.press("a", "b", "q", "left", "X", "home", "delete", "end", "backspace", "space", "é")
        assert prompt.value == "bX é"
        await pilot.press("enter", "ctrl+w", "escape", "ctrl+u")
        await pilot.pause()
        assert prompt.value == ""
        assert [each.value for each in app.sent_of(Prompt.Submitted)] == ["bX é"]
        assert [each.value for each in app.sent_of(Prompt.Cancelled)] == ["bX "]
        assert app.sent_of(Prompt.Changed)[-1].value == ""


async def test_a_pasted_text_is_one_clean_line(stage: Staging):
    prompt = Prompt("/")
    app = stage(prompt)
    async with app.run_test(size=(30, 3)) as pilot:
        prompt.post_message(events.Paste("gpu\x1b[31m-a01\tx\nrm -rf"))
        await pilot.pause()
        assert prompt.value == "gpu[31m-a01 x"
        prompt.post_message(events.Paste("y" * 100_000))
        await pilot.pause()
        assert len(prompt.value) == 4096


async def test_the_caret_stays_in_sight(stage: Staging):
    prompt = Prompt("/", value="日本語" * 10)
    app = stage(prompt)
    async with app.run_test(size=(20, 3)) as pilot:
        for keys in (["end"], ["left"] * 5, ["home"], ["right"] * 12, ["x"] * 9):
            await pilot.press(*keys)
            grounds = [segment.style and segment.style.bgcolor for segment in prompt.render_line(0)]
            assert sum(ground != grounds[0] for ground in grounds) == 1, app.lines()[0]
        prompt.set_note(Cell("3 of 160", "dim"))
        await pilot.pause()
        assert app.lines()[0].endswith("3 of 160")
        await pilot.resize_terminal(10, 3)
        await pilot.pause()
        assert "160" not in app.lines()[0]
        for width in (4, 2, 1):
            await pilot.resize_terminal(width, 1)
            await pilot.pause()


async def test_keys_that_are_typed_do_not_act_on_the_app(stage: Staging):
    class Quitter(Stage):
        BINDINGS = [("q", "quit", "Quit")]  # noqa: RUF012 - as Textual has it

    app = Quitter([Prompt("/")])
    async with app.run_test() as pilot:
        await pilot.press("q", "q")
        assert app.query_one(Prompt).value == "qq"


# -- dialogs

ITEMS = [MenuItem(f"key{number}", f"Column {number}", f"note{number}", selected=number == 3) for number in range(30)]


async def test_a_menu_narrows_and_answers(stage: Staging):
    app = stage(TextView())
    answers: list[str | None] = []
    async with app.run_test(size=(40, 12)) as pilot:
        app.push_screen(MenuDialog("Sort by", ITEMS), answers.append)
        await pilot.pause()
        assert app.lines()[0] == " Sort by"
        assert any(line.startswith("▸Column 3 ") for line in app.lines())
        await pilot.press("down", "enter")
        await pilot.pause()
        assert answers == ["key4"]
        app.push_screen(MenuDialog("Sort by", ITEMS), answers.append)
        await pilot.pause()
        await pilot.press("2", "7", "space", "c", "O")
        await pilot.pause()
        assert [line for line in app.lines()[2:-1] if line] == ["▸Column 27                        note27"]
        await pilot.press("x")
        await pilot.pause()
        assert app.lines()[2] == " nothing matches"
        await pilot.press("enter")
        assert answers == ["key4"]
        await pilot.press("escape")
        await pilot.pause()
        assert answers == ["key4", None]


async def test_a_menu_is_used_by_mouse_and_pages(stage: Staging):
    app = stage(TextView())
    answers: list[str | None] = []
    async with app.run_test(size=(40, 12)) as pilot:
        app.push_screen(MenuDialog("Sort by", ITEMS), answers.append)
        await pilot.pause()
        await pilot.press("pagedown", "pagedown", "pageup", "up")
        table = app.screen.query_one(LineTable)
        assert table.cursor == "key10"
        second = table.keys_in_sight[1]
        await pilot.click(table, offset=(3, 1), times=2)
        await pilot.pause()
        assert answers == [second]


async def test_help_scrolls_and_closes_even_on_a_tiny_terminal(stage: Staging):
    app = stage(TextView())
    answers: list[str | None] = []
    async with app.run_test(size=(20, 3)) as pilot:
        app.push_screen(TextDialog("Help", [Cell(f"line {number}") for number in range(20)]), answers.append)
        await pilot.pause()
        assert [line[:-1].strip() for line in app.lines()] == ["line 0", "line 1", "line 2"]
        await pilot.press("j", "j", "k", "G")
        assert app.lines()[2].startswith(" line 19")
        await pilot.press("g")
        assert app.lines()[0].startswith(" line 0")
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        assert app.lines()[0].strip() == "Help"
        assert "esc close" in app.lines()[-1]
        await pilot.press("q")
        await pilot.pause()
        assert answers == [None]
