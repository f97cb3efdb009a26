"""What a GPU shows at a time: the gauges, computed from what runs on it and what ails it."""

import msgspec

from gputop.demo import noise
from gputop.demo.faults import PowerBrake, PowerCap, Thermal
from gputop.demo.world import Gpu, Load

# Clocks-event reason bits of nvml.h.
REASON_IDLE = 0x1
REASON_SW_POWER_CAP = 0x4
REASON_HW_SLOWDOWN = 0x8
REASON_SW_THERMAL = 0x20
REASON_HW_THERMAL = 0x40
REASON_HW_POWER_BRAKE = 0x80

_IDLE_C = 29.0


class GpuState(msgspec.Struct, frozen=True, kw_only=True):
    """The gauges of a board at a time.

    Shares (``utilization``, ``memory_busy``, the engines and profiling ratios) run from 0 to 1; memory is
    MiB, power W, temperature °C, clocks MHz, link rates bytes each second. ``reasons`` is NVML's clocks-event
    bit mask; ``power_limit_w`` the enforced limit.
    """

    utilization: float
    memory_busy: float
    encoder: float
    decoder: float
    sm_active: float
    tensor: float
    occupancy: float
    memory_used_mib: float
    power_w: float
    power_limit_w: float
    temperature_c: float
    memory_temperature_c: float
    sm_clock_mhz: int
    memory_clock_mhz: int
    reasons: int
    performance_state: int
    fan: float
    pcie_tx_bytes_s: float
    pcie_rx_bytes_s: float
    nvlink_bytes_s: float


class _Limits(msgspec.Struct):
    clock_factor: float = 1.0
    power_limit_w: float = 0.0
    reasons: int = 0
    heat_c: float = 0.0


def gpu_state(gpu: Gpu, t: float) -> GpuState:
    """Compute the gauges of a GPU at ``t`` seconds after the scenario's start."""
    model = gpu.model
    limits = _limits(gpu, t) if gpu.faults else _Limits(power_limit_w=float(model.power_limit_w))
    busy = memory_busy = encoder = decoder = sm = tensor = occupancy = memory = drive = pcie = nvlink = 0.0
    for number, load in enumerate(gpu.loads):
        if not load.pod.start_s <= t < load.pod.end_s:
            continue
        profile = load.profile
        level = level_at(gpu, load, number, t) * load.part
        busy += level
        drive += level * profile.power
        memory_busy += level * profile.memory_busy
        sm += level * profile.sm_active
        tensor += level * profile.tensor
        occupancy += level * profile.occupancy
        encoder += profile.encoder * load.part
        decoder += profile.decoder * load.part
        memory += memory_at(load, t)
        pcie += level * profile.pcie_bytes_s
        nvlink += level * profile.nvlink_bytes_s
    busy = min(1.0, busy)
    factor = limits.clock_factor
    # The driver's own limit for a board without a power limit (integrated parts) is what it can draw.
    span = (model.power_limit_w or 60.0) - model.power_idle_w
    power = model.power_idle_w * (1 + 0.03 * noise.wave(gpu.seed, 1, t, 11.0)) + span * min(1.0, drive) * factor
    limit = limits.power_limit_w
    reasons = limits.reasons
    if limit and power > limit * 0.985:
        reasons |= REASON_SW_POWER_CAP
        factor = min(factor, max(0.35, limit / power))
        power = min(power, limit * (0.985 + 0.01 * noise.wave(gpu.seed, 2, t, 3.0)))
    idle = busy < 0.005
    if idle:
        reasons = (reasons & ~REASON_SW_POWER_CAP) | REASON_IDLE
    clock = model.sm_clock_idle_mhz if idle else _clock(model.sm_clock_max_mhz, factor, gpu.seed, t)
    hot = _IDLE_C + 4 * noise.unit(gpu.seed, 3)
    reach = (model.slowdown_c - 22 - hot) / max(1.0, model.power_limit_w or 60.0)
    temperature = min(
        model.shutdown_c - 1.0,
        max(hot + (power - model.power_idle_w) * reach + 1.2 * noise.wave(gpu.seed, 4, t, 25.0), limits.heat_c),
    )
    return GpuState(
        utilization=busy,
        memory_busy=min(1.0, memory_busy),
        encoder=min(1.0, encoder),
        decoder=min(1.0, decoder),
        sm_active=min(1.0, sm),
        tensor=min(1.0, tensor),
        occupancy=min(1.0, occupancy),
        memory_used_mib=memory,
        power_w=power,
        power_limit_w=limit,
        temperature_c=temperature,
        memory_temperature_c=temperature + 4.0 + 2.0 * busy,
        sm_clock_mhz=clock,
        memory_clock_mhz=model.mem_clock_max_mhz,
        reasons=reasons,
        performance_state=8 if idle and model.display else 0,
        fan=min(1.0, max(0.3, (temperature - 25.0) / 60.0)) if model.fans else 0.0,
        pcie_tx_bytes_s=pcie * 0.4,
        pcie_rx_bytes_s=pcie,
        nvlink_bytes_s=nvlink,
    )


def level_at(gpu: Gpu, load: Load, number: int, t: float) -> float:
    """Return the share of the time that a load keeps what it was given busy at ``t``, 0 to 1."""
    wobble = load.profile.wobble
    if not wobble:
        return load.level
    seed = gpu.seed
    swing = 0.7 * noise.wave(seed, 16 + number, t, load.profile.period_s) + 0.3 * noise.wave(seed, 48 + number, t, 3.0)
    return min(1.0, max(0.0, load.level * (1.0 + wobble * swing)))


def memory_at(load: Load, t: float) -> float:
    """Return the MiB that a load holds at ``t``: the first two minutes it is still filling."""
    age = t - load.pod.start_s
    return load.memory_mib if age >= 120.0 else load.memory_mib * (0.05 + 0.95 * age / 120.0)


def _clock(top_mhz: int, factor: float, seed: int, t: float) -> int:
    wander = 1.0 - 0.012 * (1.0 + noise.wave(seed, 5, t, 4.0))
    return int(top_mhz * factor * (wander if factor < 1.0 else 1.0) // 15 * 15)


def _limits(gpu: Gpu, t: float) -> _Limits:
    limits = _Limits(power_limit_w=float(gpu.model.power_limit_w))
    for fault in gpu.faults:
        if not fault.active(t):
            continue
        if isinstance(fault, Thermal):
            limits.clock_factor = min(limits.clock_factor, fault.clock_factor)
            bits = REASON_HW_SLOWDOWN | REASON_HW_THERMAL if fault.hardware else REASON_SW_THERMAL
            limits.reasons |= bits
            limits.heat_c = gpu.model.slowdown_c + (1.0 if fault.hardware else -2.0)
        elif isinstance(fault, PowerBrake):
            limits.clock_factor = min(limits.clock_factor, fault.clock_factor)
            limits.reasons |= REASON_HW_SLOWDOWN | REASON_HW_POWER_BRAKE
        elif isinstance(fault, PowerCap):
            limits.power_limit_w = fault.limit_w
    return limits
