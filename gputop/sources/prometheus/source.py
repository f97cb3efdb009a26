"""Prometheus as a source."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from gputop.model.endpoint import Endpoint
from gputop.model.facts import Batch, Fact
from gputop.model.identity import GpuKey
from gputop.model.status import Cost, Finding
from gputop.sources.base import DemandBoard, SourceError
from gputop.sources.metrics.coverage import is_gpu_target
from gputop.sources.metrics.decode import Decoder
from gputop.sources.metrics.names import rule_of
from gputop.sources.metrics.sample import Sample
from gputop.sources.prometheus.clocks import SKEW_WORTH_TELLING_S, Clocks
from gputop.sources.prometheus.envelope import number
from gputop.sources.prometheus.queries import (
    AT_ONCE,
    FIRST,
    IDENTITY_LABELS,
    KSM_QUERIES,
    NAMES_AT_ONCE,
    PROBE,
    SMALL_FLEET,
    identities,
    matcher_part,
    names_for,
)
from gputop.sources.prometheus.ranges import RangeAnswer, answer, question
from gputop.sources.prometheus.selector import check_matchers, one_of, select
from gputop.sources.prometheus.vectors import to_samples

if TYPE_CHECKING:
    from gputop.sources.prometheus.fetch import Fetcher

_FACTS_AT_ONCE: Final = 400
_LEAST_INTERVAL_S: Final = 5.0
_USUAL_SCRAPE_S: Final = 15.0
_PROBE_EVERY_S: Final = 300.0
_KSM_EVERY_S: Final = 30.0
_RANK: Final = 2
_GPU_JOBS: Final = 'job=~"(?i).*(dcgm|gpu|nvidia|nvitop).*"'
_MISSING_ASKED: Final = 200
_T = TypeVar("_T")


class PrometheusSource:
    """A server that speaks the Prometheus HTTP API.

    Args:
        endpoint: Where and as whom.
        name: Unique name.
    """

    kind = "prometheus"
    deadline_s = 60.0

    def __init__(self, endpoint: Endpoint, name: str = "prometheus") -> None:
        self.name = name
        self.found = endpoint.found
        self.target = endpoint.url
        self._endpoint = endpoint
        self._fetcher: Fetcher | None = None
        self._clocks = Clocks()
        self._decoder = Decoder(source=name, rank=_RANK, cluster=endpoint.cluster)
        # Of its own, because its round is another: "all that is listed now" would mean two things.
        self._kube_decoder = Decoder(source=name, rank=_RANK, cluster=endpoint.cluster)
        self._matchers = ""
        self._names: frozenset[str] | None = None
        self._probed_at = 0.0
        self._ksm_at = 0.0
        self._ksm_seen = False
        self._silent: set[str] = set()
        self._targets: set[str] = set()
        self._targets_ever: set[str] = set()
        self._version: tuple[tuple[str, str], ...] = ()
        self._warnings: tuple[str, ...] = ()
        self._troubles: tuple[str, ...] = ()
        self._rounds = 0
        self._last_s: float | None = None
        self._cpu_s = 0.0
        self._gpus = 0

    # What the supervisor asks.

    def trouble(self) -> str:
        """Return what is only partly there, or ""."""
        parts = list(self._troubles)
        if self._silent:
            parts.append(f"{len(self._silent)} of {len(self._targets | self._silent)} exporters silent")
        parts += self._warnings
        return "; ".join(parts)

    def versions(self) -> tuple[tuple[str, str], ...]:
        """Return the server's name and version."""
        return self._version

    def findings(self) -> tuple[Finding, ...]:
        """Return what the server has and lacks."""
        if not self._rounds:
            return ()
        found = [Finding(f"{self._gpus} GPUs of {len(self._targets)} exporters", severity="ok")]
        if self._clocks.scrape_s is not None:
            found.append(Finding(f"scraped each {self._clocks.scrape_s:.0f} s", severity="ok"))
        if abs(self._clocks.offset_s) > SKEW_WORTH_TELLING_S:
            found.append(
                Finding(
                    f"its clock is {-self._clocks.offset_s:+.0f} s from ours; ages are corrected", severity="warning"
                )
            )
        found += [f for group, f in _LACKING if self._names is not None and not _has(self._names, group)]
        if not self._ksm_seen:
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
        )

    async def aclose(self) -> None:
        """Close every connection."""
        if self._fetcher is not None:
            self._fetcher.close()
            self._fetcher = None

    # Reading.

    async def batches(self, board: DemandBoard) -> AsyncIterator[Batch]:
        """Read until cancelled.

        Raises:
            SourceError: The server does not answer or refuses.
        """
        fetcher = await self._open()
        while True:
            began = time.monotonic()
            fetcher.warnings = []
            fetcher.partial = False
            self._troubles = ()
            interval_s = self._interval(board)
            async for batch in self._round(fetcher, board, interval_s):
                yield batch
            self._warnings = tuple(fetcher.warnings)
            self._rounds += 1
            self._last_s = time.monotonic() - began
            yield self._batch((), interval_s, done=True)
            await board.wait(max(1.0, interval_s - self._last_s))

    def _interval(self, board: DemandBoard) -> float:
        """Return the time between rounds: nothing new can arrive faster than it is scraped."""
        scrape_s = self._clocks.scrape_s or _USUAL_SCRAPE_S
        return max(_LEAST_INTERVAL_S, min(scrape_s, _USUAL_SCRAPE_S), board.current.interval_s)

    async def _open(self) -> "Fetcher":
        from gputop.sources.prometheus.fetch import Fetcher  # noqa: PLC0415 - loads requests

        self._matchers = check_matchers(self._endpoint.selector)
        if self._fetcher is None:
            self._fetcher = await asyncio.to_thread(Fetcher, self._endpoint)
        fetcher = self._fetcher
        await self._measure_clock(fetcher)
        with contextlib.suppress(SourceError):
            build = await fetcher.run(lambda client: client.ask("status/buildinfo", {}))
            self._version = _version(bytes(build.data))
        return fetcher

    async def _measure_clock(self, fetcher: "Fetcher") -> None:
        """Compare clocks by `time()`; it is also the question whether anybody answers at all."""
        began = time.time()
        answers = await fetcher.query("time()")
        took = time.time() - began
        if answers and answers[0].value is not None:
            self._clocks.offset_s = began + took / 2 - number(answers[0].value[1])

    async def _round(self, fetcher: "Fetcher", board: DemandBoard, interval_s: float) -> AsyncIterator[Batch]:
        """Ask for everything once; what is derived needs all samples of a round together."""
        await self._measure_clock(fetcher)
        if time.monotonic() - self._probed_at > _PROBE_EVERY_S or not self._probed_at or self._names == frozenset():
            await self._probe(fetcher)
        if self._names == frozenset():
            self._troubles = (*self._troubles, "it has no metric of any GPU exporter")
        identity = identities(self._names)
        asked_at = time.time() - self._clocks.offset_s
        await self._read_times(fetcher, identity)
        samples = await fetcher.samples(identity, self._raw, self._clocks, asked_at)
        self._count(samples)
        wanted = [n for n in names_for(board.current.quantities, self._names) if n not in identity]
        first = [n for n in wanted if _quantity(n) in FIRST]
        rest = [n for n in wanted if n not in first]
        samples += await self._values(fetcher, first, asked_at)
        if not self._rounds:
            # The first paint does not wait for the rest.
            async for batch in self._decode(self._decoder, samples, asked_at, interval_s, complete=False):
                yield batch
        large = self._gpus > SMALL_FLEET
        if not large:
            samples += await self._values(fetcher, rest, asked_at)
        samples += await self._up(fetcher, asked_at)
        async for batch in self._decode(self._decoder, samples, asked_at, interval_s, complete=True):
            yield batch
        if large:
            # All samples of 10,240 GPUs at once are half a gigabyte; these derive nothing from one another.
            samples = []
            for names in _chunks(rest, AT_ONCE):
                part = await self._values(fetcher, names, asked_at)
                async for batch in self._decode(self._decoder, part, asked_at, interval_s, complete=False):
                    yield batch
        if time.monotonic() - self._ksm_at > _KSM_EVERY_S or not self._ksm_at:
            self._ksm_at = time.monotonic()
            kube, whole = await self._kube(fetcher, asked_at)
            self._ksm_seen = bool(kube)
            async for batch in self._decode(self._kube_decoder, kube, asked_at, _KSM_EVERY_S, complete=whole):
                yield batch

    def _count(self, samples: Sequence[Sample]) -> None:
        self._gpus = len({(s.labels.get("UUID") or s.labels.get("uuid"), s.labels.get("GPU_I_ID")) for s in samples})
        self._targets = {s.labels.get("instance", "") for s in samples}
        self._targets_ever |= self._targets

    async def _probe(self, fetcher: "Fetcher") -> None:
        """Learn which names exist; a server that cannot say in time is asked for all that are known."""
        self._probed_at = time.monotonic()
        try:
            answers = await fetcher.query(PROBE % matcher_part(self._matchers))
        except SourceError as error:
            self._names = None
            self._troubles = (f"names could not be listed: {error.reason}",)
            return
        self._names = frozenset(a.metric.get("__name__", "") for a in answers)

    async def _read_times(self, fetcher: "Fetcher", names: Sequence[str]) -> None:
        # `timestamp` drops the name, so two metrics of one target in one selector would collide.
        parts = (f"max by (instance) (timestamp({select([name], self._matchers)}))" for name in names)
        try:
            self._clocks.take(await fetcher.query(" or ".join(parts)))
        except SourceError as error:
            self._troubles = (*self._troubles, f"sample times could not be read: {error.reason}")

    def _raw(self, names: Sequence[str]) -> str:
        return select(names, self._matchers)

    def _reduced(self, names: Sequence[str]) -> str:
        (name,) = names
        return f"max by ({', '.join(IDENTITY_LABELS)}) ({select([name], self._matchers)})"

    async def _values(self, fetcher: "Fetcher", names: Sequence[str], asked_at: float) -> list[Sample]:
        """Return the values of metrics: in wide requests for a small fleet, one by one for a large one."""
        small = self._gpus <= SMALL_FLEET
        chunks = [list(c) for c in _chunks(names, NAMES_AT_ONCE)] if small else [[n] for n in names]
        query = self._raw if small else self._reduced
        answers = await asyncio.gather(
            *(fetcher.samples(chunk, query, self._clocks, asked_at) for chunk in chunks), return_exceptions=True
        )
        samples: list[Sample] = []
        for one in answers:
            if isinstance(one, SourceError):
                self._troubles = (*self._troubles[:2], one.reason)
            elif isinstance(one, BaseException):
                raise one
            else:
                samples += one
        return samples

    async def _up(self, fetcher: "Fetcher", asked_at: float) -> list[Sample]:
        """Return how the scrapes of GPU exporters are: those that look so, and those that told of GPUs before."""
        parts = [f"{select(['up'], self._matchers)} == 0", select(["up"], _GPU_JOBS, self._matchers)]
        missing = self._targets_ever - self._targets - {""}
        if missing:
            parts.append(select(["up"], f"instance=~{one_of(sorted(missing)[:_MISSING_ASKED])}", self._matchers))
        try:
            answers = await fetcher.query(" or ".join(parts))
        except SourceError as error:
            self._troubles = (*self._troubles[:2], f"scrapes could not be looked at: {error.reason}")
            return []
        samples = [
            Sample("up", s.labels, s.value, asked_at + self._clocks.offset_s)
            for s in to_samples(answers, "up", self._clocks, asked_at)
        ]
        self._silent = {
            s.labels.get("instance", "")
            for s in samples
            if s.value != 1.0 and (s.labels.get("instance", "") in self._targets_ever or is_gpu_target(s.labels))
        }
        return samples

    async def _kube(self, fetcher: "Fetcher", asked_at: float) -> tuple[list[Sample], bool]:
        """Return what kube-state-metrics tells, and whether every query was answered.

        A workload that is missing from a part of the answers is not gone.
        """
        part = matcher_part(self._matchers)
        samples: list[Sample] = []
        whole = True
        for name, query in KSM_QUERIES:
            try:
                answers = await fetcher.query(query % ((part,) * query.count("%s")))
            except SourceError as error:
                self._troubles = (*self._troubles[:2], f"kube-state-metrics: {error.reason}")
                whole = False
                continue
            for one in answers:
                if one.value is not None:
                    labels = {k: v for k, v in one.metric.items() if k != "__name__"}
                    samples.append(Sample(name, labels, number(one.value[1]), asked_at + self._clocks.offset_s))
        return samples, whole

    async def _decode(
        self, decoder: Decoder, samples: list[Sample], asked_at: float, interval_s: float, *, complete: bool
    ) -> AsyncIterator[Batch]:
        """Decode in a thread, so that keys are answered meanwhile, and hand on in small batches."""
        at = asked_at + self._clocks.offset_s
        facts = await asyncio.to_thread(self._decode_now, decoder, samples, at, complete)
        for part in _chunks(facts, _FACTS_AT_ONCE):
            yield self._batch(part, interval_s)

    def _decode_now(self, decoder: Decoder, samples: list[Sample], at: float, complete: bool) -> list[Fact]:  # noqa: FBT001 - in a thread
        began = time.thread_time()
        # What is read in parts was reduced by the server, which dropped workload labels.
        facts = decoder.decode(samples, at, complete=complete, all_labels=complete)
        self._cpu_s += time.thread_time() - began
        return facts

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

        Raises:
            SourceError: The server does not answer.
        """
        fetcher = self._fetcher or await self._open()
        asked = question(quantity, key, hosts, hours, self._matchers, self._names)
        if asked is None:
            return None
        series = await fetcher.query_range(asked.query, asked.start, asked.end, asked.step_s)
        return answer(asked, quantity, series, self._clocks.offset_s)


def _lacks(words: str, field: str, kind: str, title: str) -> Finding:
    return Finding(words, f"dcgm-exporter CSV: {field}, {kind}, {title}")


_LACKING: Final = (
    ("ECC_", _lacks("no ECC counters", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "double-bit errors")),
    ("PROF_", _lacks("no profiling metrics (SM, tensor)", "DCGM_FI_PROF_SM_ACTIVE", "gauge", "SM activity")),
    ("FB_RESERVED", _lacks("no reserved memory: totals are lower bounds", "DCGM_FI_DEV_FB_RESERVED", "gauge", "MiB")),
    ("EXP_XID", _lacks("no Xid window: repeats are hidden", "DCGM_EXP_XID_ERRORS_COUNT", "gauge", "Xids")),
)
"""Part of a metric name, and what is to say when dcgm-exporter has no such metric."""


def _has(names: frozenset[str], part: str) -> bool:
    return not any(n.startswith("DCGM_") for n in names) or any(part in n for n in names)


def _quantity(name: str) -> str:
    rule = rule_of(name)
    return rule.quantity if rule else ""


def _version(data: bytes) -> tuple[tuple[str, str], ...]:
    with contextlib.suppress(msgspec.MsgspecError):
        fields = msgspec.json.decode(data, type=dict[str, str])
        return ((fields.get("application") or "Prometheus", fields.get("version", "?")),)
    return ()


def _chunks(items: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
