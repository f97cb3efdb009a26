"""Names of the other exporters.

nvitop-exporter, AMD's device-metrics-exporter, GKE's system metrics, OpenShift's recording rules,
kube-state-metrics and Prometheus' own `up`.

Left out on purpose: AMD's gpu_afid_errors (AMD's own fault numbers, which are no Xids), gpu_violation_… (shares
and counts under one name, by firmware) and gpu_ecc_deferred_total (neither corrected nor uncorrected yet);
nvitop's host_… and per-link series (the host is not ours to watch, the totals tell the same).
"""

from typing import Final

from gputop.sources.metrics.processes import PARTS
from gputop.sources.metrics.rule import MetricRule, Role

_MIB: Final = 1.0 / (1024.0 * 1024.0)


def _values(exporter: str, lines: tuple[tuple[str, str, float, str], ...], order: int) -> list[MetricRule]:
    return [MetricRule(name, exporter, quantity, scale, group, order=order) for name, quantity, scale, group in lines]


# prometheus_client appends the unit, hence the mixed case.
_NVITOP: Final = (
    ("gpu_utilization_Percentage", "utilization", 1.0, "core"),
    ("gpu_memory_utilization_Percentage", "memory_utilization", 1.0, "core"),
    ("gpu_encoder_utilization_Percentage", "encoder_utilization", 1.0, "core"),
    ("gpu_decoder_utilization_Percentage", "decoder_utilization", 1.0, "core"),
    ("gpu_memory_total_MiB", "memory_total_mib", 1.0, "memory"),
    ("gpu_memory_used_MiB", "memory_used_mib", 1.0, "memory"),
    ("gpu_memory_free_MiB", "memory_free_mib", 1.0, "memory"),
    ("gpu_temperature_C", "temperature_c", 1.0, "core"),
    ("gpu_fan_speed_Percentage", "fan_speed_percent", 1.0, "health"),
    ("gpu_power_usage_W", "power_w", 1.0, "core"),
    ("gpu_power_limit_W", "power_limit_w", 1.0, "power"),
    ("gpu_clock_sm_MHz", "sm_clock_mhz", 1.0, "core"),
    ("gpu_clock_graphics_MHz", "graphics_clock_mhz", 1.0, "clocks"),
    ("gpu_clock_memory_MHz", "memory_clock_mhz", 1.0, "clocks"),
    ("gpu_clock_video_MHz", "video_clock_mhz", 1.0, "clocks"),
    ("gpu_pcie_rx_throughput_MiBps", "pcie_rx_bytes_per_s", 1024.0 * 1024.0, "pcie"),
    ("gpu_pcie_tx_throughput_MiBps", "pcie_tx_bytes_per_s", 1024.0 * 1024.0, "pcie"),
    ("gpu_nvlink_total_rx_throughput_MiBps", "nvlink_rx_bytes_per_s", 1024.0 * 1024.0, "nvlink"),
    ("gpu_nvlink_total_tx_throughput_MiBps", "nvlink_tx_bytes_per_s", 1024.0 * 1024.0, "nvlink"),
)

# AMD device-metrics-exporter, without the prefix a site may have configured. VRAM is told in MB as the
# driver's MiB, energy in µJ.
_AMD: Final = (
    ("gpu_gfx_activity", "utilization", 1.0, "core"),
    ("gpu_umc_activity", "memory_utilization", 1.0, "core"),
    ("gpu_total_vram", "memory_total_mib", 1.0, "memory"),
    ("gpu_used_vram", "memory_used_mib", 1.0, "memory"),
    ("gpu_free_vram", "memory_free_mib", 1.0, "memory"),
    ("gpu_memory_temperature", "memory_temperature_c", 1.0, "core"),
    ("gpu_package_power", "power_w", 1.0, "core"),
    ("gpu_energy_consumed", "energy_j", 1e-6, "power"),
    ("gpu_ecc_correct_total", "ecc_volatile_corrected", 1.0, "errors"),
    ("gpu_ecc_uncorrect_total", "ecc_volatile_uncorrected", 1.0, "errors"),
)
# MI3xx has a junction sensor and package power, MI2xx an edge sensor and an average.
_AMD_SECOND: Final = (
    ("gpu_junction_temperature", "temperature_c", 1.0, "core", 0),
    ("gpu_edge_temperature", "temperature_c", 1.0, "core", 1),
    ("gpu_average_package_power", "power_w", 1.0, "core", 1),
    ("gpu_power_usage", "power_w", 1.0, "core", 2),
    ("gpu_hbm_temperature", "memory_temperature_c", 1.0, "core", 1),
)
# gpu_clock is every clock, told apart by a label that was spelt in two ways; a board has several of a type
# (one for each die), of which the fastest counts.
_AMD_CLOCKS: Final = tuple(
    (spelling, quantity)
    for name, quantity in (("system", "sm_clock_mhz"), ("memory", "memory_clock_mhz"), ("video", "video_clock_mhz"))
    for spelling in (name, f"GPU_CLOCK_TYPE_{name.upper()}")
)

# Google's spelling in PromQL (":" after the domain) and the one of its own exporter.
_GKE: Final = (
    ("kubernetes_io:container_accelerator_duty_cycle", "utilization", 1.0, "core"),
    ("kubernetes_io:container_accelerator_memory_used", "memory_used_mib", _MIB, "memory"),
    ("kubernetes_io:container_accelerator_memory_total", "memory_total_mib", _MIB, "memory"),
)

# gpu-operator's recording rules for OpenShift. The memory ones are left out: accelerator_memory_used_bytes
# holds MEM_COPY_UTIL, a percentage, and accelerator_memory_total_bytes MiB. The clocks hold MHz despite
# their names (gpu-operator, 1000_prometheus_rule_openshift.yaml).
_OPENSHIFT: Final = (
    ("accelerator_gpu_utilization", "utilization", 1.0, "core"),
    ("accelerator_power_usage_watts", "power_w", 1.0, "core"),
    ("accelerator_temperature_celsius", "temperature_c", 1.0, "core"),
    ("accelerator_sm_clock_hertz", "sm_clock_mhz", 1.0, "core"),
    ("accelerator_memory_clock_hertz", "memory_clock_mhz", 1.0, "clocks"),
)

_KUBERNETES: Final = (
    ("kube_pod_container_resource_requests", "workloads"),
    ("kube_pod_container_resource_limits", "workloads"),
    ("kube_pod_status_phase", "workloads"),
    ("kube_pod_info", "workloads"),
    ("kube_pod_owner", "workloads"),
    ("kube_pod_created", "workloads"),
    ("kube_node_status_capacity", "nodes"),
    ("kube_node_status_allocatable", "nodes"),
    ("kube_node_spec_unschedulable", "nodes"),
    ("kube_node_spec_taint", "nodes"),
    ("kube_node_status_condition", "nodes"),
    ("kube_node_labels", "nodes"),
)

AMD: Final = (
    *_values("amd", _AMD, 0),
    *(MetricRule(n, "amd", q, s, g, order=o) for n, q, s, g, o in _AMD_SECOND),
    MetricRule("gpu_clock", "amd", "", 1.0, "clocks", Role.CHOICE, label="clock_type", choices=_AMD_CLOCKS),
    MetricRule("gpu_health", "amd", "exporter_health", 1.0, "health", Role.HEALTH),
)
"""AMD's names without a site's prefix."""

OTHERS: Final = (
    *_values("nvitop", _NVITOP, 0),
    *_values("gke", _GKE, 5),
    *_values("openshift", _OPENSHIFT, 9),
    *(MetricRule(name, "kube-state-metrics", group=group, role=Role.KUBERNETES) for name, group in _KUBERNETES),
    *(MetricRule(name, exporter, "", group="processes", role=Role.PROCESS) for name, exporter, _, _ in PARTS),
    MetricRule("up", "prometheus", group="exporter", role=Role.UP),
)
"""Every name of the other exporters that gputop reads."""
