"""dcgm-exporter's names, all generations.

A name means what its line in the exporter's CSV file says, whatever version runs: a site may keep old names
on a new DCGM. So the unit is bound to the name (DCGM 4.6 renames in `dcgm_fields.h`, unit-correct names from
4.6.1 on, 1.x names of `--use-old-namespace`), and TYPE and HELP are not looked at: they too are only what
the CSV file says.

Left out on purpose: DCGM_EXP_P2P_STATUS (of pairs of GPUs, not of one), DCGM_EXP_CLOCK_EVENTS_TOTAL (counts
edges between samples, so it misses most), NVLINK_COUNT_…_BER (packed; the _FLOAT ones tell the same), fields
of single links _L0 to _L17 (the totals tell the same), GPU_NVLINK_ERRORS (Xid 74 under another name), fields
of CPUs and NVSwitches (no GPUs).
"""

from collections.abc import Iterator
from typing import Final

from gputop.sources.metrics.rule import Doubt, MetricRule, Role

_MIB: Final = 1.0 / (1024.0 * 1024.0)
_RATIO: Final = Doubt.RATIO_OR_PERCENT
_FABRIC_WORDS: Final = (
    (0.0, "not supported"),
    (1.0, "not started"),
    (2.0, "in progress"),
    (3.0, "completed"),
    (4.0, "failed"),
    (5.0, "unrecognised"),
    (6.0, "NVML too old"),
)

_Line = tuple[str, str, float, str]

# Old name, quantity, factor to the quantity's unit, group.
_DEVICE: Final[tuple[_Line, ...]] = (
    ("SM_CLOCK", "sm_clock_mhz", 1.0, "core"),
    ("MEM_CLOCK", "memory_clock_mhz", 1.0, "clocks"),
    ("VIDEO_CLOCK", "video_clock_mhz", 1.0, "clocks"),
    ("MAX_SM_CLOCK", "sm_clock_max_mhz", 1.0, "clocks"),
    ("MAX_MEM_CLOCK", "memory_clock_max_mhz", 1.0, "clocks"),
    ("GPU_TEMP", "temperature_c", 1.0, "core"),
    ("MEMORY_TEMP", "memory_temperature_c", 1.0, "core"),
    ("GPU_TEMP_LIMIT", "temperature_margin_c", 1.0, "health"),
    ("SLOWDOWN_TEMP", "temperature_slowdown_c", 1.0, "health"),
    ("SHUTDOWN_TEMP", "temperature_shutdown_c", 1.0, "health"),
    ("FAN_SPEED", "fan_speed_percent", 1.0, "health"),
    ("POWER_USAGE", "power_w", 1.0, "core"),
    ("POWER_USAGE_INSTANT", "power_instant_w", 1.0, "power"),
    ("TOTAL_ENERGY_CONSUMPTION", "energy_j", 1e-3, "power"),
    ("ENFORCED_POWER_LIMIT", "power_limit_w", 1.0, "power"),
    ("POWER_MGMT_LIMIT", "power_limit_requested_w", 1.0, "power"),
    ("POWER_MGMT_LIMIT_DEF", "power_limit_default_w", 1.0, "power"),
    ("POWER_MGMT_LIMIT_MAX", "power_limit_max_w", 1.0, "power"),
    ("PSTATE", "performance_state", 1.0, "clocks"),
    ("CLOCK_THROTTLE_REASONS", "clock_event_reasons", 1.0, "clocks"),
    ("CLOCKS_EVENT_REASONS", "clock_event_reasons", 1.0, "clocks"),
    ("CLOCKS_EVENT_REASON_SW_POWER_CAP_NS", "clock_event_power_cap_ns", 1.0, "clocks"),
    ("CLOCKS_EVENT_REASON_SYNC_BOOST_NS", "clock_event_sync_boost_ns", 1.0, "clocks"),
    ("CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS", "clock_event_sw_thermal_ns", 1.0, "clocks"),
    ("CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS", "clock_event_hw_thermal_ns", 1.0, "clocks"),
    ("CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS", "clock_event_power_brake_ns", 1.0, "clocks"),
    ("PCIE_REPLAY_COUNTER", "pcie_replay_total", 1.0, "pcie"),
    ("PCIE_LINK_GEN", "pcie_generation", 1.0, "pcie"),
    ("PCIE_MAX_LINK_GEN", "pcie_generation_max", 1.0, "pcie"),
    ("PCIE_LINK_WIDTH", "pcie_width", 1.0, "pcie"),
    ("PCIE_MAX_LINK_WIDTH", "pcie_width_max", 1.0, "pcie"),
    ("PCIE_TX_THROUGHPUT", "pcie_tx_bytes_per_s", 1e3, "pcie"),
    ("PCIE_RX_THROUGHPUT", "pcie_rx_bytes_per_s", 1e3, "pcie"),
    ("FB_TOTAL", "memory_total_mib", 1.0, "memory"),
    ("FB_USED", "memory_used_mib", 1.0, "memory"),
    ("FB_FREE", "memory_free_mib", 1.0, "memory"),
    ("FB_RESERVED", "memory_reserved_mib", 1.0, "memory"),
    ("BAR1_TOTAL", "bar1_total_mib", 1.0, "memory"),
    ("BAR1_USED", "bar1_used_mib", 1.0, "memory"),
    ("ECC_CURRENT", "ecc_mode", 1.0, "errors"),
    ("ECC_PENDING", "ecc_mode_pending", 1.0, "errors"),
    ("ECC_SBE_VOL_TOTAL", "ecc_volatile_corrected", 1.0, "errors"),
    ("ECC_DBE_VOL_TOTAL", "ecc_volatile_uncorrected", 1.0, "errors"),
    ("ECC_SBE_AGG_TOTAL", "ecc_aggregate_corrected", 1.0, "errors"),
    ("ECC_DBE_AGG_TOTAL", "ecc_aggregate_uncorrected", 1.0, "errors"),
    ("THRESHOLD_SRM", "ecc_sram_threshold_exceeded", 1.0, "errors"),
    ("RETIRED_SBE", "retired_pages_sbe", 1.0, "errors"),
    ("RETIRED_DBE", "retired_pages_dbe", 1.0, "errors"),
    ("UNCORRECTABLE_REMAPPED_ROWS", "row_remap_uncorrected", 1.0, "errors"),
    ("CORRECTABLE_REMAPPED_ROWS", "row_remap_corrected", 1.0, "errors"),
    ("ROW_REMAP_FAILURE", "row_remap_failed", 1.0, "errors"),
    ("ROW_REMAP_PENDING", "row_remap_pending", 1.0, "errors"),
    ("BANKS_REMAP_ROWS_AVAIL_MAX", "row_remap_banks_max", 1.0, "errors"),
    ("BANKS_REMAP_ROWS_AVAIL_HIGH", "row_remap_banks_high", 1.0, "errors"),
    ("BANKS_REMAP_ROWS_AVAIL_PARTIAL", "row_remap_banks_partial", 1.0, "errors"),
    ("BANKS_REMAP_ROWS_AVAIL_LOW", "row_remap_banks_low", 1.0, "errors"),
    ("BANKS_REMAP_ROWS_AVAIL_NONE", "row_remap_banks_none", 1.0, "errors"),
    ("NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "nvlink_crc_flit_errors", 1.0, "nvlink"),
    ("NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "nvlink_crc_data_errors", 1.0, "nvlink"),
    ("NVLINK_REPLAY_ERROR_COUNT_TOTAL", "nvlink_replay_errors", 1.0, "nvlink"),
    ("NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "nvlink_recovery_errors", 1.0, "nvlink"),
    # A level in MB/s, though declared a counter (NVIDIA/dcgm-exporter#472, #658).
    ("NVLINK_BANDWIDTH_TOTAL", "nvlink_throughput_bytes_per_s", 1e6, "nvlink"),
    # NVLink 5 and newer, over all links.
    ("NVLINK_COUNT_RX_MALFORMED_PACKET_ERRORS", "nvlink_malformed_packet_errors", 1.0, "nvlink"),
    ("NVLINK_COUNT_RX_BUFFER_OVERRUN_ERRORS", "nvlink_buffer_overrun_errors", 1.0, "nvlink"),
    ("NVLINK_COUNT_RX_ERRORS", "nvlink_receive_errors", 1.0, "nvlink"),
    ("NVLINK_COUNT_RX_REMOTE_ERRORS", "nvlink_receive_remote_errors", 1.0, "nvlink"),
    ("NVLINK_COUNT_RX_GENERAL_ERRORS", "nvlink_receive_general_errors", 1.0, "nvlink"),
    ("NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS", "nvlink_link_integrity_errors", 1.0, "nvlink"),
    ("NVLINK_COUNT_TX_DISCARDS", "nvlink_transmit_discards", 1.0, "nvlink"),
    ("NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS", "nvlink_recoveries_successful", 1.0, "nvlink"),
    ("NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS", "nvlink_recoveries_failed", 1.0, "nvlink"),
    ("NVLINK_COUNT_EFFECTIVE_ERRORS", "nvlink_effective_errors", 1.0, "nvlink"),
    ("NVLINK_COUNT_RX_SYMBOL_ERRORS", "nvlink_symbol_errors", 1.0, "nvlink"),
    ("NVLINK_COUNT_EFFECTIVE_BER_FLOAT", "nvlink_effective_ber", 1.0, "nvlink"),
    ("NVLINK_COUNT_SYMBOL_BER_FLOAT", "nvlink_symbol_ber", 1.0, "nvlink"),
    ("NVLINK_ECC_DATA_ERROR_COUNT_TOTAL", "nvlink_ecc_data_errors", 1.0, "nvlink"),
    ("GPU_MAX_OP_TEMP", "temperature_max_c", 1.0, "health"),
    ("MEM_MAX_OP_TEMP", "memory_temperature_max_c", 1.0, "health"),
    ("POWER_VIOLATION", "violation_power", 1.0, "clocks"),
    ("THERMAL_VIOLATION", "violation_thermal", 1.0, "clocks"),
    ("SYNC_BOOST_VIOLATION", "violation_sync_boost", 1.0, "clocks"),
    ("BOARD_LIMIT_VIOLATION", "violation_board_limit", 1.0, "clocks"),
    ("LOW_UTIL_VIOLATION", "violation_low_utilization", 1.0, "clocks"),
    ("RELIABILITY_VIOLATION", "violation_reliability", 1.0, "clocks"),
    ("GPU_RECOVERY_ACTION", "recovery_action", 1.0, "health"),
    ("PERSISTENCE_MODE", "persistence_mode", 1.0, "identity"),
    ("MIG_MODE", "mig_mode", 1.0, "identity"),
    ("VGPU_LICENSE_STATUS", "vgpu_licensed", 1.0, "identity"),
    # New names whose unit is in their suffix.
    ("SM_CLOCK_HERTZ", "sm_clock_mhz", 1e-6, "core"),
    ("MEMORY_CLOCK_HERTZ", "memory_clock_mhz", 1e-6, "clocks"),
    ("MEM_CLOCK_HERTZ", "memory_clock_mhz", 1e-6, "clocks"),
    ("VIDEO_CLOCK_HERTZ", "video_clock_mhz", 1e-6, "clocks"),
    ("SM_MAX_CLOCK_HERTZ", "sm_clock_max_mhz", 1e-6, "clocks"),
    ("MEMORY_MAX_CLOCK_HERTZ", "memory_clock_max_mhz", 1e-6, "clocks"),
    ("GPU_TEMP_CELSIUS", "temperature_c", 1.0, "core"),
    ("MEMORY_TEMP_CELSIUS", "memory_temperature_c", 1.0, "core"),
    ("GPU_TEMP_MARGIN_CELSIUS", "temperature_margin_c", 1.0, "health"),
    ("GPU_TEMP_SLOWDOWN_CELSIUS", "temperature_slowdown_c", 1.0, "health"),
    ("GPU_TEMP_SHUTDOWN_CELSIUS", "temperature_shutdown_c", 1.0, "health"),
    ("BOARD_POWER_WATTS", "power_w", 1.0, "core"),
    ("BOARD_POWER_RAW_WATTS", "power_instant_w", 1.0, "power"),
    ("BOARD_POWER_LIMIT_ENFORCED_WATTS", "power_limit_w", 1.0, "power"),
    ("BOARD_POWER_LIMIT_REQUESTED_WATTS", "power_limit_requested_w", 1.0, "power"),
    ("GPU_ENERGY_JOULES_TOTAL", "energy_j", 1.0, "power"),
    ("GPU_PSTATE", "performance_state", 1.0, "clocks"),
    ("FAN_SPEED_RATIO", "fan_speed_percent", 100.0, "health"),
    ("PCIE_REPLAY_TOTAL", "pcie_replay_total", 1.0, "pcie"),
    ("FB_CAPACITY_BYTES", "memory_total_mib", _MIB, "memory"),
    ("FB_TOTAL_BYTES", "memory_total_mib", _MIB, "memory"),
    ("FB_USED_BYTES", "memory_used_mib", _MIB, "memory"),
    ("FB_FREE_BYTES", "memory_free_mib", _MIB, "memory"),
    ("FB_RESERVED_BYTES", "memory_reserved_mib", _MIB, "memory"),
    ("BAR1_CAPACITY_BYTES", "bar1_total_mib", _MIB, "memory"),
    ("BAR1_USED_BYTES", "bar1_used_mib", _MIB, "memory"),
    ("ECC_MODE", "ecc_mode", 1.0, "errors"),
    ("SRAM_EXCEEDED", "ecc_sram_threshold_exceeded", 1.0, "errors"),
    ("PAGE_RETIRED_SBE_TOTAL", "retired_pages_sbe", 1.0, "errors"),
    ("PAGE_RETIRED_DBE_TOTAL", "retired_pages_dbe", 1.0, "errors"),
    ("ROW_REMAP_UNCORRECTABLE_TOTAL", "row_remap_uncorrected", 1.0, "errors"),
    ("ROW_REMAP_CORRECTABLE_TOTAL", "row_remap_corrected", 1.0, "errors"),
    ("ROW_REMAP_FAILED", "row_remap_failed", 1.0, "errors"),
    ("BANK_REMAP_AVAIL_MAX", "row_remap_banks_max", 1.0, "errors"),
    ("BANK_REMAP_AVAIL_HIGH", "row_remap_banks_high", 1.0, "errors"),
    ("BANK_REMAP_AVAIL_PARTIAL", "row_remap_banks_partial", 1.0, "errors"),
    ("BANK_REMAP_AVAIL_LOW", "row_remap_banks_low", 1.0, "errors"),
    ("BANK_REMAP_AVAIL_NONE", "row_remap_banks_none", 1.0, "errors"),
    ("NVLINK_CRC_FLIT_ERROR_TOTAL", "nvlink_crc_flit_errors", 1.0, "nvlink"),
    ("NVLINK_CRC_DATA_ERROR_TOTAL", "nvlink_crc_data_errors", 1.0, "nvlink"),
    ("NVLINK_REPLAY_ERROR_TOTAL", "nvlink_replay_errors", 1.0, "nvlink"),
    ("NVLINK_RECOVERY_ERROR_TOTAL", "nvlink_recovery_errors", 1.0, "nvlink"),
)

# Counters of the data link layer: what boards count that have none of the totals above.
_SECOND: Final = (
    (("NVLINK_ERROR_DL_CRC", "NVLINK_CRC_ERROR_TOTAL"), "nvlink_crc_flit_errors"),
    (("NVLINK_ERROR_DL_REPLAY", "NVLINK_REPLAY_TOTAL"), "nvlink_replay_errors"),
    (("NVLINK_ERROR_DL_RECOVERY", "NVLINK_RECOVERY_TOTAL"), "nvlink_recovery_errors"),
    (("NVLINK_COUNT_LINK_RECOVERY_EVENTS",), "nvlink_recovery_errors"),
)

# Shares of time that say nothing of a MIG instance.
_SHARES: Final = (
    ("GPU_UTIL", "utilization"),
    ("MEM_COPY_UTIL", "memory_utilization"),
    ("ENC_UTIL", "encoder_utilization"),
    ("DEC_UTIL", "decoder_utilization"),
)

# Ratios from 0 to 1; the activity of an instance is its own. Both names, the same unit.
_PROFILING: Final = (
    (("GR_ENGINE_ACTIVE", "GR_ENGINE_UTIL_RATIO"), "graphics_activity"),
    (("SM_ACTIVE", "SM_UTIL_RATIO"), "sm_activity"),
    (("SM_OCCUPANCY", "SM_OCCUPANCY_RATIO"), "sm_occupancy"),
    (("PIPE_TENSOR_ACTIVE", "TENSOR_UTIL_RATIO"), "tensor_activity"),
    (("DRAM_ACTIVE", "DRAM_UTIL_RATIO"), "dram_activity"),
)

# Bytes per second already, though some CSV files call them counters.
_RATES: Final = (
    ("PCIE_TX_BYTES", "pcie_tx_bytes_per_s", "pcie"),
    ("PCIE_RX_BYTES", "pcie_rx_bytes_per_s", "pcie"),
    ("NVLINK_TX_BYTES", "nvlink_tx_bytes_per_s", "nvlink"),
    ("NVLINK_RX_BYTES", "nvlink_rx_bytes_per_s", "nvlink"),
)

# `--use-old-namespace`: the names of dcgm-exporter 1.x, and the field each one stands for.
_OLD_NAMESPACE: Final = (
    ("sm_clock", "SM_CLOCK"),
    ("memory_clock", "MEM_CLOCK"),
    ("memory_temp", "MEMORY_TEMP"),
    ("gpu_temp", "GPU_TEMP"),
    ("power_usage", "POWER_USAGE"),
    ("total_energy_consumption", "TOTAL_ENERGY_CONSUMPTION"),
    ("pcie_tx_throughput", "PCIE_TX_THROUGHPUT"),
    ("pcie_rx_throughput", "PCIE_RX_THROUGHPUT"),
    ("pcie_replay_counter", "PCIE_REPLAY_COUNTER"),
    ("gpu_utilization", "GPU_UTIL"),
    ("mem_copy_utilization", "MEM_COPY_UTIL"),
    ("enc_utilization", "ENC_UTIL"),
    ("dec_utilization", "DEC_UTIL"),
    ("xid_errors", "XID_ERRORS"),
    ("ecc_sbe_volatile_total", "ECC_SBE_VOL_TOTAL"),
    ("ecc_dbe_volatile_total", "ECC_DBE_VOL_TOTAL"),
    ("ecc_sbe_aggregate_total", "ECC_SBE_AGG_TOTAL"),
    ("ecc_dbe_aggregate_total", "ECC_DBE_AGG_TOTAL"),
    ("retired_pages_sbe", "RETIRED_SBE"),
    ("retired_pages_dbe", "RETIRED_DBE"),
    ("retired_pages_pending", "RETIRED_PENDING"),
    ("nvlink_flit_crc_error_count_total", "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"),
    ("nvlink_data_crc_error_count_total", "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"),
    ("nvlink_replay_error_count_total", "NVLINK_REPLAY_ERROR_COUNT_TOTAL"),
    ("nvlink_recovery_error_count_total", "NVLINK_RECOVERY_ERROR_COUNT_TOTAL"),
    ("nvlink_bandwidth_total", "NVLINK_BANDWIDTH_TOTAL"),
    ("fb_total", "FB_TOTAL"),
    ("fb_free", "FB_FREE"),
    ("fb_used", "FB_USED"),
    ("fb_reserved", "FB_RESERVED"),
)


def _current() -> Iterator[MetricRule]:
    dev, prof = "DCGM_FI_DEV_", "DCGM_FI_PROF_"
    for field, quantity, scale, group in _DEVICE:
        yield MetricRule(dev + field, "dcgm", quantity, scale, group)
    for fields, quantity in _SECOND:
        for field in fields:
            yield MetricRule(dev + field, "dcgm", quantity, 1.0, "nvlink", order=1)
    for field, quantity in _SHARES:
        yield MetricRule(dev + field, "dcgm", quantity, instances=False)
        yield MetricRule(f"{dev}{field}_RATIO", "dcgm", quantity, 100.0, doubt=_RATIO, instances=False)
    for fields, quantity in _PROFILING:
        for field in fields:
            yield MetricRule(prof + field, "dcgm", quantity, 100.0, "profiling")
    for field, quantity, group in _RATES:
        yield MetricRule(prof + field, "dcgm", quantity, 1.0, group)
    for field in ("RETIRED_PENDING", "PAGE_RETIRED_PENDING"):
        yield MetricRule(dev + field, "dcgm", "retired_pages_pending", 1.0, "errors")
    for field in ("XID_ERRORS", "XID_ERROR"):
        yield MetricRule(dev + field, "dcgm", "last_xid", 1.0, "health", Role.XID_LAST)
    yield MetricRule("DCGM_EXP_XID_ERRORS_COUNT", "dcgm", "", 1.0, "health", Role.XID_WINDOW)
    yield MetricRule("DCGM_EXP_XID_ERRORS_TOTAL", "dcgm", "", 1.0, "health", Role.XID_COUNT)
    yield MetricRule("DCGM_EXP_GPU_HEALTH_STATUS", "dcgm", "exporter_health", 1.0, "health", Role.HEALTH)
    yield MetricRule("DCGM_EXP_CLOCK_EVENTS_COUNT", "dcgm", "clock_events_lately", 1.0, "clocks", Role.CLOCK_EVENTS)
    for name in ("DCGM_FI_DEV_FABRIC_MANAGER_STATUS", "DCGM_FI_DEV_FABRIC_STATE"):
        yield MetricRule(name, "dcgm", "fabric_state", 1.0, "nvlink", Role.CODE, words=_FABRIC_WORDS)
    yield MetricRule(
        dev + "NVLINK_THROUGHPUT_TOTAL",
        "dcgm",
        "nvlink_throughput_bytes_per_s",
        1.0,
        "nvlink",
        doubt=Doubt.MEGABYTES_OR_BYTES,
    )


def _old(current: dict[str, MetricRule]) -> Iterator[MetricRule]:
    for name, field in _OLD_NAMESPACE:
        rule = current["DCGM_FI_DEV_" + field]
        yield MetricRule(
            "dcgm_" + name, "dcgm", rule.quantity, rule.scale, rule.group, rule.role, instances=rule.instances
        )


def _table() -> tuple[MetricRule, ...]:
    current = {rule.name: rule for rule in _current()}
    return (*current.values(), *_old(current))


DCGM: Final = _table()
"""Every name of dcgm-exporter that gputop reads."""
