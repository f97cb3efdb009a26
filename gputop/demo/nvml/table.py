"""The table of simulated NVML functions: name, what its first argument is, and the drivers that have it."""

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeVar

Scope = Literal["free", "session", "search", "board", "device"]
"""``free`` works before init, ``session`` after it, and so does ``search``, which opens one GPU or several
by itself; ``board`` takes the handle of a whole GPU, ``device`` also that of a MIG device."""

_NEWEST = (9999, 0)

F = TypeVar("F", bound=Callable[..., int | bytes])


class Entry(NamedTuple):
    """One function of the library; it exists for drivers from ``since`` up to, not including, ``until``."""

    function: Callable[..., int | bytes]
    scope: Scope
    since: tuple[int, int]
    until: tuple[int, int]


TABLE: dict[str, Entry] = {}


def entry(
    name: str, scope: Scope = "board", since: tuple[int, int] = (0, 0), until: tuple[int, int] = _NEWEST
) -> Callable[[F], F]:
    """Enter a function into the table under an NVML symbol name.

    The function takes the library and, for device scopes, the resolved device, then NVML's own arguments. It
    returns an NVML code or raises :class:`~gputop.demo.nvml.abi.RefusalError`.
    """

    def enter(function: F) -> F:
        TABLE[name] = Entry(function, scope, since, until)
        return function

    return enter


def exists(name: str, driver: tuple[int, int]) -> bool:
    """Say whether a driver's library exports the symbol."""
    found = TABLE.get(name)
    return found is not None and found.since <= driver < found.until
