"""One GET of an exporter's page, with every way it can go wrong in words.

Runs in a thread of its own that the program does not wait for when it ends: neither a connection that hangs
nor a server that sends a byte a second may hold it up.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Final, TypeVar
from urllib.parse import urlsplit

import requests
from msgspec import Struct
from urllib3.exceptions import HTTPError, IncompleteRead, ProtocolError

from gputop.model.endpoint import Endpoint
from gputop.model.status import SourceState
from gputop.model.text import clean
from gputop.sources.base import SourceError
from gputop.sources.http_failures import failure
from gputop.sources.http_session import CONNECT_S, HttpSession
from gputop.sources.metrics.text import MAX_BYTES, refusal
from gputop.sources.tokens import Tokens

T = TypeVar("T")

_GRACE_S: Final = 1.0
_CHUNK: Final = 1 << 16
_ACCEPT: Final = "text/plain;version=0.0.4;q=0.9,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1"
_SMALL_SKEW_S: Final = 2.0


class Page(Struct, frozen=True):
    """An answer.

    Attributes:
        text: The body.
        is_cut: It broke off before its announced end.
        clock_skew_s: How far the exporter's clock is ahead of this machine's; 0.0 when not told.
        size: Bytes of the body.
    """

    text: str
    is_cut: bool
    clock_skew_s: float
    size: int


class ExporterClient:
    """Gets the page of one exporter.

    Args:
        url: Address of the page.
        endpoint: Credentials, certificates and the time limit.
    """

    def __init__(self, url: str, endpoint: Endpoint) -> None:
        self._url = url
        self._endpoint = endpoint
        self._host = urlsplit(url).netloc
        self._tokens = Tokens(endpoint)
        self._is_busy = False
        self._session = HttpSession(endpoint, _ACCEPT)

    async def fetch(self, use: Callable[[Page], T]) -> T:
        """Get the page and return what `use` makes of it, in the same thread: parsing holds up nobody.

        Raises:
            SourceError: There is no page; the words say why. Or what `use` raises.
        """
        if self._is_busy:
            raise SourceError(f"{self._host}: the last request still hangs")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def settle(action: Callable[[], None]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(lambda: None if answer.done() else action())

        def work() -> None:
            try:
                result = use(self._get())
            except Exception as error:  # noqa: BLE001 - it is raised where the answer is awaited
                failure = error
                self._is_busy = False
                settle(lambda: answer.set_exception(failure))
            else:
                self._is_busy = False
                settle(lambda: answer.set_result(result))

        self._is_busy = True
        threading.Thread(target=work, name=f"exporter {self._host}", daemon=True).start()
        limit_s = CONNECT_S + self._endpoint.timeout_s + _GRACE_S
        try:
            async with asyncio.timeout(limit_s):
                return await answer
        except TimeoutError:
            raise SourceError(f"{self._host}: no complete answer within {limit_s:.0f} s") from None

    def close(self) -> None:
        """Let go of the connections."""
        self._session.close()

    def _get(self, *, again: bool = True) -> Page:
        began = time.monotonic()
        token = self._tokens.current()
        self._session.use_token(token)
        try:
            with self._session.get(
                self._url,
                timeout=(CONNECT_S, self._endpoint.timeout_s),
                allow_redirects=False,
                stream=True,
            ) as response:
                if response.status_code in {401, 403} and again and self._tokens.refused():
                    return self._get(again=False)
                body, is_cut = self._read(response, began)
                skew = _skew(response.headers.get("Date", ""), began)
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            raise failure(error, self._url, self._endpoint, CONNECT_S) from None
        text = body.decode("utf-8", "replace")
        if response.is_redirect:
            raise SourceError(f"{self._host}: redirected, as to a login page or from http to https", SourceState.DENIED)
        if response.status_code != 200:
            raise self._refused(response.status_code, text)
        return Page(text, is_cut, skew, len(body))

    def _read(self, response: requests.Response, began: float) -> tuple[bytes, bool]:
        parts: list[bytes] = []
        size = 0
        while True:
            try:
                part = response.raw.read1(_CHUNK, decode_content=True)
            except (IncompleteRead, ProtocolError) as error:
                if parts and not isinstance(error.__cause__, TimeoutError):
                    # What came before the break is as good as any other page.
                    return b"".join(parts), True
                raise
            if not part:
                return b"".join(parts), False
            parts.append(part)
            size += len(part)
            if size > MAX_BYTES:
                raise SourceError(f"{self._host}: a page of more than {MAX_BYTES >> 20} MiB: is it an exporter?")
            if time.monotonic() - began > self._endpoint.timeout_s:
                limit = self._endpoint.timeout_s
                raise SourceError(f"{self._host}: the page was not complete after {limit:.0f} s")

    def _refused(self, status: int, text: str) -> SourceError:
        why = refusal(text)
        said = why or clean(text.strip(), 160)
        detail = f": {said}" if said else ""
        words = {
            401: "not logged in: the token or password is missing, wrong or expired",
            403: "not allowed",
            404: "no such page: is the path right (/metrics)?",
            500: "the exporter fails to collect",
            503: "not ready: starting, or overloaded",
        }.get(status, "no page of metrics")
        state = SourceState.DENIED if status in {401, 403, 407} else SourceState.DOWN
        return SourceError(f"{self._host}: HTTP {status}: {words}{detail}", state)


def _skew(date: str, began: float) -> float:
    try:
        server = parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError):
        return 0.0
    # The header has whole seconds and was written somewhere between asking and now.
    skew = server + 0.5 - (time.time() - (time.monotonic() - began) / 2)
    return skew if abs(skew) > _SMALL_SKEW_S else 0.0
