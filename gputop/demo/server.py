"""The demo's HTTP server: Prometheus API, exporters' pages and fault switches on one loopback port.

Paths: ``/api/v1/…`` and ``/-/ready`` as Prometheus has them; ``/node/NAME/metrics`` a node's exporter;
``/ksm/metrics`` kube-state-metrics; ``/demo/fault`` the switches (POST an
:class:`~gputop.demo.httpfault.HttpFault` as JSON, GET the list, DELETE all).
"""

import gzip
import json
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec

from gputop.demo.httpfault import HttpFault, Switches
from gputop.demo.prometheus import Answer, Api, error
from gputop.demo.series import render
from gputop.demo.store import Store, Target
from gputop.demo.world import World

TEXT_KIND = "text/plain; version=0.0.4; charset=utf-8; escaping=values"
_MOST_BODY = 16 * 1024 * 1024
_SLICES = 20
_WORTH_ZIPPING = 1024

_LOGIN = "<!DOCTYPE html><html><head><title>Sign in</title></head><body>Sign in to continue</body></html>"


class DemoServer(ThreadingHTTPServer):
    """The server of one world; ``started`` is the unix time of the scenario's start."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, world: World, started: float, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.world = world
        self.started = started
        self.switches = Switches()
        self.store = Store(world, started)
        self.api = Api(self.store, self.clock)
        # The store's caches are shared; one answer is worked out at a time.
        self.lock = threading.Lock()
        self._by_node = {target.node.name: target for target in self.store.targets if target.node}

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def clock(self) -> float:
        """Return unix time by the server's own clock."""
        return time.time() + self.switches.skew_s()

    def exporters(self) -> dict[str, str]:
        """Return the address of each node's exporter."""
        return {name: f"{self.url}/node/{name}/metrics" for name in self._by_node}

    def page(self, path: str) -> Answer | None:
        """Return an exporter's page; None where nothing answers at that address."""
        parts = path.strip("/").split("/")
        t = time.time() // self.store.interval_s * self.store.interval_s - self.started
        if parts == ["ksm", "metrics"]:
            target = next((one for one in self.store.targets if one.node is None), None)
        elif len(parts) == 3 and parts[0] == "node" and parts[2] == "metrics":
            target = self._by_node.get(urllib.parse.unquote(parts[1]))
        else:
            target = None
        return Answer(404, "text/plain", "404 page not found\n") if target is None else _page(target, t, self.started)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing when a client goes away: the demo shares a terminal with the program that reads it."""


def _page(target: Target, t: float, started: float) -> Answer | None:
    status = target.status(t)
    if status == 0:
        return None
    if status != 200:
        return Answer(status, "text/plain", "error gathering metrics: collector failed\n")
    if target.empty(t):
        return Answer(200, TEXT_KIND, "")
    skew = target.skew_s(t)
    stamp = round((started + t + skew) * 1000) if skew else None
    return Answer(200, TEXT_KIND, render(target.exposition, t, stamp))


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: DemoServer  # type: ignore[assignment]  # http.server declares its own base class here
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_version = "gputop-demo"
    sys_version = ""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name that http.server calls)
        """Write no access log."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Write the Date header by the server's own clock."""
        return super().date_time_string(self.server.clock() if timestamp is None else timestamp)

    def do_GET(self) -> None:
        """Answer a GET."""
        address = urllib.parse.urlsplit(self.path)
        self._serve(address.path, urllib.parse.parse_qs(address.query, keep_blank_values=True))

    def do_POST(self) -> None:
        """Answer a POST with a form, or switch a fault on."""
        length = int(self.headers.get("Content-Length") or 0)
        if length > _MOST_BODY:
            self.close_connection = True
            self._send(error("bad_data", "request body too large", 413))
            return
        body = self.rfile.read(length)
        address = urllib.parse.urlsplit(self.path)
        if address.path == "/demo/fault":
            self._send(self._switch(body))
            return
        form = urllib.parse.parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
        query = urllib.parse.parse_qs(address.query, keep_blank_values=True)
        self._serve(address.path, {**query, **form})

    def do_DELETE(self) -> None:
        """Switch all faults off."""
        if urllib.parse.urlsplit(self.path).path == "/demo/fault":
            self.server.switches.clear()
            self._send(Answer(200, "application/json", "[]"))
        else:
            self._send(error("bad_data", "method not allowed", 405))

    def _switch(self, body: bytes) -> Answer:
        try:
            fault = msgspec.json.decode(body, type=HttpFault)
        except msgspec.MsgspecError as problem:
            return error("bad_data", str(problem), 400)
        self.server.switches.add(fault)
        return Answer(200, "application/json", msgspec.json.encode(fault).decode())

    def _serve(self, path: str, parameters: dict[str, list[str]]) -> None:
        fault = self.server.switches.strike(path)
        if fault is not None and fault.kind == "hang":
            # Nothing is read or sent; when the time is over the connection is simply closed.
            time.sleep(fault.seconds)
            self.close_connection = True
            return
        answer = _instead(fault) if fault else None
        if answer is None:
            answer = self._answer(path, parameters)
        if answer is None:
            self.close_connection = True
            return
        self._send(_altered(answer, fault) if fault else answer, fault)

    def _answer(self, path: str, parameters: dict[str, list[str]]) -> Answer | None:
        if path in {"/-/ready", "/-/healthy"}:
            return Answer(200, "text/plain", "Prometheus Server is Ready.\n")
        if path == "/demo/fault":
            return Answer(200, "application/json", msgspec.json.encode(self.server.switches.listed()).decode())
        with self.server.lock:
            if path.startswith("/api/v1/"):
                self.server.store.skew_s = self.server.switches.skew_s()
                return self.server.api.answer(path.removeprefix("/api/v1/"), parameters)
            return self.server.page(path)

    def _send(self, answer: Answer, fault: HttpFault | None = None) -> None:
        body = answer.body.encode("utf-8")
        zipped = len(body) > _WORTH_ZIPPING and "gzip" in self.headers.get("Accept-Encoding", "")
        if zipped:
            body = gzip.compress(body, 1, mtime=0)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(body)))
        if zipped:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        if fault is not None and fault.kind == "truncated":
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        elif fault is not None and fault.kind == "slow":
            self._trickle(body, fault.seconds)
        else:
            self.wfile.write(body)

    def _trickle(self, body: bytes, seconds: float) -> None:
        size = max(1, -(-len(body) // _SLICES))
        for place in range(0, len(body), size):
            time.sleep(seconds / _SLICES)
            self.wfile.write(body[place : place + size])


def _instead(fault: HttpFault) -> Answer | None:
    """Return what a fault answers in place of the data, or None where the data is only altered."""
    if fault.kind == "html":
        return Answer(200, "text/html; charset=utf-8", fault.text or _LOGIN)
    if fault.kind == "text":
        return Answer(fault.status, "text/plain; charset=utf-8", fault.text)
    if fault.kind == "status":
        return error(fault.error_type, fault.text or "the server is not ready", fault.status)
    if fault.kind == "envelope":
        return error(fault.error_type, fault.text or "query timed out in expression evaluation", 200)
    return None


def _altered(answer: Answer, fault: HttpFault) -> Answer:
    if fault.kind not in {"duplicate", "warnings"} or answer.kind != "application/json":
        return answer
    envelope = json.loads(answer.body)
    if fault.kind == "warnings":
        envelope["warnings"] = [fault.text or "fetch series: store 10.0.0.7:10901 not reachable"]
    elif isinstance(envelope.get("data"), dict) and isinstance(envelope["data"].get("result"), list):
        envelope["data"]["result"] = [row for row in envelope["data"]["result"] for _ in range(2)]
    return answer._replace(body=json.dumps(envelope))
