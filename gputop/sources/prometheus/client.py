"""The HTTP client: `PrometheusConnect` with its transport and none of its known defects.

What is overridden, as found in prometheus-api-client 0.7.2: its POST puts the query into the URL, warnings
and infos are dropped, there is no time limit, failures are retried for seconds and then hide the server's
words, and an HTML page ends in a JSON error. Importing it loads requests, so only the source does.
"""

import time
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import requests
from prometheus_api_client.prometheus_connect import PrometheusConnect
from urllib3.exceptions import HTTPError
from urllib3.util.retry import Retry

from gputop.model.endpoint import Endpoint
from gputop.model.status import SourceState
from gputop.model.text import clean
from gputop.sources.base import SourceError
from gputop.sources.http_failures import failure, is_late
from gputop.sources.http_session import CONNECT_S, HttpSession
from gputop.sources.metrics.envelope import Envelope, envelope
from gputop.sources.prometheus.refusals import LateError, WrongMethodError, not_json, refusal
from gputop.sources.tokens import Tokens

_MOST_BYTES: Final = 256 * 1024 * 1024
_CHUNK: Final = 1 << 18
_POSTED: Final = frozenset({"query", "query_range", "series", "labels"})
"""Endpoints that take a form, which has no limit of length as an address has."""


class PrometheusClient(PrometheusConnect):
    """A client that keeps the whole answer and never waits longer than told. Used from one thread at a time.

    Args:
        endpoint: Where and as whom.
        tokens: Its bearer token, which several clients may share; None to make one.

    Attributes:
        bytes_read: Bytes of bodies since the start, unpacked.
        requests_made: Requests since the start.
    """

    def __init__(self, endpoint: Endpoint, tokens: Tokens | None = None) -> None:
        session = HttpSession(endpoint, "application/json")
        super().__init__(url=endpoint.url, retry=Retry(total=0, redirect=0), session=session)
        self._endpoint = endpoint
        self._tokens = tokens or Tokens(endpoint)
        self._session_of_ours = session
        self._get_only = False
        self.bytes_read = 0
        self.requests_made = 0

    def close(self) -> None:
        """Close all connections."""
        self._session_of_ours.close()

    def ask(self, path: str, parameters: dict[str, str]) -> Envelope:
        """Return the envelope of an answer with data.

        Args:
            path: Path below /api/v1/, such as "query".
            parameters: Form fields.

        Raises:
            SourceError: There is no such answer; the reason is in its words.
        """
        if path not in _POSTED or self._get_only:
            return self._ask("GET", path, parameters)
        try:
            return self._ask("POST", path, parameters)
        except WrongMethodError:
            # Some proxies let only GET pass; that is learnt once, and only if GET does pass.
            answer = self._ask("GET", path, parameters)
            self._get_only = True
            return answer

    def _ask(self, method: str, path: str, parameters: dict[str, str], *, again: bool = True) -> Envelope:
        token = self._tokens.current()
        self._session_of_ours.use_token(token)
        status, headers, body = self._exchange(method, path, parameters)
        if status in {401, 403} and again and self._tokens.refused(token):
            return self._ask(method, path, parameters, again=False)
        answer = envelope(body)
        content_type = headers.get("Content-Type", "")
        if status == 403 and method == "POST":
            # Where rights are mapped from methods, POST is "create"; GET may be allowed.
            raise WrongMethodError("POST is not allowed")
        if status >= 300 or (answer is not None and answer.status != "success") or "html" in content_type.lower():
            raise refusal(status, content_type, body, answer, headers.get("Retry-After", ""))
        if answer is None:
            raise not_json(body)
        return answer

    def _exchange(self, method: str, path: str, parameters: dict[str, str]) -> tuple[int, Any, bytes]:
        began = time.monotonic()
        self.requests_made += 1
        try:
            response = self._session_of_ours.request(
                method,
                f"{self._endpoint.url}/api/v1/{path}",
                timeout=(CONNECT_S, self._endpoint.timeout_s),
                allow_redirects=False,
                stream=True,
                data=parameters if method == "POST" else None,
                params=parameters if method != "POST" else None,
            )
            with response:
                if response.is_redirect:
                    raise self._redirected(response)
                return response.status_code, response.headers, self._read(response, began)
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            told = failure(error, self._endpoint.url, self._endpoint, CONNECT_S)
            raise (LateError(told.reason) if is_late(error) else told) from None

    def _read(self, response: requests.Response, began: float) -> bytes:
        """Read the body under the total time and a size: a server may send a byte a second for ever."""
        parts: list[bytes] = []
        size = 0
        while True:
            part = response.raw.read1(_CHUNK, decode_content=True)
            if not part:
                return b"".join(parts)
            parts.append(part)
            size += len(part)
            self.bytes_read += len(part)
            if size > _MOST_BYTES:
                raise SourceError(f"an answer of more than {_MOST_BYTES >> 20} MiB; narrow it with a selector")
            if time.monotonic() - began > self._endpoint.timeout_s:
                raise LateError(f"the answer was not complete after {self._endpoint.timeout_s:.0f} s")

    def _redirected(self, response: requests.Response) -> SourceError:
        # Followed, a redirect would carry the query to a login page, whose 200 looks like an answer.
        asked = urlsplit(self._endpoint.url)
        to = urlsplit(urljoin(response.url, response.headers.get("Location", "")))
        host = clean(to.hostname or "", 80)
        if (asked.scheme, to.scheme) == ("http", "https") and to.hostname == asked.hostname:
            return SourceError(f"{host}: redirected to https: use an https:// address")
        return SourceError(f"redirected to {host}{clean(to.path, 80)}: not logged in at the proxy?", SourceState.DENIED)
