"""The HTTP client: `PrometheusConnect` with its transport and none of its known defects.

What is overridden, as found in prometheus-api-client 0.7.2: its POST puts the query into the URL, warnings
and infos are dropped, there is no time limit, failures are retried for seconds and then hide the server's
words, and an HTML page ends in a JSON error. Importing it loads requests, so only the source does.
"""

import time
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from prometheus_api_client.prometheus_connect import PrometheusConnect
from urllib3.exceptions import HTTPError
from urllib3.util.retry import Retry

from gputop import __version__
from gputop.model.endpoint import Endpoint
from gputop.model.text import clean
from gputop.sources.base import SourceError
from gputop.sources.prometheus.auth import Tokens
from gputop.sources.prometheus.envelope import Envelope, envelope
from gputop.sources.prometheus.refusals import WrongMethodError, not_json, refusal

_CONNECT_S: Final = 3.0
_MOST_BYTES: Final = 256 * 1024 * 1024
_CHUNK: Final = 1 << 18


class _Session(requests.Session):
    """A session whose own `verify` wins: requests lets REQUESTS_CA_BUNDLE override it (psf/requests#3829)."""

    own_verify: bool | str | None = None

    def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> Any:  # noqa: ANN401
        """Return settings with proxies of the environment and certificates of the configuration."""
        settings = super().merge_environment_settings(url, proxies, stream, verify, cert)
        if self.own_verify is not None:
            settings["verify"] = self.own_verify
        return settings


class PrometheusClient(PrometheusConnect):
    """A client that keeps the whole answer and never waits longer than told. Used from one thread at a time.

    Args:
        endpoint: Where and as whom.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        session = _Session()
        if endpoint.insecure:
            session.own_verify = False
        elif endpoint.ca_file:
            session.own_verify = endpoint.ca_file
        super().__init__(url=endpoint.url, retry=Retry(total=0, redirect=0), session=session)
        self._endpoint = endpoint
        self._tokens = Tokens(endpoint)
        self._session_of_ours = session
        self._get_only = False
        self.bytes_read = 0
        self.requests_made = 0
        self.clock_offset_s: float | None = None
        session.headers.update({"User-Agent": f"gputop/{__version__}", "Accept": "application/json"})
        if endpoint.tenant:
            session.headers["X-Scope-OrgID"] = endpoint.tenant
        for name, value in endpoint.headers:
            session.headers[name] = value.reveal()
        if endpoint.username:
            session.auth = (endpoint.username, endpoint.password.reveal())
        if endpoint.client_cert:
            session.cert = (endpoint.client_cert, endpoint.client_key) if endpoint.client_key else endpoint.client_cert

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
        if not self._get_only and path in {"query", "query_range", "series", "labels"}:
            try:
                return self._ask("POST", path, parameters)
            except WrongMethodError:
                # Some proxies let only GET pass; that is learnt once.
                self._get_only = True
        return self._ask("GET", path, parameters)

    def _ask(self, method: str, path: str, parameters: dict[str, str], *, again: bool = True) -> Envelope:
        status, headers, body = self._exchange(method, path, parameters)
        if status in {401, 403} and again and self._tokens.refused():
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
        headers = {}
        token = self._tokens.current()
        if token:
            headers["Authorization"] = f"Bearer {token}"
        began = time.monotonic()
        self.requests_made += 1
        try:
            response = self._session_of_ours.request(
                method,
                f"{self._endpoint.url}/api/v1/{path}",
                headers=headers,
                timeout=(_CONNECT_S, self._endpoint.timeout_s),
                allow_redirects=False,
                stream=True,
                data=parameters if method == "POST" else None,
                params=parameters if method != "POST" else None,
            )
            with response:
                body = self._read(response, began)
                self._measure_clock(response.headers.get("Date", ""), began)
                return self._with_redirect(response), response.headers, body
        except (requests.RequestException, HTTPError, OSError) as error:
            raise SourceError(self._words(error)) from None

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
                raise SourceError(f"the answer was not complete after {self._endpoint.timeout_s:.0f} s")

    def _with_redirect(self, response: requests.Response) -> int:
        # Followed, a redirect would carry the query to a login page, whose 200 looks like an answer.
        if response.is_redirect:
            raise SourceError("redirected, as proxies do to their login page: not logged in, or http for https")
        return response.status_code

    def _measure_clock(self, date: str, began: float) -> None:
        from email.utils import parsedate_to_datetime  # noqa: PLC0415 - loads much, and only if there is a date

        try:
            server = parsedate_to_datetime(date).timestamp()
        except (TypeError, ValueError):
            return
        # The header has whole seconds and was written somewhere between asking and now.
        self.clock_offset_s = time.time() - (time.monotonic() - began) / 2 - (server + 0.5)

    def _words(self, error: Exception) -> str:
        host = urlsplit(self._endpoint.url).netloc
        text = str(error)
        if isinstance(error, requests.exceptions.SSLError):
            return f"{host}: TLS: {clean(text.rpartition('(')[2].rstrip(') '), 120)}"
        if isinstance(error, requests.exceptions.ConnectTimeout):
            return f"{host}: no connection within {_CONNECT_S:.0f} s"
        if isinstance(error, requests.exceptions.ReadTimeout) or "timed out" in text.lower():
            return f"{host}: no answer within {self._endpoint.timeout_s:.0f} s"
        for mark, words in (
            ("Name or service not known", "the name is not known"),
            ("Temporary failure in name resolution", "names cannot be resolved"),
            ("nodename nor servname", "the name is not known"),
            ("Connection refused", "connection refused"),
            ("No route to host", "no route"),
            ("Connection reset", "the connection was reset"),
            ("IncompleteRead", "the answer broke off"),
            ("Connection broken", "the answer broke off"),
            ("closed connection without response", "the connection was closed without an answer"),
        ):
            if mark in text:
                return f"{host}: {words}"
        return f"{host}: {clean(text, 160)}"
