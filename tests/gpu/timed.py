"""Every NVML call that is made in a process: how long it took, what it answered, which one has not returned."""

import ctypes
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, Self

import pynvml

from gputop.sources.nvml import errors
from gputop.sources.nvml.marker import NO_DEVICE, Marker

_HANDLE_BY_INDEX: Final = "nvmlDeviceGetHandleByIndex_v2"
# Waits for as long as it is told to.
_WAITS: Final = "nvmlEventSetWait_v2"


class Timed:
    """Stands between pynvml and the library from when it is installed.

    Args:
        marker: Told of each call of the main thread, so that another process can name one that hangs.

    Attributes:
        seconds: How long each call took, by its name with arguments.
        codes: How often each call gave which return code, successes too.
    """

    def __init__(self, marker: Marker) -> None:
        self._marker = marker
        self._find: Callable[[str], Callable[..., int]] = pynvml._nvmlGetFunctionPointer
        self._main = threading.get_ident()
        self._handles: dict[int | None, int] = {}
        self._open: dict[int, tuple[str, float]] = {}
        self.seconds: dict[str, list[float]] = {}
        self.codes: dict[str, Counter[int]] = {}

    def __enter__(self) -> Self:
        pynvml._nvmlGetFunctionPointer = self._function
        return self

    def __exit__(self, *_: object) -> None:
        pynvml._nvmlGetFunctionPointer = self._find

    def _function(self, name: str) -> Callable[..., int]:
        try:
            function = self._find(name)
        except pynvml.NVMLError:
            self.codes.setdefault(f"{name}()", Counter())[errors.FUNCTION_NOT_FOUND] += 1
            raise

        def call(*arguments: Any) -> int:
            return self._call(name, function, arguments)

        return call

    def _call(self, name: str, function: Callable[..., int], arguments: tuple[Any, ...]) -> int:
        label = label_of(name, arguments)
        thread = threading.get_ident()
        began = time.monotonic()
        self._open[thread] = (label, began)
        if thread == self._main:
            self._marker.begin(self._device_of(arguments), label.encode())
        start = time.perf_counter()
        code = function(*arguments)
        took = time.perf_counter() - start
        if thread == self._main:
            self._marker.end()
        self._open.pop(thread, None)
        if name == _HANDLE_BY_INDEX and not code:
            self._handles[_address(arguments[1]._obj)] = arguments[0].value
        self.seconds.setdefault(label, []).append(took)
        self.codes.setdefault(label, Counter())[code] += 1
        return code

    def _device_of(self, arguments: tuple[Any, ...]) -> int:
        address = _address(arguments[0]) if arguments else None
        return self._handles.get(address, NO_DEVICE) if address is not None else NO_DEVICE

    def unanswered(self, seconds: float) -> list[str]:
        """Return the calls, in any thread, that have not returned for so long."""
        now = time.monotonic()
        return [
            label
            for label, began in list(self._open.values())
            if now - began > seconds and not label.startswith(_WAITS)
        ]


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value if isinstance(handle, ctypes._Pointer) else None


def label_of(name: str, arguments: tuple[Any, ...]) -> str:
    """Return a call as it is written in C, without handles and without what is behind the first out parameter."""
    words: list[str] = []
    for argument in arguments:
        if isinstance(argument, ctypes._Pointer):
            continue
        if isinstance(argument, int):
            words.append(str(argument))
        elif isinstance(argument, ctypes._SimpleCData) and isinstance(argument.value, int):
            words.append(str(argument.value))
        else:
            break
    return f"{name}({', '.join(words)})"
