"""A quantity in an answer: value, state, source and age, never one without the others."""

from msgspec import Struct

from gputop.model.quantity import QUANTITIES
from gputop.model.reading import OK, STALE, UNKNOWN, Reading


class Quantity(Struct, frozen=True, omit_defaults=True):
    """One value as it is known.

    Attributes:
        value: The number or text; null unless the state is "ok" or "stale".
        state: "ok", "n/a", "unknown" or "stale".
        source: Who told; null when nobody did.
        age_s: Age in seconds; null when nobody told.
        reason: Why there is no value.
    """

    value: float | str | None
    state: str
    source: str | None
    age_s: float | None
    reason: str = ""


NOBODY = Quantity(None, UNKNOWN, None, None, "no source tells it")


def answer(reading: Reading | None, now: float) -> Quantity:
    """Return a reading as it is seen at `now`."""
    if reading is None:
        return NOBODY
    state, age = reading.state(now), round(reading.age_s(now), 1)
    value = reading.value
    if state in {OK, STALE} and isinstance(value, float | str):
        return Quantity(round(value, 3) if isinstance(value, float) else value, state, reading.origin.source, age)
    absent = reading.absent
    return Quantity(None, state, reading.origin.source, age, absent.reason if absent else "")


BOARD_QUANTITIES = tuple(q for q, rule in QUANTITIES.items() if rule.level != "node")
NODE_QUANTITIES = tuple(q for q, rule in QUANTITIES.items() if rule.level == "node")
