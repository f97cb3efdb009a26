"""A node in numbers: pure sums over its boards, with what is not known left out and said."""

import math
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from gputop.fleet import GpuState, NodeState, View, WorkloadState
from gputop.fleet.allocation import Allocation, Counted, allocations, count, tells_of_workloads
from gputop.model.facts import Presence
from gputop.model.identity import GpuKey, NodeKey
from gputop.panes.format import age, last
from gputop.panes.gpu_digest import Finding, GpuDigest, digest
from gputop.panes.gpus import IDLE_PERCENT
from gputop.panes.links import PcieLink
from gputop.panes.words import BROKEN

SMALL_FLEET: Final = 64
"""Nodes up to which all are summed up anew in one look."""
_ANEW_AT_ONCE: Final = 16
"""Nodes of a larger fleet that are summed up anew in one look: about 5 ms."""


class Sum(Struct, frozen=True, gc=False):
    """A sum, and of how many boards it is.

    Attributes:
        value: Sum over the boards that tell it.
        told: Boards that tell it.
        of: Boards.
        least: Some board tells only a lower bound.
    """

    value: float
    told: int
    of: int
    least: bool = False

    def text(self, words: Callable[[float], str], *, ascii_only: bool = False) -> str:
        """Return the sum's text, marked as a lower bound when some boards do not tell."""
        if not self.told:
            return "?"
        sign = ">=" if ascii_only else "≥"
        return words(self.value) if self.told == self.of and not self.least else f"{sign}{words(self.value)}"


class NodeSummary(Struct, frozen=True):
    """What the Fleet pane shows of a node.

    Attributes:
        boards: Its boards.
        digests: The digest of each board.
        counted: Its device resources.
        memory_used: MiB used.
        memory_total: MiB in all.
        power: W.
        power_limit: W.
        links: NVLinks active and in all, None when no board tells.
        pcie: The slowest PCIe link, None when no board tells.
        hottest_c: Temperature of the hottest board, None when not told.
        is_hot: Some board is close to its limit.
        holders: Workloads named, None when nobody can say of some board.
        holder: The workload that holds most boards, with how many others there are; "" when none is named.
        finding: The worst thing to say of it, "" for nothing.
        finding_role: Role of the finding.
        findings: Everything to say of it, the worst first.
        needs_a_look: How urgently, 0 for not at all.
        busy: Boards with a utilisation of 5 % and more; of boards in MIG mode those with such an instance.
        idle: Boards held and below.
        broken: Boards that do not work.
        unknown: Boards of which nobody can tell whether they are busy.
        instances: MIG instances.
        instances_busy: MIG instances with a utilisation of 5 % and more.
        instances_unknown: MIG instances of which nobody can tell whether they are busy.
        last_seen: Newest word of any source, 0 if none.
        until: Time from which the summary may be another one though no record changed.
    """

    boards: tuple[GpuState, ...]
    digests: tuple[GpuDigest, ...]
    counted: Counted
    memory_used: Sum
    memory_total: Sum
    power: Sum
    power_limit: Sum
    links: tuple[float, float] | None
    pcie: PcieLink | None
    hottest_c: float | None
    is_hot: bool
    holders: int | None
    holder: str
    finding: str
    finding_role: str
    findings: tuple[Finding, ...]
    needs_a_look: float
    busy: int
    idle: int
    broken: int
    unknown: int
    instances: int
    instances_busy: int
    instances_unknown: int
    last_seen: float
    until: float

    @property
    def free_boards(self) -> float | None:
        """Boards a new job could get; None when nobody tells or turns on boards are counted instead."""
        return self.counted.free_boards

    @property
    def allocation(self) -> Allocation | None:
        """The device resource that its line shows, None when no scheduler tells."""
        return self.counted.shown

    @property
    def sliced(self) -> bool:
        """Whether the scheduler counts replicas or instances in that line, not boards."""
        return self.counted.unit in {"shares", "mig_instances"}


def _sum(told: list[float | None], *, least: bool = False) -> Sum:
    known = [v for v in told if v is not None]
    return Sum(sum(known), len(known), len(told), least)


def _node_findings(node: NodeState, boards: int, now: float) -> list[Finding]:
    weights = {"critical": (8.0, "bad"), "warning": (5.0, "warn"), "info": (0.5, "info")}
    found = [Finding(*weights.get(t.fact.severity, (5.0, "warn")), t.fact.text) for t in node.troubles]
    found += [
        Finding(4.5, "unknown", f"{c.origin.source} silent {age(max(0.0, now - c.since))}: {c.silent}")
        for c in node.coverage
        if c.silent
    ]
    listed = [c.boards for c in node.coverage if not c.silent]
    if listed and min(listed) != max(listed):
        found.append(Finding(4.0, "warn", f"sources list {min(listed)} and {max(listed)} GPUs"))
    expected = last(node.readings.get("gpus_expected"))
    on_bus = len(node.pci) if node.pci is not None else 0
    most, whose = max((expected or 0.0, "expected"), (float(on_bus), "on the PCI bus"))
    # Boards that were listed once and are missing now are told one by one.
    if listed and max(listed) < most and boards < most:
        found.append(Finding(6.0, "bad", f"lists {max(listed)} of {most:.0f} {whose}"))
    return found


def _allocation_findings(counted: Counted, boards: int) -> list[Finding]:
    allocation, mig = counted.shown, counted.mig
    found: list[Finding] = []
    if mig is not None and mig.advertised:
        free = "?" if mig.free is None else f"{mig.free:.0f}"
        found.append(Finding(0.3, "info", f"{free} of {mig.advertised:.0f} MIG instances free"))
    if allocation is None or allocation.advertised is None:
        return found
    if boards and counted.unit == "shares":
        words = f"{allocation.advertised:.0f} shares of {boards} GPUs"
        found.append(Finding(0.3, "info", words))
    if allocation.healthy is not None and allocation.healthy < allocation.advertised:
        words = f"{allocation.healthy:.0f} of {allocation.advertised:.0f} healthy to the scheduler"
        found.append(Finding(4.2, "warn", words))
    return found


def _first_holder(digests: Iterable[GpuDigest]) -> str:
    counts: dict[str, int] = {}
    for each in digests:
        for label in each.labels:
            counts[label] = counts.get(label, 0) + 1
    if not counts:
        return ""
    top = max(counts, key=lambda label: counts[label])
    return f"{top} (+{len(counts) - 1})" if len(counts) > 1 else top


class Told(Struct, frozen=True):
    """The workloads on a node, and whether anybody tells of them.

    Attributes:
        placed: Its workloads.
        known: A source that counts the node's devices tells of workloads too.
    """

    placed: tuple[WorkloadState, ...]
    known: bool


def summarise(
    node: NodeState, gpus: tuple[GpuState, ...], told: Told, now: float, before: NodeSummary | None = None
) -> NodeSummary:
    """Return a node in numbers.

    Args:
        node: The node.
        gpus: Its boards and instances.
        told: Its workloads.
        now: The time on screen.
        before: Its last summary, whose digests are taken over for boards that are the same objects.
    """
    boards = tuple([g for g in gpus if not g.key.instance])
    instances = _by_board(gpus) if len(boards) < len(gpus) else {}
    made = {id(g): d for g, d in zip(before.boards, before.digests, strict=True)} if before else {}
    digests: list[GpuDigest] = []
    for gpu in boards:
        old, own = made.get(id(gpu)), instances.get(gpu.key, ())
        holds = old is not None and now <= old.until and _are_same(old.instances, own)
        digests.append(old if old is not None and holds else digest(gpu, now, own))
    there = [d for g, d in zip(boards, digests, strict=True) if g.presence is Presence.PRESENT]
    resources = allocations(node, told.placed, workloads_told=told.known) if node.devices else ()
    counted = count(resources, len(boards))
    found = _node_findings(node, len(boards), now) + _allocation_findings(counted, len(boards))
    loads = [v for d in there for v in d.loads]
    found += [f for d in digests for f in d.findings]
    found.sort(key=lambda f: -f.urgency)
    worst = found[0] if found else Finding(0.0, "", "")
    links = [d.links for d in there if d.links is not None]
    return NodeSummary(
        boards=boards,
        digests=tuple(digests),
        counted=counted,
        memory_used=_sum([d.memory_used for d in there]),
        memory_total=_sum([d.memory_total for d in there], least=any(d.total_is_least for d in there)),
        power=_sum([d.power for d in there]),
        power_limit=_sum([d.power_limit for d in there]),
        links=(sum(a for a, _ in links), sum(t for _, t in links)) if links else None,
        pcie=min((d.pcie for d in there if d.pcie is not None), key=lambda p: p.speed, default=None),
        is_hot=any(d.hot for d in there),
        holders=len({label for d in digests for label in d.labels}) if all(d.held is not None for d in there) else None,
        hottest_c=max((d.heat for d in there if d.heat is not None), default=None),
        holder=_first_holder(digests),
        finding=worst.words + (f" (+{len(found) - 1})" if len(found) > 1 else ""),
        finding_role=worst.role,
        findings=tuple(found),
        needs_a_look=worst.urgency,
        busy=sum(1 for d in there if d.load is not None and d.load >= IDLE_PERCENT),
        idle=sum(1 for d in there if d.load is not None and d.load < IDLE_PERCENT and d.held),
        broken=sum(1 for g in boards if g.presence in BROKEN),
        unknown=sum(1 for d in there if d.load is None and not d.is_empty_mig)
        + sum(1 for g in boards if g.presence not in BROKEN and g.presence is not Presence.PRESENT),
        instances=len(loads),
        instances_busy=sum(1 for v in loads if v is not None and v >= IDLE_PERCENT),
        instances_unknown=loads.count(None),
        last_seen=max((g.last_seen for g in boards), default=0.0),
        until=min((d.until for d in digests), default=math.inf),
    )


def _by_board(gpus: Iterable[GpuState]) -> dict[GpuKey, tuple[GpuState, ...]]:
    found: dict[GpuKey, tuple[GpuState, ...]] = {}
    for gpu in gpus:
        if gpu.key.instance:
            found[gpu.key.board] = (*found.get(gpu.key.board, ()), gpu)
    return found


def _are_same(one: tuple[GpuState, ...], two: tuple[GpuState, ...]) -> bool:
    return len(one) == len(two) and all(a is b for a, b in zip(one, two, strict=True))


class _Made(Struct, gc=False):
    """A summary with the records it was made from."""

    node: NodeState
    revision: int
    told: Told
    summary: NodeSummary
    at: float


class Known(Struct, frozen=True):
    """The summaries of a fleet as far as they are made.

    Attributes:
        of: Summaries by node; one that is asked for later is put in.
        due: Nodes whose summary was not there or was an earlier one at that look.
    """

    of: dict[NodeKey, NodeSummary]
    due: tuple[NodeKey, ...]

    @property
    def missing(self) -> int:
        """How many nodes have no summary yet."""
        return sum(1 for key in self.due if key not in self.of)


class Summaries:
    """The summaries of a fleet, made anew only for nodes whose records are other objects than before."""

    def __init__(self) -> None:
        self._made: dict[NodeKey, _Made] = {}
        self._view: View | None = None
        self._known: Known | None = None
        self._known_at = math.nan

    def of(self, view: View, key: NodeKey, now: float) -> NodeSummary:
        """Return a node's summary as of `view`."""
        self._take(view)
        made = self._made.get(key)
        # What counts from now, such as how long an exporter is silent, is told anew each second.
        silent = made is not None and now != made.at and any(c.silent for c in made.node.coverage)
        if made is not None and not silent and self._holds(made, view, now):
            return made.summary
        return self._make(view, key, now, made)

    def all(self, view: View, now: float) -> Known:
        """Return the summaries of all nodes.

        Of hundreds of nodes that changed at once only some are summed up here, so that a key press never
        waits for a large fleet; the others are told as due, for `of` to be asked when there is time.
        """
        self._take(view)
        if self._known is not None and self._known_at == now:
            return self._known
        found: dict[NodeKey, NodeSummary] = {}
        due: list[NodeKey] = []
        at_once = _ANEW_AT_ONCE if len(view.nodes) > SMALL_FLEET else SMALL_FLEET
        anew = 0
        for key in view.nodes:
            made = self._made.get(key)
            if made is not None and self._holds(made, view, now):
                found[key] = made.summary
            elif anew < at_once:
                anew += 1
                found[key] = self._make(view, key, now, made)
            else:
                due.append(key)
                if made is not None:
                    found[key] = made.summary
        self._known, self._known_at = Known(found, tuple(due)), now
        return self._known

    def _take(self, view: View) -> None:
        if view is self._view:
            return
        self._view, self._known = view, None
        for gone in self._made.keys() - view.nodes.keys():
            del self._made[gone]

    def _holds(self, made: _Made, view: View, now: float) -> bool:
        """Whether a summary was made from the very same records: they are immutable, so identity is enough."""
        node = made.node
        if view.nodes[node.key] is not node or now > made.summary.until:
            return False
        if view.placed.get(node.key, ()) is not made.told.placed:
            return False
        if view.revisions[node.key] != made.revision:
            return False
        return made.told.known == tells_of_workloads(view, node)

    def _make(self, view: View, key: NodeKey, now: float, before: _Made | None) -> NodeSummary:
        node = view.nodes[key]
        told = Told(view.placed.get(key, ()), tells_of_workloads(view, node))
        summary = summarise(node, view.on_node(key), told, now, before.summary if before else None)
        self._made[key] = _Made(node, view.revisions[key], told, summary, now)
        if self._known is not None:
            self._known.of[key] = summary
        return summary


SUMMARIES: Final = Summaries()
"""Shared by the panes, so that each node is summed up once."""
