"""Answers that are no data: each cause in words of its own, and what the source is to do about it."""

import json

import pytest

from gputop.model.status import SourceState
from gputop.sources.base import SourceError
from gputop.sources.metrics.envelope import envelope
from gputop.sources.prometheus.refusals import (
    RefusedQueryError,
    SlowError,
    TooWideError,
    WrongMethodError,
    not_json,
    refusal,
)

JSON = "application/json"
HTML = b"<!DOCTYPE html><html><head><title>Sign in</title></head></html>"


def _error(kind: str, words: str) -> bytes:
    return json.dumps({"status": "error", "errorType": kind, "error": words}).encode()


def _refused(status: int, body: bytes, content_type: str = JSON, retry_after: str = "") -> SourceError:
    return refusal(status, content_type, body, envelope(body), retry_after)


TOO_MANY = _error("execution", "query processing would load too many samples into memory in query execution")
MIMIR = _error("execution", "the query exceeded the maximum (err-mimir-max-chunks-per-query)")
SLOW = _error("timeout", "query timed out in expression evaluation")
CASES = [
    (422, TOO_MANY, JSON, TooWideError, SourceState.DOWN, "too wide"),
    (422, MIMIR, JSON, TooWideError, SourceState.DOWN, "err-mimir-max"),
    (422, _error("execution", "many-to-many matching"), JSON, RefusedQueryError, SourceState.DOWN, "many-to-many"),
    (400, b"Client sent an HTTP request to an HTTPS server.\n", "", SourceError, SourceState.DOWN, "use https://"),
    (
        400,
        b"<html><title>400 The plain HTTP request was sent to HTTPS port</title>",
        "text/html",
        SourceError,
        SourceState.DOWN,
        "use https://",
    ),
    (400, _error("bad_data", "parse error at char 3"), JSON, RefusedQueryError, SourceState.DOWN, "parse error"),
    (503, SLOW, JSON, SlowError, SourceState.DOWN, "slow"),
    (503, b"Service Unavailable", "text/plain", SourceError, SourceState.DOWN, "starting"),
    (200, HTML, "text/html", SourceError, SourceState.DENIED, "not logged in"),
    (200, HTML, "", SourceError, SourceState.DENIED, "not logged in"),
    (502, HTML, "text/html", SourceError, SourceState.DOWN, "the proxy answers"),
    (401, b"no org id", "text/plain", SourceError, SourceState.DENIED, "tenant"),
    (401, b"Unauthorized", "text/plain", SourceError, SourceState.DENIED, "token or password"),
    (403, b"Forbidden", "text/plain", SourceError, SourceState.DENIED, "not allowed"),
    (404, b"404 page not found", "text/plain", SourceError, SourceState.DOWN, "path prefix"),
    (405, b"", "text/plain", WrongMethodError, SourceState.DOWN, "method"),
    (407, b"", "text/plain", SourceError, SourceState.DENIED, "proxy"),
    (413, b"", "text/plain", TooWideError, SourceState.DOWN, "413"),
    (414, b"", "text/plain", TooWideError, SourceState.DOWN, "414"),
    (429, b"too many requests", "text/plain", SlowError, SourceState.DOWN, "fewer"),
    (502, b"Bad Gateway", "text/plain", SourceError, SourceState.DOWN, "no answer from the server"),
    (504, b"", "text/plain", SlowError, SourceState.DOWN, "in time"),
    (200, SLOW, JSON, SlowError, SourceState.DOWN, "slow"),
    (200, _error("bad_data", "unknown function"), JSON, RefusedQueryError, SourceState.DOWN, "unknown function"),
    (200, _error("unavailable", "TSDB not ready"), JSON, SourceError, SourceState.DOWN, "not ready"),
    (500, _error("internal", "disk"), JSON, SourceError, SourceState.DOWN, "the server failed"),
]


@pytest.mark.parametrize(("status", "body", "content_type", "kind", "state", "part"), CASES)
def test_each_cause_has_its_own_words(
    status: int, body: bytes, content_type: str, kind: type[SourceError], state: SourceState, part: str
) -> None:
    error = _refused(status, body, content_type)
    assert type(error) is kind
    assert error.state is state
    assert part in error.reason


def test_the_four_refusals_of_an_incident_are_four_different_lines() -> None:
    lines = {
        _refused(422, TOO_MANY).reason,
        _refused(503, SLOW).reason,
        _refused(200, HTML, "text/html").reason,
        _refused(401, b"no org id", "text/plain").reason,
    }
    assert len(lines) == 4
    assert not any("JSON" in line or "Traceback" in line for line in lines)


def test_a_server_says_when_to_come_again() -> None:
    assert _refused(429, b"", retry_after="17").retry_s == 17.0
    assert _refused(503, SLOW, retry_after="9").retry_s == 9.0
    assert _refused(429, b"", retry_after="Tue, 01 Dec 2026 00:00:00 GMT").retry_s is None


def test_bodies_cannot_write_to_the_terminal() -> None:
    nasty = b"\x1b]0;owned\x07\x1b[2J\nlate [bold red]line"
    for error in (_refused(500, nasty, "text/plain"), not_json(nasty), _refused(400, _error("bad_data", "\x1b[2Jx"))):
        assert error.reason.isprintable()


def test_what_is_no_answer_of_the_api_is_shown_by_its_beginning() -> None:
    assert "empty" in not_json(b"  ").reason
    assert "it begins: pong" in not_json(b"pong").reason
    assert len(not_json(b"x" * 10_000).reason) < 200
