"""Names of exporters other than dcgm-exporter."""

from collections.abc import Iterator
from typing import Final

from gputop.sources.metrics.rule import Doubt, MetricRule, Role

_MIB: Final = 2.0**-20
_MHZ: Final = 1e-6

# nvidia_gpu_exporter: the columns of `nvidia-smi --query-gpu`, the unit in the suffix. Ratios are 0 to 1.
_SMI: Final = (
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
    ("temperature_gpu_tlimit", "temperature_margin_c", 1.0, "health"),
    ("fan_speed_ratio", "fan_speed_percent", 100.0, "health"),
    ("power_draw_watts", "power_w", 1.0, "core"),
    ("power_draw_average_watts", "power_average_w", 1.0, "power"),
    ("power_draw_instant_watts", "power_instant_w", 1.0, "power"),
    ("module_power_draw_average_watts", "power_module_w", 1.0, "power"),
    ("enforced_power_limit_watts", "power_limit_w", 1.0, "power"),
    ("power_limit_watts", "power_limit_requested_w", 1.0, "power"),
    ("power_default_limit_watts", "power_limit_default_w", 1.0, "power"),
    ("power_max_limit_watts", "power_limit_max_w", 1.0, "power"),
    ("energy_joules_total", "energy_j", 1.0, "power"),
    ("clocks_current_sm_clock_hz", "sm_clock_mhz", _MHZ, "core"),
    ("clocks_current_graphics_clock_hz", "graphics_clock_mhz", _MHZ, "clocks"),
    ("clocks_current_memory_clock_hz", "memory_clock_mhz", _MHZ, "clocks"),
    ("clocks_current_video_clock_hz", "video_clock_mhz", _MHZ, "clocks"),
    ("clocks_max_sm_clock_hz", "sm_clock_max_mhz", _MHZ, "clocks"),
    ("clocks_max_memory_clock_hz", "memory_clock_max_mhz", _MHZ, "clocks"),
    ("pstate", "performance_state", 1.0, "clocks"),
    ("clocks_event_reasons_active", "clock_event_reasons", 1.0, "clocks"),
    ("clocks_throttle_reasons_active", "clock_event_reasons", 1.0, "clocks"),
    ("pcie_link_gen_current", "pcie_generation", 1.0, "pcie"),
    ("pcie_link_gen_gpucurrent", "pcie_generation", 1.0, "pcie"),
    ("pcie_link_gen_max", "pcie_generation_max", 1.0, "pcie"),
    ("pcie_link_width_current", "pcie_width", 1.0, "pcie"),
    ("pcie_link_width_max", "pcie_width_max", 1.0, "pcie"),
    ("ecc_mode_current", "ecc_mode", 1.0, "errors"),
    ("ecc_mode_pending", "ecc_mode_pending", 1.0, "errors"),
    ("ecc_errors_corrected_volatile_total", "ecc_volatile_corrected", 1.0, "errors"),
    ("ecc_errors_uncorrected_volatile_total", "ecc_volatile_uncorrected", 1.0, "errors"),
    ("ecc_errors_corrected_aggregate_total", "ecc_aggregate_corrected", 1.0, "errors"),
    ("ecc_errors_uncorrected_aggregate_total", "ecc_aggregate_uncorrected", 1.0, "errors"),
    ("ecc_errors_corrected_volatile_dram", "ecc_volatile_dram_corrected", 1.0, "errors"),
    ("ecc_errors_uncorrected_volatile_dram", "ecc_volatile_dram_uncorrected", 1.0, "errors"),
    ("ecc_errors_corrected_volatile_sram", "ecc_volatile_sram_corrected", 1.0, "errors"),
    ("ecc_errors_uncorrected_volatile_sram", "ecc_volatile_sram_uncorrected", 1.0, "errors"),
    ("ecc_errors_corrected_aggregate_dram", "ecc_aggregate_dram_corrected", 1.0, "errors"),
    ("ecc_errors_uncorrected_aggregate_dram", "ecc_aggregate_dram_uncorrected", 1.0, "errors"),
    ("ecc_errors_corrected_aggregate_sram", "ecc_aggregate_sram_corrected", 1.0, "errors"),
    ("ecc_errors_uncorrected_aggregate_sram", "ecc_aggregate_sram_uncorrected", 1.0, "errors"),
    ("remapped_rows_correctable", "row_remap_corrected", 1.0, "errors"),
    ("remapped_rows_uncorrectable", "row_remap_uncorrected", 1.0, "errors"),
    ("remapped_rows_pending", "row_remap_pending", 1.0, "errors"),
    ("remapped_rows_failure", "row_remap_failed", 1.0, "errors"),
    ("remapped_rows_histogram_max", "row_remap_banks_max", 1.0, "errors"),
    ("remapped_rows_histogram_high", "row_remap_banks_high", 1.0, "errors"),
    ("remapped_rows_histogram_partial", "row_remap_banks_partial", 1.0, "errors"),
    ("remapped_rows_histogram_low", "row_remap_banks_low", 1.0, "errors"),
    ("remapped_rows_histogram_none", "row_remap_banks_none", 1.0, "errors"),
    ("retired_pages_single_bit_ecc_count", "retired_pages_sbe", 1.0, "errors"),
    ("retired_pages_sbe", "retired_pages_sbe", 1.0, "errors"),
    ("retired_pages_double_bit_count", "retired_pages_dbe", 1.0, "errors"),
    ("retired_pages_dbe", "retired_pages_dbe", 1.0, "errors"),
    ("retired_pages_pending", "retired_pages_pending", 1.0, "errors"),
    ("gpu_recovery_action", "recovery_action", 1.0, "health"),
    ("persistence_mode", "persistence_mode", 1.0, "identity"),
    ("display_attached", "display_attached", 1.0, "identity"),
    ("display_active", "display_active", 1.0, "identity"),
    ("mig_mode_current", "mig_mode", 1.0, "identity"),
    ("mig_mode_pending", "mig_mode_pending", 1.0, "identity"),
)

_NVITOP: Final = (
    ("gpu_utilization_Percentage", "utilization", 1.0),
    ("gpu_memory_utilization_Percentage", "memory_utilization", 1.0),
    ("gpu_encoder_utilization_Percentage", "encoder_utilization", 1.0),
    ("gpu_decoder_utilization_Percentage", "decoder_utilization", 1.0),
    ("gpu_memory_used_MiB", "memory_used_mib", 1.0),
    ("gpu_memory_free_MiB", "memory_free_mib", 1.0),
    ("gpu_memory_total_MiB", "memory_total_mib", 1.0),
    ("gpu_temperature_C", "temperature_c", 1.0),
    ("gpu_power_usage_W", "power_w", 1.0),
    ("gpu_power_limit_W", "power_limit_w", 1.0),
    ("gpu_fan_speed_Percentage", "fan_speed_percent", 1.0),
    ("gpu_clock_sm_MHz", "sm_clock_mhz", 1.0),
    ("gpu_sm_clock_MHz", "sm_clock_mhz", 1.0),
    ("gpu_clock_memory_MHz", "memory_clock_mhz", 1.0),
    ("gpu_memory_clock_MHz", "memory_clock_mhz", 1.0),
)

# AMD device-metrics-exporter; a site may put a prefix such as "amd_" in front, so both are known.
_AMD: Final = (
    ("gpu_gfx_activity", "utilization", 1.0, "core", 0),
    ("gpu_umc_activity", "memory_utilization", 1.0, "core", 0),
    ("gpu_used_vram", "memory_used_mib", 1.0, "memory", 0),
    ("gpu_free_vram", "memory_free_mib", 1.0, "memory", 0),
    ("gpu_total_vram", "memory_total_mib", 1.0, "memory", 0),
    ("gpu_junction_temperature", "temperature_c", 1.0, "core", 0),
    ("gpu_edge_temperature", "temperature_c", 1.0, "core", 1),
    ("gpu_memory_temperature", "memory_temperature_c", 1.0, "core", 0),
    ("gpu_package_power", "power_w", 1.0, "core", 0),
    ("gpu_average_package_power", "power_w", 1.0, "core", 1),
    ("gpu_power_usage", "power_w", 1.0, "core", 2),
    ("gpu_energy_consumed", "energy_j", 1e-6, "power", 0),
    ("gpu_ecc_correct_total", "ecc_volatile_corrected", 1.0, "errors", 0),
    ("gpu_ecc_uncorrect_total", "ecc_volatile_uncorrected", 1.0, "errors", 0),
)

_GKE: Final = (
    ("kubernetes_io:container_accelerator_duty_cycle", "utilization", 1.0),
    ("kubernetes_io:container_accelerator_memory_used", "memory_used_mib", _MIB),
    ("kubernetes_io:container_accelerator_memory_total", "memory_total_mib", _MIB),
)

_KSM: Final = (
    ("kube_node_status_capacity", "nodes"),
    ("kube_node_status_allocatable", "nodes"),
    ("kube_node_spec_unschedulable", "nodes"),
    ("kube_node_status_condition", "nodes"),
    ("kube_pod_container_resource_requests", "workloads"),
    ("kube_pod_container_resource_limits", "workloads"),
    ("kube_pod_status_phase", "workloads"),
    ("kube_pod_info", "workloads"),
    ("kube_pod_owner", "workloads"),
)


def _rules() -> Iterator[MetricRule]:
    for field, quantity, scale, group in _SMI:
        doubt = Doubt.RATIO_OR_PERCENT if field.endswith("_ratio") else Doubt.NONE
        yield MetricRule(f"nvidia_smi_{field}", "nvidia_gpu_exporter", quantity, scale, group, doubt=doubt)
    yield MetricRule("nvidia_smi_gpu_info", "nvidia_gpu_exporter", group="identity", role=Role.INFO)
    yield MetricRule("nvidia_smi_xid_errors_total", "nvidia_gpu_exporter", group="health", role=Role.XID_COUNT)
    for name, quantity, scale in _NVITOP:
        yield MetricRule(name, "nvitop", quantity, scale)
    for name, quantity, scale, group, order in _AMD:
        for prefix in ("", "amd_"):
            yield MetricRule(prefix + name, "amd", quantity, scale, group, order=order)
    for name, quantity, scale in _GKE:
        yield MetricRule(name, "gke", quantity, scale)
    for name, group in _KSM:
        yield MetricRule(name, "kube-state-metrics", group=group, role=Role.KUBERNETES)
    yield MetricRule("up", "prometheus", group="exporter", role=Role.UP)


OTHERS: Final = tuple(_rules())
"""Every name of the other exporters that gputop reads.

OpenShift's accelerator_* recording rules are left out: accelerator_memory_used_bytes holds a percentage
(gpu-operator, 1000_prometheus_rule_openshift.yaml), and the DCGM names they are made from are there too.
"""
