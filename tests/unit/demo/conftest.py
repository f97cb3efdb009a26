"""A simulated node under pynvml, with a clock that the test turns."""

from collections.abc import Callable, Iterator

import pynvml
import pytest

from gputop.demo import scenario
from gputop.demo.nvml import FakeNvml, install
from gputop.demo.world import World

STARTED = 1_790_000_000.0


class Clock:
    """Unix time that moves only when told to, or when the library sleeps."""

    def __init__(self) -> None:
        self.now = STARTED
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def nvml(clock: Clock) -> Iterator[Callable[..., FakeNvml]]:
    """Install a node described by TOML text; pynvml is put back as it was afterwards."""
    before = (pynvml.nvmlLib, pynvml._LoadNvmlLibrary, dict(pynvml._nvmlGetFunctionPointer_cache))

    def build(text: str, seed: int = 1, *, init: bool = True) -> FakeNvml:
        if "title" not in text:
            text = 'title = "test"\n' + text
        library = install(
            World(scenario.parse(text, "test.toml"), seed), started=STARTED, clock=clock, sleep=clock.sleep
        )
        if init:
            pynvml.nvmlInit()
        return library

    yield build
    pynvml.nvmlLib, pynvml._LoadNvmlLibrary = before[0], before[1]
    pynvml._nvmlGetFunctionPointer_cache.clear()
    pynvml._nvmlGetFunctionPointer_cache.update(before[2])
