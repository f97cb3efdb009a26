"""A file in the runtime folder for each running screen, by which `gputop release` finds it."""

import contextlib
import os
import time
from pathlib import Path

from msgspec import Struct, json


class Running(Struct, frozen=True):
    """One running screen.

    Attributes:
        pid: Its process.
        started: When it started, seconds since the epoch.
    """

    pid: int
    started: float


class PresenceFile:
    """The file of this process.

    Args:
        folder: The runtime folder of this user.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{os.getpid()}.json"

    def write(self) -> None:
        """Make it known that this process runs; a folder that cannot be written only costs `gputop release`."""
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.write_bytes(json.encode(Running(os.getpid(), time.time())))

    def remove(self) -> None:
        """Take the file away."""
        with contextlib.suppress(OSError):
            self._path.unlink()


def running(folder: Path) -> tuple[Running, ...]:
    """Return the screens that say they run, without those whose process is gone."""
    found: list[Running] = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        with contextlib.suppress(OSError, ValueError):
            one = json.decode(path.read_bytes(), type=Running)
            os.kill(one.pid, 0)
            found.append(one)
    return tuple(found)
