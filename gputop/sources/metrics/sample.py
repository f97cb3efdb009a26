"""One sample of one series, whoever told it."""

from msgspec import Struct


class Sample(Struct, frozen=True, gc=False):
    """One number of one series.

    Attributes:
        name: Metric name as written.
        labels: Labels without `__name__`.
        value: The number; may be NaN or infinite.
        at: Time of the sample, seconds since the epoch on this machine's clock; None when not told, which
            means the time of the answer it came in.
    """

    name: str
    labels: dict[str, str]
    value: float
    at: float | None = None
