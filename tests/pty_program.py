"""A terminal program in a pty, with what its whole tree of processes costs."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import pyte

_TICK = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """Return a process and all that descend from it."""
    pids = [pid]
    for one in pids:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                pids += [int(child) for child in task.read_text(encoding="ascii").split()]
    return pids


class Program:
    """One run; to be used as a context.

    Args:
        command: The program and its arguments.
        columns: Width of the terminal.
        lines: Height of the terminal.
        env: Variables over those of a terminal of true colour.
    """

    def __init__(
        self, command: Sequence[str], columns: int = 200, lines: int = 50, env: Mapping[str, str] | None = None
    ) -> None:
        self.began = time.monotonic()
        self.pid, self.fd = pty.fork()
        self.status: int | None = None
        self.written = b""
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            usual = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
            given = {**os.environ, **usual, **(env or {})}
            # Without compiled modules the first frame would be the compiler's.
            given.pop("PYTHONDONTWRITEBYTECODE", None)
            os.execvpe(command[0], list(command), given)  # noqa: S606 - the program that is looked at

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGTERM)
            self.wait(10.0)
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.fd >= 0:
            os.close(self.fd)

    def read(self, seconds: float) -> bytes:
        """Return the next bytes written, b"" when there were none in that time or the program is gone."""
        if not select.select([self.fd], [], [], max(0.0, seconds))[0]:
            return b""
        with contextlib.suppress(OSError):
            return os.read(self.fd, 1 << 16)
        return b""

    def read_for(self, seconds: float) -> bytes:
        """Return what is written in that time."""
        ends, parts = time.monotonic() + seconds, []
        while (left := ends - time.monotonic()) > 0:
            parts.append(self.read(left))
        return b"".join(parts)

    def read_until(self, wanted: bytes, seconds: float) -> bool:
        """Read until these bytes were written; False if they were not in that time."""
        ends, last = time.monotonic() + seconds, b""
        while (left := ends - time.monotonic()) > 0:
            last = last[-len(wanted) :] + self.read(left)
            if wanted in last:
                return True
        return False

    def read_until_shown(self, wanted: str, seconds: float) -> str:
        """Read until a text stands on the screen, or the time is over; return the screen."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            data = self.read(left)
            self.written += data
            self._stream.feed(data)
            if wanted in (shown := "\n".join(self._screen.display)):
                return shown
        return "\n".join(self._screen.display)

    def read_bytes(self, count: int, seconds: float) -> None:
        """Read until so many bytes were written, or the time is over."""
        ends, total = time.monotonic() + seconds, 0
        while total <= count and (left := ends - time.monotonic()) > 0:
            total += len(self.read(left))

    def cpu_s(self) -> float:
        """Return the seconds of CPU that the processes alive took so far."""
        total = 0
        for pid in tree(self.pid):
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
                total += int(fields[11]) + int(fields[12])
        return total / _TICK

    def memory_mb(self, *, without: str = "") -> float:
        """Return the proportional set size of all processes, but for those whose command line has `without`."""
        total_kb = 0
        for pid in tree(self.pid):
            with contextlib.suppress(OSError):
                if without and without.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    continue
                for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
                    if line.startswith("Pss:"):
                        total_kb += int(line.split()[1])
        return total_kb / 1024

    def quit(self, key: bytes = b"q", seconds: float = 20.0) -> float:
        """Press the key that leaves and return the seconds until the program was gone."""
        asked = time.monotonic()
        os.write(self.fd, key)
        self.wait(seconds)
        return time.monotonic() - asked

    def leave_unread(self, seconds: float) -> None:
        """Let what is written pile up for some time."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            os.write(self.fd, b"jk")
            time.sleep(min(0.002, left))

    def hang_up(self) -> None:
        """Take the terminal away, as a broken connection does."""
        os.close(self.fd)
        self.fd = -1

    def wait(self, seconds: float) -> bytes:
        """Wait for the program to end; its exit code is then in `status`.

        Returns:
            What it wrote meanwhile.
        """
        ends, parts = time.monotonic() + seconds, []
        while self.status is None and time.monotonic() < ends:
            if self.fd >= 0:
                parts.append(self.read(0.01))
            else:
                time.sleep(0.01)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                parts.append(self.read(0.0) if self.fd >= 0 else b"")
        return b"".join(parts)
