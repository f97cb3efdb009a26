"""Prometheus as a source."""

import math
import time
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from gputop.model.demand import Demand
from gputop.model.endpoint import Endpoint
from gputop.model.facts import Batch, Fact
from gputop.model.identity import GpuKey
from gputop.model.status import Cost, Finding
from gputop.model.text import clean
from gputop.sources.base import DemandBoard
from gputop.sources.metrics.decode import Decoder
from gputop.sources.metrics.envelope import number
from gputop.sources.metrics.lacking import generation, lacking
from gputop.sources.metrics.names import PROCESSES
from gputop.sources.prometheus.clocks import SKEW_WORTH_TELLING_S, Clocks
from gputop.sources.prometheus.ranges import RangeAnswer, answer, question
from gputop.sources.prometheus.selector import check_matchers
from gputop.threads import in_thread

if TYPE_CHECKING:
    from gputop.sources.prometheus.fetch import Fetcher
    from gputop.sources.prometheus.narrow import Narrow
    from gputop.sources.prometheus.reader import Part, Reader

_RANK: Final = 2
_FACTS_AT_ONCE: Final = 400
_LEAST_INTERVAL_S: Final = 5.0
_USUAL_SCRAPE_S: Final = 15.0
_MOST_INTERVAL_S: Final = 60.0
_SLOWER: Final = 2.0
_SKEW_IS_TROUBLE_S: Final = 30.0
"""A clock this far off breaks more than ages: tokens, certificates, alerts."""
_NAMED: Final = 3


class PrometheusSource:
    """A server that speaks the Prometheus HTTP API; see `gputop.sources.base.Source`.

    Args:
        endpoint: Where and as whom.
        name: Unique name.
    """

    kind = "prometheus"
    deadline_s = 1.5 * _MOST_INTERVAL_S

    def __init__(self, endpoint: Endpoint, name: str = "prometheus") -> None:
        self.name = name
        self.found = endpoint.found
        self.target = endpoint.url
        self._endpoint = endpoint
        self._fetcher: Fetcher | None = None
        self._narrow: Narrow | None = None
        self._reader: Reader | None = None
        self._clocks = Clocks()
        self._decoder = Decoder(source=name, rank=_RANK, cluster=endpoint.cluster)
        # Of its own, because its round is another: "all that is listed now" would mean two things.
        self._kube_decoder = Decoder(source=name, rank=_RANK, cluster=endpoint.cluster)
        self._remarks: tuple[str, ...] = ()
        self._infos: tuple[str, ...] = ()
        self._troubles: tuple[str, ...] = ()
        self._slowed = 1.0
        self._rounds = 0
        self._last_s: float | None = None
        self._cpu_s = 0.0

    # What the supervisor asks.

    def trouble(self) -> str:
        """Return what is only partly there, or ""."""
        reader = self._reader
        if reader is None:
            return ""
        # What failed in the last round is not mended before this one has come so far.
        parts = list(dict.fromkeys((*reader.troubles, *self._troubles)))
        if reader.silent:
            every = len(reader.targets | reader.silent)
            parts.append(f"{len(reader.silent)} of {every} exporters silent: {_some(reader.silent)}")
        return "; ".join((*self._clock_words(), *parts, *self._remarks))

    def _clock_words(self) -> tuple[str, ...]:
        clocks = self._clocks
        if not clocks.is_told and self._fetcher is not None and self._fetcher.greeted:
            return ("the server does not tell its time, so ages may be wrong",)
        words: list[str] = []
        if abs(clocks.offset_s) > _SKEW_IS_TROUBLE_S:
            words.append(f"its clock is {_seconds_off(-clocks.offset_s)} ours; ages are corrected")
        if clocks.ahead:
            # The target is a label of the server's: others wrote it.
            names = _some({instance for instance, _ in clocks.ahead})
            far = _seconds_off(max(clocks.ahead.values()))
            words.append(f"samples of {names} are stamped {far} the server's clock; ages are corrected")
        return tuple(words)

    def versions(self) -> tuple[tuple[str, str], ...]:
        """Return the server's name and version."""
        if self._fetcher is None or not self._fetcher.greeted:
            return ()
        flavour = self._fetcher.flavour
        return ((flavour.name, flavour.version or "version not told"),)

    def findings(self) -> tuple[Finding, ...]:
        """Return what the server has and lacks."""
        reader = self._reader
        if reader is None or not self._rounds:
            return ()
        instances = f" and {_counted(reader.instances, 'MIG instance')}" if reader.instances else ""
        words = f"{_counted(reader.boards, 'GPU')}{instances} of {_counted(len(reader.targets), 'exporter')}"
        found = [Finding(words, severity="ok")]
        names = reader.names or frozenset()
        if generation(names):
            found.append(Finding(f"dcgm-exporter: {generation(names)}", severity="ok"))
        if self._clocks.scrape_s is not None:
            found.append(Finding(f"scraped each {self._clocks.scrape_s:.0f} s", severity="ok"))
        if abs(self._clocks.offset_s) > SKEW_WORTH_TELLING_S:
            words = f"its clock is {_seconds_off(-self._clocks.offset_s)} ours; ages are corrected"
            found.append(Finding(words, "set both clocks by NTP", severity="warning"))
        if self._narrow is not None and self._narrow.is_narrowed:
            words = "queries were too wide for the server: they are narrowed to parts of the names or GPUs"
            found.append(Finding(words, "ask for fewer with a selector, or raise the server's limits", "warning"))
        found += [Finding(f"the server remarks: {info}") for info in self._infos]
        found += lacking(names)
        if reader.has_kube is False:
            found.append(
                Finding(
                    "no kube-state-metrics: advertised, healthy, used and free are not told",
                    "scrape kube-state-metrics with the node and pod collectors",
                )
            )
        return tuple(found)

    def cost(self) -> Cost:
        """Return what reading has cost."""
        fetcher = self._fetcher
        return Cost(
            requests=fetcher.requests_made if fetcher else 0,
            bytes_read=fetcher.bytes_read if fetcher else 0,
            cpu_s=self._cpu_s,
            last_s=self._last_s,
            slowest=self._narrow.slowest() if self._narrow else (),
        )

    async def aclose(self) -> None:
        """Close every connection."""
        if self._fetcher is not None:
            self._fetcher.close()
            self._fetcher = self._narrow = self._reader = None

    # Reading.

    async def batches(self, board: DemandBoard) -> AsyncIterator[Batch]:
        """Read until cancelled.

        Raises:
            SourceError: The server does not answer or refuses.
        """
        fetcher, reader = await self._open()
        while True:
            began = time.monotonic()
            fetcher.begin_round()
            await self._greet(fetcher)
            interval_s = self._interval(board)
            async for part in reader.round(_wanted(board.current)):
                async for batch in self._decode(fetcher, part, interval_s):
                    yield batch
            self._troubles = tuple(reader.troubles)
            self._remarks, self._infos = tuple(fetcher.warnings), tuple(fetcher.infos)
            self._rounds += 1
            self._last_s = time.monotonic() - began
            yield self._batch((), interval_s, done=True)
            await board.wait(max(1.0, self._pause(fetcher, interval_s) - self._last_s))

    def _interval(self, board: DemandBoard) -> float:
        """Return the time between rounds: nothing new can arrive faster than it is scraped."""
        scrape_s = max(_LEAST_INTERVAL_S, self._clocks.scrape_s or _USUAL_SCRAPE_S)
        # Samples of slow scrapes are looked for twice as often, or they would be seen when already old.
        usual_s = scrape_s if scrape_s <= _USUAL_SCRAPE_S else max(_USUAL_SCRAPE_S, scrape_s / 2.0)
        return min(max(usual_s, board.current.interval_s), _MOST_INTERVAL_S)

    def _pause(self, fetcher: "Fetcher", interval_s: float) -> float:
        """Return the time to the next round, longer while the server says that it is too much for it."""
        slow = fetcher.slow
        self._slowed = min(self._slowed * _SLOWER, _MOST_INTERVAL_S) if slow is not None else 1.0
        asked_s = (slow.retry_s or 0.0) if slow is not None else 0.0
        return max(min(interval_s * self._slowed, _MOST_INTERVAL_S), min(asked_s, _MOST_INTERVAL_S))

    async def _open(self) -> "tuple[Fetcher, Reader]":
        from gputop.sources.prometheus.fetch import Fetcher  # noqa: PLC0415 - loads requests
        from gputop.sources.prometheus.narrow import Narrow  # noqa: PLC0415 - as above
        from gputop.sources.prometheus.reader import Reader  # noqa: PLC0415 - as above

        matchers = check_matchers(self._endpoint.selector)
        if self._fetcher is None or self._reader is None:
            self._fetcher = Fetcher(self._endpoint)
            self._narrow = Narrow(self._fetcher, self._clocks)
            self._reader = Reader(self._fetcher, self._narrow, self._clocks, matchers)
        return self._fetcher, self._reader

    async def _greet(self, fetcher: "Fetcher") -> None:
        """Compare clocks by `time()`; it is also the question whether anybody answers at all."""
        answers, asked, answered = await fetcher.greet()
        value = answers[0].value if answers else None
        self._clocks.greet(number(value[1]) if value is not None else math.nan, asked, answered)

    async def _decode(self, fetcher: "Fetcher", part: "Part", interval_s: float) -> AsyncIterator[Batch]:
        """Decode in a thread, so that keys are answered meanwhile, and hand on in small batches."""
        facts = await in_thread(lambda: self._decode_now(fetcher, part), "prometheus decode")
        # Taken off as they are handed on: to let go of 10,000 at once takes as long as to miss a key.
        while facts:
            some = [facts.popleft() for _ in range(min(_FACTS_AT_ONCE, len(facts)))]
            yield self._batch(some, interval_s)

    def _decode_now(self, fetcher: "Fetcher", part: "Part") -> deque[Fact]:
        decoder = self._kube_decoder if part.kubernetes else self._decoder
        at = part.asked_at + self._clocks.offset_s
        with fetcher.decoding:
            began = time.thread_time()
            facts = decoder.decode(part.samples, at, complete=part.complete, all_labels=part.all_labels, gaps=part.gaps)
            self._cpu_s += time.thread_time() - began
        return deque(facts)

    def _batch(self, facts: Iterable[Fact], interval_s: float, *, done: bool = False) -> Batch:
        return Batch(
            self.name,
            _RANK,
            time.time(),
            self._clocks.stale_after_s(interval_s),
            tuple(facts),
            max(interval_s, self._clocks.scrape_s or 0.0),
            done,
        )

    async def history(self, key: GpuKey, hosts: Sequence[str], quantity: str, hours: float) -> RangeAnswer | None:
        """Return hours of a GPU's quantity, or None if the server has nothing of it.

        Args:
            key: The GPU.
            hosts: Every name of its host.
            quantity: Id of the quantity.
            hours: How far back.

        Raises:
            SourceError: The server does not answer.
        """
        fetcher, reader = await self._open()
        matchers = check_matchers(self._endpoint.selector)
        asked = question(quantity, key, hosts, hours, matchers, reader.names, self._clocks)
        if asked is None:
            return None
        series = await fetcher.query_range(asked.query, asked.start, asked.end, asked.step_s)
        return answer(asked, series, self._clocks.offset_s)


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def _some(targets: Collection[str]) -> str:
    """Return the first of some targets, cleaned."""
    names = ", ".join(clean(t, 60) for t in sorted(targets)[:_NAMED])
    return f"{names} and {len(targets) - _NAMED} more" if len(targets) > _NAMED else names


def _seconds_off(seconds: float) -> str:
    return f"{abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'}"


def _wanted(demand: Demand) -> frozenset[str] | None:
    """Return what to ask for: the quantities, and process lists where they are looked at."""
    wanted = demand.quantities
    return wanted | {PROCESSES} if wanted is not None and demand.processes else wanted
