"""The child as a process: pipes, the page with its marks, a polite end, and no waiting for it.

`subprocess` and asyncio's transports kill a process that is still running when they are closed. A process
inside the NVIDIA driver must not be killed (NVIDIA/dcgm-exporter#84), and one that is stuck there cannot
be, so the child is started by hand: it is asked to end, and is left behind if it does not.
"""

import asyncio
import os
import signal
import site
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import gputop
from gputop.model.text import clean
from gputop.sources.nvml.marker import MarkerPage, Pending
from gputop.sources.nvml.protocol import Down, FrameError, Frames, frame

_MARKER_FD: Final = 3
_CHUNK: Final = 1 << 18
_LAST_WORDS: Final = 4096

_left: Final[list[int]] = []
"""Children that were left behind; they are reaped when they have ended, whenever that is."""


def default_command() -> tuple[str, ...]:
    """Return the command of the child: this interpreter, which takes no module from the current folder."""
    return (sys.executable, "-P", "-m", "gputop.sources.nvml.child")


def _environment() -> dict[str, str]:
    """Return the child's environment, in which it finds this very package."""
    environment = dict(os.environ)
    root = str(Path(gputop.__file__).resolve().parent.parent)
    if root not in (*site.getsitepackages(), site.getusersitepackages()):
        known = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = root + (os.pathsep + known if known else "")
    return environment


def reap() -> None:
    """Take notice of children left behind that have ended."""
    for pid in list(_left):
        if _ended(pid) is not None:
            _left.remove(pid)


def _ended(pid: int) -> int | None:
    """Return the exit status of a child, negative for a signal; None while it runs."""
    try:
        done, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return os.waitstatus_to_exitcode(status) if done else None


class ChildProcess:
    """One running child.

    Args:
        command: Program and arguments; the child's own options are added.
        options: The child's own options.
        on_news: Called on the event loop when bodies have come or the child has ended.
    """

    def __init__(self, command: Sequence[str], options: Sequence[str], on_news: Callable[[], None]) -> None:
        self._on_news = on_news
        self._loop = asyncio.get_running_loop()
        self._frames = Frames()
        self._words = b""
        self._unsent = bytearray()
        self._status: int | None = None
        self.bodies: deque[bytes] = deque()
        self.bytes_read = 0
        self.started_at = self.heard_at = self._loop.time()
        self.ended = False
        self.broken = ""
        reap()
        self._page = MarkerPage()
        to_child, from_child, words = os.pipe(), os.pipe(), os.pipe()
        try:
            self.pid = os.posix_spawnp(
                command[0],
                [*command, *options, "--marker-fd", str(_MARKER_FD)],
                _environment(),
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, to_child[0], 0),
                    (os.POSIX_SPAWN_DUP2, from_child[1], 1),
                    (os.POSIX_SPAWN_DUP2, words[1], 2),
                    (os.POSIX_SPAWN_DUP2, self._page.fd, _MARKER_FD),
                ],
                # A session of its own has no terminal: no ctrl+c, no SIGTTOU, nothing written to it.
                setsid=True,
            )
        except OSError:
            for fd in (to_child[1], from_child[0], words[0]):
                os.close(fd)
            self._page.close()
            raise
        finally:
            for fd in (to_child[0], from_child[1], words[1]):
                os.close(fd)
        self._in, self._out, self._err = to_child[1], from_child[0], words[0]
        for fd in (self._in, self._out, self._err):
            os.set_blocking(fd, False)
        self._loop.add_reader(self._out, self._read)
        self._loop.add_reader(self._err, self._read_words)

    def send(self, message: Down) -> None:
        """Send a message; kept until the child takes it."""
        self._unsent += frame(message)
        self._write()

    def _write(self) -> None:
        if self._in < 0:
            return
        try:
            while self._unsent:
                del self._unsent[: os.write(self._in, self._unsent)]
        except BlockingIOError:
            self._loop.add_writer(self._in, self._write)
            return
        except OSError:
            # It has closed its end; its end is noticed by the reader.
            self._unsent.clear()
        self._loop.remove_writer(self._in)

    def _read(self) -> None:
        try:
            data = os.read(self._out, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._out)
            self.ended = True
        else:
            self.bytes_read += len(data)
            self.heard_at = self._loop.time()
            try:
                self.bodies += self._frames.feed(data)
            except FrameError as error:
                self._loop.remove_reader(self._out)
                self.broken = f"what the NVML reader says cannot be read: {error}"
                self.ended = True
        self._on_news()

    def _read_words(self) -> None:
        try:
            data = os.read(self._err, _LAST_WORDS)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._words = (self._words + data)[-_LAST_WORDS:]
        else:
            self._loop.remove_reader(self._err)

    def pending(self) -> Pending | None:
        """Return the call it is in, if it is in one."""
        return self._page.pending()

    def is_stopped(self) -> bool:
        """Whether a signal has stopped it. A process stops on its way out of the kernel, never inside the driver."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[:1] == ["T"]

    def kill(self, why: str) -> None:
        """End it at once, which is only for a child that is in no call.

        Args:
            why: What to say of it.
        """
        self.broken = why
        self.ended = True
        if self.status() is None:
            os.kill(self.pid, signal.SIGKILL)

    def epitaph(self) -> str:
        """Return in one line why it has ended."""
        if self.broken:
            return self.broken
        self._read_words()
        lines = [line for line in self._words.decode("utf-8", "replace").splitlines() if line.strip()]
        status = self.status()
        how = ""
        if status is not None and status < 0:
            how = f"was ended by {_signal_name(-status)}"
        elif status:
            how = f"ended with status {status}"
        last = clean(lines[-1].strip()) if lines else ""
        if "pynvml" in last:
            # The old distribution of that name lies over the module of nvidia-ml-py.
            last += ": install nvidia-ml-py, and uninstall the distribution called pynvml"
        return "the NVML reader " + (": ".join(part for part in (how or "ended", last) if part))

    def status(self) -> int | None:
        """Return its exit status, negative for a signal; None while it runs."""
        if self._status is None:
            self._status = _ended(self.pid)
        return self._status

    def close(self) -> None:
        """Ask it to end and let go of it: it does so after the call it is in."""
        if self._in < 0:
            return
        self._loop.remove_reader(self._out)
        self._loop.remove_reader(self._err)
        self._loop.remove_writer(self._in)
        for fd in (self._in, self._out, self._err):
            os.close(fd)
        self._in = -1
        self._page.close()
        self.ended = True
        if self.status() is None:
            # Not yet reaped, so the number is still this child's. One that is stopped would never hear a request.
            os.kill(self.pid, signal.SIGKILL if self.is_stopped() else signal.SIGTERM)
            _left.append(self.pid)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


async def wait_for_end(children: Sequence[ChildProcess], seconds: float) -> None:
    """Wait until closed children have ended, at most so long."""
    deadline = asyncio.get_running_loop().time() + seconds
    while any(child.status() is None for child in children):
        if asyncio.get_running_loop().time() >= deadline:
            return
        await asyncio.sleep(0.01)
