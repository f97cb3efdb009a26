"""The quantities gputop knows: one line each with unit, kind and what is plausible.

The id is the name used everywhere: in facts, in columns, in `gputop snapshot --json` and in the docs.
Units are fixed here; a source converts before it emits. The plausible ranges follow the field's own
limits with room to spare (NVML header, DCGM field definitions and the garbage values seen in
NVIDIA/dcgm-exporter#418, #312, NVIDIA/DCGM#199); a number outside is reported as implausible, never
clamped.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct


class Kind(StrEnum):
    """How a quantity behaves over time."""

    GAUGE = "gauge"
    COUNTER = "counter"
    FLAG = "flag"
    BITMASK = "bitmask"
    CODE = "code"
    TEXT = "text"


class Level(StrEnum):
    """What a quantity belongs to. Sensors of a board are not repeated on its MIG instances."""

    NODE = "node"
    BOARD = "board"
    ANY = "any"
    """Board or MIG instance."""


class Quantity(Struct, frozen=True, gc=False):
    """One line of the table.

    Attributes:
        id: Name in code, JSON and docs.
        unit: Unit of the number, "" for counts and texts.
        kind: How it behaves.
        level: What it belongs to.
        low: Smallest plausible number.
        high: Largest plausible number.
        label: Words for people.
        zero_is_blank: A 0 means that there is no sensor (memory temperature on boards without one:
            NVIDIA/dcgm-exporter#460).
    """

    id: str
    unit: str
    kind: Kind
    level: Level
    low: float
    high: float
    label: str
    zero_is_blank: bool = False


_MIB_MAX: Final = 4.0 * 1024 * 1024
_COUNT_MAX: Final = 2.0**62


def _gauge(id_: str, unit: str, low: float, high: float, label: str) -> Quantity:
    return Quantity(id_, unit, Kind.GAUGE, Level.BOARD, low, high, label)


def _percent(id_: str, label: str, level: Level = Level.ANY) -> Quantity:
    return Quantity(id_, "%", Kind.GAUGE, level, 0.0, 100.0, label)


def _counter(id_: str, unit: str, label: str, level: Level = Level.BOARD) -> Quantity:
    return Quantity(id_, unit, Kind.COUNTER, level, 0.0, _COUNT_MAX, label)


def _flag(id_: str, label: str) -> Quantity:
    return Quantity(id_, "", Kind.FLAG, Level.BOARD, 0.0, 1.0, label)


def _text(id_: str, label: str, level: Level = Level.BOARD) -> Quantity:
    return Quantity(id_, "", Kind.TEXT, level, 0.0, 0.0, label)


def _mib(id_: str, label: str, level: Level = Level.ANY) -> Quantity:
    return Quantity(id_, "MiB", Kind.GAUGE, level, 0.0, _MIB_MAX, label)


_TABLE: Final = (
    # Activity. `utilization` is the share of the sample window in which a kernel ran, not how full the
    # GPU is; `memory_utilization` is the share in which the memory interface was busy, not memory fill.
    _percent("utilization", "GPU utilisation"),
    _percent("memory_utilization", "memory interface busy"),
    _percent("encoder_utilization", "video encoder utilisation"),
    _percent("decoder_utilization", "video decoder utilisation"),
    _percent("jpeg_utilization", "JPEG engine utilisation"),
    _percent("ofa_utilization", "optical flow engine utilisation"),
    # SM activity above 100 % is seen on MIG instances (NVIDIA/DCGM#152) and is shown as it is.
    Quantity("sm_activity", "%", Kind.GAUGE, Level.ANY, 0.0, 800.0, "SM activity"),
    Quantity("sm_occupancy", "%", Kind.GAUGE, Level.ANY, 0.0, 105.0, "SM occupancy"),
    Quantity("tensor_activity", "%", Kind.GAUGE, Level.ANY, 0.0, 105.0, "tensor core activity"),
    Quantity("graphics_activity", "%", Kind.GAUGE, Level.ANY, 0.0, 105.0, "graphics engine activity"),
    Quantity("dram_activity", "%", Kind.GAUGE, Level.ANY, 0.0, 105.0, "memory bandwidth in use"),
    # Memory.
    _mib("memory_total_mib", "memory"),
    _mib("memory_total_at_least_mib", "memory, at least (reserved part not told)"),
    _mib("memory_used_mib", "memory used"),
    _mib("memory_free_mib", "memory free"),
    _mib("memory_reserved_mib", "memory reserved by the driver"),
    _text("memory_meaning", "what the memory numbers are", Level.ANY),
    _mib("bar1_total_mib", "BAR1"),
    _mib("bar1_used_mib", "BAR1 used"),
    # Heat and power. A margin counts down to the limit: smaller is hotter.
    _gauge("temperature_c", "°C", -20.0, 150.0, "temperature"),
    Quantity("memory_temperature_c", "°C", Kind.GAUGE, Level.BOARD, -20.0, 150.0, "memory temperature", True),
    _gauge("temperature_margin_c", "°C", -150.0, 150.0, "margin to the thermal limit"),
    _gauge("temperature_slowdown_c", "°C", 0.0, 200.0, "slowdown temperature"),
    _gauge("temperature_shutdown_c", "°C", 0.0, 200.0, "shutdown temperature"),
    _gauge("temperature_max_c", "°C", 0.0, 200.0, "largest operating temperature"),
    _gauge("memory_temperature_max_c", "°C", 0.0, 200.0, "largest operating temperature of the memory"),
    # Where a board tells T.Limit, its limits are margins too: the number that `temperature_margin_c` has
    # when the limit is reached, 0 or a little below.
    _gauge("temperature_shutdown_margin_c", "°C", -150.0, 150.0, "margin at which it shuts down"),
    _gauge("temperature_slowdown_margin_c", "°C", -150.0, 150.0, "margin at which it slows down"),
    _gauge("temperature_max_margin_c", "°C", -150.0, 150.0, "margin at the largest operating temperature"),
    _gauge("memory_temperature_max_margin_c", "°C", -150.0, 150.0, "margin at the memory's largest temperature"),
    # Fans may be driven above their nominal speed (NVML: "may exceed 100 %").
    _gauge("fan_speed_percent", "%", 0.0, 200.0, "fan speed"),
    _gauge("power_w", "W", 0.0, 2000.0, "power"),
    _text("power_meaning", "what the power number is"),
    _gauge("power_average_w", "W", 0.0, 2000.0, "power, one-second average"),
    _gauge("power_instant_w", "W", 0.0, 2000.0, "power, instantaneous"),
    _gauge("power_memory_w", "W", 0.0, 2000.0, "power of the memory"),
    _gauge("power_module_w", "W", 0.0, 8000.0, "power of the module (GPU, CPU and memory)"),
    _gauge("power_limit_w", "W", 0.0, 2000.0, "power limit enforced"),
    _gauge("power_limit_requested_w", "W", 0.0, 2000.0, "power limit requested"),
    _gauge("power_limit_default_w", "W", 0.0, 2000.0, "power limit by default"),
    _gauge("power_limit_max_w", "W", 0.0, 2000.0, "power limit, largest allowed"),
    _counter("energy_j", "J", "energy since the driver was loaded"),
    # Clocks.
    _gauge("sm_clock_mhz", "MHz", 0.0, 6000.0, "SM clock"),
    _gauge("graphics_clock_mhz", "MHz", 0.0, 6000.0, "graphics clock"),
    _gauge("memory_clock_mhz", "MHz", 0.0, 20000.0, "memory clock"),
    _gauge("video_clock_mhz", "MHz", 0.0, 6000.0, "video clock"),
    _gauge("sm_clock_max_mhz", "MHz", 0.0, 6000.0, "SM clock, largest"),
    _gauge("memory_clock_max_mhz", "MHz", 0.0, 20000.0, "memory clock, largest"),
    Quantity("performance_state", "", Kind.CODE, Level.BOARD, 0.0, 15.0, "performance state (0 is fastest)"),
    Quantity("clock_event_reasons", "", Kind.BITMASK, Level.BOARD, 0.0, 2.0**63, "clock-event reasons"),
    _counter("clock_event_power_cap_ns", "ns", "time held down by the power cap"),
    _counter("clock_event_sync_boost_ns", "ns", "time held down by sync boost"),
    _counter("clock_event_sw_thermal_ns", "ns", "time held down by software thermal slowdown"),
    _counter("clock_event_hw_thermal_ns", "ns", "time held down by hardware thermal slowdown"),
    _counter("clock_event_power_brake_ns", "ns", "time held down by the hardware power brake"),
    _text("clock_events_lately", "clock events within the exporter's window"),
    # DCGM's older counters of the same: microseconds or nanoseconds, by version, which nobody tells. Only
    # that they grow means something.
    _counter("violation_power", "", "held down by power, growing or not"),
    _counter("violation_thermal", "", "held down by heat, growing or not"),
    _counter("violation_sync_boost", "", "held down by sync boost, growing or not"),
    _counter("violation_board_limit", "", "held down by the board's limit, growing or not"),
    _counter("violation_low_utilization", "", "held down for low utilisation, growing or not"),
    _counter("violation_reliability", "", "held down for reliability, growing or not"),
    # PCIe and NVLink. A link may drop its generation at rest to save power; only a sample under load
    # tells a fault.
    _gauge("pcie_generation", "", 0.0, 10.0, "PCIe generation now"),
    _gauge("pcie_generation_max", "", 0.0, 10.0, "PCIe generation, largest"),
    _gauge("pcie_width", "", 0.0, 64.0, "PCIe lanes now"),
    _gauge("pcie_width_max", "", 0.0, 64.0, "PCIe lanes, largest"),
    _counter("pcie_replay_total", "", "PCIe replays"),
    _gauge("pcie_rx_bytes_per_s", "B/s", 0.0, 1e12, "PCIe received"),
    _gauge("pcie_tx_bytes_per_s", "B/s", 0.0, 1e12, "PCIe sent"),
    _gauge("nvlink_links", "", 0.0, 64.0, "NVLinks"),
    _gauge("nvlink_links_active", "", 0.0, 64.0, "NVLinks active"),
    _text("nvlink_version", "NVLink version"),
    _gauge("nvlink_throughput_bytes_per_s", "B/s", 0.0, 1e14, "NVLink throughput"),
    _gauge("nvlink_rx_bytes_per_s", "B/s", 0.0, 1e14, "NVLink received"),
    _gauge("nvlink_tx_bytes_per_s", "B/s", 0.0, 1e14, "NVLink sent"),
    _counter("nvlink_crc_flit_errors", "", "NVLink CRC errors (flit)"),
    _counter("nvlink_crc_data_errors", "", "NVLink CRC errors (data)"),
    _counter("nvlink_replay_errors", "", "NVLink replays"),
    _counter("nvlink_recovery_errors", "", "NVLink recoveries"),
    _counter("nvlink_ecc_data_errors", "", "NVLink ECC errors (data)"),
    # NVLink 5 and newer count other things than CRC and replays.
    _counter("nvlink_recoveries_successful", "", "NVLink recoveries that brought the link back"),
    _counter("nvlink_recoveries_failed", "", "NVLink recoveries that failed: the link went down"),
    _counter("nvlink_malformed_packet_errors", "", "NVLink packets received malformed"),
    _counter("nvlink_buffer_overrun_errors", "", "NVLink packets dropped for lack of room"),
    _counter("nvlink_receive_errors", "", "NVLink packets received with errors"),
    _counter("nvlink_receive_remote_errors", "", "NVLink packets that the sender marked bad"),
    _counter("nvlink_receive_general_errors", "", "NVLink packets received with a wrong header"),
    _counter("nvlink_link_integrity_errors", "", "NVLink local errors over the threshold"),
    _counter("nvlink_transmit_discards", "", "NVLink packets not sent"),
    _counter("nvlink_effective_errors", "", "NVLink errors left after correction"),
    _counter("nvlink_symbol_errors", "", "NVLink symbol errors"),
    _gauge("nvlink_effective_ber", "", 0.0, 1.0, "NVLink bit error rate after correction, worst link"),
    _gauge("nvlink_symbol_ber", "", 0.0, 1.0, "NVLink symbol error rate, worst link"),
    _text("fabric_state", "fabric state"),
    # Memory errors. Volatile counts start again when the driver is loaded; aggregate ones live on the
    # board. A fall of a volatile count is a reload, not a repair.
    _flag("ecc_mode", "ECC"),
    _flag("ecc_mode_pending", "ECC after the next reset"),
    _counter("ecc_volatile_corrected", "", "corrected ECC errors since driver load"),
    _counter("ecc_volatile_uncorrected", "", "uncorrected ECC errors since driver load"),
    _counter("ecc_volatile_dram_corrected", "", "corrected ECC errors since driver load, DRAM"),
    _counter("ecc_volatile_dram_uncorrected", "", "uncorrected ECC errors since driver load, DRAM"),
    _counter("ecc_volatile_sram_corrected", "", "corrected ECC errors since driver load, SRAM"),
    # The one count that the driver also keeps for each MIG instance.
    _counter("ecc_volatile_sram_uncorrected", "", "uncorrected ECC errors since driver load, SRAM", Level.ANY),
    _counter("ecc_aggregate_corrected", "", "corrected ECC errors, lifetime"),
    _counter("ecc_aggregate_uncorrected", "", "uncorrected ECC errors, lifetime"),
    _counter("ecc_aggregate_dram_corrected", "", "corrected ECC errors, lifetime, DRAM"),
    _counter("ecc_aggregate_dram_uncorrected", "", "uncorrected ECC errors, lifetime, DRAM"),
    _counter("ecc_aggregate_sram_corrected", "", "corrected ECC errors, lifetime, SRAM"),
    _counter("ecc_aggregate_sram_uncorrected", "", "uncorrected ECC errors, lifetime, SRAM"),
    _flag("ecc_sram_threshold_exceeded", "SRAM error threshold exceeded"),
    _counter("row_remap_corrected", "", "rows remapped after corrected errors"),
    _counter("row_remap_uncorrected", "", "rows remapped after uncorrected errors"),
    _flag("row_remap_pending", "row remap awaits a reset"),
    _flag("row_remap_failed", "row remap failed"),
    _counter("row_remap_banks_max", "", "banks with all spare rows left"),
    _counter("row_remap_banks_high", "", "banks with many spare rows left"),
    _counter("row_remap_banks_partial", "", "banks with some spare rows left"),
    _counter("row_remap_banks_low", "", "banks with few spare rows left"),
    _counter("row_remap_banks_none", "", "banks with no spare row left"),
    _counter("retired_pages_sbe", "", "pages retired after repeated single-bit errors"),
    _counter("retired_pages_dbe", "", "pages retired after a double-bit error"),
    _flag("retired_pages_pending", "page retirement awaits a reset"),
    Quantity("recovery_action", "", Kind.CODE, Level.BOARD, 0.0, 255.0, "recovery action asked for"),
    # As bad as it once was: DCGM forgets a failure only when its host engine restarts.
    _text("exporter_health", "health as the exporter judges it"),
    Quantity("last_xid", "", Kind.CODE, Level.BOARD, 0.0, 65535.0, "last Xid recorded"),
    # Modes and identity.
    _flag("persistence_mode", "persistence mode"),
    _flag("display_attached", "display attached"),
    _flag("display_active", "display active"),
    _flag("mig_mode", "MIG mode"),
    _flag("mig_mode_pending", "MIG mode after the next reset"),
    _text("mig_profile", "MIG profile", Level.ANY),
    _text("compute_mode", "compute mode"),
    _text("virtualization_mode", "virtualisation mode"),
    _flag("vgpu_licensed", "vGPU licensed"),
    _text("model", "model", Level.ANY),
    _text("brand", "brand"),
    _text("architecture", "architecture"),
    _text("serial", "serial number"),
    _text("part_number", "board part number"),
    _text("vbios_version", "VBIOS version"),
    _text("inforom_version", "InfoROM image version"),
    _text("gsp_firmware_version", "GSP firmware version"),
    Quantity("multiprocessors", "", Kind.GAUGE, Level.ANY, 0.0, 4096.0, "multiprocessors"),
    # Node.
    _text("driver_version", "NVIDIA driver", Level.NODE),
    _text("kernel_driver_version", "NVIDIA kernel module", Level.NODE),
    _text("cuda_version", "CUDA driver API", Level.NODE),
    _text("nvml_version", "NVML library", Level.NODE),
    _mib("system_memory_total_mib", "system memory", Level.NODE),
    _mib("system_memory_available_mib", "system memory available", Level.NODE),
    Quantity("gpus_expected", "", Kind.GAUGE, Level.NODE, 0.0, 1024.0, "GPUs expected"),
)

QUANTITIES: Final[dict[str, Quantity]] = {q.id: q for q in _TABLE}
"""Every quantity by id, in the order of the table."""

HISTORY_QUANTITIES: Final = ("utilization", "memory_used_mib", "power_w", "temperature_c", "sm_clock_mhz")
"""The quantities whose last minutes are kept in memory for sparklines and charts."""
