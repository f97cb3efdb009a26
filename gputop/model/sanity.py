"""Which numbers are no numbers: blank markers and values no device can have.

Rules as data. Markers are those of `dcgm_structs.h` (DCGM 4.6): once an INT64 marker has passed through a
float64, all four are 2**63 and Prometheus prints 9223372036854776000, so they are told by range, not by
equality.
"""

import math
from typing import Final

from msgspec import Struct

from gputop.model.quantity import QUANTITIES, Kind
from gputop.model.reading import BLANK, NA, UNKNOWN, Absent, Value, implausible


class Blank(Struct, frozen=True, gc=False):
    """A range of numbers that DCGM uses for "there is no value", and what it means."""

    low: float
    high: float
    absent: Absent


_NOT_FOUND: Final = Absent(NA, "blank", "the source says: not found")
_NOT_SUPPORTED: Final = Absent(NA, "not_supported", "the source says: not supported")
_NOT_PERMITTED: Final = Absent(UNKNOWN, "denied", "the source says: not permitted")

BLANK_NUMBERS: Final = (
    Blank(2147483632.0, 2147483632.0, BLANK),
    Blank(2147483633.0, 2147483633.0, _NOT_FOUND),
    Blank(2147483634.0, 2147483634.0, _NOT_SUPPORTED),
    Blank(2147483635.0, 2147483635.0, _NOT_PERMITTED),
    # 0xFFFFFFFF is what a 32-bit "not available" becomes when printed as unsigned.
    Blank(4294967295.0, 4294967295.0, BLANK),
    Blank(140737488355328.0, 140737488355328.0, BLANK),
    Blank(140737488355329.0, 140737488355329.0, _NOT_FOUND),
    Blank(140737488355330.0, 140737488355330.0, _NOT_SUPPORTED),
    Blank(140737488355331.0, 140737488355331.0, _NOT_PERMITTED),
    # The four INT64 markers, and 0xFFFFFFFFFFFFFFFF (NVML_VALUE_NOT_AVAILABLE).
    Blank(9.2e18, 1.9e19, BLANK),
)

BLANK_TEXTS: Final = {
    "": BLANK,
    "<<<NULL>>>": BLANK,
    "<<<NOT_FOUND>>>": _NOT_FOUND,
    "<<<NOT_SUPPORTED>>>": _NOT_SUPPORTED,
    "<<<NOT_PERM>>>": _NOT_PERMITTED,
}

_LOWEST_BLANK: Final = min(b.low for b in BLANK_NUMBERS)
_NOT_A_NUMBER: Final = Absent(NA, "implausible", "the source sent NaN")


def _blank(value: float) -> Absent | None:
    for blank in BLANK_NUMBERS:
        if blank.low <= value <= blank.high:
            return blank.absent
    return None


def judge(quantity_id: str, value: float) -> float | Absent:
    """Return `value` if `quantity_id` can have it, else why it is no value.

    Args:
        quantity_id: A key of `QUANTITIES`; the value is in that quantity's unit.
        value: The number as the source gave it, after conversion of its unit.
    """
    q = QUANTITIES[quantity_id]
    if q.low <= value <= q.high:
        if value == 0.0 and q.zero_is_blank:
            return Absent(NA, "implausible", f"0 {q.unit}: this board has no such sensor")
        if q.kind is Kind.FLAG and value not in (0.0, 1.0):
            return implausible(value, q.low, q.high, q.unit)
        if value < _LOWEST_BLANK:
            return value
        return _blank(value) or value
    if math.isnan(value):
        return _NOT_A_NUMBER
    return _blank(value) or implausible(value, q.low, q.high, q.unit)


def judge_raw(value: float) -> Absent | None:
    """Return why `value`, in whatever unit the source uses, is a blank marker, or None if it is not.

    To be asked before a unit conversion: a marker divided by 1000 is no longer known as one.
    """
    if math.isnan(value):
        return _NOT_A_NUMBER
    return _blank(value) if value >= _LOWEST_BLANK else None


def judge_text(value: str) -> Value:
    """Return `value`, or why it is a blank marker of DCGM."""
    return BLANK_TEXTS.get(value.strip(), value)
