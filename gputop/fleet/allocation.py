"""How many devices of a node are advertised, healthy, used and free, as its scheduler counts them.

Advertised is what the device plugin registered, healthy what of it may be placed; the two are never mixed.
Replicas of time-slicing or MPS are turns, not hardware, and are counted by their own name.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

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


_WHOLE: Final = ("nvidia.com/gpu", "amd.com/gpu")
_MIG: Final = re.compile(r"nvidia\.com/mig-.+|amd\.com/\w+_nps\d+")
"""MIG instances by profile (NVIDIA's device plugin, strategy "mixed") and partitions of AMD's plugin."""
_SHARED: Final = "nvidia.com/gpu.shared"
"""Replicas of time-slicing under their own name (NVIDIA's device plugin, `renameByDefault`)."""


class Counted(Struct, frozen=True, gc=False):
    """A node's device resources as they are shown in one line.

    Attributes:
        whole: The resource of whole boards, or of their replicas under the same name.
        mig: The sum over the resources of MIG instances and partitions.
        shared: Replicas under their own name.
        is_replicas: `whole` counts more than there are boards.
    """

    whole: Allocation | None
    mig: Allocation | None
    shared: Allocation | None
    is_replicas: bool

    @property
    def shown(self) -> Allocation | None:
        """The resource that counts: whole boards, unless the node advertises none of them but parts."""
        parts = next((p for p in (self.mig, self.shared) if p is not None and p.advertised), None)
        if self.whole is not None and (self.whole.advertised is None or self.whole.advertised or parts is None):
            return self.whole
        return parts or self.mig or self.shared

    @property
    def unit(self) -> str:
        """What `shown` counts: "gpus", "mig_instances", "shares", or "" where nothing is told."""
        shown = self.shown
        if shown is None:
            return ""
        if shown is self.whole:
            return "shares" if self.is_replicas else "gpus"
        return "mig_instances" if shown is self.mig else "shares"

    @property
    def free_boards(self) -> float | None:
        """Whole boards a new workload could get; None when nobody tells or replicas are counted instead."""
        if self.whole is None:
            return 0.0 if self.mig is not None and self.shared is None else None
        return None if self.is_replicas or (self.shared is not None and self.shared.advertised) else self.whole.free


def count(resources: Sequence[Allocation], boards: int) -> Counted:
    """Return a node's resources in short.

    Args:
        resources: As `allocations` gives them.
        boards: Boards that are listed on the node, 0 when none is.
    """
    whole = next((r for r in resources if r.resource in _WHOLE), None)
    mig = [r for r in resources if _MIG.fullmatch(r.resource)]
    return Counted(
        whole=whole,
        mig=_total(mig) if mig else None,
        shared=next((r for r in resources if r.resource == _SHARED), None),
        is_replicas=bool(whole and boards and (whole.advertised or 0.0) > boards),
    )


def _total(parts: Sequence[Allocation]) -> Allocation:
    return Allocation(
        ", ".join(p.resource for p in parts),
        _sum([p.advertised for p in parts]),
        _sum([p.healthy for p in parts]),
        _sum([p.used for p in parts]),
        _sum([p.free for p in parts]),
    )


def _sum(told: Sequence[float | None]) -> float | None:
    """Return a sum, or None if a part is not told: a sum of the others would be a lower bound."""
    known = [v for v in told if v is not None]
    return sum(known) if len(known) == len(told) else None


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
