"""kube-state-metrics: what nodes advertise, how they are, and which pods hold or want GPUs.

Requests are of the spec, so those of finished pods stay as long as the pod object does, and those of
unscheduled ones have no node (kubernetes/kube-state-metrics#440); the phase tells. Two replicas double every
row, so rows are reduced by identity with max, never summed.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from gputop.model.facts import DeviceCount, Fact, NodeCondition, NodeFact, WorkloadFact, WorkloadsRoster
from gputop.model.identity import NodeRef
from gputop.model.reading import NOT_EXPORTED, Absent
from gputop.model.sanity import judge_raw
from gputop.model.text import is_whole
from gputop.model.workload import Workload
from gputop.sources.metrics.labels import Resolver, first
from gputop.sources.metrics.resources import real_resource
from gputop.sources.metrics.sample import Sample

_REQUESTS: Final = "kube_pod_container_resource_requests"
_LIMITS: Final = "kube_pod_container_resource_limits"
# Elsewhere a label `node` is where kube-state-metrics itself runs.
_PLACED: Final = frozenset({_REQUESTS, _LIMITS, "kube_pod_info"})
_NODE: Final = ("exported_node", "node")
_POD: Final = ("exported_pod", "pod")
_NAMESPACE: Final = ("exported_namespace", "namespace")
_UID: Final = ("exported_uid", "uid")
_CONTAINER: Final = ("exported_container", "container")


class _Pod(Struct):
    cluster: str
    namespace: str
    name: str
    uid: str
    node: str
    asked: dict[tuple[str, str, str], float]
    phase: str = ""
    owner: str = ""
    since: float | None = None


class _Node(Struct):
    ref: NodeRef
    advertised: dict[str, float]
    healthy: dict[str, float]
    taints: set[str]
    cordoned: bool | None = None
    ready: dict[str, float] | None = None
    expected: float | None = None


class Kubernetes:
    """Collects the series of one answer."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._pods: dict[tuple[str, str], _Pod] = {}
        self._nodes: dict[NodeRef, _Node] = {}
        self._clusters: set[str] = set()

    def take(self, sample: Sample) -> None:
        """Take one series of kube-state-metrics into account."""
        if judge_raw(sample.value) is not None:
            return
        self._clusters.add(self._resolver.cluster(sample.labels))
        if sample.name.startswith("kube_pod_"):
            self._take_pod(sample)
        else:
            self._take_node(sample)

    def _pod(self, sample: Sample) -> _Pod:
        labels = sample.labels
        cluster = self._resolver.cluster(labels)
        namespace, name = first(labels, _NAMESPACE), first(labels, _POD)
        uid = first(labels, _UID) or f"{namespace}/{name}"
        pod = self._pods.get((cluster, uid))
        if pod is None:
            pod = self._pods[cluster, uid] = _Pod(cluster, namespace, name, uid, "", {})
        if sample.name in _PLACED:
            # Of a pod that was just placed the older series still has no node.
            pod.node = pod.node or first(labels, _NODE)
        return pod

    def _take_pod(self, sample: Sample) -> None:
        labels = sample.labels
        if sample.name in {_REQUESTS, _LIMITS}:
            resource = real_resource(first(labels, ("resource",)))
            if resource:
                pod = self._pod(sample)
                key = (sample.name, first(labels, _CONTAINER), resource)
                pod.asked[key] = max(sample.value, pod.asked.get(key, 0.0))
        elif sample.name == "kube_pod_status_phase":
            if sample.value == 1.0:
                self._pod(sample).phase = first(labels, ("phase",))
        elif sample.name == "kube_pod_owner":
            kind, name = first(labels, ("owner_kind",)), first(labels, ("owner_name",))
            if name and kind not in {"<none>", ""}:
                self._pod(sample).owner = f"{kind}/{name}"
        elif sample.name == "kube_pod_created":
            self._pod(sample).since = sample.value
        else:
            self._resolver.learn_pod(labels)
            self._pod(sample)

    def _node(self, sample: Sample) -> _Node | None:
        host = first(sample.labels, _NODE)
        if not host:
            return None
        ref = NodeRef(host, self._resolver.cluster(sample.labels))
        node = self._nodes.get(ref)
        if node is None:
            node = self._nodes[ref] = _Node(ref, {}, {}, set())
        return node

    def _take_node(self, sample: Sample) -> None:
        node = self._node(sample)
        if node is None:
            return
        labels = sample.labels
        if sample.name in {"kube_node_status_capacity", "kube_node_status_allocatable"}:
            resource = real_resource(first(labels, ("resource",)))
            counts = node.advertised if sample.name.endswith("capacity") else node.healthy
            if resource:
                counts[resource] = max(sample.value, counts.get(resource, 0.0))
        elif sample.name == "kube_node_spec_unschedulable":
            node.cordoned = bool(sample.value) or bool(node.cordoned)
        elif sample.name == "kube_node_spec_taint" and sample.value > 0:
            key, value, effect = (first(labels, (name,)) for name in ("key", "value", "effect"))
            node.taints.add(f"{key}={value}:{effect}" if value else f"{key}:{effect}")
        elif sample.name == "kube_node_status_condition" and labels.get("condition") == "Ready":
            node.ready = node.ready or {}
            status = labels.get("status", "")
            node.ready[status] = max(sample.value, node.ready.get(status, 0.0))
        elif sample.name == "kube_node_labels":
            count = first(labels, ("label_nvidia_com_gpu_count",))
            node.expected = float(count) if is_whole(count) else None

    def facts(self, *, complete: bool) -> list[Fact]:
        """Return what the series say; counts come before conditions, which need the node's row."""
        facts: list[Fact] = []
        for node in self._nodes.values():
            facts += [
                DeviceCount(node.ref, name, _count(node.advertised, name), _count(node.healthy, name))
                for name in sorted(node.advertised.keys() | node.healthy.keys())
            ]
        facts += [NodeCondition(n.ref, n.cordoned, _ready(n.ready), tuple(sorted(n.taints))) for n in self._told()]
        facts += [
            NodeFact(n.ref, {"gpus_expected": n.expected}) for n in self._nodes.values() if n.expected is not None
        ]
        workloads = [_workload(pod) for pod in self._pods.values() if pod.asked]
        facts += [WorkloadFact(w) for w in workloads]
        if complete:
            for cluster in sorted(self._clusters):
                uids = frozenset(w.uid for w in workloads if w.cluster == cluster)
                facts.append(WorkloadsRoster(cluster, uids))
        return facts

    def _told(self) -> Iterable[_Node]:
        return (n for n in self._nodes.values() if n.cordoned is not None or n.ready or n.taints)


def _count(counts: dict[str, float], resource: str) -> float | Absent:
    return counts.get(resource, NOT_EXPORTED)


def _ready(statuses: dict[str, float] | None) -> bool | None:
    if not statuses or not any(statuses.values()):
        return None
    # "unknown" is set when the kubelet has stopped reporting: the node is not ready then.
    return statuses.get("true", 0.0) == 1.0


def _workload(pod: _Pod) -> Workload:
    # For extended resources limits equal requests; either alone tells.
    kind = _REQUESTS if any(name == _REQUESTS for name, _, _ in pod.asked) else _LIMITS
    wants: dict[str, float] = {}
    for (name, _, resource), count in pod.asked.items():
        if name == kind:
            wants[resource] = wants.get(resource, 0.0) + count
    return Workload(
        cluster=pod.cluster,
        scheduler="kubernetes",
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        node=pod.node,
        phase=pod.phase,
        wants=tuple(sorted(wants.items())),
        owner=pod.owner,
        since=pod.since,
    )
