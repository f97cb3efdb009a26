"""Processes on GPUs: one row for each process on each GPU."""

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputop.fleet import GpuState
from gputop.fleet.holding import process_holder, processes_of
from gputop.model.identity import GpuKey
from gputop.model.process import GpuProcess
from gputop.model.reading import Absent
from gputop.panes.ascii import Titled, fold_cell, fold_cells
from gputop.panes.base import PaneContext
from gputop.panes.filter import Searchable, matches, terms_of
from gputop.panes.format import gib
from gputop.panes.gpu_table import SEARCHABLE as GPU_SEARCHABLE
from gputop.panes.gpu_table import STALE_MARK
from gputop.widgets.cells import Cell
from gputop.widgets.columns import Column


class ProcessKey(Struct, frozen=True):
    """A process on one GPU: the same process on two GPUs is two rows."""

    gpu: GpuKey
    pid: int


_COLUMNS: Final = (
    Column("pid", "PID", 7, align="right"),
    Column("gpu", "GPU", 4, min_width=3),
    Column("user", "USER", 8, priority=2),
    Column("vram", "VRAM", 6, align="right", priority=0, descending=True),
    Column("sm", "SM%", 3, align="right", priority=1, descending=True),
    Column("kind", "TYPE", 4, priority=3),
    Column("holder", "POD OR ALLOCATION", 24, min_width=10, flex=1, priority=1),
    Column("command", "COMMAND", 20, min_width=8, flex=3),
)

_TITLED: Final = Titled.of(_COLUMNS)


class _Row(Struct, frozen=True):
    """A process with its GPU, as a filter needs it."""

    gpu: GpuState
    process: GpuProcess


_OWN: Final = frozenset({"command", "user", "pid", "holder"})
"""What a process has of its own; of the GPU it would be that of all its processes."""


def _of_gpu(text: Callable[[GpuState], str]) -> Callable[[_Row], str]:
    return lambda row: text(row.gpu)


def _holder_text(row: _Row) -> str:
    holder = process_holder(row.gpu, row.process)
    return holder.label if holder else GPU_SEARCHABLE.texts["holder"](row.gpu)


def _or_nothing(value: str | Absent) -> str:
    return value if isinstance(value, str) else ""


_SEARCHABLE: Final[Searchable[_Row]] = Searchable(
    {
        "command": lambda r: _or_nothing(r.process.command),
        "user": lambda r: _or_nothing(r.process.user),
        "pid": lambda r: str(r.process.pid),
        "holder": _holder_text,
        **{key: _of_gpu(text) for key, text in GPU_SEARCHABLE.texts.items() if key not in _OWN},
    },
    lambda r, quantity: GPU_SEARCHABLE.number(r.gpu, quantity),
)
"""What a filter may look at: the process and the GPU it is on, so that the rows above and below agree."""


class ProcessesPane:
    """What runs on the GPUs that the pane above shows."""

    def columns(self, context: PaneContext) -> tuple[Column, ...]:
        """Return all columns."""
        return _TITLED.fitting(ascii_only=context.ascii_only)

    def order(self, context: PaneContext) -> Sequence[Hashable]:
        """Return processes that the filter leaves, those with most memory first; where it is not told, last."""
        terms = terms_of(context.filter)
        found: list[tuple[float, ProcessKey]] = []
        for gpu in _gpus(context):
            for process in processes_of(gpu) or ():
                if terms and not matches(terms, _Row(gpu, process), _SEARCHABLE):
                    continue
                memory = process.memory_mib
                amount = memory if isinstance(memory, float) else -1.0
                found.append((amount, ProcessKey(gpu.key, process.pid)))
        found.sort(key=lambda pair: (-pair[0], pair[1].pid))
        return [key for _, key in found]

    def cells(self, context: PaneContext, key: Hashable) -> tuple[Cell | None, ...]:
        """Return the cells of a process."""
        gpu = context.view.gpus.get(key.gpu) if isinstance(key, ProcessKey) else None
        process = (
            next((p for p in processes_of(gpu) or () if p.pid == key.pid), None)
            if gpu is not None and isinstance(key, ProcessKey)
            else None
        )
        if gpu is None or process is None:
            return (Cell("gone", "dim"),)
        cells = _cells(context, gpu, process)
        if _is_stale(gpu, context.now):
            cells = tuple([Cell(c.text, "stale") if c.role in {"", "dim"} else c for c in cells])
            cells = (Cell(f"{STALE_MARK}{cells[0].plain}", "stale"), *cells[1:])
        return fold_cells(cells) if context.ascii_only else cells

    def empty(self, context: PaneContext) -> Cell:
        """Return why there is none: none runs, or nobody can say."""
        tables = [t.processes for g in _gpus(context) for t in g.processes[:1]]
        if context.filter and any(not isinstance(t, Absent) and t for t in tables):
            return Cell("no process matches the filter", "dim")
        refusals = [t for t in tables if isinstance(t, Absent)]
        if refusals:
            cell = Cell(f"processes: {refusals[0].reason}", "unknown")
        elif tables:
            cell = Cell("no process on these GPUs", "dim")
        else:
            cell = Cell("no source lists processes here: they are told by NVML on the node itself", "dim")
        return fold_cell(cell) if context.ascii_only else cell


def _cells(context: PaneContext, gpu: GpuState, process: GpuProcess) -> tuple[Cell, ...]:
    memory, sm = process.memory_mib, process.sm_percent
    holder = process_holder(gpu, process)
    return (
        Cell(str(process.pid)),
        Cell(_place(context, gpu)),
        _text(process.user),
        Cell(f"{gib(memory)}G") if not isinstance(memory, Absent) else _absent(memory),
        Cell(f"{sm:.0f}") if not isinstance(sm, Absent) else _absent(sm),
        Cell(process.kinds, "dim"),
        Cell(holder.label) if holder else Cell(process.holder_reason, "dim"),
        _text(process.command),
    )


def _place(context: PaneContext, gpu: GpuState) -> str:
    """Return the index of the GPU; of an instance that of its board, and the instance."""
    if not gpu.key.instance:
        return str(gpu.index) if gpu.index >= 0 else "?"
    board = context.view.gpus.get(replace(gpu.key, instance=""))
    index = gpu.index if gpu.index >= 0 else board.index if board is not None else -1
    return f"{index if index >= 0 else '?'}:{gpu.key.instance[-4:]}"


def _gpus(context: PaneContext) -> tuple[GpuState, ...]:
    if context.node is not None:
        return context.view.on_node(context.node)
    # Processes are told by NVML, which is of this machine alone: other nodes have none to look through.
    return tuple(g for g in context.view.gpus.values() if g.processes)


def _is_stale(gpu: GpuState, now: float) -> bool:
    table = next((t for t in gpu.processes if not isinstance(t.processes, Absent)), None)
    return table is not None and now - table.origin.at > table.origin.stale_after_s


def _text(value: str | Absent) -> Cell:
    return Cell(value) if isinstance(value, str) else _absent(value)


def _absent(value: Absent) -> Cell:
    return Cell("n/a", "na") if value.state == "n/a" else Cell("?", "unknown")
