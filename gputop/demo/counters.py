"""What a GPU has counted up to a time: energy, link traffic, ECC errors, remapped rows, Xid events.

Every counter is a closed form of the time since the node booted, so it never falls and needs no history.
"""

import msgspec

from gputop.demo import noise
from gputop.demo.faults import (
    Ecc,
    GpuFault,
    GpuLost,
    NvlinkDown,
    NvlinkErrors,
    PcieReplay,
    PowerBrake,
    PowerCap,
    Recovery,
    ResetRequired,
    RetiredPages,
    RowRemap,
    Thermal,
    Xid,
)
from gputop.demo.world import Gpu

XID_TEXT = {
    13: "Graphics Engine Exception",
    31: "GPU memory page fault",
    43: "GPU stopped processing",
    45: "Preemptive cleanup, due to previous errors",
    48: "Double Bit ECC Error",
    63: "ECC page retirement or row remapping recording event",
    64: "ECC page retirement or row remapper recording failure",
    74: "NVLINK Error",
    79: "GPU has fallen off the bus",
    94: "Contained ECC error",
    95: "Uncontained ECC error",
    119: "GSP RPC timeout",
    154: "GPU recovery action changed",
}
"""How the driver words the Xid numbers that the scenarios raise."""


class EccCounts(msgspec.Struct, frozen=True, kw_only=True):
    """ECC errors by location and severity."""

    corrected_dram: int = 0
    corrected_sram: int = 0
    uncorrected_dram: int = 0
    uncorrected_sram: int = 0


class Remap(msgspec.Struct, frozen=True, kw_only=True):
    """The row remapper: rows by cause, and whether a remap waits for a reset or could not be done."""

    correctable: int = 0
    uncorrectable: int = 0
    pending: bool = False
    failed: bool = False


class Retired(msgspec.Struct, frozen=True, kw_only=True):
    """Retired pages of a board before Ampere."""

    single_bit: int = 0
    double_bit: int = 0
    pending: bool = False


def boot_s(gpu: Gpu) -> float:
    """Return when the node booted, in seconds after the scenario's start (so below 0)."""
    return -gpu.node.group.uptime_s


def energy_mj(gpu: Gpu, t: float) -> int:
    """Return the energy drawn since the driver was loaded, in millijoules.

    It is the integral of the mean power: idle power all the time, and the span up to the limit for the time
    and level of each load, less what throttling held back.
    """
    boot = boot_s(gpu)
    span = (gpu.model.power_limit_w or 60.0) - gpu.model.power_idle_w
    joules = gpu.model.power_idle_w * max(0.0, t - boot)
    for load in gpu.loads:
        watts = span * load.level * load.part * load.profile.power
        joules += watts * load.active_s(t, boot)
        for fault in gpu.faults:
            held_back = watts * (1.0 - _power_factor(fault, gpu.model.power_idle_w, watts))
            if held_back:
                joules -= held_back * _overlap_s(fault, max(load.pod.start_s, boot), load.pod.end_s, t)
    return int(joules * 1000.0)


def _power_factor(fault: GpuFault, idle_w: float, watts: float) -> float:
    """Return the part of a load's power that a fault lets it draw."""
    if isinstance(fault, Thermal | PowerBrake):
        return fault.clock_factor
    if isinstance(fault, PowerCap) and watts:
        return min(1.0, max(0.0, fault.limit_w - idle_w) / watts)
    return 1.0


def pcie_bytes(gpu: Gpu, t: float) -> int:
    """Return the bytes received over PCIe since boot."""
    return _moved(gpu, t, nvlink=False)


def nvlink_bytes(gpu: Gpu, t: float) -> int:
    """Return the bytes sent over all NVLinks since boot (about as many were received)."""
    return _moved(gpu, t, nvlink=True)


def _moved(gpu: Gpu, t: float, *, nvlink: bool) -> int:
    boot = boot_s(gpu)
    total = 0.0
    for load in gpu.loads:
        rate = load.profile.nvlink_bytes_s if nvlink else load.profile.pcie_bytes_s
        total += rate * load.level * load.part * load.active_s(t, boot)
    return int(total)


def _overlap_s(fault: GpuFault, start: float, end: float, t: float) -> float:
    until = t if fault.until_s is None else min(t, fault.until_s)
    return max(0.0, min(until, end) - max(fault.at_s, start))


def ecc(gpu: Gpu, t: float, *, aggregate: bool) -> EccCounts:
    """Return ECC errors since the driver was loaded, or over the board's life with ``aggregate``."""
    corrected = {"dram": 0.0, "sram": 0.0}
    uncorrected = {"dram": 0.0, "sram": 0.0}
    for fault in gpu.faults:
        if isinstance(fault, Ecc) and t >= fault.at_s:
            minutes = fault.elapsed_s(t, boot_s(gpu)) / 60.0
            corrected[fault.location] += fault.corrected_per_min * minutes
            uncorrected[fault.location] += fault.uncorrected_per_min * minutes + fault.uncorrected
    if aggregate and noise.unit(gpu.seed, 32) < 0.12:
        corrected["dram"] += 1 + noise.mix(gpu.seed) % 40
    return EccCounts(
        corrected_dram=int(corrected["dram"]),
        corrected_sram=int(corrected["sram"]),
        uncorrected_dram=int(uncorrected["dram"]),
        uncorrected_sram=int(uncorrected["sram"]),
    )


def sram_threshold_exceeded(gpu: Gpu, t: float) -> bool:
    """Say whether the board's SRAM error threshold is passed."""
    return any(isinstance(fault, Ecc) and fault.sram_threshold and fault.active(t) for fault in gpu.faults)


def remap(gpu: Gpu, t: float) -> Remap:
    """Return the state of the row remapper; rows stay remapped after their fault has passed."""
    correctable = uncorrectable = 0
    pending = failed = False
    for fault in gpu.faults:
        if isinstance(fault, RowRemap) and t >= fault.at_s:
            correctable += fault.correctable_rows
            uncorrectable += fault.rows
            pending |= fault.state == "pending" and fault.active(t)
            failed |= fault.state == "failed" and fault.active(t)
    return Remap(correctable=correctable, uncorrectable=uncorrectable, pending=pending, failed=failed)


def retired(gpu: Gpu, t: float) -> Retired:
    """Return the retired pages."""
    single = double = 0
    pending = False
    for fault in gpu.faults:
        if isinstance(fault, RetiredPages) and t >= fault.at_s:
            single += fault.single_bit
            double += fault.double_bit
            pending |= fault.pending and fault.active(t)
    return Retired(single_bit=single, double_bit=double, pending=pending)


def recovery_action(gpu: Gpu, t: float) -> int:
    """Return NVML's recovery action (field 230): 0 none, 1 GPU reset, 2 node reboot, 3 drain P2P, …."""
    for fault in gpu.faults:
        if fault.active(t):
            if isinstance(fault, Recovery):
                return fault.action
            if isinstance(fault, ResetRequired):
                return 1
    return 0


def pcie_replays(gpu: Gpu, t: float) -> int:
    """Return the PCIe replay counter."""
    base = noise.mix(gpu.seed ^ 0x51) % 3
    minutes = sum(
        fault.per_min * fault.elapsed_s(t, boot_s(gpu)) / 60.0 for fault in gpu.faults if isinstance(fault, PcieReplay)
    )
    return base + int(minutes)


def nvlink_active(gpu: Gpu, link: int, t: float) -> bool:
    """Say whether an NVLink is up."""
    return not any(isinstance(fault, NvlinkDown) and link in fault.links and fault.active(t) for fault in gpu.faults)


def nvlink_errors(gpu: Gpu, link: int, error: str, t: float) -> int:
    """Return the errors of one type (crc, replay, recovery) on one NVLink since boot."""
    count = sum(
        fault.per_min * fault.elapsed_s(t, boot_s(gpu)) / 60.0
        for fault in gpu.faults
        if isinstance(fault, NvlinkErrors) and fault.error == error and link in fault.links
    )
    return int(count)


class ThrottleTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Nanoseconds spent under each clocks-event reason since boot."""

    sw_power_cap: int = 0
    sw_thermal: int = 0
    hw_thermal: int = 0
    hw_power_brake: int = 0


def throttle_ns(gpu: Gpu, t: float) -> ThrottleTimes:
    """Return the time spent under each clocks-event reason."""
    boot = boot_s(gpu)
    # A training job at the power limit brushes against the cap for a small part of its time.
    power = sum(
        0.01 * load.active_s(t, boot) for load in gpu.loads if load.profile.power * load.level * load.part > 0.85
    )
    software = hardware = brake = 0.0
    for fault in gpu.faults:
        if isinstance(fault, Thermal) and fault.hardware:
            hardware += fault.elapsed_s(t, boot)
        elif isinstance(fault, Thermal):
            software += fault.elapsed_s(t, boot)
        elif isinstance(fault, PowerBrake):
            brake += fault.elapsed_s(t, boot)
        elif isinstance(fault, PowerCap):
            power += sum(_overlap_s(fault, max(load.pod.start_s, boot), load.pod.end_s, t) for load in gpu.loads)
    return ThrottleTimes(
        sw_power_cap=int(power * 1e9),
        sw_thermal=int(software * 1e9),
        hw_thermal=int(hardware * 1e9),
        hw_power_brake=int(brake * 1e9),
    )


def xids(gpu: Gpu, since: float, until: float) -> list[tuple[float, int]]:
    """Return the Xid events after ``since`` and up to ``until``, oldest first, as (time, number)."""
    boot = boot_s(gpu)
    found: list[tuple[float, int]] = []
    for fault in gpu.faults:
        number = _raised(fault)
        if number is None:
            continue
        at = max(fault.at_s, boot)
        end = until if fault.until_s is None else min(until, fault.until_s)
        if isinstance(fault, Xid) and fault.every_s:
            first = max(0, int((since - at) // fault.every_s) + 1)
            while at + first * fault.every_s <= end:
                found.append((at + first * fault.every_s, number))
                first += 1
        elif since < at <= end:
            found.append((at, number))
    return sorted(found)


def last_xid(gpu: Gpu, t: float) -> int:
    """Return the number of the last Xid since boot, 0 where there was none."""
    best = (boot_s(gpu) - 1.0, 0)
    for fault in gpu.faults:
        number = _raised(fault)
        if number is None or t < fault.at_s:
            continue
        at = max(fault.at_s, boot_s(gpu))
        if isinstance(fault, Xid) and fault.every_s:
            end = t if fault.until_s is None else min(t, fault.until_s)
            at += int((end - at) // fault.every_s) * fault.every_s
        best = max(best, (at, number))
    return best[1]


def _raised(fault: GpuFault) -> int | None:
    """Return the Xid that a fault raises when it begins, or None."""
    if isinstance(fault, Xid):
        return fault.xid
    if isinstance(fault, RowRemap):
        return {"done": 63, "pending": 63, "failed": 64}[fault.state]
    if isinstance(fault, Ecc):
        return 48 if fault.uncorrected and fault.location == "dram" else None
    fixed = {GpuLost: 79, ResetRequired: 95, NvlinkDown: 74, Recovery: 154}
    return fixed.get(type(fault))
