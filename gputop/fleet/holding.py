"""Who holds a GPU: what several sources name, brought together."""

from typing import Final

import msgspec

from gputop.fleet.state import GpuState
from gputop.model.process import GpuProcess
from gputop.model.reading import Absent, Origin
from gputop.model.workload import Holder

Named = tuple[tuple[Holder, str], ...]
"""Workloads, each with the source or sources that name it."""

_NOBODY: Final[Named] = ()


def holders(gpu: GpuState) -> Named:
    """Return every workload named on a GPU with the source that names it, the nearest first, each once.

    What a source said before it fell behind the others is left out: a pod that a dead exporter once named
    is no holder beside what a live source tells.
    """
    said = _said(gpu)
    if not said:
        return _NOBODY
    if len(said) == 1 and len(said[0][0]) == 1:
        return ((said[0][0][0], said[0][1].source),)
    found: list[tuple[Holder, str]] = []
    for named, origin in said:
        for holder in named:
            same = next((i for i, (other, _) in enumerate(found) if is_same(holder, other)), None)
            if same is None:
                found.append((holder, origin.source))
            elif holder.namespace and not found[same][0].namespace:
                # A process tells its pod by host name alone; the exporter's label has the namespace too.
                found[same] = (_filled(holder, found[same][0]), f"{found[same][1]} and {origin.source}")
    return tuple(found)


def _filled(holder: Holder, by: Holder) -> Holder:
    """Return a holder with what another name of the same workload tells more."""
    more = {f: getattr(by, f) for f in ("uid", "container") if not getattr(holder, f) and getattr(by, f)}
    return msgspec.structs.replace(holder, **more) if more else holder


def process_holder(gpu: GpuState, process: GpuProcess) -> Holder | None:
    """Return the workload of a process, under the fullest name that any source gives it on its GPU."""
    own = process.holder
    if own is None or own.namespace:
        return own
    return next((h for h, _ in holders(gpu) if is_same(own, h)), own)


def _said(gpu: GpuState) -> list[tuple[tuple[Holder, ...], Origin]]:
    """Return what each source that has not fallen behind names, those that name nobody left out."""
    if not gpu.processes and len(gpu.holders) == 1:
        claim = gpu.holders[0]
        return [(claim.holders, claim.origin)] if claim.holders else []
    said = [
        (tuple(p.holder for p in table.processes if p.holder), table.origin)
        for table in gpu.processes
        if not isinstance(table.processes, Absent)
    ]
    said += [(claim.holders, claim.origin) for claim in gpu.holders]
    if len(said) > 1:
        newest = max(origin.at for _, origin in said)
        said = [(named, origin) for named, origin in said if newest - origin.at <= origin.stale_after_s]
    return [(named, origin) for named, origin in said if named]


def is_same(one: Holder, two: Holder) -> bool:
    """Whether two names are of one workload: by id where both tell it, else by what they tell of its name."""
    if one.uid and two.uid:
        return one.uid == two.uid
    same_space = one.namespace == two.namespace or not one.namespace or not two.namespace
    return bool(one.name) and one.name == two.name and same_space


def contradiction(gpu: GpuState) -> tuple[Holder, str] | None:
    """Return the first workload that a farther source names and the nearest source that names any does not.

    Several workloads named by one source share the GPU; two sources of which neither names the other's
    workload cannot both be right.
    """
    said = _said(gpu)
    if len(said) < 2:
        return None
    nearest = said[0][0]
    for named, origin in said[1:]:
        if not any(is_same(a, b) for a in nearest for b in named):
            return named[0], origin.source
    return None


def processes_of(gpu: GpuState) -> tuple[GpuProcess, ...] | None:
    """Return the processes that the nearest source lists; None when no source can."""
    for table in gpu.processes:
        if not isinstance(table.processes, Absent):
            return table.processes
    return None


def process_count(gpu: GpuState) -> int | None:
    """Return how many processes the nearest source lists; None when none can."""
    processes = processes_of(gpu)
    return None if processes is None else len(processes)


def is_held(gpu: GpuState) -> bool | None:
    """Whether a workload or process is on the GPU; None when nobody can say that there is none."""
    if holders(gpu):
        return True
    processes = process_count(gpu)
    if processes:
        return True
    return False if processes == 0 else None
