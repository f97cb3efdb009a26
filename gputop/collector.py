"""When Python's cyclic collector runs.

A full collection walks every tracked object, 100 ms of them with the whole program and 10,000 GPUs in memory,
and holds up every key meanwhile. Nearly nothing of that is garbage: the fleet's records hold no cycles.
"""

import gc
from typing import Final

_YOUNG: Final = 2_000
"""Objects made before the young ones are looked through; the default of 700 is for small programs."""


def hold() -> None:
    """Collect nothing until `settle`: modules that are being loaded leave nothing to collect."""
    gc.disable()


def settle() -> None:
    """Take what is there now as permanent, and collect what comes after it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 10, 10)
    gc.enable()
