"""What the table writes to a terminal: nothing when nothing changed, little when little did."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.e2e.widgets.conftest import Terminal

Start = Callable[..., Terminal]


def started(terminal: Start, *arguments: str, **options: object) -> Terminal:
    """Start the table and wait until it has settled."""
    program = terminal("table.py", *arguments, **options)
    program.until_shown("step 0")
    program.quiet(0.6)
    program.written = 0
    return program


def test_an_unchanged_table_writes_nothing(terminal: Start):
    program = started(terminal, "dark", "1")
    program.quiet(1.5)
    assert program.written == 0
    program.type("n")  # every row asked again, in an equal order
    program.quiet(0.6)
    assert program.written == 0


def test_the_mouse_passing_over_writes_nothing(terminal: Start):
    program = started(terminal, "dark", "1")
    for column in range(5, 60, 5):
        program.type(f"\x1b[<35;{column};10M")
    program.quiet(0.6)
    assert program.written == 0


def test_a_tenth_of_the_rows_costs_little(terminal: Start):
    program = started(terminal, "dark", "1")
    for step in range(1, 6):
        assert 0 < program.bytes_of("t", f"step {step}") < 4096


def test_cutting_at_both_ends_halves_the_bytes(terminal: Start):
    """The replaced method is in use and worth it."""
    cut = started(terminal, "dark", "1").bytes_of("a", "step 1")
    uncut = started(terminal, "dark", "1", "--no-crop").bytes_of("a", "step 1")
    assert cut < 0.6 * uncut


def test_a_step_of_the_cursor_writes_two_lines(terminal: Start):
    program = started(terminal, "dark", "1")
    program.type("\x1b[B")
    program.until(lambda: program.screen.display[3].startswith("▸"))
    program.quiet()
    lines = {int(line) for line in re.findall(rb"\x1b\[(\d+);\d+H", program.last[-program.written :])}
    assert lines - {1} == {3, 4}
    assert program.written < 2048


@pytest.mark.parametrize(
    ("theme", "environment"),
    [
        ("dark", {}),
        ("ansi", {}),
        ("dark", {"COLORTERM": "", "TERM": "xterm-256color"}),
        ("ansi", {"COLORTERM": "", "TERM": "linux"}),
        ("ansi", {"NO_COLOR": "1"}),
        ("light", {"NO_COLOR": "1"}),
    ],
    ids=["truecolor", "ansi", "256", "16", "no-color", "no-color-light"],
)
def test_partial_updates_make_the_screen_of_a_full_repaint(terminal: Start, theme: str, environment: dict[str, str]):
    """After random changes of rows, order, cursor and scrolling, every cell is as if drawn anew."""
    program = started(terminal, theme, "7", columns=120, lines=30, **environment)
    step = 0
    for keys in ("r", "rr", "\x1b[B", "o", "t", "\x1b[6~\x1b[5~", " ", "oa", "rrr"):
        step += sum(key in "rotaf" for key in re.sub(r"\x1b\[.~?", "", keys))
        program.type(keys)
        program.type("\x1b[H")  # the group's line with the step is in sight at the top
        program.until_shown(f"step {step} ")
        program.quiet(0.15)
    before = program.picture()
    assert program.bytes_of("f", f"step {step + 1} ") > 3000  # the whole screen
    after = program.picture()
    text = f"step {step + 1} "
    heads = [line for line in range(30) if text in program.screen.display[line]]
    differing = [line for line in range(30) if line not in heads and before[line] != after[line]]
    assert differing == [], "\n".join(program.screen.display)
