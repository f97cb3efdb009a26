"""MIG: what a board in MIG mode has no more, because its instances have it."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from gputop.fleet.holding import is_held
from gputop.fleet.state import GpuState
from gputop.model.reading import NA, OK, Absent, Origin, Reading

_NOT_OF_BOARD: Final = ("utilization", "memory_utilization", "encoder_utilization", "decoder_utilization")
"""What NVML answers with NOT_SUPPORTED for a board in MIG mode and exporters leave out (NVML API reference,
`nvmlDeviceGetUtilizationRates`, `nvmlDeviceGetEncoderUtilization`)."""
OF_INSTANCES: Final = Absent(NA, "mig", "not told for a board in MIG mode: its instances have their own")


def is_mig(gpu: GpuState) -> bool:
    """Whether a board is told to be in MIG mode."""
    mode = gpu.readings.get("mig_mode")
    return mode is not None and mode.number == 1.0 and not gpu.key.instance


def settle_mig(readings: dict[str, Reading], origin: Origin) -> dict[str, Reading]:
    """Return readings of a board in which what MIG mode takes away is "n/a" and not a gap.

    A number that is fresh stands: some source tells it. One from before the mode was turned on is no gap
    either once it is stale.

    Args:
        readings: The board's readings, which are left as they are.
        origin: Source and time of the newest fact.
    """
    mode = readings.get("mig_mode")
    if mode is None:
        return readings
    if mode.number == 1.0 and mode.state(origin.at) == OK:
        gone = [q for q in _NOT_OF_BOARD if _is_open(readings.get(q), origin.at)]
        return {**readings, **{q: Reading(OF_INSTANCES, origin) for q in gone}} if gone else readings
    if mode.number == 0.0 and any(_is_ours(readings.get(q)) for q in _NOT_OF_BOARD):
        return {q: r for q, r in readings.items() if not _is_ours(r)}
    return readings


def _is_open(reading: Reading | None, now: float) -> bool:
    return reading is None or (reading.absent is None and reading.state(now) != OK)


def _is_ours(reading: Reading | None) -> bool:
    return reading is not None and reading.value is OF_INSTANCES


class InstancesHeld(Struct, frozen=True, gc=False):
    """How many MIG instances of a board are held.

    Attributes:
        held: Instances with a workload or process.
        unknown: Instances of which nobody can say.
        of: Instances.
    """

    held: int
    unknown: int
    of: int


def instances_held(instances: Sequence[GpuState]) -> InstancesHeld:
    """Return how many of a board's instances are held."""
    told = [is_held(i) for i in instances]
    return InstancesHeld(told.count(True), told.count(None), len(told))
