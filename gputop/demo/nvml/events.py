"""Event sets: Xid errors and recovery actions, delivered to whoever waits for them.

The world knows in advance when a fault strikes, so a wait sleeps until the next event or its timeout and
never polls.
"""

from typing import NamedTuple

from gputop.demo import counters
from gputop.demo.faults import GpuLost, Recovery, ResetRequired
from gputop.demo.nvml import abi
from gputop.demo.nvml.library import Device, FakeNvml
from gputop.demo.nvml.table import entry
from gputop.demo.world import Gpu

XID = 0x8
GPU_UNAVAILABLE = 0x4000
RECOVERY_ACTION = 0x8000
_OLD_TYPES = 0x1 | 0x2 | 0x4 | XID | 0x10
_NEW_TYPES = GPU_UNAVAILABLE | RECOVERY_ACTION


class Event(NamedTuple):
    """One event: when (seconds after the start), on which board, NVML's type bit, and its number."""

    at_s: float
    board: int
    kind: int
    data: int


class EventSet:
    """The boards registered with the types wanted of each, and the time up to which it has been read."""

    def __init__(self) -> None:
        self.registered: dict[int, tuple[Gpu, int, float]] = {}
        self.queue: list[Event] = []

    def between(self, until: float) -> list[Event]:
        """Return the events that were not yet delivered up to a time, oldest first."""
        return sorted(
            event
            for gpu, wanted, since in self.registered.values()
            for event in _events(gpu, since, until)
            if event.kind & wanted
        )

    def collect(self, until: float) -> None:
        """Queue the events up to a time and remember that they were read."""
        self.queue += self.between(until)
        for board, (gpu, wanted, since) in self.registered.items():
            self.registered[board] = (gpu, wanted, max(since, until))


def _events(gpu: Gpu, since: float, until: float) -> list[Event]:
    found = [Event(at, gpu.index, XID, number) for at, number in counters.xids(gpu, since, until)]
    for fault in gpu.faults:
        if not since < fault.at_s <= until:
            continue
        if isinstance(fault, Recovery):
            found.append(Event(fault.at_s, gpu.index, RECOVERY_ACTION, fault.action))
        elif isinstance(fault, ResetRequired):
            found.append(Event(fault.at_s, gpu.index, RECOVERY_ACTION, 1))
        elif isinstance(fault, GpuLost):
            found.append(Event(fault.at_s, gpu.index, GPU_UNAVAILABLE, 0))
    return found


def _supported(lib: FakeNvml) -> int:
    return _OLD_TYPES | (_NEW_TYPES if lib.driver >= (570, 0) else 0)


@entry("nvmlDeviceGetSupportedEventTypes")
def supported(lib: FakeNvml, _device: Device, result: abi.CArgument) -> int:
    """Return the event types that the driver can report."""
    return abi.put(result, _supported(lib))


@entry("nvmlEventSetCreate", "session")
def create(lib: FakeNvml, result: abi.CArgument) -> int:
    """Make an empty event set."""
    made = EventSet()
    return lib.handles.give(result, made, made)


@entry("nvmlEventSetFree", "session")
def free(lib: FakeNvml, handle: abi.CArgument) -> int:
    """Release an event set."""
    _set(lib, handle)
    lib.handles.drop(handle)
    return abi.SUCCESS


def _set(lib: FakeNvml, handle: abi.CArgument) -> EventSet:
    found = lib.handles.get(handle)
    if not isinstance(found, EventSet):
        raise abi.RefusalError(abi.INVALID_ARGUMENT)
    return found


@entry("nvmlDeviceRegisterEvents")
def register(lib: FakeNvml, device: Device, types: abi.CArgument, handle: abi.CArgument) -> int:
    """Add a board to an event set; only what happens after this is delivered."""
    wanted = abi.number(types)
    if wanted & ~_supported(lib):
        return abi.NOT_SUPPORTED
    _set(lib, handle).registered[device.gpu.index] = (device.gpu, wanted, lib.now())
    return abi.SUCCESS


@entry("nvmlEventSetWait_v2", "session")
@entry("nvmlEventSetWait", "session")
def wait(lib: FakeNvml, handle: abi.CArgument, data: abi.CArgument, timeout_ms: abi.CArgument) -> int:
    """Wait for the next event; TIMEOUT is the usual answer.

    Once the events of a lost board are read, the wait answers GPU_IS_LOST at once, each time, until the set
    is freed: a caller that goes on waiting would spin.
    """
    events = _set(lib, handle)
    deadline = lib.now() + abi.number(timeout_ms) / 1000.0
    while True:
        events.collect(lib.now())
        if events.queue:
            return _deliver(lib, events.queue.pop(0), data)
        if any(_lost(gpu, lib.now()) for gpu, _, _ in events.registered.values()):
            return abi.GPU_IS_LOST
        left = deadline - lib.now()
        if left <= 0:
            return abi.TIMEOUT
        coming = events.between(deadline)
        lib.sleep(min(left, max(0.0, coming[0].at_s - lib.now()) + 0.001) if coming else left)


def _lost(gpu: Gpu, t: float) -> bool:
    return any(isinstance(fault, GpuLost) and fault.active(t) for fault in gpu.faults)


def _deliver(lib: FakeNvml, event: Event, data: abi.CArgument) -> int:
    struct = abi.pointee(data)
    gpu = next(gpu for gpu in lib.node.gpus if gpu.index == event.board)
    lib.handles.assign(struct, type(struct).device.offset, gpu.uuid, Device(gpu))
    return abi.fill(
        struct,
        eventType=event.kind,
        eventData=event.data,
        gpuInstanceId=abi.NOT_AVAILABLE_32,
        computeInstanceId=abi.NOT_AVAILABLE_32,
    )
