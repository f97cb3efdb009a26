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
    XID_TIME = "xid_time"
    """When an Xid last happened, seconds since the epoch, the Xid in a label."""
    REASON = "reason"
    """A 0/1 gauge for one clock-event reason; `scale` is its bit in NVML's bitmask."""
    CODE = "code"
    """A number that stands for a word; `MetricRule.words` has them."""
    CHOICE = "choice"
    """A value whose quantity is told by a label; `MetricRule.choices` has them."""
    PROCESS = "process"
    """A number of one process, whose id is in a label (`gputop.sources.metrics.processes`)."""
    HEALTH = "health"
    """What the exporter thinks of the GPU, by watch (`gputop.sources.metrics.judgements`)."""
    CLOCK_EVENTS = "clock_events"
    """Samples with a clock event within a sliding window, the event in a label."""
    INFO = "info"
    """A constant whose labels carry identity."""
    COLLECT = "collect"
    """1 while the exporter can read the GPUs, 0 while it serves what it read before."""
    UP = "up"
    """Whether Prometheus could scrape a target."""
    KUBERNETES = "kubernetes"
    """A series of kube-state-metrics; its own decoder reads it."""


class Doubt(StrEnum):
    """A unit that the name alone does not tell."""

    NONE = ""
    RATIO_OR_PERCENT = "ratio_or_percent"
    """DCGM 4.6 tells percentages under names in _RATIO, DCGM 4.7 ratios."""
    MEGABYTES_OR_BYTES = "megabytes_or_bytes"
    """DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL is MB/s in DCGM 4.6 and B/s in DCGM 4.7."""


class MetricRule(Struct, frozen=True, gc=False):
    """One line of a table of metric names.

    Attributes:
        name: Metric name.
        exporter: Family: "dcgm", "nvidia_gpu_exporter", "nvitop", "amd", "gke", "openshift",
            "kube-state-metrics" or "prometheus".
        quantity: Id of a quantity; "" where the role has no quantity of its own.
        scale: Factor from the metric's unit to the quantity's.
        group: What it is read for: "core", "memory", "clocks", "power", "health", "errors", "profiling",
            "nvlink", "pcie", "identity", "workloads", "nodes" or "exporter".
        role: What the number is used for.
        order: Among several metrics for one quantity of one GPU the lowest counts.
        doubt: What the name does not tell about the unit.
        instances: Its number on the row of a MIG instance means something. DCGM_FI_DEV_GPU_UTIL there is
            0 or absent whatever the instance does (NVIDIA/dcgm-exporter#105, #216).
        words: Words by number, for `Role.CODE`.
        label: The label that tells the quantity, for `Role.CHOICE`.
        choices: Quantities by the label's value, for `Role.CHOICE`.
    """

    name: str
    exporter: str
    quantity: str = ""
    scale: float = 1.0
    group: str = "core"
    role: Role = Role.VALUE
    order: int = 0
    doubt: Doubt = Doubt.NONE
    instances: bool = True
    words: tuple[tuple[float, str], ...] = ()
    label: str = ""
    choices: tuple[tuple[str, str], ...] = ()

    @property
    def quantities(self) -> tuple[str, ...]:
        """The quantities that its samples may be of."""
        return tuple(quantity for _, quantity in self.choices) or (self.quantity,)
