"""Who holds a GPU, in a few words, and how that is known."""

from collections.abc import Sequence

from gputop.fleet import GpuState
from gputop.fleet.holding import contradiction, holders, is_held, process_count
from gputop.fleet.mig import instances_held
from gputop.model.reading import Absent
from gputop.widgets.cells import Cell


def holder_value(gpu: GpuState) -> str | None:
    """Return the holder as it is sorted and grouped by; None when nobody tells."""
    named = holders(gpu)
    if named:
        return named[0][0].label
    processes = process_count(gpu)
    return None if processes is None else _processes_words(processes)


def _processes_words(count: int) -> str:
    return f"{count} process{'es' if count > 1 else ''}, no pod known" if count else "-"


def holder_cell(
    gpu: GpuState, now: float = 0.0, *, instances: Sequence[GpuState] = (), ascii_only: bool = False
) -> Cell:
    """Return the holder, "n share" for a shared GPU, "-" when a source says that there is none, else "?".

    Args:
        gpu: The GPU.
        now: The time on screen; what was told too long before it is drawn as stale, and a stale "nobody"
            is no longer known. 0 to take everything as fresh.
        instances: Its MIG instances: their number stands for the holders that a board in MIG mode has not.
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
    if instances:
        return _on_instances(instances, now)
    processes = process_count(gpu)
    stale = _is_stale(gpu, now)
    if processes:
        return Cell(_processes_words(processes), "stale" if stale else "dim")
    return Cell("-", "dim") if processes == 0 and not stale else Cell("?", "unknown")


def _on_instances(instances: Sequence[GpuState], now: float) -> Cell:
    told = instances_held(instances)
    if told.held:
        stale = all(_is_stale(i, now) for i in instances if is_held(i))
        return Cell(f"{told.held} on MIG", "stale" if stale else "")
    return Cell("?", "unknown") if told.unknown else Cell("-", "dim")


def _is_stale(gpu: GpuState, now: float) -> bool:
    """Whether all that is told of holders and processes is stale at that time."""
    origins = [t.origin for t in gpu.processes if not isinstance(t.processes, Absent)]
    origins += [c.origin for c in gpu.holders if c.holders]
    return bool(origins) and all(now - o.at > o.stale_after_s for o in origins)
