"""The heat map: a glyph for each GPU, by node."""

from collections.abc import Hashable

from gputop.fleet.holding import is_held
from gputop.model.facts import Presence
from gputop.model.identity import GpuKey
from gputop.panes.ascii import fold_cell
from gputop.panes.base import PaneContext
from gputop.panes.fleet import gpu_glyph
from gputop.panes.format import fresh
from gputop.panes.gpu_table import absent_cell, gpu_name
from gputop.panes.gpus import COLUMNS, activity
from gputop.panes.holding import holder_cell
from gputop.panes.words import PRESENCE_WORDS
from gputop.widgets.cells import Cell
from gputop.widgets.heatmap import HeatRow

_TOLD = ("util", "vram", "power", "temp")


def heat_rows(context: PaneContext) -> list[HeatRow]:
    """Return the boards by node."""
    view = context.view
    return [
        HeatRow(Cell(node.host), tuple(k for k in view.nodes[node].gpus if not k.instance))
        for node in sorted(view.nodes)
    ]


def heat_glyph(context: PaneContext, key: Hashable) -> tuple[str, str]:
    """Return glyph and role of a GPU."""
    gpu = context.view.gpus.get(key) if isinstance(key, GpuKey) else None
    if gpu is None:
        return " ", ""
    load = fresh(gpu.readings.get(activity(gpu)), context.now)
    return gpu_glyph(gpu, load, held=is_held(gpu), ascii_only=context.ascii_only)


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
