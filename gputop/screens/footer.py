"""The footer: the keys of the moment, or for a moment what an action came to."""

import time
from typing import Final

from gputop.keymap import footer
from gputop.widgets.cells import Cell
from gputop.widgets.status_line import StatusLines

_WORDS_S: Final = 4.0


class Footer(StatusLines):
    """One line of keys; `say` puts words in their place for a few seconds."""

    def __init__(self, *, ascii_only: bool, read_only: bool) -> None:
        super().__init__(1, ascii_only=ascii_only, id="footer")
        self._read_only = read_only
        self._pane = ""
        self._said_until = 0.0

    def show(self, pane: str) -> None:
        """Show the keys of a pane, unless words are still to be read."""
        if pane == self._pane and not self._said_until:
            return
        self._pane = pane
        if time.monotonic() < self._said_until:
            return
        self._said_until = 0.0
        keys = [
            Cell.of((action.shown, "key"), (f" {action.word}", "dim"))
            for action in footer(pane, read_only=self._read_only)
        ]
        self.set_line(0, keys)

    def say(self, words: str, role: str = "info") -> None:
        """Show what an action came to."""
        self._said_until = time.monotonic() + _WORDS_S
        self.set_line(0, [Cell(words, role)])
