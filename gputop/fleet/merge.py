"""Two records that turn out to be one."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from gputop.fleet.precedence import settle
from gputop.fleet.presence import judge_presence
from gputop.fleet.state import NO_RIVALS, GpuState, NodeState
from gputop.model.identity import GpuKey, NodeKey
from gputop.model.reading import Reading

_T = TypeVar("_T")


def merge_readings(
    one: tuple[dict[str, Reading], dict[str, tuple[Reading, ...]]],
    two: tuple[dict[str, Reading], dict[str, tuple[Reading, ...]]],
) -> tuple[dict[str, Reading], dict[str, tuple[Reading, ...]]]:
    """Return readings and rivals of both, the newest of each source settled by precedence."""
    readings: dict[str, Reading] = {}
    rivals: dict[str, tuple[Reading, ...]] = {}
    for quantity in one[0].keys() | two[0].keys():
        newest: dict[str, Reading] = {}
        for chosen, others in (one, two):
            if quantity not in chosen:
                continue
            for reading in (chosen[quantity], *others.get(quantity, ())):
                before = newest.get(reading.origin.source)
                if before is None or before.origin.at < reading.origin.at:
                    newest[reading.origin.source] = reading
        readings[quantity], rest = settle(newest.values())
        if rest:
            rivals[quantity] = rest
    return readings, rivals or NO_RIVALS


def _newest_by(items: Iterable[_T], who: Callable[[_T], object], when: Callable[[_T], float]) -> tuple[_T, ...]:
    newest: dict[object, _T] = {}
    for item in items:
        before = newest.get(who(item))
        if before is None or when(before) <= when(item):
            newest[who(item)] = item
    return tuple(newest.values())


def merge_gpus(key: GpuKey, kept: GpuState, moved: GpuState) -> GpuState:
    """Return one record under `key` with everything that either knows."""
    readings, rivals = merge_readings((kept.readings, kept.rivals), (moved.readings, moved.rivals))
    sightings = _newest_by((*moved.sightings, *kept.sightings), lambda s: s.origin.source, lambda s: s.origin.at)
    pci = kept.pci or moved.pci
    presence, reason, since = judge_presence(sightings, pci)
    return GpuState(
        key=key,
        index=kept.index if kept.index >= 0 else moved.index,
        bus_id=kept.bus_id or moved.bus_id,
        mig_uuid=kept.mig_uuid or moved.mig_uuid,
        readings=readings,
        rivals=rivals,
        presence=presence,
        presence_reason=reason,
        presence_since=since,
        sightings=sightings,
        processes=_newest_by((*moved.processes, *kept.processes), lambda p: p.origin.source, lambda p: p.origin.at),
        holders=_newest_by((*moved.holders, *kept.holders), lambda h: h.origin.source, lambda h: h.origin.at),
        xids=tuple(sorted({*moved.xids, *kept.xids}, key=lambda x: x.first_seen)),
        joins=_newest_by((*moved.joins, *kept.joins), lambda j: j.source, lambda _: 0.0),
        pci=pci,
    )


def merge_nodes(key: NodeKey, kept: NodeState, moved: NodeState) -> NodeState:
    """Return one record under `key` with everything that either knows; GPUs are moved by the caller."""
    readings, rivals = merge_readings((kept.readings, kept.rivals), (moved.readings, moved.rivals))
    return msgspec.structs.replace(
        kept,
        key=key,
        names=_newest_by((*moved.names, *kept.names), lambda n: (n.name, n.source), lambda _: 0.0),
        readings=readings,
        rivals=rivals,
        pci=kept.pci if kept.pci is not None else moved.pci,
        coverage=_newest_by((*moved.coverage, *kept.coverage), lambda c: c.origin.source, lambda c: c.origin.at),
        troubles=_newest_by((*moved.troubles, *kept.troubles), lambda t: (t.source, t.fact.code), lambda t: t.since),
        devices=_newest_by((*moved.devices, *kept.devices), lambda d: (d[1].source, d[0].resource), lambda d: d[1].at),
        conditions=_newest_by((*moved.conditions, *kept.conditions), lambda c: c[1].source, lambda c: c[1].at),
    )
