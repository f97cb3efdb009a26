"""The Errors pane: counters and states of each GPU; what needs a look comes first."""

from typing import Final

from gputop.fleet import GpuState
from gputop.model.facts import XidKind
from gputop.model.reading import STALE
from gputop.panes.base import PaneContext
from gputop.panes.format import age, count, last
from gputop.panes.gpu_table import HOLDER, GpuColumn, GpuTable, number_value, quantity_cell
from gputop.panes.gpus import QUANTITIES as GPU_QUANTITIES
from gputop.panes.troubles import LINK_ERRORS, TROUBLES, interest, worst_trouble
from gputop.panes.words import recovery_words
from gputop.widgets.cells import Cell
from gputop.widgets.columns import Column

_ECC: Final = (
    ("vunc", "V-UNC", 0, "ecc_volatile_uncorrected"),
    ("vcor", "V-COR", 3, "ecc_volatile_corrected"),
    ("aunc", "A-UNC", 4, "ecc_aggregate_uncorrected"),
    ("acor", "A-COR", 5, "ecc_aggregate_corrected"),
)
_ECC_PARTS: Final = (
    ("vdu", "VDRAM-U", 10, "ecc_volatile_dram_uncorrected"),
    ("vsu", "VSRAM-U", 10, "ecc_volatile_sram_uncorrected"),
    ("adu", "ADRAM-U", 11, "ecc_aggregate_dram_uncorrected"),
    ("asu", "ASRAM-U", 11, "ecc_aggregate_sram_uncorrected"),
    ("vdc", "VDRAM-C", 12, "ecc_volatile_dram_corrected"),
    ("vsc", "VSRAM-C", 12, "ecc_volatile_sram_corrected"),
)


def _bad_if_any(value: float) -> str:
    return "bad" if value > 0 else "dim"


def _warn_if_any(value: float) -> str:
    return "warn" if value > 0 else "dim"


def _dim(_: float) -> str:
    return "dim"


def _ecc(gpu: GpuState, context: PaneContext, quantity: str) -> Cell:
    """Return a count; where ECC is off there is nothing to count, and that is not 0 errors."""
    if last(gpu.readings.get("ecc_mode")) == 0.0:
        return Cell("off", "na")
    role = _bad_if_any if "volatile" in quantity and quantity.endswith("uncorrected") else _dim
    return quantity_cell(gpu, quantity, context, count, role)


def _ecc_column(key: str, title: str, priority: int, quantity: str) -> GpuColumn:
    return GpuColumn(
        Column(key, title, max(5, len(title)), align="right", priority=priority, descending=True),
        lambda gpu, context: _ecc(gpu, context, quantity),
        number_value(quantity),
    )


def _flag(gpu: GpuState, context: PaneContext, quantity: str, word: str, role: str) -> Cell:
    cell = quantity_cell(gpu, quantity, context)
    if last(gpu.readings.get(quantity)) is None:
        return cell
    return Cell(word, role) if cell.plain == "1" else Cell("no", "dim")


def _remap(gpu: GpuState, context: PaneContext) -> Cell:
    """Return the rows remapped after uncorrected errors, with the two states that ask for something."""
    if last(gpu.readings.get("row_remap_failed")) == 1.0:
        return Cell("FAILED", "bad")
    rows = quantity_cell(gpu, "row_remap_uncorrected", context, count, _dim)
    if last(gpu.readings.get("row_remap_pending")) == 1.0:
        return Cell.of(("pending", "warn"), (f" {rows.plain}", "dim"))
    return rows


def _pages(gpu: GpuState, context: PaneContext) -> Cell:
    single, double = (last(gpu.readings.get(q)) for q in ("retired_pages_sbe", "retired_pages_dbe"))
    if single is None or double is None:
        return quantity_cell(gpu, "retired_pages_dbe", context)
    pending = last(gpu.readings.get("retired_pages_pending")) == 1.0
    return Cell(f"{single:.0f}+{double:.0f}{' pend' if pending else ''}", "warn" if pending or double else "dim")


def _links(gpu: GpuState, context: PaneContext) -> Cell:
    told = [v for v in (last(gpu.readings.get(q)) for q in LINK_ERRORS) if v is not None]
    if not told:
        return quantity_cell(gpu, LINK_ERRORS[0], context)
    return Cell(count(sum(told)), _warn_if_any(sum(told)))


def link_errors(gpu: GpuState) -> float | None:
    """Return all NVLink errors told, None when none of the counters is."""
    told = [v for v in (last(gpu.readings.get(q)) for q in LINK_ERRORS) if v is not None]
    return sum(told) if told else None


def xid_cell(gpu: GpuState, context: PaneContext) -> Cell:
    """Return the newest Xid with what is known of its time; the heading says what the number is.

    A standing last number may be old and hides repeats (NVIDIA/DCGM#277), so it never looks like news.
    """
    windows = [x for x in gpu.xids if x.kind is XidKind.WINDOW and x.count and context.now - x.last_seen < x.window_s]
    if windows:
        newest = windows[-1]
        minutes = f"{newest.window_s / 60:.0f} min" if newest.window_s else "its window"
        return Cell(f"{newest.xid} x{newest.count} in {minutes}", "warn")
    if not gpu.xids:
        return Cell("-", "dim")
    newest = max(gpu.xids, key=lambda x: x.first_seen)
    since = age(max(0.0, context.now - newest.first_seen))
    if newest.kind is XidKind.EVENT:
        times = f" x{newest.count}" if newest.count > 1 else ""
        return Cell(f"{newest.xid}{times} {age(max(0.0, context.now - newest.last_seen))} ago", "warn")
    if newest.from_start:
        return Cell(f"last {newest.xid}, >{since} old", "dim")
    return Cell(f"last {newest.xid}, new {since} ago", "warn")


def _worst(gpu: GpuState, context: PaneContext) -> Cell:
    """Return why the row stands where it does; counters for which there is no column tell here too."""
    found = worst_trouble(gpu)
    if found is None:
        told = any(last(gpu.readings.get(t.quantity)) is not None for t in TROUBLES)
        return Cell("-", "dim") if told or gpu.key.instance else Cell("?", "unknown")
    trouble, value = found
    is_stale = gpu.readings[trouble.quantity].state(context.now) == STALE
    return Cell(trouble.words(value), "stale" if is_stale else trouble.role)


def _action(gpu: GpuState, context: PaneContext) -> Cell:
    value = last(gpu.readings.get("recovery_action"))
    if value is None:
        return quantity_cell(gpu, "recovery_action", context)
    return Cell(recovery_words(value), "dim" if value == 0 else "warn")


COLUMNS: Final = (
    GpuColumn(Column("worst", "WORST", 20, min_width=18, flex=1, priority=0, descending=True), _worst, interest),
    *(_ecc_column(*row) for row in _ECC),
    GpuColumn(Column("remap", "REMAP", 9, min_width=7, priority=1), _remap, number_value("row_remap_uncorrected")),
    GpuColumn(Column("xid", "XID", 17, min_width=13, flex=1, priority=1), xid_cell, number_value("last_xid")),
    GpuColumn(Column("links", "NVL-ERR", 7, align="right", priority=4, descending=True), _links, link_errors),
    GpuColumn(
        Column("replay", "REPLAY", 6, align="right", priority=6, descending=True),
        lambda gpu, context: quantity_cell(gpu, "pcie_replay_total", context, count, _dim),
        number_value("pcie_replay_total"),
    ),
    GpuColumn(Column("action", "ACTION", 12, priority=3), _action, number_value("recovery_action")),
    GpuColumn(Column("pages", "PAGES", 8, priority=7), _pages, number_value("retired_pages_dbe")),
    GpuColumn(
        Column("sram", "SRAM-THR", 8, priority=8),
        lambda gpu, context: _flag(gpu, context, "ecc_sram_threshold_exceeded", "EXCEEDED", "bad"),
        number_value("ecc_sram_threshold_exceeded"),
    ),
    GpuColumn(HOLDER.column, HOLDER.cell, HOLDER.value),
    *(_ecc_column(*row) for row in _ECC_PARTS),
)

QUANTITIES: Final = GPU_QUANTITIES | {
    "ecc_mode", *(row[3] for row in (*_ECC, *_ECC_PARTS)), *LINK_ERRORS,
    "row_remap_uncorrected", "row_remap_pending", "row_remap_failed", "retired_pages_sbe", "retired_pages_dbe",
    "retired_pages_pending", "ecc_sram_threshold_exceeded", "pcie_replay_total", "recovery_action", "last_xid",
}  # fmt: skip


def errors_pane() -> GpuTable:
    """Return the pane."""
    return GpuTable("errors", "Errors", QUANTITIES, COLUMNS, lambda gpu: -interest(gpu))
