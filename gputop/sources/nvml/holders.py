"""Which pod, allocation, job or container a process belongs to, told by its cgroup and environment.

The kernel keeps the cgroup, so it is asked first; the environment is the process's own word and says so.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from gputop.model.text import clean
from gputop.model.workload import Holder

_UUID: Final = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

ENVIRONMENT_KEYS: Final = frozenset(
    {
        "HOSTNAME",
        "NOMAD_ALLOC_ID",
        "NOMAD_ALLOC_NAME",
        "NOMAD_NAMESPACE",
        "NOMAD_TASK_NAME",
        "SLURM_JOB_ID",
        "SLURM_JOB_NAME",
    }
)
"""All that is ever read out of a process's environment."""

_BY_CGROUP: Final = "process cgroup"
_BY_ENVIRONMENT: Final = "process environment"

# Kubelet with the cgroupfs driver: /kubepods/burstable/pod<uid>/<container>; with systemd:
# kubepods-burstable-pod<uid, "_" for "-">.slice/cri-containerd-<container>.scope; containerd's own v1
# spelling: …-pod<uid>.slice:cri-containerd:<container>. The UID of a static pod is a hash without dashes.
# "libpod-<container>" is podman, so "pod" must begin a part.
_POD: Final = re.compile(
    r"(?:^|[/:-])pod([0-9a-f]{8}[-_]?[0-9a-f]{4}[-_]?[0-9a-f]{4}[-_]?[0-9a-f]{4}[-_]?[0-9a-f]{12})"
    r"(?:\.slice)?(?=[/:]|$)"
)
_CONTAINER: Final = re.compile(r"(?:^|[/:_-])([0-9a-f]{64})(?:\.scope)?(?=[/:]|$)")
# nomad.slice/share.slice/<allocation>.<task>.scope (v2), nomad/share/<allocation>.<task> (v1).
_NOMAD: Final = re.compile(rf"/nomad[^/]*/(?:[^/]+/)*?({_UUID})\.([^/]+?)(?:\.scope)?(?=/|$)")
# slurm/uid_1000/job_77/step_0/task_0 (v1), slurmstepd.scope/job_77/step_batch/user/task_0 (v2).
_SLURM: Final = re.compile(r"/slurm[^/]*/(?:[^/]+/)*?job_(\d+)(?:/step_([^/]+))?(?=/|$)")


class Answer(Struct, frozen=True, gc=False):
    """Who holds, if anyone, and how that is known or why it is not."""

    holder: Holder | None
    reason: str


def cgroup_paths(text: str) -> list[str]:
    """Return the paths of a /proc/PID/cgroup file, each once: v1 has a line for each controller."""
    paths = (line.split(":", 2)[2] for line in text.splitlines() if line.count(":") >= 2)
    return list(dict.fromkeys(path for path in paths if path))


def by_cgroup(paths: list[str], environment: Mapping[str, str], host: str) -> Holder | None:
    """Return the holder that cgroup paths name, or None.

    Args:
        paths: As `cgroup_paths` gives them.
        environment: The few known variables of the process; they give names to ids.
        host: This node's name. A pod on the host's network has it as its HOSTNAME, which then is not the
            pod's name.
    """
    for reader in (_pod, _nomad, _slurm):
        for path in paths:
            holder = reader(path, environment, host)
            if holder:
                return holder
    return None


def _pod(path: str, environment: Mapping[str, str], host: str) -> Holder | None:
    match = _POD.search(path)
    if not match:
        return None
    container = _CONTAINER.search(path, match.end() - 1)
    name = environment.get("HOSTNAME", "")
    named = bool(name) and name.partition(".")[0] != host.partition(".")[0]
    return Holder(
        "kubernetes",
        name=name if named else "",
        container=container.group(1)[:12] if container else "",
        uid=match.group(1).replace("_", "-"),
        how=f"{_BY_CGROUP}; name from its host name" if named else _BY_CGROUP,
    )


def _nomad(path: str, environment: Mapping[str, str], host: str) -> Holder | None:
    del host
    match = _NOMAD.search(path)
    if not match:
        return None
    return _allocation(match.group(1), clean(match.group(2)), environment, _BY_CGROUP)


def _slurm(path: str, environment: Mapping[str, str], host: str) -> Holder | None:
    del host
    match = _SLURM.search(path)
    if not match:
        return None
    own = environment.get("SLURM_JOB_ID") == match.group(1)
    return Holder(
        "slurm",
        name=environment.get("SLURM_JOB_NAME", "") if own else "",
        container=clean(match.group(2) or ""),
        uid=match.group(1),
        how=_BY_CGROUP,
    )


def _allocation(uid: str, task: str, environment: Mapping[str, str], how: str) -> Holder:
    own = environment.get("NOMAD_ALLOC_ID") == uid
    return Holder(
        "nomad",
        namespace=environment.get("NOMAD_NAMESPACE", "") if own else "",
        name=environment.get("NOMAD_ALLOC_NAME", "") if own else "",
        container=task,
        uid=uid,
        how=how,
    )


def by_environment(environment: Mapping[str, str]) -> Holder | None:
    """Return the holder that the environment names, or None."""
    allocation = environment.get("NOMAD_ALLOC_ID", "")
    if re.fullmatch(_UUID, allocation):
        return _allocation(allocation, environment.get("NOMAD_TASK_NAME", ""), environment, _BY_ENVIRONMENT)
    job = environment.get("SLURM_JOB_ID", "")
    if job.isdigit():
        return Holder("slurm", name=environment.get("SLURM_JOB_NAME", ""), uid=job, how=_BY_ENVIRONMENT)
    return None


def _by_container(paths: list[str]) -> Holder | None:
    for path in paths:
        match = _CONTAINER.search(path)
        if match:
            return Holder("container", uid=match.group(1), how=_BY_CGROUP)
    return None


def find(cgroup: str | None, environment: Mapping[str, str] | None, host: str, why_not: str = "") -> Answer:
    """Return who holds a process.

    Args:
        cgroup: Content of its cgroup file; None when it cannot be read.
        environment: Its known variables; None when they cannot be read.
        host: This node's name.
        why_not: Why one of them cannot be read.
    """
    paths = cgroup_paths(cgroup) if cgroup is not None else []
    known = environment or {}
    steps: tuple[Callable[[], Holder | None], ...] = (
        lambda: by_cgroup(paths, known, host),
        lambda: by_environment(known),
        lambda: _by_container(paths),
    )
    for step in steps:
        holder = step()
        if holder:
            return Answer(holder, holder.how)
    if cgroup is None:
        return Answer(None, f"its cgroup cannot be read: {why_not}" if why_not else "its cgroup cannot be read")
    where = clean(paths[0], 120) if paths else "none"
    if environment is None:
        return Answer(None, f"its cgroup ({where}) names no workload, and its environment cannot be read")
    return Answer(None, f"its cgroup ({where}) and environment name no workload")
