"""The metrics that all generations of dcgm-exporter have: names, the factor between units, the reading."""

from collections.abc import Callable

import msgspec

from gputop.demo import counters
from gputop.demo.exporters.node import Subject
from gputop.demo.state import GpuState

MIB_BYTES = 1024.0 * 1024.0


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A metric under its old name, and under the new one with the factor between the units."""

    old: str
    new: str
    kind: str = "gauge"
    words: str
    scale: float = 1.0
    gauge: Callable[[Subject, GpuState], float | None] | None = None
    counter: Callable[[Subject, float], float | None] | None = None
    optional: bool = False


def board(read: Callable[[GpuState], float]) -> Callable[[Subject, GpuState], float | None]:
    """Read the same for a board and for each MIG device of it: the sensor belongs to the board."""
    return lambda _subject, state: read(state)


def _no_mig(read: Callable[[GpuState], float]) -> Callable[[Subject, GpuState], float | None]:
    """Leave the row out on MIG devices, where DCGM has no such reading."""
    return lambda subject, state: None if subject.instance else read(state)


def total_mib(subject: Subject) -> float | None:
    """Return the MiB of a board or MIG device; None where the memory is the host's."""
    if subject.instance:
        return float(subject.instance.profile.memory_mib)
    return None if subject.gpu.model.unified else float(subject.gpu.model.memory_mib)


def _used_mib(subject: Subject, state: GpuState) -> float | None:
    if subject.gpu.model.unified:
        return None
    if subject.instance:
        return float(int(sum(load.memory_mib for load in subject.loads)))
    return float(int(state.memory_used_mib))


def reserved_mib(subject: Subject) -> float:
    """Return the MiB that the driver keeps; MIG devices report none."""
    return 0.0 if subject.instance else float(subject.gpu.model.reserved_mib)


def _free_mib(subject: Subject, state: GpuState) -> float | None:
    total, used = total_mib(subject), _used_mib(subject, state)
    return None if total is None or used is None else total - used - reserved_mib(subject)


def _share(part: Callable[[GpuState], float], profile: str) -> Callable[[Subject, GpuState], float | None]:
    """Return a profiling ratio of a board, or of a MIG device from what runs on it."""

    def read(subject: Subject, state: GpuState) -> float | None:
        # Before Volta there are no profiling counters.
        if subject.gpu.model.display:
            return None
        if subject.instance is None:
            return round(part(state), 6)
        scale = [load.level * (getattr(load.profile, profile) if profile else 1.0) for load in subject.loads]
        # The instance swings as its board does, around its own mean.
        mean = sum(load.level * load.part for load in subject.gpu.loads) or 1.0
        return round(min(1.0, sum(scale) * state.utilization / min(1.0, mean)), 6)

    return read


def _ecc(member: str, *, aggregate: bool) -> Callable[[Subject, float], float | None]:
    def read(subject: Subject, t: float) -> float | None:
        if not subject.gpu.model.ecc:
            return None
        found = counters.ecc(subject.gpu, t, aggregate=aggregate)
        if member == "single":
            return found.corrected_dram + found.corrected_sram
        return found.uncorrected_dram + found.uncorrected_sram

    return read


def _remap(member: str) -> Callable[[Subject, float], float | None]:
    def read(subject: Subject, t: float) -> float | None:
        if not subject.gpu.model.remap_banks or subject.instance:
            return None
        return float(getattr(counters.remap(subject.gpu, t), member))

    return read


def _retired(member: str) -> Callable[[Subject, float], float | None]:
    def read(subject: Subject, t: float) -> float | None:
        return float(getattr(counters.retired(subject.gpu, t), member)) if subject.gpu.model.retires_pages else None

    return read


def _links(error: str) -> Callable[[Subject, float], float | None]:
    def read(subject: Subject, t: float) -> float | None:
        gpu = subject.gpu
        if not gpu.model.nvlinks:
            return None
        return float(sum(counters.nvlink_errors(gpu, link, error, t) for link in range(gpu.model.nvlinks)))

    return read


def _throttle(member: str) -> Callable[[Subject, float], float | None]:
    return lambda subject, t: float(getattr(counters.throttle_ns(subject.gpu, t), member))


def _nvlink_mb_s(subject: Subject, state: GpuState) -> float | None:
    return float(int(state.nvlink_bytes_s * 2 / 1e6)) if subject.gpu.model.nvlinks else None


def _energy(subject: Subject, t: float) -> float | None:
    return float(counters.energy_mj(subject.gpu, t))


DEVICE = "DCGM_FI_DEV_"
PROFILING = "DCGM_FI_PROF_"

ENTRIES: tuple[Entry, ...] = (
    Entry(
        old=DEVICE + "SM_CLOCK",
        new=DEVICE + "SM_CLOCK_HERTZ",
        words="SM clock frequency (in MHz).",
        scale=1e6,
        gauge=board(lambda state: state.sm_clock_mhz),
    ),
    Entry(
        old=DEVICE + "MEM_CLOCK",
        new=DEVICE + "MEMORY_CLOCK_HERTZ",
        words="Memory clock frequency (in MHz).",
        scale=1e6,
        gauge=board(lambda state: state.memory_clock_mhz),
    ),
    Entry(
        old=DEVICE + "GPU_TEMP",
        new=DEVICE + "GPU_TEMP_CELSIUS",
        words="GPU temperature (in C).",
        gauge=board(lambda state: round(state.temperature_c)),
    ),
    Entry(
        old=DEVICE + "POWER_USAGE",
        new=DEVICE + "BOARD_POWER_WATTS",
        words="Power draw (in W).",
        gauge=board(lambda state: round(state.power_w, 3)),
    ),
    Entry(
        old=DEVICE + "TOTAL_ENERGY_CONSUMPTION",
        new=DEVICE + "GPU_ENERGY_JOULES_TOTAL",
        kind="counter",
        words="Total energy consumption since boot (in mJ).",
        scale=1e-3,
        counter=_energy,
    ),
    Entry(
        old=DEVICE + "PCIE_REPLAY_COUNTER",
        new=DEVICE + "PCIE_REPLAY_TOTAL",
        kind="counter",
        words="Total number of PCIe retries.",
        counter=lambda subject, t: float(counters.pcie_replays(subject.gpu, t)),
    ),
    Entry(
        old=DEVICE + "GPU_UTIL",
        new=DEVICE + "GPU_UTIL_RATIO",
        words="GPU utilization (in %).",
        scale=0.01,
        gauge=_no_mig(lambda state: round(state.utilization * 100)),
    ),
    Entry(
        old=DEVICE + "MEM_COPY_UTIL",
        new=DEVICE + "MEM_COPY_UTIL_RATIO",
        words="Memory utilization (in %).",
        scale=0.01,
        gauge=_no_mig(lambda state: round(state.memory_busy * 100)),
    ),
    Entry(
        old=DEVICE + "ENC_UTIL",
        new=DEVICE + "ENC_UTIL_RATIO",
        words="Encoder utilization (in %).",
        scale=0.01,
        gauge=_no_mig(lambda state: round(state.encoder * 100)),
    ),
    Entry(
        old=DEVICE + "DEC_UTIL",
        new=DEVICE + "DEC_UTIL_RATIO",
        words="Decoder utilization (in %).",
        scale=0.01,
        gauge=_no_mig(lambda state: round(state.decoder * 100)),
    ),
    Entry(
        old=DEVICE + "FB_FREE",
        new=DEVICE + "FB_FREE_BYTES",
        words="Framebuffer memory free (in MiB).",
        scale=MIB_BYTES,
        gauge=_free_mib,
    ),
    Entry(
        old=DEVICE + "FB_USED",
        new=DEVICE + "FB_USED_BYTES",
        words="Framebuffer memory used (in MiB).",
        scale=MIB_BYTES,
        gauge=_used_mib,
    ),
    Entry(
        old=DEVICE + "NVLINK_BANDWIDTH_TOTAL",
        new=DEVICE + "NVLINK_THROUGHPUT_TOTAL",
        kind="counter",
        scale=1e6,
        words="Total number of NVLink bandwidth counters for all lanes.",
        gauge=_nvlink_mb_s,
    ),
    Entry(
        old=DEVICE + "VGPU_LICENSE_STATUS",
        new=DEVICE + "VGPU_LICENSE_STATUS",
        words="vGPU License status",
        counter=lambda _subject, _t: 0.0,
    ),
    Entry(
        old=DEVICE + "UNCORRECTABLE_REMAPPED_ROWS",
        new=DEVICE + "ROW_REMAP_UNCORRECTABLE_TOTAL",
        kind="counter",
        words="Number of remapped rows for uncorrectable errors",
        counter=_remap("uncorrectable"),
    ),
    Entry(
        old=DEVICE + "CORRECTABLE_REMAPPED_ROWS",
        new=DEVICE + "ROW_REMAP_CORRECTABLE_TOTAL",
        kind="counter",
        words="Number of remapped rows for correctable errors",
        counter=_remap("correctable"),
    ),
    Entry(
        old=DEVICE + "ROW_REMAP_FAILURE",
        new=DEVICE + "ROW_REMAP_FAILED",
        words="Whether remapping of rows has failed",
        counter=_remap("failed"),
    ),
    Entry(
        old=PROFILING + "GR_ENGINE_ACTIVE",
        new=PROFILING + "GR_ENGINE_UTIL_RATIO",
        words="Ratio of time the graphics engine is active (in %).",
        gauge=_share(lambda state: state.utilization, ""),
    ),
    Entry(
        old=PROFILING + "PIPE_TENSOR_ACTIVE",
        new=PROFILING + "TENSOR_UTIL_RATIO",
        words="Ratio of cycles the tensor (HMMA) pipe is active (in %).",
        gauge=_share(lambda state: state.tensor, "tensor"),
    ),
    Entry(
        old=PROFILING + "DRAM_ACTIVE",
        new=PROFILING + "DRAM_UTIL_RATIO",
        words="Ratio of cycles the device memory interface is active sending or receiving data (in %).",
        gauge=_share(lambda state: state.memory_busy, "memory_busy"),
    ),
    Entry(
        old=PROFILING + "PCIE_TX_BYTES",
        new=PROFILING + "PCIE_TX_BYTES",
        words="The rate of data transmitted over the PCIe bus (in bytes per second).",
        gauge=board(lambda state: float(int(state.pcie_tx_bytes_s))),
    ),
    Entry(
        old=PROFILING + "PCIE_RX_BYTES",
        new=PROFILING + "PCIE_RX_BYTES",
        words="The rate of data received over the PCIe bus (in bytes per second).",
        gauge=board(lambda state: float(int(state.pcie_rx_bytes_s))),
    ),
    Entry(
        old=PROFILING + "SM_ACTIVE",
        new=PROFILING + "SM_UTIL_RATIO",
        optional=True,
        words="The ratio of cycles an SM has at least 1 warp assigned (in %).",
        gauge=_share(lambda state: state.sm_active, "sm_active"),
    ),
    Entry(
        old=PROFILING + "SM_OCCUPANCY",
        new=PROFILING + "SM_OCCUPANCY_RATIO",
        optional=True,
        words="The ratio of number of warps resident on an SM (in %).",
        gauge=_share(lambda state: state.occupancy, "occupancy"),
    ),
    Entry(
        old=DEVICE + "ENFORCED_POWER_LIMIT",
        new=DEVICE + "BOARD_POWER_LIMIT_ENFORCED_WATTS",
        optional=True,
        words="Effective power limit that the driver enforces (in W).",
        gauge=lambda _subject, state: state.power_limit_w or None,
    ),
    Entry(
        old=DEVICE + "PSTATE",
        new=DEVICE + "GPU_PSTATE",
        optional=True,
        words="Performance state (0 is the highest).",
        gauge=board(lambda state: state.performance_state),
    ),
    Entry(
        old=DEVICE + "ECC_SBE_VOL_TOTAL",
        new=DEVICE + "ECC_SBE_VOL_TOTAL",
        kind="counter",
        optional=True,
        words="Total number of single-bit volatile ECC errors.",
        counter=_ecc("single", aggregate=False),
    ),
    Entry(
        old=DEVICE + "ECC_DBE_VOL_TOTAL",
        new=DEVICE + "ECC_DBE_VOL_TOTAL",
        kind="counter",
        optional=True,
        words="Total number of double-bit volatile ECC errors.",
        counter=_ecc("double", aggregate=False),
    ),
    Entry(
        old=DEVICE + "ECC_SBE_AGG_TOTAL",
        new=DEVICE + "ECC_SBE_AGG_TOTAL",
        kind="counter",
        optional=True,
        words="Total number of single-bit persistent ECC errors.",
        counter=_ecc("single", aggregate=True),
    ),
    Entry(
        old=DEVICE + "ECC_DBE_AGG_TOTAL",
        new=DEVICE + "ECC_DBE_AGG_TOTAL",
        kind="counter",
        optional=True,
        words="Total number of double-bit persistent ECC errors.",
        counter=_ecc("double", aggregate=True),
    ),
    Entry(
        old=DEVICE + "RETIRED_SBE",
        new=DEVICE + "PAGE_RETIRED_SBE_TOTAL",
        kind="counter",
        optional=True,
        words="Total number of retired pages due to single-bit errors.",
        counter=_retired("single_bit"),
    ),
    Entry(
        old=DEVICE + "RETIRED_DBE",
        new=DEVICE + "PAGE_RETIRED_DBE_TOTAL",
        kind="counter",
        optional=True,
        words="Total number of retired pages due to double-bit errors.",
        counter=_retired("double_bit"),
    ),
    Entry(
        old=DEVICE + "RETIRED_PENDING",
        new=DEVICE + "PAGE_RETIRED_PENDING",
        kind="counter",
        optional=True,
        words="Total number of pages pending retirement.",
        counter=_retired("pending"),
    ),
    Entry(
        old=DEVICE + "ROW_REMAP_PENDING",
        new=DEVICE + "ROW_REMAP_PENDING",
        optional=True,
        words="Whether remapping of rows is pending",
        counter=_remap("pending"),
    ),
    Entry(
        old=DEVICE + "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
        new=DEVICE + "NVLINK_CRC_FLIT_ERROR_TOTAL",
        kind="counter",
        optional=True,
        words="Total number of NVLink flow-control CRC errors.",
        counter=_links("crc"),
    ),
    Entry(
        old=DEVICE + "NVLINK_REPLAY_ERROR_COUNT_TOTAL",
        new=DEVICE + "NVLINK_REPLAY_ERROR_TOTAL",
        kind="counter",
        optional=True,
        words="Total number of NVLink retries.",
        counter=_links("replay"),
    ),
    Entry(
        old=DEVICE + "NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
        new=DEVICE + "NVLINK_RECOVERY_ERROR_TOTAL",
        kind="counter",
        optional=True,
        words="Total number of NVLink recovery errors.",
        counter=_links("recovery"),
    ),
    Entry(
        old=DEVICE + "CLOCKS_EVENT_REASON_SW_POWER_CAP_NS",
        new=DEVICE + "CLOCKS_EVENT_REASON_SW_POWER_CAP_NS",
        kind="counter",
        optional=True,
        words="Time under software power cap (in ns).",
        counter=_throttle("sw_power_cap"),
    ),
    Entry(
        old=DEVICE + "CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS",
        new=DEVICE + "CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS",
        kind="counter",
        optional=True,
        words="Time under hardware thermal slowdown (in ns).",
        counter=_throttle("hw_thermal"),
    ),
)
"""Metrics that all generations have, under both names."""
