"""nvidia_gpu_exporter's names (`nvidia_smi_*`): SI units, one series for each field that the board has.

Fields that read N/A are left out by that exporter, so an absent series is normal. Left out here on purpose:
mig_pcie_throughput_… (traffic of an instance, where traffic is the board's), attached and count fields (the
series themselves are counted).
"""

from collections.abc import Iterator
from typing import Final

from gputop.sources.metrics.rule import MetricRule, Role

_P: Final = "nvidia_smi_"
_NAME: Final = "nvidia_gpu_exporter"
_MIB: Final = 1.0 / (1024.0 * 1024.0)

# Name without the prefix, quantity, factor, group.
_VALUES: Final = (
    ("utilization_gpu_ratio", "utilization", 100.0, "core"),
    ("utilization_memory_ratio", "memory_utilization", 100.0, "core"),
    ("utilization_encoder_ratio", "encoder_utilization", 100.0, "core"),
    ("utilization_decoder_ratio", "decoder_utilization", 100.0, "core"),
    ("utilization_jpeg_ratio", "jpeg_utilization", 100.0, "core"),
    ("utilization_ofa_ratio", "ofa_utilization", 100.0, "core"),
    ("memory_total_bytes", "memory_total_mib", _MIB, "memory"),
    ("memory_used_bytes", "memory_used_mib", _MIB, "memory"),
    ("memory_free_bytes", "memory_free_mib", _MIB, "memory"),
    ("memory_reserved_bytes", "memory_reserved_mib", _MIB, "memory"),
    ("temperature_gpu", "temperature_c", 1.0, "core"),
    ("temperature_memory", "memory_temperature_c", 1.0, "core"),
    # A margin that counts down, not a temperature.
    ("temperature_gpu_tlimit", "temperature_margin_c", 1.0, "health"),
    ("fan_speed_ratio", "fan_speed_percent", 100.0, "health"),
    ("power_draw_watts", "power_w", 1.0, "core"),
    ("power_draw_average_watts", "power_average_w", 1.0, "power"),
    ("power_draw_instant_watts", "power_instant_w", 1.0, "power"),
    ("enforced_power_limit_watts", "power_limit_w", 1.0, "power"),
    ("power_limit_watts", "power_limit_requested_w", 1.0, "power"),
    ("power_default_limit_watts", "power_limit_default_w", 1.0, "power"),
    ("power_max_limit_watts", "power_limit_max_w", 1.0, "power"),
    ("energy_joules_total", "energy_j", 1.0, "power"),
    ("clocks_current_sm_clock_hz", "sm_clock_mhz", 1e-6, "core"),
    ("clocks_current_graphics_clock_hz", "graphics_clock_mhz", 1e-6, "clocks"),
    ("clocks_current_memory_clock_hz", "memory_clock_mhz", 1e-6, "clocks"),
    ("clocks_current_video_clock_hz", "video_clock_mhz", 1e-6, "clocks"),
    ("clocks_max_sm_clock_hz", "sm_clock_max_mhz", 1e-6, "clocks"),
    ("clocks_max_memory_clock_hz", "memory_clock_max_mhz", 1e-6, "clocks"),
    ("pstate", "performance_state", 1.0, "clocks"),
    ("clocks_event_reasons_active", "clock_event_reasons", 1.0, "clocks"),
    ("clocks_throttle_reasons_active", "clock_event_reasons", 1.0, "clocks"),
    ("clocks_event_reasons_counters_sw_power_cap_seconds", "clock_event_power_cap_ns", 1e9, "clocks"),
    ("clocks_event_reasons_counters_sync_boost_seconds", "clock_event_sync_boost_ns", 1e9, "clocks"),
    ("clocks_event_reasons_counters_sw_thermal_slowdown_seconds", "clock_event_sw_thermal_ns", 1e9, "clocks"),
    ("clocks_event_reasons_counters_hw_thermal_slowdown_seconds", "clock_event_hw_thermal_ns", 1e9, "clocks"),
    (
        "clocks_event_reasons_counters_hw_power_brake_slowdown_seconds",
        "clock_event_power_brake_ns",
        1e9,
        "clocks",
    ),
    ("pcie_link_gen_current", "pcie_generation", 1.0, "pcie"),
    ("pcie_link_gen_max", "pcie_generation_max", 1.0, "pcie"),
    ("pcie_link_width_current", "pcie_width", 1.0, "pcie"),
    ("pcie_link_width_max", "pcie_width_max", 1.0, "pcie"),
    ("pcie_throughput_rx_bytes_per_second", "pcie_rx_bytes_per_s", 1.0, "pcie"),
    ("pcie_throughput_tx_bytes_per_second", "pcie_tx_bytes_per_s", 1.0, "pcie"),
    # Of GPU instances, which the label gpu_instance_id tells.
    ("mig_memory_total_bytes", "memory_total_mib", _MIB, "memory"),
    ("mig_memory_used_bytes", "memory_used_mib", _MIB, "memory"),
    ("mig_memory_free_bytes", "memory_free_mib", _MIB, "memory"),
    ("mig_memory_reserved_bytes", "memory_reserved_mib", _MIB, "memory"),
    ("mig_graphics_activity_ratio", "graphics_activity", 100.0, "profiling"),
    ("mig_sm_activity_ratio", "sm_activity", 100.0, "profiling"),
    ("mig_sm_occupancy_ratio", "sm_occupancy", 100.0, "profiling"),
    ("mig_tensor_activity_ratio", "tensor_activity", 100.0, "profiling"),
    ("pcie_replay_counter", "pcie_replay_total", 1.0, "pcie"),
    ("ecc_mode_current", "ecc_mode", 1.0, "errors"),
    ("ecc_mode_pending", "ecc_mode_pending", 1.0, "errors"),
    ("ecc_errors_uncorrected_aggregate_sram_threshold_exceeded", "ecc_sram_threshold_exceeded", 1.0, "errors"),
    ("remapped_rows_correctable", "row_remap_corrected", 1.0, "errors"),
    ("remapped_rows_uncorrectable", "row_remap_uncorrected", 1.0, "errors"),
    ("remapped_rows_pending", "row_remap_pending", 1.0, "errors"),
    ("remapped_rows_failure", "row_remap_failed", 1.0, "errors"),
    ("retired_pages_single_bit_ecc_count", "retired_pages_sbe", 1.0, "errors"),
    ("retired_pages_double_bit_count", "retired_pages_dbe", 1.0, "errors"),
    ("retired_pages_pending", "retired_pages_pending", 1.0, "errors"),
    ("gpu_recovery_action", "recovery_action", 1.0, "health"),
    ("persistence_mode", "persistence_mode", 1.0, "identity"),
    ("display_attached", "display_attached", 1.0, "identity"),
    ("display_active", "display_active", 1.0, "identity"),
    ("mig_mode_current", "mig_mode", 1.0, "identity"),
    ("mig_mode_pending", "mig_mode_pending", 1.0, "identity"),
)

_BANKS: Final = ("max", "high", "partial", "low", "none")

# NVML's bitmask of clock-event reasons (nvml.h, nvmlClocksEventReason*).
_REASONS: Final = (
    ("gpu_idle", 0x1),
    ("applications_clocks_setting", 0x2),
    ("sw_power_cap", 0x4),
    ("hw_slowdown", 0x8),
    ("sync_boost", 0x10),
    ("sw_thermal_slowdown", 0x20),
    ("hw_thermal_slowdown", 0x40),
    ("hw_power_brake_slowdown", 0x80),
    ("display_clocks_setting", 0x100),
)
_FABRIC: Final = ((0.0, "not supported"), (1.0, "not started"), (2.0, "in progress"), (3.0, "completed"))
_COMPUTE: Final = ((0.0, "Default"), (1.0, "Exclusive_Thread"), (2.0, "Prohibited"), (3.0, "Exclusive_Process"))


def _errors() -> Iterator[MetricRule]:
    for kind in ("corrected", "uncorrected"):
        for life in ("volatile", "aggregate"):
            for place, inner in (("total", ""), ("dram", "dram_"), ("sram", "sram_")):
                yield MetricRule(
                    f"{_P}ecc_errors_{kind}_{life}_{place}", _NAME, f"ecc_{life}_{inner}{kind}", group="errors"
                )


def _table() -> Iterator[MetricRule]:
    for name, quantity, scale, group in _VALUES:
        yield MetricRule(_P + name, _NAME, quantity, scale, group)
    for bank in _BANKS:
        name = f"{_P}remapped_rows_histogram_{bank}"
        yield MetricRule(name, _NAME, f"row_remap_banks_{bank}", group="errors")
    yield from _errors()
    for spelling in ("clocks_event_reasons_", "clocks_throttle_reasons_"):
        for reason, bit in _REASONS:
            yield MetricRule(
                _P + spelling + reason,
                _NAME,
                "clock_event_reasons",
                float(bit),
                "clocks",
                Role.REASON,
                order=1,
            )
    yield MetricRule(_P + "fabric_state", _NAME, "fabric_state", 1.0, "nvlink", Role.CODE, words=_FABRIC)
    yield MetricRule(_P + "compute_mode", _NAME, "compute_mode", 1.0, "identity", Role.CODE, words=_COMPUTE)
    for info in ("gpu_info", "mig_info"):
        yield MetricRule(_P + info, _NAME, "", 1.0, "identity", Role.INFO)
    yield MetricRule(_P + "xid_errors_total", _NAME, "", 1.0, "health", Role.XID_COUNT)
    yield MetricRule(_P + "xid_last_timestamp_seconds", _NAME, "", 1.0, "health", Role.XID_TIME)
    yield MetricRule(_P + "last_collect_success", _NAME, "", 1.0, "exporter", Role.COLLECT)


NVIDIA_SMI: Final = tuple(_table())
"""Every name of nvidia_gpu_exporter that gputop reads."""
