"""Sparklines of the last minutes: each glyph is the mean of a stretch of time that has passed.

Stretches begin at whole multiples of their length, so that a line changes when one ends and not at each sample:
how busy it is right now stands beside it as a number.
"""

import math
from collections.abc import Sequence
from typing import Final
from weakref import WeakKeyDictionary

from gputop.fleet import GpuState, Series
from gputop.model.identity import GpuKey
from gputop.panes.base import PaneContext
from gputop.panes.format import NA_TEXT, is_na
from gputop.panes.past import bridge_s, until
from gputop.widgets.cells import Cell
from gputop.widgets.columns import GAP, Column
from gputop.widgets.spark import spark

TREND_WIDTH: Final = 12
_LEAST_STRETCH_S: Final = 10.0
_QUANTITY: Final = "utilization"
_KEPT: Final = 2048

_made: Final[WeakKeyDictionary[object, dict[GpuKey, tuple[tuple[float, ...], list[float]]]]] = WeakKeyDictionary()
"""Means by the history they are of and the GPU, with the time they were made for."""


def least_width(columns: Sequence[Column], trend: Column) -> int:
    """Return the cells below which a table has no room for its trend: what comes before it takes so many."""
    place = columns.index(trend)
    before = [c for i, c in enumerate(columns) if (c.priority, i) < (trend.priority, place)]
    return trend.least + sum(c.least + GAP for c in before)


def utilisation_trend(gpus: Sequence[GpuState], context: PaneContext) -> Cell:
    """Return the mean utilisation of some GPUs over the last minutes.

    A stretch in which not every one of them told is a gap: the mean of a part is not the mean of all.

    Args:
        gpus: GPUs that are there. Where one has no utilisation of its own, as in MIG mode, there is no mean of all.
        context: What the screen is set to.
    """
    if any(is_na(g.readings.get(_QUANTITY)) for g in gpus):
        return Cell(NA_TEXT, "na")
    lines = [_means(g, context) for g in gpus]
    if not lines:
        return Cell("")
    # A sum with NaN in it is NaN, which is a gap.
    values = lines[0] if len(lines) == 1 else [sum(stretch) / len(lines) for stretch in zip(*lines, strict=True)]
    return Cell(spark(values, TREND_WIDTH, ascii_only=context.ascii_only), "chart-1")


def _means(gpu: GpuState, context: PaneContext) -> list[float]:
    """Return the mean of each stretch, oldest first, NaN where nothing was told."""
    newest = context.series(gpu.key, _QUANTITY, 1) if context.series else None
    if newest is None or context.series is None:
        return [math.nan] * TREND_WIDTH
    stretch_s = max(_LEAST_STRETCH_S, newest.step_s)
    # Stretches that have passed are the same until the next one has, and this is asked for each second.
    passed = (context.now // stretch_s, newest.end // stretch_s, newest.step_s)
    of_history = _made.setdefault(getattr(context.series, "__self__", context.series), {})
    made = of_history.get(gpu.key)
    if made is None or made[0] != passed:
        if len(of_history) >= _KEPT:
            of_history.clear()
        made = of_history[gpu.key] = (passed, _means_anew(gpu, context, newest, stretch_s))
    return made[1]


def _means_anew(gpu: GpuState, context: PaneContext, newest: Series, stretch_s: float) -> list[float]:
    gap = [math.nan] * TREND_WIDTH
    if context.series is None:
        return gap
    slots = math.ceil((TREND_WIDTH + 1) * stretch_s / newest.step_s)
    past = context.series(gpu.key, _QUANTITY, slots)
    if past is None:
        return gap
    told = until(past, context.now, bridge_s(gpu, _QUANTITY))
    step_s = told.step_s
    # Slots are counted in the same multiples of the step as the ring's.
    newest_slot = int(context.now / step_s)
    first_stretch = int(context.now / stretch_s) - TREND_WIDTH
    sums, counts = [0.0] * TREND_WIDTH, [0] * TREND_WIDTH
    for slot, value in enumerate(told.values, newest_slot - len(told.values) + 1):
        place = int(slot * step_s / stretch_s) - first_stretch
        if 0 <= place < TREND_WIDTH and not math.isnan(value):
            sums[place] += value
            counts[place] += 1
    return [total / count if count else math.nan for total, count in zip(sums, counts, strict=True)]
