"""Numbers as text: quantised to what a person can use, so that noise does not repaint the screen."""

from collections.abc import Callable
from typing import Final

from gputop.model.reading import NA, OK, STALE, Reading
from gputop.widgets.cells import Cell

UNKNOWN_TEXT: Final = "?"
NA_TEXT: Final = "n/a"
_GIB: Final = 1024.0


def number(value: float) -> str:
    """Return a whole number."""
    return f"{value:.0f}"


def percent(value: float) -> str:
    """Return a percentage."""
    return f"{value:.0f}%"


def gib(mib: float) -> str:
    """Return MiB as GiB: one decimal below 10, none above."""
    value = mib / _GIB
    return f"{value:.1f}" if 0 < value < 9.95 else f"{value:.0f}"


def kilowatt(watt: float) -> str:
    """Return W as kW."""
    return f"{watt / 1000:.1f}"


def rate(bytes_per_s: float) -> str:
    """Return a rate with its prefix."""
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if bytes_per_s >= size:
            return f"{bytes_per_s / size:.1f}{unit}B/s"
    return f"{bytes_per_s:.0f}B/s"


def count(value: float) -> str:
    """Return a count; one of five digits and more is shortened with its prefix."""
    if value < 1e4:
        return f"{value:.0f}"
    for unit, size in _PREFIXES:
        # Chosen after rounding, so that 999,999 is 1M and not 1000k.
        if value >= size * 0.9995:
            return f"{value / size:.0f}{unit}"
    return f"{value:.0f}"


def size(value: float) -> str:
    """Return bytes with a binary prefix."""
    for unit, scale in (("T", 2**40), ("G", 2**30), ("M", 2**20), ("k", 2**10)):
        if value >= scale:
            return f"{value / scale:.1f}{unit}"
    return f"{value:.0f}"


def age(seconds: float) -> str:
    """Return an age with one unit, in at most three characters up to 99 days: 0s, 4m, 2h, 3d."""
    for unit, length, least in _AGES:
        if seconds >= least:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:.0f}s"


_PREFIXES: Final = (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))
_AGES: Final = (("d", 86400.0, 2 * 86400.0), ("h", 3600.0, 99.5 * 60.0), ("m", 60.0, 90.0))
"""A unit, its seconds, and the age from which it is used."""


def reading_cell(
    reading: Reading | None,
    now: float,
    words: Callable[[float], str] = number,
    role: str | Callable[[float], str] = "",
) -> Cell:
    """Return one of the four kinds of cell.

    Args:
        reading: The reading; None when nobody tells.
        now: The time on screen.
        words: Text of a number.
        role: Role of a fresh value, or what gives it from the number.
    """
    if reading is None:
        return Cell(UNKNOWN_TEXT, "unknown")
    state = reading.state(now)
    if state == NA:
        return Cell(NA_TEXT, "na")
    if state not in {OK, STALE}:
        return Cell(UNKNOWN_TEXT, "unknown")
    value = reading.value
    text = words(value) if isinstance(value, float) else str(value)
    if state == STALE:
        return Cell(text, "stale")
    return Cell(
        text, role(value) if callable(role) and isinstance(value, float) else role if isinstance(role, str) else ""
    )


def is_na(reading: Reading | None) -> bool:
    """Whether the device says that it has no such value."""
    absent = reading.absent if reading is not None else None
    return absent is not None and absent.state == NA


def fresh(reading: Reading | None, now: float) -> float | None:
    """Return a number that may be counted with: fresh, and told."""
    return reading.number if reading is not None and reading.state(now) == OK else None


def last(reading: Reading | None) -> float | None:
    """Return the last number told, fresh or stale."""
    return reading.number if reading is not None else None
