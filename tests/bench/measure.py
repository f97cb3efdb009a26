"""Cost of a terminal program in a pty: CPU of its whole tree, bytes written, memory, first frame, time to quit."""

import contextlib
import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

_TICK = os.sysconf("SC_CLK_TCK")
_FRAME_BYTES = 1500
"""A program that has written so much has shown something."""


class Measured(Struct, frozen=True):
    """What one run came to."""

    first_s: float
    cpu_percent: float
    bytes_per_s: float
    memory_mb: float
    quit_s: float


def _tree(pid: int) -> list[int]:
    pids = [pid]
    for one in pids:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                pids += [int(child) for child in task.read_text(encoding="ascii").split()]
    return pids


def _cpu_s(pids: Sequence[int]) -> float:
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / _TICK


def _memory_mb(pids: Sequence[int]) -> float:
    total_kb = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
                if line.startswith("Pss:"):
                    total_kb += int(line.split()[1])
    return total_kb / 1024


def _read(fd: int, seconds: float, enough: int = 0) -> int:
    end, total = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0 and not (enough and total > enough):
        if not select.select([fd], [], [], left)[0]:
            break
        try:
            data = os.read(fd, 1 << 16)
        except OSError:
            break
        if not data:
            break
        total += len(data)
    return total


def measure(command: Sequence[str], *, seconds: float, columns: int = 200, lines: int = 50) -> Measured:
    """Run a program, let it settle, watch it, and leave it with q."""
    began = time.monotonic()
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        env = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        os.execvpe(command[0], list(command), env)  # noqa: S606 - the program that is measured
    _read(fd, 15.0, _FRAME_BYTES)
    first_s = time.monotonic() - began
    _read(fd, 5.0)
    before, watched = _cpu_s(_tree(pid)), time.monotonic()
    written = _read(fd, seconds)
    took_s = time.monotonic() - watched
    pids = _tree(pid)
    cpu_percent, memory_mb = 100 * (_cpu_s(pids) - before) / took_s, _memory_mb(pids)
    asked = time.monotonic()
    os.write(fd, b"q")
    while time.monotonic() - asked < 20 and not os.waitpid(pid, os.WNOHANG)[0]:
        _read(fd, 0.01)
    quit_s = time.monotonic() - asked
    os.close(fd)
    return Measured(first_s, cpu_percent, written / took_s, memory_mb, quit_s)
