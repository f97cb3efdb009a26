"""The smallest Textual app that shows a line: what a first frame cannot be faster than."""

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.widgets import Static


class Bare(App[None]):
    """One line; q leaves."""

    BINDINGS: ClassVar = [("q", "quit", "Quit")]

    def compose(self) -> ComposeResult:
        """Show a text large enough to count as a frame."""
        yield Static("x" * 4000)


if __name__ == "__main__":
    Bare().run()
