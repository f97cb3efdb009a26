"""nvidia_gpu_exporter: ``nvidia_smi_*`` names, SI units, and an info series to join on.

A field that the board does not have is left out, as that exporter does.
"""

from collections.abc import Callable, Mapping

from gputop.demo import counters
from gputop.demo.exporters.node import Metric, NodeExporter, Subject
from gputop.demo.state import GpuState
from gputop.demo.world import Gpu, Load, MigInstance, Node

_P = "nvidia_smi_"
_MIB = 1024.0 * 1024.0

_GAUGES: tuple[tuple[str, str, Callable[[Subject, GpuState], float | None]], ...] = (
    ("utilization_gpu_ratio", "utilization.gpu [%]", lambda _one, state: round(state.utilization, 2)),
    ("utilization_memory_ratio", "utilization.memory [%]", lambda _one, state: round(state.memory_busy, 2)),
    ("utilization_encoder_ratio", "utilization.encoder [%]", lambda _one, state: round(state.encoder, 2)),
    ("utilization_decoder_ratio", "utilization.decoder [%]", lambda _one, state: round(state.decoder, 2)),
    ("memory_used_bytes", "memory.used [MiB]", lambda _one, state: int(state.memory_used_mib) * _MIB),
    (
        "memory_free_bytes",
        "memory.free [MiB]",
        lambda one, state: (one.gpu.model.memory_mib - one.gpu.model.reserved_mib - int(state.memory_used_mib)) * _MIB,
    ),
    ("temperature_gpu", "temperature.gpu", lambda _one, state: round(state.temperature_c)),
    (
        "temperature_gpu_tlimit",
        "temperature.gpu.tlimit",
        lambda one, state: round(one.gpu.model.slowdown_c - state.temperature_c) if one.gpu.model.margin else None,
    ),
    (
        "temperature_memory",
        "temperature.memory",
        lambda one, state: round(state.memory_temperature_c) if one.gpu.model.memory_sensor else None,
    ),
    ("power_draw_watts", "power.draw [W]", lambda _one, state: round(state.power_w, 2)),
    ("power_draw_instant_watts", "power.draw.instant [W]", lambda _one, state: round(state.power_w, 2)),
    (
        "enforced_power_limit_watts",
        "enforced.power.limit [W]",
        lambda _one, state: state.power_limit_w or None,
    ),
    ("power_limit_watts", "power.limit [W]", lambda _one, state: state.power_limit_w or None),
    ("clocks_current_sm_clock_hz", "clocks.current.sm [MHz]", lambda _one, state: state.sm_clock_mhz * 1e6),
    (
        "clocks_current_memory_clock_hz",
        "clocks.current.memory [MHz]",
        lambda _one, state: state.memory_clock_mhz * 1e6 or None,
    ),
    ("clocks_event_reasons_active", "clocks_event_reasons.active", lambda _one, state: state.reasons),
    ("pstate", "pstate", lambda _one, state: state.performance_state),
    (
        "fan_speed_ratio",
        "fan.speed [%]",
        lambda one, state: round(state.fan, 2) if one.gpu.model.fans else None,
    ),
)


def _ecc(error: str, *, aggregate: bool) -> Callable[[Subject, float], float | None]:
    def read(subject: Subject, t: float) -> float | None:
        if not subject.gpu.model.ecc:
            return None
        found = counters.ecc(subject.gpu, t, aggregate=aggregate)
        if error == "corrected":
            return float(found.corrected_dram + found.corrected_sram)
        return float(found.uncorrected_dram + found.uncorrected_sram)

    return read


def _remap(member: str) -> Callable[[Subject, float], float | None]:
    def read(subject: Subject, t: float) -> float | None:
        return float(getattr(counters.remap(subject.gpu, t), member)) if subject.gpu.model.remap_banks else None

    return read


_COUNTS: tuple[tuple[str, str, Callable[[Subject, float], float | None]], ...] = (
    ("memory_total_bytes", "memory.total [MiB]", lambda one, _t: one.gpu.model.memory_mib * _MIB),
    ("memory_reserved_bytes", "memory.reserved [MiB]", lambda one, _t: one.gpu.model.reserved_mib * _MIB),
    ("energy_joules_total", "Total energy consumption.", lambda one, t: counters.energy_mj(one.gpu, t) / 1e3),
    (
        "ecc_errors_corrected_volatile_total",
        "ecc.errors.corrected.volatile.total",
        _ecc("corrected", aggregate=False),
    ),
    (
        "ecc_errors_uncorrected_volatile_total",
        "ecc.errors.uncorrected.volatile.total",
        _ecc("uncorrected", aggregate=False),
    ),
    (
        "ecc_errors_corrected_aggregate_total",
        "ecc.errors.corrected.aggregate.total",
        _ecc("corrected", aggregate=True),
    ),
    (
        "ecc_errors_uncorrected_aggregate_total",
        "ecc.errors.uncorrected.aggregate.total",
        _ecc("uncorrected", aggregate=True),
    ),
    ("remapped_rows_correctable", "remapped_rows.correctable", _remap("correctable")),
    ("remapped_rows_uncorrectable", "remapped_rows.uncorrectable", _remap("uncorrectable")),
    ("remapped_rows_pending", "remapped_rows.pending", _remap("pending")),
    ("remapped_rows_failure", "remapped_rows.failure", _remap("failed")),
    (
        "gpu_recovery_action",
        "gpu_recovery_action",
        lambda one, t: float(counters.recovery_action(one.gpu, t)),
    ),
    ("index", "index", lambda one, _t: float(one.gpu.index)),
    (
        "mig_mode_current",
        "mig.mode.current",
        lambda one, _t: float(bool(one.instance)) if one.gpu.model.mig else None,
    ),
)


def exporter(node: Node) -> NodeExporter:
    """Build the nvidia_gpu_exporter of a node."""
    metrics = [Metric(_P + name, "gauge", words, gauge=read) for name, words, read in _GAUGES]
    metrics += [Metric(_P + name, "gauge", words, counter=read) for name, words, read in _COUNTS]
    metrics.append(
        Metric(
            _P + "gpu_info",
            "gauge",
            "A metric with a constant '1' value labeled by gpu uuid, name, driver and bus id.",
            counter=lambda _one, _t: 1.0,
            adds=_info,
        )
    )
    return NodeExporter(node, metrics, _labels)


def _info(subject: Subject, _t: float) -> Mapping[str, str]:
    gpu = subject.gpu
    return {
        "name": gpu.model.name,
        "index": str(gpu.index),
        "pci_bus_id": gpu.bus_id,
        "serial": gpu.serial,
        "driver_version": gpu.node.group.driver,
        "cuda_version": gpu.node.group.cuda,
        "vbios_version": gpu.model.vbios,
        "compute_cap": ".".join(str(part) for part in gpu.model.compute_capability),
    }


def _labels(gpu: Gpu, _instance: MigInstance | None, _loads: tuple[Load, ...]) -> Mapping[str, str]:
    return {"uuid": gpu.uuid.removeprefix("GPU-")}
