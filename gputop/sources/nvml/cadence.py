"""How often each class of reading is taken.

Only what moves within a second is read each second. The rest costs calls on every GPU for numbers that do
not change: nvitop keeps slow fields for 5 s for the same reason.
"""

from typing import Final

from msgspec import Struct

FAST: Final = 0
MEDIUM: Final = 1
SLOW: Final = 2
ONCE: Final = 3


class Cadence(Struct, frozen=True, gc=False):
    """One class.

    Attributes:
        at_least_s: Never more often than this; the wanted interval where it is longer.
        repeats: Whether it is read again at all; else it is only confirmed at this cadence.
    """

    at_least_s: float
    repeats: bool = True


CADENCES: Final = (Cadence(0.0), Cadence(5.0), Cadence(30.0), Cadence(30.0, repeats=False))
"""By number: `FAST` moves all the time, `MEDIUM` within minutes, `SLOW` when somebody changes it, `ONCE`
belongs to the board."""

PROCESSES_S: Final = 2.0
"""Process lists: as often as nvitop reads them."""

HOST_S: Final = 30.0
"""The PCI bus, versions and the number of GPUs. Probing NVML more often than this may itself load the
module or wake a GPU (Syllo/nvtop#237)."""


def interval_s(group: int, wanted_s: float) -> float:
    """Return the time between two samples of a class when the user wants `wanted_s`."""
    return max(CADENCES[group].at_least_s, wanted_s)


def stale_after_s(interval: float) -> float:
    """Return the age from which readings taken every `interval` seconds are stale."""
    return max(3.0 * interval, 5.0)
