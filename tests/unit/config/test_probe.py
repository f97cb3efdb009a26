"""A look at loopback servers that hang, drip, lie or speak something else."""

import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from gputop.config.detect import Surroundings, answers, detect, probe

OK = b"HTTP/1.1 200 OK\r\n"
Serve = Callable[[Callable[[socket.socket], None]], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serve one connection of a port with a function that is given the socket."""
    opened: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def start(answer: Callable[[socket.socket], None]) -> str:
        server = socket.create_server(("127.0.0.1", 0))
        opened.append(server)

        def run() -> None:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client:
                client.recv(4096)
                try:
                    answer(client)
                except OSError:
                    return

        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()
        return f"http://127.0.0.1:{server.getsockname()[1]}/x"

    yield start
    for server in opened:
        # A thread that nobody connected to waits in accept until the socket is shut down.
        server.shutdown(socket.SHUT_RDWR)
        server.close()
    for thread in threads:
        thread.join(5)


def test_an_answer_is_its_body(serve: Serve) -> None:
    assert probe(serve(lambda c: c.sendall(OK + b"\r\nDCGM_FI_"))) == b"DCGM_FI_"


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-x\r\n",
        b"",
        b"HTTP/1.1 404 Not Found\r\n\r\nDCGM_FI_",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["not http", "nothing", "404", "headers", "bad chunk"],
)
def test_what_is_no_answer_is_none(serve: Serve, answer: bytes) -> None:
    assert probe(serve(lambda c: c.sendall(answer))) == b""


def test_a_redirect_is_not_followed(serve: Serve) -> None:
    reached = threading.Event()
    elsewhere = serve(lambda c: reached.set())
    redirect = f"HTTP/1.1 302 Found\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n".encode()
    assert probe(serve(lambda c: c.sendall(redirect))) == b""
    assert not reached.is_set()


def test_a_server_that_drips_is_left_behind(serve: Serve) -> None:
    stop = threading.Event()
    dripped = threading.Event()

    def drip(client: socket.socket) -> None:
        client.sendall(OK + b"\r\n")
        while not stop.wait(0.1):
            client.sendall(b"x")
            dripped.set()

    slow = serve(drip)
    try:
        # Each byte comes before the socket's own timeout, and the server ends only after the assertion.
        assert answers(probe, (slow,)) == {slow: b""}
        assert dripped.wait(10)
    finally:
        stop.set()


def test_a_probe_that_never_ends_does_not_hold_the_start() -> None:
    free = threading.Event()

    def hang(url: str) -> bytes:
        free.wait(60)
        return url.encode()

    begun = time.monotonic()
    try:
        assert answers(hang, ("a", "b", "c")) == {"a": b"", "b": b"", "c": b""}
        assert time.monotonic() - begun < 30
    finally:
        free.set()


@pytest.mark.parametrize("body", [b"[" * 60000, b'{"status":"success"}', b'{"status":"success","data":[]}', b"\xff"])
def test_an_odd_answer_is_no_prometheus(tmp_path_factory: pytest.TempPathFactory, body: bytes) -> None:
    assert detect(Surroundings({}, tmp_path_factory.mktemp("root"), lambda _: body)) == ()
