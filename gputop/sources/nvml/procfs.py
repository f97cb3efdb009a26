"""What /proc tells of a process that NVML names by its PID."""

import contextlib
import os
import pwd
import time
from pathlib import Path
from typing import Final

from msgspec import Struct

from gputop.model.reading import UNKNOWN, Absent, denied, failed
from gputop.model.text import clean
from gputop.sources.nvml.holders import ENVIRONMENT_KEYS, Answer, find
from gputop.sources.nvml.marker import NO_DEVICE, Marker

# PROC_PID_INIT_INO of include/linux/proc_ns.h: the inode of the first PID namespace on every kernel.
_HOST_PID_NAMESPACE: Final = "pid:[4026531836]"
_ENVIRONMENT_LIMIT: Final = 1 << 20
_COMMAND_LIMIT: Final = 4096
_REFRESH_S: Final = 60.0

FOREIGN: Final = Absent(
    UNKNOWN,
    "pid_namespace",
    "NVML tells PIDs of the host, and gputop runs in another PID namespace: give it the host's (hostPID)",
)


class Person(Struct, frozen=True, gc=False):
    """What is known of a process besides its GPU.

    Attributes:
        user: As in `GpuProcess`.
        command: As in `GpuProcess`.
        started_at: As in `GpuProcess`.
        answer: Who holds it.
    """

    user: str | Absent
    command: str | Absent
    started_at: float | Absent
    answer: Answer


_STRANGER: Final = Person(FOREIGN, FOREIGN, FOREIGN, Answer(None, FOREIGN.reason))


class Processes:
    """Looks processes up, each once a minute for as long as it lives: titles change (setproctitle).

    Args:
        proc_root: Where procfs is mounted.
        host: Name of this node.
        marker: Told before a user is looked up, which may go over the network and block.
    """

    def __init__(self, proc_root: Path, host: str, marker: Marker) -> None:
        self._root = proc_root
        self._host = host
        self._marker = marker
        self._people: dict[int, tuple[int, float, Person]] = {}
        self._users: dict[int, str] = {}
        self._boot: float | None = None
        self._ticks = float(os.sysconf("SC_CLK_TCK"))
        self.foreign = self._is_foreign()
        # With hidepid other users' processes are not there to see, so that absence proves nothing.
        self._sees_all = (proc_root / "1").is_dir()

    def _is_foreign(self) -> bool:
        try:
            own = (self._root / "self" / "ns" / "pid").readlink()
        except OSError:
            # A procfs given by hand (a host's, mounted in a container) is taken at its word.
            return self._root == Path("/proc")
        return str(own) != _HOST_PID_NAMESPACE

    def look_up(self, pid: int) -> Person | None:
        """Return what is known of a process, or None when there is no such process (any more)."""
        if self.foreign:
            return _STRANGER
        folder = self._root / str(pid)
        try:
            stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
            # The name in parentheses may hold blanks and parentheses itself.
            name, _, rest = stat.partition("(")[2].rpartition(")")
            started = int(rest.split()[19])
        except FileNotFoundError:
            self._people.pop(pid, None)
            return None if self._sees_all else self._hidden("it is hidden from this user")
        except (OSError, ValueError, IndexError) as error:
            return None if isinstance(error, ProcessLookupError) else self._hidden(str(error))
        known = self._people.get(pid)
        now = time.monotonic()
        if known and known[0] == started and now - known[1] < _REFRESH_S:
            return known[2]
        person = Person(
            user=self._user(folder),
            command=self._command(folder, name),
            started_at=self._time_of(started),
            answer=self._holder(folder),
        )
        self._people[pid] = (started, now, person)
        return person

    def forget_all_but(self, pids: set[int]) -> None:
        """Drop what is kept of processes that no GPU lists any more."""
        for pid in self._people.keys() - pids:
            del self._people[pid]

    @staticmethod
    def _hidden(why: str) -> Person:
        absent = denied(clean(why))
        return Person(absent, absent, absent, Answer(None, absent.reason))

    def _time_of(self, ticks: int) -> float | Absent:
        if self._boot is None:
            with contextlib.suppress(OSError, ValueError, IndexError):
                for line in (self._root / "stat").read_text(encoding="ascii", errors="replace").splitlines():
                    if line.startswith("btime "):
                        self._boot = float(line.split()[1])
        if self._boot is None:
            return failed("the boot time is not told")
        return self._boot + ticks / self._ticks

    def _user(self, folder: Path) -> str | Absent:
        # The folder's owner is root for a process that may not be dumped, so the status is asked.
        try:
            for line in (folder / "status").read_text(encoding="utf-8", errors="replace").splitlines():
                if line.startswith("Uid:"):
                    return self._name_of(int(line.split()[1]))
        except (OSError, ValueError, IndexError) as error:
            return failed(f"its status cannot be read: {error}")
        return failed("its status names no user")

    def _name_of(self, uid: int) -> str:
        name = self._users.get(uid)
        if name is None:
            self._marker.begin(NO_DEVICE, b"getpwuid")
            try:
                name = clean(pwd.getpwuid(uid).pw_name)
            except KeyError:
                name = str(uid)
            finally:
                self._marker.end()
            self._users[uid] = name
        return name

    @staticmethod
    def _command(folder: Path, name: str) -> str | Absent:
        try:
            with (folder / "cmdline").open("rb") as file:
                raw = file.read(_COMMAND_LIMIT)
        except OSError as error:
            return failed(f"its command line cannot be read: {error.strerror}")
        words = raw.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
        # A zombie has no command line any more; ps writes the name in brackets, too.
        return clean(words) if words else f"[{clean(name)}]"

    def _holder(self, folder: Path) -> Answer:
        cgroup: str | None = None
        why_not = ""
        try:
            cgroup = (folder / "cgroup").read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            why_not = error.strerror or type(error).__name__
        return find(cgroup, _environment(folder), self._host, why_not)


def _environment(folder: Path) -> dict[str, str] | None:
    try:
        with (folder / "environ").open("rb") as file:
            raw = file.read(_ENVIRONMENT_LIMIT)
    except OSError:
        return None
    known: dict[str, str] = {}
    for entry in raw.split(b"\0"):
        key, equals, value = entry.partition(b"=")
        name = key.decode("utf-8", "replace")
        if equals and name in ENVIRONMENT_KEYS:
            known[name] = clean(value.decode("utf-8", "replace"), 200)
    return known
