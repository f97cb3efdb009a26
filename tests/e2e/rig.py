"""The app over a source that says what a test wants, without a terminal."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from textual.pilot import Pilot

from gputop.app import GputopApp
from gputop.config.config import load
from gputop.model.facts import Batch, Fact
from gputop.model.status import Cost, Finding
from gputop.session import Session
from gputop.sources.base import DemandBoard
from gputop.terminal import TerminalAbilities
from gputop.themes.loader import load_themes


class Told:
    """A source that tells one batch and then what the test adds."""

    kind, found, target = "nvml", "test", "nowhere"
    deadline_s = 60.0

    def __init__(self, *facts: Fact, name: str = "nvml") -> None:
        self.name = name
        self.queue: asyncio.Queue[tuple[Fact, ...]] = asyncio.Queue()
        self.queue.put_nowait(facts)

    async def batches(self, board: DemandBoard) -> AsyncIterator[Batch]:
        del board
        while True:
            facts = await self.queue.get()
            yield Batch(self.name, 0, time.time(), 60.0, facts, round_done=True)

    def trouble(self) -> str:
        return ""

    def versions(self) -> tuple[tuple[str, str], ...]:
        return ()

    def findings(self) -> tuple[Finding, ...]:
        return ()

    def cost(self) -> Cost:
        return Cost()

    async def aclose(self) -> None:
        return


def app(source: Told, *, unicode: bool = True, **flags: object) -> GputopApp:
    """Return an app over a source."""
    config = load(flags, {}, Path("/nonexistent/config.toml"))
    terminal = TerminalAbilities("truecolor", no_color=False, unicode=unicode)
    return GputopApp(Session(config, [source]), load_themes(None), terminal)


def text(pilot: Pilot[None]) -> str:
    """Return what is on screen."""
    screen = pilot.app.screen
    width, height = screen.size
    strips = screen._compositor.render_strips()
    return "\n".join("".join(s.text for s in strip)[:width].rstrip() for strip in strips[:height])


async def shows(pilot: Pilot[None], *words: str) -> str:
    """Wait until all words are on screen and return it."""
    return await until(pilot, lambda screen: all(w in screen for w in words), f"{words} on screen")


async def until(pilot: Pilot[None], condition: Callable[[str], bool], what: str) -> str:
    """Wait until a condition of the screen holds and return the screen."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + 15
    while True:
        await pilot.pause(0.02)
        screen = text(pilot)
        if condition(screen):
            return screen
        if loop.time() > deadline:
            raise AssertionError(f"never {what}; the screen is:\n{screen}")
