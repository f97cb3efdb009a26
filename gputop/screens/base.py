"""What all screens of the app share: keys from the registry, movement, a tick."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, cast

from gputop.widgets.canvas import LineCanvas
from gputop.widgets.quiet_screen import QuietScreen

if TYPE_CHECKING:
    from gputop.app import GputopApp

_MOVES: Final = {
    "down": "action_cursor_down",
    "up": "action_cursor_up",
    "page_down": "action_page_down",
    "page_up": "action_page_up",
    "half_down": "action_half_page_down",
    "half_up": "action_half_page_up",
    "top": "action_top",
    "bottom": "action_bottom",
}


Step = Callable[[], None] | None
"""What is to be done next, in any thread, or None when it was done on the screen."""


class WatchScreen(QuietScreen[None]):
    """A screen that shows the fleet and is drawn anew by the app's one timer."""

    def steps(self) -> Iterator[Step]:
        """Bring what is shown up to date, in steps between which other things may come first."""
        yield from ()

    def tick(self) -> None:
        """Bring what is shown up to date at once."""
        for work in self.steps():
            if work is not None:
                work()

    def redraw(self) -> None:
        """Bring what is shown up to date as soon as the size of the fleet lets it be."""
        self.watch_app.draw(self)

    def movable(self) -> LineCanvas | None:
        """Return the widget that movement keys move."""
        focused = self.focused
        return focused if isinstance(focused, LineCanvas) else None

    @property
    def watch_app(self) -> "GputopApp":
        """The app, by its own type."""
        return cast("GputopApp", self.app)

    def do(self, action: str) -> bool:
        """Carry out an action of the registry; return whether this screen knows it."""
        if action in _MOVES:
            widget = self.movable()
            move = getattr(widget, _MOVES[action], None)
            if move is not None:
                move()
            return True
        handler = getattr(self, f"do_{action}", None)
        if handler is None:
            return False
        handler()
        return True

    def do_back(self) -> None:
        """Leave this screen for the one below."""
        self.dismiss(None)
