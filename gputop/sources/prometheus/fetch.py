"""Asking: a few requests at a time, narrowed when the server says that they are too wide."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

import msgspec

from gputop.model.endpoint import Endpoint
from gputop.model.text import clean
from gputop.sources.base import SourceError
from gputop.sources.http_failures import host_of
from gputop.sources.metrics.envelope import SeriesAnswer, series
from gputop.sources.metrics.sample import Sample
from gputop.sources.prometheus.client import PrometheusClient
from gputop.sources.prometheus.clocks import Clocks
from gputop.sources.prometheus.flavour import Flavour, flavour
from gputop.sources.prometheus.queries import AT_ONCE, halves
from gputop.sources.prometheus.refusals import RefusedQueryError, SlowError, TooWideError
from gputop.sources.prometheus.threads import in_thread
from gputop.sources.prometheus.vectors import to_samples
from gputop.sources.tokens import Tokens

_WARNINGS_KEPT: Final = 3
_GRACE_S: Final = 4.0
_MOST_STUCK: Final = 8
_SLOWEST_KEPT: Final = 3
_T = TypeVar("_T")


class MakeQuery(Protocol):
    """Makes the query for some metrics, under one more matcher where `narrowed` is not empty."""

    def __call__(self, names: Sequence[str], narrowed: str = "") -> str:
        """Return the query."""
        ...


class Fetcher:
    """Clients in threads, one for each request at a time.

    Args:
        endpoint: Where and as whom.

    Attributes:
        flavour: What the server is; the first `greet` tells it.
        greeted: It has answered.
        warnings: What the server remarked in the present round; a partial answer is said here.
        slow: Why the server asked, in the present round, to be asked less often; None if it did not.
        took: Longest time of each kind of request in the present round, by name.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._tokens = Tokens(endpoint)
        self._free: list[PrometheusClient] = []
        self._all: list[PrometheusClient] = []
        self._slots = asyncio.Semaphore(AT_ONCE)
        # One answer is decoded at a time: of several threads at work each would take its turn before the
        # screen's, and keys would wait for all of them.
        self.decoding = threading.Lock()
        self._left_behind: list[threading.Event] = []
        self._one_by_one = False
        self._halved: set[str] = set()
        self._gone_requests = 0
        self._gone_bytes = 0
        self.flavour = Flavour()
        self.greeted = False
        self.warnings: list[str] = []
        self.slow: SlowError | None = None
        self.took: dict[str, float] = {}

    @property
    def requests_made(self) -> int:
        """Requests since the start."""
        return self._gone_requests + sum(c.requests_made for c in self._all)

    @property
    def bytes_read(self) -> int:
        """Bytes since the start, unpacked."""
        return self._gone_bytes + sum(c.bytes_read for c in self._all)

    def begin_round(self) -> None:
        """Forget what the last round remarked."""
        self.warnings = []
        self.slow = None
        self.took = {}

    def slowest(self) -> tuple[tuple[str, float], ...]:
        """Return the slowest requests of the round as (metric, seconds)."""
        return tuple(sorted(self.took.items(), key=lambda item: -item[1])[:_SLOWEST_KEPT])

    def close(self) -> None:
        """Close every connection; a thread that waits for an answer ends with it or with the program."""
        for client in self._all:
            client.close()

    async def greet(self) -> list[SeriesAnswer]:
        """Ask for the server's time and learn what it is.

        Returns:
            The answer to `time()`.

        Raises:
            SourceError: It does not answer, or refuses.
        """
        probe = await self._run(lambda client: client.ask("query", {"query": "time()"}))
        if not self.greeted:
            await self._learn_flavour(is_partial_told=probe.is_partial is not None)
            self.greeted = True
        try:
            return series(probe.data)[0]
        except msgspec.MsgspecError:
            raise SourceError("no answer of the Prometheus API: the server's time has another shape") from None

    async def _learn_flavour(self, *, is_partial_told: bool) -> None:
        async def optional(path: str) -> bytes | None:
            try:
                return bytes((await self._run(lambda client: client.ask(path, {}))).data)
            except SourceError:
                # Managed services and proxies have no such address; the data are what counts.
                return None

        build, stores = await asyncio.gather(optional("status/buildinfo"), optional("stores"))
        self.flavour = flavour(
            self._endpoint.url, build, is_partial_told=is_partial_told, has_stores=stores is not None
        )

    async def _run(self, work: Callable[[PrometheusClient], _T]) -> _T:
        """Run something with a client in a thread, under the endpoint's total time.

        Raises:
            SourceError: There is no answer in time.
        """
        async with self._slots:
            self._left_behind = [done for done in self._left_behind if not done.is_set()]
            if len(self._left_behind) >= _MOST_STUCK:
                raise SourceError(f"{host_of(self._endpoint.url)}: {len(self._left_behind)} requests still hang")
            client = self._free.pop() if self._free else self._make()
            done = threading.Event()

            def job() -> _T:
                try:
                    return work(client)
                finally:
                    done.set()

            try:
                async with asyncio.timeout(self._endpoint.timeout_s + _GRACE_S):
                    result = await in_thread(job, f"prometheus {host_of(self._endpoint.url)}")
            except (TimeoutError, asyncio.CancelledError) as error:
                # The thread is left behind with its client: it may hang in the middle of a header.
                self._left_behind.append(done)
                self._drop(client)
                if isinstance(error, TimeoutError):
                    raise SourceError(self._late()) from None
                raise
            except SourceError:
                self._free.append(client)
                raise
            self._free.append(client)
            return result

    def _late(self) -> str:
        return f"{host_of(self._endpoint.url)}: no complete answer within {self._endpoint.timeout_s:.0f} s"

    def _make(self) -> PrometheusClient:
        client = PrometheusClient(self._endpoint, self._tokens)
        self._all.append(client)
        return client

    def _drop(self, client: PrometheusClient) -> None:
        self._all.remove(client)
        self._gone_requests += client.requests_made
        self._gone_bytes += client.bytes_read
        client.close()

    async def query(self, query: str) -> list[SeriesAnswer]:
        """Return the series of an instant query.

        Raises:
            SourceError: There is no such answer.
        """
        return await self._answer("query", {"query": query}, lambda found: found)

    async def query_range(self, query: str, start: float, end: float, step_s: float) -> list[SeriesAnswer]:
        """Return the series of a range query.

        Raises:
            SourceError: There is no such answer.
        """
        # Whole seconds: Google's service answers times with fractions with nothing.
        fields = {"query": query, "start": f"{start:.0f}", "end": f"{end:.0f}", "step": f"{step_s:.0f}"}
        return await self._answer("query_range", fields, lambda found: found)

    async def _answer(
        self, path: str, fields: dict[str, str], use: Callable[[list[SeriesAnswer]], list[_T]]
    ) -> list[_T]:
        limit = {"timeout": f"{self._endpoint.timeout_s:.0f}s"}
        try:
            return await self._run(
                lambda client: self._ask(client, path, fields | limit | self.flavour.parameters, use)
            )
        except SlowError as error:
            self.slow = error
            raise

    def _ask(
        self,
        client: PrometheusClient,
        path: str,
        fields: dict[str, str],
        use: Callable[[list[SeriesAnswer]], list[_T]],
    ) -> list[_T]:
        answer = client.ask(path, fields)
        remarks = [*(answer.warnings or ()), *(["partial answer"] if answer.is_partial else [])]
        try:
            with self.decoding:
                found, broken = series(answer.data)
                result = use(found)
        except msgspec.MsgspecError as error:
            raise SourceError(f"an answer of another shape: {clean(str(error), 120)}") from None
        if broken:
            remarks.append(f"{broken} series could not be read")
        for remark in remarks:
            words = clean(remark, 120)
            if words not in self.warnings and len(self.warnings) < _WARNINGS_KEPT:
                self.warnings.append(words)
        return result

    async def samples(self, names: Sequence[str], query: MakeQuery, clocks: Clocks, asked_at: float) -> list[Sample]:
        """Return samples of metrics; a request that is too wide is narrowed, by names, then once by GPUs.

        Args:
            names: Metric names.
            query: Makes the query for some of the names.
            clocks: Gives sample times.
            asked_at: Time of asking in the server's time.

        Raises:
            SourceError: A request is refused.
        """
        if len(names) > 1 and self._one_by_one:
            return await self._each(list(names), query, clocks, asked_at)
        if len(names) == 1 and names[0] in self._halved:
            return await self._in_halves(names[0], query, clocks, asked_at)
        try:
            return await self._whole(names, query, clocks, asked_at)
        except RefusedQueryError:
            if len(names) < 2:
                raise
            # Some services take no query without a metric's name: that is learnt once.
            found = await self._each(list(names), query, clocks, asked_at)
            self._one_by_one = True
            return found
        except TooWideError:
            if len(names) < 2:
                found = await self._in_halves(names[0], query, clocks, asked_at)
                self._halved.add(names[0])
                return found
        half = len(names) // 2
        one = await self.samples(names[:half], query, clocks, asked_at)
        return one + await self.samples(names[half:], query, clocks, asked_at)

    async def _each(self, names: list[str], query: MakeQuery, clocks: Clocks, asked_at: float) -> list[Sample]:
        parts = await asyncio.gather(*(self.samples([name], query, clocks, asked_at) for name in names))
        return [sample for part in parts for sample in part]

    async def _in_halves(self, name: str, query: MakeQuery, clocks: Clocks, asked_at: float) -> list[Sample]:
        found: list[Sample] = []
        for narrowed in halves(name):
            found += await self._whole([name], query, clocks, asked_at, narrowed)
        return found

    async def _whole(
        self, names: Sequence[str], query: MakeQuery, clocks: Clocks, asked_at: float, narrowed: str = ""
    ) -> list[Sample]:
        only = names[0] if len(names) == 1 else ""
        began = time.monotonic()
        found = await self._answer(
            "query", {"query": query(names, narrowed)}, lambda answers: to_samples(answers, only, clocks, asked_at)
        )
        label = only or f"{names[0]} and {len(names) - 1} more"
        self.took[label] = max(time.monotonic() - began, self.took.get(label, 0.0))
        return found
