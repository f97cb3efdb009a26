"""A server on the loopback that hands each connection to a function, for stubs that must go wrong on the wire."""

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socket import socket


class SocketServer:
    """The server.

    Args:
        handle: Called with each connection, in a thread of its own.
    """

    def __init__(self, handle: Callable[[socket], None]) -> None:
        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                try:
                    handle(self.request)
                except OSError:
                    # The client has gone or does not trust us, which is what some tests want.
                    return

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self.ended = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serve; `ended` is set on the way out, for functions that wait."""
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.ended.set()
            self._server.shutdown()
            self._server.server_close()
            thread.join(5)
