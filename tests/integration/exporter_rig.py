"""A stub exporter that can go wrong in every way, on a real socket."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socket import socket

from tests.integration.socket_server import SocketServer

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


class StubExporter(SocketServer):
    """The server; `answer` may be replaced while it runs."""

    def __init__(self) -> None:
        super().__init__(self._handle)
        self.answer: Answer = reply(PAGE.encode())
        self.requests: list[str] = []
        self.url = f"http://{self.address}"

    def _handle(self, connection: socket) -> None:
        request = connection.recv(65536).decode()
        self.requests.append(request)
        self.answer(connection, request)


@contextmanager
def running() -> Iterator[StubExporter]:
    stub = StubExporter()
    with stub.running():
        yield stub
