"""Who holds a GPU, in a few words, and how that is known."""

from collections.abc import Iterable

from gputop.fleet import GpuState
from gputop.model.reading import Absent
from gputop.model.workload import Holder
from gputop.widgets.cells import Cell


def holders(gpu: GpuState) -> tuple[tuple[Holder, str], ...]:
    """Return every workload named on a GPU with the source that names it, the nearest first, each once."""
    found: list[tuple[Holder, str]] = []

    def add(named: Iterable[Holder], source: str) -> None:
        for holder in named:
            same = next((i for i, (other, _) in enumerate(found) if _is_same(holder, other)), None)
            if same is None:
                found.append((holder, source))
            elif holder.namespace and not found[same][0].namespace:
                # A process tells its pod by host name alone; the exporter's label has the namespace too.
                found[same] = (holder, f"{found[same][1]} and {source}")

    for table in gpu.processes:
        if not isinstance(table.processes, Absent):
            add((p.holder for p in table.processes if p.holder), table.origin.source)
    for claim in gpu.holders:
        add(claim.holders, claim.origin.source)
    return tuple(found)


def _is_same(one: Holder, two: Holder) -> bool:
    if one.uid and two.uid:
        return one.uid == two.uid
    same_space = one.namespace == two.namespace or not one.namespace or not two.namespace
    return bool(one.name) and one.name == two.name and same_space


def process_count(gpu: GpuState) -> int | None:
    """Return how many processes the nearest source lists; None when none can."""
    for table in gpu.processes:
        if not isinstance(table.processes, Absent):
            return len(table.processes)
    return None


def is_held(gpu: GpuState) -> bool | None:
    """Whether a workload or process is on the GPU; None when nobody can say that there is none."""
    if holders(gpu):
        return True
    processes = process_count(gpu)
    if processes:
        return True
    return False if processes == 0 else None


def holder_cell(gpu: GpuState) -> Cell:
    """Return the holder, "n pods" for a shared GPU, "-" when a source says that there is none, else "?"."""
    named = holders(gpu)
    if len(named) == 1:
        return Cell(named[0][0].label)
    if named:
        first = named[0][0].label
        return Cell.of((f"{len(named)} share: ", "info"), (first, ""), (" …", "dim"))
    processes = process_count(gpu)
    if processes:
        return Cell(f"{processes} process{'es' if processes > 1 else ''}, no pod known", "dim")
    return Cell("-", "dim") if processes == 0 else Cell("?", "unknown")
