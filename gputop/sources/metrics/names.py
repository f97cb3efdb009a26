"""Which metric names gputop reads, and what each of them means."""

import re
from collections.abc import Iterable
from typing import Final

from gputop.sources.metrics.dcgm import DCGM
from gputop.sources.metrics.nvidia_smi import NVIDIA_SMI
from gputop.sources.metrics.others import AMD, OTHERS
from gputop.sources.metrics.rule import MetricRule, Role

PROCESSES: Final = "processes"
"""Stands among quantities for process lists."""

METRICS: Final[dict[str, MetricRule]] = {rule.name: rule for rule in (*DCGM, *NVIDIA_SMI, *AMD, *OTHERS)}
"""Every metric name that gputop reads, AMD's without a site's prefix."""

_AMD_BY_NAME: Final = {rule.name: rule for rule in AMD}
# AMD's exporter lets a site choose a prefix, so its names are also looked for at the end of longer ones.
_PREFIXED: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9]*_(gpu_\w+)")


def rule_of(name: str) -> MetricRule | None:
    """Return what a metric name means, or None if gputop does not read it."""
    rule = METRICS.get(name)
    if rule is not None:
        return rule
    match = _PREFIXED.fullmatch(name)
    if match is not None:
        return _AMD_BY_NAME.get(match.group(1))
    # OpenMetrics wants a counter's samples to end in _total, and some proxies add it.
    return METRICS.get(name.removesuffix("_total")) if name.startswith("DCGM_") else None


# Derived values need several metrics: the total of memory its parts, the utilisation of a MIG instance the
# activity of its graphics engine, the detection of frozen values energy and power.
_NEEDS: Final = {
    "memory_total_mib": ("memory_used_mib", "memory_free_mib", "memory_reserved_mib"),
    "memory_total_at_least_mib": ("memory_used_mib", "memory_free_mib", "memory_reserved_mib"),
    "utilization": ("graphics_activity",),
    "power_w": ("energy_j",),
}
_ALWAYS: Final = frozenset(
    {Role.XID_LAST, Role.XID_WINDOW, Role.XID_COUNT, Role.XID_TIME, Role.UP, Role.INFO, Role.COLLECT}
)


def _told_by(rule: MetricRule) -> tuple[str, ...]:
    return (PROCESSES,) if rule.role is Role.PROCESS else rule.quantities


def names_wanted(quantities: Iterable[str] | None = None) -> tuple[MetricRule, ...]:
    """Return the metrics that tell some quantities, in the order of the tables.

    Args:
        quantities: Ids of quantities, and `PROCESSES` for process lists; None for all. Xids, identity and the
            health of the exporters are always among the answer, kube-state-metrics never: ask by `group` for it.
    """
    wanted: set[str] | None = None
    if quantities is not None:
        wanted = set(quantities)
        for quantity in tuple(wanted):
            wanted.update(_NEEDS.get(quantity, ()))
    return tuple(
        rule
        for rule in METRICS.values()
        if rule.role is not Role.KUBERNETES
        and (wanted is None or rule.role in _ALWAYS or not wanted.isdisjoint(_told_by(rule)))
    )
