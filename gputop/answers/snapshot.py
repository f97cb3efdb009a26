"""The schema gputop.snapshot/1."""

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import Struct, defstruct

from gputop.answers.quantity import BOARD_QUANTITIES, NOBODY, NODE_QUANTITIES, Quantity, answer
from gputop.fleet import GpuState, NodeState, View, WorkloadState
from gputop.fleet.allocation import allocations, count, is_cordoned, is_ready, tells_of_workloads
from gputop.fleet.holding import holders, process_holder
from gputop.fleet.mig import instances_held, is_mig
from gputop.fleet.precedence import disagreements
from gputop.model.reading import Absent, Origin
from gputop.model.status import SourceStatus

SCHEMA: Final = "gputop.snapshot/1"


class SourceAnswer(Struct, frozen=True):
    """A source: what it is, how it is, why, and how old its last word is."""

    name: str
    kind: str
    state: str
    reason: str
    age_s: float | None
    since: float
    found: str
    target: str


class HolderAnswer(Struct, frozen=True):
    """A workload on a GPU, who names it and how that is known."""

    scheduler: str
    namespace: str
    name: str
    container: str
    uid: str
    how: str
    source: str


class JoinAnswer(Struct, frozen=True):
    """Why a source's facts are on this row."""

    source: str
    how: str


class DisagreementAnswer(Struct, frozen=True):
    """Two sources that cannot both be right."""

    quantity: str
    value: float | str | None
    source: str
    other_value: float | str | None
    other_source: str


class XidAnswer(Struct, frozen=True):
    """An Xid and how much is known of it; `time_known` is false when it stood there from the start."""

    xid: int
    kind: str
    source: str
    first_seen: float
    last_seen: float
    count: int
    window_s: float
    time_known: bool
    text: str


class DeviceAnswer(Struct, frozen=True):
    """One device resource of a node as its scheduler counts it."""

    resource: str
    advertised: float | None
    healthy: float | None
    used: float | None
    free: float | None


class TroubleAnswer(Struct, frozen=True):
    """A trouble of a node."""

    code: str
    severity: str
    text: str
    source: str
    since: float


class WorkloadAnswer(Struct, frozen=True):
    """A workload that holds or wants devices."""

    cluster: str
    scheduler: str
    namespace: str
    name: str
    uid: str
    node: str
    phase: str
    owner: str
    wants: dict[str, float]
    source: str
    age_s: float


class ProcessAnswer(Struct, frozen=True):
    """A process on a GPU; null where it is not told, with the reason in `reasons`."""

    node: str
    gpu: str
    instance: str
    pid: int
    kinds: str
    user: str | None
    command: str | None
    memory_mib: float | None
    sm_percent: float | None
    holder: HolderAnswer | None
    holder_reason: str
    reasons: dict[str, str]
    source: str
    age_s: float


class _GpuBase(Struct, frozen=True):
    node: str
    cluster: str
    index: int | None
    uuid: str
    instance: str
    mig_uuid: str
    bus_id: str
    state: str
    state_reason: str
    state_since: float | None
    age_s: float | None


class _NodeBase(Struct, frozen=True):
    name: str
    cluster: str
    names: list[str]
    state: str
    cordoned: bool | None
    advertised: float | None
    healthy: float | None
    used: float | None
    free: float | None
    counted: str
    devices: list[DeviceAnswer]
    gpus_listed: int
    troubles: list[TroubleAnswer]


class _GpuTail(Struct, frozen=True):
    mig_instances: int
    mig_instances_held: int
    holders: list[HolderAnswer]
    processes_reason: str
    xids: list[XidAnswer]
    joins: list[JoinAnswer]
    disagreements: list[DisagreementAnswer]


def _with_quantities(name: str, base: type[Struct], quantities: tuple[str, ...], tail: type[Struct] | None) -> Any:  # noqa: ANN401 - a type made here
    """Return `base` with a field for every quantity: the table of quantities is the schema."""
    fields: list[tuple[str, Any]] = [(f.name, f.type) for f in msgspec.structs.fields(base)]
    fields += [(q, Quantity) for q in quantities]
    fields += [(f.name, f.type) for f in msgspec.structs.fields(tail)] if tail else []
    return defstruct(name, fields, frozen=True, kw_only=True)


_GPU: Final = _with_quantities("GpuAnswer", _GpuBase, BOARD_QUANTITIES, _GpuTail)
_NODE: Final = _with_quantities("NodeAnswer", _NodeBase, NODE_QUANTITIES, None)
# A type checker cannot see fields that are made from a table; at run time they are the schema.
if TYPE_CHECKING:
    GpuAnswer: TypeAlias = Any
    NodeAnswer: TypeAlias = Any
else:
    GpuAnswer = _GPU
    NodeAnswer = _NODE


class Snapshot(Struct, frozen=True):
    """The fleet at one moment.

    Attributes:
        schema: "gputop.snapshot/1".
        at: The moment, seconds since the epoch; a bundle's is its capture time.
        mark: "DEMO …" or "BUNDLE" when this is not the machine's own; else "".
        sources: What was read.
        nodes: Nodes.
        gpus: Boards and MIG instances.
        workloads: Workloads that hold or want devices.
        processes: Processes on GPUs.
        incidents: Empty in this version.
    """

    schema: str
    at: float
    mark: str
    sources: list[SourceAnswer]
    nodes: list[NodeAnswer]
    gpus: list[GpuAnswer]
    workloads: list[WorkloadAnswer]
    processes: list[ProcessAnswer]
    incidents: list[dict[str, str]]


def make(view: View, now: float, mark: str) -> Snapshot:
    """Return the answer for a view."""
    keys = sorted(view.nodes)
    return Snapshot(
        schema=SCHEMA,
        at=round(now, 3),
        mark=mark,
        sources=[_source(s, now) for s in view.sources.values()],
        nodes=[_node(view, view.nodes[k], now) for k in keys],
        gpus=[_gpu(view, g, now) for k in keys for g in view.on_node(k)],
        workloads=[_workload(w, now) for _, w in sorted(view.workloads.items())],
        processes=[p for k in keys for g in view.on_node(k) for p in _processes(g, now)],
        incidents=[],
    )


def _source(status: SourceStatus, now: float) -> SourceAnswer:
    age = None if status.last_data_at is None else round(max(0.0, now - status.last_data_at), 1)
    return SourceAnswer(
        status.name, status.kind, status.state, status.reason, age, status.since, status.found, status.target
    )


def node_state(node: NodeState) -> str:
    """Return the state of a node in one word: what the scheduler says, else what the sources can."""
    if is_ready(node) is False:
        return "not_ready"
    if is_cordoned(node):
        return "cordoned"
    if node.coverage and all(c.silent for c in node.coverage):
        return "silent"
    if any(t.fact.severity != "info" for t in node.troubles):
        return "degraded"
    return "ok" if node.coverage else "unknown"


def _node(view: View, node: NodeState, now: float) -> Any:  # noqa: ANN401 - made from the table of quantities
    placed = view.placed.get(node.key, ())
    devices = allocations(node, placed, workloads_told=tells_of_workloads(view, node))
    boards = sum(1 for g in view.on_node(node.key) if not g.key.instance)
    counted = count(devices, boards)
    main = counted.shown
    return _NODE(
        name=node.key.host,
        cluster=node.key.cluster,
        names=list(dict.fromkeys(n.name for n in node.names)),
        state=node_state(node),
        cordoned=is_cordoned(node),
        advertised=main.advertised if main else None,
        healthy=main.healthy if main else None,
        used=main.used if main else None,
        free=main.free if main else None,
        counted=counted.unit,
        devices=[DeviceAnswer(d.resource, d.advertised, d.healthy, d.used, d.free) for d in devices],
        gpus_listed=boards,
        troubles=[TroubleAnswer(t.fact.code, t.fact.severity, t.fact.text, t.source, t.since) for t in node.troubles],
        **{q: answer(node.readings.get(q), now) for q in NODE_QUANTITIES},
    )


def _gpu(view: View, gpu: GpuState, now: float) -> Any:  # noqa: ANN401 - made from the table of quantities
    seen = gpu.last_seen
    instances = instances_held(view.instances(gpu.key) if is_mig(gpu) else ())
    return _GPU(
        node=gpu.key.host,
        cluster=gpu.key.cluster,
        index=gpu.index if gpu.index >= 0 else None,
        uuid=gpu.key.uuid if gpu.key.uuid.startswith("GPU-") else "",
        instance=gpu.key.instance,
        mig_uuid=gpu.mig_uuid,
        bus_id=gpu.bus_id,
        state=gpu.presence,
        state_reason=gpu.presence_reason,
        state_since=gpu.presence_since or None,
        age_s=round(max(0.0, now - seen), 1) if seen else None,
        **{q: answer(gpu.readings.get(q), now) if q in gpu.readings else NOBODY for q in BOARD_QUANTITIES},
        mig_instances=instances.of,
        mig_instances_held=instances.held,
        processes_reason=_processes_reason(gpu),
        holders=[
            HolderAnswer(h.scheduler, h.namespace, h.name, h.container, h.uid, h.how, source)
            for h, source in holders(gpu)
        ],
        xids=[
            XidAnswer(x.xid, x.kind, x.source, x.first_seen, x.last_seen, x.count, x.window_s, not x.from_start, x.text)
            for x in gpu.xids
        ],
        joins=[JoinAnswer(j.source, j.how) for j in gpu.joins],
        disagreements=[
            DisagreementAnswer(
                d.quantity,
                d.counts.number if d.counts.number is not None else d.counts.text,
                d.counts.origin.source,
                d.other.number if d.other.number is not None else d.other.text,
                d.other.origin.source,
            )
            for d in disagreements(gpu.readings, gpu.rivals, now)
        ],
    )


def _workload(state: WorkloadState, now: float) -> WorkloadAnswer:
    w = state.workload
    return WorkloadAnswer(
        w.cluster, w.scheduler, w.namespace, w.name, w.uid, w.node, w.phase, w.owner, dict(w.wants),
        state.origin.source, _age(state.origin, now),
    )  # fmt: skip


def _age(origin: Origin, now: float) -> float:
    return round(max(0.0, now - origin.at), 1)


def _processes_reason(gpu: GpuState) -> str:
    """Return why nobody tells the processes on a GPU, "" when somebody does, be it that there is none."""
    refusals = [t.processes.reason for t in gpu.processes if isinstance(t.processes, Absent)]
    if len(refusals) < len(gpu.processes):
        return ""
    return refusals[0] if refusals else "no source lists processes"


def _processes(gpu: GpuState, now: float) -> list[ProcessAnswer]:
    table = next((t for t in gpu.processes if not isinstance(t.processes, Absent)), None)
    if table is None or isinstance(table.processes, Absent):
        return []
    answers: list[ProcessAnswer] = []
    for p in table.processes:
        told = {"user": p.user, "command": p.command, "memory_mib": p.memory_mib, "sm_percent": p.sm_percent}
        reasons = {name: v.reason for name, v in told.items() if isinstance(v, Absent)}
        h = process_holder(gpu, p)
        holder = h and HolderAnswer(h.scheduler, h.namespace, h.name, h.container, h.uid, h.how, table.origin.source)
        answers.append(
            ProcessAnswer(
                node=gpu.key.host,
                gpu=gpu.key.uuid,
                instance=gpu.key.instance,
                pid=p.pid,
                kinds=p.kinds,
                user=_known(p.user),
                command=_known(p.command),
                memory_mib=_known(p.memory_mib),
                sm_percent=_known(p.sm_percent),
                holder=holder,
                holder_reason=p.holder_reason,
                reasons=reasons,
                source=table.origin.source,
                age_s=_age(table.origin, now),
            )
        )
    return answers


def _known(value: Any) -> Any:  # noqa: ANN401 - a number, a text or an absence
    return None if isinstance(value, Absent) else value
