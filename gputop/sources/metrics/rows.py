"""Rows: all samples of one GPU or MIG instance in one answer, brought together.

Several series may be of one GPU: after a pod change within the lookback (NVIDIA/dcgm-exporter#237, #340),
from two exporters or replicas, or one for each pod of a shared GPU, which repeats the value of the whole
device (#474, #587). The newest counts; of equally old ones the largest, never a sum.
"""

import math
from typing import Final

from msgspec import Struct

from gputop.model.identity import GpuRef, NodeRef
from gputop.model.quantity import QUANTITIES, Level
from gputop.model.reading import NA, UNKNOWN, Absent, Value
from gputop.model.sanity import judge, judge_raw
from gputop.model.workload import Holder
from gputop.sources.metrics.labels import Labels
from gputop.sources.metrics.rule import MetricRule

SAME_SCRAPE_S: Final = 2.0
"""Samples this close in time are of one scrape."""

RowKey = tuple[str, str, str, str]
"""Cluster, host, board (UUID, else bus id, else "#index"), MIG instance ("" for the board)."""

_INSTANCE_UTILIZATION: Final = Absent(NA, "mig", "not told for a MIG instance: needs DCGM_FI_PROF_GR_ENGINE_ACTIVE")
_WORST_LINK: Final = frozenset({"nvlink_effective_ber", "nvlink_symbol_ber"})
"""Told link by link, of which the worst counts: a sum of rates is no rate."""
_ZERO_MEMORY: Final = Absent(UNKNOWN, "blank", "used and free are both 0: the exporter did not read the memory")


class Cell(Struct, gc=False):
    """One value with what decides whether another one replaces it."""

    value: Value
    at: float
    order: int


class Row(Struct, gc=False):
    """One GPU or MIG instance.

    Attributes:
        key: Identity within the answer.
        ref: The GPU as told.
        cells: Value by quantity.
        links: For counts told link by link: quantity to link to cell.
        holders: Workloads named: newest time by workload and exporter.
        scrapes: Newest sample time by exporter.
        families: Exporters that told something.
        newest: Newest sample time.
        node_texts: Texts of its node.
    """

    key: RowKey
    ref: GpuRef
    cells: dict[str, Cell]
    links: dict[str, dict[str, Cell]]
    holders: dict[Holder, dict[str, float]]
    scrapes: dict[str, float]
    families: set[str]
    newest: float
    node_texts: dict[str, str]

    @property
    def node(self) -> NodeRef:
        """The node it is on."""
        return NodeRef(self.ref.host, self.ref.cluster)

    def number(self, quantity: str) -> float | None:
        """Return the number of a quantity, if there is one."""
        cell = self.cells.get(quantity)
        return cell.value if cell is not None and isinstance(cell.value, float) else None

    def put(self, quantity: str, value: Value, at: float, order: int = 0) -> None:
        """Take one value into account."""
        _take(self.cells, quantity, Cell(value, at, order))

    def put_link(self, quantity: str, link: str, value: Value, at: float) -> None:
        """Take the value of one of its NVLinks into account."""
        _take(self.links.setdefault(quantity, {}), link, Cell(value, at, 0))


def _take(cells: dict[str, Cell], name: str, new: Cell) -> None:
    old = cells.get(name)
    if old is None or _better(new, old):
        cells[name] = new


def _better(new: Cell, old: Cell) -> bool:
    new_told, old_told = not isinstance(new.value, Absent), not isinstance(old.value, Absent)
    if new.order != old.order:
        # A second-choice metric fills in for a first choice that has no value.
        first = new.order < old.order
        return new_told or not old_told if first else new_told and not old_told
    if abs(new.at - old.at) > SAME_SCRAPE_S:
        return new.at > old.at
    if new_told != old_told:
        return new_told
    if isinstance(new.value, float) and isinstance(old.value, float):
        return new.value > old.value
    return False


def judged(rule: MetricRule, value: float, scale: float) -> Value:
    """Return a sample in its quantity's unit, or why it is no value.

    Markers are told before the conversion: a marker divided by 1000 is no longer known as one.
    """
    blank = judge_raw(value)
    if blank is not None:
        return blank
    if math.isinf(value):
        return judge(rule.quantity, value)
    if scale == 1.0:
        return judge(rule.quantity, value)
    # A product of decimals has digits that the exporter never sent: 0.57 * 100 is not 57.
    return judge(rule.quantity, round(value * scale, 9 if scale < 1e6 else 0))


class Rows:
    """The rows of one answer."""

    def __init__(self, refs: dict[RowKey, GpuRef]) -> None:
        self._refs = refs
        self.by_key: dict[RowKey, Row] = {}

    def of(self, labels: Labels, at: float, *, whole_board: bool = False) -> Row:
        """Return the row that labels name, made if there is none.

        Args:
            labels: Labels that name a GPU.
            at: Sample time.
            whole_board: The board is meant, also by the labels of one of its instances.
        """
        board = labels.uuid or labels.bus_id or f"#{labels.index}"
        instance = "" if whole_board else labels.instance or labels.mig_uuid
        key = (labels.cluster, labels.host, board, instance)
        row = self.by_key.get(key)
        if row is None:
            row = Row(key, self._ref(key, labels), {}, {}, {}, {}, set(), at, {})
            self.by_key[key] = row
        elif (labels.bus_id and not row.ref.bus_id) or (labels.index >= 0 > row.ref.index):
            row.ref = self._ref(key, labels)
        row.newest = max(row.newest, at)
        return row

    def _ref(self, key: RowKey, labels: Labels) -> GpuRef:
        """Return the reference with all names told so far: some exporters tell them in one series only."""
        before = self._refs.get(key)
        ref = GpuRef(
            host=labels.host,
            cluster=labels.cluster,
            uuid=labels.uuid,
            bus_id=labels.bus_id or (before.bus_id if before else ""),
            index=labels.index if labels.index >= 0 else before.index if before else -1,
            instance=labels.instance if key[3] else "",
            mig_uuid=labels.mig_uuid if key[3] else "",
        )
        self._refs[key] = ref
        return ref

    def value(self, labels: Labels, rule: MetricRule, value: Value, at: float) -> None:
        """Put one value where it belongs: sensors of a board are told on its instances' rows too."""
        is_instance = bool(labels.instance or labels.mig_uuid)
        if is_instance and not rule.instances:
            self.of(labels, at)
            return
        board = is_instance and QUANTITIES[rule.quantity].level is Level.BOARD
        row = self.of(labels, at, whole_board=board)
        row.families.add(rule.exporter)
        if labels.partition and value == 0.0:
            # Only the first partition of an AMD board carries its sensors; the others read 0.
            value = Absent(NA, "partition", "told by the first partition of the board only")
        if labels.link and rule.group == "nvlink":
            row.put_link(rule.quantity, labels.link, value, at)
        else:
            row.put(rule.quantity, value, at, rule.order)

    def texts(self, labels: Labels, at: float) -> None:
        """Take the texts and the workload that labels carry."""
        row = self.of(labels, at)
        row.scrapes[labels.exporter] = max(at, row.scrapes.get(labels.exporter, 0.0))
        is_instance = bool(row.key[3])
        board = self.of(labels, at, whole_board=True) if is_instance else row
        for quantity, text in labels.texts:
            if not is_instance or QUANTITIES[quantity].level is not Level.BOARD:
                row.put(quantity, text, at)
            if is_instance and quantity != "mig_profile":
                board.put(quantity, text, at)
        if is_instance:
            # A MIG instance is proof of its board and of its mode.
            board.put("mig_mode", 1.0, at)
        row.node_texts.update(labels.node_texts)
        if labels.holder is not None:
            told = row.holders.setdefault(labels.holder, {})
            told[labels.exporter] = max(at, told.get(labels.exporter, 0.0))


def finish(row: Row, *, complete: bool) -> None:
    """Derive what follows from several values of a row.

    Args:
        row: The row.
        complete: Everything the source tells of the GPU is in it, so what is not there is not told.
    """
    for quantity, cells in row.links.items():
        numbers = [c.value for c in cells.values() if isinstance(c.value, float)]
        if numbers and quantity not in row.cells:
            whole = max(numbers) if quantity in _WORST_LINK else float(sum(numbers))
            row.put(quantity, whole, max(c.at for c in cells.values()))
    _memory(row)
    if not row.key[3]:
        return
    activity = row.cells.get("graphics_activity")
    if activity is not None and isinstance(activity.value, float):
        # Activity may exceed 100 % a little on instances; utilisation is a share of time.
        row.put("utilization", min(activity.value, 100.0), activity.at)
    elif complete and row.cells:
        row.put("utilization", _INSTANCE_UTILIZATION, row.newest)


def _memory(row: Row) -> None:
    used, free = row.number("memory_used_mib"), row.number("memory_free_mib")
    if used is None or free is None:
        return
    at = min(row.cells["memory_used_mib"].at, row.cells["memory_free_mib"].at)
    if used == 0.0 and free == 0.0:
        # DCGM 2.4.5 told 0 for everything (NVIDIA/dcgm-exporter#71, #103).
        for quantity in ("memory_used_mib", "memory_free_mib", "memory_total_mib"):
            row.cells[quantity] = Cell(_ZERO_MEMORY, at, 0)
        return
    if row.number("memory_total_mib") is not None:
        return
    reserved = row.number("memory_reserved_mib")
    if reserved is not None:
        row.put("memory_total_mib", used + free + reserved, at)
        row.put("memory_meaning", "total is used, free and reserved added up", at)
    else:
        row.put("memory_total_at_least_mib", used + free, at)
        row.put("memory_meaning", "total is at least used and free: the reserved part is not told", at)
