"""Aggregations over a vector."""

import math
from collections.abc import Callable

from gputop.demo.promql.errors import QueryError
from gputop.demo.series import Labels, Sample, number

_EMPTY = Labels({})


def _groups(vector: list[Sample], names: tuple[str, ...], *, without: bool) -> dict[Labels, list[Sample]]:
    found: dict[Labels, list[Sample]] = {}
    if not names and not without:
        if vector:
            found[_EMPTY] = vector
        return found
    # The metric's name is kept apart from its labels, but a query may group by it.
    named = "__name__" in names and not without
    for sample in vector:
        labels = sample.labels.without(names) if without else sample.labels.only(names)
        if named:
            labels = labels.having({"__name__": sample.name})
        group = found.get(labels)
        if group is None:
            found[labels] = [sample]
        else:
            group.append(sample)
    return found


def _largest(values: list[float]) -> float:
    best = values[0]
    for value in values:
        # NaN gives way to any number, as in Prometheus.
        if value > best or best != best:  # noqa: PLR0124 - NaN is not itself
            best = value
    return best


def _smallest(values: list[float]) -> float:
    return -_largest([-value for value in values])


def _deviation(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))


_FOLDS: dict[str, Callable[[list[float]], float]] = {
    "sum": math.fsum,
    "max": _largest,
    "min": _smallest,
    "avg": lambda values: math.fsum(values) / len(values),
    "count": lambda values: float(len(values)),
    "group": lambda _values: 1.0,
    "stddev": _deviation,
}


def fold(operator: str, vector: list[Sample], names: tuple[str, ...], *, without: bool, at: float) -> list[Sample]:
    """Reduce each group to one value."""
    reduce = _FOLDS[operator]
    result: list[Sample] = []
    for labels, group in _groups(vector, names, without=without).items():
        if len(group) == 1 and operator in {"sum", "max", "min", "avg"}:
            result.append(Sample("", labels, group[0].value, at))
        else:
            result.append(Sample("", labels, reduce([sample.value for sample in group]), at))
    return result


def extremes(
    operator: str, count: float, vector: list[Sample], names: tuple[str, ...], *, without: bool
) -> list[Sample]:
    """Keep the k largest (topk) or smallest (bottomk) samples of each group, with all their labels."""
    sign = -1.0 if operator == "topk" else 1.0
    result: list[Sample] = []
    for group in _groups(vector, names, without=without).values():
        ordered = sorted(group, key=lambda sample: (math.isnan(sample.value), sign * sample.value))
        result += ordered[: max(0, int(count))]
    return result


def values(label: str, vector: list[Sample], names: tuple[str, ...], *, without: bool, at: float) -> list[Sample]:
    """Count how often each value occurs in each group, with the value as a label."""
    if not label.isidentifier():
        raise QueryError(f"invalid label name {label!r} for count_values")
    counts: dict[Labels, int] = {}
    for labels, group in _groups(vector, names, without=without).items():
        for sample in group:
            key = labels.having({label: number(sample.value)})
            counts[key] = counts.get(key, 0) + 1
    return [Sample("", labels, float(count), at) for labels, count in counts.items()]
