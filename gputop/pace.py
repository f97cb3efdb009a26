"""Long work on the event loop in short stretches, so that a key never waits for it."""

import asyncio
import time
from typing import Final

_STRETCH_S: Final = 0.004
_REST_S: Final = 0.001


class Pace:
    """Counts how long a piece of work has held the loop.

    Args:
        stretch_s: Seconds of work after which others come first.
    """

    def __init__(self, stretch_s: float = _STRETCH_S) -> None:
        self._stretch_s = stretch_s
        self._began = time.perf_counter()

    @property
    def is_due(self) -> bool:
        """Whether the work should rest now."""
        return time.perf_counter() - self._began >= self._stretch_s

    async def rest(self) -> None:
        """Let others come first if it is time.

        A sleep of nothing would come back within the same round of the loop; a key takes several rounds from
        the terminal to the screen.
        """
        if self.is_due:
            await asyncio.sleep(_REST_S)
            self._began = time.perf_counter()
