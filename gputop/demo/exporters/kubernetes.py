"""kube-state-metrics over the simulated cluster: what pods ask for and what nodes offer."""

import bisect
import math
from collections.abc import Callable, Iterable, Iterator

from gputop.demo import noise
from gputop.demo.faults import Cordoned, NotReady, Unallocatable
from gputop.demo.series import Labels, Wanted
from gputop.demo.world import Node, Pod, World

Row = tuple[dict[str, str], float]

# A finished pod stays in the API until its job's history is pruned.
_KEPT_AFTER_END_S = 1800.0
_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")


def resource_label(resource: str) -> str:
    """Spell a resource name as kube-state-metrics does: ``nvidia.com/gpu`` is ``nvidia_com_gpu``."""
    return "".join(char if char.isalnum() else "_" for char in resource)


def phase(pod: Pod, t: float) -> str:
    """Return a pod's phase at a time."""
    if not pod.node or t < pod.start_s:
        return "Pending"
    return "Running" if t < pod.end_s else "Succeeded"


def exists(pod: Pod, t: float) -> bool:
    """Say whether the API has the pod at a time; a pod is made when it starts, or waits from then on."""
    return pod.start_s <= t < pod.end_s + _KEPT_AFTER_END_S


def capacity(node: Node, t: float) -> dict[str, int]:
    """Return what the device plugin registered: GPUs (or their time slices), and MIG devices by profile."""
    found: dict[str, int] = {}
    whole = 0
    for gpu in node.gpus:
        instances = gpu.instances(t)
        whole += 0 if instances else node.group.replicas
        for instance in instances:
            name = f"nvidia.com/mig-{instance.profile.name}"
            found[name] = found.get(name, 0) + 1
    return {"nvidia.com/gpu": whole, **found}


def allocatable(node: Node, t: float) -> dict[str, int]:
    """Return what may be placed: the capacity less what the device plugin holds to be unhealthy."""
    found = capacity(node, t)
    broken = sum(one.count for one in node.faults if isinstance(one, Unallocatable) and one.active(t))
    found["nvidia.com/gpu"] = max(0, found["nvidia.com/gpu"] - broken * node.group.replicas)
    return found


def _pod_labels(pod: Pod) -> dict[str, str]:
    return {"namespace": pod.namespace, "pod": pod.name, "uid": pod.uid}


class KubeStateMetrics:
    """The one exposition of the cluster; see :class:`gputop.demo.series.Exposition`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._changes = _changes(world)
        self._cache: dict[str, tuple[int, list[tuple[Labels, float]]]] = {}

    def names(self) -> Iterable[str]:
        """Return the metric names."""
        return FAMILIES

    def describe(self, name: str) -> tuple[str, str]:
        """Return the TYPE and HELP of a metric."""
        return "gauge", FAMILIES[name][0]

    def series(self, name: str, t: float, wanted: Wanted | None = None) -> list[tuple[Labels, float]]:
        """Return the series of a metric at a time."""
        if name not in FAMILIES:
            return []
        epoch = bisect.bisect_right(self._changes, t)
        cached = self._cache.get(name)
        if cached is None or cached[0] != epoch:
            rows = [(Labels(labels), value) for labels, value in FAMILIES[name][1](self._world, t)]
            cached = self._cache[name] = (epoch, rows)
        return cached[1] if wanted is None else [row for row in cached[1] if wanted(row[0])]


def _changes(world: World) -> list[float]:
    times: set[float] = set()
    for pod in world.pods():
        times |= {pod.start_s, pod.end_s, pod.end_s + _KEPT_AFTER_END_S}
    for fault in world.scenario.faults:
        times |= {fault.at_s, math.inf if fault.until_s is None else fault.until_s}
    return sorted(times)


def _pods(world: World, t: float) -> Iterator[Pod]:
    return (pod for pod in world.pods() if exists(pod, t))


def _requests(world: World, t: float) -> Iterator[Row]:
    for pod in _pods(world, t):
        labels = _pod_labels(pod) | {"container": pod.container, "node": pod.node}
        yield labels | {"resource": resource_label(pod.resource), "unit": "integer"}, float(pod.quantity)
        yield labels | {"resource": "cpu", "unit": "core"}, 8.0 * pod.quantity


def _phase(world: World, t: float) -> Iterator[Row]:
    for pod in _pods(world, t):
        current = phase(pod, t)
        for name in _PHASES:
            yield _pod_labels(pod) | {"phase": name}, float(name == current)


def _info(world: World, t: float) -> Iterator[Row]:
    for pod in _pods(world, t):
        host = world.by_name[pod.node] if pod.node else None
        yield (
            _pod_labels(pod)
            | {
                "node": pod.node,
                "host_ip": host.instance.split(":")[0] if host else "",
                "created_by_kind": pod.owner_kind,
                "created_by_name": pod.owner or pod.name,
                "priority_class": "",
            },
            1.0,
        )


def _owner(world: World, t: float) -> Iterator[Row]:
    for pod in _pods(world, t):
        owned = bool(pod.owner)
        yield (
            _pod_labels(pod)
            | {
                "owner_kind": pod.owner_kind if owned else "",
                "owner_name": pod.owner,
                "owner_is_controller": "true" if owned else "",
            },
            1.0,
        )


def _unschedulable(world: World, t: float) -> Iterator[Row]:
    for pod in _pods(world, t):
        if not pod.node:
            yield _pod_labels(pod), 1.0


def _scheduled(world: World, t: float) -> Iterator[Row]:
    for pod in _pods(world, t):
        for condition in ("true", "false", "unknown"):
            yield (
                _pod_labels(pod) | {"condition": condition},
                float(condition == ("true" if pod.node else "false")),
            )


def _resources(amounts: Callable[[Node, float], dict[str, int]]) -> Callable[[World, float], Iterator[Row]]:
    def rows(world: World, t: float) -> Iterator[Row]:
        for node in world.nodes:
            for resource, count in amounts(node, t).items():
                yield (
                    {"node": node.name, "resource": resource_label(resource), "unit": "integer"},
                    float(count),
                )
            yield {"node": node.name, "resource": "cpu", "unit": "core"}, 192.0
            memory = float(node.group.memory_gib * 1024**3)
            yield {"node": node.name, "resource": "memory", "unit": "byte"}, memory

    return rows


def _cordoned(world: World, t: float) -> Iterator[Row]:
    for node in world.nodes:
        yield (
            {"node": node.name},
            float(any(isinstance(one, Cordoned) and one.active(t) for one in node.faults)),
        )


def _conditions(world: World, t: float) -> Iterator[Row]:
    for node in world.nodes:
        lost = any(isinstance(one, NotReady) and one.active(t) for one in node.faults)
        current = "unknown" if lost else "true"
        for status in ("true", "false", "unknown"):
            yield {"node": node.name, "condition": "Ready", "status": status}, float(status == current)


def _node_info(world: World, _t: float) -> Iterator[Row]:
    for node in world.nodes:
        yield (
            {
                "node": node.name,
                "internal_ip": node.instance.split(":")[0],
                "kernel_version": "6.8.0-60-generic",
                "kubelet_version": "v1.33.4",
                "system_uuid": noise.uuid(node.seed),
            },
            1.0,
        )


def _node_labels(world: World, _t: float) -> Iterator[Row]:
    for node in world.nodes:
        product = node.model.name.replace(" ", "-") + ("-SHARED" if node.group.replicas > 1 else "")
        yield (
            {
                "node": node.name,
                "label_nvidia_com_gpu_product": product,
                "label_nvidia_com_gpu_count": str(len(node.gpus)),
                "label_kubernetes_io_hostname": node.name,
            },
            1.0,
        )


FAMILIES: dict[str, tuple[str, Callable[[World, float], Iterator[Row]]]] = {
    "kube_pod_container_resource_requests": (
        "The number of requested request resource by a container.",
        _requests,
    ),
    "kube_pod_container_resource_limits": (
        "The number of requested limit resource by a container.",
        _requests,
    ),
    "kube_pod_status_phase": ("The pods current phase.", _phase),
    "kube_pod_info": ("Information about pod.", _info),
    "kube_pod_owner": ("Information about the Pod's owner.", _owner),
    "kube_pod_status_unschedulable": ("Describes the unschedulable status for the pod.", _unschedulable),
    "kube_pod_status_scheduled": ("Describes the status of the scheduling process for the pod.", _scheduled),
    "kube_node_status_capacity": (
        "The total amount of resources available for a node.",
        _resources(capacity),
    ),
    "kube_node_status_allocatable": (
        "The amount of resources allocatable for pods.",
        _resources(allocatable),
    ),
    "kube_node_spec_unschedulable": ("Whether a node can schedule new pods.", _cordoned),
    "kube_node_status_condition": ("The condition of a cluster node.", _conditions),
    "kube_node_info": ("Information about a cluster node.", _node_info),
    "kube_node_labels": ("Kubernetes labels converted to Prometheus labels.", _node_labels),
}
"""Metrics by name: HELP, and the rows at a time."""
