"""Asking: a few requests at a time, narrowed when the server says that they are too wide."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import msgspec

from gputop.model.endpoint import Endpoint
from gputop.model.text import clean
from gputop.sources.base import SourceError
from gputop.sources.metrics.sample import Sample
from gputop.sources.prometheus.client import PrometheusClient
from gputop.sources.prometheus.clocks import Clocks
from gputop.sources.prometheus.envelope import SeriesAnswer, series
from gputop.sources.prometheus.queries import AT_ONCE
from gputop.sources.prometheus.refusals import TooWideError
from gputop.sources.prometheus.vectors import to_samples

_WARNINGS_KEPT: Final = 3
_T = TypeVar("_T")


class Fetcher:
    """Clients in threads, one for each request at a time.

    Attributes:
        warnings: What the server remarked in the present round; a partial answer is said here.
        partial: An answer of the present round was only a part.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="prometheus")
        self._free: list[PrometheusClient] = []
        self._all: list[PrometheusClient] = []
        self._slots = asyncio.Semaphore(AT_ONCE)
        self.warnings: list[str] = []
        self.partial = False

    @property
    def requests_made(self) -> int:
        """Requests since the start."""
        return sum(c.requests_made for c in self._all)

    @property
    def bytes_read(self) -> int:
        """Bytes since the start."""
        return sum(c.bytes_read for c in self._all)

    @property
    def clock_offset_s(self) -> float | None:
        """This machine's time minus the server's by its Date header; None before the first answer."""
        return next((c.clock_offset_s for c in self._all if c.clock_offset_s is not None), None)

    def close(self) -> None:
        """Close every connection; a thread that waits for an answer ends with it or at its time limit."""
        for client in self._all:
            client.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, work: Callable[[PrometheusClient], _T]) -> _T:
        """Run something with a client in a thread, under the endpoint's total time.

        Raises:
            SourceError: There is no answer in time.
        """
        async with self._slots:
            client = self._free.pop() if self._free else self._make()
            try:
                async with asyncio.timeout(self._endpoint.timeout_s + 5.0):
                    result = await asyncio.get_running_loop().run_in_executor(self._threads, work, client)
            except TimeoutError:
                client.close()
                self._all.remove(client)
                raise SourceError(f"no answer within {self._endpoint.timeout_s:.0f} s") from None
            except BaseException:
                self._free.append(client)
                raise
            self._free.append(client)
            return result

    def _make(self) -> PrometheusClient:
        client = PrometheusClient(self._endpoint)
        self._all.append(client)
        return client

    async def query(self, query: str) -> list[SeriesAnswer]:
        """Return the series of an instant query.

        Raises:
            SourceError: There is no such answer.
        """
        return await self.run(lambda client: self._query(client, "query", {"query": query}))

    async def query_range(self, query: str, start: float, end: float, step_s: float) -> list[SeriesAnswer]:
        """Return the series of a range query.

        Raises:
            SourceError: There is no such answer.
        """
        fields = {"query": query, "start": f"{start:.0f}", "end": f"{end:.0f}", "step": f"{step_s:.0f}"}
        return await self.run(lambda client: self._query(client, "query_range", fields))

    def _query(self, client: PrometheusClient, path: str, fields: dict[str, str]) -> list[SeriesAnswer]:
        limit = f"{self._endpoint.timeout_s:.0f}s"
        answer = client.ask(path, {**fields, "timeout": limit})
        self.partial = self.partial or answer.is_partial
        for warning in (*answer.warnings, *(["partial answer"] if answer.is_partial else [])):
            words = clean(warning, 120)
            if words not in self.warnings and len(self.warnings) < _WARNINGS_KEPT:
                self.warnings.append(words)
        try:
            return series(answer.data)
        except msgspec.MsgspecError as error:
            raise SourceError(f"an answer of another shape: {clean(str(error), 120)}") from None

    async def samples(
        self, names: Sequence[str], query: Callable[[Sequence[str]], str], clocks: Clocks, asked_at: float
    ) -> list[Sample]:
        """Return samples of metrics; a request that is too wide is halved once by its names.

        Args:
            names: Metric names.
            query: Makes the query for some of the names.
            clocks: Gives sample times.
            asked_at: Time of asking in the server's time.

        Raises:
            SourceError: A request is refused.
        """
        try:
            answers = await self.query(query(names))
        except TooWideError:
            if len(names) < 2:
                raise
            half = len(names) // 2
            one, two = await asyncio.gather(
                self.samples(names[:half], query, clocks, asked_at),
                self.samples(names[half:], query, clocks, asked_at),
            )
            return one + two
        only = names[0] if len(names) == 1 else ""
        return to_samples(answers, only, clocks, asked_at)
