"""Stretches of the past for charts and sparklines: they end now, and what nobody told stays a gap."""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from gputop.fleet import GpuState
from gputop.fleet import Series as History


def bridge_s(gpu: GpuState | None, quantity: str) -> float:
    """Return for how many seconds a value counts as fresh: only where none is told for longer is a gap."""
    reading = gpu.readings.get(quantity) if gpu else None
    return reading.origin.stale_after_s if reading is not None else 0.0


def until(past: History, now: float, bridge: float = 0.0) -> History:
    """Return a stretch that ends now, so that a source that fell silent leaves a gap at its end.

    Args:
        past: What was told.
        now: The time on screen; what was told after it is left out, as while the screen is held.
        bridge: Seconds for which a value stands until the next one at most.
    """
    count = len(past.values)
    values = list(past.values)
    missing = int((now - past.end) / past.step_s)
    if missing < 0:
        values = values[:missing] or [math.nan]
    else:
        values += [math.nan] * min(missing, count)
    # A slot that has only just begun is not yet a gap.
    # In a bundle values are fresh for ever.
    _hold(values, int(min(bridge / past.step_s, count)))
    values = [math.nan] * (count - len(values)) + values
    return History(now, past.step_s, tuple(values[-count:]))


def _hold(values: list[float], slots: int) -> None:
    """Let each value stand over the empty slots after it, where so few follow that it was still fresh."""
    held = math.nan
    empty = 0
    for place, value in enumerate(values):
        if math.isnan(value):
            empty += 1
            continue
        if 0 < empty < slots:
            values[place - empty : place] = [held] * empty
        held, empty = value, 0
    if 0 < empty <= max(1, slots):
        values[len(values) - empty :] = [held] * empty


AGGREGATES: Final[dict[str, Callable[[Sequence[float]], float]]] = {
    "mean": statistics.fmean,
    "sum": math.fsum,
    "max": max,
}
"""How boards make one line."""


class Together(Struct, frozen=True):
    """What several boards come to over time.

    Attributes:
        step_s: Seconds between slots.
        whole: Values of slots in which every board told, NaN elsewhere.
        some: Values over the boards that told in slots where others did not, NaN elsewhere: a sum over a part
            of the boards is never drawn as the whole.
        told: Boards that told in the newest slot.
    """

    step_s: float
    whole: tuple[float, ...]
    some: tuple[float, ...]
    told: int


def together(pasts: Sequence[History | None], aggregate: str) -> Together | None:
    """Return what boards come to, or None if no board ever told anything.

    Args:
        pasts: The stretch of each board, all ending at the same time (`until`); None for a board without one.
        aggregate: Key of `AGGREGATES`.
    """
    there = [p for p in pasts if p is not None]
    if not there:
        return None
    step_s = max(p.step_s for p in there)
    backward = [_backward(p, step_s) for p in there]
    slots = max(len(values) for values in backward)
    whole, some = [math.nan] * slots, [math.nan] * slots
    make = AGGREGATES[aggregate]
    newest = 0
    for back in range(slots):
        told = [v[back] for v in backward if back < len(v) and not math.isnan(v[back])]
        if not back:
            newest = len(told)
        if told:
            (whole if len(told) == len(pasts) else some)[slots - 1 - back] = make(told)
    return Together(step_s, tuple(whole), tuple(some), newest)


def _backward(past: History, step_s: float) -> list[float]:
    """Return the values newest first in slots of `step_s`: of several in a slot, the newest that was told."""
    values = past.values[::-1]
    if past.step_s == step_s:
        return list(values)
    found: list[float] = []
    for slot in range(math.ceil(len(values) * past.step_s / step_s)):
        start = int(slot * step_s / past.step_s)
        end = max(start + 1, int((slot + 1) * step_s / past.step_s))
        found.append(next((v for v in values[start:end] if not math.isnan(v)), math.nan))
    return found
