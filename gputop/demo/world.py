"""The simulated cluster: nodes, GPUs, pods and processes, laid out once from (scenario, seed).

The layout never changes after it is built; what moves is computed from it for a time ``t``, seconds after the
scenario's start (:mod:`gputop.demo.state` for gauges, :mod:`gputop.demo.counters` for counters). So two
processes with the same scenario and seed agree on every number without speaking to each other.
"""

import fnmatch
import math
from collections.abc import Iterator

import msgspec

from gputop.demo import noise
from gputop.demo.faults import AnyFault, GpuFault, MigLayout
from gputop.demo.load import PROFILES, LoadProfile
from gputop.demo.models import MODELS, GpuModel, MigProfile
from gputop.demo.scenario import JobGroup, NodeGroup, Scenario

# Linux never hands out process ids above 4,194,304 (PID_MAX_LIMIT). Simulated ones start above, so that no
# tool that is run over the demo can resolve, let alone signal, a process of this machine.
FIRST_PID = 5_000_000

_MOST_PROCESSES = 16

# The ids that the driver gives to GPU instances, by the number of slices.
_GPU_INSTANCE_IDS = {7: (0,), 4: (1, 2), 3: (1, 2), 2: (3, 4, 5), 1: (7, 8, 9, 10, 11, 12, 13)}


class MigInstance(msgspec.Struct, frozen=True):
    """A MIG device: its place in the board's list, its GPU and compute instance ids, profile and UUID."""

    slot: int
    gpu_instance: int
    compute_instance: int
    profile: MigProfile
    uuid: str


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod of a job. ``node`` is empty while it waits; times are seconds after the scenario's start."""

    namespace: str
    name: str
    uid: str
    owner_kind: str
    owner: str
    node: str
    container: str
    resource: str
    quantity: int
    start_s: float
    end_s: float
    user: str
    command: str

    def running(self, t: float) -> bool:
        """Say whether its containers run at ``t``."""
        return bool(self.node) and self.start_s <= t < self.end_s


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """A process on a GPU; ``kind`` is C (compute), G (graphics) or M (compute under MPS)."""

    pid: int
    kind: str
    pod: Pod
    memory_mib: float


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What one pod does to one GPU or MIG instance.

    ``level`` is how busy it keeps what it was given, scaled down so that sharers fit together; ``part`` is
    the part of the board that this is: 1, or the slices of a MIG instance out of seven.
    """

    pod: Pod
    profile: LoadProfile
    level: float
    memory_mib: float
    processes: tuple[Process, ...]
    gpu_instance: int | None = None
    part: float = 1.0

    def active(self, t: float) -> bool:
        """Say whether it runs at ``t``."""
        return self.pod.start_s <= t < self.pod.end_s

    def active_s(self, t: float, since: float) -> float:
        """Return for how many seconds, counted from ``since``, it has run up to ``t``."""
        return max(0.0, min(t, self.pod.end_s) - max(self.pod.start_s, since))


class Gpu:
    """One board: identity, what runs on it over time, and the faults that strike it."""

    __slots__ = (
        "bus_id",
        "faults",
        "index",
        "layouts",
        "loads",
        "minor",
        "model",
        "node",
        "seed",
        "serial",
        "uuid",
    )

    def __init__(self, node: "Node", index: int, seed: int) -> None:
        self.node = node
        self.index = index
        self.minor = index
        self.model: GpuModel = node.model
        self.seed = noise.fold(seed, node.name, index)
        self.uuid = f"GPU-{noise.uuid(self.seed)}"
        self.serial = str(1_320_000_000_000 + noise.mix(self.seed) % 9_999_999_999)
        # The boards of one host spread over the buses of several root complexes.
        self.bus_id = f"{node.group.pci_domain:08X}:{(0x1B + 0x11 * index) % 256:02X}:00.0"
        self.loads: list[Load] = []
        self.faults: tuple[GpuFault, ...] = ()
        self.layouts: tuple[tuple[float, tuple[MigInstance, ...]], ...] = ()

    def instances(self, t: float) -> tuple[MigInstance, ...]:
        """Return the MIG devices at ``t``; empty where MIG is off."""
        current: tuple[MigInstance, ...] = ()
        for at_s, layout in self.layouts:
            if t >= at_s:
                current = layout
        return current


class Node:
    """One host with its GPUs and pods. ``instance`` is the address that Prometheus scrapes."""

    __slots__ = (
        "exporter_pod",
        "faults",
        "gpus",
        "group",
        "index",
        "instance",
        "model",
        "name",
        "pods",
        "seed",
    )

    def __init__(self, group: NodeGroup, name: str, index: int, seed: int) -> None:
        self.group = group
        self.name = name
        self.index = index
        self.model = MODELS[group.model]
        self.seed = noise.fold(seed, name)
        self.instance = f"10.{64 + index // 65536}.{index // 256 % 256}.{index % 256}:9400"
        self.exporter_pod = f"nvidia-dcgm-exporter-{noise.hexadecimal(noise.mix(self.seed ^ 7), 5)}"
        self.faults: tuple[AnyFault, ...] = ()
        self.pods: list[Pod] = []
        self.gpus = [Gpu(self, number, seed) for number in range(group.gpus)]


class World:
    """The cluster of a scenario for a seed; see the module's docstring."""

    def __init__(self, scenario: Scenario, seed: int = 0) -> None:
        self.scenario = scenario
        self.seed = seed
        self.nodes: list[Node] = []
        for group in scenario.nodes:
            for number in range(group.first, group.first + group.count):
                self.nodes.append(Node(group, group.name.format(n=number), len(self.nodes), seed))
        self.by_name = {node.name: node for node in self.nodes}
        self._attach_faults()
        for node in self.nodes:
            for gpu in node.gpus:
                gpu.layouts = _layouts(gpu)
        self.waiting: list[Pod] = []
        for job in scenario.jobs:
            self._place(job)
        for gpu in self.gpus():
            _scale(gpu)

    def gpus(self) -> Iterator[Gpu]:
        """Iterate over all GPUs, node by node."""
        for node in self.nodes:
            yield from node.gpus

    def pods(self) -> Iterator[Pod]:
        """Iterate over all pods, the waiting ones last."""
        for node in self.nodes:
            yield from node.pods
        yield from self.waiting

    def _attach_faults(self) -> None:
        for fault in self.scenario.faults:
            for node in self._matching(fault.node):
                node.faults += (fault,)
                if isinstance(fault, GpuFault):
                    for gpu in node.gpus:
                        if fault.strikes(gpu.index):
                            gpu.faults += (fault,)

    def _matching(self, pattern: str) -> list[Node]:
        if pattern in self.by_name:
            return [self.by_name[pattern]]
        return [node for node in self.nodes if fnmatch.fnmatchcase(node.name, pattern)]

    def _place(self, job: JobGroup) -> None:
        matching = {node.index: node for pattern in job.nodes for node in self._matching(pattern)}
        ordinal = 0
        for node in matching.values():
            if noise.unit(noise.fold(node.seed, job.namespace, job.name), 1) >= job.share:
                continue
            for _ in range(job.pods_per_node):
                self._place_pod(job, node, ordinal)
                ordinal += 1

    def _place_pod(self, job: JobGroup, node: Node, ordinal: int) -> None:
        pod = _pod(job, node.name, noise.fold(self.seed, job.namespace, job.name, ordinal), ordinal)
        places = _mig_place(job, node, pod) if job.mig else _whole_place(job, node, pod)
        if not places:
            if job.waits:
                self.waiting.append(msgspec.structs.replace(pod, node=""))
            return
        node.pods.append(pod)
        for gpu, instance in places:
            gpu.loads.append(_load(job, pod, gpu, instance))


def _pod(job: JobGroup, node: str, seed: int, ordinal: int) -> Pod:
    tail = noise.hexadecimal(seed, 5)
    owner, name = {
        "Deployment": (f"{job.name}-{noise.hexadecimal(noise.fold(job.name), 9)}", ""),
        "StatefulSet": (job.name, f"{job.name}-{ordinal}"),
        "PyTorchJob": (job.name, f"{job.name}-worker-{ordinal}"),
        "Job": (job.name, ""),
        "Pod": ("", f"{job.name}-{ordinal}" if ordinal else job.name),
    }[job.owner_kind]
    return Pod(
        namespace=job.namespace,
        name=name or f"{owner}-{tail}",
        uid=noise.uuid(noise.mix(seed)),
        owner_kind="ReplicaSet" if job.owner_kind == "Deployment" else job.owner_kind,
        owner=owner,
        node=node,
        container=job.container,
        resource=f"nvidia.com/mig-{job.mig}" if job.mig else "nvidia.com/gpu",
        quantity=len(job.indices) if job.indices is not None else job.gpus,
        start_s=job.start_s,
        end_s=math.inf if job.duration_s is None else job.start_s + job.duration_s,
        user=job.user,
        command=job.command,
    )


def _overlaps(load: Load, pod: Pod) -> bool:
    return load.pod.start_s < pod.end_s and pod.start_s < load.pod.end_s


def _whole_place(job: JobGroup, node: Node, pod: Pod) -> list[tuple[Gpu, MigInstance | None]]:
    wanted = node.gpus if job.indices is None else [gpu for gpu in node.gpus if gpu.index in job.indices]
    free = [
        gpu
        for gpu in wanted
        if not gpu.instances(pod.start_s) and sum(_overlaps(load, pod) for load in gpu.loads) < node.group.replicas
    ]
    # Time-sliced replicas fill the emptiest GPU first; without sharing all free ones are equally empty.
    free.sort(key=lambda gpu: (sum(_overlaps(load, pod) for load in gpu.loads), gpu.index))
    if len(free) < pod.quantity:
        return []
    return [(gpu, None) for gpu in free[: pod.quantity]]


def _mig_place(job: JobGroup, node: Node, pod: Pod) -> list[tuple[Gpu, MigInstance | None]]:
    free: list[tuple[Gpu, MigInstance | None]] = []
    for gpu in node.gpus:
        taken = {load.gpu_instance for load in gpu.loads if _overlaps(load, pod)}
        free += [
            (gpu, instance)
            for instance in gpu.instances(max(pod.start_s, 0.0))
            if instance.profile.name == job.mig and instance.gpu_instance not in taken
        ]
    return free[: pod.quantity] if len(free) >= pod.quantity else []


def _load(job: JobGroup, pod: Pod, gpu: Gpu, instance: MigInstance | None) -> Load:
    profile = PROFILES[job.load]
    capacity = instance.profile.memory_mib if instance else gpu.model.memory_mib - gpu.model.reserved_mib
    share = profile.memory if job.memory is None else job.memory
    memory = capacity * share / (1 if instance else gpu.node.group.replicas)
    kind = "M" if job.mps else ("G" if profile.graphics else "C")
    # Pods are numbered as they are placed, and each has room for its processes on every GPU of the node.
    first = FIRST_PID + (len(gpu.node.pods) * 32 + gpu.index) * _MOST_PROCESSES
    processes = tuple(
        Process(pid=first + number, kind=kind, pod=pod, memory_mib=memory / job.processes_per_gpu)
        for number in range(job.processes_per_gpu)
    )
    return Load(
        pod=pod,
        profile=profile,
        level=profile.level,
        memory_mib=memory,
        processes=processes,
        gpu_instance=instance.gpu_instance if instance else None,
        part=instance.profile.slices / 7.0 if instance else 1.0,
    )


def _scale(gpu: Gpu) -> None:
    """Scale the levels of pods that share a board at one time, so that together they never pass full load."""
    if len(gpu.loads) < 2:
        return
    totals = [sum(one.level * one.part for one in gpu.loads if _overlaps(one, load.pod)) for load in gpu.loads]
    gpu.loads = [
        msgspec.structs.replace(load, level=load.level / max(1.0, total))
        for load, total in zip(gpu.loads, totals, strict=True)
    ]


def _layouts(gpu: Gpu) -> tuple[tuple[float, tuple[MigInstance, ...]], ...]:
    group = gpu.node.group
    layouts: list[tuple[float, tuple[MigInstance, ...]]] = []
    if group.mig and (group.mig_gpus is None or gpu.index in group.mig_gpus):
        layouts.append((-math.inf, _partition(gpu, group.mig, 0)))
    changes = sorted((fault for fault in gpu.faults if isinstance(fault, MigLayout)), key=lambda fault: fault.at_s)
    for number, change in enumerate(changes, start=1):
        before = layouts[-1][1] if layouts else ()
        layouts.append((change.at_s, _partition(gpu, change.profiles, number)))
        if change.until_s is not None:
            layouts.append((change.until_s, before))
    return tuple(layouts)


def _partition(gpu: Gpu, names: tuple[str, ...], generation: int) -> tuple[MigInstance, ...]:
    used: set[int] = set()
    instances: list[MigInstance] = []
    for slot, name in enumerate(names):
        profile = gpu.model.profile(name)
        if profile is None:
            continue
        number = next(i for i in _GPU_INSTANCE_IDS[profile.slices] if i not in used)
        used.add(number)
        uuid = f"MIG-{noise.uuid(noise.fold(gpu.seed, 'mig', generation, number))}"
        instances.append(MigInstance(slot, number, 0, profile, uuid))
    return tuple(instances)
