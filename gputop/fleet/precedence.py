"""Which of several sources counts: the nearer to the device, as long as it is fresh.

Freshness is relative to the newest reading of the same quantity, so a source that has died gives way to a
farther one that goes on.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from gputop.model.reading import Absent, Reading


def _weight(reading: Reading, newest: float) -> tuple[bool, bool, int, float]:
    origin = reading.origin
    stale = newest - origin.at > origin.stale_after_s
    return (stale, isinstance(reading.value, Absent), origin.rank, -origin.at)


def settle(readings: Iterable[Reading]) -> tuple[Reading, tuple[Reading, ...]]:
    """Return the reading that counts and the others, nearest first.

    Args:
        readings: At least one reading of one quantity, one for each source.
    """
    several = tuple(readings)
    newest = max(r.origin.at for r in several)
    ordered = sorted(several, key=lambda r: _weight(r, newest))
    return ordered[0], tuple(ordered[1:])


class Tolerance(Struct, frozen=True, gc=False):
    """How far two sources may differ on a quantity before it is a disagreement."""

    absolute: float
    relative: float


# Samples of the two sources lie seconds apart, so what moves fast may differ a lot without anybody being
# wrong; what is fixed for a board may not differ at all.
_TOLERANCES: Final = {
    "memory_total_mib": Tolerance(2.0, 0.02),
    "power_limit_w": Tolerance(1.0, 0.01),
    "ecc_mode": Tolerance(0.0, 0.0),
    "ecc_aggregate_corrected": Tolerance(0.0, 0.0),
    "ecc_aggregate_uncorrected": Tolerance(0.0, 0.0),
    "row_remap_uncorrected": Tolerance(0.0, 0.0),
    "row_remap_pending": Tolerance(0.0, 0.0),
    "row_remap_failed": Tolerance(0.0, 0.0),
    "mig_mode": Tolerance(0.0, 0.0),
    "temperature_c": Tolerance(25.0, 0.0),
    "memory_used_mib": Tolerance(2048.0, 0.25),
}
_TEXTS_THAT_MUST_AGREE: Final = frozenset({"driver_version", "vbios_version", "serial"})


class Disagreement(Struct, frozen=True, gc=False):
    """Two sources that cannot both be right about one quantity."""

    quantity: str
    counts: Reading
    other: Reading


def disagreements(
    readings: dict[str, Reading], rivals: dict[str, tuple[Reading, ...]], now: float
) -> tuple[Disagreement, ...]:
    """Return the disagreements among fresh readings that matter to a person, by quantity."""
    found: list[Disagreement] = []
    for quantity, others in rivals.items():
        chosen = readings.get(quantity)
        if chosen is None or chosen.state(now) != "ok":
            continue
        found.extend(
            Disagreement(quantity, chosen, other)
            for other in others
            if other.state(now) == "ok" and _differ(quantity, chosen, other)
        )
    return tuple(found)


def _differ(quantity: str, one: Reading, two: Reading) -> bool:
    if quantity in _TEXTS_THAT_MUST_AGREE:
        return one.text != two.text
    tolerance = _TOLERANCES.get(quantity)
    a, b = one.number, two.number
    if tolerance is None or a is None or b is None:
        return False
    return abs(a - b) > max(tolerance.absolute, tolerance.relative * max(abs(a), abs(b)))
