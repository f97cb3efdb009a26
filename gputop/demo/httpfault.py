"""Faults of the HTTP server, switched at run time: what a proxy, a slow server or a wrong clock does."""

import fnmatch
import threading
from typing import Literal

import msgspec

Kind = Literal[
    "hang",
    "html",
    "text",
    "status",
    "truncated",
    "envelope",
    "slow",
    "clock",
    "duplicate",
    "warnings",
]


class HttpFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault.

    ``path`` is a glob over request paths. ``times`` ends the fault after so many requests (0: never).
    ``seconds`` is how long a hang lasts or a slow body takes; ``status``, ``error_type`` and ``text`` are
    what is answered; ``skew_s`` is how far the server's clock is off.
    """

    kind: Kind
    path: str = "/api/v1/*"
    times: int = 0
    seconds: float = 30.0
    status: int = 503
    error_type: str = "unavailable"
    text: str = ""
    skew_s: float = 3600.0


class Switches:
    """The faults that are on; safe to use from the server's threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[tuple[HttpFault, int]] = []

    def add(self, fault: HttpFault) -> None:
        """Switch a fault on."""
        with self._lock:
            self._faults.append((fault, fault.times))

    def clear(self) -> None:
        """Switch all faults off."""
        with self._lock:
            self._faults.clear()

    def listed(self) -> list[HttpFault]:
        """Return the faults that are on."""
        with self._lock:
            return [fault for fault, _ in self._faults]

    def skew_s(self) -> float:
        """Return how far the server's clock is off."""
        with self._lock:
            return sum(fault.skew_s for fault, _ in self._faults if fault.kind == "clock")

    def strike(self, path: str) -> HttpFault | None:
        """Return the fault that a request meets, and count it."""
        with self._lock:
            for place, (fault, left) in enumerate(self._faults):
                if fault.kind == "clock" or not fnmatch.fnmatchcase(path, fault.path):
                    continue
                if fault.times:
                    if left == 1:
                        del self._faults[place]
                    else:
                        self._faults[place] = (fault, left - 1)
                return fault
        return None
