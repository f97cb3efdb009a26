"""Workloads: what holds a GPU or wants one."""

from msgspec import Struct


class Holder(Struct, frozen=True, gc=False):
    """A workload that holds a GPU, as a source names it. Empty fields are not told.

    Attributes:
        scheduler: "kubernetes", "nomad", "slurm" or "container".
        namespace: Namespace.
        name: Pod, allocation or job name.
        container: Container or task.
        uid: Pod UID or allocation id.
        how: How it is known: "process cgroup", "exporter label", "device ids of the allocation", …
    """

    scheduler: str
    namespace: str = ""
    name: str = ""
    container: str = ""
    uid: str = ""
    how: str = ""

    @property
    def label(self) -> str:
        """Short name for a column: "namespace/name", else the id."""
        if self.name:
            return f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.scheduler} {self.uid[:13]}" if self.uid else self.scheduler


class Workload(Struct, frozen=True, gc=False):
    """A pod or allocation that holds or wants devices.

    Attributes:
        cluster: Cluster, "" when not told.
        scheduler: "kubernetes" or "nomad".
        namespace: Namespace.
        name: Name.
        uid: Pod UID or allocation id; unique with the cluster.
        node: Node it is placed on, "" when it is not placed.
        phase: The scheduler's own word: "Pending", "Running", …; "" when not told.
        wants: Number of each device resource asked for, by resource name.
        owner: "Kind/name" of its owner, "" when not told.
        since: When it was created, seconds since the epoch; None when not told.
    """

    cluster: str
    scheduler: str
    namespace: str
    name: str
    uid: str
    node: str
    phase: str
    wants: tuple[tuple[str, float], ...]
    owner: str = ""
    since: float | None = None

    @property
    def holds(self) -> bool:
        """Whether it counts against its node: placed, and neither ended nor failed."""
        return bool(self.node) and self.phase in {"Pending", "Running"}
