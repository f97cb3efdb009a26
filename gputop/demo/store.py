"""The simulated Prometheus' samples: scrape targets, their labels, and what is current at a time.

All targets are scraped on one grid of whole scrape intervals of unix time. A sample is current until the
next scrape; a target that fails a scrape has only ``up`` 0 at once, as staleness markers make it.
"""

from collections.abc import Iterable, Mapping

from gputop.demo.exporters import dcgm, smi
from gputop.demo.exporters.kubernetes import KubeStateMetrics
from gputop.demo.faults import ClockSkew, ExporterEmpty, ExporterError, ExporterSilent
from gputop.demo.promql.functions import Points
from gputop.demo.promql.matching import labels_test, name_test
from gputop.demo.promql.syntax import Matcher
from gputop.demo.series import Exposition, Labels, Sample, Wanted, intern
from gputop.demo.world import Node, World

LOOKBACK_S = 300.0
"""How old a sample may be and still count as current, where no newer scrape told otherwise."""

SYNTHETIC = ("up", "scrape_duration_seconds", "scrape_samples_scraped")
"""Series that Prometheus itself writes for each target."""

_MOST_CACHED = 48


class Target:
    """A scrape target: an exposition, the labels of the target, and what happens when it is scraped.

    ``honor`` is honorLabels: with it a scraped label wins over the target's, without it the scraped one is
    kept as ``exported_…``.
    """

    def __init__(self, exposition: Exposition, labels: Mapping[str, str], node: Node | None, *, honor: bool) -> None:
        self.exposition = exposition
        self.node = node
        self.labels = intern(labels)
        self._honor = honor
        faults = node.faults if node else ()
        self._silent = tuple(one for one in faults if isinstance(one, ExporterSilent | ExporterError))
        self._empty = tuple(one for one in faults if isinstance(one, ExporterEmpty))
        self._skew = tuple(one for one in faults if isinstance(one, ClockSkew))

    def up(self, t: float) -> bool:
        """Say whether a scrape succeeds at ``t`` seconds after the scenario's start."""
        return not any(one.active(t) for one in self._silent)

    def status(self, t: float) -> int:
        """Return the HTTP status of a scrape: 200, an error status, or 0 where nothing answers."""
        for one in self._silent:
            if one.active(t):
                return one.status if isinstance(one, ExporterError) else 0
        return 200

    def empty(self, t: float) -> bool:
        """Say whether the exporter answers without its series."""
        return any(one.active(t) for one in self._empty)

    def skew_s(self, t: float) -> float:
        """Return how far the timestamps are off that the exporter writes itself; 0 where it writes none."""
        return sum(one.skew_s for one in self._skew if one.active(t))

    def merge(self, scraped: Labels) -> Labels:
        """Return the labels that a scraped series has in Prometheus."""
        known = scraped.merged
        if known is not None and known[0] is self:
            return known[1]
        pairs = dict(self.labels.pairs)
        for name, value in scraped.pairs.items():
            if name in pairs and not self._honor:
                pairs[f"exported_{name}"] = value
            else:
                pairs[name] = value
        merged = Labels(pairs)
        scraped.merged = (self, merged)
        return merged

    def samples(self, name: str, t: float, wanted: Wanted | None) -> list[tuple[Labels, float]]:
        """Return a metric's series at a time, under the target's labels."""
        if name in SYNTHETIC:
            if wanted is not None and not wanted(self.labels):
                return []
            return [(self.labels, self._synthetic(name, t))]
        if not self.up(t) or self.empty(t):
            return []
        if wanted is None:
            return [(self.merge(labels), value) for labels, value in self.exposition.series(name, t)]
        rows = self.exposition.series(name, t, lambda labels: wanted(self.merge(labels)))
        return [(self.merge(labels), value) for labels, value in rows]

    def _synthetic(self, name: str, t: float) -> float:
        if name == "up":
            return float(self.up(t))
        if name == "scrape_duration_seconds":
            return 0.04 if self.up(t) else 10.0
        if not self.up(t) or self.empty(t):
            return 0.0
        return float(sum(len(self.exposition.series(one, t)) for one in self.exposition.names()))


class Store:
    """All targets of a world; see :class:`gputop.demo.promql.evaluate.Storage`.

    ``skew_s`` is how far the server's own clock is off: its timestamps are its own.
    """

    def __init__(self, world: World, started: float) -> None:
        self.world = world
        self.started = started
        self.interval_s = world.scenario.scrape_interval_s
        self.skew_s = 0.0
        self.targets = targets(world)
        self._by_name = _names(self.targets)
        self._cache: dict[tuple[str, tuple[Matcher, ...], float], list[Sample]] = {}

    def names(self) -> Iterable[str]:
        """Return the names of all metrics that any target can have."""
        return self._by_name

    def present(self, name: str, at: float) -> bool:
        """Say whether a metric has any series at a time, without working out all of them."""
        t = self.seconds(at // self.interval_s * self.interval_s)
        return any(target.samples(name, t, None) for target in self._by_name[name])

    def describe(self, name: str) -> tuple[str, str]:
        """Return the TYPE and HELP of a metric."""
        if name in SYNTHETIC:
            return "gauge", ""
        return self._by_name[name][0].exposition.describe(name)

    def seconds(self, at: float) -> float:
        """Return the scenario's time at a time of the server's clock."""
        return at - self.skew_s - self.started

    def select(self, matchers: tuple[Matcher, ...], at: float) -> list[Sample]:
        """Return the samples that are current at a unix time."""
        slot = at // self.interval_s * self.interval_s
        accepts = name_test(matchers)
        wanted = labels_test(matchers)
        exact = next((one.value for one in matchers if one.label == "__name__" and one.operator == "="), None)
        candidates = self._by_name if exact is None else (exact,)
        result: list[Sample] = []
        for name in candidates:
            if name in self._by_name and accepts(name):
                result += self._current(name, matchers, slot, wanted)
        return result

    def _current(self, name: str, matchers: tuple[Matcher, ...], slot: float, wanted: Wanted | None) -> list[Sample]:
        key = (name, matchers, slot - self.skew_s)
        found = self._cache.pop(key, None)
        if found is None:
            found = list(self._scrape(name, slot, wanted))
            while len(self._cache) >= _MOST_CACHED:
                del self._cache[next(iter(self._cache))]
        self._cache[key] = found
        return found

    def _scrape(self, name: str, slot: float, wanted: Wanted | None) -> Iterable[Sample]:
        t = self.seconds(slot)
        for target in self._by_name[name]:
            skew = target.skew_s(t)
            if not skew:
                for labels, value in target.samples(name, t, wanted):
                    yield Sample(name, labels, value, slot)
                continue
            # An exporter whose clock runs ahead writes samples that are not yet visible; one that is late
            # writes samples that are old when they arrive.
            late = max(0.0, skew) // self.interval_s * self.interval_s
            stamp = slot - late + skew
            if slot - stamp < LOOKBACK_S:
                for labels, value in target.samples(name, t - late, wanted):
                    yield Sample(name, labels, value, stamp)

    def select_range(self, matchers: tuple[Matcher, ...], start: float, end: float) -> list[tuple[str, Labels, Points]]:
        """Return the samples after ``start`` and up to ``end``, by series."""
        found: dict[tuple[str, Labels], Points] = {}
        slot = (start // self.interval_s + 1) * self.interval_s
        while slot <= end:
            for one in self.select(matchers, slot):
                found.setdefault((one.name, one.labels), []).append((one.at, one.value))
            slot += self.interval_s
        return [(name, labels, points) for (name, labels), points in found.items()]


def targets(world: World) -> list[Target]:
    """Return the scrape targets of a world: one for each node with an exporter, and kube-state-metrics."""
    found = [target for node in world.nodes if (target := _node_target(node)) is not None]
    if world.scenario.kube_state_metrics:
        labels = {"instance": "10.63.0.10:8080", "job": "kube-state-metrics"}
        found.append(Target(KubeStateMetrics(world), labels, None, honor=True))
    return found


def _node_target(node: Node) -> Target | None:
    if node.group.exporter == "none":
        return None
    if node.group.exporter == "nvidia-gpu-exporter":
        labels = {"instance": f"{node.name}:9835", "job": "nvidia-gpu-exporter"}
        return Target(smi.exporter(node), labels, node, honor=False)
    labels = {
        "instance": node.instance,
        "job": "nvidia-dcgm-exporter",
        "namespace": "gpu-operator",
        "pod": node.exporter_pod,
        "container": "nvidia-dcgm-exporter",
        "endpoint": "gpu-metrics",
        "service": "nvidia-dcgm-exporter",
    }
    # The oldest exporter does not name its host, so the scrape configuration does.
    if not dcgm.GENERATIONS[node.group.exporter].host_label:
        labels["node"] = node.name
    return Target(dcgm.exporter(node), labels, node, honor=node.group.pod_labels == "plain")


def _names(found: list[Target]) -> dict[str, list[Target]]:
    names: dict[str, list[Target]] = {name: list(found) for name in SYNTHETIC}
    for target in found:
        for name in target.exposition.names():
            names.setdefault(name, []).append(target)
    return names
