"""The table of workloads, with what is asked of it for each node kept beside it."""

from collections import Counter

from msgspec import Struct

from gputop.fleet.state import WorkloadState
from gputop.model.identity import NodeKey

WorkloadKey = tuple[str, str]
"""(cluster, uid)."""


class WorkloadTables(Struct, frozen=True, gc=False):
    """The table as it was at one time.

    Attributes:
        by_key: Workloads by (cluster, uid).
        placed: Workloads by the node they are on.
        tellers: (source, cluster) of everyone who tells of a workload.
    """

    by_key: dict[WorkloadKey, WorkloadState]
    placed: dict[NodeKey, tuple[WorkloadState, ...]]
    tellers: frozenset[tuple[str, str]]


def _teller(state: WorkloadState) -> tuple[str, str]:
    return state.origin.source, state.node.cluster if state.node else state.workload.cluster


class Workloads:
    """The table; a change costs what it touches, not the length of the table."""

    def __init__(self) -> None:
        self._by_key: dict[WorkloadKey, WorkloadState] = {}
        self._clusters: dict[str, set[str]] = {}
        self._placed: dict[NodeKey, dict[WorkloadKey, WorkloadState]] = {}
        self._tuples: dict[NodeKey, tuple[WorkloadState, ...]] = {}
        self._tellers: Counter[tuple[str, str]] = Counter()
        self._tables: WorkloadTables | None = None

    def get(self, key: WorkloadKey) -> WorkloadState | None:
        """Return a workload, or None."""
        return self._by_key.get(key)

    def by_uid(self, uid: str, cluster: str) -> WorkloadState | None:
        """Return the workload with an id, or None if there is none or several that it may be.

        Args:
            uid: Pod UID or allocation id.
            cluster: The cluster to look in; "" when not told, which fits each, as a workload without one does.
        """
        clusters = self._clusters.get(uid, set())
        fitting = {cluster} & clusters or {c for c in clusters if not c or not cluster}
        return self._by_key[next(iter(fitting)), uid] if len(fitting) == 1 else None

    def keys_of(self, source: str, cluster: str) -> list[WorkloadKey]:
        """Return the keys of the workloads in a cluster that a source tells of."""
        return [key for key, state in self._by_key.items() if key[0] == cluster and state.origin.source == source]

    def put(self, key: WorkloadKey, state: WorkloadState) -> None:
        """Add or replace a workload."""
        before = self._by_key.get(key)
        if before is not None:
            self._tellers[_teller(before)] -= 1
            if before.node is not None and before.node != state.node:
                self._unplace(key, before.node)
        self._by_key[key] = state
        self._clusters.setdefault(key[1], set()).add(key[0])
        self._tellers[_teller(state)] += 1
        if state.node is not None:
            self._placed.setdefault(state.node, {})[key] = state
            self._tuples.pop(state.node, None)
        self._tables = None

    def pop(self, key: WorkloadKey) -> WorkloadState:
        """Remove a workload and return it.

        Raises:
            KeyError: There is no such workload.
        """
        state = self._by_key.pop(key)
        clusters = self._clusters[key[1]]
        clusters.discard(key[0])
        if not clusters:
            del self._clusters[key[1]]
        self._tellers[_teller(state)] -= 1
        if state.node is not None:
            self._unplace(key, state.node)
        self._tables = None
        return state

    def on(self, node: NodeKey) -> dict[WorkloadKey, WorkloadState]:
        """Return the workloads on a node, as a copy."""
        return dict(self._placed.get(node, {}))

    def tables(self) -> WorkloadTables:
        """Return the tables as they are now; the same object while nothing changes."""
        if self._tables is None:
            for node, states in self._placed.items():
                if node not in self._tuples:
                    self._tuples[node] = tuple(states.values())
            tellers = frozenset(teller for teller, count in self._tellers.items() if count > 0)
            self._tables = WorkloadTables(dict(self._by_key), dict(self._tuples), tellers)
        return self._tables

    def _unplace(self, key: WorkloadKey, node: NodeKey) -> None:
        states = self._placed[node]
        del states[key]
        self._tuples.pop(node, None)
        if not states:
            del self._placed[node]
