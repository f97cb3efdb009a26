"""A sample of a metric."""

from msgspec import Struct


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
