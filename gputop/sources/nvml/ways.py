"""The ways in which NVML tells a number: a function, or a field value id.

A `Read` lists the ways to one reading in the order in which they are tried. The next is taken only where
the driver says for good that it does not have the one before.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from gputop.model.quantity import QUANTITIES, Kind
from gputop.model.reading import NA, UNKNOWN, Absent, Value
from gputop.model.sanity import judge, judge_raw, judge_text
from gputop.model.text import clean

CObject = Any
"""A ctypes object: which one is decided by a table, so there is no narrower type to state."""

Convert = Callable[[CObject], Value]


class Out(Struct, frozen=True):
    """An out parameter of a function.

    Attributes:
        ctype: Its ctypes class.
        version: Version word to be set before the call, 0 when the struct has none.
        preset: Other members to be set before the call.
    """

    ctype: type
    version: int = 0
    preset: tuple[tuple[str, int], ...] = ()


class TextOut(Struct, frozen=True):
    """A character buffer.

    Attributes:
        size: Its size in bytes.
        sized: Whether the size is the next argument (it is, but for the GSP firmware version).
    """

    size: int
    sized: bool = True


class Take(Struct, frozen=True):
    """One quantity out of what a function gives.

    Attributes:
        quantity: Its id.
        attribute: Member of the out parameter; "" for the parameter itself.
        out: Number of the out parameter.
        scale: Factor to the quantity's unit.
        convert: Used in place of `scale` where the number is not the value itself.
    """

    quantity: str
    attribute: str = "value"
    out: int = 0
    scale: float = 1.0
    convert: Convert | None = None


class Call(Struct, frozen=True):
    """A function of a device.

    Attributes:
        function: Name of the symbol, with its version.
        takes: What is taken out of it.
        outs: Its out parameters, in order after `args`.
        args: Arguments after the handle, as (ctypes class, number).
    """

    function: str
    takes: tuple[Take, ...]
    outs: tuple[Out | TextOut, ...]
    args: tuple[tuple[type, int], ...] = ()


class Field(Struct, frozen=True):
    """A field value id; all due ones of a device go into one call.

    Attributes:
        field: `NVML_FI_…`.
        scope: `scopeId`: the part of the device, or the link.
        scale: As in `Take`.
        convert: As in `Take`.
    """

    field: int
    scope: int = 0
    scale: float = 1.0
    convert: Convert | None = None


class Read(Struct, frozen=True):
    """One line of the table.

    Attributes:
        quantities: What it gives. A field gives the first.
        ways: The ways to it, best first.
        group: Cadence class.
        board: Whether it is read on boards.
        instance: Whether it is read on MIG instances.
        rate: The field is a counter and the reading is its growth per second.
    """

    quantities: tuple[str, ...]
    ways: tuple[Call | Field, ...]
    group: int
    board: bool = True
    instance: bool = False
    rate: bool = False


NOT_TOLD_BY_OLD_CALL: Final = Absent(NA, "not_told", "this driver tells it only as part of the memory used")
_UNKNOWN_WORD: Final = "unknown"


def number(quantity: str, raw: float, scale: float) -> float | Absent:
    """Return a raw number in the quantity's unit, judged before and after the conversion."""
    blank = judge_raw(raw)
    if blank is not None:
        return blank
    # Dividing by a whole number keeps 621002 mW from becoming 621.0020000000001 W.
    return judge(quantity, raw / round(1.0 / scale) if scale < 1.0 else raw * scale)


def value_of(take: Take, raw: CObject) -> Value:
    """Return what a `Take` makes of the member it reads."""
    if take.convert is not None:
        return take.convert(raw)
    if isinstance(raw, bytes | str):
        return text(raw)
    if QUANTITIES[take.quantity].kind is Kind.BITMASK:
        return judge(take.quantity, float(raw))
    return number(take.quantity, float(raw), take.scale)


def text(raw: bytes | str) -> Value:
    """Return a string of the library as a clean value; pynvml's structs have decoded theirs."""
    return judge_text(clean(raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw))


def words(names: dict[int, str]) -> Convert:
    """Return a conversion of an enum to words; a number without a word is shown as the number."""

    def convert(raw: CObject) -> Value:
        return names.get(int(raw)) or f"{_UNKNOWN_WORD} ({int(raw)})"

    return convert


def signed(quantity: str) -> Convert:
    """Return a conversion of a field that may be below 0 and that some drivers give an unsigned type."""

    def convert(raw: CObject) -> Value:
        # All bits set stays what it is elsewhere: the marker for "not available".
        return number(quantity, raw - 2.0**32 if 2.0**31 <= raw < 2.0**32 - 1 else raw, 1.0)

    return convert


def unless(code: int, reason: str, quantity: str, scale: float = 1.0) -> Convert:
    """Return a conversion in which one number stands for "not known"."""

    def convert(raw: CObject) -> Value:
        return Absent(UNKNOWN, "unknown", reason) if int(raw) == code else number(quantity, raw, scale)

    return convert
