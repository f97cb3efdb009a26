"""Putting the simulated library where pynvml looks for the real one."""

import math
import os
import time
from collections.abc import Callable

import msgspec
import pynvml

from gputop.demo import scenario as scenarios
from gputop.demo.nvml import (
    events,
    fields,
    gauges,
    gpm,
    health,
    identity,
    links,
    mig,
    processes,
    session,
)
from gputop.demo.nvml.library import FakeNvml
from gputop.demo.world import World

ENVIRONMENT = "GPUTOP_DEMO_NVML"
"""Variable read by :func:`install_from_env`: ``scenario=…;node=…;seed=…;nodes=…;started=…``."""

# Importing these modules enters their functions into the table.
MODULES = (session, identity, gauges, health, links, mig, processes, events, gpm, fields)

_LIBRARY_NOT_FOUND = 12


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Which node of which world to show.

    ``started`` is the unix time of the scenario's start; every process of one demo must be given the same.
    ``nodes`` resizes the scenario; an empty ``node`` is the first one.
    """

    scenario: str = scenarios.DEFAULT
    node: str = ""
    seed: int = 0
    nodes: int = 0
    started: float = 0.0

    def encode(self) -> str:
        """Return the value of the environment variable for these settings."""
        return ";".join(f"{name}={value}" for name, value in msgspec.structs.asdict(self).items())

    @classmethod
    def decode(cls, text: str) -> "Settings":
        """Read the value of the environment variable.

        Raises:
            ScenarioError: A part is not ``key=value`` with a known key and a value of its type.
        """
        parts = [part.partition("=") for part in text.split(";") if part.strip()]
        try:
            found = msgspec.convert({key.strip(): value.strip() for key, _, value in parts}, cls, strict=False)
            unknown = {key.strip() for key, _, _ in parts} - set(cls.__struct_fields__)
        except msgspec.ValidationError as error:
            raise scenarios.ScenarioError(f"{ENVIRONMENT}: {error}") from error
        if unknown or not math.isfinite(found.started):
            raise scenarios.ScenarioError(f"{ENVIRONMENT}: {', '.join(sorted(unknown)) or 'started'} not understood")
        return found

    def world(self) -> World:
        """Build the world.

        Raises:
            ScenarioError: The scenario cannot be used.
        """
        scenario = scenarios.load(self.scenario)
        return World(scenarios.resized(scenario, self.nodes) if self.nodes else scenario, self.seed)


def install(
    world: World,
    node: str = "",
    started: float | None = None,
    *,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], object] = time.sleep,
) -> FakeNvml:
    """Make pynvml talk to a node of the world, in this process, and return the library.

    Raises:
        ScenarioError: There is no such node.
    """
    found = world.by_name.get(node) if node else world.nodes[0]
    if found is None:
        raise scenarios.ScenarioError(f"node {node!r} is not in the scenario")
    library = FakeNvml(found, clock() if started is None else started, clock, sleep)
    pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001  (pynvml offers no other way in)
    pynvml.nvmlLib = library
    pynvml._LoadNvmlLibrary = lambda: _load(library)  # noqa: SLF001 - as above
    return library


def _load(library: FakeNvml) -> None:
    """Stand in for loading the shared object: a node without the library fails here, before any call."""
    if library.missing():
        raise pynvml.NVMLError(_LIBRARY_NOT_FOUND)


def install_from_env() -> FakeNvml | None:
    """Install what :data:`ENVIRONMENT` describes; None where the variable is not set.

    Raises:
        ScenarioError: The variable or the scenario cannot be used.
    """
    text = os.environ.get(ENVIRONMENT)
    if not text:
        return None
    settings = Settings.decode(text)
    return install(settings.world(), settings.node, settings.started or None)
