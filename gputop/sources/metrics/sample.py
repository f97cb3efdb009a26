"""A sample of a metric."""

from typing import Final

from msgspec import Struct

_LATEST: Final = 4_102_444_800.0


class Sample(Struct, frozen=True, gc=False):
    """One sample of one series.

    Attributes:
        name: Metric name.
        labels: Labels without the name.
        value: Value, in whatever unit the metric has.
        at: Sample time on this machine's clock, seconds since the epoch; None when not told.
    """

    name: str
    labels: dict[str, str]
    value: float
    at: float | None = None


def is_time(at: float) -> bool:
    """Whether a time can be one of a sample: after the epoch and before the year 2100."""
    return 0.0 < at < _LATEST
