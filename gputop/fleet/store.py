"""The tables behind the fleet, with the index work that keeps them together."""

from typing import Final

import msgspec

from gputop.fleet.changes import Changes
from gputop.fleet.history import History
from gputop.fleet.naming import Naming
from gputop.fleet.registry import Registry
from gputop.fleet.state import NO_RIVALS, GpuState, NodeState, View
from gputop.fleet.workloads import Workloads
from gputop.model.facts import Presence
from gputop.model.identity import GpuKey, NodeKey
from gputop.model.status import SourceStatus
from gputop.model.text import is_whole

_NEVER: Final = 0.0


class Store:
    """Nodes, GPUs, workloads and sources by key, and what changed in them."""

    def __init__(self) -> None:
        self.nodes: dict[NodeKey, NodeState] = {}
        self.gpus: dict[GpuKey, GpuState] = {}
        self.workloads = Workloads()
        self.naming = Naming(self.workloads)
        self.sources: dict[str, SourceStatus] = {}
        self.listed: dict[tuple[str, NodeKey], frozenset[GpuKey]] = {}
        self.registry = Registry()
        self.history = History()
        self.changes = Changes()
        self._version = 0
        self._revisions: dict[NodeKey, int] = {}

    def snapshot(self) -> View:
        """Return the tables as they are now."""
        self._version += 1
        workloads = self.workloads.tables()
        return View(
            version=self._version,
            nodes=dict(self.nodes),
            revisions=dict(self._revisions),
            gpus=dict(self.gpus),
            workloads=workloads.by_key,
            placed=workloads.placed,
            tellers=workloads.tellers,
            sources=dict(self.sources),
        )

    def put_node(self, node: NodeState) -> None:
        """Replace a node's record."""
        if node.key not in self.nodes:
            self.changes.rows = True
        self.nodes[node.key] = node
        self._revise(node.key)
        self.changes.nodes.add(node.key)

    def drop_node(self, key: NodeKey) -> None:
        """Remove a node's record; its GPUs are moved or dropped by the caller."""
        del self.nodes[key]
        self._revisions.pop(key, None)

    def _revise(self, key: NodeKey) -> None:
        self._revisions[key] = self._revisions.get(key, 0) + 1

    def ensure_gpu(self, key: GpuKey) -> GpuState:
        """Return the record of a GPU, made empty and put into its node's list if it is new."""
        state = self.gpus.get(key)
        if state is not None:
            return state
        state = GpuState(
            key=key,
            index=-1,
            bus_id="",
            mig_uuid="",
            readings={},
            rivals=NO_RIVALS,
            presence=Presence.UNKNOWN,
            presence_reason="no source lists it",
            presence_since=_NEVER,
            sightings=(),
            processes=(),
            holders=(),
            xids=(),
            joins=(),
        )
        self.gpus[key] = state
        self.registry.add(key, "", "")
        self.changes.rows = True
        self.touch(key)
        self.sort_node(key.node, key)
        return state

    def put_gpu(self, state: GpuState, *, changed: bool = True) -> None:
        """Replace a GPU's record; `changed` tells whether anything but a time differs."""
        before = self.gpus[state.key]
        self.gpus[state.key] = state
        self._revise(state.key.node)
        if (state.bus_id, state.mig_uuid) != (before.bus_id, before.mig_uuid):
            self.registry.remove(state.key, before.bus_id, before.mig_uuid)
            self.registry.add(state.key, state.bus_id, state.mig_uuid)
        if (state.index, state.bus_id) != (before.index, before.bus_id):
            self.sort_node(state.key.node)
        if changed:
            self.touch(state.key)

    def touch(self, key: GpuKey) -> None:
        """Note that a GPU changed."""
        self.changes.gpus.add(key)
        self.changes.nodes.add(key.node)

    def drop_gpu(self, key: GpuKey, instead: GpuKey | None = None) -> None:
        """Remove a GPU's row; `instead` is the row that goes on for it."""
        state = self.gpus.pop(key)
        self.registry.remove(key, state.bus_id, state.mig_uuid)
        if instead is None:
            self.history.forget(key)
        else:
            self.history.move(key, instead)
        for place, keys in list(self.listed.items()):
            if place[1] == key.node and key in keys:
                kept = keys - {key}
                self.listed[place] = kept | {instead} if instead and instead.node == key.node else kept
        self.naming.move(key, instead)
        self.changes.replaced[key] = instead
        self.changes.gpus.discard(key)
        self.changes.rows = True
        self.sort_node(key.node)

    def sort_node(self, node_key: NodeKey, added: GpuKey | None = None) -> None:
        """Bring a node's list of GPUs into order: boards by index and bus id, instances under theirs."""
        node = self.nodes[node_key]
        keys = {k for k in node.gpus if k in self.gpus}
        if added is not None:
            keys.add(added)
        boards: dict[GpuKey, tuple[bool, int, str, str]] = {}
        for key in keys:
            state = self.gpus[key]
            if not key.instance:
                boards[key] = (state.index < 0, state.index, state.bus_id, key.uuid)

        def place(key: GpuKey) -> tuple[tuple[bool, int, str, str], tuple[int, str]]:
            board = boards.get(key.board, (True, 0, "", key.uuid))
            gi, _, ci = key.instance.partition("/")
            number = int(gi) * 100 + int(ci or 0) if is_whole(gi) else 1 << 30
            return board, (number if key.instance else -1, key.instance)

        self.put_node(msgspec.structs.replace(node, gpus=tuple(sorted(keys, key=place))))
