"""Glyphs, sparklines, bars and charts: what is drawn is what was measured."""

from __future__ import annotations

import math

import pytest

from gputop.widgets.bars import Part, bar, bar_cell, stacked_bar
from gputop.widgets.cells import Cell, Line
from gputop.widgets.chart import Chart, Scale, Series, chart
from gputop.widgets.levels import level_glyph, util_role
from gputop.widgets.spark import spark

NAN = math.nan
PERCENT = Scale(0, 100, "{:.0f}%".format, left="-15m")


@pytest.mark.parametrize(
    ("value", "glyph", "plain", "role"),
    [
        (0, "▁", "_", "util-0"),
        (12.4, "▁", "_", "util-1"),
        (12.5, "▂", ".", "util-1"),
        (50, "▅", "=", "util-2"),
        (89.9, "█", "#", "util-3"),
        (100, "█", "#", "util-4"),
        (100.1, "?", "?", "unknown"),
        (-1, "?", "?", "unknown"),
        (65535, "?", "?", "unknown"),
        (None, "?", "?", "unknown"),
        (NAN, "?", "?", "unknown"),
        (math.inf, "?", "?", "unknown"),
    ],
)
def test_one_glyph(value: float | None, glyph: str, plain: str, role: str):
    assert level_glyph(value) == glyph
    assert level_glyph(value, ascii_only=True) == plain
    assert util_role(value) == role


def test_an_empty_range_shows_nothing_as_known():
    assert level_glyph(5, 5, 5) == "?"
    assert bar(5, 4, 5, 5) == "?   "


@pytest.mark.parametrize(
    ("values", "width", "text"),
    [
        ([], 4, "    "),
        ([0, 100], 4, "  ▁█"),
        ([0, 0, 0, 0, 0, 100], 3, "▁▁█"),
        ([50, None, NAN, 50], 4, "▅  ▅"),
        ([50, 120, -3, 0], 4, "▅??▁"),
        ([1], 0, ""),
    ],
)
def test_sparklines(values: list[float | None], width: int, text: str):
    assert spark(values, width) == text


def test_sparklines_of_another_range_and_in_ascii():
    assert spark([350, 700, 0], 3, 0, 700) == "▅█▁"
    assert spark([350, None, 700, 701], 4, 0, 700, ascii_only=True) == "= #?"


@pytest.mark.parametrize(
    ("value", "text", "plain"),
    [
        (0, "        ", "        "),
        (0.01, "▁       ", ".       "),
        (50, "▇▇▇▇    ", "####    "),
        (56.25, "▇▇▇▇▄   ", "####:   "),
        (99.9, "▇▇▇▇▇▇▇▇", "########"),
        (100, "▇▇▇▇▇▇▇▇", "########"),
        (101, "?       ", "?       "),
        (-0.5, "?       ", "?       "),
        (None, "?       ", "?       "),
        (NAN, "?       ", "?       "),
    ],
)
def test_bars(value: float | None, text: str, plain: str):
    assert bar(value, 8) == text
    assert bar(value, 8, ascii_only=True) == plain


def test_bars_grow_with_the_value():
    order = " ▁▂▃▄▅▆▇"
    drawn = [[order.index(glyph) for glyph in bar(value / 10, 10)] for value in range(1001)]
    assert drawn == sorted(drawn)
    assert bar(50, 0) == ""
    assert bar(35, 10, 0, 70) == bar(50, 10)


def test_a_bar_that_cannot_be_drawn_is_unknown():
    assert bar_cell(97, 5, "util-4").role == "util-4"
    assert bar_cell(197, 5, "util-4") == ("?    ", "unknown", ())


@pytest.mark.parametrize(
    ("amounts", "total", "text"),
    [
        ((40, 0), 80, "##########          "),
        ((74, 2), 80, "##################r "),
        ((78, 2), 80, "###################r"),
        ((1, 79), 80, "#rrrrrrrrrrrrrrrrrrr"),
        ((0.001, 0.001), 80, "#r                  "),
        ((0, 0), 80, " " * 20),
        ((80.0, 0), 80, "#" * 20),
        ((0.1, 0.2), 0.3, "#######rrrrrrrrrrrrr"),
        ((81, 0), 80, "?" + " " * 19),
        ((-1, 2), 80, "?" + " " * 19),
        ((1, 1), None, "?" + " " * 19),
        ((1, 1), 0, "?" + " " * 19),
    ],
)
def test_bars_of_parts(amounts: tuple[float, float], total: float | None, text: str):
    used, reserved = amounts
    parts = [Part(used, "busy", "#"), Part(reserved, "dim", "r")]
    assert stacked_bar(parts, total, 20).plain == text


def test_no_part_is_lost_in_a_bar_of_three():
    parts = [Part(79.9, "a", "A"), Part(0.05, "b", "B"), Part(0.05, "c", "C")]
    assert stacked_bar(parts, 80, 6).plain == "AAAABC"


def plain(lines: list[Line]) -> list[str]:
    return [line.plain for line in lines]


def test_a_chart_rises_to_the_right():
    lines = plain(chart([Series("util", [0, 25, 50, 75, 100])], PERCENT, 20, 6, ascii_only=True))
    assert lines == [
        "100%+             **",
        "    |         ****  ",
        " 50%+      ***      ",
        "    |  ****         ",
        "  0%+**             ",
        "    +-15m--------now",
    ]


def test_a_gap_stays_a_gap():
    values = [50.0] * 40 + [None] * 40 + [NAN] * 10 + [50.0] * 40
    for ascii_only in (True, False):
        lines = plain(chart([Series("util", values)], PERCENT, 60, 6, ascii_only=ascii_only))
        row = next(line for line in lines if line.startswith(" 50%"))[5:]
        drawn = [glyph != " " for glyph in row]
        left, right = drawn.index(False), len(drawn) - 1 - drawn[::-1].index(False)
        assert drawn == [True] * left + [False] * (right - left + 1) + [True] * (len(drawn) - right - 1)
        assert right - left + 1 == pytest.approx(len(drawn) * 50 / 130, abs=2)


def test_values_outside_the_axes_are_not_drawn():
    inside = chart([Series("util", [50.0, None, 50.0])], PERCENT, 30, 8)
    outside = chart([Series("util", [50.0, 65535.0, 50.0])], PERCENT, 30, 8)
    assert inside == outside


def test_a_single_value_is_a_dot_at_the_right_edge():
    lines = plain(chart([Series("util", [100])], PERCENT, 20, 5, ascii_only=True))
    assert lines[0] == "100%+              *"
    assert [line[5:].strip() for line in lines[1:4]] == ["", "", ""]


def test_a_short_peak_is_not_lost_among_many_values():
    values: list[float | None] = [0.0] * 5000
    values[2500] = 100.0
    lines = plain(chart([Series("util", values)], PERCENT, 40, 6, ascii_only=True))
    assert "*" in lines[0]


def test_several_lines_are_told_apart_without_colour():
    series = [
        Series("util", [0, 0], "chart-1"),
        Series("power", [100, 100], "chart-2"),
        Series("old", [50, None]),
    ]
    lines = plain(chart(series, PERCENT, 30, 6, ascii_only=True))
    assert lines[0].endswith("++p")
    assert lines[4].endswith("**u")
    assert not any(line.endswith("o") for line in lines)  # nothing is known of its end
    roles = {role for line in chart(series, PERCENT, 30, 6) for _, role in line.runs}
    assert {"chart-1", "chart-2", "axis"} <= roles


@pytest.mark.parametrize("size", [(0, 0), (1, 1), (7, 3), (8, 2), (8, 3), (20, 3), (300, 80)])
def test_a_chart_of_any_size_fills_it(size: tuple[int, int]):
    width, height = size
    values: list[float | None] = [math.sin(each / 7) * 50 + 50 for each in range(300)]
    for ascii_only in (True, False):
        lines = plain(chart([Series("a", values), Series("b", [])], PERCENT, width, height, ascii_only=ascii_only))
        assert [len(line) for line in lines] == [width] * height
        assert not ascii_only or all(line.isascii() for line in lines)


async def test_the_widget_draws_title_and_lines_and_only_what_changed(stage, dirty):
    widget = Chart(ascii_only=True)
    app = stage(widget)
    async with app.run_test(size=(30, 7)) as pilot:
        widget.show([Cell("util ", "dim"), Cell("50%", "util-2")], [Series("util", [50, 50])], PERCENT)
        await pilot.pause()
        assert app.lines()[0] == "util 50%"
        assert app.lines()[3].startswith(" 50%+****")
        watched = dirty(widget)
        widget.show([Cell("util ", "dim"), Cell("51%", "util-2")], [Series("util", [50, 50])], PERCENT)
        assert watched.taken() == {(6, 0)}
        await pilot.resize_terminal(20, 3)
        await pilot.pause()
        assert app.lines()[0] == "util 51%"
