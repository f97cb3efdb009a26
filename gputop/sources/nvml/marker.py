"""Where the child is, for a parent that no longer hears from it.

A child that is stuck in a call cannot say so. Before each call it writes the call's name, its device and
the time into a page shared with the parent, who looks at it only when frames stay away: exact words at
the price of one store per call.
"""

import mmap
import os
import struct
import time
from typing import Final

from msgspec import Struct

_LAYOUT: Final = struct.Struct("<di48s")
_PAGE: Final = mmap.PAGESIZE
NO_DEVICE: Final = -1


class Pending(Struct, frozen=True, gc=False):
    """A call that has not returned.

    Attributes:
        device: Index of the GPU, `NO_DEVICE` when the call is not about one.
        call: Name of the NVML function, or of another thing that may block.
        seconds: For how long.
    """

    device: int
    call: str
    seconds: float


class Marker:
    """The child's side: `begin` before and `end` after whatever may block."""

    def __init__(self, fd: int | None) -> None:
        """Map the page behind `fd`; without one the marks are kept where nobody looks."""
        self._page: mmap.mmap | bytearray = bytearray(_PAGE) if fd is None else mmap.mmap(fd, _PAGE)

    def begin(self, device: int, call: bytes) -> float:
        """Note that `call` (at most 48 bytes) on `device` begins, and return the time."""
        now = time.monotonic()
        _LAYOUT.pack_into(self._page, 0, now, device, call)
        return now

    def end(self) -> float:
        """Note that the call returned, and return the time."""
        _LAYOUT.pack_into(self._page, 0, 0.0, NO_DEVICE, b"")
        return time.monotonic()


class MarkerPage:
    """The parent's side. `fd` is to be inherited by the child; it may be closed once the child runs."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("gputop-nvml", os.MFD_CLOEXEC)
        os.ftruncate(self.fd, _PAGE)
        self._page = mmap.mmap(self.fd, _PAGE)

    def pending(self) -> Pending | None:
        """Return the call the child is in, or None between calls.

        CLOCK_MONOTONIC is one clock for all processes of a machine, so the times compare.
        """
        began, device, call = _LAYOUT.unpack_from(self._page, 0)
        if began <= 0.0:
            return None
        return Pending(device, call.rstrip(b"\0").decode("ascii", "replace"), time.monotonic() - began)

    def close(self) -> None:
        """Let go of the page."""
        self._page.close()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
