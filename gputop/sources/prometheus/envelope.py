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
    values: list[tuple[float, str]] = []


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
        is_partial: VictoriaMetrics: some storage did not answer.
    """

    status: str
    data: msgspec.Raw = msgspec.Raw(b"null")
    error_type: str = ""
    error: str = ""
    warnings: list[str] = []
    infos: list[str] = []
    is_partial: bool = False


_ENVELOPE: Final = msgspec.json.Decoder(Envelope)
_DATA: Final = msgspec.json.Decoder(Data)
_SERIES: Final = msgspec.json.Decoder(list[SeriesAnswer])
_SCALAR: Final = msgspec.json.Decoder(tuple[float, str])


def envelope(body: bytes) -> Envelope | None:
    """Return the envelope in a body, or None if it is none."""
    try:
        return _ENVELOPE.decode(body)
    except msgspec.MsgspecError:
        return None


def series(data: msgspec.Raw) -> list[SeriesAnswer]:
    """Return the series of a vector or matrix; a scalar is one series without labels.

    Raises:
        msgspec.MsgspecError: The data has another shape.
    """
    decoded = _DATA.decode(data)
    if decoded.result_type in {"scalar", "string"}:
        return [SeriesAnswer({}, _SCALAR.decode(decoded.result))]
    return _SERIES.decode(decoded.result)


def number(text: str) -> float:
    """Return a value's number; NaN if it is none ("+Inf" is one)."""
    try:
        return float(text)
    except ValueError:
        return math.nan
