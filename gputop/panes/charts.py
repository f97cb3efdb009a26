"""The charts of a GPU or node: utilisation, VRAM, power, temperature, clock; gaps stay gaps.

VRAM is drawn in GiB, never as a share: how large the whole was in the past is not known, and with MIG it changes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from gputop.fleet import Series as History
from gputop.model.identity import GpuKey, NodeKey
from gputop.model.reading import Reading
from gputop.panes.ascii import fold_cell
from gputop.panes.base import PaneContext
from gputop.panes.format import NA_TEXT, gib, is_na, last, number
from gputop.panes.past import bridge_s, together, until
from gputop.widgets.cells import Cell
from gputop.widgets.chart import Scale, Series

_SLOTS: Final = 300
_TWO_FROM_WIDTH: Final = 60
_THREE_FROM_WIDTH: Final = 78

Hours = Mapping[GpuKey, Mapping[str, History]]
"""Answers of range queries by GPU and quantity."""


class ChartKind(Struct, frozen=True):
    """One chart.

    Attributes:
        id: Stable word.
        name: Words above it.
        quantity: What is drawn.
        unit: What stands behind its newest value.
        top: Upper end of the axis; 0 to take it from `top_from` or from the values.
        top_from: Quantities of which the first that is told is the upper end, unless the past went higher.
        words: Text of a value.
        aggregate: How the boards of a node make one line, see `gputop.panes.past`; "" for the chart of a GPU.
    """

    id: str
    name: str
    quantity: str
    unit: str
    top: float = 0.0
    top_from: tuple[str, ...] = ()
    words: Callable[[float], str] = number
    aggregate: str = ""


_TOTAL: Final = ("memory_total_mib", "memory_total_at_least_mib")

CHARTS: Final = (
    ChartKind("util", "util", "utilization", "%", top=100.0),
    ChartKind("vram", "VRAM", "memory_used_mib", "G", top_from=_TOTAL, words=gib),
    ChartKind("power", "power", "power_w", "W", top_from=("power_limit_w",)),
    ChartKind("heat", "temperature", "temperature_c", "°C", top=100.0),
    ChartKind("clock", "SM clock", "sm_clock_mhz", "MHz", top_from=("sm_clock_max_mhz",)),
)
"""All charts of a GPU, in the order in which they are given room."""

NODE_CHARTS: Final = (
    ChartKind("util", "mean util", "utilization", "%", top=100.0, aggregate="mean"),
    ChartKind("vram", "VRAM", "memory_used_mib", "G", top_from=_TOTAL, words=gib, aggregate="sum"),
    ChartKind("power", "power", "power_w", "W", top_from=("power_limit_w",), aggregate="sum"),
    ChartKind("heat", "hottest", "temperature_c", "°C", top=100.0, aggregate="max"),
)
"""All charts of a node."""


def kinds_of(key: GpuKey | NodeKey) -> tuple[ChartKind, ...]:
    """Return the charts of a GPU or node."""
    return CHARTS if isinstance(key, GpuKey) else NODE_CHARTS


def boards_of(context: PaneContext, key: GpuKey | NodeKey) -> list[GpuKey]:
    """Return whose past is drawn: the GPU, or the node's boards."""
    if isinstance(key, GpuKey):
        return [key]
    node = context.view.nodes.get(key)
    return [gpu for gpu in node.gpus if not gpu.instance] if node else []


def columns_across(key: GpuKey | NodeKey, width: int) -> int:
    """Return how many charts stand side by side."""
    if isinstance(key, GpuKey) and width >= _THREE_FROM_WIDTH:
        return 3
    return 2 if width >= _TWO_FROM_WIDTH else 1


class Drawing(Struct, frozen=True):
    """A chart ready for its widget."""

    title: tuple[Cell, ...]
    series: tuple[Series, ...]
    scale: Scale


def draw(context: PaneContext, key: GpuKey | NodeKey, kind: ChartKind, hours: Hours | None) -> Drawing:
    """Return one chart.

    Args:
        context: What the screen is set to.
        key: The GPU or node.
        kind: One of `kinds_of` the key.
        hours: Answers of range queries; None to draw what is in memory.
    """
    boards = boards_of(context, key)
    # A board in MIG mode has no utilisation of its own: nothing of it is missing.
    keys = [k for k in boards if not is_na(_reading(context, k, kind.quantity))]
    pasts = [_past(context, k, kind.quantity, hours) for k in (keys if kind.aggregate else boards)]
    told = together(pasts, kind.aggregate or "max")
    whole, some = (_values(told.whole), _values(told.some)) if told else ((), ())
    part = ""
    if told and 0 < told.told < len(boards):
        part = f" of {told.told}/{len(boards)} GPUs"
    newest = (some if told and told.told < len(pasts) else whole)[-1:]
    words = f"{kind.words(newest[0])}{kind.unit}" if newest and newest[0] is not None else "?"
    if words == "?" and boards and not keys:
        words = NA_TEXT
    runs = [(f"{kind.name} {words}", "chart-1"), (part, "warn"), (_span(kind, whole), "dim")]
    title = Cell.of(*runs)
    if title.width > context.width // columns_across(key, context.width):
        title = Cell.of(*runs[:2])
    series = [Series(kind.name, whole)]
    if any(v is not None for v in some):
        series.insert(0, Series("part of the GPUs", some, "stale"))
    left = _ago(told.step_s * len(whole)) if told else ""
    scale = Scale(0.0, _top(context, kind, keys, (*whole, *some)), kind.words, left)
    return Drawing((fold_cell(title) if context.ascii_only else title,), tuple(series), scale)


def _past(context: PaneContext, key: GpuKey, quantity: str, hours: Hours | None) -> History | None:
    if hours is not None:
        past = hours.get(key, {}).get(quantity)
        return until(past, context.now) if past else None
    past = context.series(key, quantity, _SLOTS) if context.series else None
    return until(past, context.now, bridge_s(context.view.gpus.get(key), quantity)) if past else None


def _values(past: Sequence[float]) -> tuple[float | None, ...]:
    return tuple([None if math.isnan(v) else v for v in past])


def _span(kind: ChartKind, values: Sequence[float | None]) -> str:
    """Return where a line went lowest and highest, "" where it stood still."""
    known = [v for v in values if v is not None]
    low, high = (kind.words(min(known)), kind.words(max(known))) if known else ("", "")
    return f" ({low} to {high})" if low != high else ""


def _reading(context: PaneContext, key: GpuKey, quantity: str) -> Reading | None:
    gpu = context.view.gpus.get(key)
    return gpu.readings.get(quantity) if gpu else None


def _top(context: PaneContext, kind: ChartKind, keys: Sequence[GpuKey], values: Sequence[float | None]) -> float:
    limits = [_limit(context, k, kind.top_from) for k in keys]
    known = [v for v in limits if v is not None]
    # The limit of some boards is no limit of a sum over all.
    limit = kind.top or (math.fsum(known) if len(known) == len(limits) else 0.0)
    highest = max((v for v in values if v is not None), default=0.0)
    return max(limit, highest, 1.0)


def _limit(context: PaneContext, key: GpuKey, quantities: Sequence[str]) -> float | None:
    told = (last(_reading(context, key, q)) for q in quantities)
    return next((v for v in told if v is not None), None)


def _ago(seconds: float) -> str:
    if seconds >= 2 * 3600:
        return f"-{seconds / 3600:.0f}h"
    return f"-{seconds / 60:.0f}m"
