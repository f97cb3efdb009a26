"""From a key to the first paint that shows it, in a pty, while data arrives."""

import os
import random
import time
from collections.abc import Sequence

from msgspec import Struct

from tests.pty_program import Program

CURSOR = "▸".encode()
"""The mark of the row under the cursor: written anew when, and only when, the cursor has moved."""
_GIVE_UP_S = 5.0


class Latency(Struct, frozen=True):
    """What the keys of one run came to."""

    keys: int
    median_ms: float
    p90_ms: float
    p99_ms: float
    worst_ms: float
    memory_mb: float


def latency(command: Sequence[str], *, ready: str, keys: int, ready_s: float = 240.0, seed: int = 1) -> Latency:
    """Press keys at uneven times and wait for the cursor to be where each sends it.

    Args:
        command: The program.
        ready: What it shows once the fleet is there.
        keys: How many keys to press.
        ready_s: How long it may take to be ready.
        seed: Of the pauses between keys.
    """
    chance = random.Random(seed)
    with Program(command) as program:
        screen = program.read_until_shown(ready, ready_s)
        if ready not in screen:
            raise TimeoutError(f"{ready} was not shown within {ready_s:g} s:\n{screen}")
        program.read_for(5.0)
        times_ms = []
        for number in range(keys):
            program.read_for(chance.uniform(0.1, 0.4))
            pressed = time.perf_counter()
            # Down and up in turn, with a whole page now and then: each moves the mark.
            os.write(program.fd, (b"\x1b[6~", b"\x1b[5~", b"j", b"k")[number % 4])
            if not program.read_until(CURSOR, _GIVE_UP_S):
                raise TimeoutError(f"key {number} showed nothing within {_GIVE_UP_S:g} s")
            times_ms.append(1000 * (time.perf_counter() - pressed))
        memory_mb = program.memory_mb(without="gputop.demo")
        program.quit()
    times_ms.sort()

    def below_ms(share: float) -> float:
        return times_ms[min(len(times_ms) - 1, int(len(times_ms) * share))]

    return Latency(keys, below_ms(0.5), below_ms(0.9), below_ms(0.99), times_ms[-1], memory_mb)
