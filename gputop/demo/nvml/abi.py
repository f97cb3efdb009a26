"""The C side of the calls: reading what pynvml passes and writing into its structs and buffers.

pynvml hands over ctypes objects (``c_uint``, ``byref(struct)``, arrays, string buffers) and sometimes plain
Python numbers. The functions here treat them as the library treats memory: a missing pointer is
INVALID_ARGUMENT, a small buffer INSUFFICIENT_SIZE, a struct of another version ARGUMENT_VERSION_MISMATCH.
"""

import ctypes
from typing import Any

# What arrives is decided by pynvml at each call, so there is no narrower type to state.
CArgument = Any

SUCCESS = 0
UNINITIALIZED = 1
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
TIMEOUT = 10
LIBRARY_NOT_FOUND = 12
GPU_IS_LOST = 15
RESET_REQUIRED = 16
ARGUMENT_VERSION_MISMATCH = 25

NOT_AVAILABLE_64 = 0xFFFFFFFFFFFFFFFF
NOT_AVAILABLE_32 = 0xFFFFFFFF


class RefusalError(Exception):
    """A call that answers with an NVML error code instead of a value."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def number(argument: CArgument) -> int:
    """Return an integer argument, passed as a ctypes value or a Python number."""
    value = getattr(argument, "value", argument)
    if value is None:
        raise RefusalError(INVALID_ARGUMENT)
    return int(value)


def text(argument: CArgument) -> str:
    """Return a string argument (``c_char_p`` or bytes)."""
    value = getattr(argument, "value", argument)
    if value is None:
        raise RefusalError(INVALID_ARGUMENT)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def pointee(reference: CArgument) -> CArgument:
    """Return the object behind ``byref``, or the object itself: arrays and structs decay to pointers."""
    if reference is None:
        raise RefusalError(INVALID_ARGUMENT)
    inner = getattr(reference, "_obj", None)
    if inner is not None:
        return inner
    return reference


def put(reference: CArgument, value: float) -> int:
    """Write a number through a pointer and return SUCCESS."""
    pointee(reference).value = value
    return SUCCESS


def put_text(buffer: CArgument, size: CArgument, value: str) -> int:
    """Write a NUL-terminated string into a buffer of so many bytes, or say INSUFFICIENT_SIZE."""
    if buffer is None:
        raise RefusalError(INVALID_ARGUMENT)
    data = value.encode("utf-8")
    if len(data) + 1 > number(size):
        raise RefusalError(INSUFFICIENT_SIZE)
    buffer.value = data
    return SUCCESS


def fill(struct: CArgument, **values: float | str) -> int:
    """Write the named members of a struct and return SUCCESS."""
    target = pointee(struct)
    for name, value in values.items():
        setattr(target, name, value.encode("utf-8") if isinstance(value, str) else value)
    return SUCCESS


def versioned(struct: CArgument, version: int) -> CArgument:
    """Return the struct behind a pointer, or refuse where its ``version`` member is another one."""
    target = pointee(struct)
    if int(target.version) != version:
        raise RefusalError(ARGUMENT_VERSION_MISMATCH)
    return target


def struct_version(size: int, number_: int) -> int:
    """Return NVML's struct version word: the size in bytes, and the number in the top byte."""
    return size | (number_ << 24)


class Handles:
    """Opaque handles: each is the address of its own small block, as in C, and NULL is never valid."""

    def __init__(self) -> None:
        self._blocks: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self._objects: dict[int, object] = {}
        self._addresses: dict[object, int] = {}

    def give(self, reference: CArgument, key: object, subject: object) -> int:
        """Write the handle of ``subject`` through a pointer; one ``key`` always has the same handle."""
        return self.assign(pointee(reference), 0, key, subject)

    def assign(self, memory: CArgument, offset: int, key: object, subject: object) -> int:
        """Write the handle of ``subject`` at an offset into a struct or pointer variable."""
        address = self._addresses.get(key)
        if address is None:
            block = ctypes.create_string_buffer(64)
            address = ctypes.addressof(block)
            self._blocks[address] = block
            self._addresses[key] = address
        self._objects[address] = subject
        ctypes.c_void_p.from_buffer(memory, offset).value = address
        return SUCCESS

    def get(self, handle: CArgument) -> object:
        """Return what a handle stands for; INVALID_ARGUMENT for NULL and for handles never given."""
        try:
            address = ctypes.cast(handle, ctypes.c_void_p).value
        except (TypeError, ctypes.ArgumentError) as error:
            raise RefusalError(INVALID_ARGUMENT) from error
        subject = self._objects.get(address) if address else None
        if subject is None:
            raise RefusalError(INVALID_ARGUMENT)
        return subject

    def drop(self, handle: CArgument) -> None:
        """Forget a handle."""
        address = ctypes.cast(handle, ctypes.c_void_p).value
        if address is None or self._objects.pop(address, None) is None:
            raise RefusalError(INVALID_ARGUMENT)
        self._blocks.pop(address)
        for key, known in list(self._addresses.items()):
            if known == address:
                del self._addresses[key]
