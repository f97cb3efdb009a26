"""The exporter of one node: which rows it has at a time, and what each metric says of them."""

import bisect
import fnmatch
import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from gputop.demo.faults import ExporterFrozen, ExporterValue, GpuLost, GpuMissing, ResetRequired
from gputop.demo.series import Labels, Wanted
from gputop.demo.state import GpuState, gpu_state
from gputop.demo.world import Gpu, Load, MigInstance, Node


class Subject(NamedTuple):
    """What a row is about: a board or a MIG device, the loads on it, and its labels."""

    gpu: Gpu
    instance: MigInstance | None
    loads: tuple[Load, ...]
    labels: Labels


class Metric(NamedTuple):
    """A metric of an exporter.

    ``gauge`` reads the state of a moment, ``counter`` needs only the time; one of them is set. Either returns
    None where the exporter leaves the row out. ``adds`` adds labels that depend on the time.
    """

    name: str
    kind: str
    words: str
    gauge: Callable[[Subject, GpuState], float | None] | None = None
    counter: Callable[[Subject, float], float | None] | None = None
    adds: Callable[[Subject, float], Mapping[str, str]] | None = None


Label = Callable[[Gpu, MigInstance | None, tuple[Load, ...]], Mapping[str, str]]
"""Makes the labels of a row."""

# States of a few scrapes are kept: the current one, and those that a short range query walks over.
_KEPT_STATES = 3


class NodeExporter:
    """The exporter of a node; see :class:`gputop.demo.series.Exposition`."""

    def __init__(self, node: Node, metrics: Iterable[Metric], label: Label) -> None:
        self.node = node
        self._metrics = {metric.name: metric for metric in metrics}
        self._label = label
        self._changes = _changes(node)
        self._subjects: dict[int, list[Subject]] = {}
        self._states: dict[float, dict[int, GpuState]] = {}
        self._frozen = [fault for fault in node.faults if isinstance(fault, ExporterFrozen)]
        self._values = [fault for fault in node.faults if isinstance(fault, ExporterValue)]

    def names(self) -> Iterable[str]:
        """Return the metric names."""
        return self._metrics

    def describe(self, name: str) -> tuple[str, str]:
        """Return the TYPE and HELP of a metric."""
        metric = self._metrics[name]
        return metric.kind, metric.words

    def series(self, name: str, t: float, wanted: Wanted | None = None) -> list[tuple[Labels, float]]:
        """Return the series of a metric at a time."""
        metric = self._metrics.get(name)
        if metric is None:
            return []
        seen = self._seen(t)
        values = [fault for fault in self._values if fault.active(t) and fnmatch.fnmatchcase(name, fault.metric)]
        rows: list[tuple[Labels, float]] = []
        for subject in self.subjects(seen):
            labels = subject.labels
            if metric.adds is not None:
                labels = labels.having(metric.adds(subject, seen))
            if wanted is not None and not wanted(labels):
                continue
            value = self._value(metric, subject, seen)
            for fault in values:
                if fault.strikes(subject.gpu.index):
                    value = fault.value
            if value is not None:
                rows.append((labels, value))
        return rows

    def _value(self, metric: Metric, subject: Subject, t: float) -> float | None:
        if metric.counter is not None:
            return metric.counter(subject, t)
        if metric.gauge is None:
            return None
        return metric.gauge(subject, self._state(subject.gpu, t))

    def _seen(self, t: float) -> float:
        """Return the time whose values are served: a frozen exporter stays at the time when it froze."""
        for fault in self._frozen:
            if fault.active(t):
                return max(fault.at_s, -self.node.group.uptime_s)
        return t

    def _state(self, gpu: Gpu, t: float) -> GpuState:
        states = self._states.get(t)
        if states is None:
            while len(self._states) >= _KEPT_STATES:
                del self._states[next(iter(self._states))]
            states = self._states[t] = {}
        state = states.get(gpu.index)
        if state is None:
            state = states[gpu.index] = gpu_state(gpu, t)
        return state

    def subjects(self, t: float) -> list[Subject]:
        """Return the rows at a time; they change only when a pod, a partition or a fault does."""
        epoch = bisect.bisect_right(self._changes, t)
        found = self._subjects.get(epoch)
        if found is None:
            if len(self._subjects) > _KEPT_STATES:
                self._subjects.clear()
            found = self._subjects[epoch] = list(self._rows(t))
        return found

    def _rows(self, t: float) -> Iterable[Subject]:
        for gpu in self.node.gpus:
            if _gone(gpu, t):
                continue
            loads = tuple(load for load in gpu.loads if load.active(t))
            instances = gpu.instances(t)
            if not instances:
                yield Subject(gpu, None, loads, Labels(self._label(gpu, None, loads)))
            for instance in instances:
                own = tuple(load for load in loads if load.gpu_instance == instance.gpu_instance)
                yield Subject(gpu, instance, own, Labels(self._label(gpu, instance, own)))


def _gone(gpu: Gpu, t: float) -> bool:
    return any(isinstance(one, GpuLost | GpuMissing | ResetRequired) and one.active(t) for one in gpu.faults)


def _changes(node: Node) -> list[float]:
    times = {0.0}
    for pod in node.pods:
        times |= {pod.start_s, pod.end_s}
    for gpu in node.gpus:
        times |= {at_s for at_s, _ in gpu.layouts}
    for fault in node.faults:
        times |= {fault.at_s, math.inf if fault.until_s is None else fault.until_s}
    return sorted(times)
