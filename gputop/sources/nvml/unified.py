"""GPUs that have no memory of their own.

The same class of machine reports three things: NOT_SUPPORTED, a total of 0, or a total close to the
system's memory whose parts do not add up (leptonai/gpud#1170: total 128501256192, used 6910320640, free
7976902656). None of them is VRAM.
"""

from typing import Final

from gputop.model.reading import NA, Absent, Value

# Compute capabilities of parts that are soldered to their host's memory: Tegra X1, X2, Xavier, Orin,
# Thor (10.1 up to CUDA 12, 11.0 since) and GB10.
INTEGRATED: Final = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0), (12, 1)})

UNIFIED: Final = Absent(NA, "unified_memory", "this GPU uses the system's memory")
MEANING: Final = "system memory, shared with the CPU; used is the sum of the processes"
_SIZES: Final = (
    "memory_total_mib",
    "memory_used_mib",
    "memory_free_mib",
    "memory_reserved_mib",
)


def is_unified(capability: tuple[int, int] | None, values: dict[str, Value], system_total_mib: float | None) -> bool:
    """Return whether memory readings of a GPU are about the system's memory.

    A discrete GPU may by chance have as much memory as its host; its parts then add up.

    Args:
        capability: Its CUDA compute capability, None when not told.
        values: Its memory readings.
        system_total_mib: MemTotal, None when not known.
    """
    if capability in INTEGRATED:
        return True
    total = values.get("memory_total_mib")
    if not isinstance(total, float):
        return False
    if total == 0.0:
        return True
    if system_total_mib is None or abs(total - system_total_mib) > 0.03 * system_total_mib:
        return False
    used, free = values.get("memory_used_mib"), values.get("memory_free_mib")
    if not isinstance(used, float) or not isinstance(free, float):
        return False
    reserved = values.get("memory_reserved_mib")
    parts = used + free + (reserved if isinstance(reserved, float) else 0.0)
    return abs(parts - total) > 0.02 * total


def as_unified(values: dict[str, Value], processes_mib: float | None) -> None:
    """Put what can be said of a unified-memory GPU in place of its memory readings.

    Args:
        values: Readings of the GPU, changed in place.
        processes_mib: Sum of its processes' memory, None when that is not known.
    """
    for quantity in _SIZES:
        values[quantity] = UNIFIED
    if processes_mib is not None:
        values["memory_used_mib"] = processes_mib
    values["memory_meaning"] = MEANING
