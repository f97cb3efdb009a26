"""The GPUs pane: what each GPU does and who holds it."""

from typing import Final

from gputop.fleet import GpuState
from gputop.model.reading import STALE
from gputop.panes.base import PaneContext
from gputop.panes.format import age, fresh, gib, is_na, last, number, percent, rate, reading_cell
from gputop.panes.gpu_table import HOLDER, GpuColumn, GpuTable, number_value, quantity_cell, text_of
from gputop.panes.links import nvlinks, pcie_link
from gputop.panes.temperature import HOT, WARM, degrees, heat_of
from gputop.panes.trend import TREND_WIDTH, least_width, utilisation_trend
from gputop.panes.words import clock_letter
from gputop.widgets.bars import bar
from gputop.widgets.cells import Cell
from gputop.widgets.columns import Column
from gputop.widgets.levels import util_role

_BAR: Final = 12
IDLE_PERCENT: Final = 5.0
_BAR_QUANTUM: Final = 2.0


def activity(gpu: GpuState) -> str:
    """Return the quantity that tells how busy a GPU is: utilisation, else the graphics engine's activity."""
    reading = gpu.readings.get("utilization")
    if reading is not None and reading.number is not None:
        return "utilization"
    other = gpu.readings.get("graphics_activity")
    # Where neither has a number, the first says why: a board in MIG mode has none, and that is no gap.
    tells = other is not None and (reading is None or other.number is not None)
    return "graphics_activity" if tells else "utilization"


def _util(gpu: GpuState, context: PaneContext) -> Cell:
    return reading_cell(gpu.readings.get(activity(gpu)), context.now, percent, util_role)


def _util_bar(gpu: GpuState, context: PaneContext) -> Cell:
    reading = gpu.readings.get(activity(gpu))
    value = last(reading)
    if reading is None or value is None:
        return Cell("")
    # The bar moves in steps of two percent: a length that trembles says nothing and costs bytes.
    drawn = min(100.0, round(value / _BAR_QUANTUM) * _BAR_QUANTUM)
    role = "stale" if reading.state(context.now) == STALE else util_role(min(value, 100.0))
    return Cell(bar(drawn, _BAR, ascii_only=context.ascii_only), role)


def _trend(gpu: GpuState, context: PaneContext) -> Cell:
    # Where the column has no room, nobody looks at the past.
    return utilisation_trend((gpu,), context) if context.width >= _ROOM_FOR_TREND else Cell("")


def _vram(gpu: GpuState, context: PaneContext) -> Cell:
    used, total, prefix = memory_pair(gpu)
    if used is None and (total is None or is_na(gpu.readings.get("memory_used_mib"))):
        return quantity_cell(gpu, "memory_used_mib", context, gib)
    reading = gpu.readings.get("memory_used_mib")
    role = reading_cell(reading, context.now, gib).role
    left = gib(used) if used is not None else "?"
    if total is None:
        system = system_memory(gpu, context)
        # S: the system's memory, of which the GPU has no part of its own.
        return Cell(f"{left}/{gib(system)}S", role) if system is not None else Cell(f"{left}/?G", role)
    return Cell(f"{left}/{prefix}{gib(total)}G", role)


def system_memory(gpu: GpuState, context: PaneContext, quantity: str = "system_memory_total_mib") -> float | None:
    """Return MiB of the system's memory for a GPU that has none of its own, None for any other GPU."""
    total = gpu.readings.get("memory_total_mib")
    absent = total.absent if total is not None else None
    if absent is None or absent.code != "unified_memory":
        return None
    node = context.view.nodes.get(gpu.key.node)
    return last(node.readings.get(quantity)) if node is not None else None


def memory_pair(gpu: GpuState) -> tuple[float | None, float | None, str]:
    """Return used and total MiB, and "≥" when the total is only a lower bound."""
    used = last(gpu.readings.get("memory_used_mib"))
    total = last(gpu.readings.get("memory_total_mib"))
    if total is not None:
        return used, total, ""
    at_least = last(gpu.readings.get("memory_total_at_least_mib"))
    return used, at_least, "≥" if at_least is not None else ""


def memory_percent(gpu: GpuState) -> float | None:
    """Return how full the memory is, None when that cannot be told."""
    used, total, _ = memory_pair(gpu)
    return 100.0 * used / total if used is not None and total else None


def _vram_bar(gpu: GpuState, context: PaneContext) -> Cell:
    value = memory_percent(gpu)
    if value is None:
        return Cell("")
    role = quantity_cell(gpu, "memory_used_mib", context, gib, util_role(value)).role
    return Cell(bar(min(value, 100.0), 8, ascii_only=context.ascii_only), role)


def _power(gpu: GpuState, context: PaneContext) -> Cell:
    cell = quantity_cell(gpu, "power_w", context, number)
    limit = last(gpu.readings.get("power_limit_w"))
    cap = f"/{limit:.0f}" if limit else ""
    reasons = gpu.readings.get("clock_event_reasons")
    mask = fresh(reasons, context.now)
    letter, role = clock_letter(int(mask)) if mask is not None else ("", "")
    return Cell.of((f"{cell.plain}", cell.role), (f"{cap:<5}", "dim"), (letter or " ", role))


_HEAT_ROLES: Final = {HOT: "bad", WARM: "warn", "": ""}


def _temperature(gpu: GpuState, context: PaneContext) -> Cell:
    heat = heat_of(gpu)
    return quantity_cell(gpu, "temperature_c", context, lambda v: degrees(v, heat), _HEAT_ROLES[heat])


def _pcie(gpu: GpuState, context: PaneContext) -> Cell:
    """Return generation and lanes; below their maximum is judged only under load: links rest to save power."""
    link = pcie_link(gpu)
    if link is None:
        return quantity_cell(gpu, "pcie_generation", context)
    if not link.is_below:
        return Cell(link.words)
    busy = (fresh(gpu.readings.get(activity(gpu)), context.now) or 0.0) >= IDLE_PERCENT
    return Cell(f"{link.words}!", "warn") if busy else Cell(link.words, "dim")


def _links(gpu: GpuState, context: PaneContext) -> Cell:
    links = nvlinks(gpu)
    if links is None:
        return quantity_cell(gpu, "nvlink_links_active", context)
    active, of = links
    return Cell(f"{active:.0f}/{of:.0f}", "warn" if active < of else "")


def _number_column(key: str, title: str, width: int, priority: int, quantity: str) -> GpuColumn:
    return GpuColumn(
        Column(key, title, width, align="right", priority=priority, descending=True),
        lambda gpu, context: quantity_cell(gpu, quantity, context, number),
        number_value(quantity),
    )


def _percent_column(key: str, title: str, priority: int, quantity: str) -> GpuColumn:
    return GpuColumn(
        Column(key, title, 4, align="right", priority=priority, descending=True),
        lambda gpu, context: quantity_cell(gpu, quantity, context, percent),
        number_value(quantity),
    )


def _rate_column(key: str, title: str, priority: int, quantity: str) -> GpuColumn:
    return GpuColumn(
        Column(key, title, 9, align="right", priority=priority, descending=True),
        lambda gpu, context: quantity_cell(gpu, quantity, context, rate),
        number_value(quantity),
    )


def _text_column(key: str, title: str, width: int, priority: int, quantity: str) -> GpuColumn:
    return GpuColumn(
        Column(key, title, width, priority=priority),
        lambda gpu, context: quantity_cell(gpu, quantity, context),
        lambda gpu: text_of(gpu, quantity) or None,
    )


def _ecc(gpu: GpuState, context: PaneContext) -> Cell:
    reading = gpu.readings.get("ecc_mode")
    cell = reading_cell(reading, context.now, lambda v: "on" if v else "off")
    return Cell("off", "warn") if cell.plain == "off" and not cell.role else cell


def _source(gpu: GpuState, _: PaneContext) -> Cell:
    reading = gpu.readings.get(activity(gpu)) or gpu.readings.get("temperature_c")
    return Cell(reading.origin.source, "dim") if reading is not None else Cell("?", "unknown")


def _age(gpu: GpuState, context: PaneContext) -> Cell:
    seen = gpu.last_seen
    return Cell(age(max(0.0, context.now - seen)) if seen else "?", "dim")


_TREND: Final = Column("trend", "LAST MINUTES", TREND_WIDTH, priority=10, sortable=False)

COLUMNS: Final = (
    GpuColumn(
        Column("util", "UTIL", 4, align="right", priority=0, descending=True),
        _util,
        lambda gpu: last(gpu.readings.get(activity(gpu))),
    ),
    GpuColumn(Column("load", "", _BAR, priority=2, sortable=False), _util_bar, number_value("utilization")),
    GpuColumn(_TREND, _trend, number_value("utilization")),
    GpuColumn(
        Column("vram", "VRAM", 8, align="right", priority=0, descending=True), _vram, number_value("memory_used_mib")
    ),
    GpuColumn(Column("fill", "", 8, priority=4, sortable=False), _vram_bar, memory_percent),
    GpuColumn(
        Column("power", "W /cap", 9, align="right", priority=1, descending=True), _power, number_value("power_w")
    ),
    GpuColumn(
        Column("temp", "°C", 3, align="right", priority=1, descending=True), _temperature, number_value("temperature_c")
    ),
    _number_column("clk", "CLK", 4, 3, "sm_clock_mhz"),
    HOLDER,
    _percent_column("sm", "SM", 5, "sm_activity"),
    _percent_column("tensor", "TENS", 6, "tensor_activity"),
    GpuColumn(
        Column("age", "AGE", 3, align="right", priority=7, descending=True), _age, lambda gpu: -gpu.last_seen or None
    ),
    _percent_column("membw", "MBW", 8, "memory_utilization"),
    _number_column("margin", "TLIM", 4, 9, "temperature_margin_c"),
    GpuColumn(Column("pcie", "PCIE", 5, priority=9), _pcie, number_value("pcie_generation")),
    GpuColumn(Column("nvlink", "NVL", 5, priority=9), _links, number_value("nvlink_links_active")),
    _number_column("memtemp", "M°C", 3, 10, "memory_temperature_c"),
    _text_column("model", "MODEL", 24, 11, "model"),
    GpuColumn(Column("ecc", "ECC", 3, priority=12), _ecc, number_value("ecc_mode")),
    _percent_column("enc", "ENC", 12, "encoder_utilization"),
    _percent_column("dec", "DEC", 12, "decoder_utilization"),
    _percent_column("fan", "FAN", 13, "fan_speed_percent"),
    _number_column("pstate", "P", 2, 14, "performance_state"),
    GpuColumn(
        Column("bus", "BUS ID", 16, priority=14),
        lambda gpu, _: Cell(gpu.bus_id, "dim") if gpu.bus_id else Cell("?", "unknown"),
        lambda gpu: gpu.bus_id or None,
    ),
    GpuColumn(
        Column("source", "SOURCE", 12, min_width=8, priority=15),
        _source,
        lambda gpu: next((s.origin.source for s in gpu.sightings if s.listed), None),
    ),
    _rate_column("rx", "PCIE RX", 15, "pcie_rx_bytes_per_s"),
    _rate_column("tx", "PCIE TX", 15, "pcie_tx_bytes_per_s"),
    GpuColumn(
        Column("uuid", "UUID", 40, priority=16),
        lambda gpu, _: Cell(gpu.mig_uuid or gpu.key.uuid, "dim"),
        lambda gpu: gpu.mig_uuid or gpu.key.uuid,
    ),
)

_ROOM_FOR_TREND: Final = least_width([c.column for c in COLUMNS], _TREND)

QUANTITIES: Final = frozenset(
    {
        "utilization", "memory_utilization", "encoder_utilization", "decoder_utilization", "sm_activity",
        "tensor_activity", "graphics_activity", "memory_total_mib", "memory_total_at_least_mib", "memory_used_mib",
        "memory_reserved_mib", "memory_meaning", "temperature_c", "memory_temperature_c", "power_w", "power_meaning",
        "power_limit_w", "temperature_margin_c", "temperature_slowdown_c",
        "sm_clock_mhz", "clock_event_reasons", "pcie_generation", "pcie_generation_max",
        "pcie_width", "pcie_width_max", "pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s", "nvlink_links",
        "nvlink_links_active", "fan_speed_percent", "performance_state", "model", "mig_mode", "mig_profile", "ecc_mode",
        "driver_version", "cuda_version", "persistence_mode", "system_memory_total_mib",
        "system_memory_available_mib",
    }
)  # fmt: skip


def gpus_pane() -> GpuTable:
    """Return the pane."""
    return GpuTable("gpus", "GPUs", QUANTITIES, COLUMNS)
