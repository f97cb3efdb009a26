"""How hot a GPU is, by its own limit where it tells one.

A limit differs from board to board. Newer boards tell the margin to it (T.Limit, which counts down to the
slowdown), older ones the slowdown temperature; for the rest a common one stands in.
"""

from typing import Final

from gputop.fleet import GpuState
from gputop.panes.format import last

HOT: Final = "hot"
WARM: Final = "warm"
_HOT_MARGIN_C: Final = 5.0
_WARM_MARGIN_C: Final = 15.0
_COMMON_SLOWDOWN_C: Final = 90.0
"""Data centre boards from P100 to H100 slow down between 85 and 93 °C."""


def margin_c(gpu: GpuState) -> float | None:
    """Return how many °C are left to the slowdown, None when no temperature is told."""
    margin = last(gpu.readings.get("temperature_margin_c"))
    if margin is not None:
        return margin
    temperature = last(gpu.readings.get("temperature_c"))
    if temperature is None:
        return None
    slowdown = last(gpu.readings.get("temperature_slowdown_c"))
    return (slowdown or _COMMON_SLOWDOWN_C) - temperature


def heat_of(gpu: GpuState) -> str:
    """Return "hot", "warm" or ""."""
    margin = margin_c(gpu)
    if margin is None or margin > _WARM_MARGIN_C:
        return ""
    return HOT if margin <= _HOT_MARGIN_C else WARM


def degrees(value: float, heat: str) -> str:
    """Return a temperature in at most three cells; "!" tells a hot one also where there is no colour."""
    return f"{value:.0f}!" if heat == HOT and value < 99.5 else f"{value:.0f}"
