"""Readings that move: utilisation, memory, temperature, power, clocks, fans, PCIe."""

from gputop.demo import counters
from gputop.demo.faults import PcieDegraded
from gputop.demo.nvml import abi
from gputop.demo.nvml.library import Device, FakeNvml
from gputop.demo.nvml.table import entry
from gputop.demo.world import Gpu

MIB = 1024 * 1024

# One measuring window of the PCIe counters; the call takes this long for each direction (nvml.h).
_PCIE_WINDOW_S = 0.02

_SUPPORTED_REASONS = 0x1FF


def _partitioned(lib: FakeNvml, gpu: Gpu) -> bool:
    return bool(gpu.instances(lib.now()))


def refuse_when_partitioned(lib: FakeNvml, gpu: Gpu) -> None:
    """Refuse what the driver does not offer for a board in MIG mode."""
    if _partitioned(lib, gpu):
        raise abi.RefusalError(abi.NOT_SUPPORTED)


def percent(share: float) -> int:
    """Return a share as the whole percent that NVML reports."""
    return min(100, max(0, round(share * 100)))


@entry("nvmlDeviceGetUtilizationRates")
def utilization(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return GPU and memory-interface utilisation in percent; not in MIG mode."""
    refuse_when_partitioned(lib, device.gpu)
    state = lib.state(device.gpu)
    return abi.fill(result, gpu=percent(state.utilization), memory=percent(state.memory_busy))


def _engine(lib: FakeNvml, device: Device, result: abi.CArgument, period: abi.CArgument, share: float) -> int:
    refuse_when_partitioned(lib, device.gpu)
    abi.put(result, percent(share))
    return abi.put(period, 167_000)


@entry("nvmlDeviceGetEncoderUtilization")
def encoder(lib: FakeNvml, device: Device, result: abi.CArgument, period: abi.CArgument) -> int:
    """Return encoder utilisation in percent and the sampling period in µs."""
    return _engine(lib, device, result, period, lib.state(device.gpu).encoder)


@entry("nvmlDeviceGetDecoderUtilization")
def decoder(lib: FakeNvml, device: Device, result: abi.CArgument, period: abi.CArgument) -> int:
    """Return decoder utilisation in percent and the sampling period in µs."""
    return _engine(lib, device, result, period, lib.state(device.gpu).decoder)


@entry("nvmlDeviceGetJpgUtilization", since=(535, 0))
@entry("nvmlDeviceGetOfaUtilization", since=(535, 0))
def jpeg_and_flow(lib: FakeNvml, device: Device, result: abi.CArgument, period: abi.CArgument) -> int:
    """Return JPEG or optical-flow utilisation: no simulated work uses these engines."""
    return _engine(lib, device, result, period, 0.0)


def memory_used_mib(lib: FakeNvml, device: Device) -> tuple[float, float, float]:
    """Return total, reserved and used MiB of a board or MIG device."""
    gpu = device.gpu
    if device.instance is not None:
        t = lib.now()
        used = sum(
            load.memory_mib
            for load in gpu.loads
            if load.gpu_instance == device.instance.gpu_instance and load.active(t)
        )
        return float(device.instance.profile.memory_mib), 0.0, used
    # Memory of an integrated part is the host's: the driver does not report it as its own.
    if gpu.model.unified:
        raise abi.RefusalError(abi.NOT_SUPPORTED)
    return float(gpu.model.memory_mib), float(gpu.model.reserved_mib), lib.state(gpu).memory_used_mib


@entry("nvmlDeviceGetMemoryInfo", "device")
def memory_v1(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return total, free and used bytes; since R510 reserved memory counts as used here."""
    total, reserved, used = memory_used_mib(lib, device)
    taken = int((used + reserved) * MIB) if lib.driver >= (510, 0) else int(used * MIB)
    return abi.fill(result, total=int(total) * MIB, used=taken, free=int(total) * MIB - taken)


@entry("nvmlDeviceGetMemoryInfo_v2", "device", since=(510, 39))
def memory_v2(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return total, reserved, free and used bytes; the struct's version must be 2."""
    struct = abi.versioned(result, abi.struct_version(40, 2))
    total, reserved, used = memory_used_mib(lib, device)
    total_b, reserved_b, used_b = int(total) * MIB, int(reserved) * MIB, int(used * MIB)
    return abi.fill(struct, total=total_b, reserved=reserved_b, used=used_b, free=total_b - reserved_b - used_b)


@entry("nvmlDeviceGetBAR1MemoryInfo", "device")
def bar1(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return BAR1 aperture memory: each process maps a little of it."""
    total = device.gpu.model.bar1_mib * MIB
    if not total:
        return abi.NOT_SUPPORTED
    t = lib.now()
    used = min(total, (1 + 2 * sum(len(load.processes) for load in device.gpu.loads if load.active(t))) * MIB)
    return abi.fill(result, bar1Total=total, bar1Used=used, bar1Free=total - used)


@entry("nvmlDeviceGetTemperature")
def temperature(lib: FakeNvml, device: Device, sensor: abi.CArgument, result: abi.CArgument) -> int:
    """Return the temperature of the GPU sensor in °C."""
    if abi.number(sensor) != 0:
        return abi.INVALID_ARGUMENT
    return abi.put(result, round(lib.state(device.gpu).temperature_c))


@entry("nvmlDeviceGetTemperatureV", since=(570, 0))
def temperature_v(lib: FakeNvml, device: Device, info: abi.CArgument) -> int:
    """Return the temperature of a sensor through the versioned struct."""
    struct = abi.versioned(info, abi.struct_version(12, 1))
    if int(struct.sensorType) != 0:
        return abi.INVALID_ARGUMENT
    return abi.fill(struct, temperature=round(lib.state(device.gpu).temperature_c))


@entry("nvmlDeviceGetTemperatureThreshold")
def threshold(_lib: FakeNvml, device: Device, kind: abi.CArgument, result: abi.CArgument) -> int:
    """Return a threshold in °C; boards with T.Limit margins no longer have absolute ones."""
    model = device.gpu.model
    number = abi.number(kind)
    if not 0 <= number < 8:
        return abi.INVALID_ARGUMENT
    known = {0: model.shutdown_c, 1: model.slowdown_c, 3: model.slowdown_c - 2}
    if model.memory_sensor:
        known[2] = model.memory_max_c
    if model.margin or number not in known:
        return abi.NOT_SUPPORTED
    return abi.put(result, known[number])


def margin_c(lib: FakeNvml, gpu: Gpu) -> int:
    """Return how many °C are left before the GPU slows down; refused on boards without T.Limit."""
    if not gpu.model.margin:
        raise abi.RefusalError(abi.NOT_SUPPORTED)
    return round(gpu.model.slowdown_c - lib.state(gpu).temperature_c)


@entry("nvmlDeviceGetMarginTemperature", since=(570, 0))
def margin(lib: FakeNvml, device: Device, info: abi.CArgument) -> int:
    """Return the margin to the slowdown temperature: smaller is hotter."""
    struct = abi.versioned(info, abi.struct_version(8, 1))
    return abi.fill(struct, marginTemperature=margin_c(lib, device.gpu))


@entry("nvmlDeviceGetFanSpeed")
def fan(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the intended fan speed in percent; passively cooled boards have no fan."""
    if not device.gpu.model.fans:
        return abi.NOT_SUPPORTED
    return abi.put(result, percent(lib.state(device.gpu).fan))


@entry("nvmlDeviceGetFanSpeed_v2")
def fan_v2(lib: FakeNvml, device: Device, number: abi.CArgument, result: abi.CArgument) -> int:
    """Return the intended speed of one fan in percent."""
    if not device.gpu.model.fans:
        return abi.NOT_SUPPORTED
    if not 0 <= abi.number(number) < device.gpu.model.fans:
        return abi.INVALID_ARGUMENT
    return abi.put(result, percent(lib.state(device.gpu).fan))


@entry("nvmlDeviceGetNumFans")
def fans(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the number of fans."""
    return abi.put(result, device.gpu.model.fans)


@entry("nvmlDeviceGetPowerUsage")
def power(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the power draw in mW."""
    return abi.put(result, round(lib.state(device.gpu).power_w * 1000))


def power_limit_mw(lib: FakeNvml, gpu: Gpu) -> int:
    """Return the power limit in force in mW; refused on boards without one."""
    if not gpu.model.power_limit_w:
        raise abi.RefusalError(abi.NOT_SUPPORTED)
    return round(lib.state(gpu).power_limit_w * 1000)


@entry("nvmlDeviceGetPowerManagementLimit")
@entry("nvmlDeviceGetEnforcedPowerLimit")
def power_limit(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the power limit in mW."""
    return abi.put(result, power_limit_mw(lib, device.gpu))


@entry("nvmlDeviceGetPowerManagementDefaultLimit")
def power_default(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the power limit that the board starts with, in mW."""
    power_limit_mw(lib, device.gpu)
    return abi.put(result, device.gpu.model.power_limit_w * 1000)


@entry("nvmlDeviceGetPowerManagementLimitConstraints")
def power_range(lib: FakeNvml, device: Device, low: abi.CArgument, high: abi.CArgument) -> int:
    """Return the range that the power limit can be set to, in mW."""
    power_limit_mw(lib, device.gpu)
    abi.put(low, device.gpu.model.power_min_w * 1000)
    return abi.put(high, device.gpu.model.power_limit_w * 1000)


@entry("nvmlDeviceGetPowerManagementMode")
def power_mode(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return whether power management is on."""
    return abi.put(result, int(bool(device.gpu.model.power_limit_w)))


@entry("nvmlDeviceGetTotalEnergyConsumption")
def energy(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the energy since the driver was loaded in mJ; Volta and newer."""
    return abi.put(result, counters.energy_mj(device.gpu, lib.now()))


def clock_mhz(lib: FakeNvml, gpu: Gpu, kind: int) -> int:
    """Return a current clock in MHz: 0 graphics, 1 SM, 2 memory, 3 video."""
    state = lib.state(gpu)
    values = (state.sm_clock_mhz, state.sm_clock_mhz, state.memory_clock_mhz, int(state.sm_clock_mhz * 0.78))
    return _of_kind(values, kind)


def _max_clock_mhz(gpu: Gpu, kind: int) -> int:
    model = gpu.model
    return _of_kind(
        (
            model.sm_clock_max_mhz,
            model.sm_clock_max_mhz,
            model.mem_clock_max_mhz,
            int(model.sm_clock_max_mhz * 0.78),
        ),
        kind,
    )


def _of_kind(values: tuple[int, int, int, int], kind: int) -> int:
    if not 0 <= kind < 4:
        raise abi.RefusalError(abi.INVALID_ARGUMENT)
    # An integrated part has no memory clock of its own to report.
    if not values[kind]:
        raise abi.RefusalError(abi.NOT_SUPPORTED)
    return values[kind]


@entry("nvmlDeviceGetClockInfo")
def clock(lib: FakeNvml, device: Device, kind: abi.CArgument, result: abi.CArgument) -> int:
    """Return a current clock in MHz."""
    return abi.put(result, clock_mhz(lib, device.gpu, abi.number(kind)))


@entry("nvmlDeviceGetClock")
def clock_by_id(
    lib: FakeNvml, device: Device, kind: abi.CArgument, clock_id: abi.CArgument, result: abi.CArgument
) -> int:
    """Return a clock in MHz: 0 current, 1 and 2 application clocks, 3 the boost limit."""
    if abi.number(clock_id) == 0:
        return abi.put(result, clock_mhz(lib, device.gpu, abi.number(kind)))
    return abi.put(result, _max_clock_mhz(device.gpu, abi.number(kind)))


@entry("nvmlDeviceGetMaxClockInfo")
def max_clock(_lib: FakeNvml, device: Device, kind: abi.CArgument, result: abi.CArgument) -> int:
    """Return the highest clock in MHz."""
    return abi.put(result, _max_clock_mhz(device.gpu, abi.number(kind)))


@entry("nvmlDeviceGetApplicationsClock")
@entry("nvmlDeviceGetDefaultApplicationsClock")
def application_clock(_lib: FakeNvml, device: Device, kind: abi.CArgument, result: abi.CArgument) -> int:
    """Return the application clock in MHz; consumer boards have none."""
    if device.gpu.model.display:
        return abi.NOT_SUPPORTED
    return abi.put(result, _max_clock_mhz(device.gpu, abi.number(kind)))


@entry("nvmlDeviceGetCurrentClocksThrottleReasons")
@entry("nvmlDeviceGetCurrentClocksEventReasons", since=(535, 0))
def clock_reasons(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the bit mask of reasons why clocks are not at their highest."""
    return abi.put(result, lib.state(device.gpu).reasons)


@entry("nvmlDeviceGetSupportedClocksThrottleReasons")
@entry("nvmlDeviceGetSupportedClocksEventReasons", since=(535, 0))
def supported_reasons(_lib: FakeNvml, _device: Device, result: abi.CArgument) -> int:
    """Return the reasons that the board can report."""
    return abi.put(result, _SUPPORTED_REASONS)


@entry("nvmlDeviceGetPerformanceState")
@entry("nvmlDeviceGetPowerState")
def performance_state(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the performance state, 0 the fastest."""
    return abi.put(result, lib.state(device.gpu).performance_state)


def pcie_link(lib: FakeNvml, gpu: Gpu) -> tuple[int, int]:
    """Return the current PCIe generation and width."""
    generation, width = gpu.model.pcie_gen, gpu.model.pcie_width
    t = lib.now()
    for fault in gpu.faults:
        if isinstance(fault, PcieDegraded) and fault.active(t):
            generation = fault.generation or generation
            width = fault.width or width
    return generation, width


@entry("nvmlDeviceGetCurrPcieLinkGeneration")
def pcie_generation(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the current PCIe generation."""
    return abi.put(result, pcie_link(lib, device.gpu)[0])


@entry("nvmlDeviceGetCurrPcieLinkWidth")
def pcie_width(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the current PCIe width in lanes."""
    return abi.put(result, pcie_link(lib, device.gpu)[1])


@entry("nvmlDeviceGetMaxPcieLinkGeneration")
@entry("nvmlDeviceGetGpuMaxPcieLinkGeneration", since=(515, 0))
def pcie_max_generation(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the highest PCIe generation of board and slot."""
    return abi.put(result, device.gpu.model.pcie_gen)


@entry("nvmlDeviceGetMaxPcieLinkWidth")
def pcie_max_width(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the highest PCIe width of board and slot."""
    return abi.put(result, device.gpu.model.pcie_width)


@entry("nvmlDeviceGetPcieReplayCounter")
def pcie_replay(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the PCIe replay counter."""
    return abi.put(result, counters.pcie_replays(device.gpu, lib.now()))


@entry("nvmlDeviceGetPcieThroughput")
def pcie_throughput(lib: FakeNvml, device: Device, counter: abi.CArgument, result: abi.CArgument) -> int:
    """Return PCIe throughput in KB/s of one direction: 0 sent, 1 received. It measures for 20 ms first."""
    direction = abi.number(counter)
    if direction not in (0, 1):
        return abi.INVALID_ARGUMENT
    lib.sleep(_PCIE_WINDOW_S)
    state = lib.state(device.gpu)
    return abi.put(result, int((state.pcie_rx_bytes_s if direction else state.pcie_tx_bytes_s) / 1000))
