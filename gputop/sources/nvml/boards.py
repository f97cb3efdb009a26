"""Opening boards: handles by index, who each is, and where one stands that cannot be opened.

Handles are fetched one by one, so that a board that fails does not hide the others. They are fetched by
index, because the other ways (UUID, bus id, serial) may fail for the sake of another, lost board and may
wake boards nobody asked for (nvml.h, `nvmlDeviceGetHandleByUUID`).
"""

import ctypes

import pynvml

from gputop.model.facts import PciGpu, Presence
from gputop.model.identity import normal_bus_id, normal_uuid
from gputop.sources.nvml import errors
from gputop.sources.nvml.device import Device
from gputop.sources.nvml.fields import IDENTITY
from gputop.sources.nvml.library import Library, symbol
from gputop.sources.nvml.ways import CObject

# NVML_GPU_VIRTUALIZATION_MODE_VGPU
_VGPU_GUEST = 2

# Above every bus id, which are hex digits and punctuation.
_BEYOND = "~"


def handle_by_index(library: Library, index: int) -> tuple[int, CObject]:
    """Return the code and, when it is SUCCESS, the handle of the board at an index."""
    function = symbol("nvmlDeviceGetHandleByIndex_v2")
    if function is None:
        return errors.FUNCTION_NOT_FOUND, None
    handle = pynvml.c_nvmlDevice_t()
    code = library.raw(function, b"nvmlDeviceGetHandleByIndex_v2", index, ctypes.c_uint(index), ctypes.byref(handle))
    return code, handle


def _ask(library: Library, device: Device, what: str) -> tuple[int, list[CObject]]:
    bound = library.bind(IDENTITY[what])
    code = library.run(bound, device.index, device.handle)
    if code != errors.SUCCESS:
        return code, []
    return code, [bound.raw(position) for position in range(len(bound.call.takes))]


def _string(raw: CObject) -> str:
    # pynvml's structs decode their strings, plain buffers do not.
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)


def open_board(library: Library, device: Device) -> int:
    """Fetch a board's handle and learn who it is; return the code that stopped it, or SUCCESS.

    What it was known as before stays where it does not answer.
    """
    code, handle = handle_by_index(library, device.index)
    if code != errors.SUCCESS:
        return code
    device.handle = handle
    code, answer = _ask(library, device, "uuid")
    known = errors.RETURNS.get(code)
    if known is not None and known.presence is not None:
        return code
    uuid = normal_uuid(_string(answer[0])) if answer else ""
    device.uuid = uuid or device.uuid
    code, answer = _ask(library, device, "pci")
    if answer:
        device.bus_id = normal_bus_id(_string(answer[0])) or device.bus_id
    _learn(library, device)
    device.opened()
    return errors.SUCCESS if device.uuid or device.bus_id else code


def _learn(library: Library, device: Device) -> None:
    _, answer = _ask(library, device, "capability")
    device.capability = (int(answer[0]), int(answer[1])) if answer else None
    _, answer = _ask(library, device, "architecture")
    device.architecture = int(answer[0]) if answer else -1
    _, answer = _ask(library, device, "persistence")
    device.persistent = bool(answer[0]) if answer else None
    code, answer = _ask(library, device, "ecc")
    device.has_ecc = True if answer else (False if errors.permanent(code) else None)
    _, answer = _ask(library, device, "virtualization")
    device.is_vgpu = bool(answer) and int(answer[0]) == _VGPU_GUEST
    device.mig_on = mig_mode(library, device)


def mig_mode(library: Library, device: Device) -> bool:
    """Return whether MIG is on now on an open board."""
    _, answer = _ask(library, device, "mig")
    return bool(answer) and int(answer[0]) == 1


def pci_device_id(library: Library, device: Device) -> int:
    """Return the PCI device id of an open board, 0 when not told."""
    bound = library.bind(IDENTITY["pci"])
    if library.run(bound, device.index, device.handle) != errors.SUCCESS:
        return 0
    return int(bound.outs[0].pciDeviceId) >> 16


def place_unopened(devices: list[Device], pci: tuple[PciGpu, ...] | None, *, skipped: set[str]) -> None:
    """Give boards that could not be opened the bus ids that can only be theirs.

    NVML numbers boards in the order of their bus ids. Where the opened ones bear that out, boards between
    two of them stand between their addresses; if as many addresses there are free, those are theirs. Else
    nothing is claimed.

    Args:
        devices: All boards, by index.
        pci: What the bus shows.
        skipped: Bus ids of boards that are left alone.
    """
    opened = [device.bus_id for device in devices if device.bus_id]
    taken = set(opened) | skipped
    free = [gpu.bus_id for gpu in pci or () if gpu.driver == "nvidia" and gpu.bus_id not in taken]
    if opened != sorted(opened):
        missing = [device for device in devices if not device.bus_id]
        if len(missing) == len(free) == 1:
            missing[0].bus_id = free[0]
        return
    below = ""
    gap: list[Device] = []
    for device in [*devices, None]:
        if device is not None and not device.bus_id:
            gap.append(device)
            continue
        above = device.bus_id if device is not None else _BEYOND
        between = [bus_id for bus_id in free if below < bus_id < above]
        if len(between) == len(gap):
            for lost, bus_id in zip(gap, between, strict=True):
                lost.bus_id = bus_id
        gap, below = [], above


def note_failure(device: Device, code: int) -> bool:
    """Note that a board could not be opened, and return whether that is news."""
    return device.set_presence(errors.presence(code), errors.describe_device(code))


def note_answer(device: Device) -> bool:
    """Note that a board answers, and return whether that is news."""
    return device.set_presence(Presence.PRESENT, "")
