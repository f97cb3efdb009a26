"""What a source lists: rosters, and why a host that was listed is silent now.

`up` tells an exporter that cannot be scraped from one that answers without GPU data (hot reload, driver
unbound). Neither says anything about the GPUs: they are unknown, not gone.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from gputop.model.facts import Fact, NodeTrouble, Roster
from gputop.model.identity import GpuRef, NodeRef
from gputop.sources.metrics.labels import first, is_exporter_name
from gputop.sources.metrics.rows import Row

_GPU_PORTS: Final = ("9400", "9835")
"""Ports of dcgm-exporter and nvidia_gpu_exporter."""
FORGET_AFTER_S: Final = 3600.0
"""A host without series and without a scrape target for so long was given back, not lost."""
_SILENT: Final = "exporter_silent"
_NO_DATA: Final = "exporter_no_data"


class Target(Struct, frozen=True):
    """A scrape target: its address, the node it is on, and whether it answered."""

    instance: str
    node: NodeRef
    answered: bool
    at: float


def is_gpu_target(labels: Mapping[str, str]) -> bool:
    """Whether the labels of an `up` series are those of a GPU exporter."""
    names = (labels.get(n, "") for n in ("job", "pod", "container", "service"))
    port = first(labels, ("instance",)).rpartition(":")[2]
    return any(is_exporter_name(n) for n in names) or port in _GPU_PORTS


class Coverage:
    """Remembers which hosts were listed, through which addresses, and which troubles are told."""

    def __init__(self) -> None:
        self._node_of: dict[str, NodeRef] = {}
        self._listed: dict[NodeRef, frozenset[GpuRef]] = {}
        self._told: set[tuple[NodeRef, str]] = set()
        self._quiet_since: dict[NodeRef, float] = {}

    def learn(self, instance: str, node: NodeRef) -> None:
        """Remember that the exporter at an address tells of a node."""
        if instance:
            self._node_of[instance] = node

    def node_of(self, instance: str) -> NodeRef | None:
        """Return the node that the exporter at an address told of, if it ever did."""
        return self._node_of.get(instance)

    def trouble(self, node: NodeRef, code: str, text: str, severity: str = "warning") -> list[Fact]:
        """Return the fact that begins or goes on with a trouble, or ends it (`text` empty)."""
        if not text and (node, code) not in self._told:
            return []
        if text:
            self._told.add((node, code))
        else:
            self._told.discard((node, code))
        return [NodeTrouble(node, code, text, severity)]

    def told(self, code: str) -> list[NodeRef]:
        """Return the nodes that have a trouble now."""
        return [node for node, told in self._told if told == code]

    def facts(self, rows: Iterable[Row], targets: Iterable[Target], at: float) -> list[Fact]:
        """Return rosters of all hosts, silent ones included, and their troubles.

        Args:
            rows: All GPUs told now.
            targets: Scrape targets of GPU exporters.
            at: Time of the answer.
        """
        now: dict[NodeRef, list[GpuRef]] = {}
        newest: dict[NodeRef, float] = {}
        for row in rows:
            now.setdefault(row.node, []).append(row.ref)
            newest[row.node] = max(row.newest, newest.get(row.node, 0.0))
        facts: list[Fact] = []
        for node, refs in now.items():
            self._listed[node] = frozenset(refs)
            self._quiet_since.pop(node, None)
            facts.append(Roster(node, tuple(refs), at=newest[node]))
            facts += self._cleared(node)
        facts += self._silent(now.keys(), targets, at)
        return facts

    def _cleared(self, node: NodeRef) -> list[Fact]:
        return [*self.trouble(node, _SILENT, ""), *self.trouble(node, _NO_DATA, "")]

    def _silent(self, speaking: Iterable[NodeRef], targets: Iterable[Target], at: float) -> list[Fact]:
        facts: list[Fact] = []
        by_node: dict[NodeRef, Target] = {}
        for target in targets:
            before = by_node.get(target.node)
            if before is None or (target.answered, target.at) > (before.answered, before.at):
                by_node[target.node] = target
        speaks = set(speaking)
        quiet = (self._listed.keys() | by_node.keys()) - speaks
        # An exporter that was silent from the start stood under its address; now it has told its host's name.
        for node in {n for n, code in self._told if code in {_SILENT, _NO_DATA}} - quiet - speaks:
            facts += self._cleared(node)
        for node in sorted(quiet, key=lambda n: (n.cluster, n.host)):
            target = by_node.get(node)
            since = self._quiet_since.setdefault(node, at)
            if target is None and at - since > FORGET_AFTER_S:
                facts += self._forget(node)
            else:
                facts += self._silence(node, target)
        return facts

    def _forget(self, node: NodeRef) -> list[Fact]:
        self._listed.pop(node, None)
        self._quiet_since.pop(node, None)
        self._node_of = {instance: other for instance, other in self._node_of.items() if other != node}
        return self._cleared(node)

    def _silence(self, node: NodeRef, target: Target | None) -> list[Fact]:
        if target is None:
            words = "no series of its exporter any more, and no scrape target"
            return self._quiet(node, _SILENT, words)
        if target.answered:
            words = f"its exporter at {target.instance} answers without GPU data (reload, or the driver is unbound?)"
            return self._quiet(node, _NO_DATA, words)
        words = f"its exporter at {target.instance} fails (up is 0); its GPUs are unknown"
        return self._quiet(node, _SILENT, words)

    def _quiet(self, node: NodeRef, code: str, words: str, at: float | None = None) -> list[Fact]:
        other = _NO_DATA if code == _SILENT else _SILENT
        return [
            Roster(node, (), silent=words, at=at),
            *self.trouble(node, code, words),
            *self.trouble(node, other, ""),
        ]

    def silence(self, reason: str, at: float) -> list[Fact]:
        """Return the facts that make every host listed so far silent."""
        facts: list[Fact] = []
        for node in list(self._listed):
            facts += self._quiet(node, _SILENT, reason, at)
        return facts

    def no_data(self, node: NodeRef, reason: str) -> list[Fact]:
        """Return the facts of an exporter that answers without GPU data."""
        nodes = self._listed.keys() | {node}
        return [fact for one in nodes for fact in self._quiet(one, _NO_DATA, reason)]
