"""Answers that are no data, each in its own words and with what follows from it."""

from typing import Final

from gputop.model.status import SourceState
from gputop.model.text import clean
from gputop.sources.base import SourceError
from gputop.sources.prometheus.envelope import Envelope

_SHOWN: Final = 200
_TOO_WIDE: Final = ("too many samples", "query processing would load", "err-mimir-max", "exceeded maximum resolution")


class TooWideError(SourceError):
    """The query asks for more than the server allows; a narrower one may be answered."""


class WrongMethodError(SourceError):
    """POST is not allowed; GET may be."""


def refusal(status: int, content_type: str, body: bytes, answer: Envelope | None, retry_after: str) -> SourceError:
    """Return why an answer is no data.

    Args:
        status: HTTP status.
        content_type: Content-Type header.
        body: The body, or its beginning.
        answer: The envelope in the body, if there is one.
        retry_after: Retry-After header.
    """
    words = clean(answer.error if answer is not None else "", _SHOWN)
    if answer is None and _looks_like_html(content_type, body):
        return SourceError(_html_words(status), SourceState.DENIED if status < 500 else SourceState.DOWN)
    if any(mark in words for mark in _TOO_WIDE) or status in {413, 414}:
        return TooWideError(f"query too wide for the server: {words or f'HTTP {status}'}")
    table = {
        400: (SourceState.DOWN, "the server does not take the query"),
        401: (SourceState.DENIED, "not logged in: the token or password is missing, wrong or expired"),
        403: (SourceState.DENIED, "not allowed"),
        404: (SourceState.DOWN, "no such address: is the path prefix right (Mimir: /prometheus)?"),
        405: (SourceState.DOWN, "the method is not allowed"),
        422: (SourceState.DOWN, "the server cannot carry out the query"),
        429: (SourceState.DOWN, "the server asks for fewer queries"),
        502: (SourceState.DOWN, "the proxy has no answer from the server"),
        504: (SourceState.DOWN, "the proxy has no answer in time from the server"),
    }
    if status == 401 and "org id" in (words + body[:_SHOWN].decode(errors="replace")).lower():
        return SourceError("the tenant header is missing: set tenant (X-Scope-OrgID)", SourceState.DENIED)
    if status == 503 or (answer is not None and answer.error_type in {"timeout", "unavailable"}):
        slow = answer is not None and answer.error_type == "timeout"
        base = "the server is slow, asking less often" if slow else "the server is not ready (starting, or overloaded)"
        return SourceError(f"{base}: {words}" if words else base, retry_s=_seconds(retry_after))
    state, base = table.get(status, (SourceState.DOWN, f"HTTP {status}"))
    detail = words or clean(body[:_SHOWN].decode(errors="replace"), _SHOWN)
    reason = f"HTTP {status}: {base}" + (f": {detail}" if detail else "")
    if status == 405:
        return WrongMethodError(reason)
    return SourceError(reason, state, _seconds(retry_after))


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
    return float(text) if text.isdigit() else None
