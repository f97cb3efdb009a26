"""What is asked, as data: which names, in which groups, and how kube-state-metrics is narrowed.

One metric a request where the fleet is large: ten metrics of 10,240 GPUs in one answer are 60 MB and freeze
client and server (measured), while one is 6 MB. A small fleet is asked in a few wide requests.
"""

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from gputop.sources.metrics.names import names_wanted, rule_of
from gputop.sources.metrics.rule import Role

PROBE: Final = (
    'count by (__name__) ({__name__=~"DCGM_.+|dcgm_.+|nvidia_smi_.+|([a-zA-Z0-9]+_)?gpu_.+|accelerator_.+'
    '|process_gpu_.+|process_info_info|kubernetes_io:container_accel.+"%s})'
)

_T = TypeVar("_T")

AT_ONCE: Final = 4
"""Requests at a time: the server has 20 slots for everybody (--query.max-concurrency)."""
SMALL_FLEET: Final = 1024
"""GPUs up to which series are asked for with all their labels and many names at once."""
NAMES_AT_ONCE: Final = 10

_ALWAYS_THERE: Final = (
    ("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_UTIL"),
    ("DCGM_FI_DEV_GPU_TEMP_CELSIUS", "DCGM_FI_DEV_FB_USED_BYTES", "DCGM_FI_DEV_SM_CLOCK_HERTZ"),
    ("dcgm_gpu_temp", "dcgm_fb_used", "dcgm_gpu_utilization"),
    ("nvidia_smi_gpu_info",),
    ("gpu_temperature_C", "gpu_memory_used_MiB"),
    ("gpu_total_vram", "amd_gpu_total_vram", "gpu_gfx_activity", "amd_gpu_gfx_activity"),
    ("kubernetes_io:container_accelerator_duty_cycle",),
)
"""Metrics that nearly every GPU has, by exporter and generation of its names; the first of each that the server
has tells which GPUs there are, with all labels."""

FIRST: Final = frozenset({"utilization", "graphics_activity", "memory_used_mib", "memory_free_mib", "memory_total_mib"})
"""Quantities of the first paint."""

_GPU_RESOURCE: Final = 'resource=~".*(gpu|mig|nvidia|amd_com|habana).*"'
_WANTS: Final = f"kube_pod_container_resource_requests{{{_GPU_RESOURCE}%s}}"

KSM_QUERIES: Final = (
    ("kube_node_status_capacity", f"kube_node_status_capacity{{{_GPU_RESOURCE}%s}}"),
    ("kube_node_status_allocatable", f"kube_node_status_allocatable{{{_GPU_RESOURCE}%s}}"),
    ("kube_node_spec_unschedulable", 'kube_node_spec_unschedulable{node!=""%s}'),
    ("kube_node_status_condition", 'kube_node_status_condition{condition="Ready"%s} == 1'),
    ("kube_pod_container_resource_requests", _WANTS),
    (
        "kube_pod_status_phase",
        f'(kube_pod_status_phase{{phase!=""%s}} == 1) and on (namespace, pod) max by (namespace, pod) ({_WANTS})',
    ),
    (
        "kube_pod_owner",
        f'kube_pod_owner{{owner_kind!=""%s}} and on (namespace, pod) max by (namespace, pod) ({_WANTS})',
    ),
)
"""(name, query) of kube-state-metrics; %s stands where the user's matchers go. Only pods that ask for a
device are asked for: a cluster has many others."""


def names_for(quantities: frozenset[str] | None, present: frozenset[str] | None) -> list[str]:
    """Return the metrics to ask for.

    Args:
        quantities: Quantities that are wanted; None for all.
        present: Names that the server has, whatever prefix a site gave them; None if it did not tell.
    """
    wanted = {rule.name for rule in names_wanted(quantities) if rule.role is not Role.UP}
    if present is None:
        return sorted(wanted)
    return sorted(n for n in present if (rule := rule_of(n)) is not None and rule.name in wanted)


def matcher_part(matchers: str) -> str:
    """Return matchers as they follow others in braces."""
    return f",{matchers}" if matchers else ""


def identities(present: frozenset[str] | None) -> list[str]:
    """Return the metrics that tell which GPUs there are; where names are not known, the usual ones."""
    if present is None:
        return [names[0] for names in _ALWAYS_THERE]
    chosen = [next((n for n in names if n in present), "") for names in _ALWAYS_THERE]
    return [n for n in chosen if n] or [_ALWAYS_THERE[0][0]]


def uuid_labels(name: str) -> tuple[str, ...]:
    """Return the labels that tell a GPU's UUID in a metric's series: NVLink's rows have another than the GPU's."""
    if name.startswith("kubernetes_io:"):
        return ("accelerator_id",)
    return ("UUID", "gpu_uuid") if name.startswith("DCGM_") else ("uuid", "UUID")


def halves(name: str) -> tuple[str, str]:
    """Return two matchers that part the series of a metric: none is in both, none in neither.

    They go by the first digit of the GPU's UUID, which is as good as random.
    """
    label = uuid_labels(name)[0]
    low = '"(GPU-)?[0-7].*"'
    return f"{label}=~{low}", f"{label}!~{low}"


def chunks(items: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    """Return the items in pieces of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
