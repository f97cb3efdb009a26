"""The last minutes of each GPU in memory: fixed rings of 32-bit floats with gaps as NaN.

A ring has one slot for each step of the source's cadence. At 10,240 GPUs with a 15-second cadence the
five quantities of `HISTORY_QUANTITIES` take about 25 MB.
"""

import math
from array import array
from typing import Final

from msgspec import Struct

from gputop.model.identity import GpuKey
from gputop.model.quantity import HISTORY_QUANTITIES

_FAST_STEP_S: Final = 2.0
_FAST_SLOTS: Final = 600
_SLOW_SLOTS: Final = 120
_POSITION: Final = {q: i for i, q in enumerate(HISTORY_QUANTITIES)}
_GAP: Final = math.nan


class Series(Struct, frozen=True, gc=False):
    """A stretch of one quantity.

    Attributes:
        end: Time of the newest slot, seconds since the epoch.
        step_s: Seconds between slots.
        values: Oldest first, NaN for a gap.
    """

    end: float
    step_s: float
    values: tuple[float, ...]


class _Ring:
    """All history of one GPU: one row of slots for each quantity."""

    __slots__ = ("head", "slots", "step_s", "values")

    def __init__(self, step_s: float) -> None:
        self.step_s = step_s
        self.slots = _FAST_SLOTS if step_s <= _FAST_STEP_S else _SLOW_SLOTS
        self.head = 0
        self.values = array("f", [_GAP]) * (self.slots * len(HISTORY_QUANTITIES))

    def put(self, at: float, quantity: int, value: float) -> None:
        slot = int(at / self.step_s)
        if slot > self.head:
            self._open(slot)
        elif slot <= self.head - self.slots:
            return
        self.values[quantity * self.slots + slot % self.slots] = value

    def _open(self, slot: int) -> None:
        """Move the head to `slot`; what lies between was never told and stays a gap."""
        # A ring that was never put into is all gaps already.
        passed = min(slot - self.head, self.slots) if self.head else 0
        for quantity in range(len(HISTORY_QUANTITIES)):
            base = quantity * self.slots
            for back in range(passed):
                self.values[base + (slot - back) % self.slots] = _GAP
        self.head = slot

    def series(self, quantity: int, count: int) -> Series:
        count = min(count, self.slots)
        base = quantity * self.slots
        values = tuple(self.values[base + (self.head - back) % self.slots] for back in range(count - 1, -1, -1))
        return Series(self.head * self.step_s, self.step_s, values)


class History:
    """The rings of all GPUs."""

    def __init__(self) -> None:
        self._rings: dict[GpuKey, _Ring] = {}

    def put(self, key: GpuKey, quantity: str, at: float, interval_s: float, value: float) -> None:
        """Remember one number.

        Args:
            key: The GPU.
            quantity: One of `HISTORY_QUANTITIES`.
            at: Sample time, seconds since the epoch.
            interval_s: Cadence of the source. A finer one starts the ring again with a finer step; a
                coarser one leaves gaps, which is what it is.
            value: The number in the quantity's unit.
        """
        step_s = max(1.0, interval_s)
        ring = self._rings.get(key)
        if ring is None or ring.step_s > step_s * 2:
            ring = self._rings[key] = _Ring(step_s)
        ring.put(at, _POSITION[quantity], value)

    def series(self, key: GpuKey, quantity: str, count: int) -> Series | None:
        """Return the newest `count` slots of a quantity, or None if nothing was ever remembered."""
        ring = self._rings.get(key)
        return ring.series(_POSITION[quantity], count) if ring else None

    def move(self, old: GpuKey, new: GpuKey) -> None:
        """Let the history of `old` go on as `new`'s, unless `new` has its own."""
        ring = self._rings.pop(old, None)
        if ring is not None:
            self._rings.setdefault(new, ring)

    def forget(self, key: GpuKey) -> None:
        """Drop the history of a GPU."""
        self._rings.pop(key, None)
