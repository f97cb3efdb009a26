"""dcgm-exporter in five generations: label names, metric names and units as each of them writes them.

What changed with which tag follows the exporter's own CSV files and release notes. The generation is the
exporter's, not the driver's: two nodes of one fleet may well differ.
"""

from collections.abc import Callable, Mapping

import msgspec

from gputop.demo import counters
from gputop.demo.exporters.dcgm_table import DEVICE, ENTRIES, MIB_BYTES, Entry, board, reserved_mib, total_mib
from gputop.demo.exporters.node import Metric, NodeExporter, Subject
from gputop.demo.state import GpuState
from gputop.demo.world import Gpu, Load, MigInstance, Node

# What DCGM writes into a field that the board does not have (dcgm_structs.h, int64 "not supported").
_NOT_SUPPORTED = 9223372036854775794.0


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """What one generation of the exporter writes.

    ``host_label`` is empty before NODE_NAME was used. ``xid_always`` writes 0 before the first Xid,
    ``blank_sensor`` is written for a memory sensor that
    the board lacks (None: the row is left out), ``renamed`` uses the names and units of DCGM 4.7.
    """

    host_label: str = "Hostname"
    bus_id: bool = True
    model: bool = True
    err_code: bool = True
    reserved: bool = True
    xid_always: bool = False
    blank_sensor: float | None = 0.0
    renamed: bool = False
    reasons_name: str = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"
    recovery: bool = False


GENERATIONS: dict[str, Generation] = {
    "dcgm-2.1": Generation(
        host_label="",
        bus_id=False,
        model=False,
        err_code=False,
        reserved=False,
        xid_always=True,
        blank_sensor=_NOT_SUPPORTED,
        reasons_name="DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
    ),
    "dcgm-3.3": Generation(reserved=False, xid_always=True, reasons_name="DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"),
    "dcgm-4.5": Generation(),
    "dcgm-4.6": Generation(host_label="hostname", recovery=True),
    "dcgm-4.9": Generation(host_label="hostname", blank_sensor=None, renamed=True, recovery=True),
}


def exporter(node: Node) -> NodeExporter:
    """Build the dcgm-exporter of a node."""
    generation = GENERATIONS[node.group.exporter]
    return NodeExporter(node, _metrics(node, generation), _label_maker(node, generation))


def _metrics(node: Node, generation: Generation) -> list[Metric]:
    found = [_metric(entry, generation) for entry in ENTRIES if node.group.optional_metrics or not entry.optional]
    found += [_memory_temperature(generation), _xid(generation)]
    if generation.reserved:
        reserved = Entry(
            old=DEVICE + "FB_RESERVED",
            new=DEVICE + "FB_RESERVED_BYTES",
            scale=MIB_BYTES,
            words="Framebuffer memory reserved (in MiB).",
            counter=lambda subject, _t: None if subject.gpu.model.unified else reserved_mib(subject),
        )
        found.append(_metric(reserved, generation))
    if generation.renamed:
        capacity = Entry(
            old="",
            new=DEVICE + "FB_CAPACITY_BYTES",
            scale=MIB_BYTES,
            words="Framebuffer memory size (in bytes).",
            counter=lambda subject, _t: total_mib(subject),
        )
        found.append(_metric(capacity, generation))
    if node.group.optional_metrics:
        found.append(
            Metric(
                generation.reasons_name,
                "gauge",
                "Current clock event reasons (bitmask).",
                gauge=board(lambda state: state.reasons),
            )
        )
        if generation.recovery:
            found.append(
                Metric(
                    DEVICE + "GPU_RECOVERY_ACTION",
                    "gauge",
                    "Recovery action that the driver recommends.",
                    counter=lambda subject, t: float(counters.recovery_action(subject.gpu, t)),
                )
            )
    return found


def _metric(entry: Entry, generation: Generation) -> Metric:
    if not generation.renamed:
        return Metric(entry.old, entry.kind, entry.words, gauge=entry.gauge, counter=entry.counter)
    scale, gauge, counter = entry.scale, entry.gauge, entry.counter
    # The old words name the old unit.
    words = entry.words.split(" (in")[0].rstrip(".") + "."
    if gauge is not None:
        return Metric(
            entry.new,
            entry.kind,
            words,
            gauge=lambda subject, state: _scaled(gauge(subject, state), scale),
        )
    if counter is not None:
        return Metric(entry.new, entry.kind, words, counter=lambda subject, t: _scaled(counter(subject, t), scale))
    raise ValueError(entry.new)


def _scaled(value: float | None, scale: float) -> float | None:
    # Rounded so that 83 % reads 0.83 and not 0.8300000000000001.
    return None if value is None else round(value * scale, 9)


def _memory_temperature(generation: Generation) -> Metric:
    name = DEVICE + ("MEMORY_TEMP_CELSIUS" if generation.renamed else "MEMORY_TEMP")

    def read(subject: Subject, state: GpuState) -> float | None:
        return round(state.memory_temperature_c) if subject.gpu.model.memory_sensor else generation.blank_sensor

    return Metric(name, "gauge", "Memory temperature (in C).", gauge=read)


def _xid(generation: Generation) -> Metric:
    name = DEVICE + ("XID_ERROR" if generation.renamed else "XID_ERRORS")

    def read(subject: Subject, t: float) -> float | None:
        last = counters.last_xid(subject.gpu, t)
        return float(last) if last or generation.xid_always else None

    def extra(subject: Subject, t: float) -> Mapping[str, str]:
        if not generation.err_code:
            return {}
        last = counters.last_xid(subject.gpu, t)
        words = counters.XID_TEXT.get(last, "Unknown Error") if last else "No Error"
        return {"err_code": str(last), "err_msg": words}

    return Metric(name, "gauge", "Value of the last XID error encountered.", counter=read, adds=extra)


def _label_maker(
    node: Node, generation: Generation
) -> Callable[[Gpu, MigInstance | None, tuple[Load, ...]], Mapping[str, str]]:
    driver = "DCGM_FI_SYSTEM_DRIVER_VERSION" if generation.renamed else "DCGM_FI_DRIVER_VERSION"

    def labels(gpu: Gpu, instance: MigInstance | None, loads: tuple[Load, ...]) -> Mapping[str, str]:
        found = {"gpu": str(gpu.index), "UUID": gpu.uuid, "device": f"nvidia{gpu.minor}"}
        if generation.bus_id:
            found["pci_bus_id"] = gpu.bus_id
        if generation.model:
            found |= {"modelName": gpu.model.name, driver: node.group.driver}
        if generation.host_label:
            found[generation.host_label] = node.name
        if instance is not None:
            found |= {"GPU_I_PROFILE": instance.profile.name, "GPU_I_ID": str(instance.gpu_instance)}
        # Time slicing: the kubelet names one of the pods that share a device; the exporter knows no other.
        if loads and node.group.pod_labels != "none":
            pod = loads[0].pod
            found |= {"pod": pod.name, "namespace": pod.namespace, "container": pod.container}
        return found

    return labels
