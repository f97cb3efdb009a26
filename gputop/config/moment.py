"""A moment as a user writes it."""

import math


def parse_moment(text: str) -> float:
    """Return seconds since the epoch from a number or an ISO 8601 time; without a zone it is UTC.

    Raises:
        ValueError: It is neither.
    """
    from datetime import UTC, datetime  # noqa: PLC0415 - needed for --at alone

    try:
        seconds = float(text)
    except ValueError:
        moment = datetime.fromisoformat(text)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(seconds):
        raise ValueError(text)
    return seconds
