"""A stub exporter that can go wrong in every way, on a real socket."""

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socket import socket

PAGE = (
    'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a0",pci_bus_id="00000000:3B:00.0",Hostname="n1",'
    'modelName="NVIDIA L4"} 41\nDCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a0",Hostname="n1"} 30.5\n'
)

Answer = Callable[[socket, str], None]


def reply(body: bytes, status: str = "200 OK", more: str = "", length: int | None = None) -> Answer:
    """Answer with a body; `length` announces another size than it has."""

    def answer(connection: socket, _request: str) -> None:
        size = len(body) if length is None else length
        head = f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\nConnection: close\r\n{more}\r\n"
        connection.sendall(head.encode() + body)

    return answer


class StubExporter:
    """The server; `answer` may be replaced while it runs."""

    def __init__(self) -> None:
        self.answer: Answer = reply(PAGE.encode())
        self.requests: list[str] = []
        self.ended = threading.Event()
        stub = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                request = self.request.recv(65536).decode()
                stub.requests.append(request)
                try:
                    stub.answer(self.request, request)
                except OSError:
                    # The client has gone, which is what some tests want.
                    return

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.block_on_close = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"


@contextmanager
def running() -> Iterator[StubExporter]:
    stub = StubExporter()
    thread = threading.Thread(target=stub.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        stub.ended.set()
        stub.server.shutdown()
        stub.server.server_close()
        thread.join(5)
