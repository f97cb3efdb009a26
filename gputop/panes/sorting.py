"""Sorting where some values are not known: those come last, whichever way one sorts."""

from collections.abc import Callable, Iterable
from typing import TypeVar

_T = TypeVar("_T")


def sort_known_first(items: Iterable[_T], value: Callable[[_T], float | str | None], *, descending: bool) -> list[_T]:
    """Return the items by value, stable; items without one come last in their own order."""
    known: list[tuple[float | str, _T]] = []
    unknown: list[_T] = []
    for item in items:
        v = value(item)
        if v is None:
            unknown.append(item)
        else:
            known.append((v, item))
    # A column holds numbers or texts; where both meet, numbers come first.
    known.sort(key=lambda pair: (isinstance(pair[0], str), pair[0]), reverse=descending)
    return [item for _, item in known] + unknown
