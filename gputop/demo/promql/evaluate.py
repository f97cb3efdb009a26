"""Answering a query at an instant, and over a range of instants."""

import math
from typing import Protocol

from gputop.demo.promql import aggregate, binary, functions
from gputop.demo.promql.errors import QueryError
from gputop.demo.promql.parser import SETS
from gputop.demo.promql.syntax import (
    Aggregate,
    Binary,
    Call,
    Matcher,
    Negate,
    Node,
    Number,
    Selector,
    Text,
)
from gputop.demo.series import Labels, Sample, intern

Value = float | str | list[Sample]
"""What an expression is worth: a scalar, a string, or an instant vector."""

Series = tuple[str, Labels, functions.Points]


class Storage(Protocol):
    """Where samples come from."""

    def select(self, matchers: tuple[Matcher, ...], at: float) -> list[Sample]:
        """Return the samples that are current at a time."""
        ...

    def select_range(self, matchers: tuple[Matcher, ...], start: float, end: float) -> list[Series]:
        """Return the samples after ``start`` and up to ``end``."""
        ...


def instant(node: Node, storage: Storage, at: float) -> Value:
    """Evaluate an expression at a unix time.

    Raises:
        QueryError: The query is wrong, not understood, or fails on the data.
    """
    match node:
        case Number(value) | Text(value):
            return value
        case Selector():
            if node.range_s is not None:
                raise QueryError("parse error: expected an instant vector, got a range vector")
            return storage.select(node.matchers, at - node.offset_s)
        case Negate(inner):
            return _negate(instant(inner, storage, at))
        case Aggregate():
            return _aggregate(node, storage, at)
        case Binary():
            return _binary(node, storage, at)
        case Call():
            return _call(node, storage, at)


def _negate(value: Value) -> Value:
    if isinstance(value, list):
        return [Sample("", one.labels, -one.value, one.at) for one in value]
    if isinstance(value, str):
        raise QueryError("parse error: unary expression only allowed on scalars and vectors")
    return -value


def _vector(node: Node, storage: Storage, at: float, where: str) -> list[Sample]:
    value = instant(node, storage, at)
    if not isinstance(value, list):
        raise QueryError(f"parse error: expected an instant vector in {where}")
    return value


def _scalar(node: Node, storage: Storage, at: float, where: str) -> float:
    value = instant(node, storage, at)
    if not isinstance(value, float):
        raise QueryError(f"parse error: expected a scalar in {where}")
    return value


def _string(node: Node, where: str) -> str:
    if not isinstance(node, Text):
        raise QueryError(f"parse error: expected a string in {where}")
    return node.value


def _aggregate(node: Aggregate, storage: Storage, at: float) -> list[Sample]:
    vector = _vector(node.inner, storage, at, f"aggregation {node.operator}")
    if node.parameter is None:
        return aggregate.fold(node.operator, vector, node.labels, without=node.without, at=at)
    if node.operator == "count_values":
        label = _string(node.parameter, "count_values")
        return aggregate.values(label, vector, node.labels, without=node.without, at=at)
    count = _scalar(node.parameter, storage, at, node.operator)
    return aggregate.extremes(node.operator, count, vector, node.labels, without=node.without)


def _binary(node: Binary, storage: Storage, at: float) -> Value:
    left, right = instant(node.left, storage, at), instant(node.right, storage, at)
    if isinstance(left, str) or isinstance(right, str):
        raise QueryError("parse error: binary expression must contain only scalar and instant vector types")
    if isinstance(left, list) and isinstance(right, list):
        if node.operator in SETS:
            return binary.sets(node, left, right)
        return binary.vectors(node, left, right, at)
    if isinstance(left, list) and isinstance(right, float):
        return binary.mixed(node, left, right, swapped=False)
    if isinstance(right, list) and isinstance(left, float):
        return binary.mixed(node, right, left, swapped=True)
    if isinstance(left, float) and isinstance(right, float):
        return binary.numbers(node, left, right)
    raise QueryError("parse error: binary expression of unknown types")


def _arity(node: Call, least: int, most: int) -> None:
    if not least <= len(node.arguments) <= most:
        raise QueryError(
            f"parse error: expected {least} argument(s) in call to {node.function!r}, got {len(node.arguments)}"
        )


def _call(node: Call, storage: Storage, at: float) -> Value:
    name = node.function
    if name in functions.OVER_RANGE:
        _arity(node, 1, 1)
        return _over_range(name, node.arguments[0], storage, at)
    if name in functions.ELEMENTWISE:
        least, most, apply = functions.ELEMENTWISE[name]
        _arity(node, 1 + least, 1 + most)
        vector = _vector(node.arguments[0], storage, at, name)
        more = [_scalar(one, storage, at, name) for one in node.arguments[1:]]
        return [Sample("", one.labels, apply(one.value, *more), one.at) for one in vector]
    special = _SPECIAL.get(name)
    if special is None:
        raise QueryError(f"parse error: unknown function with name {name!r}")
    return special(node, storage, at)


def _over_range(name: str, argument: Node, storage: Storage, at: float) -> list[Sample]:
    if not isinstance(argument, Selector) or argument.range_s is None:
        raise QueryError(f"parse error: expected a range vector in call to {name!r}")
    end = at - argument.offset_s
    start = end - argument.range_s
    result: list[Sample] = []
    for metric, labels, points in storage.select_range(argument.matchers, start, end):
        value = functions.OVER_RANGE[name](points, start, end) if points else None
        if value is not None:
            result.append(Sample(metric if name in functions.KEEPS_NAME else "", labels, value, at))
    return result


def _time(node: Call, _storage: Storage, at: float) -> Value:
    _arity(node, 0, 0)
    return float(at)


def _timestamp(node: Call, storage: Storage, at: float) -> Value:
    _arity(node, 1, 1)
    vector = _vector(node.arguments[0], storage, at, "timestamp")
    return [Sample("", one.labels, one.at, at) for one in vector]


def _to_vector(node: Call, storage: Storage, at: float) -> Value:
    _arity(node, 1, 1)
    return [Sample("", intern({}), _scalar(node.arguments[0], storage, at, "vector"), at)]


def _to_scalar(node: Call, storage: Storage, at: float) -> Value:
    _arity(node, 1, 1)
    vector = _vector(node.arguments[0], storage, at, "scalar")
    return vector[0].value if len(vector) == 1 else math.nan


def _absent(node: Call, storage: Storage, at: float) -> Value:
    _arity(node, 1, 1)
    if _vector(node.arguments[0], storage, at, "absent"):
        return []
    argument = node.arguments[0]
    known: dict[str, str] = {}
    if isinstance(argument, Selector):
        known = {one.label: one.value for one in argument.matchers if one.operator == "=" and one.label != "__name__"}
    return [Sample("", intern(known), 1.0, at)]


def _sort(node: Call, storage: Storage, at: float) -> Value:
    _arity(node, 1, 1)
    vector = _vector(node.arguments[0], storage, at, node.function)
    return sorted(vector, key=lambda one: one.value, reverse=node.function == "sort_desc")


def _label_replace(node: Call, storage: Storage, at: float) -> Value:
    _arity(node, 5, 5)
    vector = _vector(node.arguments[0], storage, at, "label_replace")
    target, template, source, pattern = (_string(one, "label_replace") for one in node.arguments[1:])
    return functions.label_replace(vector, target, template, source, pattern)


_SPECIAL = {
    "time": _time,
    "timestamp": _timestamp,
    "vector": _to_vector,
    "scalar": _to_scalar,
    "absent": _absent,
    "sort": _sort,
    "sort_desc": _sort,
    "label_replace": _label_replace,
}


def over_range(node: Node, storage: Storage, start: float, end: float, step: float) -> list[Series]:
    """Evaluate an expression at each step from ``start`` to ``end``.

    Raises:
        QueryError: As for :func:`instant`, or a string where numbers are needed.
    """
    found: dict[tuple[str, Labels], functions.Points] = {}
    for number in range(int((end - start) / step + 1e-9) + 1):
        at = start + number * step
        value = instant(node, storage, at)
        if isinstance(value, str):
            raise QueryError("invalid expression type 'string' for range query, must be Scalar or instant Vector")
        if not isinstance(value, list):
            value = [Sample("", intern({}), value, at)]
        for one in value:
            found.setdefault((one.name, one.labels), []).append((at, one.value))
    return [(name, labels, points) for (name, labels), points in found.items()]
