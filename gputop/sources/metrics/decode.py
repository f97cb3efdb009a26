"""The decoder: samples of any exporter in, facts out."""

from collections.abc import Iterable
from typing import Final

from msgspec import structs

from gputop.model.facts import Fact, GpuFact, HoldersFact, NodeFact
from gputop.model.identity import GpuRef, NodeRef
from gputop.model.reading import Value
from gputop.model.sanity import judge_raw, judge_text
from gputop.model.text import clean, is_whole
from gputop.model.workload import Holder
from gputop.sources.metrics import judgements
from gputop.sources.metrics.coverage import Coverage, Target, is_gpu_target
from gputop.sources.metrics.frozen import Frozen, FrozenWatch, words
from gputop.sources.metrics.judgements import Judged
from gputop.sources.metrics.kube import Kubernetes
from gputop.sources.metrics.labels import Labels, Resolver, first
from gputop.sources.metrics.names import names_wanted, rule_of
from gputop.sources.metrics.processes import ProcessTable, ProcessTables
from gputop.sources.metrics.rows import SAME_SCRAPE_S, Row, RowKey, Rows, finish, judged
from gputop.sources.metrics.rule import MetricRule, Role
from gputop.sources.metrics.sample import Sample
from gputop.sources.metrics.units import Units
from gputop.sources.metrics.xids import Seen, Standing, Xids

__all__ = ["Decoder", "names_wanted"]

_NO_HOST: Final = "unknown-host"
_FROZEN: Final = "frozen"
_STALE: Final = "exporter_stale"
_REPLACED_AFTER_S: Final = 90.0
"""An exporter this far behind another one of the same GPU has been replaced by it."""
_OPENSHIFT_ORDER: Final = 9
_XID_LABELS: Final = ("xid", "err_code")


class _Answer:
    """What the samples of one answer are put together into."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.xids: dict[RowKey, Seen] = {}
        self.judged: dict[RowKey, Judged] = {}
        self.tables: dict[RowKey, ProcessTable] = {}


class Decoder:
    """Turns the samples of one source into facts.

    It remembers, for as long as the source lives: which hosts and GPUs it has listed, since when the
    energy counter of each GPU has stood still, which exporters tell percentages under a ratio's name,
    which Xids and which troubles it has told.

    Args:
        source: Name of the source, as in `Origin.source`.
        rank: Nearness to the device: 1 for an exporter, 2 for Prometheus.
        cluster: Cluster of samples that carry no cluster label.
        default_host: Host of samples that name none (an exporter read directly).
        cluster_labels: Labels that tell the cluster, the first that is there counts.
        host_labels: Labels that tell the host, tried before the usual ones.
    """

    def __init__(
        self,
        *,
        source: str,
        rank: int,
        cluster: str = "",
        default_host: str = "",
        cluster_labels: tuple[str, ...] = ("cluster",),
        host_labels: tuple[str, ...] = (),
    ) -> None:
        self.source = source
        self.rank = rank
        self.names: set[str] = set()
        self.versions: dict[str, str] = {}
        self._default = NodeRef(default_host or _NO_HOST, cluster)
        self._resolver = Resolver(cluster, default_host or _NO_HOST, cluster_labels, host_labels)
        self._units = Units()
        self._xids = Xids()
        self._frozen = FrozenWatch()
        self._coverage = Coverage()
        self._processes = ProcessTables()
        self._refs: dict[RowKey, GpuRef] = {}

    def decode(
        self,
        samples: Iterable[Sample],
        at: float,
        *,
        complete: bool = True,
        all_labels: bool = True,
        gaps: bool = False,
    ) -> list[Fact]:
        """Return what the samples say.

        Args:
            samples: Samples of one answer, or of several answers of one round. What is derived from
                several metrics (memory total, frozen values) needs them together.
            at: Time of the answer on this machine's clock.
            complete: The samples are the whole of what the source lists now, so that rosters may be given;
                a GPU seen before and not in them is then missing, a host not in them silent.
            all_labels: The samples carry all their labels. Otherwise no workload label proves nothing, and
                what was told of workloads before stays.
            gaps: All GPUs are among the samples, but some metrics could not be read; what is not there may
                be told all the same.
        """
        kubernetes = Kubernetes(self._resolver)
        ups: list[Sample] = []
        known: list[tuple[Sample, MetricRule, Labels]] = []
        for sample in samples:
            rule = rule_of(sample.name)
            if rule is None:
                continue
            self.names.add(rule.name)
            if rule.role is Role.KUBERNETES:
                kubernetes.take(sample)
            elif rule.role is Role.UP:
                ups.append(sample)
            else:
                known.append((sample, rule, self._resolver.read(sample.labels)))
        for sample, rule, labels in known:
            self._units.learn(labels.exporter, rule, sample.value)
        answer = _Answer(Rows(self._refs))
        facts: list[Fact] = []
        for sample, rule, labels in known:
            if labels.names_gpu:
                self._take(answer, rule, labels, sample, at)
            elif rule.role is Role.COLLECT:
                facts += self._collect(labels, sample.value)
        rows = answer.rows.by_key
        judgements.put(rows, answer.judged)
        facts += self._rows(answer, complete=complete and not gaps, all_labels=all_labels)
        facts += self._processes.facts(answer.tables, rows, complete=complete and not gaps)
        if complete:
            told = [row for row in rows.values() if row.cells]
            facts += self._coverage.facts(told, self._targets(ups, at), at)
        return facts + kubernetes.facts(complete=complete)

    def silence(self, reason: str, at: float) -> list[Fact]:
        """Return the facts that make every host told so far silent.

        Args:
            reason: Why nothing can be said, one phrase.
            at: Time of it.
        """
        return self._coverage.silence(clean(reason), at)

    def no_data(self, reason: str) -> list[Fact]:
        """Return the facts of an exporter that answers without GPU data: its GPUs are unknown, not gone."""
        return self._coverage.no_data(self._default, clean(reason))

    def _take(self, answer: _Answer, rule: MetricRule, labels: Labels, sample: Sample, at: float) -> None:
        rows = answer.rows
        when = sample.at if sample.at is not None else at
        self._coverage.learn(first(sample.labels, ("instance",)), NodeRef(labels.host, labels.cluster))
        rows.texts(labels, when)
        if rule.role is Role.CHOICE:
            quantity = dict(rule.choices).get(first(sample.labels, (rule.label,)))
            if quantity is None:
                return
            rule = structs.replace(rule, quantity=quantity, role=Role.VALUE)
        if rule.role is Role.VALUE:
            scale = self._units.scale(labels.exporter, rule)
            rows.value(labels, rule, judged(rule, sample.value, scale), when)
        elif rule.role is Role.CODE:
            words_by_code = dict(rule.words)
            if judge_raw(sample.value) is None:
                text = words_by_code.get(sample.value, f"code {sample.value:g}")
                rows.value(labels, rule, text, when)
        elif rule.role is Role.REASON:
            if sample.value in (0.0, 1.0):
                self._reason(rows, rule, labels, sample.value, when)
        elif rule.role is Role.PROCESS:
            self._processes.take(answer.tables, rows.of(labels, when), sample, when)
        elif rule.role in (Role.HEALTH, Role.CLOCK_EVENTS):
            judgements.take(answer.judged, rows.of(labels, when, whole_board=True), rule, sample, when)
        elif rule.role is not Role.INFO:
            self._take_xid(answer, rule, labels, sample, when)

    @staticmethod
    def _reason(rows: Rows, rule: MetricRule, labels: Labels, value: float, at: float) -> None:
        row = rows.of(labels, at, whole_board=True)
        cell = row.cells.get(rule.quantity)
        if cell is not None and cell.order != rule.order:
            return
        mask = int(cell.value) if cell is not None and isinstance(cell.value, float) else 0
        # Of a mask built bit by bit the one with more bits is the fuller, so "the largest" is right.
        row.put(rule.quantity, float(mask | int(rule.scale) if value else mask), at, rule.order)

    @staticmethod
    def _take_xid(answer: _Answer, rule: MetricRule, labels: Labels, sample: Sample, at: float) -> None:
        row = answer.rows.of(labels, at, whole_board=True)
        seen = answer.xids.setdefault(row.key, Seen([], {}, {}, {}))
        if judge_raw(sample.value) is not None or sample.value < 0:
            return
        if rule.role is Role.XID_LAST:
            if sample.value <= 65535:
                message = first(sample.labels, ("err_msg",)) if sample.value else ""
                seen.standing.append(Standing(int(sample.value), at, message))
            return
        code = first(sample.labels, _XID_LABELS)
        if not is_whole(code) or len(code) > 5:
            return
        xid = int(code)
        if rule.role is Role.XID_WINDOW:
            window_ms = first(sample.labels, ("window_size_in_ms",))
            window_s = int(window_ms) / 1000 if is_whole(window_ms) else 0.0
            # Each MIG instance's row repeats the count of the whole GPU.
            count, when = seen.windows.get((xid, window_s), (0, 0.0))
            newer = at - when > SAME_SCRAPE_S
            seen.windows[xid, window_s] = (
                int(sample.value) if newer else max(count, int(sample.value)),
                max(at, when),
            )
        elif rule.role is Role.XID_COUNT:
            seen.counts[xid] = (sample.value, at)
        else:
            seen.times[xid] = sample.value

    def _rows(self, answer: _Answer, *, complete: bool, all_labels: bool) -> list[Fact]:
        xids = answer.xids
        facts: list[Fact] = []
        frozen: dict[NodeRef, list[Frozen]] = {}
        nodes: dict[NodeRef, dict[str, Value]] = {}
        newest: dict[NodeRef, float] = {}
        for row in list(answer.rows.by_key.values()):
            finish(row, complete=complete)
            told = self._xids.facts(row, xids[row.key]) if row.key in xids else []
            stuck = self._frozen.look(row)
            if stuck is not None:
                frozen.setdefault(row.node, []).append(stuck)
            facts += _gpu_facts(row, stuck)
            facts += told
            if all_labels and row.cells:
                facts.append(HoldersFact(row.ref, _holders(row), row.newest))
            for quantity, text in row.node_texts.items():
                nodes.setdefault(row.node, {})[quantity] = judge_text(text)
                self.versions.setdefault(quantity.removesuffix("_version"), text)
            newest[row.node] = max(row.newest, newest.get(row.node, 0.0))
        facts += [NodeFact(node, texts, at=newest[node]) for node, texts in nodes.items()]
        for node, several in frozen.items():
            facts += self._coverage.trouble(node, _FROZEN, words(several))
        for node in self._coverage.told(_FROZEN):
            if node in newest and node not in frozen:
                facts += self._coverage.trouble(node, _FROZEN, "")
        return facts

    def _collect(self, labels: Labels, value: float) -> list[Fact]:
        node = NodeRef(labels.host, labels.cluster)
        text = "" if value else "its exporter serves what it read before: its last collection failed"
        return self._coverage.trouble(node, _STALE, text)

    def _targets(self, ups: Iterable[Sample], at: float) -> list[Target]:
        targets: list[Target] = []
        for sample in ups:
            instance = first(sample.labels, ("instance",))
            node = self._coverage.node_of(instance)
            if node is None:
                if not is_gpu_target(sample.labels):
                    continue
                node = NodeRef(self._resolver.host(sample.labels), self._resolver.cluster(sample.labels))
            when = sample.at if sample.at is not None else at
            targets.append(Target(instance, node, sample.value == 1.0, when))
        return targets


def _gpu_facts(row: Row, stuck: Frozen | None) -> list[Fact]:
    """Return the row's values, one fact for each scrape they come from."""
    by_time: dict[float, dict[str, Value]] = {}
    openshift_only = row.families == {"openshift"}
    for quantity, cell in row.cells.items():
        if cell.order == _OPENSHIFT_ORDER and not openshift_only:
            # Recording rules of gpu-operator repeat DCGM's numbers, some under wrong names.
            continue
        newest = row.newest - cell.at <= SAME_SCRAPE_S
        when = row.newest if newest else cell.at
        if stuck is not None:
            # Nothing has been read since then, whatever the time of the samples.
            when = min(when, stuck.since)
        by_time.setdefault(when, {})[quantity] = cell.value
    return [GpuFact(row.ref, values, at=when) for when, values in sorted(by_time.items())]


def _holders(row: Row) -> tuple[Holder, ...]:
    # After a pod change, and after an exporter was replaced, older series stay within the lookback.
    current = {
        h
        for h, told in row.holders.items()
        for exporter, at in told.items()
        if row.scrapes[exporter] - at <= SAME_SCRAPE_S and row.newest - at <= _REPLACED_AFTER_S
    }
    return tuple(sorted(current, key=lambda h: (h.namespace, h.name, h.container)))
