"""From frames to facts: what one child has told, kept so that what it does not repeat can be said again."""

from collections.abc import Iterable
from typing import Final

from gputop.model.facts import (
    Batch,
    Fact,
    GpuFact,
    HoldersFact,
    NodeFact,
    Presence,
    ProcessesFact,
    Roster,
    XidFact,
    XidKind,
)
from gputop.model.identity import GpuRef, NodeRef
from gputop.model.process import GpuProcess
from gputop.model.reading import Absent, Value
from gputop.model.workload import Holder
from gputop.sources.nvml import cadence
from gputop.sources.nvml.protocol import (
    DeviceInfo,
    Devices,
    Host,
    Processes,
    Sample,
    State,
    XidEvent,
)

RANK: Final = 0
"""NVML is as near to the device as it gets."""


class Identities:
    """What is known of boards beyond the life of one child.

    A board that cannot be opened at the start of a child has no UUID. Its address on the bus tells which
    it is, if it has been seen before; its index does not.
    """

    def __init__(self) -> None:
        self._uuids: dict[str, str] = {}

    def complete(self, device: DeviceInfo, host: str) -> GpuRef:
        """Return the reference to a device, with the UUID it was last known by where it tells none."""
        if device.uuid and device.bus_id:
            self._uuids[device.bus_id] = device.uuid
        return GpuRef(
            host,
            uuid=device.uuid or self._uuids.get(device.bus_id, ""),
            bus_id=device.bus_id,
            index=device.index,
            instance=device.instance,
            mig_uuid=device.mig_uuid,
        )


class Picture:
    """What one child has told so far.

    Args:
        source: Name of the source, for its batches.
        host: Name of the node.
        identities: What is known of boards from earlier children.
    """

    def __init__(self, source: str, host: str, identities: Identities) -> None:
        self._source = source
        self._node = NodeRef(host)
        self._identities = identities
        self._values: dict[tuple[int, int], dict[str, Value]] = {}
        self._tables: dict[int, tuple[tuple[GpuProcess, ...] | Absent, tuple[Holder, ...]]] = {}
        self._states: dict[int, State] = {}
        self.refs: dict[int, GpuRef] = {}
        self.host: Host | None = None

    def batch(self, at: float, interval: float, facts: Iterable[Fact]) -> Batch:
        """Return facts as a batch of readings that are taken every `interval` seconds."""
        stale_after = cadence.stale_after_s(interval)
        return Batch(self._source, RANK, at, stale_after, tuple(facts), interval)

    def devices(self, message: Devices) -> None:
        """Take in who there is."""
        self.refs = {device.slot: self._identities.complete(device, self._node.host) for device in message.devices}
        for kept in (self._tables, self._states):
            for slot in kept.keys() - self.refs.keys():
                del kept[slot]
        for key in [key for key in self._values if key[0] not in self.refs]:
            del self._values[key]

    def roster(self, others: Iterable[GpuRef] = (), silent: str = "", at: float | None = None) -> Roster:
        """Return the list of everything, with boards that only another child knows."""
        known = tuple(self.refs.values())
        extra = tuple(ref for ref in others if ref not in known)
        return Roster(self._node, (*known, *extra), silent, at)

    def state(self, message: State) -> GpuFact | None:
        """Take in a device's state and return it as a fact."""
        self._states[message.slot] = message
        return self.state_of(message.slot)

    def state_of(self, slot: int) -> GpuFact | None:
        """Return the last state of a device as a fact, None when it has told none."""
        message = self._states.get(slot)
        ref = self.refs.get(slot)
        if message is None or ref is None:
            return None
        return GpuFact(ref, {}, message.presence, message.reason, message.at)

    def failing(self) -> list[tuple[GpuRef, str]]:
        """Return the boards that do not answer, each with why."""
        return [
            (ref, message.reason)
            for slot, ref in self.refs.items()
            if not ref.is_instance
            and (message := self._states.get(slot)) is not None
            and message.presence is not Presence.PRESENT
        ]

    def sample(self, message: Sample) -> Batch | None:
        """Take in a sample and return its readings, the unchanged ones stamped anew."""
        facts: list[Fact] = []
        at = 0.0
        for device in message.devices:
            ref = self.refs.get(device.slot)
            if ref is None:
                continue
            key = (device.slot, message.group)
            if device.full:
                self._values[key] = device.values
            elif device.values:
                # A new dict: the one before may be in use by whoever applied it.
                self._values[key] = {**self._values.get(key, {}), **device.values}
            readings = self._values.get(key)
            if readings:
                facts.append(GpuFact(ref, readings, at=device.at))
                at = at or device.at
        return self.batch(at, message.interval_s, facts) if facts else None

    def processes(self, message: Processes) -> Batch | None:
        """Take in process tables and return them, with the workloads they name."""
        facts: list[Fact] = []
        for table in message.tables:
            ref = self.refs.get(table.slot)
            if ref is None:
                continue
            if table.processes is not None:
                self._tables[table.slot] = (table.processes, _holders(table.processes))
            known = self._tables.get(table.slot)
            if known is None:
                continue
            processes, holders = known
            facts.append(ProcessesFact(ref, processes))
            if not isinstance(processes, Absent):
                facts.append(HoldersFact(ref, holders))
        return self.batch(message.at, message.interval_s, facts) if facts else None

    def xid(self, message: XidEvent) -> Batch | None:
        """Return an Xid as a batch."""
        ref = self.refs.get(message.slot)
        if ref is None:
            return None
        fact = XidFact(ref, message.xid, XidKind.EVENT, at=message.at)
        return self.batch(message.at, cadence.HOST_S, (fact,))

    def node(self, message: Host) -> Batch:
        """Take in what is known of the node and return it."""
        self.host = message
        fact = NodeFact(self._node, message.readings, message.pci)
        return self.batch(message.at, cadence.HOST_S, (fact,))


def _holders(processes: tuple[GpuProcess, ...] | Absent) -> tuple[Holder, ...]:
    if isinstance(processes, Absent):
        return ()
    return tuple(dict.fromkeys(process.holder for process in processes if process.holder is not None))
