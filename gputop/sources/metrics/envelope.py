"""What the HTTP API answers, after the Prometheus HTTP API documentation ("Format overview").

Everything of the envelope is kept: a warning may say that the answer is partial (Thanos), an error may come
with status 200 behind a proxy, and numbers are texts.
"""

import math
from typing import Final

import msgspec
from msgspec import Struct


class SeriesAnswer(Struct, frozen=True, gc=False):
    """One series: an instant value, values over time, or a native histogram, which is passed over."""

    metric: dict[str, str] = {}
    value: tuple[float, str] | None = None
    values: tuple[tuple[float, str], ...] = ()


class Data(Struct, frozen=True, rename="camel"):
    """The data of a query, its result undecoded: a scalar's has another shape than a vector's."""

    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"[]")


class Envelope(Struct, frozen=True, rename="camel"):
    """An answer.

    Attributes:
        status: "success" or "error".
        data: The data, undecoded; not every answer has any.
        error_type: Kind of the error: "bad_data", "execution", "timeout", "unavailable", …
        error: The server's words.
        warnings: Warnings, which may come with data.
        infos: Remarks on the query.
        is_partial: VictoriaMetrics, which alone tells it: some storage did not answer.
    """

    status: str
    data: msgspec.Raw = msgspec.Raw(b"null")
    error_type: str | None = None
    error: str | None = None
    warnings: list[str] | None = None
    infos: list[str] | None = None
    is_partial: bool | None = None


_ENVELOPE: Final = msgspec.json.Decoder(Envelope)
_DATA: Final = msgspec.json.Decoder(Data)
_ITEMS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_SERIES: Final = msgspec.json.Decoder(SeriesAnswer)
_SCALAR: Final = msgspec.json.Decoder(tuple[float, str])
_SPACES: Final = bytes(max(code, 0x20) for code in range(256))


def envelope(body: bytes) -> Envelope | None:
    """Return the envelope in a body, or None if it is none.

    Exporters write label values without escaping them, and not every server in between mends that: raw
    control characters and bytes that are no text are replaced where they would cost the whole answer.
    """
    try:
        return _ENVELOPE.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass
    try:
        return _ENVELOPE.decode(body.translate(_SPACES).decode(errors="replace").encode())
    except msgspec.MsgspecError:
        return None


def series(data: msgspec.Raw) -> tuple[list[SeriesAnswer], int]:
    """Return the series of a vector or matrix, and how many of them could not be read.

    A scalar is one series without labels. Series are decoded one by one: one that is broken does not cost
    the others, and the interpreter may let other threads run in between.

    Raises:
        msgspec.MsgspecError: The data has another shape.
    """
    decoded = _DATA.decode(data)
    if decoded.result_type in {"scalar", "string"}:
        return [SeriesAnswer({}, _SCALAR.decode(decoded.result))], 0
    found: list[SeriesAnswer] = []
    broken = 0
    for item in _ITEMS.decode(decoded.result):
        try:
            found.append(_SERIES.decode(item))
        except msgspec.MsgspecError:
            broken += 1
    return found, broken


def number(text: str) -> float:
    """Return a value's number; NaN if it is none ("+Inf" is one)."""
    try:
        return float(text)
    except ValueError:
        return math.nan
