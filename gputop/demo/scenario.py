"""Scenario files: which nodes there are, which jobs run on them, and what goes wrong when.

A scenario is TOML; docs/demo.md describes the format. It is decoded into the structs below, and anything it
may not say (an unknown key, a model that does not exist, a glob that meets no node) is refused with the
file and the key.
"""

import fnmatch
from pathlib import Path
from typing import Literal

import msgspec

from gputop.demo.faults import AnyFault, MigLayout
from gputop.demo.load import PROFILES
from gputop.demo.models import MODELS

FOLDER = Path(__file__).parent / "scenarios"
DEFAULT = "default"

Exporter = Literal["dcgm-2.1", "dcgm-3.3", "dcgm-4.5", "dcgm-4.6", "dcgm-4.9", "nvidia-gpu-exporter", "none"]


class ScenarioError(Exception):
    """A scenario file that cannot be used; the message names the file and the key."""


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nodes of one kind.

    ``name`` is a format with the number as ``{n}`` (``"gpu-{n:03}"``), counted from ``first``. ``driver`` and
    ``cuda`` are versions. ``mig`` cuts every GPU (or those at ``mig_gpus``) into these profiles. ``replicas``
    above 1 is time slicing: so many pods may share a GPU. ``pod_labels`` says how the exporter's pod labels
    reach Prometheus: plain (honorLabels), exported (``exported_pod``, the chart's default) or none.
    ``uptime_s`` is the age of the counters at the scenario's start.
    """

    name: str
    count: int = 1
    first: int = 1
    model: str = "h100"
    gpus: int = 8
    driver: str = "570.133.20"
    cuda: str = "12.8"
    exporter: Exporter = "dcgm-4.5"
    pod_labels: Literal["plain", "exported", "none"] = "exported"
    optional_metrics: bool = True
    mig: tuple[str, ...] = ()
    mig_gpus: tuple[int, ...] | None = None
    replicas: int = 1
    persistence: bool = True
    uptime_s: float = 800_000.0
    pci_domain: int = 0
    memory_gib: int = 2048


class JobGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pods of one workload: so many on each node that matches, each with so many GPUs.

    ``share`` is the part of the matching nodes that runs it, chosen by the seed. ``indices`` pins GPUs;
    without it a pod takes the lowest that are free for its whole time. Where there are too few it waits
    without a node, or is not made at all with ``waits`` false. ``mig`` asks for an instance of a profile
    instead of whole GPUs. ``load`` is a profile of :data:`gputop.demo.load.PROFILES`. ``memory`` is the part
    of the GPU memory that it holds.
    """

    name: str
    namespace: str = "default"
    owner_kind: Literal["Job", "Deployment", "StatefulSet", "PyTorchJob", "Pod"] = "Job"
    nodes: tuple[str, ...] = ("*",)
    share: float = 1.0
    pods_per_node: int = 1
    gpus: int = 1
    indices: tuple[int, ...] | None = None
    waits: bool = True
    mig: str | None = None
    start_s: float = -3600.0
    duration_s: float | None = None
    load: str = "train"
    memory: float | None = None
    user: str = "root"
    command: str = "python3 train.py"
    processes_per_gpu: int = 1
    container: str = "main"
    mps: bool = False


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole scenario; ``scrape_interval_s`` is the grid on which Prometheus takes its samples."""

    title: str
    description: str = ""
    cluster: str = "demo"
    scrape_interval_s: float = 15.0
    kube_state_metrics: bool = True
    nodes: tuple[NodeGroup, ...]
    jobs: tuple[JobGroup, ...] = ()
    faults: tuple[AnyFault, ...] = ()


def names() -> list[str]:
    """Return the names of the scenarios that come with the program."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(source: str) -> Scenario:
    """Load a scenario by its built-in name or the path of a TOML file.

    Raises:
        ScenarioError: The file cannot be read, is not TOML, or says something that a scenario cannot say.
    """
    path = Path(source) if source.endswith(".toml") else FOLDER / f"{source}.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(names())
        raise ScenarioError(f"{path}: cannot be read ({error}); built-in scenarios: {known}") from error
    return parse(text, str(path))


def parse(text: str, origin: str) -> Scenario:
    """Decode the text of a scenario; ``origin`` stands in front of every error message.

    Raises:
        ScenarioError: As for :func:`load`.
    """
    try:
        scenario = msgspec.toml.decode(text, type=Scenario)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{origin}: {error}") from error
    except msgspec.DecodeError as error:
        raise ScenarioError(f"{origin}: not TOML: {error}") from error
    _check(scenario, origin)
    return scenario


def _check(scenario: Scenario, origin: str) -> None:
    if not scenario.nodes:
        raise ScenarioError(f"{origin}: no [[nodes]]")
    if scenario.scrape_interval_s <= 0:
        raise ScenarioError(f"{origin}: scrape_interval_s must be above 0")
    for number, group in enumerate(scenario.nodes):
        _check_nodes(group, f"{origin}: nodes[{number}]")
    hosts = node_names(scenario)
    doubles = {name for name in hosts if hosts.count(name) > 1} if len(hosts) < 4096 else set()
    if doubles:
        raise ScenarioError(f"{origin}: nodes: name {min(doubles)!r} occurs twice")
    for number, job in enumerate(scenario.jobs):
        _check_job(job, hosts, f"{origin}: jobs[{number}]")
    for number, fault in enumerate(scenario.faults):
        if not fnmatch.filter(hosts, fault.node):
            raise ScenarioError(f"{origin}: faults[{number}].node: {fault.node!r} matches no node")
        if isinstance(fault, MigLayout):
            models = {group.model for group in scenario.nodes if _any_match(group, fault.node)}
            _check_mig(fault.profiles, models, f"{origin}: faults[{number}].profiles")


def _check_nodes(group: NodeGroup, where: str) -> None:
    if group.model not in MODELS:
        raise ScenarioError(f"{where}.model: {group.model!r} is none of {', '.join(MODELS)}")
    if group.count < 1 or group.gpus < 0 or group.replicas < 1:
        raise ScenarioError(f"{where}: count and replicas must be at least 1, gpus at least 0")
    try:
        first, second = group.name.format(n=1), group.name.format(n=2)
    except (KeyError, IndexError, ValueError) as error:
        raise ScenarioError(f"{where}.name: {group.name!r} is no format with {{n}}: {error!r}") from error
    if group.count > 1 and first == second:
        raise ScenarioError(f"{where}.name: {group.name!r} needs {{n}}, as count is {group.count}")
    _check_mig(group.mig, {group.model}, f"{where}.mig")


def _check_mig(profiles: tuple[str, ...], models: set[str], where: str) -> None:
    for model in sorted(models):
        for profile in profiles:
            if MODELS[model].profile(profile) is None:
                raise ScenarioError(f"{where}: model {model!r} has no MIG profile {profile!r}")
        slices = sum(found.slices for name in profiles if (found := MODELS[model].profile(name)))
        if slices > 7:
            raise ScenarioError(f"{where}: {slices} slices, a GPU has 7")


def _check_job(job: JobGroup, hosts: list[str], where: str) -> None:
    if job.load not in PROFILES:
        raise ScenarioError(f"{where}.load: {job.load!r} is none of {', '.join(PROFILES)}")
    if not 1 <= job.processes_per_gpu <= 16:
        raise ScenarioError(f"{where}.processes_per_gpu: must be between 1 and 16")
    if not 0.0 <= job.share <= 1.0:
        raise ScenarioError(f"{where}.share: must be between 0 and 1")
    for pattern in job.nodes:
        if not fnmatch.filter(hosts, pattern):
            raise ScenarioError(f"{where}.nodes: {pattern!r} matches no node")


def _any_match(group: NodeGroup, pattern: str) -> bool:
    return bool(fnmatch.filter(_group_names(group), pattern))


def _group_names(group: NodeGroup) -> list[str]:
    return [group.name.format(n=number) for number in range(group.first, group.first + group.count)]


def node_names(scenario: Scenario) -> list[str]:
    """Return the names of all nodes in order."""
    return [name for group in scenario.nodes for name in _group_names(group)]


def resized(scenario: Scenario, nodes: int) -> Scenario:
    """Return the scenario with so many nodes in all.

    The largest group grows or shrinks; where that cannot do it, groups are dropped from the end.

    Raises:
        ScenarioError: Fewer than one node is asked for.
    """
    if nodes < 1:
        raise ScenarioError(f"{nodes} nodes: at least 1 is needed")
    groups = list(scenario.nodes)
    largest = max(range(len(groups)), key=lambda number: groups[number].count)
    others = sum(group.count for group in groups) - groups[largest].count
    if nodes > others:
        groups[largest] = msgspec.structs.replace(groups[largest], count=nodes - others)
        return msgspec.structs.replace(scenario, nodes=tuple(groups))
    kept: list[NodeGroup] = []
    for group in groups:
        room = nodes - sum(one.count for one in kept)
        if room > 0:
            kept.append(msgspec.structs.replace(group, count=min(group.count, room)))
    return msgspec.structs.replace(scenario, nodes=tuple(kept))
