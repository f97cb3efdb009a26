"""A stub of the Prometheus API on a real socket, which can go wrong in every way."""

import json
import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socket import socket
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec import Struct

from gputop.model.endpoint import Endpoint
from gputop.sources.base import SourceError
from gputop.sources.metrics.envelope import series
from gputop.sources.prometheus.client import PrometheusClient
from tests.integration.socket_server import SocketServer

NOW: Final = 1_790_000_000.0


class Request(Struct, frozen=True):
    """What a client sent."""

    method: str
    path: str
    headers: dict[str, str]
    form: dict[str, str]
    in_url: bool

    @property
    def query(self) -> str:
        return self.form.get("query", "")


Answer = Callable[[socket, Request], None]


def reply(body: bytes, status: str = "200 OK", more: str = "", length: int | None = None) -> Answer:
    """Answer with a body; `length` announces another size than it has."""

    def answer(connection: socket, _request: Request) -> None:
        size = len(body) if length is None else length
        kind = "" if "Content-Type" in more else "Content-Type: application/json\r\n"
        head = f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\nConnection: close\r\n{kind}{more}\r\n"
        connection.sendall(head.encode() + body)

    return answer


def vector(*series: tuple[dict[str, str], float | str], at: float = NOW, **more: Any) -> bytes:
    """Return the envelope of an instant vector."""
    result = [{"metric": labels, "value": [at, str(value)]} for labels, value in series]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}, **more}).encode()


def error(kind: str, words: str) -> bytes:
    """Return the envelope of an error."""
    return json.dumps({"status": "error", "errorType": kind, "error": words}).encode()


class StubServer(SocketServer):
    """The server; `answer` may be replaced while it runs."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(self._handle)
        self.answer: Answer = reply(vector())
        self.requests: list[Request] = []
        self.url = f"{'https' if tls else 'http'}://{self.address}"
        self._tls = tls

    def _handle(self, plain: socket) -> None:
        connection = _greeted(self._tls, plain) if self._tls else plain
        request = _read(connection)
        if request is not None:
            self.requests.append(request)
            self.answer(connection, request)
        if self._tls:
            connection.close()


def _greeted(tls: ssl.SSLContext, connection: socket) -> ssl.SSLSocket:
    """Return the connection after the handshake; a client that is refused gets to read why."""
    secured = tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
    try:
        secured.do_handshake()
    except ssl.SSLError:
        # Closed with something unread, the connection would be reset and the alert be lost.
        secured.setblocking(True)
        with suppress(OSError):
            while os.read(secured.fileno(), 65536):
                pass
        secured.close()
        raise
    return secured


def _read(connection: socket) -> Request | None:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return None
        data += part
        if data[:1] == b"\x16":
            # A TLS handshake on a plain port: servers say so in plain HTTP.
            connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")
            return None
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    method, target, _ = first.split(" ")
    address = urlsplit(target)
    form = parse_qs(body.decode() or address.query)
    return Request(method, address.path, headers, {k: v[0] for k, v in form.items()}, bool(address.query))


@contextmanager
def running(tls: ssl.SSLContext | None = None) -> Iterator[StubServer]:
    stub = StubServer(tls)
    with stub.running():
        yield stub


def ask(url: str, query: str = "up", **settings: Any) -> list[str]:
    """Return the values that the client gets for a query, under settings of an endpoint."""
    client = PrometheusClient(Endpoint(**{"url": url, "timeout_s": 5.0} | settings))
    try:
        found, _ = series(client.ask("query", {"query": query}).data)
        return [one.value[1] for one in found if one.value is not None]
    finally:
        client.close()


def refused(url: str, **settings: Any) -> SourceError:
    """Return why the client gets nothing, in words that may be shown."""
    with pytest.raises(SourceError) as caught:
        ask(url, **settings)
    assert caught.value.reason.isprintable()
    assert "object at 0x" not in caught.value.reason
    return caught.value
