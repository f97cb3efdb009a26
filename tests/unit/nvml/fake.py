"""A scripted NVML library: what each call on each GPU answers is said by the test.

It stands where pynvml keeps its library. A call nobody has scripted answers NOT_SUPPORTED, and a symbol
that the library is to lack is not there at all, as in an older driver.
"""

import ctypes
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import pynvml

MIB = 1024 * 1024

SUCCESS = 0
UNINITIALIZED = 1
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
TIMEOUT = 10
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
ARGUMENT_VERSION_MISMATCH = 25
UNKNOWN = 999

_UNSIGNED_LONG_LONG = 3
# nvmlValueType_t to the member of nvmlValue_t.
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")


class Code(int):
    """An answer that is a return code, not a value."""


@dataclass
class Process:
    """One process of a list."""

    pid: int
    memory: int
    instance: int = 0xFFFFFFFF


@dataclass
class Sample:
    """One sample of process utilisation."""

    pid: int
    stamp_us: int
    sm: int
    encoder: int = 0
    decoder: int = 0


@dataclass
class Gpu:
    """A device: its answers by function name, and by (function, arguments after the handle …) where that matters.

    An answer is a number, bytes, a dict of struct members, a tuple for several out parameters, a `Code`, or
    a callable that returns one of these.
    """

    uuid: str = "GPU-00000000-0000-0000-0000-000000000000"
    bus_id: str = "00000000:1B:00.0"
    answers: dict[Any, Any] = field(default_factory=dict)
    fields: dict[tuple[int, int], Any] = field(default_factory=dict)
    field_type: int = _UNSIGNED_LONG_LONG
    field_types: dict[tuple[int, int], int] = field(default_factory=dict)
    latency_us: dict[int, int] = field(default_factory=dict)
    processes: dict[str, list[Process] | Code] = field(default_factory=dict)
    samples: list[Sample] | Code = field(default_factory=lambda: Code(NOT_FOUND))
    samples_since: list[int] = field(default_factory=list)
    every_call: int = SUCCESS
    open_code: int = SUCCESS
    instances: list["Gpu | None"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.block = ctypes.create_string_buffer(8)
        self.answers.setdefault("nvmlDeviceGetUUID", self.uuid.encode())
        self.answers.setdefault("nvmlDeviceGetPciInfo_v3", {"busId": self.bus_id.encode()})


def memory_v2(total: int, reserved: int, used: int, free: int) -> dict[str, int]:
    """Return an answer of `nvmlDeviceGetMemoryInfo_v2` from MiB."""
    return {"total": total * MIB, "reserved": reserved * MIB, "used": used * MIB, "free": free * MIB}


def plain_gpu(number: int = 0) -> Gpu:
    """Return a GPU on which the readings of the main screen answer."""
    return Gpu(
        uuid=f"GPU-0000000{number}-0000-0000-0000-000000000000",
        bus_id=f"00000000:{0x1A + number:02X}:00.0",
        answers={
            "nvmlDeviceGetUtilizationRates": {"gpu": 40 + number, "memory": 20},
            "nvmlDeviceGetMemoryInfo_v2": memory_v2(81559, 551, 1000, 80008),
            "nvmlDeviceGetTemperature": 50 + number,
            "nvmlDeviceGetPowerUsage": 300_000,
            "nvmlDeviceGetPersistenceMode": 1,
            "nvmlDeviceGetEccMode": (1, 1),
            "nvmlDeviceGetMigMode": (0, 0),
            "nvmlDeviceGetCudaComputeCapability": (9, 0),
            "nvmlDeviceGetArchitecture": 9,
            "nvmlDeviceGetName": b"NVIDIA H100 80GB HBM3",
        },
    )


class FakeLibrary:
    """The library object."""

    def __init__(self, gpus: list[Gpu], lacks: set[str] | None = None) -> None:
        self.gpus = gpus
        self.lacks = lacks or set()
        self.init_code = SUCCESS
        self.counted: int | None = None
        self.calls: Counter[str] = Counter()
        self.open = False
        self.system: dict[str, Any] = {
            "nvmlSystemGetDriverVersion": b"570.133.20",
            "nvmlSystemGetNVMLVersion": b"12.570.133.20",
            "nvmlSystemGetCudaDriverVersion_v2": 12080,
        }

    def __getattr__(self, name: str) -> Callable[..., int]:
        if not name.startswith("nvml") or name in self.lacks:
            raise AttributeError(name)
        special = _SPECIAL.get(name)

        def function(*arguments: Any) -> int:
            self.calls[name] += 1
            if special is not None:
                return special(self, name, *arguments)
            if name in self.system:
                return _answer(self.system[name], arguments)
            return self.on_device(name, *arguments)

        return function

    def on_device(self, name: str, handle: Any, *arguments: Any) -> int:
        """Answer a call on a device."""
        gpu = self.find(handle)
        if gpu is None:
            return INVALID_ARGUMENT
        if gpu.every_call:
            return gpu.every_call
        given = [getattr(one, "value", one) for one in takewhile(lambda one: not hasattr(one, "_obj"), arguments)]
        for length in range(len(given), 0, -1):
            by_argument = gpu.answers.get((name, *given[:length]))
            if by_argument is not None:
                return _answer(by_argument, arguments)
        return _answer(gpu.answers.get(name, Code(NOT_SUPPORTED)), arguments)

    def find(self, handle: Any) -> Any:
        """Return the GPU a handle stands for; None for an instance that has been destroyed."""
        address = ctypes.cast(handle, ctypes.c_void_p).value
        everything = [*self.gpus, *(one for gpu in self.gpus for one in gpu.instances if one is not None)]
        return next((gpu for gpu in everything if ctypes.addressof(gpu.block) == address), None)


def _answer(answer: Any, arguments: tuple[Any, ...]) -> int:
    if callable(answer):
        answer = answer()
    if isinstance(answer, Code):
        return int(answer)
    outs = [argument._obj for argument in arguments if hasattr(argument, "_obj")]
    if isinstance(answer, bytes):
        next(one for one in arguments if isinstance(one, ctypes.Array)).value = answer
    elif isinstance(answer, dict):
        for member, value in answer.items():
            _set(outs[0], member, value)
    else:
        values = answer if isinstance(answer, tuple) else (answer,)
        for out, value in zip(outs, values, strict=False):
            out.value = value
    return SUCCESS


def _set(struct: Any, member: str, value: Any) -> None:
    """Set a member of a struct, which may be a struct or an array itself."""
    kind = getattr(struct, member)
    if isinstance(value, dict):
        for inner, one in value.items():
            _set(kind, inner, one)
    elif isinstance(value, list):
        for position, one in enumerate(value):
            if isinstance(one, dict):
                for inner, deep in one.items():
                    _set(kind[position], inner, deep)
            else:
                kind[position] = one
    else:
        setattr(struct, member, value.encode() if isinstance(value, str) else value)


def _init(library: FakeLibrary, _name: str, *_: Any) -> int:
    library.open = library.init_code == SUCCESS
    return library.init_code


def _shutdown(library: FakeLibrary, _name: str) -> int:
    library.open = False
    return SUCCESS


def _count(library: FakeLibrary, _name: str, result: Any) -> int:
    result._obj.value = len(library.gpus) if library.counted is None else library.counted
    return SUCCESS


def _give(gpu: Gpu, result: Any) -> None:
    ctypes.c_void_p.from_buffer(result._obj).value = ctypes.addressof(gpu.block)


def _handle(library: FakeLibrary, _name: str, index: Any, result: Any) -> int:
    gpu = library.gpus[index.value]
    if gpu.open_code:
        return gpu.open_code
    _give(gpu, result)
    return SUCCESS


def _fields(library: FakeLibrary, _name: str, handle: Any, count: Any, values: Any) -> int:
    gpu = library.find(handle)
    if gpu.every_call:
        return gpu.every_call
    for position in range(count.value):
        entry = values._obj[position]
        answer = gpu.fields.get((entry.fieldId, entry.scopeId), Code(NOT_SUPPORTED))
        if isinstance(answer, Code):
            entry.nvmlReturn = int(answer)
            continue
        entry.nvmlReturn = SUCCESS
        entry.valueType = gpu.field_types.get((entry.fieldId, entry.scopeId), gpu.field_type)
        entry.latencyUsec = gpu.latency_us.get(entry.fieldId, 0)
        setattr(entry.value, _MEMBERS[entry.valueType] if entry.valueType < len(_MEMBERS) else "ullVal", answer)
    return SUCCESS


def _list(kind: str) -> Callable[..., int]:
    def function(library: FakeLibrary, _name: str, handle: Any, count: Any, array: Any) -> int:
        gpu = library.find(handle)
        if gpu.every_call:
            return gpu.every_call
        found = gpu.processes.get(kind, [])
        if isinstance(found, Code):
            return int(found)
        if len(found) > count._obj.value:
            count._obj.value = len(found)
            return INSUFFICIENT_SIZE
        for position, process in enumerate(found):
            array[position].pid = process.pid
            array[position].usedGpuMemory = process.memory
        count._obj.value = len(found)
        return SUCCESS

    return function


def _utilization(library: FakeLibrary, _name: str, handle: Any, array: Any, count: Any, since: Any) -> int:
    gpu = library.find(handle)
    gpu.samples_since.append(since.value)
    if isinstance(gpu.samples, Code):
        return int(gpu.samples)
    for position, sample in enumerate(gpu.samples):
        array[position].pid = sample.pid
        array[position].timeStamp = sample.stamp_us
        array[position].smUtil = sample.sm
        array[position].encUtil = sample.encoder
        array[position].decUtil = sample.decoder
    count._obj.value = len(gpu.samples)
    return SUCCESS


def _most_instances(library: FakeLibrary, _name: str, handle: Any, result: Any) -> int:
    result._obj.value = len(library.find(handle).instances)
    return SUCCESS


def _instance(library: FakeLibrary, _name: str, handle: Any, slot: Any, result: Any) -> int:
    found = library.find(handle).instances[slot.value]
    if found is None:
        return NOT_FOUND
    _give(found, result)
    return SUCCESS


def _no_events(_library: FakeLibrary, _name: str, _handle: Any, _types: Any) -> int:
    return NOT_SUPPORTED


_SPECIAL: dict[str, Callable[..., int]] = {
    "nvmlInitWithFlags": _init,
    "nvmlShutdown": _shutdown,
    "nvmlDeviceGetCount_v2": _count,
    "nvmlDeviceGetHandleByIndex_v2": _handle,
    "nvmlDeviceGetFieldValues": _fields,
    "nvmlDeviceGetComputeRunningProcesses_v3": _list("C"),
    "nvmlDeviceGetGraphicsRunningProcesses_v3": _list("G"),
    "nvmlDeviceGetMPSComputeRunningProcesses_v3": _list("M"),
    "nvmlDeviceGetComputeRunningProcesses_v2": _list("C"),
    "nvmlDeviceGetGraphicsRunningProcesses_v2": _list("G"),
    "nvmlDeviceGetMPSComputeRunningProcesses_v2": _list("M"),
    "nvmlDeviceGetComputeRunningProcesses": _list("C"),
    "nvmlDeviceGetGraphicsRunningProcesses": _list("G"),
    "nvmlDeviceGetMPSComputeRunningProcesses": _list("M"),
    "nvmlDeviceGetProcessUtilization": _utilization,
    "nvmlDeviceGetMaxMigDeviceCount": _most_instances,
    "nvmlDeviceGetMigDeviceHandleByIndex": _instance,
    "nvmlDeviceGetSupportedEventTypes": _no_events,
    "nvmlEventSetCreate": lambda *_: SUCCESS,
    "nvmlEventSetFree": lambda *_: SUCCESS,
}


def install(library: FakeLibrary, monkeypatch: Any) -> FakeLibrary:
    """Put the library where pynvml looks for one."""
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    monkeypatch.setattr(pynvml, "nvmlLib", library)
    monkeypatch.setattr(pynvml, "_LoadNvmlLibrary", lambda: None)
    return library
