"""A node in numbers: pure sums over its boards, with what is not known left out and said."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from gputop.fleet import GpuState, NodeState, View
from gputop.fleet.allocation import Allocation, allocations, used_by_node
from gputop.fleet.precedence import disagreements
from gputop.model.facts import Presence
from gputop.model.identity import NodeKey
from gputop.panes.errors import severity as error_severity
from gputop.panes.format import age, last
from gputop.panes.gpus import activity, memory_pair
from gputop.panes.holding import holders, is_held
from gputop.panes.words import BROKEN, PRESENCE_WORDS, clock_letter, clock_words, recovery_words

IDLE_PERCENT: Final = 5.0
_HOT_C: Final = 85.0
_MAIN: Final = ("nvidia.com/gpu", "amd.com/gpu")


class Sum(Struct, frozen=True, gc=False):
    """A sum, and of how many boards it is.

    Attributes:
        value: Sum over the boards that tell it.
        told: Boards that tell it.
        of: Boards.
    """

    value: float
    told: int
    of: int

    def text(self, words: str) -> str:
        """Return the sum's text, marked as a lower bound when some boards do not tell."""
        if not self.told:
            return "?"
        return words if self.told == self.of else f"≥{words}"


class NodeSummary(Struct, frozen=True):
    """What the Fleet pane shows of a node.

    Attributes:
        boards: Its boards.
        allocation: The main device resource, None when no scheduler tells.
        memory_used: MiB used.
        memory_total: MiB in all.
        power: W.
        hottest_c: Temperature of the hottest board, None when not told.
        finding: The worst thing to say of it, "" for nothing.
        finding_role: Role of the finding.
        needs_a_look: How urgently, 0 for not at all.
        busy: Boards with a utilisation of 5 % and more.
        idle: Boards held and below.
        broken: Boards that do not work.
        unknown: Boards of which nobody can tell whether they are busy.
        last_seen: Newest word of any source, 0 if none.
    """

    boards: tuple[GpuState, ...]
    allocation: Allocation | None
    memory_used: Sum
    memory_total: Sum
    power: Sum
    hottest_c: float | None
    finding: str
    finding_role: str
    needs_a_look: float
    busy: int
    idle: int
    broken: int
    unknown: int
    last_seen: float


def _sum(values: Iterable[float | None]) -> Sum:
    told = list(values)
    known = [v for v in told if v is not None]
    return Sum(sum(known), len(known), len(told))


class Finding(Struct, frozen=True, gc=False):
    """Something to say of a node: how urgent, in which role, in which words."""

    urgency: float
    role: str
    words: str


def _gpu_finding(gpu: GpuState) -> Finding | None:
    absence = _absence(gpu)
    if absence is not None or gpu.presence is not Presence.PRESENT:
        return absence
    name = _gpu_name(gpu)
    errors = error_severity(gpu)
    if errors >= 1.0:
        return Finding(errors, "bad" if errors >= 4.0 else "warn", f"{name} {_error_words(gpu)}")
    mask = last(gpu.readings.get("clock_event_reasons"))
    letter, role = clock_letter(int(mask)) if mask is not None else ("", "")
    if role in {"bad", "warn"} and letter:
        return Finding(3.5 if role == "bad" else 2.5, role, f"{name} {clock_words(int(mask or 0))}")
    heat = last(gpu.readings.get("temperature_c"))
    if heat is not None and heat >= _HOT_C:
        return Finding(2.0, "warn", f"{name} {heat:.0f} °C")
    return None


def _gpu_name(gpu: GpuState) -> str:
    return f"gpu{gpu.index}" if gpu.index >= 0 else gpu.bus_id or gpu.key.uuid[:12]


def _absence(gpu: GpuState) -> Finding | None:
    name = f"gpu{gpu.index}" if gpu.index >= 0 else gpu.bus_id or gpu.key.uuid[:12]
    if gpu.presence in BROKEN:
        xid = max((x for x in gpu.xids), key=lambda x: x.first_seen, default=None)
        words = f"{name} {PRESENCE_WORDS[gpu.presence]}"
        return Finding(9.0, "bad", f"{words}, Xid {xid.xid}" if xid else words)
    if gpu.presence is Presence.DENIED:
        return Finding(5.0, "warn", f"{name} denied")
    if gpu.presence is Presence.DRIVERLESS:
        return Finding(2.0, "info", f"{name}: {gpu.presence_reason}")
    if gpu.presence is Presence.UNKNOWN:
        return Finding(4.0, "unknown", f"{name}: {gpu.presence_reason}")
    return None


def _error_words(gpu: GpuState) -> str:
    def value(quantity: str) -> float:
        return last(gpu.readings.get(quantity)) or 0.0

    action = value("recovery_action")
    table = (
        ("row_remap_failed", "row remap FAILED"),
        ("ecc_sram_threshold_exceeded", "SRAM error threshold exceeded"),
        ("ecc_volatile_uncorrected", f"{value('ecc_volatile_uncorrected'):.0f} uncorrected ECC"),
        ("recovery_action", f"asks for: {recovery_words(action)}"),
        ("row_remap_pending", "row remap pending"),
        ("retired_pages_pending", "page retirement pending"),
        ("nvlink_recovery_errors", f"{value('nvlink_recovery_errors'):.0f} NVLink recoveries"),
        ("retired_pages_dbe", f"{value('retired_pages_dbe'):.0f} pages retired"),
        ("row_remap_uncorrected", f"{value('row_remap_uncorrected'):.0f} rows remapped"),
    )
    return next((words for quantity, words in table if value(quantity) > 0), "")


def _node_findings(node: NodeState, now: float) -> list[Finding]:
    weights = {"critical": (8.0, "bad"), "warning": (5.0, "warn"), "info": (0.5, "info")}
    found = [Finding(*weights.get(t.fact.severity, (5.0, "warn")), t.fact.text) for t in node.troubles]
    found += [
        Finding(4.5, "unknown", f"{c.origin.source} silent {age(max(0.0, now - c.since))}: {c.silent}")
        for c in node.coverage
        if c.silent
    ]
    expected = [c.boards for c in node.coverage if not c.silent]
    if expected and min(expected) != max(expected):
        found.append(Finding(4.0, "warn", f"sources list {min(expected)} and {max(expected)} GPUs"))
    return found


def summarise(
    node: NodeState, gpus: tuple[GpuState, ...], used: dict[str, float], now: float, *, told: bool
) -> NodeSummary:
    """Return a node in numbers.

    Args:
        node: The node.
        gpus: Its boards and instances.
        used: What workloads ask for on it.
        now: The time on screen.
        told: A source tells of workloads at all.
    """
    boards = tuple(g for g in gpus if not g.key.instance)
    there = [g for g in boards if g.presence is Presence.PRESENT]
    findings = _node_findings(node, now)
    findings += [f for f in (_gpu_finding(g) for g in boards) if f is not None]
    findings += [
        Finding(3.0, "warn", f"gpu{g.index}: sources disagree on {d.quantity}")
        for g in boards
        for d in disagreements(g.readings, g.rivals, now)[:1]
    ]
    worst = max(findings, key=lambda f: f.urgency, default=Finding(0.0, "", ""))
    more = f" (+{len(findings) - 1})" if len(findings) > 1 else ""
    loads = [last(g.readings.get(activity(g))) for g in there]
    busy = sum(1 for v in loads if v is not None and v >= IDLE_PERCENT)
    unknown = sum(1 for v in loads if v is None) + sum(1 for g in boards if g.presence is Presence.UNKNOWN)
    idle = sum(1 for g, v in zip(there, loads, strict=True) if v is not None and v < IDLE_PERCENT and is_held(g))
    resources = allocations(node, used, workloads_told=told)
    heats = [v for v in (last(g.readings.get("temperature_c")) for g in there) if v is not None]
    return NodeSummary(
        boards=boards,
        allocation=next((a for a in resources if a.resource in _MAIN), None),
        memory_used=_sum(memory_pair(g)[0] for g in there),
        memory_total=_sum(memory_pair(g)[1] for g in there),
        power=_sum(last(g.readings.get("power_w")) for g in there),
        hottest_c=max(heats, default=None),
        finding=worst.words + (more if worst.words else ""),
        finding_role=worst.role,
        needs_a_look=worst.urgency,
        busy=busy,
        idle=idle,
        broken=sum(1 for g in boards if g.presence in BROKEN),
        unknown=unknown,
        last_seen=max((g.last_seen for g in boards), default=0.0),
    )


def first_holder(boards: tuple[GpuState, ...]) -> str:
    """Return the workload that holds most of a node's boards, with how many others there are."""
    counts: dict[str, int] = {}
    for gpu in boards:
        for holder, _ in holders(gpu):
            counts[holder.label] = counts.get(holder.label, 0) + 1
    if not counts:
        return ""
    top = max(counts, key=lambda label: counts[label])
    return f"{top} (+{len(counts) - 1})" if len(counts) > 1 else top


def _same(
    made: tuple[NodeState, tuple[GpuState, ...], dict[str, float], NodeSummary],
    now: tuple[NodeState, tuple[GpuState, ...], dict[str, float]],
) -> bool:
    """Whether a summary was made from the very same records: they are immutable, so identity is enough."""
    node, gpus, used = now
    return (
        made[0] is node
        and made[2] == used
        and len(made[1]) == len(gpus)
        and all(a is b for a, b in zip(made[1], gpus, strict=True))
    )


class Summaries:
    """The summaries of a fleet, made anew only for nodes whose records are other objects than before."""

    def __init__(self) -> None:
        self._made: dict[NodeKey, tuple[NodeState, tuple[GpuState, ...], dict[str, float], NodeSummary]] = {}
        self._version = -1
        self._used: dict[NodeKey, dict[str, float]] = {}
        self._told = False

    def of(self, view: View, key: NodeKey, now: float) -> NodeSummary:
        """Return a node's summary."""
        if view.version != self._version:
            self._version = view.version
            self._used = used_by_node(view.workloads.values()) if view.workloads else {}
            self._told = bool(view.workloads)
            for gone in self._made.keys() - view.nodes.keys():
                del self._made[gone]
        node, gpus, used = view.nodes[key], view.on_node(key), self._used.get(key, {})
        made = self._made.get(key)
        # What counts from now, such as how long an exporter is silent, is told anew each time.
        if made and not any(c.silent for c in node.coverage) and _same(made, (node, gpus, used)):
            return made[3]
        summary = summarise(node, gpus, used, now, told=self._told)
        self._made[key] = (node, gpus, used, summary)
        return summary


SUMMARIES: Final = Summaries()
"""Shared by the panes, so that each node is summed up once."""
