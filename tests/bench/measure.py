"""Cost of a terminal program: CPU of its whole tree, bytes written, memory, first frame, time to quit."""

import time
from collections.abc import Sequence

from msgspec import Struct

from tests.pty_program import Program

_FRAME_BYTES = 1500
"""A program that has written so much has shown something."""
_SETTLE_S = 5.0


class Measured(Struct, frozen=True):
    """What one run came to."""

    first_s: float
    cpu_percent: float
    bytes_per_s: float
    memory_mb: float
    quit_s: float


def measure(command: Sequence[str], *, seconds: float) -> Measured:
    """Run a program, let it settle, watch it, and leave it with q."""
    with Program(command) as program:
        program.read_bytes(_FRAME_BYTES, 15.0)
        first_s = time.monotonic() - program.began
        program.read_for(_SETTLE_S)
        before, watched = program.cpu_s(), time.monotonic()
        written = len(program.read_for(seconds))
        took_s = time.monotonic() - watched
        cpu_percent, memory_mb = 100 * (program.cpu_s() - before) / took_s, program.memory_mb()
        return Measured(first_s, cpu_percent, written / took_s, memory_mb, program.quit())


def first_frame_s(command: Sequence[str]) -> float:
    """Return the seconds from the start of a program to its first frame."""
    with Program(command) as program:
        program.read_bytes(_FRAME_BYTES, 15.0)
        took_s = time.monotonic() - program.began
        program.quit()
    return took_s
