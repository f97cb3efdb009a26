"""The child: reads NVML and writes frames until its parent closes the pipe.

Run as ``python -m gputop.sources.nvml.child``. Its standard input carries `Plan` and `Refresh`, its
standard output everything of `protocol.Up`, its standard error the last words that the parent shows as
the reason for its death. It is kept small, since it is counted in what gputop costs: no asyncio, no
Textual, and no `typing_extensions`, which msgspec takes in only for the sake of others' annotations.
"""

import argparse
import ctypes
import gc
import os
import select
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Final, NoReturn

if "typing_extensions" not in sys.modules:
    # Makes msgspec fall back to `typing`: 1.5 MB less in this process.
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # None is Python's mark of a module not to import

from gputop.sources.nvml import cadence
from gputop.sources.nvml.inventory import RestartNeededError
from gputop.sources.nvml.marker import Marker
from gputop.sources.nvml.protocol import (
    Frames,
    NoNvml,
    Plan,
    Refresh,
    Restart,
    Up,
    XidEvent,
    down_decoder,
    frame,
)
from gputop.sources.nvml.sweep import Place, Sweep

_PR_SET_PDEATHSIG: Final = 1
_PROCESSES: Final = "processes"
_HOST: Final = "host"
_COSTS: Final = "costs"
_COSTS_S: Final = 5.0
_NUDGE_PAUSE_S: Final = 1.0


class Pipes:
    """The two pipes to the parent. Sending is safe from any thread.

    The process's own standard output is turned to its standard error, so that nothing a library prints
    can break the frames.
    """

    def __init__(self) -> None:
        self._out = os.dup(1)
        os.dup2(2, 1)
        self._lock = threading.Lock()
        self._frames = Frames()
        self._decoder = down_decoder()
        self.closed = False
        self._wake_out, self._wake_in = os.pipe()
        os.set_blocking(self._wake_in, False)
        os.set_blocking(self._wake_out, False)

    def send(self, message: Up) -> None:
        """Write one message."""
        data = memoryview(frame(message))
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._out, data) :]
            except BrokenPipeError:
                self.closed = True

    def wake(self) -> None:
        """End a `receive` in another thread."""
        try:
            os.write(self._wake_in, b"\0")
        except BlockingIOError:
            return

    def receive(self, seconds: float | None) -> list[Plan | Refresh]:
        """Wait so long for messages; `closed` is set when the parent has gone."""
        ready, _, _ = select.select([0, self._wake_out], [], [], seconds)
        if self._wake_out in ready:
            os.read(self._wake_out, 4096)
        if 0 not in ready:
            return []
        data = os.read(0, 65536)
        if not data:
            self.closed = True
            return []
        return [self._decoder.decode(body) for body in self._frames.feed(data)]


class Child:
    """The loop.

    Args:
        options: Parsed command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._pipes = Pipes()
        self._nudged = threading.Event()
        self._sweep = Sweep(
            Place(options.host, Path(options.proc_root), Path(options.sys_root)),
            Marker(options.marker_fd),
            self._send,
            self._nudge,
        )
        self._due: dict[int | str, float] = {}
        self._nudge_after = 0.0

    def _nudge(self) -> None:
        self._nudged.set()
        self._pipes.wake()

    def _send(self, message: Up) -> None:
        self._pipes.send(message)
        if isinstance(message, XidEvent):
            self._nudge()

    def run(self) -> None:
        """Read until the parent has gone or NVML has."""
        pci = self._sweep.look_at_bus()
        plan = self._first_plan()
        if plan is None:
            return
        held = [gpu for gpu in pci or () if gpu.driver == "nvidia"]
        if held and all(gpu.asleep for gpu in held):
            # Opening NVML would wake them and keep them awake (Syllo/nvtop#267).
            self._pipes.send(NoNvml("asleep", "the GPU sleeps to save power; looking at it would wake it"))
            return
        refusal = self._sweep.open(plan)
        if refusal is not None:
            self._pipes.send(refusal)
            return
        try:
            self._loop()
        except RestartNeededError as error:
            self._pipes.send(Restart(str(error)))
        finally:
            self._sweep.close()

    def _first_plan(self) -> Plan | None:
        while not self._pipes.closed:
            plans = [message for message in self._pipes.receive(None) if isinstance(message, Plan)]
            if plans:
                return plans[-1]
        return None

    def _loop(self) -> None:
        first = True
        while not self._pipes.closed:
            if self._sweep.all_due:
                self._sweep.all_due = False
                self._all_due()
            now = time.monotonic()
            wait = max(0.0, min(self._due.values(), default=3600.0) - now)
            for message in self._pipes.receive(wait):
                if isinstance(message, Plan):
                    self._sweep.set_plan(message)
                    self._sweep.resend_processes()
                else:
                    self._all_due()
            if self._nudged.is_set() and time.monotonic() >= self._nudge_after:
                self._nudged.clear()
                self._nudge_after = time.monotonic() + _NUDGE_PAUSE_S
                self._sweep.look_again()
            self._read_due()
            if first and not self._sweep.all_due:
                first = False
                shrink()

    def _all_due(self) -> None:
        plan = self._sweep.plan
        now = time.monotonic()
        kinds: list[int | str] = [*range(len(cadence.CADENCES)), _HOST]
        if plan.processes:
            kinds.append(_PROCESSES)
        self._due = dict.fromkeys((*kinds, _COSTS), now)

    def _read_due(self) -> None:
        now = time.monotonic()
        due = [kind for kind, at in self._due.items() if at <= now]
        for kind in due:
            self._read(kind)
            interval = self._interval(kind)
            # On a fixed grid, so that reading time does not add up; rounds missed while stuck are gone.
            self._due[kind] = max(self._due[kind] + interval, time.monotonic() + interval * 0.1)
            if self._sweep.all_due or self._pipes.closed:
                return
        if due:
            self._sweep.end_round()

    def _read(self, kind: int | str) -> None:
        if isinstance(kind, int):
            self._sweep.read(kind)
        elif kind == _PROCESSES:
            self._sweep.read_processes()
        elif kind == _HOST:
            self._sweep.look_at_bus()
        else:
            self._sweep.tell_costs()

    def _interval(self, kind: int | str) -> float:
        wanted = self._sweep.plan.interval_s
        if isinstance(kind, int):
            return cadence.interval_s(kind, wanted)
        if kind == _PROCESSES:
            return max(cadence.PROCESSES_S, wanted)
        if kind == _COSTS:
            return max(_COSTS_S, wanted)
        host_s = cadence.CADENCES[cadence.MEDIUM].at_least_s if self._sweep.has_unified else cadence.HOST_S
        return max(host_s, wanted)


def shrink() -> None:
    """Give back what the start has used and the loop will not: compiling modules takes megabytes."""
    gc.collect()
    gc.freeze()
    # Not every libc has it.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _end(_signal: int, _frame: object) -> NoReturn:
    # Comes between calls into NVML, never in the middle of one: killed there, a process has left an
    # Xid 119 behind (NVIDIA/dcgm-exporter#84).
    raise SystemExit(0)


def main() -> None:
    """Run the child."""
    parser = argparse.ArgumentParser(prog="gputop-nvml")
    parser.add_argument("--host", default="")
    parser.add_argument("--proc-root", default="/proc")
    parser.add_argument("--sys-root", default="/sys")
    parser.add_argument("--marker-fd", type=int)
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    code = 0
    try:
        Child(options).run()
    except SystemExit:
        pass
    except Exception as error:  # noqa: BLE001  (its last words are what the parent shows)
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)  # noqa: T201 - the parent reads it
        code = 1
    # No teardown: a thread may still be inside NVML.
    os._exit(code)


if __name__ == "__main__":
    main()
