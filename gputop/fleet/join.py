"""Joining: from what a source calls a node or a GPU to the row it belongs to.

The joiner makes rows, renames them when a better name is learnt and merges two nodes that turn out to be
one. It never joins on an index, and never two nodes that one source lists at the same time.
"""

import msgspec

from gputop.fleet.hosts import Hosts
from gputop.fleet.merge import merge_gpus, merge_nodes
from gputop.fleet.registry import PCI_PREFIX
from gputop.fleet.state import HostName, Join, NodeState
from gputop.fleet.store import Store
from gputop.model.identity import GpuKey, GpuRef, NodeKey, NodeRef, normal_host


class Joiner:
    """Finds the row for a reference."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._hosts = Hosts()
        self._gpus: dict[tuple[str, GpuRef], GpuKey] = {}
        self._nodes: dict[tuple[str, NodeRef], NodeKey] = {}

    def forget_answers(self) -> None:
        """Ask anew for every reference: what was ambiguous or separate may now be joined."""
        self._gpus.clear()
        self._nodes.clear()

    def known_node(self, ref: NodeRef) -> NodeKey | None:
        """Return the node that `ref` means, or None if there is no such row."""
        return self._hosts.find(ref.host, ref.cluster)[0]

    def node(self, source: str, ref: NodeRef) -> NodeKey:
        """Return the node that `ref` means, made if there is none."""
        key = self._nodes.get((source, ref))
        if key is None:
            key = self._find_node(source, ref.host, ref.cluster, "")
            self._nodes[source, ref] = key
        return key

    def gpu(self, source: str, ref: GpuRef) -> GpuKey:
        """Return the GPU or MIG instance that `ref` means, made if there is none."""
        key = self._gpus.get((source, ref))
        if key is None:
            key = self._find_gpu(source, ref)
            self._gpus[source, ref] = key
        return key

    def _find_node(self, source: str, host: str, cluster: str, uuid: str) -> NodeKey:
        found, how = self._hosts.find(host, cluster)
        if found is not None and found.cluster != cluster and cluster:
            found = self._adopt(found, cluster, uuid)
        if found is None:
            found, how = NodeKey(cluster, normal_host(host)), "first name heard"
            if found not in self._store.nodes:
                self._store.put_node(NodeState(found))
        self._name(found, host, source, how)
        return found

    def _adopt(self, node: NodeKey, cluster: str, uuid: str) -> NodeKey | None:
        """Give a node whose cluster was not known to `cluster`, if its GPUs do not speak against it."""
        boards = {g.uuid for g in self._store.nodes[node].gpus if not g.uuid.startswith(PCI_PREFIX)}
        if boards and uuid not in boards:
            return None
        named = NodeKey(cluster, node.host)
        self._move_node(node, named)
        return named

    def _name(self, node: NodeKey, host: str, source: str, how: str) -> None:
        state = self._store.nodes[node]
        if all(n.name != host or n.source != source for n in state.names):
            self._hosts.add(node, host)
            names = (*state.names, HostName(host, source, how))
            self._store.put_node(msgspec.structs.replace(state, names=names))

    def _find_gpu(self, source: str, ref: GpuRef) -> GpuKey:
        board, how = self._find_board(source, ref)
        key = board
        if ref.is_instance:
            match = self._store.registry.match_instance(ref, board)
            key, how = match.key, match.how
            self._store.ensure_gpu(key)
            if match.replaces is not None:
                self._move_gpu(match.replaces, key)
        self._explain(key, source, how)
        return key

    def _find_board(self, source: str, ref: GpuRef) -> tuple[GpuKey, str]:
        elsewhere = self._elsewhere(source, ref)
        if elsewhere is not None:
            return elsewhere
        node = self._find_node(source, ref.host, ref.cluster, ref.uuid)
        match = self._store.registry.match_board(ref, node)
        self._store.ensure_gpu(match.key)
        if match.replaces is not None:
            self._move_gpu(match.replaces, match.key)
        return match.key, match.how

    def _elsewhere(self, source: str, ref: GpuRef) -> tuple[GpuKey, str] | None:
        """Return the row under another host name that has this UUID, if the two hosts may be one."""
        if not ref.uuid:
            return None
        boards = self._store.registry.boards(ref.uuid)
        if not boards:
            return None
        if not ref.host:
            return (boards[0], "UUID") if len(boards) == 1 else None
        here, _ = self._hosts.find(ref.host, ref.cluster)
        if any(b.node == here for b in boards) or len(boards) > 1:
            return None
        there = next(iter(boards)).node
        if not self._may_be_one(source, here, there, ref.cluster):
            return None
        if here is None:
            if ref.cluster and not there.cluster:
                named = NodeKey(ref.cluster, there.host)
                self._move_node(there, named)
                there = named
            self._name(there, ref.host, source, f"same UUID {ref.uuid}")
        else:
            # The name that carries a cluster is the one that other systems use.
            keep, drop = (there, here) if there.cluster or not here.cluster else (here, there)
            self._move_node(drop, keep)
            self._name(keep, ref.host, source, f"same UUID {ref.uuid}")
            there = keep
        return GpuKey(there.cluster, there.host, ref.uuid), "UUID, under another host name"

    def _may_be_one(self, source: str, here: NodeKey | None, there: NodeKey, cluster: str) -> bool:
        if cluster and there.cluster and cluster != there.cluster:
            return False
        if here is not None and here.cluster and there.cluster and here.cluster != there.cluster:
            return False
        speakers_there = self._speakers(there)
        # One source that lists both names now sees two machines: cloned virtual machines and mocked
        # drivers do share UUIDs.
        speakers_here = self._speakers(here) | {source} if here is not None else {source}
        return not (speakers_here & speakers_there)

    def _speakers(self, node: NodeKey) -> set[str]:
        """Return the sources that list GPUs under this node now."""
        state = self._store.nodes[node]
        covering = {c.origin.source for c in state.coverage if not c.silent and c.boards}
        listing = {
            s.origin.source for g in state.gpus for s in self._store.gpus[g].sightings if s.listed and not s.silent
        }
        return covering | listing

    def _explain(self, key: GpuKey, source: str, how: str) -> None:
        state = self._store.gpus[key]
        join = Join(source, how)
        if join not in state.joins:
            kept = tuple(j for j in state.joins if j.source != source)
            self._store.put_gpu(msgspec.structs.replace(state, joins=(*kept, join)))

    def _move_gpu(self, old: GpuKey, new: GpuKey) -> None:
        """Let the row `new` go on for `old`."""
        if old == new or old not in self._store.gpus:
            return
        state = self._store.ensure_gpu(new)
        self._store.put_gpu(merge_gpus(new, state, self._store.gpus[old]))
        self._store.drop_gpu(old, new)
        self.forget_answers()

    def _move_node(self, old: NodeKey, new: NodeKey) -> None:
        """Let the node `new` go on for `old`, with all its GPUs."""
        if old == new:
            return
        before = self._store.nodes[old]
        if new not in self._store.nodes:
            self._store.put_node(NodeState(new))
        self._store.put_node(merge_nodes(new, self._store.nodes[new], before))
        for (source, node), keys in list(self._store.listed.items()):
            if node == old:
                moved = frozenset(GpuKey(new.cluster, new.host, k.uuid, k.instance) for k in keys)
                del self._store.listed[source, node]
                self._store.listed[source, new] = self._store.listed.get((source, new), frozenset()) | moved
        for key in before.gpus:
            self._move_gpu(key, GpuKey(new.cluster, new.host, key.uuid, key.instance))
        for uid, workload in self._store.workloads.on(old).items():
            self._store.workloads.put(uid, msgspec.structs.replace(workload, node=new))
        self._store.drop_node(old)
        self._store.changes.nodes.discard(old)
        self._store.changes.rows = True
        self._hosts.move(old, new)
        self.forget_answers()

    def drop_bare(self, key: NodeKey) -> None:
        """Drop a node that is a name only: nobody listed anything on it, and nobody says any more why.

        An exporter that is silent from the start stands under its address. Once it tells the name of its
        host, the address is no node beside it.
        """
        node = self._store.nodes[key]
        told = node.gpus or node.pci or node.devices or node.readings or node.conditions or node.troubles
        if told or any(c.boards or not c.silent for c in node.coverage) or self._store.workloads.on(key):
            return
        self._forget_node(key)
        self._store.changes.rows = True
        self.forget_answers()

    def _forget_node(self, key: NodeKey) -> None:
        self._store.drop_node(key)
        self._store.changes.nodes.discard(key)
        self._hosts.forget(key)

    def expire(self, before: float) -> None:
        """Drop GPUs not listed since `before`, and nodes that have nothing left."""
        old = [
            k for k, g in self._store.gpus.items() if g.sightings and g.last_seen < before and g.presence_since < before
        ]
        for key in old:
            self._store.drop_gpu(key)
        for node in {k.node for k in old}:
            state = self._store.nodes[node]
            if not state.gpus and not state.devices:
                self._forget_node(node)
        if old:
            self.forget_answers()
