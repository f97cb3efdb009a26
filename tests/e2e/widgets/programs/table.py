"""A table of a thousand rows for tests in a pty; keys say what changes.

usage: table.py THEME SEED [--no-crop]
"""

import random
import sys
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType

from gputop.themes.loader import load_themes
from gputop.themes.theme import to_textual
from gputop.widgets import left_crop
from gputop.widgets.cells import Cell
from gputop.widgets.columns import Column
from gputop.widgets.line_table import LineTable
from gputop.widgets.row_order import Group

ROWS = 1000
NAMES = ("llama-ft-0", "日本語の仕事", "étude", "x\x1b[31mred", "[bold]no markup[/]", "")
COLUMNS = (
    Column("node", "NODE", 10),
    Column("util", "UTIL", 5, align="right"),
    Column("bar", "", 20, priority=1),
    Column("vram", "VRAM", 9, align="right"),
    Column("watts", "W", 7, align="right"),
    Column("temp", "°C", 4, align="right"),
    Column("clock", "CLK", 5, align="right", priority=2),
    Column("holder", "HOLDER", 20, min_width=8, flex=1, priority=1),
    Column("health", "HEALTH", 20, min_width=8, flex=1, priority=2),
    Column("driver", "DRIVER", 12, priority=3),
    Column("pool", "POOL", 8, priority=3),
    Column("age", "AGE", 5, align="right"),
)


class TableApp(App[None]):
    """The app; each key does one thing and then counts up in the title column."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        ("n", "nothing", ""),
        ("t", "tenth", ""),
        ("a", "all", ""),
        ("r", "random", ""),
        ("o", "order", ""),
        ("f", "full", ""),
        ("q", "quit", ""),
    ]

    def __init__(self, theme: str, seed: int) -> None:
        super().__init__()
        self.animation_level = "none"
        for each in load_themes().themes.values():
            self.register_theme(to_textual(each))
        self.theme = theme
        self.random = random.Random(seed)
        self.values = [self.random.randrange(101) for _ in range(ROWS)]
        self.names = [self.random.choice(NAMES) for _ in range(ROWS)]
        self.keys: list[object] = [Group("pool"), *range(ROWS)]
        self.step = 0

    def compose(self) -> ComposeResult:
        yield LineTable(COLUMNS, self.cells, empty="nothing yet")

    def on_mount(self) -> None:
        table = self.query_one(LineTable)
        table.focus()
        table.update(self.keys)
        table.set_sort("step 0")

    def cells(self, key: object) -> tuple[Cell | None, ...]:
        if isinstance(key, Group):
            return (Cell(f"pool {key.id} step {self.step}", "group"),)
        assert isinstance(key, int)
        value = self.values[key]
        if value < 4:
            return (Cell(f"gpu-a{key:03}"), Cell("LOST since 03:08:11", "bad"), *([None] * 9), Cell("4m"))
        level = f"util-{value // 25}"
        return (
            Cell(f"gpu-a{key:03}"),
            Cell(f"{value}%", level),
            Cell.of(("▇" * (value // 5), level), ("·" * (20 - value // 5), "dim")),
            Cell(f"{value * 80 // 100}/80G"),
            Cell(f"{value * 7}", "warn" if value > 90 else ""),
            Cell(f"{30 + value // 2}"),
            Cell(f"{1400 + value}"),
            Cell(self.names[key], "info"),
            Cell("ok", "ok"),
            Cell("570.86.15", "dim"),
            Cell("h100"),
            Cell("0s", "dim"),
        )

    def tick(self, dirty: set[object] | None) -> None:
        self.step += 1
        self.query_one(LineTable).update(self.keys, None if dirty is None else {Group("pool"), *dirty})

    def change(self, rows: list[int]) -> set[object]:
        for row in rows:
            self.values[row] = self.random.randrange(101)
            self.names[row] = self.random.choice(NAMES)
        return set(rows)

    def action_nothing(self) -> None:
        self.query_one(LineTable).update(list(self.keys), None)

    def action_tenth(self) -> None:
        self.tick(self.change([row for row in range(ROWS) if row % 10 == self.step % 10]))

    def action_all(self) -> None:
        self.change(list(range(ROWS)))
        self.tick(None)

    def action_random(self) -> None:
        self.tick(self.change(self.random.sample(range(50), self.random.randrange(1, 30))))

    def action_order(self) -> None:
        rows = list(range(ROWS))
        first = rows[:60]
        self.random.shuffle(first)
        self.keys = [Group("pool"), *first[: self.random.randrange(20, 60)], *rows[60:]]
        self.tick(None)

    def action_full(self) -> None:
        self.step += 1
        self.query_one(LineTable).update(None, {Group("pool")})
        self.screen.refresh()


if __name__ == "__main__":
    if "--no-crop" not in sys.argv:
        reason = left_crop.install()
        assert reason is None, reason
    TableApp(sys.argv[1], int(sys.argv[2])).run()
