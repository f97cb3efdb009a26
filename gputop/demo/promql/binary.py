"""Binary operations between numbers and vectors, and how vectors find their partners."""

import math
import operator as operators
from collections.abc import Callable

from gputop.demo.promql.errors import QueryError
from gputop.demo.promql.syntax import Binary
from gputop.demo.series import Labels, Sample


def _divide(left: float, right: float) -> float:
    if right == 0.0:
        if left == 0.0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)
    return left / right


def _modulo(left: float, right: float) -> float:
    return math.nan if right == 0.0 or math.isinf(left) else math.fmod(left, right)


def _power(left: float, right: float) -> float:
    try:
        result = left**right
    except (OverflowError, ZeroDivisionError):
        return math.inf
    return result if isinstance(result, float) else math.nan


ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operators.add,
    "-": operators.sub,
    "*": operators.mul,
    "/": _divide,
    "%": _modulo,
    "^": _power,
    "atan2": math.atan2,
}
COMPARE: dict[str, Callable[[float, float], bool]] = {
    "==": operators.eq,
    "!=": operators.ne,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}


def numbers(node: Binary, left: float, right: float) -> float:
    """Combine two scalars; comparisons between scalars need ``bool``."""
    if node.operator in ARITHMETIC:
        return ARITHMETIC[node.operator](left, right)
    if node.operator not in COMPARE:
        raise QueryError(f"parse error: set operator {node.operator!r} not allowed in binary scalar expression")
    if not node.boolean:
        raise QueryError("parse error: comparisons between scalars must use BOOL modifier")
    return float(COMPARE[node.operator](left, right))


def mixed(node: Binary, vector: list[Sample], scalar: float, *, swapped: bool) -> list[Sample]:
    """Combine a vector with a number; ``swapped`` says that the number stands on the left."""
    if node.operator in ARITHMETIC:
        apply = ARITHMETIC[node.operator]
        return [
            Sample("", one.labels, apply(scalar, one.value) if swapped else apply(one.value, scalar), one.at)
            for one in vector
        ]
    if node.operator not in COMPARE:
        raise QueryError(f"parse error: set operator {node.operator!r} not allowed in binary scalar expression")
    holds = COMPARE[node.operator]
    result: list[Sample] = []
    for one in vector:
        true = holds(scalar, one.value) if swapped else holds(one.value, scalar)
        if node.boolean:
            result.append(Sample("", one.labels, float(true), one.at))
        elif true:
            result.append(one)
    return result


def _key(node: Binary, labels: Labels) -> Labels:
    return labels.only(node.labels) if node.on else labels.without(node.labels)


def sets(node: Binary, left: list[Sample], right: list[Sample]) -> list[Sample]:
    """Combine two vectors by and, or, unless."""
    there = {_key(node, one.labels) for one in right}
    if node.operator == "and":
        return [one for one in left if _key(node, one.labels) in there]
    if node.operator == "unless":
        return [one for one in left if _key(node, one.labels) not in there]
    here = {_key(node, one.labels) for one in left}
    return left + [one for one in right if _key(node, one.labels) not in here]


def vectors(node: Binary, left: list[Sample], right: list[Sample], at: float) -> list[Sample]:
    """Combine two vectors sample by sample.

    Raises:
        QueryError: A group has several samples where it may have one.
    """
    many, one = (right, left) if node.many == "right" else (left, right)
    partners: dict[Labels, Sample] = {}
    side = "left" if node.many == "right" else "right"
    for sample in one:
        key = _key(node, sample.labels)
        if key in partners:
            raise QueryError(
                f"found duplicate series for the match group {_words(key)} on the {side} hand-side of the "
                f"operation: [{_words(sample.labels)}, {_words(partners[key].labels)}];"
                "many-to-many matching not allowed: matching labels must be unique on one side",
                "execution",
            )
        partners[key] = sample
    result: list[Sample] = []
    seen: set[Labels] = set()
    for sample in many:
        partner = partners.get(_key(node, sample.labels))
        if partner is None:
            continue
        first, second = (partner, sample) if node.many == "right" else (sample, partner)
        value, kept = _combine(node, first.value, second.value)
        if not kept:
            continue
        keeps_name = node.operator in COMPARE and not node.boolean
        labels = _result_labels(node, sample, partner)
        if labels in seen:
            raise QueryError(
                "multiple matches for labels: grouping labels must ensure unique matches"
                if node.many
                else "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)",
                "execution",
            )
        seen.add(labels)
        result.append(Sample(sample.name if keeps_name else "", labels, value, at))
    return result


def _combine(node: Binary, left: float, right: float) -> tuple[float, bool]:
    if node.operator in ARITHMETIC:
        return ARITHMETIC[node.operator](left, right), True
    true = COMPARE[node.operator](left, right)
    return (float(true), True) if node.boolean else (left, true)


def _result_labels(node: Binary, sample: Sample, partner: Sample) -> Labels:
    if not node.many:
        if node.operator in COMPARE and not node.boolean and not node.on and not node.labels:
            return sample.labels
        return _key(node, sample.labels)
    if not node.include:
        return sample.labels
    return sample.labels.having({name: partner.labels.pairs.get(name, "") for name in node.include})


def _words(labels: Labels) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in labels.pairs.items()) + "}"
