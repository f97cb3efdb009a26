"""Functions: those over ranges, with Prometheus' extrapolation and counter resets, and plain ones."""

import math
import re
from collections.abc import Callable
from itertools import pairwise

from gputop.demo.promql.errors import QueryError
from gputop.demo.series import Labels, Sample

Points = list[tuple[float, float]]
"""Samples of a series as (unix time, value), oldest first."""


def _increase(points: Points, start: float, end: float, *, counter: bool) -> float | None:
    """Return the increase over a window, extrapolated to its ends as Prometheus does it."""
    if len(points) < 2:
        return None
    (first_at, first), (last_at, last) = points[0], points[-1]
    result = last - first
    if counter:
        previous = first
        for _, value in points[1:]:
            if value < previous:
                result += previous
            previous = value
    sampled = last_at - first_at
    if sampled <= 0:
        return None
    average = sampled / (len(points) - 1)
    before, after = first_at - start, end - last_at
    # More than 1.1 scrape intervals from the edge, the series is taken to begin or end in the window.
    if before >= average * 1.1:
        before = average / 2
    if counter and result > 0 and first >= 0:
        before = min(before, sampled * (first / result))
    if after >= average * 1.1:
        after = average / 2
    return result * (sampled + before + after) / sampled


def _rate(points: Points, start: float, end: float) -> float | None:
    grown = _increase(points, start, end, counter=True)
    return None if grown is None else grown / (end - start)


def _instant_rate(points: Points, _start: float, _end: float) -> float | None:
    if len(points) < 2:
        return None
    (before_at, before), (last_at, last) = points[-2], points[-1]
    return (last if last < before else last - before) / (last_at - before_at)


def _plain(reduce: Callable[[list[float]], float]) -> Callable[[Points, float, float], float | None]:
    return lambda points, _start, _end: reduce([value for _, value in points])


def _changes(values: list[float]) -> float:
    return float(sum(left != right for left, right in pairwise(values)))


def _resets(values: list[float]) -> float:
    return float(sum(right < left for left, right in pairwise(values)))


OVER_RANGE: dict[str, Callable[[Points, float, float], float | None]] = {
    "rate": _rate,
    "irate": _instant_rate,
    "increase": lambda points, start, end: _increase(points, start, end, counter=True),
    "delta": lambda points, start, end: _increase(points, start, end, counter=False),
    "last_over_time": _plain(lambda values: values[-1]),
    "max_over_time": _plain(max),
    "min_over_time": _plain(min),
    "avg_over_time": _plain(lambda values: math.fsum(values) / len(values)),
    "sum_over_time": _plain(math.fsum),
    "count_over_time": _plain(lambda values: float(len(values))),
    "present_over_time": _plain(lambda _values: 1.0),
    "changes": _plain(_changes),
    "resets": _plain(_resets),
}
"""Functions of one range vector, from its points and the window's ends; they may have no answer."""

KEEPS_NAME = frozenset({"last_over_time"})


def _round(value: float, to: float = 1.0) -> float:
    return math.floor(value / to + 0.5) * to if math.isfinite(value) else value


def _whole(rounding: Callable[[float], int]) -> Callable[[float], float]:
    return lambda value: float(rounding(value)) if math.isfinite(value) else value


ELEMENTWISE: dict[str, tuple[int, int, Callable[..., float]]] = {
    "abs": (0, 0, math.fabs),
    "ceil": (0, 0, _whole(math.ceil)),
    "floor": (0, 0, _whole(math.floor)),
    "round": (0, 1, _round),
    "sgn": (0, 0, lambda value: float((value > 0) - (value < 0))),
    "sqrt": (0, 0, lambda value: math.sqrt(value) if value >= 0 else math.nan),
    "clamp_min": (1, 1, max),
    "clamp_max": (1, 1, min),
    "clamp": (2, 2, lambda value, low, high: min(max(value, low), high)),
}
"""Functions of each value of a vector: the least and most further scalar arguments, and the function."""

_GROUP = re.compile(r"\$(?:\{(\w+)\}|(\w+)|(\$))")


def label_replace(vector: list[Sample], target: str, template: str, source: str, pattern: str) -> list[Sample]:
    """Set a label from a match on another one, where the whole value matches.

    Raises:
        QueryError: A regular expression that cannot be compiled, or two samples that become one.
    """
    try:
        expression = re.compile(pattern, re.DOTALL)
    except re.error as error:
        raise QueryError(f"invalid regular expression in label_replace(): {pattern}", "execution") from error
    result: list[Sample] = []
    seen: set[tuple[str, Labels]] = set()
    for one in vector:
        match = expression.fullmatch(one.labels.pairs.get(source, ""))
        changed = one
        if match is not None:
            changed = one._replace(labels=one.labels.having({target: _expand(match, template)}))
        if (changed.name, changed.labels) in seen:
            raise QueryError("vector cannot contain metrics with the same labelset", "execution")
        seen.add((changed.name, changed.labels))
        result.append(changed)
    return result


def _expand(match: re.Match[str], template: str) -> str:
    def one(found: re.Match[str]) -> str:
        if found[3]:
            return "$"
        name = found[1] or found[2]
        try:
            return match[int(name) if name.isdigit() else name] or ""
        except (IndexError, re.error):
            return ""

    return _GROUP.sub(one, template)
