"""What this user may read of the GPUs and of who uses them, and the line that would give what is missing."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from gputop.model.facts import Presence
from gputop.model.reading import Absent
from gputop.model.status import Finding
from gputop.sources.nvml import errors
from gputop.sources.nvml.device import Device

# CAP_SYS_PTRACE of include/uapi/linux/capability.h: with it /proc hides nothing (ptrace_may_access).
_CAP_SYS_PTRACE: Final = 19
_CAPABILITIES: Final = re.compile(r"^CapEff:\s*([0-9a-fA-F]+)$", re.MULTILINE)
# proc(5): 0 or "off" hides nothing; kernels from 5.8 on write words.
_HIDES_NOTHING: Final = frozenset({"", "0", "off"})
# With "ptraceable" the group that gid= names is no exception (fs/proc/base.c, has_pid_permissions).
_WITHOUT_EXCEPTION: Final = frozenset({"4", "ptraceable"})
_AS_ROOT: Final = "run gputop as root"
_PTRACE_ADVICE: Final = "run gputop as root, or give it CAP_SYS_PTRACE (containers: capabilities.add: [SYS_PTRACE])"
_HOST_PIDS: Final = "hostPID: true (Kubernetes), --pid=host (Docker)"
_CGROUP: Final = "give the container the GPU: NVIDIA_VISIBLE_DEVICES=all, or /dev/nvidiaN in its device cgroup"
# The capability "mig/monitor" (NVIDIA's driver documentation, "Device nodes and capabilities").
_MIG_ADVICE: Final = (
    "NVIDIA_MIG_MONITOR_DEVICES=all and CAP_SYS_ADMIN (containers), or access to the device file of "
    "/proc/driver/nvidia/capabilities/mig/monitor in /dev/nvidia-caps"
)
# NVIDIA's ERR_NVGPUCTRPERM page.
_PROFILING_ADVICE: Final = (
    "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, or run gputop as root"
)


class Asked(Struct, frozen=True):
    """What the readers have learnt.

    Attributes:
        devices: Boards and instances.
        foreign: Whether gputop runs in another PID namespace than the host.
        unlisted: Slots of the boards whose process lists are refused.
        events: How many boards tell of Xids; None while that is not known.
        events_trouble: Why not all do, "" when all do.
        profiling: Whether GPM is asked for.
        unsampled: Why a device gives no GPM sample, by slot.
    """

    devices: Sequence[Device]
    foreign: bool
    unlisted: frozenset[int]
    events: int | None
    events_trouble: str
    profiling: bool
    unsampled: Mapping[int, Absent]


def findings(asked: Asked, proc_root: Path) -> tuple[Finding, ...]:
    """Return one finding for each right: "ok", "warning" where it lacks, "info" where it is not asked for.

    Args:
        asked: What the readers have learnt.
        proc_root: Where procfs is mounted.
    """
    return (
        _devices(asked),
        *_processes(asked, proc_root),
        *_events(asked),
        _ecc(asked),
        *_others_refused(asked),
        _mig(asked),
        _gpm(asked),
    )


def _ok(right: str, text: str) -> Finding:
    return Finding(text, severity="ok", right=right)


def _lacks(right: str, text: str, advice: str) -> Finding:
    return Finding(text, advice, "warning", right)


def _not_asked(right: str, text: str, advice: str = "") -> Finding:
    return Finding(text, advice, "info", right)


def _boards(asked: Asked) -> list[Device]:
    return [device for device in asked.devices if device.board is None]


def _devices(asked: Asked) -> Finding:
    boards = _boards(asked)
    refused = [board.index for board in boards if board.presence is Presence.DENIED]
    if refused:
        return _lacks("devices", f"{_gpus(refused)} refused to this user", _CGROUP)
    return _ok("devices", f"no GPU of {len(boards)} is refused to this user")


def _gpus(indexes: Sequence[int]) -> str:
    return f"GPU {', '.join(map(str, indexes))} {'is' if len(indexes) == 1 else 'are'}"


def _processes(asked: Asked, proc_root: Path) -> Iterator[Finding]:
    if asked.unlisted:
        indexes = [device.index for device in _boards(asked) if device.slot in asked.unlisted]
        yield _lacks("process lists", f"NVML refuses the processes of {len(indexes)} GPUs to this user", _AS_ROOT)
    if asked.foreign:
        words = "gputop runs in another PID namespace than the host: processes have no names"
        yield _lacks("processes", words, _HOST_PIDS)
        return
    capabilities = _read_capabilities(proc_root)
    if capabilities is None:
        yield _not_asked("processes", f"{proc_root} does not tell what this user may see of processes")
        return
    if capabilities >> _CAP_SYS_PTRACE & 1:
        how = "as root" if os.geteuid() == 0 else "by CAP_SYS_PTRACE"
        yield _ok("processes", f"processes of all users are seen whole, {how}")
        return
    hidden = hiding(proc_root)
    if hidden or not (proc_root / "1").is_dir():
        why = f"/proc is mounted with hidepid={hidden}" if hidden else "/proc does not show them"
        advice = f"mount -o remount,hidepid=0 /proc, or {_PTRACE_ADVICE}"
        yield _lacks("processes", f"processes of other users are hidden: {why}", advice)
        return
    yield _ok("processes", "user and command of other users' processes are seen")
    yield _lacks(
        "environments",
        "environments of other users' processes are not seen: a job that only they name is not told",
        _PTRACE_ADVICE,
    )


def _read_capabilities(proc_root: Path) -> int | None:
    try:
        text = (proc_root / "self" / "status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = _CAPABILITIES.search(text)
    return int(found.group(1), 16) if found else None


def hiding(proc_root: Path) -> str:
    """Return the `hidepid` under which procfs hides others from this user, "" where it hides nothing."""
    try:
        text = (proc_root / "self" / "mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = ""
    for line in text.splitlines():
        # proc(5): ID, parent, device, root, mount point, options, optional fields, "-", type, source, super options.
        mount, _, rest = line.partition(" - ")
        places, kind = mount.split(), rest.split()
        if len(places) < 5 or len(kind) < 3 or kind[0] != "proc" or places[4] not in ("/proc", str(proc_root)):
            continue
        options = {name: value for name, _, value in (one.partition("=") for one in kind[2].split(","))}
        found = options.get("hidepid", "")
        group = options.get("gid", "")
        exempt = group.isdigit() and int(group) in {os.getegid(), *os.getgroups()}
        if found in _HIDES_NOTHING or (exempt and found not in _WITHOUT_EXCEPTION):
            found = ""
    return found


def _events(asked: Asked) -> Iterator[Finding]:
    if asked.events_trouble:
        yield _lacks("Xid events", asked.events_trouble, "journalctl -k | grep 'NVRM: Xid' shows what is missed")
    elif asked.events is not None:
        yield _ok("Xid events", f"Xid events of {asked.events} GPUs are read")


def _ecc(asked: Asked) -> Finding:
    boards = [board for board in _boards(asked) if board.has_ecc]
    refused = sorted({name for board in boards for name in board.refused() if name.startswith("ecc_")})
    if refused:
        return _lacks("ECC", f"NVML refuses {', '.join(refused)} to this user", _AS_ROOT)
    if not boards:
        return _not_asked("ECC", "no GPU has ECC")
    return _ok("ECC", f"nothing of ECC is refused on {len(boards)} GPUs")


def _others_refused(asked: Asked) -> Iterator[Finding]:
    names = {name for device in asked.devices for name in device.refused() if not name.startswith("ecc_")}
    if names:
        yield _lacks("readings", f"NVML refuses {', '.join(sorted(names))} to this user", _AS_ROOT)


def _mig(asked: Asked) -> Finding:
    boards = [board for board in _boards(asked) if board.mig_on]
    if not boards:
        return _not_asked("MIG", "MIG is off")
    instances = [device for device in asked.devices if device.board is not None]
    refused = sum(1 for device in instances if device.presence is Presence.DENIED)
    unlisted = [board for board in boards if board.unlisted_instances]
    if unlisted:
        why = errors.describe(unlisted[0].unlisted_instances)
        return _lacks("MIG", f"instances of {len(unlisted)} GPUs cannot be listed: {why}", _MIG_ADVICE)
    if refused:
        return _lacks("MIG", f"{refused} of {len(instances)} instances are refused to this user", _MIG_ADVICE)
    return _ok("MIG", f"{len(instances)} instances on {len(boards)} GPUs are listed, none is refused")


def _gpm(asked: Asked) -> Finding:
    if not asked.profiling:
        return _not_asked("profiling", "GPM is not sampled: it is off by default", "--profiling")
    absent = [reason for reason in asked.unsampled.values() if reason.code == errors.DENIED]
    if absent:
        return _lacks("profiling", f"GPM is refused on {len(absent)} GPUs: {absent[0].reason}", _PROFILING_ADVICE)
    boards = [device for device in asked.devices if device.slot not in asked.unsampled]
    if not boards:
        reasons = sorted({reason.reason for reason in asked.unsampled.values()})
        return _not_asked("profiling", f"GPM is sampled on no GPU: {'; '.join(reasons)}")
    return _ok("profiling", f"GPM is sampled on {len(boards)} of {len(asked.devices)} devices")
