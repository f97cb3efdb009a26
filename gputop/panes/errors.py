"""The Errors pane: counters and states of each GPU; what needs a look comes first."""

from typing import Final

from gputop.fleet import GpuState
from gputop.model.facts import Presence, XidKind
from gputop.panes.base import PaneContext
from gputop.panes.format import age, count, last, reading_cell
from gputop.panes.gpu_table import HOLDER, GpuColumn, GpuTable, number_value
from gputop.panes.gpus import QUANTITIES as GPU_QUANTITIES
from gputop.panes.words import recovery_words
from gputop.widgets.cells import Cell
from gputop.widgets.columns import Column

_ECC: Final = (
    ("vunc", "V-UNC", 0, "ecc_volatile_uncorrected"),
    ("vcor", "V-COR", 3, "ecc_volatile_corrected"),
    ("aunc", "A-UNC", 2, "ecc_aggregate_uncorrected"),
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
_LINK_ERRORS: Final = (
    "nvlink_crc_flit_errors", "nvlink_crc_data_errors", "nvlink_replay_errors", "nvlink_recovery_errors",
)  # fmt: skip
# Corrected errors are no fault by themselves, and lifetime counts are history: only these raise a row.
_NEEDS_A_LOOK: Final = (
    ("row_remap_failed", 5.0),
    ("row_remap_pending", 3.0),
    ("retired_pages_pending", 3.0),
    ("ecc_sram_threshold_exceeded", 4.0),
    ("ecc_volatile_uncorrected", 4.0),
    ("recovery_action", 4.0),
    ("nvlink_recovery_errors", 2.0),
    ("retired_pages_dbe", 1.0),
    ("row_remap_uncorrected", 1.0),
)


def severity(gpu: GpuState) -> float:
    """Return how much a GPU needs a look, 0 for not at all."""
    worst = 0.0 if gpu.presence is Presence.PRESENT else 6.0
    readings = gpu.readings
    for quantity, weight in _NEEDS_A_LOOK:
        reading = readings.get(quantity)
        if weight > worst and reading is not None and reading.number:
            worst = weight
    return worst


def interest(gpu: GpuState) -> float:
    """Return how far up a GPU belongs in this pane: what needs a look, then what has anything at all to tell."""
    worst = severity(gpu)
    if worst:
        return worst
    if gpu.xids:
        return 0.8
    readings = gpu.readings
    for quantity in _WORTH_TELLING:
        reading = readings.get(quantity)
        if reading is not None and reading.number:
            return 0.4
    return 0.0


_WORTH_TELLING: Final = (
    "ecc_volatile_corrected", "ecc_aggregate_uncorrected", "ecc_aggregate_corrected", *_LINK_ERRORS,
)  # fmt: skip


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
    return reading_cell(gpu.readings.get(quantity), context.now, count, role)


def _ecc_column(key: str, title: str, priority: int, quantity: str) -> GpuColumn:
    return GpuColumn(
        Column(key, title, max(5, len(title)), align="right", priority=priority, descending=True),
        lambda gpu, context: _ecc(gpu, context, quantity),
        number_value(quantity),
    )


def _flag(gpu: GpuState, context: PaneContext, quantity: str, word: str, role: str) -> Cell:
    cell = reading_cell(gpu.readings.get(quantity), context.now)
    if last(gpu.readings.get(quantity)) is None:
        return cell
    return Cell(word, role) if cell.plain == "1" else Cell("no", "dim")


def _remap(gpu: GpuState, context: PaneContext) -> Cell:
    """Return the rows remapped after uncorrected errors, with the two states that ask for something."""
    if last(gpu.readings.get("row_remap_failed")) == 1.0:
        return Cell("FAILED", "bad")
    rows = reading_cell(gpu.readings.get("row_remap_uncorrected"), context.now, count, _dim)
    if last(gpu.readings.get("row_remap_pending")) == 1.0:
        return Cell.of(("pending", "warn"), (f" {rows.plain}", "dim"))
    return rows


def _pages(gpu: GpuState, context: PaneContext) -> Cell:
    single, double = (last(gpu.readings.get(q)) for q in ("retired_pages_sbe", "retired_pages_dbe"))
    if single is None or double is None:
        return reading_cell(gpu.readings.get("retired_pages_dbe"), context.now)
    pending = last(gpu.readings.get("retired_pages_pending")) == 1.0
    return Cell(f"{single:.0f}+{double:.0f}{' pend' if pending else ''}", "warn" if pending or double else "dim")


def _links(gpu: GpuState, context: PaneContext) -> Cell:
    told = [v for v in (last(gpu.readings.get(q)) for q in _LINK_ERRORS) if v is not None]
    if not told:
        return reading_cell(gpu.readings.get(_LINK_ERRORS[0]), context.now)
    return Cell(count(sum(told)), _warn_if_any(sum(told)))


def link_errors(gpu: GpuState) -> float | None:
    """Return all NVLink errors told, None when none of the counters is."""
    told = [v for v in (last(gpu.readings.get(q)) for q in _LINK_ERRORS) if v is not None]
    return sum(told) if told else None


def xid_cell(gpu: GpuState, context: PaneContext) -> Cell:
    """Return the newest Xid with what is known of its time.

    A standing last number may be old and hides repeats (NVIDIA/DCGM#277), so it never looks like news.
    """
    windows = [x for x in gpu.xids if x.kind is XidKind.WINDOW and x.count and context.now - x.last_seen < x.window_s]
    if windows:
        newest = windows[-1]
        minutes = f"{newest.window_s / 60:.0f} min" if newest.window_s else "its window"
        return Cell(f"Xid {newest.xid} x{newest.count} in {minutes}", "warn")
    if not gpu.xids:
        return Cell("-", "dim")
    newest = max(gpu.xids, key=lambda x: x.first_seen)
    since = age(max(0.0, context.now - newest.first_seen))
    if newest.kind is XidKind.EVENT:
        times = f" x{newest.count}" if newest.count > 1 else ""
        return Cell(f"Xid {newest.xid}{times} {age(max(0.0, context.now - newest.last_seen))} ago", "warn")
    if newest.from_start:
        return Cell(f"last Xid {newest.xid}, seen for >{since}", "dim")
    return Cell(f"last Xid {newest.xid}, new {since} ago", "warn")


def _action(gpu: GpuState, context: PaneContext) -> Cell:
    value = last(gpu.readings.get("recovery_action"))
    if value is None:
        return reading_cell(gpu.readings.get("recovery_action"), context.now)
    return Cell(recovery_words(value), "dim" if value == 0 else "warn")


COLUMNS: Final = (
    *(_ecc_column(*row) for row in _ECC),
    GpuColumn(Column("remap", "REMAP", 9, priority=1), _remap, number_value("row_remap_uncorrected")),
    GpuColumn(Column("xid", "XID", 20, min_width=16, flex=1, priority=1), xid_cell, number_value("last_xid")),
    GpuColumn(Column("links", "NVL-ERR", 7, align="right", priority=4, descending=True), _links, link_errors),
    GpuColumn(
        Column("replay", "REPLAY", 6, align="right", priority=6, descending=True),
        lambda gpu, context: reading_cell(gpu.readings.get("pcie_replay_total"), context.now, count, _dim),
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
    "ecc_mode", *(row[3] for row in (*_ECC, *_ECC_PARTS)), *_LINK_ERRORS, "row_remap_corrected",
    "row_remap_uncorrected", "row_remap_pending", "row_remap_failed", "retired_pages_sbe", "retired_pages_dbe",
    "retired_pages_pending", "ecc_sram_threshold_exceeded", "pcie_replay_total", "recovery_action", "last_xid",
}  # fmt: skip


def errors_pane() -> GpuTable:
    """Return the pane."""
    return GpuTable("errors", "Errors", QUANTITIES, COLUMNS, lambda gpu: -interest(gpu))
