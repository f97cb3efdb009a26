"""The simulated ``libnvidia-ml.so.1`` of one node: what pynvml looks symbols up in.

pynvml finds functions with ``getattr`` on its library object, so an object with the same attributes is a
library. A symbol that the node's driver lacks is an AttributeError; pynvml makes FUNCTION_NOT_FOUND of it.
"""

import fnmatch
import threading
import time
from collections import Counter
from collections.abc import Callable

from gputop.demo.faults import (
    CallBlock,
    GpuFault,
    GpuLost,
    GpuMissing,
    NoPermission,
    NvmlError,
    NvmlInit,
    ResetRequired,
    Unsupported,
)
from gputop.demo.nvml import abi
from gputop.demo.nvml.table import TABLE, Entry, exists
from gputop.demo.state import GpuState, gpu_state
from gputop.demo.world import Gpu, MigInstance, Node

# The driver refreshes its sampled readings about this often; calls in between see the same numbers.
_REFRESH_S = 0.5


class Device:
    """What a device handle stands for: a board, or one MIG device of it."""

    __slots__ = ("gpu", "instance")

    def __init__(self, gpu: Gpu, instance: MigInstance | None = None) -> None:
        self.gpu = gpu
        self.instance = instance


class FakeNvml:
    """The library of one node.

    Args:
        node: The node whose GPUs it shows.
        started: Unix time at which the scenario's clock was 0.
        clock: Returns unix time; a test passes its own.
        sleep: Waits for seconds; a test passes its own.
    """

    def __init__(
        self,
        node: Node,
        started: float,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.node = node
        self.started = started
        self.clock = clock
        self.sleep = sleep
        self.driver = _version(node.group.driver)
        self.handles = abi.Handles()
        self.boards: list[Gpu] = []
        self.calls: Counter[str] = Counter()
        self._references = 0
        self._states: dict[int, tuple[float, GpuState]] = {}
        self._lock = threading.Lock()
        self._blocks = tuple(fault for fault in node.faults if isinstance(fault, CallBlock))

    def __getattr__(self, name: str) -> Callable[..., object]:
        """Return the function of this name, or raise AttributeError as a library without the symbol does."""
        if not exists(name, self.driver):
            raise AttributeError(name)
        function = self._bind(name, TABLE[name])
        setattr(self, name, function)
        return function

    def _bind(self, name: str, found: Entry) -> Callable[..., object]:
        implementation, scope = found.function, found.scope

        def function(*arguments: abi.CArgument) -> object:
            self.calls[name] += 1
            try:
                if scope == "free":
                    self._block(name, None)
                    return implementation(self, *arguments)
                if not self._references:
                    return abi.UNINITIALIZED
                if scope in ("session", "search"):
                    if scope == "session":
                        self._block(name, None)
                    return implementation(self, *arguments)
                device = self.device(arguments[0])
                self.check(device.gpu, name)
                if device.instance is not None and scope == "board":
                    return abi.NOT_SUPPORTED
                return implementation(self, device, *arguments[1:])
            except abi.RefusalError as refusal:
                return refusal.code

        function.__name__ = name
        return function

    def now(self) -> float:
        """Return seconds after the scenario's start."""
        return self.clock() - self.started

    def state(self, gpu: Gpu) -> GpuState:
        """Return the gauges of a board, as of the driver's last refresh."""
        t = self.now() // _REFRESH_S * _REFRESH_S
        known = self._states.get(gpu.index)
        if known is not None and known[0] == t:
            return known[1]
        state = gpu_state(gpu, t)
        self._states[gpu.index] = (t, state)
        return state

    def device(self, handle: abi.CArgument) -> Device:
        """Resolve a device handle."""
        found = self.handles.get(handle)
        if not isinstance(found, Device):
            raise abi.RefusalError(abi.INVALID_ARGUMENT)
        return found

    def check(self, gpu: Gpu, name: str) -> None:
        """Apply the faults of a board to a call: wait where it blocks, refuse where it fails."""
        if not gpu.faults:
            return
        self._block(name, gpu)
        code = refusal(gpu, name, self.now())
        if code:
            raise abi.RefusalError(code)

    def _block(self, name: str, gpu: Gpu | None) -> None:
        if not self._blocks:
            return
        t = self.now()
        for fault in self._blocks:
            struck = gpu is None or fault.strikes(gpu.index)
            if struck and fault.active(t) and _meant(fault.calls, name):
                self.sleep(fault.seconds)

    def open(self) -> int:
        """Count one init; the first one enumerates the boards that the driver sees at this moment."""
        t = self.now()
        for fault in self.node.faults:
            if isinstance(fault, NvmlInit) and fault.active(t):
                return fault.code
        with self._lock:
            if not self._references:
                self.boards = [gpu for gpu in self.node.gpus if not _missing(gpu, t)]
            self._references += 1
        return abi.SUCCESS

    def missing(self) -> bool:
        """Say whether the node has no NVML library at all at this moment."""
        t = self.now()
        return any(
            isinstance(fault, NvmlInit) and fault.code == abi.LIBRARY_NOT_FOUND and fault.active(t)
            for fault in self.node.faults
        )

    def close(self) -> int:
        """Count one shutdown."""
        with self._lock:
            if not self._references:
                return abi.UNINITIALIZED
            self._references -= 1
        return abi.SUCCESS


def refusal(gpu: Gpu, name: str, t: float) -> int:
    """Return the NVML error that a board's faults give to a call or ``field:<id>``; 0 where none does."""
    for fault in gpu.faults:
        if fault.active(t):
            code = _code(fault, name)
            if code:
                return code
    return abi.SUCCESS


def _code(fault: GpuFault, name: str) -> int:
    if isinstance(fault, GpuLost):
        return abi.GPU_IS_LOST
    if isinstance(fault, ResetRequired):
        return abi.RESET_REQUIRED
    if isinstance(fault, NoPermission):
        return abi.NO_PERMISSION
    if isinstance(fault, NvmlError | Unsupported) and any(fnmatch.fnmatchcase(name, glob) for glob in fault.calls):
        return fault.code if isinstance(fault, NvmlError) else abi.NOT_SUPPORTED
    return abi.SUCCESS


def _meant(globs: tuple[str, ...], name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs)


def _missing(gpu: Gpu, t: float) -> bool:
    return any(isinstance(fault, GpuMissing) and fault.active(t) for fault in gpu.faults)


def _version(text: str) -> tuple[int, int]:
    parts = text.split(".")
    return int(parts[0]), int(parts[1]) if len(parts) > 1 else 0
