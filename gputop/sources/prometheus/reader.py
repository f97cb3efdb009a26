"""One round of questions: who is there, what is wanted of them, which exporters are silent, what is allocated."""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct, structs

from gputop.sources.base import SourceError
from gputop.sources.metrics.coverage import FORGET_AFTER_S, is_gpu_target
from gputop.sources.metrics.envelope import SeriesAnswer, number
from gputop.sources.metrics.labels import ROW_LABELS
from gputop.sources.metrics.names import METRICS, rule_of
from gputop.sources.metrics.rule import Role
from gputop.sources.metrics.sample import Sample
from gputop.sources.prometheus.clocks import TARGET_LABELS, Clocks
from gputop.sources.prometheus.doubles import Doubles, look, unequal, without
from gputop.sources.prometheus.fetch import Fetcher
from gputop.sources.prometheus.narrow import Found, MakeQuery, Narrow
from gputop.sources.prometheus.queries import (
    AT_ONCE,
    FIRST,
    KSM_QUERIES,
    NAMES_AT_ONCE,
    PROBE,
    SMALL_FLEET,
    chunks,
    identities,
    matcher_part,
    names_for,
)
from gputop.sources.prometheus.selector import label_name, one_of, select
from gputop.threads import in_thread

_PROBE_EVERY_S: Final = 300.0
KSM_EVERY_S: Final = 30.0
_GPU_JOBS: Final = 'job=~"(?i).*(dcgm|gpu|nvidia|nvitop).*"'
_TARGETS_ASKED: Final = 200
_TROUBLES_KEPT: Final = 3


class Part(Struct, frozen=True):
    """Samples that are decoded together.

    Attributes:
        samples: The samples.
        asked_at: Time of asking, by the server's clock.
        complete: All GPUs that are listed now are among them.
        all_labels: They carry the labels of workloads, which a server that reduces series drops.
        kubernetes: They are kube-state-metrics'.
        gaps: Some metrics were asked for without an answer, so one that is not there says nothing.
    """

    samples: list[Sample]
    asked_at: float
    complete: bool = False
    all_labels: bool = False
    kubernetes: bool = False
    gaps: bool = False


class Reader:
    """Asks a server round by round, and remembers what it has.

    Args:
        fetcher: Does the asking.
        narrow: Asks for metrics.
        clocks: Sample times.
        matchers: The user's matchers.

    Attributes:
        names: Metric names of GPUs that the server has; None where it did not tell.
        boards: Number of GPUs in the last round.
        instances: Number of MIG instances in the last round.
        targets: Addresses of the exporters that told of them.
        silent: Addresses of exporters that cannot be scraped.
        has_kube: kube-state-metrics is there.
        troubles: What was not answered in the present round.
    """

    def __init__(self, fetcher: Fetcher, narrow: Narrow, clocks: Clocks, matchers: str) -> None:
        self._fetcher = fetcher
        self._narrow = narrow
        self._clocks = clocks
        self._matchers = matchers
        self.names: frozenset[str] | None = None
        self.boards = self.instances = 0
        self.targets: set[str] = set()
        self.silent: set[str] = set()
        self.has_kube: bool | None = None
        self.troubles: list[str] = []
        self._last_seen: dict[str, float] = {}
        self._names_told: frozenset[str] | None = None
        self._seen: set[str] = set()
        self._doubles = Doubles()
        self._probed_at: float | None = None
        self._kube_at: float | None = None
        self._gaps = False
        self._lists_all = True
        self._rounds = 0

    async def round(self, quantities: frozenset[str] | None) -> AsyncIterator[Part]:
        """Ask for everything once; what is derived from several metrics comes in one part.

        Raises:
            SourceError: The server does not answer, or refuses.
        """
        self.troubles = []
        self._narrow.begin_round()
        self._gaps = False
        self._lists_all = True
        asked_at = time.time() - self._clocks.offset_s
        asked: set[str] = set()
        samples: list[Sample] = []
        if not self._rounds:
            # The first paint waits neither for the names, which take a large server seconds, nor for the rest.
            samples = await self._who(identities(None), asked_at)
            asked.update(identities(None))
            samples += await self._values(self._first(quantities, asked), asked_at)
            asked.update(self._first(quantities, asked))
            yield Part(samples, asked_at, all_labels=True)
        if self._probed_at is None or time.monotonic() - self._probed_at > _PROBE_EVERY_S or not self.names:
            await self._probe()
        if self.names == frozenset():
            self._trouble("it has no metric of any GPU exporter")
        missing = [name for name in identities(self.names) if name not in asked]
        if missing:
            samples += await self._who(missing, asked_at)
            asked.update(missing)
        async for part in self._rest(samples, asked, quantities, asked_at):
            yield part
        if self._kube_at is None or time.monotonic() - self._kube_at > KSM_EVERY_S:
            self._kube_at = time.monotonic()
            kube, whole = await self._kube(asked_at)
            if self.has_kube and whole and not kube:
                # Nothing at all is a silent kube-state-metrics rather than an empty cluster.
                self._trouble("kube-state-metrics tells nothing any more")
            self.has_kube = bool(kube) or (self.has_kube and not whole)
            if kube:
                yield Part(kube, asked_at, complete=whole, all_labels=True, kubernetes=True)
        if self._names_told is None:
            self.names = frozenset(self._seen)
        self._rounds += 1

    async def _rest(
        self, samples: list[Sample], asked: set[str], quantities: frozenset[str] | None, asked_at: float
    ) -> AsyncIterator[Part]:
        wanted = names_for(quantities if self.names is not None else None, self.names)
        rest = [name for name in wanted if name not in asked]
        large = self.boards + self.instances > SMALL_FLEET
        now = [name for name in rest if _quantity(name) in FIRST] if large else rest
        samples += await self._values(now, asked_at)
        samples += await self._up(asked_at)
        self._learn(samples)
        # What a store that is down would have told is not missing.
        lists_all = self._lists_all and not self._fetcher.is_partial
        yield Part(samples, asked_at, complete=lists_all, all_labels=True, gaps=self._gaps)
        if not large:
            return
        await _let_go(samples)
        # All samples of 10,240 GPUs at once are half a gigabyte; these derive nothing from one another.
        for some in chunks([name for name in rest if name not in now], AT_ONCE):
            part = await self._values(some, asked_at)
            self._learn(part)
            yield Part(part, asked_at)
            await _let_go(part)

    def _first(self, quantities: frozenset[str] | None, asked: set[str]) -> list[str]:
        return [n for n in names_for(quantities, None) if _quantity(n) in FIRST and n not in asked]

    def _learn(self, samples: Iterable[Sample]) -> None:
        """Where the server lists no names, those that answered are the ones it has."""
        if self._names_told is None:
            self._seen.update(sample.name for sample in samples if rule_of(sample.name) is not None)

    async def _probe(self) -> None:
        """Learn which names exist."""
        self._probed_at = time.monotonic()
        try:
            answers = await self._fetcher.query(PROBE % matcher_part(self._matchers))
        except SourceError as error:
            self.names = self._names_told = None
            self._trouble(f"names could not be listed: {error.reason}")
            return
        self.names = self._names_told = frozenset(a.metric.get("__name__", "") for a in answers)

    async def _who(self, names: Sequence[str], asked_at: float) -> list[Sample]:
        """Return the series that tell which GPUs there are, with all labels and their own times."""
        await self._read_times(names)
        found = await self._narrow.samples(names, self._raw, asked_at)
        if found.failures and not found.samples:
            raise found.failures[0]
        self._failed(found)
        self._lists_all = self._lists_all and not found.failures
        samples = found.samples
        seen = await in_thread(lambda: look(samples), "prometheus look")
        self.boards, self.instances, self.targets = seen.boards, seen.instances, seen.targets
        now = time.monotonic()
        self._last_seen.update(dict.fromkeys(seen.targets, now))
        await self._read_own_times(names, seen.doubles)
        if not seen.doubles:
            self._doubles = Doubles()
            return samples
        samples = [self._timed(s, asked_at) if self._is_double(s, seen.doubles) else s for s in samples]
        self._doubles = unequal(s for s in samples if self._is_double(s, seen.doubles))
        return samples

    @staticmethod
    def _is_double(sample: Sample, doubles: Doubles) -> bool:
        return sample.labels.get("instance", "") in doubles.instances

    def _timed(self, sample: Sample, asked_at: float) -> Sample:
        return structs.replace(sample, at=self._clocks.at(sample.labels, asked_at))

    async def _read_times(self, names: Sequence[str]) -> None:
        # `timestamp` drops the name, so two metrics of one target in one selector would collide.
        by = ", ".join(TARGET_LABELS)
        parts = [f"max by ({by}) (timestamp({select([name], self._matchers)}))" for name in names]
        try:
            answers = await self._narrow.any_of(parts)
            now = time.time() - self._clocks.offset_s
            await in_thread(lambda: self._clocks.take(answers, now), "prometheus clocks")
        except SourceError as error:
            self._trouble(f"sample times could not be read: {error.reason}")

    async def _read_own_times(self, names: Sequence[str], doubles: Doubles) -> None:
        """Read the times of single series where several of one GPU may stand side by side.

        After a pod change within the lookback, and for Xids, each of which is a series of its own.
        """
        xids = [n for n in self.names or METRICS if (r := rule_of(n)) is not None and r.role is Role.XID_LAST]
        # Of an expression `timestamp` gives the time of the question, so what is 0 is left out afterwards.
        parts = [f"timestamp({s}) and {s} > 0" for s in (select([name], self._matchers) for name in xids)]
        labels = (*ROW_LABELS, *doubles.labels)
        if doubles:
            few = _instances(doubles.instances)
            parts += [f"timestamp({select([name], few, self._matchers)})" for name in names]
        try:
            answers = await self._narrow.any_of(parts, lambda e: _reduced_to(labels, e)) if parts else []
        except SourceError as error:
            self._trouble(f"times of single series could not be read, so which is the newest: {error.reason}")
            answers = []
        await in_thread(lambda: self._clocks.take_own(answers, labels), "prometheus clocks")

    def _raw(self, names: Sequence[str], narrowed: str = "") -> str:
        return select(names, self._matchers, narrowed)

    def _reduced(self, names: Sequence[str], narrowed: str = "") -> str:
        (name,) = names
        return _reduced_to((*ROW_LABELS, *self._doubles.labels), select([name], self._matchers, narrowed))

    async def _values(self, names: Sequence[str], asked_at: float) -> list[Sample]:
        """Return the values of metrics: in wide requests for a small fleet, one by one for a large one."""
        if self.boards + self.instances <= SMALL_FLEET:
            return await self._all([list(c) for c in chunks(names, NAMES_AT_ONCE)], self._raw, asked_at)
        samples = await self._all([[name] for name in names], self._reduced, asked_at)
        # They have told the time of the series; of a workload they would tell a part only.
        return without(samples, self._doubles) if self._doubles else samples

    async def _all(self, pieces: Iterable[Sequence[str]], query: MakeQuery, asked_at: float) -> list[Sample]:
        answers = await asyncio.gather(*(self._narrow.samples(piece, query, asked_at) for piece in pieces))
        for found in answers:
            self._failed(found)
        return [sample for found in answers for sample in found.samples]

    def _failed(self, found: Found) -> None:
        self._gaps = self._gaps or bool(found.failures)
        for error in found.failures:
            self._trouble(error.reason)

    async def _up(self, asked_at: float) -> list[Sample]:
        """Return how the scrapes of GPU exporters are: those that look so, and those that told of GPUs before."""
        parts = [f"{select(['up'], self._matchers)} == 0", select(["up"], _GPU_JOBS, self._matchers)]
        now = time.monotonic()
        self._last_seen = {t: at for t, at in self._last_seen.items() if now - at < FORGET_AFTER_S}
        missing = self._last_seen.keys() - self.targets - {""}
        if missing:
            parts.append(select(["up"], _instances(missing), self._matchers))
        try:
            answers = await self._narrow.any_of(parts)
        except SourceError as error:
            self._trouble(f"scrapes could not be looked at: {error.reason}")
            return []
        samples = self._plain("up", answers, asked_at)
        self.silent = {
            instance
            for s in samples
            if (instance := s.labels.get("instance", "")) and s.value != 1.0
            if instance in self._last_seen or is_gpu_target(s.labels)
        }
        return samples

    async def _kube(self, asked_at: float) -> tuple[list[Sample], bool]:
        """Return what kube-state-metrics tells, and whether every query was answered.

        A workload that is missing from a part of the answers is not gone.
        """
        part = matcher_part(self._matchers)
        answers = await asyncio.gather(
            *(
                self._fetcher.instant(
                    query % ((part,) * query.count("%s")), partial(self._plain, name, asked_at=asked_at)
                )
                for name, query in KSM_QUERIES
            ),
            return_exceptions=True,
        )
        samples: list[Sample] = []
        whole = not self._fetcher.is_partial
        for answer in answers:
            if isinstance(answer, SourceError):
                self._trouble(f"kube-state-metrics: {answer.reason}")
                whole = False
            elif isinstance(answer, BaseException):
                raise answer
            else:
                samples += answer
        return samples, whole

    def _plain(self, name: str, answers: Iterable[SeriesAnswer], asked_at: float) -> list[Sample]:
        """Return samples that are as old as the question."""
        at = asked_at + self._clocks.offset_s
        return [
            Sample(name, {k: v for k, v in one.metric.items() if k != "__name__"}, number(one.value[1]), at)
            for one in answers
            if one.value is not None
        ]

    def _trouble(self, words: str) -> None:
        if words not in self.troubles and len(self.troubles) < _TROUBLES_KEPT:
            self.troubles.append(words)


async def _let_go(samples: list[Sample]) -> None:
    """Free samples in a thread: 100,000 of them take long enough for a key to be missed."""
    await in_thread(samples.clear, "prometheus samples")


def _reduced_to(labels: Iterable[str], expression: str) -> str:
    return f"max by ({', '.join(label_name(label) for label in labels)}) ({expression})"


def _instances(targets: Collection[str]) -> str:
    """Return a matcher of these addresses; of too many of them none, as the whole fleet is the shorter question."""
    return f"instance=~{one_of(sorted(targets))}" if len(targets) <= _TARGETS_ASKED else ""


def _quantity(name: str) -> str:
    rule = rule_of(name)
    return rule.quantity if rule else ""
