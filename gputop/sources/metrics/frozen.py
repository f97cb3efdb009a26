"""Frozen values: an exporter that goes on telling the same numbers after its host engine has hung.

The energy counter of a board that draws power moves with every reading. One that has stood still for ten
minutes while power is shown means that nothing is read any more (NVIDIA/dcgm-exporter#164, #84). Equal
values in a row alone prove nothing: the exporter reads each 30 s and is scraped more often.
"""

from typing import Final

from msgspec import Struct

from gputop.sources.metrics.rows import Row, RowKey

FROZEN_AFTER_S: Final = 600.0
_LEAST_SAMPLES: Final = 3
_LEAST_POWER_W: Final = 1.0


class Frozen(Struct, frozen=True):
    """A GPU whose values stand still: since when, and the power that is shown all the same."""

    row: Row
    since: float
    at: float
    power_w: float


class _Watched(Struct):
    energy_j: float
    since: float
    last: float
    samples: int
    power_w: float = 0.0

    @property
    def is_frozen(self) -> bool:
        stood_s = self.last - self.since
        return stood_s >= FROZEN_AFTER_S and self.samples >= _LEAST_SAMPLES and self.power_w >= _LEAST_POWER_W


class FrozenWatch:
    """Watches the energy counter of every GPU."""

    def __init__(self) -> None:
        self._watched: dict[RowKey, _Watched] = {}

    def look(self, row: Row) -> Frozen | None:
        """Take one answer into account; return what stands still for too long.

        An answer without the counter changes nothing: not every round asks for every metric.
        """
        known = self._watched.get(row.key)
        energy, power = row.cells.get("energy_j"), row.number("power_w")
        if energy is not None and isinstance(energy.value, float):
            at = energy.at
            if known is None or known.energy_j != energy.value or at < known.last:
                known = self._watched[row.key] = _Watched(energy.value, at, at, 1)
            elif at > known.last:
                known.last = at
                known.samples += 1
        if known is None:
            return None
        known.power_w = power if power is not None else known.power_w
        return Frozen(row, known.since, known.last, known.power_w) if known.is_frozen else None


def words(frozen: list[Frozen]) -> str:
    """Return one sentence for the frozen GPUs of a node."""
    longest = max(frozen, key=lambda f: f.at - f.since)
    names = ", ".join(_name(f.row) for f in frozen)
    return (
        f"values of {names} frozen for {(longest.at - longest.since) / 60:.0f} min: the energy counter does not "
        f"move while {longest.power_w:.0f} W is shown; restart the exporter and its host engine"
    )


def _name(row: Row) -> str:
    return f"GPU {row.ref.index}" if row.ref.index >= 0 else f"GPU {row.ref.uuid or row.ref.bus_id}"
