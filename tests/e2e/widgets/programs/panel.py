"""A header, a heat map of 1,280 cells, a chart, a text and a prompt for tests in a pty.

usage: panel.py THEME
"""

import random
import sys
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal

from gputop.themes.loader import load_themes
from gputop.themes.theme import to_textual
from gputop.widgets import left_crop
from gputop.widgets.cells import Cell
from gputop.widgets.chart import Chart, Scale, Series
from gputop.widgets.dialog import MenuDialog, MenuItem
from gputop.widgets.heatmap import Heatmap, HeatRow
from gputop.widgets.levels import level_glyph, util_role
from gputop.widgets.prompt import Prompt
from gputop.widgets.quiet_screen import QuietScreen
from gputop.widgets.status_line import StatusLines
from gputop.widgets.text_view import TextView

CELLS = 1280
PERCENT = Scale(0, 100, "{:.0f}%".format, left="-1m")


class PanelApp(App[None]):
    """The app; each key does one thing and then counts up in the header."""

    ENABLE_COMMAND_PALETTE = False
    CSS = "Horizontal { height: 12; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        ("c", "clock", ""),
        ("h", "heat", ""),
        ("a", "all", ""),
        ("n", "nothing", ""),
        ("m", "menu", ""),
        ("l", "light", ""),
        ("slash", "prompt", ""),
        ("f", "full", ""),
    ]

    def __init__(self, theme: str) -> None:
        super().__init__()
        self.animation_level = "none"
        for each in load_themes().themes.values():
            self.register_theme(to_textual(each))
        self.theme = theme
        self.random = random.Random(1)
        self.values = [self.random.randrange(101) for _ in range(CELLS)]
        self.series: list[float | None] = [50.0] * 60
        self.step = 0

    def get_default_screen(self) -> QuietScreen[None]:
        return QuietScreen(id="_default")

    def compose(self) -> ComposeResult:
        yield StatusLines(1)
        yield Heatmap(self.glyph)
        with Horizontal():
            yield Chart()
            yield TextView()
        yield Prompt("/", hint="filter")

    def on_mount(self) -> None:
        rows = [
            HeatRow(Cell(f"rack-{rack:02}", "dim"), range(rack * 64, rack * 64 + 64)) for rack in range(CELLS // 64)
        ]
        heat = self.query_one(Heatmap)
        heat.update(rows)
        heat.focus()
        self.draw()

    def glyph(self, key: object) -> tuple[str, str]:
        assert isinstance(key, int)
        return level_glyph(self.values[key]), util_role(self.values[key])

    def draw(self) -> None:
        last = self.series[-1]
        title = [Cell("util ", "dim"), Cell("?" if last is None else f"{last:.0f}%", util_role(last))]
        self.query_one(Chart).show(title, [Series("util", list(self.series))], PERCENT)
        lines = [
            Cell.of((f"gpu{number} ", "title"), (f"{value}%", util_role(value)))
            for number, value in enumerate(self.values[:8])
        ]
        self.query_one(TextView).set_lines(lines)
        self.query_one(StatusLines).set_line(0, [Cell("gputop", "title")], [Cell(f"step {self.step}")])

    def action_clock(self) -> None:
        self.step += 1
        self.query_one(StatusLines).set_line(0, [Cell("gputop", "title")], [Cell(f"step {self.step}")])

    def action_nothing(self) -> None:
        self.query_one(Heatmap).update(None, None)
        self.draw()

    def action_heat(self) -> None:
        dirty = set(self.random.sample(range(CELLS), CELLS // 10))
        for key in dirty:
            self.values[key] = self.random.randrange(101)
        self.query_one(Heatmap).update(None, dirty)
        self.action_clock()

    def action_all(self) -> None:
        self.values = [self.random.randrange(101) for _ in range(CELLS)]
        new = self.random.choice([None, float(self.random.randrange(101))])
        self.series = [*self.series[1:], new]
        self.query_one(Heatmap).update(None, None)
        self.step += 1
        self.draw()

    def action_menu(self) -> None:
        self.push_screen(MenuDialog("Sort by", [MenuItem(f"k{number}", f"column {number}") for number in range(9)]))

    def action_light(self) -> None:
        self.theme = "light"

    def action_prompt(self) -> None:
        self.query_one(Prompt).focus()

    def on_prompt_cancelled(self) -> None:
        self.query_one(Heatmap).focus()

    def action_full(self) -> None:
        self.screen.refresh()
        self.action_clock()


if __name__ == "__main__":
    reason = left_crop.install()
    assert reason is None, reason
    PanelApp(sys.argv[1]).run()
