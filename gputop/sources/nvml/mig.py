"""MIG instances of a board: found slot by slot, named as nvidia-smi names them."""

import ctypes
import math
import re
from typing import Final

import pynvml
from msgspec import Struct

from gputop.model.identity import instance_id, normal_mig_uuid
from gputop.sources.nvml import errors
from gputop.sources.nvml.device import Device
from gputop.sources.nvml.library import Library, symbol
from gputop.sources.nvml.ways import CObject

_NAMED: Final = re.compile(r"\bMIG (\S+)\s*$")
# What an empty slot answers; slots go up to the largest number of instances the board could have.
_EMPTY: Final = frozenset({errors.NOT_FOUND, errors.INVALID_ARGUMENT})
_MIB: Final = 1024 * 1024
_GIB: Final = 1024 * _MIB


class Instance(Struct, frozen=True):
    """A MIG device.

    Attributes:
        handle: Its handle.
        uuid: Its UUID, normalised; "" when not told.
        gpu_instance: Number of its GPU instance.
        instance: As `GpuRef.instance`.
        profile: Such as "1g.10gb", "1c.3g.20gb"; "" when not told.
    """

    handle: CObject
    uuid: str
    gpu_instance: int
    instance: str
    profile: str


def instances(library: Library, board: Device, board_mib: float | None) -> tuple[list[Instance], int]:
    """Return the instances of a board and the code that kept some from being listed (0 if all are).

    Args:
        library: The library.
        board: A board with MIG on.
        board_mib: Its memory, for the names; None when not known.
    """
    count = ctypes.c_uint(0)
    code = _call(library, "nvmlDeviceGetMaxMigDeviceCount", board, board.handle, ctypes.byref(count))
    if code != errors.SUCCESS:
        return [], code
    found: list[Instance] = []
    trouble = errors.SUCCESS
    for slot in range(count.value):
        handle = pynvml.c_nvmlDevice_t()
        code = _call(
            library,
            "nvmlDeviceGetMigDeviceHandleByIndex",
            board,
            board.handle,
            ctypes.c_uint(slot),
            ctypes.byref(handle),
        )
        if code == errors.SUCCESS:
            found.append(_instance(library, board, handle, board_mib))
        elif code not in _EMPTY:
            trouble = code
    return found, trouble


def _call(library: Library, name: str, board: Device, *arguments: CObject) -> int:
    function = symbol(name)
    if function is None:
        return errors.FUNCTION_NOT_FOUND
    return library.raw(function, name.encode(), board.index, *arguments)


def _instance(library: Library, board: Device, handle: CObject, board_mib: float | None) -> Instance:
    gpu, compute = ctypes.c_uint(0), ctypes.c_uint(0)
    told = _call(library, "nvmlDeviceGetGpuInstanceId", board, handle, ctypes.byref(gpu)) == errors.SUCCESS
    inner = _call(library, "nvmlDeviceGetComputeInstanceId", board, handle, ctypes.byref(compute))
    buffer = ctypes.create_string_buffer(96)
    size = ctypes.c_uint(96)
    uuid = ""
    if _call(library, "nvmlDeviceGetUUID", board, handle, buffer, size) == errors.SUCCESS:
        uuid = normal_mig_uuid(buffer.value.decode("utf-8", "replace"))
    name = ""
    if _call(library, "nvmlDeviceGetName", board, handle, buffer, size) == errors.SUCCESS:
        name = buffer.value.decode("utf-8", "replace")
    match = _NAMED.search(name)
    return Instance(
        handle=handle,
        uuid=uuid,
        gpu_instance=gpu.value if told else -1,
        instance=(instance_id(gpu.value, compute.value if inner == errors.SUCCESS else 0) if told else uuid),
        profile=match.group(1) if match else _profile(library, board, handle, board_mib),
    )


def _profile(library: Library, board: Device, handle: CObject, board_mib: float | None) -> str:
    attributes = pynvml.c_nvmlDeviceAttributes()
    code = _call(library, "nvmlDeviceGetAttributes_v2", board, handle, ctypes.byref(attributes))
    if code != errors.SUCCESS:
        return ""
    return profile_name(
        int(attributes.gpuInstanceSliceCount),
        int(attributes.computeInstanceSliceCount),
        int(attributes.memorySizeMB),
        board_mib,
    )


def profile_name(gpu_slices: int, compute_slices: int, memory_mib: int, board_mib: float | None) -> str:
    """Return the name of a profile: "3g.40gb", or "1c.3g.40gb" for a compute instance smaller than it.

    The size in it is the eighths of the board's memory that the profile takes, out of the board's rounded
    up GiB, which is how NVIDIA's own tools arrive at "40gb" for 40192 MiB. Without the board's size it is
    the profile's own GiB, rounded up.
    """
    if board_mib:
        eighths = math.ceil(memory_mib / board_mib * 8) / 8
        size = round(eighths * math.ceil(board_mib * _MIB / _GIB))
    else:
        size = math.ceil(memory_mib * _MIB / _GIB)
    prefix = f"{compute_slices}c." if 0 < compute_slices < gpu_slices else ""
    return f"{prefix}{gpu_slices}g.{size}gb"
