"""The help: every key of the registry by heading, and what glyphs and marks mean."""

from itertools import groupby
from typing import Final

from gputop.keymap import actions, spelled
from gputop.panes.registry import PANES
from gputop.widgets.cells import Cell

_MARKS: Final = (
    ("81%", "", "a number, fresh"),
    ("81%", "stale", "a stale number: its source has not told a newer one; AGE says for how long"),
    ("~3", "stale", "a row in which some number is stale"),
    ("59!", "bad", "a temperature near its limit; a PCIe link that is slow under load"),
    ("n/a", "na", "the device has no such value, or sent one that cannot be"),
    ("?", "unknown", "nobody told, or we may not know; details say why"),
)


def help_lines(*, read_only: bool) -> list[Cell]:
    """Return the lines of the help."""
    lines = [Cell("Panes", "title")]
    lines += [Cell.of((f"  {n + 1:<12}", "key"), (p.title, "")) for n, p in enumerate(PANES)]
    for heading, group in groupby(actions(read_only=read_only), key=lambda a: a.group):
        lines += [Cell(""), Cell(heading, "title")]
        lines += [Cell.of((f"  {spelled(a):<12}", "key"), (a.words, "")) for a in group]
    lines += [Cell(""), Cell("What stands in a cell", "title")]
    lines += [Cell.of((f"  {text:<12}", role), (words, "")) for text, role, words in _MARKS]
    lines += [
        Cell(""),
        Cell("Text can be selected with the mouse while shift is held, or start with --no-mouse.", "dim"),
    ]
    return lines
