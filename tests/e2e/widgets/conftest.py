"""A terminal of the test's own: a pty whose other side is a program, drawn by pyte."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyte
import pytest

REPO = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).parent / "programs"


class Terminal:
    """A program in a pty, what it wrote, and the screen that this makes."""

    def __init__(self, program: str, *arguments: str, columns: int = 160, lines: int = 40, **environment: str):
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.written = 0
        self.last = b""
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ["HOME"],
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "PYTHONPATH": str(REPO),
            "PYTHONDONTWRITEBYTECODE": "1",
            **environment,
        }
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            command = [sys.executable, str(PROGRAMS / program), *arguments]
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
                os.execve(command[0], command, environ)  # noqa: S606 - the program under test
            finally:
                os._exit(127)

    def pump(self, seconds: float) -> bytes:
        """Read what comes within so many seconds, at most one read's worth."""
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return b""
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:  # what Linux answers once the other side has closed
            return b""
        self.written += len(data)
        self.last += data
        self._stream.feed(data)
        return data

    def until(self, condition: Callable[[], bool], within: float = 20.0) -> None:
        """Read until something holds; fail with the screen if it never does."""
        end = time.monotonic() + within
        while not condition():
            assert time.monotonic() < end, "never so:\n" + "\n".join(self.screen.display)
            self.pump(0.05)

    def until_shown(self, text: str) -> None:
        """Read until the screen shows a text."""
        self.until(lambda: any(text in line for line in self.screen.display))

    def quiet(self, seconds: float = 0.3, within: float = 20.0) -> None:
        """Read until nothing has come for so long."""
        end = time.monotonic() + within
        while self.pump(seconds):
            assert time.monotonic() < end, "it never stops writing"

    def bytes_of(self, keys: str, shown: str) -> int:
        """Type keys, read until the screen shows a text and nothing more comes; return the bytes."""
        self.quiet()
        self.written, self.last = 0, b""
        self.type(keys)
        self.until_shown(shown)
        self.quiet()
        return self.written

    def type(self, keys: str) -> None:
        """Type keys, or anything else a terminal sends."""
        os.write(self.fd, keys.encode())

    def picture(self) -> list[list[tuple[object, ...]]]:
        """Return what can be seen of every cell: character, colours and attributes.

        Of a blank that is neither reversed nor struck nor underlined, only the background can be.
        """
        return [
            [_seen(self.screen.buffer[line][column]) for column in range(self.screen.columns)]
            for line in range(self.screen.lines)
        ]

    def close(self) -> None:
        """End the program."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def _seen(cell: pyte.screens.Char) -> tuple[object, ...]:
    if cell.data == " " and not (cell.reverse or cell.underscore or cell.strikethrough):
        return " ", cell.bg
    return tuple(cell)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """Start programs of this folder in terminals, which end with the test."""
    started: list[Terminal] = []

    def start(program: str, *arguments: str, columns: int = 160, lines: int = 40, **environment: str) -> Terminal:
        started.append(Terminal(program, *arguments, columns=columns, lines=lines, **environment))
        return started[-1]

    yield start
    for each in started:
        each.close()
