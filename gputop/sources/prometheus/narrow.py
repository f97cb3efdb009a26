"""Samples of many metrics from a server that may find a query too wide: it is narrowed, by names, then by GPUs."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from gputop.sources.base import SourceError
from gputop.sources.metrics.envelope import SeriesAnswer
from gputop.sources.metrics.sample import Sample
from gputop.sources.prometheus.clocks import Clocks
from gputop.sources.prometheus.fetch import Fetcher
from gputop.sources.prometheus.queries import NAMES_AT_ONCE, chunks, halves
from gputop.sources.prometheus.refusals import RefusedQueryError, TooWideError
from gputop.sources.prometheus.vectors import to_samples

_SLOWEST_KEPT: Final = 3


class MakeQuery(Protocol):
    """Makes the query for some metrics, under one more matcher where `narrowed` is not empty."""

    def __call__(self, names: Sequence[str], narrowed: str = "") -> str:
        """Return the query."""
        ...


class Found(Struct, frozen=True):
    """What was answered, and why parts of it were not."""

    samples: list[Sample]
    failures: tuple[SourceError, ...] = ()


class Narrow:
    """Asks for metrics in requests as wide as the server takes them, and remembers how wide that is.

    Args:
        fetcher: Does the asking.
        clocks: Gives sample times.

    Attributes:
        is_narrowed: The server has found a query too wide, and answers parts of it.
    """

    def __init__(self, fetcher: Fetcher, clocks: Clocks) -> None:
        self._fetcher = fetcher
        self._clocks = clocks
        self._most_names = NAMES_AT_ONCE
        self._halved: set[str] = set()
        self._took: dict[str, float] = {}
        self.is_narrowed = False

    def begin_round(self) -> None:
        """Forget how long the requests of the last round took."""
        self._took = {}

    def slowest(self) -> tuple[tuple[str, float], ...]:
        """Return the slowest requests of the round as (metric, seconds)."""
        return tuple(sorted(self._took.items(), key=lambda item: -item[1])[:_SLOWEST_KEPT])

    async def samples(self, names: Sequence[str], query: MakeQuery, asked_at: float) -> Found:
        """Return samples of metrics; a part that fails does not cost the others.

        Args:
            names: Metric names.
            query: Makes the query for some of the names.
            asked_at: Time of asking in the server's time.
        """
        if len(names) > self._most_names:
            return await self._parts(names, self._most_names, query, asked_at)
        if len(names) == 1 and names[0] in self._halved:
            return await self._in_halves(names[0], query, asked_at)
        try:
            return Found(await self._whole(names, query, asked_at))
        except SourceError as error:
            return await self._narrowed(error, names, query, asked_at)

    async def _narrowed(self, error: SourceError, names: Sequence[str], query: MakeQuery, asked_at: float) -> Found:
        """Return what a narrower request gives after a refusal, if one may give anything."""
        several = len(names) > 1
        if isinstance(error, RefusedQueryError) and several:
            found = await self._parts(names, 1, query, asked_at)
            if len(found.failures) < len(names):
                # Some services take no query without a metric's name: that is learnt once.
                self._most_names = 1
            return found
        if not isinstance(error, TooWideError):
            return Found([], (error,))
        self.is_narrowed = True
        if not several:
            return await self._in_halves(names[0], query, asked_at)
        self._most_names = min(self._most_names, (len(names) + 1) // 2)
        return await self._parts(names, self._most_names, query, asked_at)

    async def any_of(self, parts: Sequence[str], wrap: Callable[[str], str] = str) -> list[SeriesAnswer]:
        """Return the series of expressions that stand beside one another, in one request where the server takes it.

        Args:
            parts: The expressions; of series with the same labels the first counts.
            wrap: Puts what they are joined to into a further expression.

        Raises:
            SourceError: A request is refused.
        """
        try:
            return await self._fetcher.query(wrap(" or ".join(parts)))
        except (RefusedQueryError, TooWideError):
            if len(parts) < 2:
                raise
        half = len(parts) // 2
        return [*await self.any_of(parts[:half], wrap), *await self.any_of(parts[half:], wrap)]

    async def _parts(self, names: Sequence[str], size: int, query: MakeQuery, asked_at: float) -> Found:
        return _joined(await asyncio.gather(*(self.samples(c, query, asked_at) for c in chunks(names, size))))

    async def _in_halves(self, name: str, query: MakeQuery, asked_at: float) -> Found:
        found: list[Sample] = []
        try:
            for narrowed in halves(name):
                found += await self._whole([name], query, asked_at, narrowed)
        except SourceError as error:
            # Half of the GPUs would look as if the others had lost the metric.
            return Found([], (error,))
        self._halved.add(name)
        return Found(found)

    async def _whole(self, names: Sequence[str], query: MakeQuery, asked_at: float, narrowed: str = "") -> list[Sample]:
        only = names[0] if len(names) == 1 else ""
        began = time.monotonic()
        found = await self._fetcher.instant(
            query(names, narrowed), lambda answers: to_samples(answers, only, self._clocks, asked_at)
        )
        label = only or f"{names[0]} and {len(names) - 1} more"
        self._took[label] = max(time.monotonic() - began, self._took.get(label, 0.0))
        return found


def _joined(parts: Iterable[Found]) -> Found:
    samples: list[Sample] = []
    failures: list[SourceError] = []
    for part in parts:
        samples += part.samples
        failures += part.failures
    return Found(samples, tuple(failures))
