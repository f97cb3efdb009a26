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
_ROOM_FOR_RANGES: Final = 120
"""Cells across from which also a chart of several lines has room to say how far each went."""


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
    titles: list[Cell] = []
    left = ""
    for number, line in enumerate(kind.lines):
        if hours is not None:
            past = hours.get(line.quantity)
            told = _until(past, context.now) if past else None
        else:
            past = context.series(key, line.quantity, _SLOTS) if context.series else None
            told = _until(past, context.now, _bridge(gpu, line.quantity)) if past else None
        values = _scaled(told, _divisor(gpu, line)) if told else ()
        role = f"chart-{number + 1}"
        series.append(Series(line.name, values, role))
        roomy = len(kind.lines) == 1 or context.width >= _ROOM_FOR_RANGES
        words, span = _title(line.name, kind.unit, values)
        words = fold(words) if context.ascii_only else words
        titles.append(Cell.of((" " * bool(titles) + words, role), (span if roomy else "", "dim")))
        if past:
            left = _ago(past.step_s * len(past.values))
    return Drawing(tuple(titles), tuple(reversed(series)), Scale(0.0, _top(kind, gpu, series), "{:.0f}".format, left))


def _title(name: str, unit: str, values: tuple[float | None, ...]) -> tuple[str, str]:
    """Return a line's name with its newest value, and where in the span it went lowest and highest."""
    newest = values[-1] if values else None
    words = f"{name} {newest:.0f}{unit}" if newest is not None else f"{name} ?"
    known = [v for v in values if v is not None]
    low, high = (f"{min(known):.0f}", f"{max(known):.0f}") if known else ("", "")
    return words, f" ({low} to {high})" if low != high else ""


def _bridge(gpu: GpuState | None, quantity: str) -> float:
    """Return for how many seconds a value counts as fresh: only where none is told for longer is a gap."""
    reading = gpu.readings.get(quantity) if gpu else None
    return reading.origin.stale_after_s if reading is not None else 0.0


def _until(past: History, now: float, bridge_s: float = 0.0) -> History:
    """Return a stretch that ends now, so that a source that fell silent leaves a gap at its end.

    Args:
        past: What was told.
        now: The time on screen; what was told after it is left out, as while the screen is held.
        bridge_s: A value stands until the next one for at most so long.
    """
    count = len(past.values)
    values = list(past.values)
    if bridge_s > past.step_s:
        _hold(values, int(bridge_s / past.step_s))
    missing = int((now - past.end) / past.step_s)
    if missing < 0:
        values = values[:missing] or [math.nan]
    # A slot that has only just begun is not yet a gap.
    elif missing > max(1, int(bridge_s / past.step_s)):
        values += [math.nan] * min(missing, count)
    values = [math.nan] * (count - len(values)) + values
    return History(now, past.step_s, tuple(values[-count:]))


def _hold(values: list[float], slots: int) -> None:
    """Let each value stand over the empty slots after it, where so few follow that it was still fresh."""
    since = slots
    held = math.nan
    empty: list[int] = []
    for place, value in enumerate(values):
        if math.isnan(value):
            since += 1
            empty.append(place)
            continue
        if since < slots:
            for earlier in empty:
                values[earlier] = held
        held, since = value, 0
        empty.clear()


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
