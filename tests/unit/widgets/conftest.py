"""An app around widgets, and what stands on its screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest
from textual.app import App, ComposeResult
from textual.message import Message
from textual.widget import Widget

from gputop.themes.loader import bundled_themes
from gputop.themes.theme import to_textual

M = TypeVar("M", bound=Message)


class Stage(App[None]):
    """An app that shows the given widgets and keeps what they send."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(self, widgets: Sequence[Widget], theme: str = "dark") -> None:
        super().__init__()
        self.animation_level = "none"
        for each in bundled_themes():
            self.register_theme(to_textual(each))
        self.theme = theme
        self.widgets = widgets
        self.sent: list[Message] = []

    def compose(self) -> ComposeResult:
        yield from self.widgets

    def lines(self) -> list[str]:
        """Return the lines of the screen without what is blank at their ends.

        Textual has no public way to ask for them; this is the one place that uses the private one.
        """
        return [strip.text.rstrip() for strip in self.screen._compositor.render_strips()]

    def sent_of(self, kind: type[M]) -> list[M]:
        """Return the messages of a kind, in their order."""
        return [message for message in self.sent if isinstance(message, kind)]

    def on_event_kept(self, message: Message) -> None:
        """Keep a message that bubbled up from a widget."""
        self.sent.append(message)

    on_line_table_cursor_moved = on_event_kept
    on_line_table_activated = on_event_kept
    on_line_table_group_toggled = on_event_kept
    on_line_table_sort_requested = on_event_kept
    on_line_table_marks_changed = on_event_kept
    on_heatmap_cursor_moved = on_event_kept
    on_heatmap_activated = on_event_kept
    on_prompt_changed = on_event_kept
    on_prompt_submitted = on_event_kept
    on_prompt_cancelled = on_event_kept


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Stage]:
    """Make an app around widgets, on a terminal of 16 million colours."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")

    def make(*widgets: Widget, theme: str = "dark") -> Stage:
        return Stage(widgets, theme)

    return make


class Dirty:
    """The regions that a widget asks Textual to write."""

    def __init__(self, widget: Widget, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cells: set[tuple[int, int]] = set()
        self.whole = 0
        original = widget.refresh

        def refresh(*regions, **options):
            if not regions:
                self.whole += 1
            for region in regions:
                self.cells |= {(x, y) for x in range(region.x, region.right) for y in range(region.y, region.bottom)}
            return original(*regions, **options)

        monkeypatch.setattr(widget, "refresh", refresh)

    def taken(self) -> set[tuple[int, int]]:
        """Return the cells (x, y) to be written since the last time."""
        cells, self.cells = self.cells, set()
        return cells


@pytest.fixture
def dirty(monkeypatch: pytest.MonkeyPatch) -> Callable[[Widget], Dirty]:
    """Watch what a widget asks to be written."""
    return lambda widget: Dirty(widget, monkeypatch)
