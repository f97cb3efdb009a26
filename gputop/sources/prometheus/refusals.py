"""Answers that are no data, each in its own words and with what follows from it."""

from typing import Final

from msgspec import Struct

from gputop.model.status import SourceState
from gputop.model.text import clean
from gputop.sources.base import SourceError
from gputop.sources.metrics.envelope import Envelope

_SHOWN: Final = 200
_PAGE: Final = 2000
_LEAST_RETRY_S: Final = 1.0
_MOST_RETRY_S: Final = 300.0
_TOO_WIDE: Final = ("too many samples", "query processing would load", "err-mimir-max", "exceeded maximum resolution")


class TooWideError(SourceError):
    """The query asks for more than the server allows; a narrower one may be answered."""


class RefusedQueryError(SourceError):
    """The server does not take the query; some take none that leaves the metric's name open (Google, AWS)."""


class SlowError(SourceError):
    """The server is up and has too much to do: it is to be asked less often, not at once again."""


class LateError(SlowError):
    """There is no complete answer in time."""


class WrongMethodError(SourceError):
    """POST is not allowed; GET may be."""


class _Refusal(Struct, frozen=True):
    """What a status means."""

    base: str
    state: SourceState = SourceState.DOWN
    error: type[SourceError] = SourceError


_TABLE: Final = {
    400: _Refusal("the server does not take the query", error=RefusedQueryError),
    401: _Refusal("not logged in: the token or password is missing, wrong or expired", SourceState.DENIED),
    403: _Refusal("not allowed", SourceState.DENIED),
    404: _Refusal("no such address: is the path prefix right (Mimir: /prometheus)?"),
    405: _Refusal("the method is not allowed", error=WrongMethodError),
    407: _Refusal("the proxy wants a login", SourceState.DENIED),
    422: _Refusal("the server cannot carry out the query", error=RefusedQueryError),
    429: _Refusal("the server asks for fewer queries", error=SlowError),
    502: _Refusal("the proxy has no answer from the server"),
    503: _Refusal("the server is not ready (starting, or overloaded)"),
    504: _Refusal("the proxy has no answer in time from the server", error=SlowError),
}
_NO_TLS: Final = _Refusal("the server speaks TLS: use https://")
_TELLING: Final = (
    # Servers written in Go, and nginx, on their TLS port.
    (400, b"http request to an https server", _NO_TLS),
    (400, b"plain http request was sent to https port", _NO_TLS),
    # Mimir, Cortex and Loki.
    (401, b"org id", _Refusal("the tenant header is missing: set tenant (X-Scope-OrgID)", SourceState.DENIED)),
    (403, b"missing authentication token",
     _Refusal("requests have to be signed (AWS SigV4): ask through a proxy that signs them", SourceState.DENIED)),
)  # fmt: skip
"""Status and part of a body, in small letters, that together say more than the status."""
_STATUS_OF: Final = {
    "bad_data": 400, "execution": 422, "canceled": 503, "unavailable": 503, "internal": 500, "not_found": 404,
}  # fmt: skip
"""HTTP status that Prometheus gives to a kind of error."""


def refusal(status: int, content_type: str, body: bytes, answer: Envelope | None, retry_after: str) -> SourceError:
    """Return why an answer is no data.

    Args:
        status: HTTP status.
        content_type: Content-Type header.
        body: The body, or its beginning.
        answer: The envelope in the body, if there is one.
        retry_after: Retry-After header.
    """
    words = clean((answer.error or "") if answer is not None else "", _SHOWN)
    kind = (answer.error_type or "") if answer is not None else ""
    start = body[:_PAGE].lower()
    telling = next((refused for at, mark, refused in _TELLING if at == status and mark in start), None)
    if telling is not None:
        return telling.error(telling.base, telling.state)
    if answer is None and _looks_like_html(content_type, body):
        return SourceError(_html_words(status), SourceState.DENIED if status < 500 else SourceState.DOWN)
    if any(mark in words for mark in _TOO_WIDE) or status in {413, 414}:
        return TooWideError(f"query too wide for the server: {words or f'HTTP {status}'}")
    if kind == "timeout":
        return SlowError(f"the server is slow, asking less often: {words}", retry_s=_seconds(retry_after))
    # Behind some proxies an error comes with status 200.
    told = _STATUS_OF.get(kind, 500) if status < 300 else status
    refused = _TABLE.get(told, _Refusal(base="the server failed" if told >= 500 else "no answer with data"))
    detail = words or clean(body[:_SHOWN].decode(errors="replace"), _SHOWN)
    reason = f"HTTP {status}: {refused.base}" + (f": {detail}" if detail else "")
    return refused.error(reason, refused.state, _seconds(retry_after))


def _looks_like_html(content_type: str, body: bytes) -> bool:
    start = body[:_SHOWN].lstrip().lower()
    return "html" in content_type.lower() or start.startswith((b"<!doctype", b"<html"))


def _html_words(status: int) -> str:
    if status < 400:
        return "a web page in place of data: not logged in at the proxy; a token or a login is needed"
    return f"HTTP {status} with a web page: the proxy answers, not the server"


def not_json(body: bytes) -> SourceError:
    """Return why a body with status 200 is no answer of the API."""
    if not body.strip():
        return SourceError("an empty answer")
    start = clean(body[:_SHOWN].decode(errors="replace"), 80)
    return SourceError(f"no answer of the Prometheus API, it begins: {start}")


def _seconds(text: str) -> float | None:
    """Return a time of waiting that the server asks for, within reason: 0 would be a loop, a day would be blind."""
    return min(max(float(text), _LEAST_RETRY_S), _MOST_RETRY_S) if text.isdecimal() else None
