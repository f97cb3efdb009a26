"""The Memory pane: used, reserved apart, free, and what the numbers mean where they are not plain VRAM.

A number that ends in S is the system's memory: the GPU has none of its own.
"""

from typing import Final

from gputop.fleet import GpuState
from gputop.fleet.holding import processes_of
from gputop.panes.base import PaneContext
from gputop.panes.format import NA_TEXT, UNKNOWN_TEXT, gib, is_na, last, percent
from gputop.panes.gpu_table import HOLDER, GpuColumn, GpuTable, number_value, quantity_cell, text_of
from gputop.panes.gpus import QUANTITIES as GPU_QUANTITIES
from gputop.panes.gpus import memory_pair, memory_percent, system_memory
from gputop.widgets.bars import Part, stacked_bar
from gputop.widgets.cells import Cell
from gputop.widgets.columns import Column
from gputop.widgets.levels import util_role

_BAR: Final = 20


def _amount(key: str, title: str, priority: int, quantity: str) -> GpuColumn:
    return GpuColumn(
        Column(key, title, 6, align="right", priority=priority, descending=True),
        lambda gpu, context: quantity_cell(gpu, quantity, context, gib),
        number_value(quantity),
    )


def _total(gpu: GpuState, context: PaneContext) -> Cell:
    _, total, prefix = memory_pair(gpu)
    if total is None:
        system = system_memory(gpu, context)
        if system is not None:
            return Cell(f"{gib(system)}S", "info")
        return quantity_cell(gpu, "memory_total_mib", context, gib)
    return Cell(f"{prefix}{gib(total)}")


def _free(gpu: GpuState, context: PaneContext) -> Cell:
    system = system_memory(gpu, context, "system_memory_available_mib")
    if system is not None:
        return Cell(f"{gib(system)}S", "info")
    return quantity_cell(gpu, "memory_free_mib", context, gib)


def _fill(gpu: GpuState, _: PaneContext) -> Cell:
    used, total, _prefix = memory_pair(gpu)
    if used is None or total is None:
        return _no_share(gpu)
    reserved = last(gpu.readings.get("memory_reserved_mib")) or 0.0
    parts = [Part(used, util_role(memory_percent(gpu)), "#"), Part(reserved, "dim", "-")]
    return stacked_bar(parts, total, _BAR)


def _no_share(gpu: GpuState) -> Cell:
    """Return why there is no share: the device has no such numbers, or nobody tells."""
    if is_na(gpu.readings.get("memory_used_mib")) or is_na(gpu.readings.get("memory_total_mib")):
        return Cell(NA_TEXT, "na")
    return Cell(UNKNOWN_TEXT, "unknown")


def _percent(gpu: GpuState, context: PaneContext) -> Cell:
    value = memory_percent(gpu)
    if value is None:
        return _no_share(gpu)
    state = quantity_cell(gpu, "memory_used_mib", context, gib, util_role(value))
    return Cell(percent(value), state.role)


def processes_mib(gpu: GpuState) -> float | None:
    """Return the sum of what processes use, None when it is not told for every one of them."""
    processes = processes_of(gpu)
    if processes is None:
        return None
    amounts = [p.memory_mib for p in processes]
    return sum(a for a in amounts if isinstance(a, float)) if all(isinstance(a, float) for a in amounts) else None


def _processes(gpu: GpuState, _: PaneContext) -> Cell:
    value = processes_mib(gpu)
    return Cell("?", "unknown") if value is None else Cell(gib(value))


COLUMNS: Final = (
    GpuColumn(Column("percent", "%", 4, align="right", descending=True), _percent, memory_percent),
    GpuColumn(Column("fill", "USED#  RESERVED-", _BAR, priority=3, sortable=False), _fill, memory_percent),
    _amount("used", "USED", 0, "memory_used_mib"),
    GpuColumn(Column("total", "TOTAL", 6, align="right", descending=True), _total, number_value("memory_total_mib")),
    GpuColumn(
        Column("free", "FREE", 6, align="right", priority=1, descending=True), _free, number_value("memory_free_mib")
    ),
    _amount("reserved", "RESVD", 1, "memory_reserved_mib"),
    GpuColumn(Column("procs", "PROCS", 6, align="right", priority=2, descending=True), _processes, processes_mib),
    HOLDER,
    _amount("bar1", "BAR1", 4, "bar1_used_mib"),
    _amount("bar1total", "OF", 4, "bar1_total_mib"),
    GpuColumn(
        Column("meaning", "WHAT IT IS", 24, flex=1, priority=5),
        lambda gpu, _: Cell(text_of(gpu, "memory_meaning"), "dim"),
        lambda gpu: text_of(gpu, "memory_meaning") or None,
    ),
)


QUANTITIES: Final = GPU_QUANTITIES | {"memory_free_mib", "bar1_used_mib", "bar1_total_mib"}


def memory_pane() -> GpuTable:
    """Return the pane."""
    return GpuTable("memory", "Memory", QUANTITIES, COLUMNS)
