"""What every source is: an async iterator of batches, with its state and its cost.

A source never sees the fleet, a widget or another source. It is driven by the supervisor
(`gputop.sources.supervisor`), which starts it again after a failure, tells its state and applies what it
gives. Blocking clients run in threads or child processes with deadlines.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

from gputop.model.demand import Demand
from gputop.model.facts import Batch
from gputop.model.status import Cost, Finding, SourceState

__all__ = ["Demand", "DemandBoard", "Source", "SourceError"]


class DemandBoard:
    """The demand of the moment, shared by all sources; replaced as a whole."""

    def __init__(self, demand: Demand) -> None:
        self._demand = demand
        self._changed = asyncio.Event()

    @property
    def current(self) -> Demand:
        """The demand of the moment."""
        return self._demand

    def post(self, demand: Demand) -> None:
        """Replace the demand; sources that wait are woken if it differs."""
        if demand != self._demand:
            self._demand = demand
            self._changed.set()
            self._changed = asyncio.Event()

    def refresh(self) -> None:
        """Wake sources that wait, so that they read now."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Return after `seconds`, or at once when the demand changes or a refresh is asked for."""
        event = self._changed
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return


class SourceError(Exception):
    """A source cannot go on; the supervisor tries again later.

    Attributes:
        reason: One line for people, cleaned of control characters and secrets.
        state: `DOWN` or `DENIED`.
        retry_s: When to try again; None for the supervisor's own back-off.
    """

    def __init__(self, reason: str, state: SourceState = SourceState.DOWN, retry_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.state = state
        self.retry_s = retry_s


class Source(Protocol):
    """One outside system.

    Attributes:
        name: Unique in the process, stable, for people and programs: "nvml", "prometheus",
            "exporter gpu-a01:9400".
        kind: As `SourceStatus.kind`.
        found: How it was found.
        target: What it reads, without secrets.
        deadline_s: Time without a batch after which the supervisor calls it late.
    """

    name: str
    kind: str
    found: str
    target: str
    deadline_s: float

    def batches(self, board: DemandBoard) -> AsyncIterator[Batch]:
        """Read until cancelled, yielding batches of at most some hundred facts.

        Raises:
            SourceError: It cannot go on; a new iterator may be asked for later.
        """
        ...

    def trouble(self) -> str:
        """Return why it is only degraded, in one line, or "" when all of it answers."""
        ...

    def versions(self) -> tuple[tuple[str, str], ...]:
        """Return the names and versions it has learnt."""
        ...

    def findings(self) -> tuple[Finding, ...]:
        """Return what it may see and what it lacks."""
        ...

    def cost(self) -> Cost:
        """Return what reading it has cost so far."""
        ...

    async def aclose(self) -> None:
        """Let go of everything it holds; never waits longer than a moment for the other side."""
        ...
