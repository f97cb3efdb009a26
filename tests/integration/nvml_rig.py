"""The NVML source over a simulated node, and a record of what it has said."""

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from gputop.demo import hostfs, scenario
from gputop.demo.world import World
from gputop.model.facts import (
    Batch,
    GpuFact,
    NodeFact,
    NodeTrouble,
    Presence,
    ProcessesFact,
    Roster,
    XidFact,
)
from gputop.model.identity import GpuRef
from gputop.model.reading import Value
from gputop.sources.base import Demand, DemandBoard, SourceError
from gputop.sources.nvml.source import NvmlSource

CHILD = ("-m", "gputop.sources.nvml.child")
NODE = """
title = "one node"
[[nodes]]
name = "gpu-a"
model = "h100"
gpus = 8
"""
DEADLINE_S = 25.0


def demo(folder: Path, faults: str = "", node: str = NODE, *, roots: bool = True) -> NvmlSource:
    """Return a source whose child reads a simulated node; faults count from now."""
    path = folder / "scenario.toml"
    path.write_text(node + faults)
    started = time.time()
    proc, sys_ = Path("/proc"), Path("/sys")
    if roots:
        world = World(scenario.load(str(path)), 0)
        hostfs.write(world.nodes[0], 0.0, folder)
        (folder / "proc" / "1").mkdir(exist_ok=True)
        (folder / "proc" / "stat").write_text("btime 1700000000\n")
        proc, sys_ = folder / "proc", folder / "sys"
    command = [
        sys.executable,
        "-m",
        "gputop.demo.nvml",
        "--scenario",
        str(path),
        "--started",
        repr(started),
        "--",
    ]
    return NvmlSource("gpu-a", (*command, *CHILD), proc_root=proc, sys_root=sys_)


class Recorder:
    """Drives a source in the background and keeps the last of everything it says."""

    def __init__(self, source: NvmlSource, demand: Demand | None = None) -> None:
        self.source = source
        self.board = DemandBoard(demand or Demand(interval_s=0.2))
        self.values: dict[tuple[int, str], dict[str, tuple[Value, float]]] = {}
        self.presence: dict[int, tuple[Presence, str]] = {}
        self.presences: list[tuple[int, Presence]] = []
        self.processes: dict[int, ProcessesFact] = {}
        self.refs: dict[int, GpuRef] = {}
        self.xids: list[XidFact] = []
        self.troubles: dict[str, NodeTrouble] = {}
        self.roster: Roster | None = None
        self.node: NodeFact | None = None
        self.batches = 0
        self.rounds = 0
        self.error: SourceError | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self.source.aclose()

    async def _run(self) -> None:
        try:
            async for batch in self.source.batches(self.board):
                self._take(batch)
        except SourceError as error:
            self.error = error

    def _take(self, batch: Batch) -> None:
        self.batches += 1
        self.rounds += batch.round_done
        assert batch.stale_after_s >= 5.0
        for fact in batch.facts:
            match fact:
                case GpuFact():
                    at = fact.at or batch.at
                    known = self.values.setdefault((fact.ref.index, fact.ref.instance), {})
                    known.update({quantity: (value, at) for quantity, value in fact.readings.items()})
                    if fact.presence is not None and not fact.ref.is_instance:
                        self.presence[fact.ref.index] = (fact.presence, fact.presence_reason)
                        self.presences.append((fact.ref.index, fact.presence))
                case Roster():
                    self.roster = fact
                    self.refs |= {ref.index: ref for ref in fact.gpus if not ref.is_instance}
                case NodeFact():
                    self.node = fact
                case NodeTrouble():
                    self.troubles[fact.code] = fact
                case ProcessesFact():
                    self.processes[fact.ref.index] = fact
                case XidFact():
                    self.xids.append(fact)
                case _:
                    pass

    def at(self, index: int, quantity: str = "power_w") -> float:
        """Return when a reading of a board was last taken, 0 if never."""
        found = self.values.get((index, ""), {}).get(quantity)
        return found[1] if found else 0.0

    def value(self, index: int, quantity: str, instance: str = "") -> Value | None:
        """Return the last value of a reading."""
        found = self.values.get((index, instance), {}).get(quantity)
        return found[0] if found else None

    async def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until a condition holds.

        Raises:
            AssertionError: It does not within the deadline, or the source ended before.
        """
        end = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < end, f"{what}: not within {DEADLINE_S:.0f} s; trouble {self.source.trouble()!r}"
            await asyncio.sleep(0.02)

    async def until_error(self) -> SourceError:
        """Wait until the source has given up, and return why."""
        await self.until(lambda: self.error is not None, "the source ends")
        assert self.error is not None
        return self.error

    async def until_fresh(self, indices: set[int], after: float | None = None) -> None:
        """Wait until every one of these boards was read after a time (now)."""
        since = time.time() if after is None else after
        await self.until(lambda: all(self.at(index) > since for index in indices), f"GPUs {indices} are read")
