"""Init, shutdown, the system's versions, and how a GPU is found."""

import re

from gputop.demo.nvml import abi
from gputop.demo.nvml.library import Device, FakeNvml
from gputop.demo.nvml.table import entry
from gputop.demo.world import Gpu

ERROR_STRINGS = {
    0: "Success",
    1: "Uninitialized",
    2: "Invalid Argument",
    3: "Not Supported",
    4: "Insufficient Permissions",
    5: "Already Initialized",
    6: "Not Found",
    7: "Insufficient Size",
    8: "Insufficient External Power",
    9: "Driver Not Loaded",
    10: "Timeout",
    11: "Interrupt Request Issue",
    12: "NVML Shared Library Not Found",
    13: "Function Not Found",
    14: "Corrupted infoROM",
    15: "GPU is lost",
    16: "GPU requires reset",
    17: "GPU access blocked by the operating system",
    18: "Driver/library version mismatch",
    19: "In use by another client",
    20: "Insufficient Memory",
    21: "No data",
    25: "Argument version mismatch",
    26: "Deprecated",
    27: "Not Ready",
    28: "GPU not found",
    29: "Invalid state",
    999: "Unknown Error",
}


@entry("nvmlInitWithFlags", "free")
def init_with_flags(lib: FakeNvml, _flags: abi.CArgument) -> int:
    """Open the library."""
    return lib.open()


@entry("nvmlInit_v2", "free")
def init(lib: FakeNvml) -> int:
    """Open the library."""
    return lib.open()


@entry("nvmlShutdown", "free")
def shutdown(lib: FakeNvml) -> int:
    """Close the library once for each time that it was opened."""
    return lib.close()


@entry("nvmlErrorString", "free")
def error_string(_lib: FakeNvml, code: abi.CArgument) -> bytes:
    """Return the words of an error code; this one call returns a string, not a code."""
    return ERROR_STRINGS.get(abi.number(code), "Unknown Error").encode()


@entry("nvmlSystemGetDriverVersion", "session")
def driver_version(lib: FakeNvml, buffer: abi.CArgument, size: abi.CArgument) -> int:
    """Return the driver's version."""
    return abi.put_text(buffer, size, lib.node.group.driver)


@entry("nvmlSystemGetNVMLVersion", "free")
def nvml_version(lib: FakeNvml, buffer: abi.CArgument, size: abi.CArgument) -> int:
    """Return the library's version: the CUDA major number in front of the driver's version."""
    return abi.put_text(buffer, size, f"{lib.node.group.cuda.split('.')[0]}.{lib.node.group.driver}")


@entry("nvmlSystemGetCudaDriverVersion", "session")
@entry("nvmlSystemGetCudaDriverVersion_v2", "session")
def cuda_version(lib: FakeNvml, version: abi.CArgument) -> int:
    """Return the CUDA version that the driver supports, as 1000 times the major plus 10 times the minor."""
    major, minor = (int(part) for part in lib.node.group.cuda.split("."))
    return abi.put(version, major * 1000 + minor * 10)


@entry("nvmlSystemGetDriverBranch", "session", since=(560, 0))
def driver_branch(lib: FakeNvml, info: abi.CArgument, size: abi.CArgument) -> int:
    """Return the driver's branch, such as ``r570_00``."""
    if abi.number(size) <= len("r000_00"):
        return abi.INSUFFICIENT_SIZE
    return abi.fill(abi.versioned(info, abi.struct_version(84, 1)), branch=f"r{lib.driver[0]}_00")


@entry("nvmlSystemGetProcessName", "session")
def process_name(lib: FakeNvml, pid: abi.CArgument, buffer: abi.CArgument, size: abi.CArgument) -> int:
    """Return the command of a process that holds a GPU."""
    wanted = abi.number(pid)
    t = lib.now()
    for gpu in lib.boards:
        for load in gpu.loads:
            if load.active(t) and any(process.pid == wanted for process in load.processes):
                return abi.put_text(buffer, size, load.pod.command)
    return abi.NOT_FOUND


@entry("nvmlDeviceGetCount_v2", "session")
@entry("nvmlDeviceGetCount", "session")
def count(lib: FakeNvml, result: abi.CArgument) -> int:
    """Return how many GPUs there are, with those that may not be opened."""
    return abi.put(result, len(lib.boards))


def _give(lib: FakeNvml, gpu: Gpu, result: abi.CArgument) -> int:
    return lib.handles.give(result, gpu.uuid, Device(gpu))


@entry("nvmlDeviceGetHandleByIndex_v2", "search")
@entry("nvmlDeviceGetHandleByIndex", "search")
def handle_by_index(lib: FakeNvml, index: abi.CArgument, result: abi.CArgument) -> int:
    """Open the GPU at an index; INVALID_ARGUMENT beyond the count."""
    position = abi.number(index)
    if not 0 <= position < len(lib.boards):
        return abi.INVALID_ARGUMENT
    gpu = lib.boards[position]
    lib.check(gpu, "nvmlDeviceGetHandleByIndex_v2")
    return _give(lib, gpu, result)


@entry("nvmlDeviceGetHandleByUUID", "search")
def handle_by_uuid(lib: FakeNvml, uuid: abi.CArgument, result: abi.CArgument) -> int:
    """Find a GPU or MIG device by UUID.

    The library opens one GPU after another until it finds it, so one that is lost and stands before it makes
    the search fail with that GPU's error (nvml.h says so for GPU_IS_LOST).
    """
    wanted = abi.text(uuid)
    t = lib.now()
    for gpu in lib.boards:
        lib.check(gpu, "nvmlDeviceGetHandleByUUID")
        if gpu.uuid == wanted:
            return _give(lib, gpu, result)
        for instance in gpu.instances(t):
            if mig_uuid(lib, gpu, instance.gpu_instance) == wanted:
                return lib.handles.give(result, instance.uuid, Device(gpu, instance))
    return abi.NOT_FOUND


@entry("nvmlDeviceGetHandleBySerial", "search")
def handle_by_serial(lib: FakeNvml, serial: abi.CArgument, result: abi.CArgument) -> int:
    """Find a GPU by its serial number."""
    wanted = abi.text(serial)
    for gpu in lib.boards:
        lib.check(gpu, "nvmlDeviceGetHandleBySerial")
        if gpu.serial == wanted:
            return _give(lib, gpu, result)
    return abi.NOT_FOUND


_BUS_ID = re.compile(r"^(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})(?:\.[0-9a-fA-F])?$")


@entry("nvmlDeviceGetHandleByPciBusId_v2", "search")
@entry("nvmlDeviceGetHandleByPciBusId", "search")
def handle_by_bus_id(lib: FakeNvml, bus_id: abi.CArgument, result: abi.CArgument) -> int:
    """Find a GPU by bus id, with a domain of four or eight digits or none."""
    match = _BUS_ID.match(abi.text(bus_id))
    if match is None:
        return abi.INVALID_ARGUMENT
    wanted = (int(match[1] or "0", 16), int(match[2], 16), int(match[3], 16))
    for gpu in lib.boards:
        lib.check(gpu, "nvmlDeviceGetHandleByPciBusId_v2")
        if pci_numbers(gpu) == wanted:
            return _give(lib, gpu, result)
    return abi.NOT_FOUND


def pci_numbers(gpu: Gpu) -> tuple[int, int, int]:
    """Return the domain, bus and device numbers of a board."""
    domain, bus, rest = gpu.bus_id.split(":")
    return int(domain, 16), int(bus, 16), int(rest.split(".")[0], 16)


def mig_uuid(lib: FakeNvml, gpu: Gpu, gpu_instance: int) -> str:
    """Return the UUID of a MIG device in the spelling of the node's driver.

    Before R470 it was the board's UUID with the instance ids behind it.
    """
    instance = next(one for one in gpu.instances(lib.now()) if one.gpu_instance == gpu_instance)
    if lib.driver < (470, 0):
        return f"MIG-{gpu.uuid}/{instance.gpu_instance}/{instance.compute_instance}"
    return instance.uuid
