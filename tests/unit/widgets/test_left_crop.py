"""The replaced method of Textual: what it writes, and that it stays out where it does not know its way."""

from __future__ import annotations

import pytest
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual import _compositor
from textual.geometry import Region
from textual.strip import Strip

from gputop.widgets import left_crop

RED, BOLD_RED, BLUE_ON_WHITE = (
    Style.parse("#ff0000"),
    Style.parse("bold #ff0000"),
    Style.parse("blue on white"),
)


ORIGINALS = {name: getattr(_compositor, name).render_segments for name in ("ChopsUpdate", "LayoutUpdate")}


@pytest.fixture(autouse=True)
def own_textual(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test Textual's own methods, and give them back."""
    for name, original in ORIGINALS.items():
        fresh = type(name, (getattr(_compositor, name),), {"render_segments": original})
        monkeypatch.setattr(_compositor, name, fresh)


def console(system: str = "truecolor") -> Console:
    return Console(color_system=system, force_terminal=True, legacy_windows=False, _environ={})  # type: ignore[arg-type]  # a name


def strip(*parts: tuple[str, Style | None]) -> Strip:
    return Strip([Segment(text, style) for text, style in parts])


def rendered(line: Strip, *spans: tuple[int, int], system: str = "truecolor", x: int = 0) -> str:
    update = _compositor.ChopsUpdate([{x: line}], [(0, *span) for span in spans], [[x + line.cell_length]])
    return left_crop.render_chops(update, console(system))


def test_it_takes_the_place_of_the_known_method_once():
    assert not left_crop.installed()
    assert left_crop.install() is None
    assert left_crop.installed()
    assert _compositor.ChopsUpdate.render_segments is left_crop.render_chops
    assert _compositor.LayoutUpdate.render_segments is left_crop.render_layout
    assert left_crop.install() is None


def test_a_range_is_cut_at_both_ends():
    line = strip(("abc", RED), ("def", BOLD_RED), ("ghi", None))
    assert rendered(line, (4, 5)) == "\x1b[1;5H\x1b[1;38;2;255;0;0me\x1b[0m"
    assert rendered(line, (2, 4)) == "\x1b[1;3H\x1b[38;2;255;0;0mc\x1b[1md\x1b[0m"
    assert rendered(line, (7, 20)) == "\x1b[1;8Hhi"
    assert rendered(line, (0, 1), (8, 9)) == "\x1b[1;1H\x1b[38;2;255;0;0ma\x1b[1;9H\x1b[0mi"
    assert rendered(line, (1, 2), x=1) == "\x1b[1;2H\x1b[38;2;255;0;0ma\x1b[0m"


def test_only_what_differs_is_named():
    line = strip(("a", BOLD_RED), ("b", RED), ("c", BLUE_ON_WHITE), ("d", Style.parse("on white")), ("e", None))
    assert rendered(line, (0, 5), system="standard") == ("\x1b[1;1H\x1b[1;31ma\x1b[0;31mb\x1b[34;47mc\x1b[39md\x1b[0me")


def test_links_are_written_whole():
    line = strip(("a", RED), ("b", Style(link="https://example.org")))
    text = rendered(line, (0, 2))
    assert "\x1b]8;" in text
    assert text.endswith("b\x1b]8;;\x1b\\")
    assert text.index("\x1b[0m") < text.index("\x1b]8;")


def test_covered_parts_of_a_line_are_skipped():
    update = _compositor.ChopsUpdate(
        [{0: strip(("abc", None)), 3: None, 6: strip(("ghi", None))}],
        [(0, 2, 7)],
        [[3, 6, 9]],
    )
    assert left_crop.render_chops(update, console()) == "\x1b[1;3Hc\x1b[1;7Hg"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("gone", "textual._compositor has no ChopsUpdate"),
        ("arguments", "ChopsUpdate.__init__ is missing or takes other"),
        ("method", "ChopsUpdate.render_segments is missing or takes other"),
        ("no method", "ChopsUpdate.render_segments is missing or takes other"),
        ("cuts itself", "ChopsUpdate renders or keeps"),
        ("keeps otherwise", "ChopsUpdate renders or keeps"),
        ("raises", "a sample ChopsUpdate failed: RuntimeError('no')"),
    ],
)
def test_an_unknown_textual_is_left_as_it_is(change: str, reason: str, monkeypatch: pytest.MonkeyPatch):
    class Changed:
        def __init__(self, chops, spans, chop_ends):
            self.chops, self.spans, self.chop_ends = chops, spans, chop_ends
            if change == "keeps otherwise":
                self.spans = [(0, 4, 2)]
            if change == "raises":
                raise RuntimeError("no")

        def render_segments(self, console):
            return "\x1b[1;3Hcd" if change == "cuts itself" else "\x1b[1;1H\x1b[1mabcd\x1b[0m"

    if change == "arguments":
        Changed.__init__ = lambda self, chops, spans: None  # type: ignore[assignment]  # on purpose another
    if change == "method":
        Changed.render_segments = lambda self: ""  # type: ignore[assignment, misc]  # on purpose another
    if change == "no method":
        del Changed.render_segments
    if change == "gone":
        monkeypatch.delattr(_compositor, "ChopsUpdate")
    else:
        monkeypatch.setattr(_compositor, "ChopsUpdate", Changed)
    before = getattr(Changed, "render_segments", None)
    found = left_crop.install()
    assert not left_crop.installed()
    assert _compositor.LayoutUpdate.render_segments is ORIGINALS["LayoutUpdate"]
    assert found is not None
    assert found.startswith(reason)
    assert getattr(Changed, "render_segments", None) is before


def test_the_width_tables_of_terminal_and_program_may_disagree():
    """Every range starts at an absolute place, so that a wrong width shifts nothing after it."""
    text = rendered(strip(("日本語 text", RED)), (2, 4), (7, 9))
    assert text == "\x1b[1;3H\x1b[38;2;255;0;0m本\x1b[1;8Hte\x1b[0m"


def test_a_whole_screen_names_each_colour_once():
    update = _compositor.LayoutUpdate(
        [[strip(("ab", RED)), strip(("cd", RED))], [strip(("ef", RED), ("gh", None))]], Region(0, 3, 4, 2)
    )
    assert left_crop.render_layout(update, console()) == ("\x1b[4;1H\x1b[38;2;255;0;0mabcd\x1b[5;1Hef\x1b[0mgh")
