"""How many devices of a node are advertised, healthy, used and free, as its scheduler counts them.

Advertised is what the device plugin registered, healthy what of it may be placed; the two are never mixed.
Replicas of time-slicing or MPS are turns, not hardware, and are counted by their own name.
"""

from collections.abc import Iterable

from msgspec import Struct

from gputop.fleet.state import NodeState, View, WorkloadState
from gputop.model.reading import Absent


class Allocation(Struct, frozen=True, gc=False):
    """One device resource of a node; None for what nobody tells.

    Attributes:
        resource: Resource name.
        advertised: What the device plugin registered.
        healthy: What of it may be placed.
        used: What placed workloads ask for.
        free: What a new workload could get: 0 on a cordoned or unready node.
    """

    resource: str
    advertised: float | None
    healthy: float | None
    used: float | None
    free: float | None


def is_cordoned(node: NodeState) -> bool | None:
    """Whether a scheduler says that nothing new may be placed; None when none says."""
    told = [c.cordoned for c, _ in node.conditions if c.cordoned is not None]
    return any(told) if told else None


def is_ready(node: NodeState) -> bool | None:
    """Whether a scheduler says that the node is ready; None when none says."""
    told = [c.ready for c, _ in node.conditions if c.ready is not None]
    return all(told) if told else None


def used_of(placed: Iterable[WorkloadState]) -> dict[str, float]:
    """Return what placed workloads hold, by resource."""
    used: dict[str, float] = {}
    for state in placed:
        if state.workload.holds:
            for resource, count in state.workload.wants:
                used[resource] = used.get(resource, 0.0) + count
    return used


def tells_of_workloads(view: View, node: NodeState) -> bool:
    """Whether a source that counts the node's devices tells of workloads too; else nobody knows what is used."""
    return any((origin.source, node.key.cluster) in view.tellers for _, origin in node.devices)


def allocations(node: NodeState, placed: Iterable[WorkloadState], *, workloads_told: bool) -> tuple[Allocation, ...]:
    """Return the device resources of a node.

    Args:
        node: The node.
        placed: The workloads on it.
        workloads_told: As `tells_of_workloads` says.
    """
    used = used_of(placed) if workloads_told else {}
    closed = is_cordoned(node) is True or is_ready(node) is False
    result: list[Allocation] = []
    seen: set[str] = set()
    for device, _ in node.devices:
        if device.resource in seen:
            continue
        seen.add(device.resource)
        advertised, healthy = _number(device.advertised), _number(device.healthy)
        count = used.get(device.resource, 0.0) if workloads_told else None
        free = None if healthy is None or count is None else 0.0 if closed else max(0.0, healthy - count)
        result.append(Allocation(device.resource, advertised, healthy, count, free))
    return tuple(result)


def _number(value: float | Absent) -> float | None:
    return None if isinstance(value, Absent) else value
