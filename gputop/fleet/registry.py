"""Who is the same GPU: from the names that sources use to the keys of rows.

Every join has a reason, and a name that fits several rows is joined to none of them.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from gputop.model.identity import GpuKey, GpuRef, NodeKey


class Match(Struct, frozen=True, gc=False):
    """A row that a reference means.

    Attributes:
        key: The row, which may not exist yet.
        how: Why.
        replaces: Another row that turns out to be the same GPU and has to be renamed to `key`.
    """

    key: GpuKey
    how: str
    replaces: GpuKey | None = None


PCI_PREFIX: Final = "pci-"
INDEX_PREFIX: Final = "index-"


class Registry:
    """Indexes over the rows by UUID, PCI bus id and MIG UUID."""

    def __init__(self) -> None:
        self._by_uuid: dict[str, set[GpuKey]] = {}
        self._by_bus: dict[tuple[NodeKey, str], set[GpuKey]] = {}
        self._by_mig: dict[tuple[NodeKey, str], GpuKey] = {}
        self._keys: set[GpuKey] = set()

    def add(self, key: GpuKey, bus_id: str, mig_uuid: str) -> None:
        """Remember a row and its names; may be called again with more of them."""
        self._keys.add(key)
        if mig_uuid:
            self._by_mig[key.node, mig_uuid] = key
        if key.instance:
            return
        self._by_uuid.setdefault(key.uuid, set()).add(key)
        if bus_id:
            self._by_bus.setdefault((key.node, bus_id), set()).add(key)

    def remove(self, key: GpuKey, bus_id: str, mig_uuid: str) -> None:
        """Forget a row and its names."""
        self._keys.discard(key)
        if mig_uuid and self._by_mig.get((key.node, mig_uuid)) == key:
            del self._by_mig[key.node, mig_uuid]
        if not key.instance:
            self._by_uuid.get(key.uuid, set()).discard(key)
            self._by_bus.get((key.node, bus_id), set()).discard(key)

    def boards(self, uuid: str) -> tuple[GpuKey, ...]:
        """Return the boards with this UUID; more than one when a UUID stands on several hosts."""
        return tuple(self._by_uuid.get(uuid, ()))

    def on_bus(self, node: NodeKey, bus_id: str) -> tuple[GpuKey, ...]:
        """Return the boards of a node that were told with this bus id."""
        return tuple(self._by_bus.get((node, bus_id), ()))

    def match_board(self, ref: GpuRef, node: NodeKey) -> Match:
        """Return the board on `node` that `ref` means, made up from its best name if there is none."""
        if ref.uuid:
            return self._match_uuid(ref, node)
        if ref.bus_id:
            on_bus = self._by_bus.get((node, ref.bus_id), set())
            if len(on_bus) == 1:
                return Match(next(iter(on_bus)), "PCI bus id on the same host")
            return Match(GpuKey(node.cluster, node.host, PCI_PREFIX + ref.bus_id), "PCI bus id")
        # An index names a GPU for one source at one time only, so it is never joined to another row.
        return Match(GpuKey(node.cluster, node.host, f"{INDEX_PREFIX}{ref.index}"), "index alone")

    def _match_uuid(self, ref: GpuRef, node: NodeKey) -> Match:
        key = GpuKey(node.cluster, node.host, ref.uuid)
        if key in self._keys:
            return Match(key, "UUID")
        nameless = GpuKey(node.cluster, node.host, PCI_PREFIX + ref.bus_id)
        if ref.bus_id and nameless in self._keys:
            return Match(key, "UUID, and PCI bus id on the same host", nameless)
        return Match(key, "UUID")

    def match_instance(self, ref: GpuRef, board: GpuKey) -> Match:
        """Return the MIG instance of `board` that `ref` means."""
        known = self._by_mig.get((board.node, ref.mig_uuid)) if ref.mig_uuid else None
        wanted = GpuKey(board.cluster, board.host, board.uuid, ref.instance or ref.mig_uuid)
        if known is None or known == wanted:
            return Match(wanted, "GPU instance id" if ref.instance else "MIG UUID")
        if not ref.instance:
            return Match(known, "MIG UUID")
        return Match(wanted, "MIG UUID and GPU instance id", known)

    def instances(self, board: GpuKey, states: Mapping[GpuKey, object]) -> list[GpuKey]:
        """Return the rows of a board's MIG instances."""
        return [k for k in states if k.instance and k.board == board]
