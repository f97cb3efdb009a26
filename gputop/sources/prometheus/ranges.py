"""Range queries for charts over hours."""

import math
import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from gputop.model.identity import GpuKey
from gputop.model.quantity import QUANTITIES, Level
from gputop.model.text import is_whole
from gputop.sources.metrics.envelope import SeriesAnswer, number
from gputop.sources.metrics.names import METRICS, rule_of
from gputop.sources.metrics.rows import judged
from gputop.sources.metrics.rule import Doubt, Role
from gputop.sources.prometheus.clocks import Clocks
from gputop.sources.prometheus.queries import uuid_labels
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
    quantity: str,
    key: GpuKey,
    hosts: Sequence[str],
    hours: float,
    matchers: str,
    present: frozenset[str] | None,
    clocks: Clocks,
) -> RangeQuestion | None:
    """Return the query for a GPU's quantity, or None if the server has no metric of it.

    Args:
        quantity: Id of the quantity.
        key: The GPU.
        hosts: Every name of its host, by which a GPU without a UUID is found.
        hours: How far back.
        matchers: The user's matchers.
        present: Names the server has; None if it did not tell.
        clocks: The server's time and scrape interval.
    """
    told = "graphics_activity" if key.instance and quantity == "utilization" else quantity
    names = [
        name
        for name in (METRICS if present is None else sorted(present))
        if (rule := rule_of(name)) is not None and rule.quantity == told and rule.role is Role.VALUE
    ]
    instance = ""
    if QUANTITIES[quantity].level is not Level.BOARD:
        instance = f"GPU_I_ID={quoted(key.instance.partition('/')[0])}"
    by_name = [
        f"max by (__name__) ({select([name], matcher, instance, matchers)})"
        for name in names
        for matcher in _who(name, key, hosts)
    ]
    if not by_name:
        return None
    least_s = max(_LEAST_STEP_S, clocks.scrape_s or 0.0)
    step_s = max(1, math.ceil(hours * 3600.0 / POINTS / least_s)) * math.ceil(least_s)
    end = math.floor((time.time() - clocks.offset_s) / step_s) * step_s
    return RangeQuestion(" or ".join(by_name), end - round(hours * 3600.0 / step_s) * step_s, end, step_s)


def _who(name: str, key: GpuKey, hosts: Sequence[str]) -> list[str]:
    """Return matchers for a metric, each of which may find the GPU: exporters differ in the labels that name it."""
    if key.uuid.startswith("GPU-"):
        # nvidia_gpu_exporter leaves the prefix out.
        spellings = one_of([key.uuid, key.uuid.removeprefix("GPU-")])
        return [f"{label}=~{spellings}" for label in uuid_labels(name)]
    index = key.uuid.removeprefix("index-")
    if not is_whole(index):
        return []
    return [f"gpu={quoted(index)},{label}=~{one_of(hosts)}" for label in ("Hostname", "hostname", "node")]


def answer(question_: RangeQuestion, series: list[SeriesAnswer], offset_s: float) -> RangeAnswer | None:
    """Return the points, with a gap where the server has none; None if it has nothing at all.

    Args:
        question_: What was asked.
        series: The series of the answer.
        offset_s: This machine's time minus the server's.
    """
    count = round((question_.end - question_.start) / question_.step_s) + 1
    values = [math.nan] * count
    ruled = [(rule, one) for one in series if (rule := rule_of(one.metric.get("__name__", ""))) is not None]
    # Where several metrics tell it, the first choice counts and the others fill its gaps.
    for rule, one in sorted(ruled, key=lambda item: item[0].order):
        numbers = [(round((at - question_.start) / question_.step_s), number(text)) for at, text in one.values]
        # DCGM 4.6 writes percentages under a ratio's name (see `Doubt`).
        percent = rule.doubt is Doubt.RATIO_OR_PERCENT and any(v > 1.0 for _, v in numbers)
        for slot, raw in numbers:
            value = judged(rule, raw, 1.0 if percent else rule.scale)
            if 0 <= slot < count and math.isnan(values[slot]) and isinstance(value, float):
                values[slot] = value
    if all(math.isnan(v) for v in values):
        return None
    return RangeAnswer(question_.end + offset_s, question_.step_s, tuple(values))
