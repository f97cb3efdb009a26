"""Asking: a few requests at a time, none of which is waited for longer than told."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import msgspec

from gputop.model.endpoint import Endpoint
from gputop.model.text import clean
from gputop.sources.base import SourceError
from gputop.sources.http_failures import host_of
from gputop.sources.metrics.envelope import SeriesAnswer, series
from gputop.sources.prometheus.client import PrometheusClient
from gputop.sources.prometheus.flavour import Flavour, flavour
from gputop.sources.prometheus.queries import AT_ONCE
from gputop.sources.prometheus.refusals import LateError, SlowError
from gputop.sources.tokens import Tokens
from gputop.threads import in_thread

_REMARKS_KEPT: Final = 3
_GRACE_S: Final = 4.0
_MOST_STUCK: Final = 8
_ON_THE_QUERY: Final = ("PromQL warning: ", "PromQL info: ")
"""How Prometheus begins what it remarks on the query; any other warning may mean that a part is missing."""
_T = TypeVar("_T")


class Fetcher:
    """Clients in threads, one for each request at a time.

    Args:
        endpoint: Where and as whom.

    Attributes:
        flavour: What the server is; the first `greet` tells it.
        greeted: It has answered.
        warnings: What the server remarked in the present round; a partial answer is said here.
        infos: Its remarks on queries, which take nothing from the answers.
        is_partial: An answer of the present round may lack what a store or replica would have told.
        slow: Why the server asked, in the present round, to be asked less often; None if it did not.
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
        self._gone_requests = 0
        self._gone_bytes = 0
        self.flavour = Flavour()
        self.greeted = False
        self.warnings: list[str] = []
        self.infos: list[str] = []
        self.is_partial = False
        self.slow: SlowError | None = None
        self._late_in_round = 0

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
        self.infos = []
        self.is_partial = False
        self.slow = None
        self._late_in_round = 0

    def close(self) -> None:
        """Close every connection; a thread that waits for an answer ends with it or with the program."""
        for client in self._all:
            client.close()

    async def greet(self) -> tuple[list[SeriesAnswer], float, float]:
        """Ask for the server's time and learn what it is.

        Returns:
            The answer to `time()`, and this machine's time before and after.

        Raises:
            SourceError: It does not answer, or refuses.
        """
        asked = time.time()
        probe = await self._run(lambda client: client.ask("query", {"query": "time()"}))
        answered = time.time()
        if not self.greeted:
            await self._learn_flavour(is_partial_told=probe.is_partial is not None)
            self.greeted = True
        try:
            return series(probe.data)[0], asked, answered
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
            if self._late_in_round >= AT_ONCE:
                # A server that hangs would be waited for with each further question, and nothing be shown meanwhile.
                raise SourceError(f"{self._late()}; the rest of this round is left out")
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
                    self._late_in_round += 1
                    raise LateError(self._late()) from None
                raise
            except SourceError as error:
                self._late_in_round += isinstance(error, LateError)
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
        return await self.instant(query, lambda found: found)

    async def instant(self, query: str, use: Callable[[list[SeriesAnswer]], list[_T]]) -> list[_T]:
        """Return what `use` makes of the series of an instant query, in the thread that read them.

        Raises:
            SourceError: There is no such answer.
        """
        return await self._answer("query", {"query": query}, use)

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
        remarks = [*(answer.warnings or ()), *(["the answer is partial"] if answer.is_partial else [])]
        try:
            with self.decoding:
                found, broken = series(answer.data)
                result = use(found)
        except msgspec.MsgspecError as error:
            raise SourceError(f"an answer of another shape: {clean(str(error), 120)}") from None
        if broken:
            remarks.append(f"{broken} series could not be read")
        if any(not remark.startswith(_ON_THE_QUERY) for remark in remarks):
            self.is_partial = True
        _note(self.warnings, remarks)
        _note(self.infos, answer.infos or ())
        return result


def _note(notes: list[str], remarks: Iterable[str]) -> None:
    for remark in remarks:
        words = clean(remark, 120)
        if words and words not in notes and len(notes) < _REMARKS_KEPT:
            notes.append(words)
