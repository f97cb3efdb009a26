"""Who holds a GPU, in a few words, and how that is known."""

from typing import Final

from gputop.fleet import GpuState
from gputop.model.process import GpuProcess
from gputop.model.reading import Absent, Origin
from gputop.model.workload import Holder
from gputop.widgets.cells import Cell

Named = tuple[tuple[Holder, str], ...]

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
            same = next((i for i, (other, _) in enumerate(found) if _is_same(holder, other)), None)
            if same is None:
                found.append((holder, origin.source))
            elif holder.namespace and not found[same][0].namespace:
                # A process tells its pod by host name alone; the exporter's label has the namespace too.
                found[same] = (holder, f"{found[same][1]} and {origin.source}")
    return tuple(found)


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


def _is_same(one: Holder, two: Holder) -> bool:
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
        if not any(_is_same(a, b) for a in nearest for b in named):
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


def holder_value(gpu: GpuState) -> str | None:
    """Return the holder as it is sorted and grouped by; None when nobody tells."""
    named = holders(gpu)
    if named:
        return named[0][0].label
    processes = process_count(gpu)
    return None if processes is None else _processes_words(processes)


def _processes_words(count: int) -> str:
    return f"{count} process{'es' if count > 1 else ''}, no pod known" if count else "-"


def holder_cell(gpu: GpuState, now: float = 0.0, *, ascii_only: bool = False) -> Cell:
    """Return the holder, "n share" for a shared GPU, "-" when a source says that there is none, else "?".

    Args:
        gpu: The GPU.
        now: The time on screen; what was told too long before it is drawn as stale, and a stale "nobody"
            is no longer known. 0 to take everything as fresh.
        ascii_only: Draw with ASCII characters only.
    """
    named = holders(gpu)
    if named:
        role = "stale" if _is_stale(gpu, now) else ""
        first = named[0][0].label
        other = contradiction(gpu)
        if other is not None:
            differs = " != " if ascii_only else " ≠ "
            return Cell.of((first, role), (f"{differs}{other[0].label} ({other[1]})", "warn"))
        if len(named) == 1:
            return Cell(first, role)
        return Cell.of((f"{len(named)} share: ", "info"), (first, role), (" ..." if ascii_only else " …", "dim"))
    processes = process_count(gpu)
    stale = _is_stale(gpu, now)
    if processes:
        return Cell(_processes_words(processes), "stale" if stale else "dim")
    return Cell("-", "dim") if processes == 0 and not stale else Cell("?", "unknown")


def _is_stale(gpu: GpuState, now: float) -> bool:
    """Whether all that is told of holders and processes is stale at that time."""
    origins = [t.origin for t in gpu.processes if not isinstance(t.processes, Absent)]
    origins += [c.origin for c in gpu.holders if c.holders]
    return bool(origins) and all(now - o.at > o.stale_after_s for o in origins)
