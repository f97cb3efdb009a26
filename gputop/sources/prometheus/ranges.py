"""Range queries for charts over hours."""

import math
import time
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from gputop.sources.metrics.names import METRICS
from gputop.sources.metrics.rule import Role
from gputop.sources.prometheus.envelope import SeriesAnswer, number
from gputop.sources.prometheus.selector import one_of, select

POINTS: Final = 300
"""Points of a chart; far below the 11,000 a server allows for a series."""
_LEAST_STEP_S: Final = 15.0


class RangeAnswer(Struct, frozen=True):
    """Hours of one quantity.

    Attributes:
        end: Time of the newest point on this machine's clock.
        step_s: Seconds between points.
        values: Oldest first in the quantity's unit, NaN for a gap.
    """

    end: float
    step_s: float
    values: tuple[float, ...]


class RangeQuestion(Struct, frozen=True):
    """A range query: its window is aligned to its step, or each refresh would shift the points."""

    query: str
    start: float
    end: float
    step_s: float


def question(
    quantity: str, uuid: str, instance: str, hosts: Iterable[str], hours: float, matchers: str, present: frozenset[str]
) -> RangeQuestion | None:
    """Return the query for a GPU's quantity, or None if the server has no metric of it."""
    names = [n for n, r in METRICS.items() if r.quantity == quantity and r.role is Role.VALUE and n in present]
    if not names:
        return None
    bare = uuid.removeprefix("GPU-")
    # A UUID that no real driver writes cannot be told from others without its host.
    who = f"UUID=~{one_of([uuid, uuid.upper().replace('GPU-', 'GPU-'), bare])}"
    other = f"uuid=~{one_of([uuid, bare])}"
    part = f"GPU_I_ID={instance!r}".replace("'", '"') if instance else 'GPU_I_ID=~"|"'
    del hosts
    by_name = [f"max by (__name__) ({select([n], m, part, matchers)})" for n in names for m in (who, other)]
    step_s = max(_LEAST_STEP_S, math.ceil(hours * 3600.0 / POINTS / _LEAST_STEP_S) * _LEAST_STEP_S)
    end = math.floor(time.time() / step_s) * step_s
    return RangeQuestion(" or ".join(by_name), end - hours * 3600.0, end, step_s)


def answer(question_: RangeQuestion, quantity: str, series: list[SeriesAnswer], offset_s: float) -> RangeAnswer | None:
    """Return the points, with a gap where the server has none; None if it has nothing at all."""
    count = round((question_.end - question_.start) / question_.step_s) + 1
    values = [math.nan] * count
    for one in series:
        rule = METRICS.get(one.metric.get("__name__", ""))
        if rule is None or rule.quantity != quantity:
            continue
        numbers = [(round((at - question_.start) / question_.step_s), number(text)) for at, text in one.values]
        ratio_told_as_percent = rule.percent_if_above_one and any(v > 1.0 for _, v in numbers)
        scale = 1.0 if ratio_told_as_percent else rule.scale
        for slot, value in numbers:
            if 0 <= slot < count and math.isnan(values[slot]):
                values[slot] = value * scale
    if all(math.isnan(v) for v in values):
        return None
    return RangeAnswer(question_.end + offset_s, question_.step_s, tuple(values))
