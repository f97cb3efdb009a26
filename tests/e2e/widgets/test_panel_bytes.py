"""What the other widgets write to a terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e.widgets.conftest import Terminal

Start = Callable[..., Terminal]


def started(terminal: Start, theme: str, **environment: str) -> Terminal:
    """Start the panel and wait until it has settled."""
    program = terminal("panel.py", theme, columns=100, lines=36, **environment)
    program.until_shown("step 0")
    program.quiet(0.6)
    program.written = 0
    return program


def test_idle_and_unchanged_widgets_write_nothing(terminal: Start):
    program = started(terminal, "dark")
    program.quiet(1.5)  # a caret that blinked would write within this time
    program.type("n")
    program.quiet(0.6)
    program.type("/")
    program.until(lambda: program.written > 0)  # the caret appears in the prompt, the cursor goes dull
    program.quiet(1.2)
    focused = program.written
    program.quiet(1.2)
    assert program.written == focused < 300


def test_a_clock_costs_a_few_bytes(terminal: Start):
    program = started(terminal, "dark")
    assert program.bytes_of("c", "step 1") < 80


def test_a_tenth_of_a_heat_map_costs_little(terminal: Start):
    program = started(terminal, "dark")
    assert program.bytes_of("h", "step 1") < 4096
    assert started(terminal, "ansi").bytes_of("h", "step 1") < 2560


@pytest.mark.parametrize("theme", ["dark", "ansi"])
def test_changes_a_menu_and_another_theme_leave_the_screen_of_a_full_repaint(terminal: Start, theme: str):
    program = started(terminal, theme)
    program.type("hahaa\x1b[C\x1b[B\x1b[C")
    program.until_shown("step 5")
    program.type("m")
    program.until_shown("Sort by")
    program.type("\x1b[B3")
    program.until_shown("> 3")
    program.type("\x1b")
    program.until_shown("rack-00")
    program.type("/")
    program.quiet()
    program.type("gpu-a\x7f")
    program.until_shown("/gpu-")
    program.type("\x1b")
    program.quiet()
    if theme == "dark":
        program.type("l")
        program.quiet(0.6)
    program.type("ah")
    program.until_shown("step 7")
    program.quiet()
    before = program.picture()
    assert program.bytes_of("f", "step 8") > 3000
    after = program.picture()
    assert [line for line in range(1, 36) if before[line] != after[line]] == [], "\n".join(program.screen.display)
