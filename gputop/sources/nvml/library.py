"""Calling NVML: symbols found once, structs made once, each call marked and timed.

The symbols come out of pynvml's own table, so that whatever stands in for the library there (a demo, a
test, a newer binding) is what is called. pynvml's wrappers are passed by: they make new structs and
exceptions at each call, and hide which versioned symbol was used.
"""

import ctypes
from collections.abc import Callable
from typing import Final

import pynvml

from gputop.model.reading import Absent, Value, failed
from gputop.sources.nvml import errors
from gputop.sources.nvml.marker import NO_DEVICE, Marker
from gputop.sources.nvml.ways import Call, CObject, Field, TextOut, number, text, value_of

Symbol = Callable[..., int]

# nvmlValueType_t to the member of nvmlValue_t that holds it.
_MEMBERS: Final = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
NARROW_TYPES: Final = frozenset({1, 5, 6})
"""Value types of 32 bits and fewer: a byte counter in one wraps within a second."""


def symbol(name: str) -> Symbol | None:
    """Return a function of the library, or None when this library does not have it."""
    try:
        # The table is private, and it is where pynvml and everything that stands in for it look.
        return pynvml._nvmlGetFunctionPointer(name)  # noqa: SLF001 - pynvml has no public way to ask
    except pynvml.NVMLError:
        return None


class Bound:
    """A `Call` with its symbol, its arguments and the structs it writes into, shared by all devices."""

    __slots__ = ("_resets", "arguments", "call", "function", "name", "outs")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.name = call.function.encode()
        self.function = symbol(call.function)
        self.outs: list[CObject] = []
        self._resets: list[tuple[CObject, str, int]] = []
        arguments: list[CObject] = [ctype(value) for ctype, value in call.args]
        for out in call.outs:
            if isinstance(out, TextOut):
                buffer = ctypes.create_string_buffer(out.size)
                self.outs.append(buffer)
                arguments.append(buffer)
                if out.sized:
                    arguments.append(ctypes.c_uint(out.size))
                continue
            target = out.ctype()
            self.outs.append(target)
            arguments.append(ctypes.byref(target))
            if out.version:
                self._resets.append((target, "version", out.version))
            self._resets += [(target, member, value) for member, value in out.preset]
        self.arguments = tuple(arguments)

    def prepare(self) -> None:
        """Set what the library reads from the structs and may overwrite."""
        for target, member, value in self._resets:
            setattr(target, member, value)

    def values(self) -> dict[str, Value]:
        """Return what the last successful call gave, by quantity."""
        taken: dict[str, Value] = {}
        for take in self.call.takes:
            out = self.outs[take.out]
            taken[take.quantity] = value_of(take, getattr(out, take.attribute) if take.attribute else out)
        return taken

    def raw(self, position: int = 0) -> CObject:
        """Return the member that the take at `position` names, as the library wrote it."""
        take = self.call.takes[position]
        return getattr(self.outs[take.out], take.attribute)


class FieldBatch:
    """Field values of one device read in one call; made once for each set of fields."""

    __slots__ = ("_blank", "_size", "array", "count", "fields")

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self.fields = fields
        self.count = len(fields)
        # One entry more than asked for: some libraries touch the one past the end for NVLink fields
        # (nvitop 1.7.2 guards the same way).
        kind = pynvml.c_nvmlFieldValue_t * (self.count + 1)
        self.array = kind()
        blank = kind()
        for entry, field in zip(blank, fields, strict=False):
            entry.fieldId = field.field
            entry.scopeId = field.scope
            # An entry the library leaves alone must not look like a success.
            entry.nvmlReturn = 999
        self._blank = blank
        self._size = ctypes.sizeof(kind)

    def prepare(self) -> None:
        """Forget the values of the call before."""
        ctypes.memmove(self.array, self._blank, self._size)

    def code(self, position: int) -> int:
        """Return the return code of one entry."""
        return int(self.array[position].nvmlReturn)

    def raw(self, position: int) -> float | Absent:
        """Return the number of one entry that succeeded."""
        entry = self.array[position]
        kind = int(entry.valueType)
        if not 0 <= kind < len(_MEMBERS):
            return failed(f"NVML gave a value of unknown type {kind}")
        return float(getattr(entry.value, _MEMBERS[kind]))

    def value(self, position: int, quantity: str) -> Value:
        """Return one entry that succeeded as a value of `quantity`."""
        raw = self.raw(position)
        field = self.fields[position]
        if isinstance(raw, Absent):
            return raw
        return field.convert(raw) if field.convert else number(quantity, raw, field.scale)


class Library:
    """The library as one thread uses it. Not to be shared between threads: the structs are not."""

    def __init__(self, marker: Marker) -> None:
        self._marker = marker
        self._bound: dict[int, Bound] = {}
        self._calls: list[Call] = []
        self._batches: dict[tuple[Field, ...], FieldBatch] = {}
        self._get_fields: Symbol | None = None
        self._count = ctypes.c_int32(0)
        self.calls = 0
        self.slowest: dict[bytes, float] = {}

    def bind(self, call: Call) -> Bound:
        """Return `call` bound to its symbol; the same object for the same call."""
        bound = self._bound.get(id(call))
        if bound is None:
            bound = Bound(call)
            self._bound[id(call)] = bound
            # Keeps the call alive, as its id is the key.
            self._calls.append(call)
        return bound

    def batch(self, fields: tuple[Field, ...]) -> FieldBatch:
        """Return the batch of these fields; the same object for the same fields."""
        found = self._batches.get(fields)
        if found is None:
            found = self._batches[fields] = FieldBatch(fields)
        return found

    def run(self, bound: Bound, index: int, handle: CObject) -> int:
        """Make a call on a device and return its code."""
        if bound.function is None:
            return errors.FUNCTION_NOT_FOUND
        bound.prepare()
        return self.raw(bound.function, bound.name, index, handle, *bound.arguments)

    def read_fields(self, batch: FieldBatch, index: int, handle: CObject) -> int:
        """Read a batch of fields and return the code of the whole call; each entry has its own as well."""
        if self._get_fields is None:
            self._get_fields = symbol("nvmlDeviceGetFieldValues")
            if self._get_fields is None:
                return errors.FUNCTION_NOT_FOUND
        batch.prepare()
        self._count.value = batch.count
        return self.raw(
            self._get_fields,
            b"nvmlDeviceGetFieldValues",
            index,
            handle,
            self._count,
            ctypes.byref(batch.array),
        )

    def field_costs(self) -> dict[str, float]:
        """Return what each field cost when it was last read, in seconds, by the library's own clock.

        The library tells it with every value (`nvmlFieldValue_t.latencyUsec`).
        """
        costs: dict[str, float] = {}
        for batch in self._batches.values():
            for field, entry in zip(batch.fields, batch.array, strict=False):
                seconds = int(entry.latencyUsec) / 1e6
                name = f"nvmlDeviceGetFieldValues({field.field})"
                if 0.0 < seconds > costs.get(name, 0.0):
                    costs[name] = seconds
        return costs

    def raw(self, function: Symbol, name: bytes, index: int, *arguments: CObject) -> int:
        """Make a marked and timed call with these very arguments and return its code."""
        began = self._marker.begin(index, name)
        code = function(*arguments)
        took = self._marker.end() - began
        self.calls += 1
        if took > self.slowest.get(name, 0.0):
            self.slowest[name] = took
        return code

    def system(self, name: str, *arguments: CObject) -> int:
        """Call a function that is about no device; FUNCTION_NOT_FOUND where the library lacks it."""
        function = symbol(name)
        if function is None:
            return errors.FUNCTION_NOT_FOUND
        return self.raw(function, name.encode(), NO_DEVICE, *arguments)

    def system_text(self, name: str, size: int = 96) -> Value:
        """Return a string about the system, or why there is none."""
        buffer = ctypes.create_string_buffer(size)
        code = self.system(name, buffer, ctypes.c_uint(size))
        if code != errors.SUCCESS:
            return errors.permanent(code) or errors.passing(code)
        return text(buffer.value)
