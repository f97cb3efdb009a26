"""GPM, the profiling counters of Hopper and newer: two samples, and metrics of the time between them."""

from collections.abc import Callable

from gputop.demo.nvml import abi
from gputop.demo.nvml.library import Device, FakeNvml
from gputop.demo.nvml.table import entry
from gputop.demo.state import GpuState, level_at
from gputop.demo.world import Gpu

# Samples closer than this give no metric (nvml.h asks for more than 100 ms).
_CLOSEST_S = 0.1
_MIB = 1024.0 * 1024.0

_METRICS: dict[int, tuple[str, str, Callable[[GpuState], float]]] = {
    1: ("graphics_util", "%", lambda state: state.utilization * 100),
    2: ("sm_util", "%", lambda state: state.sm_active * 100),
    3: ("sm_occupancy", "%", lambda state: state.occupancy * 100),
    5: ("any_tensor_util", "%", lambda state: state.tensor * 100),
    9: ("imma_tensor_util", "%", lambda _state: 0.0),
    7: ("hmma_tensor_util", "%", lambda state: state.tensor * 100),
    10: ("dram_bw_util", "%", lambda state: state.memory_busy * 100),
    20: ("pcie_tx_per_sec", "MiB/s", lambda state: state.pcie_tx_bytes_s / _MIB),
    21: ("pcie_rx_per_sec", "MiB/s", lambda state: state.pcie_rx_bytes_s / _MIB),
    60: ("nvlink_total_rx_per_sec", "MiB/s", lambda state: state.nvlink_bytes_s / _MIB),
    61: ("nvlink_total_tx_per_sec", "MiB/s", lambda state: state.nvlink_bytes_s / _MIB),
}
# What a MIG instance's own sample can tell: how busy its part of the board is.
_INSTANCE_METRICS = {1, 2}


class Sample:
    """A GPM sample: empty until it is taken of a board or a GPU instance of it."""

    def __init__(self) -> None:
        self.gpu: Gpu | None = None
        self.at_s = 0.0
        self.state: GpuState | None = None
        self.instance: int | None = None


@entry("nvmlGpmQueryDeviceSupport", since=(520, 0))
def support(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return whether the board has GPM."""
    return abi.fill(abi.versioned(result, 1), isSupportedDevice=int(device.gpu.model.gpm))


@entry("nvmlGpmQueryIfStreamingEnabled", since=(535, 0))
def streaming(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return whether counters stream all the time."""
    return abi.put(result, 0) if device.gpu.model.gpm else abi.NOT_SUPPORTED


@entry("nvmlGpmSampleAlloc", "session", since=(520, 0))
def allocate(lib: FakeNvml, result: abi.CArgument) -> int:
    """Make room for a sample."""
    made = Sample()
    return lib.handles.give(result, made, made)


@entry("nvmlGpmSampleFree", "session", since=(520, 0))
def free(lib: FakeNvml, handle: abi.CArgument) -> int:
    """Release a sample."""
    _sample(lib, handle)
    lib.handles.drop(handle)
    return abi.SUCCESS


def _sample(lib: FakeNvml, handle: abi.CArgument) -> Sample:
    found = lib.handles.get(handle)
    if not isinstance(found, Sample):
        raise abi.RefusalError(abi.INVALID_ARGUMENT)
    return found


def _take(lib: FakeNvml, device: Device, handle: abi.CArgument, instance: int | None) -> int:
    if not device.gpu.model.gpm:
        return abi.NOT_SUPPORTED
    sample = _sample(lib, handle)
    sample.gpu, sample.at_s, sample.instance = device.gpu, lib.now(), instance
    sample.state = lib.state(device.gpu)
    return abi.SUCCESS


@entry("nvmlGpmSampleGet", since=(520, 0))
def take(lib: FakeNvml, device: Device, handle: abi.CArgument) -> int:
    """Take a sample of a whole board; in MIG mode only instances can be sampled."""
    if device.gpu.instances(lib.now()):
        return abi.NOT_SUPPORTED
    return _take(lib, device, handle, None)


@entry("nvmlGpmMigSampleGet", since=(525, 0))
def take_instance(lib: FakeNvml, device: Device, instance: abi.CArgument, handle: abi.CArgument) -> int:
    """Take a sample of one GPU instance."""
    number = abi.number(instance)
    if all(one.gpu_instance != number for one in device.gpu.instances(lib.now())):
        return abi.INVALID_ARGUMENT
    return _take(lib, device, handle, number)


@entry("nvmlGpmMetricsGet", "session", since=(520, 0))
def metrics(lib: FakeNvml, request: abi.CArgument) -> int:
    """Fill in the metrics asked for, each with its own return code."""
    struct = abi.versioned(request, 1)
    first, second = _sample(lib, struct.sample1), _sample(lib, struct.sample2)
    if first.gpu is None or first.gpu is not second.gpu or second.state is None or first.state is None:
        return abi.INVALID_ARGUMENT
    if abs(second.at_s - first.at_s) < _CLOSEST_S:
        return abi.INVALID_ARGUMENT
    for place in range(int(struct.numMetrics)):
        metric = struct.metrics[place]
        known = _METRICS.get(int(metric.metricId))
        if known is None or (second.instance is not None and int(metric.metricId) not in _INSTANCE_METRICS):
            metric.nvmlReturn = abi.NOT_SUPPORTED
            continue
        name, unit, value = known
        metric.nvmlReturn = abi.SUCCESS
        if second.instance is None:
            metric.value = (value(first.state) + value(second.state)) / 2.0
        else:
            metric.value = _instance_percent(second)
        metric.metricInfo.shortName = name.encode()
        metric.metricInfo.longName = name.encode()
        metric.metricInfo.unit = unit.encode()
    return abi.SUCCESS


def _instance_percent(sample: Sample) -> float:
    gpu = sample.gpu
    if gpu is None:
        return 0.0
    levels = [
        level_at(gpu, load, number, sample.at_s) * load.profile.sm_active
        for number, load in enumerate(gpu.loads)
        if load.gpu_instance == sample.instance and load.active(sample.at_s)
    ]
    return min(100.0, 100.0 * sum(levels))
