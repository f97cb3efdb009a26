"""A locked file in the runtime folder for each running screen, by which `gputop release` finds it.

The lock goes with the process, however it ends: a file that nobody holds is one left behind, and a process id
that was given to another program is never signalled.
"""

import contextlib
import fcntl
import os
from pathlib import Path


class PresenceFile:
    """The file of this process.

    Args:
        folder: The runtime folder of this user.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{os.getpid()}.lock"
        self._fd = -1

    def write(self) -> None:
        """Make it known that this process runs; a folder that cannot be written only costs `gputop release`."""
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Take the file away."""
        with contextlib.suppress(OSError):
            self._path.unlink()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def running(folder: Path) -> tuple[int, ...]:
    """Return the process ids of this user's screens that run; files left behind are taken away."""
    found: list[int] = []
    for path in sorted(folder.glob("*.lock")) if folder.is_dir() else ():
        with contextlib.suppress(OSError):
            if path.stem.isdecimal() and _is_held(path):
                found.append(int(path.stem))
    return tuple(found)


def _is_held(path: Path) -> bool:
    fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_uid != os.getuid():
            return False
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        path.unlink()
        return False
    finally:
        os.close(fd)
