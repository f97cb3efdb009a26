"""`gputop release`: running screens let go of the device handles, and whoever still holds one is named."""

import contextlib
import os
import pwd
import signal
import sys
import time
from pathlib import Path
from typing import Final

import msgspec

from gputop.answers.release import SCHEMA, DeviceHolder, ReleaseAnswer
from gputop.cli.exits import Exit
from gputop.model.text import clean
from gputop.presence_file import running

_WAIT_S: Final = 3.0
_STEP_S: Final = 0.05
_DEVICES: Final = "/dev/nvidia"


def release(runtime: Path, proc_root: Path, *, resume: bool, as_json: bool) -> int:
    """Tell every running screen of this user; return the exit code.

    Args:
        runtime: The runtime folder of this user.
        proc_root: Where procfs is mounted.
        resume: Take the devices up again, instead.
        as_json: Print one JSON object.
    """
    told = list(running(runtime))
    for pid in told:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGUSR2 if resume else signal.SIGUSR1)
    deadline = time.monotonic() + (_WAIT_S if told and not resume else 0.0)
    holders, unread = device_holders(proc_root)
    while _ours(holders) and time.monotonic() < deadline:
        time.sleep(_STEP_S)
        holders, unread = device_holders(proc_root)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(ReleaseAnswer(SCHEMA, told, holders, unread)) + b"\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(told, holders, unread, resume=resume)))
    return Exit.FAILURE if _ours(holders) and not resume else Exit.OK


def _ours(holders: list[DeviceHolder]) -> bool:
    return any("gputop.sources.nvml" in h.command for h in holders)


def device_holders(proc_root: Path) -> tuple[list[DeviceHolder], int]:
    """Return the processes that hold an NVIDIA device file, and how many could not be looked into."""
    holders: list[DeviceHolder] = []
    unread = 0
    for folder in proc_root.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            devices = _devices(folder)
        except PermissionError:
            unread += 1
            continue
        except OSError:
            continue
        if devices:
            holders.append(DeviceHolder(int(folder.name), _user(folder), _command(folder), devices))
    return sorted(holders, key=lambda h: h.pid), unread


def _devices(folder: Path) -> list[str]:
    found: set[str] = set()
    for link in (folder / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            target = str(link.readlink())
            if target.startswith(_DEVICES):
                found.add(target)
    return sorted(found)


def _user(folder: Path) -> str:
    try:
        number = folder.stat().st_uid
    except OSError:
        return "?"
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _command(folder: Path) -> str:
    try:
        words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        return clean(words) or clean((folder / "comm").read_text(encoding="utf-8", errors="replace").strip())
    except OSError:
        return "?"


def _lines(told: list[int], holders: list[DeviceHolder], unread: int, *, resume: bool) -> list[str]:
    verb = "told to take the devices up again" if resume else "told to let go"
    lines = [f"gputop {pid}: {verb}" for pid in told] or ["no gputop screen of this user runs"]
    lines += [f"still held by {h.pid} {h.user}: {h.command} ({', '.join(h.devices)})" for h in holders]
    if not holders and not resume:
        lines.append(f"no process that can be seen holds {_DEVICES}*")
    if unread:
        lines.append(f"{unread} processes of other users could not be looked into: run as root to see all")
    return lines
