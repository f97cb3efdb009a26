"""One function for each kind of fact: it puts the fact into the store. `HANDLERS` is the dispatch table."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from gputop.fleet.join import Joiner
from gputop.fleet.mig import settle_mig
from gputop.fleet.precedence import settle
from gputop.fleet.presence import judge_presence
from gputop.fleet.state import (
    Coverage,
    GpuState,
    HolderClaim,
    ProcessTable,
    Sighting,
    Trouble,
    WorkloadState,
    XidRecord,
)
from gputop.fleet.store import Store
from gputop.model.facts import (
    DeviceCount,
    GpuFact,
    HoldersFact,
    NodeCondition,
    NodeFact,
    NodeTrouble,
    PciGpu,
    Presence,
    ProcessesFact,
    Roster,
    WorkloadFact,
    WorkloadsRoster,
    XidFact,
    XidKind,
)
from gputop.model.identity import GpuKey, GpuRef, NodeKey, NodeRef
from gputop.model.quantity import HISTORY_QUANTITIES
from gputop.model.reading import Origin, Reading, Value

_XIDS_KEPT: Final = 64


def _merge_values(
    readings: dict[str, Reading],
    rivals: dict[str, tuple[Reading, ...]],
    values: dict[str, Value],
    origin: Origin,
) -> tuple[dict[str, Reading], dict[str, tuple[Reading, ...]], bool]:
    """Return readings and rivals with new values in, and whether a value that counts is another one."""
    merged = readings.copy()
    changed = False
    for quantity, value in values.items():
        before = merged.get(quantity)
        new = Reading(value, origin)
        if before is None:
            merged[quantity] = new
            changed = True
            continue
        if before.origin.source == origin.source and quantity not in rivals:
            # Facts of one source may arrive late when hosts answer in turn; an old one changes nothing.
            if origin.at >= before.origin.at:
                merged[quantity] = new
                changed = changed or before.value != value
            continue
        others = tuple(r for r in (before, *rivals.get(quantity, ())) if r.origin.source != origin.source)
        merged[quantity], rest = settle((new, *others))
        if rest:
            rivals = {**rivals, quantity: rest}
        changed = changed or merged[quantity].value != before.value
    return merged, rivals, changed


def _gpu_fact(store: Store, joiner: Joiner, fact: GpuFact, origin: Origin, interval_s: float) -> None:
    key = joiner.gpu(origin.source, fact.ref)
    state = store.gpus[key]
    readings, rivals, changed = _merge_values(state.readings, state.rivals, fact.readings, origin)
    for quantity in HISTORY_QUANTITIES:
        reading = readings.get(quantity)
        if reading is not None and reading.origin is origin and isinstance(reading.value, float):
            store.history.put(key, quantity, origin.at, interval_s, reading.value)
    if not key.instance:
        settled = settle_mig(readings, origin)
        changed = changed or settled is not readings
        readings = settled
    state = msgspec.structs.replace(state, readings=readings, rivals=rivals)
    state, named = _name_gpu(state, fact.ref)
    state, seen = _see(state, origin, fact.presence, fact.presence_reason)
    store.put_gpu(state, changed=changed or named or seen)


def _name_gpu(state: GpuState, ref: GpuRef) -> tuple[GpuState, bool]:
    index = ref.index if ref.index >= 0 and not state.key.instance else state.index
    bus_id, mig_uuid = ref.bus_id or state.bus_id, ref.mig_uuid or state.mig_uuid
    if (index, bus_id, mig_uuid) == (state.index, state.bus_id, state.mig_uuid):
        return state, False
    return msgspec.structs.replace(state, index=index, bus_id=bus_id, mig_uuid=mig_uuid), True


def _see(state: GpuState, origin: Origin, presence: Presence | None, reason: str) -> tuple[GpuState, bool]:
    """Note that a source lists the GPU, with what it says of its presence."""
    before = next((s for s in state.sightings if s.origin.source == origin.source), None)
    if before is None:
        sighting = Sighting(origin, True, origin.at, presence, reason)
    else:
        if presence is None:
            presence, reason = before.presence, before.reason
        same = before.listed and before.presence == presence and not before.silent
        sighting = Sighting(origin, True, before.since if same else origin.at, presence, reason)
    return _with_sighting(state, sighting)


def _with_sighting(state: GpuState, sighting: Sighting) -> tuple[GpuState, bool]:
    source = sighting.origin.source
    sightings = (*(s for s in state.sightings if s.origin.source != source), sighting)
    presence, reason, since = judge_presence(sightings, state.pci)
    changed = (presence, reason) != (state.presence, state.presence_reason)
    state = msgspec.structs.replace(
        state,
        sightings=sightings,
        presence=presence,
        presence_reason=reason,
        presence_since=since if presence != state.presence else state.presence_since or since,
    )
    return state, changed


def _roster(store: Store, joiner: Joiner, fact: Roster, origin: Origin, _: float) -> None:
    node_key = joiner.node(origin.source, fact.ref)
    if fact.silent:
        _cover(store, node_key, origin, None, fact.silent)
        for key in store.listed.get((origin.source, node_key), frozenset()):
            _silence(store, key, origin, fact.silent)
        return
    keys = frozenset(joiner.gpu(origin.source, ref) for ref in fact.gpus)
    # Joining may have renamed the node while its GPUs were looked up.
    node_key = next(iter(keys)).node if keys else joiner.node(origin.source, fact.ref)
    before = store.listed.get((origin.source, node_key), frozenset())
    store.listed[origin.source, node_key] = keys
    for key, ref in zip((joiner.gpu(origin.source, r) for r in fact.gpus), fact.gpus, strict=True):
        state, named = _name_gpu(store.gpus[key], ref)
        state, seen = _see(state, origin, None, "")
        store.put_gpu(state, changed=named or seen)
    boards = sum(1 for k in keys if not k.instance)
    for key in before - keys:
        _unlist(store, joiner, key, origin, f"{origin.source} lists {boards} and not this one")
    _cover(store, node_key, origin, boards, "")


def _unlist(store: Store, joiner: Joiner, key: GpuKey, origin: Origin, reason: str) -> None:
    state = store.gpus.get(key)
    if state is None:
        return
    others = [s for s in state.sightings if s.origin.source != origin.source and s.listed]
    board = store.gpus.get(key.board)
    board_there = board is not None and board.presence is Presence.PRESENT
    if key.instance and board_there and not others:
        # A MIG instance that is not there any more was taken apart by a reconfiguration of its board.
        store.drop_gpu(key)
        joiner.forget_answers()
        return
    state, _ = _with_sighting(state, Sighting(origin, False, origin.at, None, reason))
    store.put_gpu(state)
    if len(store.registry.boards(key.uuid)) > 1:
        joiner.forget_answers()


def _silence(store: Store, key: GpuKey, origin: Origin, words: str) -> None:
    state = store.gpus.get(key)
    before = next((s for s in state.sightings if s.origin.source == origin.source), None) if state else None
    if state is None or before is None or before.silent == words:
        return
    since = before.since if before.silent else origin.at
    state, _ = _with_sighting(state, msgspec.structs.replace(before, silent=words, since=since))
    store.put_gpu(state)


def _cover(store: Store, key: NodeKey, origin: Origin, boards: int | None, silent: str) -> None:
    node = store.nodes[key]
    before = next((c for c in node.coverage if c.origin.source == origin.source), None)
    count = boards if boards is not None else before.boards if before else 0
    same = before is not None and before.boards == count and bool(before.silent) == bool(silent)
    since = before.since if before and same else origin.at
    rest = tuple(c for c in node.coverage if c.origin.source != origin.source)
    store.nodes[key] = msgspec.structs.replace(node, coverage=(*rest, Coverage(origin, count, silent, since)))
    if not same:
        store.changes.nodes.add(key)


def _node_fact(store: Store, joiner: Joiner, fact: NodeFact, origin: Origin, _: float) -> None:
    key = joiner.node(origin.source, fact.ref)
    node = store.nodes[key]
    readings, rivals, changed = _merge_values(node.readings, node.rivals, fact.readings, origin)
    pci = fact.pci if fact.pci is not None else node.pci
    changed = changed or pci != node.pci
    store.nodes[key] = msgspec.structs.replace(node, readings=readings, rivals=rivals, pci=pci)
    if changed:
        store.changes.nodes.add(key)
    for device in fact.pci or ():
        _pci_gpu(store, joiner, fact.ref, device, origin)


def _pci_gpu(store: Store, joiner: Joiner, ref: NodeRef, device: PciGpu, origin: Origin) -> None:
    key = joiner.gpu(origin.source, GpuRef(ref.host, ref.cluster, bus_id=device.bus_id))
    state = store.gpus[key]
    if state.pci == device and state.bus_id == device.bus_id:
        return
    presence, reason, since = judge_presence(state.sightings, device)
    readings = state.readings
    if device.name and "model" not in readings:
        readings = {**readings, "model": Reading(device.name, origin)}
    store.put_gpu(
        msgspec.structs.replace(
            state,
            bus_id=device.bus_id,
            pci=device,
            readings=readings,
            presence=presence,
            presence_reason=reason,
            presence_since=state.presence_since or since or origin.at,
        )
    )


def _node_trouble(store: Store, joiner: Joiner, fact: NodeTrouble, origin: Origin, _: float) -> None:
    key = joiner.node(origin.source, fact.ref)
    node = store.nodes[key]
    mine = (origin.source, fact.code)
    before = next((t for t in node.troubles if (t.source, t.fact.code) == mine), None)
    rest = tuple(t for t in node.troubles if (t.source, t.fact.code) != mine)
    if fact.text:
        rest = (*rest, Trouble(fact, origin.source, before.since if before else origin.at))
    if rest != node.troubles:
        store.put_node(msgspec.structs.replace(node, troubles=rest))
    if not fact.text:
        # A source that was silent of it from the start and takes that back has learnt the node's right name.
        joiner.drop_bare(key)


def _processes(store: Store, joiner: Joiner, fact: ProcessesFact, origin: Origin, _: float) -> None:
    state = store.gpus[joiner.gpu(origin.source, fact.ref)]
    before = next((p for p in state.processes if p.origin.source == origin.source), None)
    rest = [p for p in state.processes if p.origin.source != origin.source]
    processes = store.naming.processes(fact.processes, state.key)
    tables = sorted((*rest, ProcessTable(processes, origin)), key=lambda p: p.origin.rank)
    changed = before is None or before.processes != processes
    store.put_gpu(msgspec.structs.replace(state, processes=tuple(tables)), changed=changed)


def _holders(store: Store, joiner: Joiner, fact: HoldersFact, origin: Origin, _: float) -> None:
    state = store.gpus[joiner.gpu(origin.source, fact.ref)]
    before = next((h for h in state.holders if h.origin.source == origin.source), None)
    rest = [h for h in state.holders if h.origin.source != origin.source]
    named = store.naming.holders(fact.holders, state.key)
    claims = sorted((*rest, HolderClaim(named, origin)), key=lambda h: h.origin.rank)
    changed = before is None or before.holders != named
    store.put_gpu(msgspec.structs.replace(state, holders=tuple(claims)), changed=changed)


def _xid(store: Store, joiner: Joiner, fact: XidFact, origin: Origin, _: float) -> None:
    state = store.gpus[joiner.gpu(origin.source, fact.ref)]
    source = origin.source
    mine = [x for x in state.xids if x.source == source and x.kind == fact.kind]
    # A standing number continues only the newest record: 31, 79, 31 is three happenings.
    candidates = mine[-1:] if fact.kind is XidKind.LAST else mine
    before = next((x for x in candidates if x.xid == fact.xid), None)
    if before is None:
        told_before = any(s.origin.source == source and s.since < origin.at for s in state.sightings)
        record = XidRecord(
            fact.xid, fact.kind, source, origin.at, origin.at, fact.count, fact.window_s, fact.text,
            from_start=fact.kind is XidKind.LAST and not mine and not told_before,
        )  # fmt: skip
        xids = (*state.xids, record)[-_XIDS_KEPT:]
    else:
        count = before.count + fact.count if fact.kind is XidKind.EVENT else fact.count
        record = msgspec.structs.replace(before, last_seen=origin.at, count=count, text=fact.text or before.text)
        xids = tuple(record if x is before else x for x in state.xids)
    changed = before is None or before.count != record.count
    store.put_gpu(msgspec.structs.replace(state, xids=xids), changed=changed)


def _device_count(store: Store, joiner: Joiner, fact: DeviceCount, origin: Origin, _: float) -> None:
    if not fact.advertised and joiner.known_node(fact.ref) is None:
        # A node that advertises no device and that no GPU source knows is not a GPU node.
        return
    node = store.nodes[joiner.node(origin.source, fact.ref)]
    mine = (origin.source, fact.resource)
    before = next((d for d, o in node.devices if (o.source, d.resource) == mine), None)
    rest = [(d, o) for d, o in node.devices if (o.source, d.resource) != mine]
    devices = tuple(sorted((*rest, (fact, origin)), key=lambda d: (d[0].resource, d[1].rank)))
    store.nodes[node.key] = msgspec.structs.replace(node, devices=devices)
    if before is None or (before.advertised, before.healthy) != (fact.advertised, fact.healthy):
        store.changes.nodes.add(node.key)


def _condition(store: Store, joiner: Joiner, fact: NodeCondition, origin: Origin, _: float) -> None:
    key = joiner.known_node(fact.ref)
    if key is None:
        return
    key = joiner.node(origin.source, fact.ref)
    node = store.nodes[key]
    before = next((c for c, o in node.conditions if o.source == origin.source), None)
    rest = tuple((c, o) for c, o in node.conditions if o.source != origin.source)
    store.nodes[key] = msgspec.structs.replace(node, conditions=(*rest, (fact, origin)))
    if before is None or msgspec.structs.replace(before, at=fact.at) != fact:
        store.changes.nodes.add(key)


def _workload(store: Store, joiner: Joiner, fact: WorkloadFact, origin: Origin, _: float) -> None:
    w = fact.workload
    node = joiner.known_node(NodeRef(w.node, w.cluster)) if w.node else None
    uid = (w.cluster, w.uid)
    before = store.workloads.get(uid)
    store.workloads.put(uid, WorkloadState(w, node, origin))
    if before is None or (before.workload, before.node) != (w, node):
        store.changes.workloads.add(uid)
        store.changes.nodes |= {n for n in (node, before.node if before else None) if n is not None}
    for key in store.naming.take_waiting(w.uid):
        _rename_holders(store, key)


def _rename_holders(store: Store, key: GpuKey) -> None:
    """Name the holders of a GPU anew: a workload was told that they are known by the id of."""
    state = store.gpus[key]
    processes = tuple([ProcessTable(store.naming.processes(t.processes, key), t.origin) for t in state.processes])
    holders = tuple([HolderClaim(store.naming.holders(c.holders, key), c.origin) for c in state.holders])
    if (processes, holders) != (state.processes, state.holders):
        store.put_gpu(msgspec.structs.replace(state, processes=processes, holders=holders))


def _workloads_roster(store: Store, _joiner: Joiner, fact: WorkloadsRoster, origin: Origin, _: float) -> None:
    for uid in store.workloads.keys_of(origin.source, fact.cluster):
        if uid[1] in fact.uids:
            continue
        node = store.workloads.pop(uid).node
        store.changes.workloads.add(uid)
        if node is not None:
            store.changes.nodes.add(node)


HANDLERS: Final[dict[type, Callable[[Store, Joiner, Any, Origin, float], None]]] = {
    GpuFact: _gpu_fact,
    NodeFact: _node_fact,
    NodeTrouble: _node_trouble,
    Roster: _roster,
    ProcessesFact: _processes,
    HoldersFact: _holders,
    XidFact: _xid,
    DeviceCount: _device_count,
    NodeCondition: _condition,
    WorkloadFact: _workload,
    WorkloadsRoster: _workloads_roster,
}
"""Handler by type of fact."""
