"""Text in cells: exact widths, nothing that a terminal acts on."""

from __future__ import annotations

import random

import pytest
from rich.cells import cell_len

from gputop.widgets.cells import BLANK, Cell, fill, fit, shown, take, text_width, wrap

PIECES = [
    "a",
    "Z",
    " ",
    "日",
    "é",
    "e\u0301",
    "\u200b",
    "\x1b[31m",
    "\t",
    "█",
    "\u202e",
    "🙂",
    "\ufe0f",
    "\ud800",
    "\n",
]


def text_of(runs: tuple[tuple[str, str], ...]) -> str:
    return "".join(text for text, _ in runs)


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "[31mred[0m"),
        ("a\tb\nc\xa0d", "a b c d"),
        ("x\u202eevil\u2066", "xevil"),
        ("\u0301start", "start"),
        ("e\u0301", "e\u0301"),
        ("❤\ufe0f!", "❤!"),
        ("\ud800", ""),
        ("\x9b31m", "31m"),
        ("", ""),
    ],
)
def test_only_what_can_be_drawn_is_left(raw: str, seen: str):
    assert shown(raw) == seen


@pytest.mark.parametrize(
    ("text", "width", "align", "result"),
    [
        ("abc", 5, "left", "abc  "),
        ("abc", 5, "right", "  abc"),
        ("abcdef", 4, "left", "abc…"),
        ("abcdef", 4, "right", "abc…"),
        ("abcdef", 1, "left", "…"),
        ("日本語", 6, "left", "日本語"),
        ("日本語", 5, "left", "日本…"),
        ("日本語", 4, "left", "日… "),
        ("日本語", 7, "right", " 日本語"),
        ("abc", 0, "left", ""),
        ("abc", -3, "left", ""),
        ("", 2, "left", "  "),
    ],
)
def test_a_cell_fills_its_width(text: str, width: int, align: str, result: str):
    assert text_of(fit(Cell(text), width, align)) == result


def test_runs_keep_their_roles_when_cut():
    cell = Cell.of(("74", "warn"), ("/80G", "dim"), (" P", "bad"))
    assert fit(cell, 8) == (("74", "warn"), ("/80G", "dim"), (" P", "bad"))
    assert fit(cell, 5) == (("74", "warn"), ("/8…", "dim"))
    assert fit(cell, 10) == (("74", "warn"), ("/80G", "dim"), (" P  ", "bad"))
    assert fit(cell, 10, "right") == (("  74", "warn"), ("/80G", "dim"), (" P", "bad"))
    assert fit(cell, 2, ellipsis="~") == (("7~", "warn"),)
    assert fill([Cell("ab", "ok"), BLANK, Cell("cd", "bad")], 5) == (("ab", "ok"), ("cd ", "bad"))


def test_any_text_at_any_width_fills_exactly():
    chance = random.Random(5)
    for _ in range(3000):
        runs = [("".join(chance.choices(PIECES, k=chance.randrange(6))), "r") for _ in range(chance.randrange(1, 4))]
        width = chance.randrange(1, 14)
        text = text_of(fit(Cell.of(*runs), width, chance.choice(["left", "right"])))
        assert cell_len(text) == width, (runs, width, text)
        assert text.isprintable()


def test_the_width_of_a_cell_is_that_of_what_is_seen():
    assert Cell("a\x1b日").width == 3
    assert text_width("e\u0301🙂") == 3
    assert Cell.of() is BLANK
    assert Cell.of(("a", ""), ("b", "ok")).plain == "ab"


def test_taking_never_splits_a_wide_character():
    assert take("a日b", 2) == ("a", 1)
    assert take("a日b", 3) == ("a日", 3)
    assert take("e\u0301x", 1) == ("e\u0301", 1)


def test_wrapping_breaks_at_spaces_and_loses_nothing():
    cell = Cell.of(("ml/eval-70b", "title"), (" never fits: it asks 8 GPUs on a node", ""))
    lines = wrap(cell, 20, indent=2)
    assert [line.plain for line in lines] == ["ml/eval-70b never ", "  fits: it asks 8 ", "  GPUs on a node"]
    assert lines[0].role == "title"


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 10, [""]),
        ("a\nb", 10, ["a", "b"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("日本語", 3, ["日", "本", "語"]),
        ("日", 1, ["日"]),
        ("ab 日本語x", 4, ["ab ", "日本", "語x"]),
        ("a\n\nb", 5, ["a", "", "b"]),
    ],
)
def test_wrapping_of_hard_cases(text: str, width: int, lines: list[str]):
    assert [line.plain for line in wrap(Cell(text), width)] == lines


def test_wrapping_keeps_every_character_within_the_width():
    chance = random.Random(11)
    for _ in range(1500):
        text = "".join(chance.choices(["a", "bb ", " ", "日", "e\u0301", "long-word-here "], k=chance.randrange(12)))
        width = chance.randrange(2, 20)
        lines = wrap(Cell(text), width, indent=chance.choice([0, 2]))
        assert all(cell_len(line.plain) <= width for line in lines), (text, width, lines)
        assert "".join("".join(line.plain.split()) for line in lines) == "".join(text.split())
