"""Keeps sources going: starts them, notices when they are late, tries again after a failure.

The screen never waits for a source. Whatever a source raises ends in its status, not in the program: an
SRE who opens gputop because things are broken must see the rest.
"""

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing, suppress
from typing import Final

import msgspec

from gputop.model.facts import Batch
from gputop.model.status import SourceState, SourceStatus
from gputop.model.text import clean
from gputop.pace import Pace
from gputop.sources.base import DemandBoard, Source, SourceError

_LOG: Final = logging.getLogger(__name__)
_FIRST_RETRY_S: Final = 1.0
_LAST_RETRY_S: Final = 30.0
_FACTS_AT_ONCE: Final = 8
"""Facts of a batch that are applied before the clock is looked at."""
_LATE_IS_DOWN: Final = 4.0
"""A source that is late by this many deadlines is called down, though it is still waited for."""
_TELL_EVERY_S: Final = 1.0
_CLOSE_S: Final = 0.5


class _Driven:
    """One source with what the supervisor remembers of it."""

    def __init__(self, source: Source, now: float) -> None:
        self.source = source
        self.status = SourceStatus(
            source.name, source.kind, SourceState.STARTING, now, found=source.found, target=source.target
        )
        self.told_at = 0.0
        self.failures = 0
        self.first_round = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class Supervisor:
    """Runs sources until it is closed.

    Args:
        sources: What to read; names are unique.
        board: The demand that the sources read from.
        apply: Takes each batch; called on the event loop.
        tell: Takes each status that differs from the last one told.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        sources: Iterable[Source],
        board: DemandBoard,
        apply: Callable[[Batch], None],
        tell: Callable[[SourceStatus], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._board = board
        self._apply = apply
        self._tell = tell
        self._clock = clock
        self._driven = {s.name: _Driven(s, clock()) for s in sources}
        # Before the start too, so that a first frame does not say that there is no source.
        for driven in self._driven.values():
            tell(driven.status)

    def start(self) -> None:
        """Start every source; returns at once."""
        for driven in self._driven.values():
            self._launch(driven)

    def _launch(self, driven: _Driven) -> None:
        driven.task = asyncio.create_task(self._drive(driven), name=f"source {driven.source.name}")

    async def first_round(self, timeout_s: float) -> tuple[str, ...]:
        """Wait until each source has told a whole round or failed; return the names of those that did neither."""
        waits = {name: asyncio.create_task(driven.first_round.wait()) for name, driven in self._driven.items()}
        if waits:
            await asyncio.wait(waits.values(), timeout=timeout_s)
        late = tuple(name for name, task in waits.items() if not task.done())
        for task in waits.values():
            task.cancel()
        return late

    async def release(self, kind: str) -> None:
        """Let go of what sources of a kind hold, until `resume`."""
        for driven in self._of_kind(kind):
            await self._stop(driven)
            self._change(driven, SourceState.RELEASED, "released on request: it holds no device")
            driven.first_round.set()

    def resume(self, kind: str) -> None:
        """Take up sources of a kind that were released."""
        for driven in self._of_kind(kind):
            if driven.status.state is SourceState.RELEASED:
                self._change(driven, SourceState.STARTING, "")
                self._launch(driven)

    def released(self, kind: str) -> bool:
        """Whether sources of this kind are let go."""
        return any(d.status.state is SourceState.RELEASED for d in self._of_kind(kind))

    def _of_kind(self, kind: str) -> list[_Driven]:
        return [d for d in self._driven.values() if d.source.kind == kind]

    async def aclose(self) -> None:
        """End everything without waiting for the other side."""
        await asyncio.gather(*(self._stop(d) for d in self._driven.values()))

    async def _stop(self, driven: _Driven) -> None:
        if driven.task is not None:
            driven.task.cancel()
            await asyncio.wait([driven.task], timeout=_CLOSE_S)
        with suppress(TimeoutError, SourceError, OSError):
            async with asyncio.timeout(_CLOSE_S):
                await driven.source.aclose()

    async def _drive(self, driven: _Driven) -> None:
        while True:
            retry_s: float | None = None
            try:
                async with aclosing(_as_generator(driven.source.batches(self._board))) as batches:
                    await self._read(driven, batches)
                state, reason = SourceState.DOWN, "ended"
            except SourceError as error:
                state, reason, retry_s = error.state, error.reason, error.retry_s
            except Exception as error:  # noqa: BLE001 - a fault in one source must not end the program
                _LOG.exception("source %s failed", driven.source.name)
                state, reason = SourceState.DOWN, f"internal error: {type(error).__name__}: {error}"
            driven.failures += 1
            delay_s = retry_s if retry_s is not None else _back_off_s(driven.failures)
            self._change(driven, state, clean(reason), next_try_at=self._clock() + delay_s)
            driven.first_round.set()
            await self._board.wait(delay_s)

    async def _read(self, driven: _Driven, batches: AsyncIterator[Batch]) -> None:
        """Apply batches as they come; while one is late, say so and go on waiting for it."""
        deadline_s = driven.source.deadline_s
        while True:
            pending = asyncio.ensure_future(anext(batches, None))
            try:
                await self._wait(driven, pending, deadline_s)
            except asyncio.CancelledError:
                pending.cancel()
                await asyncio.wait([pending], timeout=_CLOSE_S)
                raise
            batch = pending.result()
            if batch is None:
                return
            await self._apply_in_parts(batch)
            driven.failures = 0
            if batch.round_done:
                driven.first_round.set()
            self._heard(driven, whole=batch.round_done)
            await asyncio.sleep(0)

    async def _apply_in_parts(self, batch: Batch) -> None:
        pace = Pace()
        for start in range(0, max(1, len(batch.facts)), _FACTS_AT_ONCE):
            self._apply(msgspec.structs.replace(batch, facts=batch.facts[start : start + _FACTS_AT_ONCE]))
            await pace.rest()

    async def _wait(self, driven: _Driven, pending: asyncio.Future[Batch | None], deadline_s: float) -> None:
        began = time.monotonic()
        while not pending.done():
            await asyncio.wait([pending], timeout=deadline_s)
            waited_s = time.monotonic() - began
            if not pending.done() and waited_s >= deadline_s:
                down = waited_s >= deadline_s * _LATE_IS_DOWN
                reason = driven.source.trouble() or f"no answer for {waited_s:.0f} s"
                self._change(driven, SourceState.DOWN if down else SourceState.DEGRADED, reason)

    def _heard(self, driven: _Driven, *, whole: bool) -> None:
        trouble = driven.source.trouble()
        state = SourceState.DEGRADED if trouble else SourceState.LIVE
        now = self._clock()
        same = state is driven.status.state and trouble == driven.status.reason
        if same and not whole and now - driven.told_at < _TELL_EVERY_S:
            return
        self._change(driven, state, trouble, last_data_at=now)

    def _change(
        self,
        driven: _Driven,
        state: SourceState,
        reason: str,
        *,
        next_try_at: float | None = None,
        last_data_at: float | None = None,
    ) -> None:
        now, before, source = self._clock(), driven.status, driven.source
        driven.status = SourceStatus(
            name=source.name,
            kind=source.kind,
            state=state,
            since=before.since if state is before.state else now,
            reason=clean(reason),
            found=source.found,
            target=source.target,
            next_try_at=next_try_at,
            last_data_at=last_data_at if last_data_at is not None else before.last_data_at,
            versions=source.versions(),
            findings=source.findings(),
            cost=source.cost(),
        )
        if (state, driven.status.reason) != (before.state, before.reason):
            # A reason is without secrets, as `SourceError` promises; settings and headers are not logged.
            why = driven.status.reason
            _LOG.info("source %s: %s%s", source.name, state, f": {why}" if why else "")
        driven.told_at = now
        self._tell(driven.status)


async def _as_generator(batches: AsyncIterator[Batch]) -> AsyncGenerator[Batch]:
    """Give any async iterator the `aclose` that `aclosing` needs."""
    try:
        async for batch in batches:
            yield batch
    finally:
        close = getattr(batches, "aclose", None)
        if close is not None:
            await close()


def _back_off_s(failures: int) -> float:
    """Return the wait before the next try: doubling, with a jitter so that many watchers do not try as one."""
    wait_s = min(_LAST_RETRY_S, _FIRST_RETRY_S * 2.0 ** min(failures - 1, 10))
    return wait_s * random.uniform(0.8, 1.2)  # noqa: S311 - a jitter, not a secret
