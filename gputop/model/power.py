"""What a power number is: an average or the power of the moment, by chip.

One rule for every source that gives the number of `nvmlDeviceGetPowerUsage`, as nvidia-smi does: an average
over one second on Ampere and newer, except on GA100, where it is instantaneous as before (nvml.h).
"""

from typing import Final

from gputop.model.reading import UNKNOWN, Absent, Value

AVERAGE: Final = "power of the board, averaged over one second"
INSTANTANEOUS: Final = "instantaneous power of the board"
_NOT_TOLD: Final = Absent(UNKNOWN, "unknown", "averaged or instantaneous: the chip is not told")

_BEFORE_AMPERE: Final = frozenset({"Kepler", "Maxwell", "Pascal", "Volta", "Turing"})
# PCI device ids (PCI ID database): GA100 (A100, A800, A30, …) is 2080 to 20ff; Turing goes up to 1fff and
# has 2180 to 21ff as well (TU116).
_GA100: Final = range(0x2080, 0x2100)
_LATE_TURING: Final = range(0x2180, 0x2200)
_FIRST_AMPERE: Final = 0x2080


def power_meaning(architecture: str, device_id: int) -> Value:
    """Return what the power of a board is.

    Args:
        architecture: Name of the chip's architecture, "" when not told.
        device_id: PCI device id, such as 0x2330; 0 when not told.
    """
    if device_id in _GA100 or architecture in _BEFORE_AMPERE:
        return INSTANTANEOUS
    if architecture and (device_id or architecture != "Ampere"):
        return AVERAGE
    if not device_id:
        return _NOT_TOLD
    old = device_id < _FIRST_AMPERE or device_id in _LATE_TURING
    return INSTANTANEOUS if old else AVERAGE
