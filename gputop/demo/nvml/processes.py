"""Processes on a GPU: the three lists in three struct layouts, and their utilisation."""

import ctypes
import struct

from gputop.demo import noise
from gputop.demo.nvml import abi
from gputop.demo.nvml.gauges import MIB, percent, refuse_when_partitioned
from gputop.demo.nvml.library import Device, FakeNvml, refusal
from gputop.demo.nvml.table import entry
from gputop.demo.state import level_at
from gputop.demo.world import Load, Process

# pid, bytes; then with instance ids; then with the protected bytes that R535 put in and took out again.
_LAYOUT_1 = struct.Struct("=I4xQ")
_LAYOUT_2 = struct.Struct("=I4xQII")
_LAYOUT_3_BROKEN = struct.Struct("=I4xQIIQ")
_BROKEN_FROM, _BROKEN_UNTIL = (535, 43), (535, 98)


def _running(lib: FakeNvml, device: Device, kind: str) -> list[tuple[Load, Process]]:
    t = lib.now()
    wanted = device.instance.gpu_instance if device.instance else None
    return [
        (load, process)
        for load in device.gpu.loads
        if load.active(t) and (wanted is None or load.gpu_instance == wanted)
        for process in load.processes
        if process.kind == kind
    ]


def _memory_bytes(lib: FakeNvml, device: Device, process: Process) -> int:
    # Some platforms cannot say what a process holds; then the value is all ones (NVML_VALUE_NOT_AVAILABLE).
    if refusal(device.gpu, "usedGpuMemory", lib.now()):
        return abi.NOT_AVAILABLE_64
    return int(process.memory_mib * MIB)


def _list(
    lib: FakeNvml,
    device: Device,
    kind: str,
    layout: struct.Struct,
    count: abi.CArgument,
    infos: abi.CArgument,
) -> int:
    found = _running(lib, device, kind)
    room = abi.number(abi.pointee(count))
    abi.put(count, len(found))
    if infos is None or room < len(found):
        return abi.INSUFFICIENT_SIZE if found else abi.SUCCESS
    data = b"".join(_row(lib, device, load, process, layout) for load, process in found)
    array = abi.pointee(infos)
    # The broken layout is longer than the structs that older callers made room for. The real library writes
    # past their end; here only what fits is written, which scrambles the list in the same way.
    ctypes.memmove(array, data, min(len(data), ctypes.sizeof(array)))
    return abi.SUCCESS


def _row(lib: FakeNvml, device: Device, load: Load, process: Process, layout: struct.Struct) -> bytes:
    memory = _memory_bytes(lib, device, process)
    if layout is _LAYOUT_1:
        return layout.pack(process.pid, memory)
    instance = abi.NOT_AVAILABLE_32 if load.gpu_instance is None else load.gpu_instance
    compute = abi.NOT_AVAILABLE_32 if load.gpu_instance is None else 0
    if layout is _LAYOUT_2:
        return layout.pack(process.pid, memory, instance, compute)
    return layout.pack(process.pid, memory, instance, compute, 0)


def _newest(lib: FakeNvml) -> struct.Struct:
    return _LAYOUT_3_BROKEN if _BROKEN_FROM <= lib.driver < _BROKEN_UNTIL else _LAYOUT_2


@entry("nvmlDeviceGetComputeRunningProcesses_v3", "device", since=(510, 39))
def compute_v3(lib: FakeNvml, device: Device, count: abi.CArgument, infos: abi.CArgument) -> int:
    """List compute processes."""
    return _list(lib, device, "C", _newest(lib), count, infos)


@entry("nvmlDeviceGetComputeRunningProcesses_v2", "device", since=(450, 51))
def compute_v2(lib: FakeNvml, device: Device, count: abi.CArgument, infos: abi.CArgument) -> int:
    """List compute processes."""
    return _list(lib, device, "C", _LAYOUT_2, count, infos)


@entry("nvmlDeviceGetComputeRunningProcesses", "device")
def compute_v1(lib: FakeNvml, device: Device, count: abi.CArgument, infos: abi.CArgument) -> int:
    """List compute processes, without instance ids."""
    return _list(lib, device, "C", _LAYOUT_1, count, infos)


@entry("nvmlDeviceGetGraphicsRunningProcesses_v3", "device", since=(510, 39))
def graphics_v3(lib: FakeNvml, device: Device, count: abi.CArgument, infos: abi.CArgument) -> int:
    """List graphics processes."""
    return _list(lib, device, "G", _newest(lib), count, infos)


@entry("nvmlDeviceGetGraphicsRunningProcesses_v2", "device", since=(450, 51))
def graphics_v2(lib: FakeNvml, device: Device, count: abi.CArgument, infos: abi.CArgument) -> int:
    """List graphics processes."""
    return _list(lib, device, "G", _LAYOUT_2, count, infos)


@entry("nvmlDeviceGetGraphicsRunningProcesses", "device")
def graphics_v1(lib: FakeNvml, device: Device, count: abi.CArgument, infos: abi.CArgument) -> int:
    """List graphics processes, without instance ids."""
    return _list(lib, device, "G", _LAYOUT_1, count, infos)


@entry("nvmlDeviceGetMPSComputeRunningProcesses_v3", "device", since=(510, 39))
def mps_v3(lib: FakeNvml, device: Device, count: abi.CArgument, infos: abi.CArgument) -> int:
    """List compute processes that run under MPS."""
    return _list(lib, device, "M", _newest(lib), count, infos)


@entry("nvmlDeviceGetMPSComputeRunningProcesses_v2", "device", since=(450, 51))
def mps_v2(lib: FakeNvml, device: Device, count: abi.CArgument, infos: abi.CArgument) -> int:
    """List compute processes that run under MPS."""
    return _list(lib, device, "M", _LAYOUT_2, count, infos)


@entry("nvmlDeviceGetConfComputeMemSizeInfo", since=_BROKEN_FROM)
def protected_memory(_lib: FakeNvml, _device: Device, _info: abi.CArgument) -> int:
    """Refuse: no simulated board is in confidential-computing mode. Callers look for the symbol."""
    return abi.NOT_SUPPORTED


@entry("nvmlDeviceGetRunningProcessDetailList", since=_BROKEN_UNTIL)
def process_details(_lib: FakeNvml, _device: Device, _info: abi.CArgument) -> int:
    """Refuse, as for protected memory. Its presence tells callers that the list layout is sound again."""
    return abi.NOT_SUPPORTED


@entry("nvmlDeviceGetProcessUtilization")
def utilization(
    lib: FakeNvml, device: Device, samples: abi.CArgument, count: abi.CArgument, since: abi.CArgument
) -> int:
    """Return a sample for each process that was busy after a time (µs); NOT_FOUND where none was.

    Not in MIG mode.
    """
    refuse_when_partitioned(lib, device.gpu)
    stamp = int((lib.started + lib.now() // 0.5 * 0.5) * 1e6)
    busy = _busy(lib, device) if stamp > abi.number(since) else []
    if not busy:
        abi.put(count, 0)
        return abi.NOT_FOUND
    room = abi.number(abi.pointee(count))
    abi.put(count, len(busy))
    if samples is None or room < len(busy):
        return abi.INSUFFICIENT_SIZE
    for place, (process, sm, load) in enumerate(busy):
        abi.fill(
            samples[place],
            pid=process.pid,
            timeStamp=stamp,
            smUtil=percent(sm),
            memUtil=percent(sm * load.profile.memory_busy),
            encUtil=percent(load.profile.encoder / len(load.processes)),
            decUtil=percent(load.profile.decoder / len(load.processes)),
        )
    return abi.SUCCESS


def _busy(lib: FakeNvml, device: Device) -> list[tuple[Process, float, Load]]:
    t = lib.now() // 0.5 * 0.5
    found: list[tuple[Process, float, Load]] = []
    for number, load in enumerate(device.gpu.loads):
        if not load.active(t) or not load.level:
            continue
        level = level_at(device.gpu, load, number, t)
        # Processes of one pod share its work unevenly, but always in the same way.
        weights = [0.5 + noise.unit(process.pid, 1) for process in load.processes]
        found += [
            (process, level * weight / sum(weights), load)
            for process, weight in zip(load.processes, weights, strict=True)
        ]
    return found
