"""Range queries for charts over hours."""

import math
import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from gputop.model.identity import GpuKey
from gputop.sources.metrics.names import METRICS
from gputop.sources.metrics.rule import Doubt, Role
from gputop.sources.prometheus.envelope import SeriesAnswer, number
from gputop.sources.prometheus.selector import one_of, quoted, select

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
    quantity: str, key: GpuKey, hosts: Sequence[str], hours: float, matchers: str, present: frozenset[str] | None
) -> RangeQuestion | None:
    """Return the query for a GPU's quantity, or None if the server has no metric of it.

    Args:
        quantity: Id of the quantity.
        key: The GPU.
        hosts: Every name of its host; only asked for when the GPU has no UUID of its own.
        hours: How far back.
        matchers: The user's matchers.
        present: Names the server has; None if it did not tell.
    """
    names = [
        n
        for n, r in METRICS.items()
        if r.quantity == quantity and r.role is Role.VALUE and (present is None or n in present)
    ]
    if not names or not key.uuid.startswith("GPU-"):
        return None
    del hosts
    spellings = one_of([key.uuid, key.uuid.removeprefix("GPU-")])
    part = f"GPU_I_ID={quoted(key.instance)}" if key.instance else 'GPU_I_ID=""'
    by_name = [
        f"max by (__name__) ({select([n], f'{label}=~{spellings}', part, matchers)})"
        for n in names
        for label in ("UUID", "uuid")
    ]
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
        # DCGM 4.6 writes percentages under a ratio's name (see `Doubt`).
        percent = rule.doubt is Doubt.RATIO_OR_PERCENT and any(v > 1.0 for _, v in numbers)
        scale = 1.0 if percent else rule.scale
        for slot, value in numbers:
            if 0 <= slot < count and math.isnan(values[slot]):
                values[slot] = value * scale
    if all(math.isnan(v) for v in values):
        return None
    return RangeAnswer(question_.end + offset_s, question_.step_s, tuple(values))
