"""MIG mode, MIG device handles and what they say of themselves."""

from gputop.demo.nvml import abi
from gputop.demo.nvml.library import Device, FakeNvml
from gputop.demo.nvml.table import entry
from gputop.demo.world import MigInstance


@entry("nvmlDeviceGetMigMode")
def mig_mode(lib: FakeNvml, device: Device, current: abi.CArgument, pending: abi.CArgument) -> int:
    """Return whether MIG is on now and after the next reset."""
    if not device.gpu.model.mig:
        return abi.NOT_SUPPORTED
    enabled = int(bool(device.gpu.instances(lib.now())))
    abi.put(current, enabled)
    return abi.put(pending, enabled)


@entry("nvmlDeviceGetMaxMigDeviceCount")
def max_count(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return how many MIG devices a board could have; 0 where it has no MIG."""
    return abi.put(result, 7 if device.gpu.model.mig else 0)


@entry("nvmlDeviceGetMigDeviceHandleByIndex")
def handle_by_index(lib: FakeNvml, device: Device, index: abi.CArgument, result: abi.CArgument) -> int:
    """Return the handle of a MIG device; NOT_FOUND for an empty place, INVALID_ARGUMENT beyond the last."""
    if not device.gpu.model.mig:
        return abi.NOT_SUPPORTED
    place = abi.number(index)
    if not 0 <= place < 7:
        return abi.INVALID_ARGUMENT
    for instance in device.gpu.instances(lib.now()):
        if instance.slot == place:
            return lib.handles.give(result, instance.uuid, Device(device.gpu, instance))
    return abi.NOT_FOUND


@entry("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", "device")
def parent(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the handle of the board that a MIG device is part of."""
    _instance(device)
    return lib.handles.give(result, device.gpu.uuid, Device(device.gpu))


@entry("nvmlDeviceIsMigDeviceHandle", "device")
def is_mig(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return whether a handle is that of a MIG device."""
    return abi.put(result, int(device.instance is not None))


def _instance(device: Device) -> MigInstance:
    if device.instance is None:
        raise abi.RefusalError(abi.INVALID_ARGUMENT)
    return device.instance


@entry("nvmlDeviceGetGpuInstanceId", "device")
def gpu_instance_id(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the GPU instance id of a MIG device."""
    return abi.put(result, _instance(device).gpu_instance)


@entry("nvmlDeviceGetComputeInstanceId", "device")
def compute_instance_id(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the compute instance id of a MIG device."""
    return abi.put(result, _instance(device).compute_instance)


@entry("nvmlDeviceGetAttributes_v2", "device")
@entry("nvmlDeviceGetAttributes", "device")
def attributes(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the multiprocessors, slices, engines and MiB of a MIG device."""
    profile = _instance(device).profile
    return abi.fill(
        result,
        multiprocessorCount=profile.multiprocessors,
        sharedCopyEngineCount=profile.slices,
        sharedDecoderCount=profile.slices,
        sharedEncoderCount=0,
        sharedJpegCount=1 if profile.slices == 7 else 0,
        sharedOfaCount=1 if profile.slices == 7 else 0,
        gpuInstanceSliceCount=profile.slices,
        computeInstanceSliceCount=profile.slices,
        memorySizeMB=profile.memory_mib,
    )
