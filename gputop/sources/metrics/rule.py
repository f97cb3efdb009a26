"""What a metric name means: the shape of a line in the tables of names."""

from enum import StrEnum

from msgspec import Struct


class Role(StrEnum):
    """What the number of a series is used for."""

    VALUE = "value"
    """A value of `MetricRule.quantity`."""
    XID_LAST = "xid_last"
    """The number of the last Xid, which never goes back to 0 by itself (NVIDIA/dcgm-exporter#190)."""
    XID_WINDOW = "xid_window"
    """A count within a sliding window, the Xid in a label."""
    XID_COUNT = "xid_count"
    """A count since the exporter's start, the Xid in a label."""
    REASON = "reason"
    """A 0/1 gauge for one clock-event reason; `scale` is its bit in the NVML bitmask."""
    INFO = "info"
    """A constant 1 whose labels carry identity."""
    HEALTH = "health"
    """How the exporter itself is."""
    UP = "up"
    """Whether Prometheus could scrape a target."""
    KUBERNETES = "kubernetes"
    """A series of kube-state-metrics; its own decoder reads it."""


class MetricRule(Struct, frozen=True, gc=False):
    """One line of a table of metric names.

    Attributes:
        name: Metric name.
        exporter: Family: "dcgm", "nvidia_gpu_exporter", "nvitop", "amd", "gke", "openshift",
            "kube-state-metrics" or "prometheus".
        quantity: Id of a quantity; "" where the role is not a quantity of its own.
        scale: Factor from the metric's unit to the quantity's.
        group: What it is read for: "core", "memory", "clocks", "power", "health", "errors", "profiling",
            "nvlink", "pcie", "identity", "workloads", "nodes" or "exporter".
        role: What the number is used for.
        order: Among several metrics for one quantity of one GPU the lowest counts.
        percent_if_above_one: It is told as a ratio, but by some builds as a percentage under the same name
            (DCGM_FI_DEV_GPU_UTIL_RATIO in DCGM 4.6): one sample above 1.0 makes the exporter's series
            percentages.
        on_instances: Its number on a row of a MIG instance is of the instance. Otherwise the number is the
            board's, or of nobody (`board_on_instances`).
        board_on_instances: Its number on a row of a MIG instance is the board's; else it is dropped there.
    """

    name: str
    exporter: str
    quantity: str = ""
    scale: float = 1.0
    group: str = "core"
    role: Role = Role.VALUE
    order: int = 0
    percent_if_above_one: bool = False
    on_instances: bool = False
    board_on_instances: bool = True
