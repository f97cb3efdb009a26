"""The four kinds of cell: a number, "n/a", "?" and a stale number.

A value that nobody gave is never 0: it is an `Absent` that says whether the device cannot tell ("n/a")
or nobody told us ("unknown"), and why. Whether a number is stale depends on when one looks, so it is
computed from its `Origin` and never stored.
"""

from typing import Final

from msgspec import Struct

OK: Final = "ok"
NA: Final = "n/a"
UNKNOWN: Final = "unknown"
STALE: Final = "stale"


class Absent(Struct, frozen=True, gc=False):
    """Why there is no value.

    Attributes:
        state: `NA` when the device or the field has no such value, `UNKNOWN` when a value exists but
            was not told (denied, failed, not exported, lost).
        code: Stable word for programs, such as "not_supported".
        reason: One phrase for people.
    """

    state: str
    code: str
    reason: str


NOT_SUPPORTED: Final = Absent(NA, "not_supported", "not supported by this device")
DEPRECATED: Final = Absent(NA, "deprecated", "deprecated in this driver")
BLANK: Final = Absent(NA, "blank", "the source sent a blank marker")
NOT_EXPORTED: Final = Absent(UNKNOWN, "not_exported", "no source exports this")
NOT_ASKED: Final = Absent(UNKNOWN, "not_asked", "not read yet")


def implausible(value: float, low: float, high: float, unit: str) -> Absent:
    """Return the absence that stands for a number outside what the quantity can be."""
    return Absent(NA, "implausible", f"implausible: {value:g} {unit} is outside {low:g} to {high:g}".strip())


def denied(reason: str) -> Absent:
    """Return the absence of a value that this user may not read."""
    return Absent(UNKNOWN, "denied", reason)


def failed(reason: str, code: str = "error") -> Absent:
    """Return the absence of a value whose reading failed."""
    return Absent(UNKNOWN, code, reason)


Value = float | str | Absent
"""What a source says of one quantity: a number in the quantity's unit, a text, or why there is none."""


class Origin(Struct, frozen=True, gc=False):
    """Where and when a value comes from; shared by all values of one sample.

    Attributes:
        source: Name of the source, unique in the process.
        rank: Nearness of the source to the device: 0 NVML, 1 exporter, 2 Prometheus, 3 scheduler. The
            nearer wins while it is fresh.
        at: Time of the sample, seconds since the epoch on this machine's clock.
        stale_after_s: Age from which the value is stale.
    """

    source: str
    rank: int
    at: float
    stale_after_s: float


class Reading(Struct, frozen=True, gc=False):
    """One value of one quantity, with its origin."""

    value: float | str | Absent
    origin: Origin

    def state(self, now: float) -> str:
        """Return `OK`, `NA`, `UNKNOWN` or `STALE` as seen at `now` (seconds since the epoch)."""
        if isinstance(self.value, Absent):
            return self.value.state
        return STALE if now - self.origin.at > self.origin.stale_after_s else OK

    def age_s(self, now: float) -> float:
        """Return the age in seconds, never negative: clocks may differ by a little."""
        return max(0.0, now - self.origin.at)

    @property
    def number(self) -> float | None:
        """The value if it is a number, fresh or stale."""
        return self.value if isinstance(self.value, float) else None

    @property
    def text(self) -> str | None:
        """The value if it is a text, fresh or stale."""
        return self.value if isinstance(self.value, str) else None

    @property
    def absent(self) -> Absent | None:
        """Why there is no value, if there is none."""
        return self.value if isinstance(self.value, Absent) else None
