"""The charts of a GPU: utilisation and VRAM, power, temperature, clock; gaps stay gaps."""

import math
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from gputop.fleet import GpuState
from gputop.fleet import Series as History
from gputop.model.identity import GpuKey
from gputop.panes.ascii import fold
from gputop.panes.base import PaneContext
from gputop.widgets.cells import Cell
from gputop.widgets.chart import Scale, Series

_SLOTS: Final = 300


class ChartLine(Struct, frozen=True):
    """One line of a chart.

    Attributes:
        quantity: What is drawn.
        name: Short name; its first letter marks the line's end.
        share_of: Draw it in percent of this quantity's present value; "" to draw it as it is.
    """

    quantity: str
    name: str
    share_of: str = ""


class ChartKind(Struct, frozen=True):
    """One chart.

    Attributes:
        id: Stable word.
        title: Words above it.
        unit: Unit of its axis.
        top: Upper end of the axis; 0 to take it from `top_from` or from the values.
        top_from: Quantity whose present value is the upper end.
        lines: What is drawn; the first is drawn last, on top.
    """

    id: str
    title: str
    unit: str
    top: float
    top_from: str
    lines: tuple[ChartLine, ...]

    @property
    def quantities(self) -> tuple[str, ...]:
        """The quantities it needs over time."""
        return tuple(line.quantity for line in self.lines)


CHARTS: Final = (
    ChartKind(
        "activity", "util and VRAM", "%", 100.0, "",
        (ChartLine("utilization", "util"), ChartLine("memory_used_mib", "VRAM", "memory_total_mib")),
    ),
    ChartKind("power", "power", "W", 0.0, "power_limit_w", (ChartLine("power_w", "power"),)),
    ChartKind("heat", "temperature", "°C", 100.0, "", (ChartLine("temperature_c", "temperature"),)),
    ChartKind("clock", "SM clock", "MHz", 0.0, "sm_clock_max_mhz", (ChartLine("sm_clock_mhz", "clock"),)),
)  # fmt: skip
"""All charts, in the order in which they are given room."""


class Drawing(Struct, frozen=True):
    """A chart ready for its widget."""

    title: tuple[Cell, ...]
    series: tuple[Series, ...]
    scale: Scale


def draw(context: PaneContext, key: GpuKey, kind: ChartKind, hours: Mapping[str, History] | None) -> Drawing:
    """Return one chart of a GPU.

    Args:
        context: What the screen is set to.
        key: The GPU.
        kind: The chart.
        hours: Answers of range queries by quantity; None to draw what is in memory.
    """
    gpu = context.view.gpus.get(key)
    series: list[Series] = []
    titles: list[Cell] = [Cell(f"{kind.title} ", "title")]
    left = ""
    for number, line in enumerate(kind.lines):
        if hours is not None:
            past = hours.get(line.quantity)
        else:
            past = context.series(key, line.quantity, _SLOTS) if context.series else None
        values = _scaled(past, _divisor(gpu, line)) if past else ()
        role = f"chart-{number + 1}"
        series.append(Series(line.name, values, role))
        last = next((v for v in reversed(values) if v is not None), None)
        words = f"{line.name} {last:.0f}{kind.unit}" if last is not None else f"{line.name} ?"
        titles.append(Cell(f" {fold(words) if context.ascii_only else words}", role))
        if past:
            left = _ago(past.step_s * len(past.values))
    return Drawing(tuple(titles), tuple(reversed(series)), Scale(0.0, _top(kind, gpu, series), "{:.0f}".format, left))


def _number(gpu: GpuState | None, quantity: str) -> float | None:
    reading = gpu.readings.get(quantity) if gpu else None
    return reading.number if reading else None


def _divisor(gpu: GpuState | None, line: ChartLine) -> float | None:
    """Return what values are divided by; None when the share cannot be told."""
    if not line.share_of:
        return 1.0
    whole = _number(gpu, line.share_of)
    return whole / 100.0 if whole else None


def _scaled(past: History, divisor: float | None) -> tuple[float | None, ...]:
    if divisor is None:
        return ()
    return tuple(None if math.isnan(v) else v / divisor for v in past.values)


def _top(kind: ChartKind, gpu: GpuState | None, series: list[Series]) -> float:
    limit = kind.top or _number(gpu, kind.top_from) or 0.0
    highest = max((v for s in series for v in s.values if v is not None), default=0.0)
    return max(limit, highest, 1.0)


def _ago(seconds: float) -> str:
    if seconds >= 2 * 3600:
        return f"-{seconds / 3600:.0f}h"
    return f"-{seconds / 60:.0f}m"
