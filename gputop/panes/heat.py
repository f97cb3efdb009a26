"""The heat map: a glyph for each GPU, by node."""

from collections.abc import Hashable, Iterator, Sequence

from msgspec.structs import replace

from gputop.fleet.holding import is_held
from gputop.model.facts import Presence
from gputop.model.identity import GpuKey
from gputop.panes.ascii import fold_cell
from gputop.panes.base import PaneContext
from gputop.panes.fleet import gpu_glyph
from gputop.panes.format import fresh
from gputop.panes.gpu_digest import digest
from gputop.panes.gpu_table import absent_cell, gpu_name
from gputop.panes.gpus import COLUMNS, activity
from gputop.panes.holding import holder_cell
from gputop.panes.words import PRESENCE_WORDS
from gputop.widgets.cells import Cell
from gputop.widgets.heatmap import HeatRow

_TOLD = ("util", "vram", "power", "temp")


def heat_rows(context: PaneContext, order: Sequence[Hashable] | None = None) -> list[HeatRow]:
    """Return the boards by node.

    Args:
        context: What the screen is set to.
        order: Nodes and GPUs that a filter left: a node stands for all its boards, an instance for its board.
            None for all.
    """
    view = context.view
    chosen = None if order is None else frozenset(_chosen(order))
    rows: list[HeatRow] = []
    for node in sorted(view.nodes):
        boards = [k for k in view.nodes[node].gpus if not k.instance]
        if chosen is not None and node not in chosen:
            boards = [k for k in boards if k in chosen]
            if not boards:
                continue
        rows.append(HeatRow(Cell(node.host), tuple(boards)))
    return rows


def _chosen(order: Sequence[Hashable]) -> Iterator[Hashable]:
    for key in order:
        yield replace(key, instance="") if isinstance(key, GpuKey) and key.instance else key


def heat_title(context: PaneContext) -> list[Cell]:
    """Return what is shown, to what it is narrowed, and what the glyphs mean."""
    cells = [Cell("Utilisation", "title")]
    if context.node is not None:
        cells.append(Cell(f"node {context.node.host}", "match"))
    if context.filter:
        cells.append(Cell(f"/{context.filter}", "match"))
    return [*([fold_cell(c) for c in cells] if context.ascii_only else cells), *legend(context)]


def heat_glyph(context: PaneContext, key: Hashable) -> tuple[str, str]:
    """Return glyph and role of a GPU."""
    gpu = context.view.gpus.get(key) if isinstance(key, GpuKey) else None
    if gpu is None:
        return " ", ""
    load, held = fresh(gpu.readings.get(activity(gpu)), context.now), is_held(gpu)
    if load is None and (instances := context.view.instances(gpu.key)):
        # A board in MIG mode is as busy as its instances are.
        told = digest(gpu, context.now, instances)
        load, held = told.load, told.held
    return gpu_glyph(gpu, load, held=held, ascii_only=context.ascii_only)


def legend(context: PaneContext) -> list[Cell]:
    """Return what the glyphs mean."""
    free, idle = (".", "_") if context.ascii_only else ("·", "▁")
    return [
        Cell.of((free, "free"), (" free", "dim")),
        Cell.of((idle, "idle"), (" idle", "dim")),
        Cell.of(("o", "dim"), (" idle or free", "dim")),
        Cell.of(("X", "bad"), (" broken", "dim")),
        Cell.of(("?", "unknown"), (" not told", "dim")),
        Cell.of(("-", "na"), (" n/a", "dim")),
    ]


def heat_summary(context: PaneContext, key: GpuKey) -> list[Cell]:
    """Return the line of one GPU."""
    gpu = context.view.gpus.get(key)
    if gpu is None:
        return [Cell("gone", "dim")]
    name = Cell(f"{key.host} {gpu_name(gpu)}", "title")
    if gpu.presence is not Presence.PRESENT:
        cells = [name, absent_cell(gpu, context, step=True)]
    else:
        numbers = [
            Cell.of((f"{c.column.title.split()[0]} ", "dim"), *c.cell(gpu, context).runs)
            for c in COLUMNS
            if c.column.key in _TOLD
        ]
        holder = holder_cell(gpu, context.now, ascii_only=context.ascii_only)
        cells = [name, Cell(PRESENCE_WORDS[gpu.presence], "dim"), *numbers, holder]
    return [fold_cell(c) for c in cells] if context.ascii_only else cells
