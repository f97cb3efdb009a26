"""What an applied batch changed, so that no pane has to look through the whole fleet."""

from msgspec import Struct, field

from gputop.model.identity import GpuKey, NodeKey


class Changes(Struct):
    """Identities whose facts changed since the changes were last taken.

    Attributes:
        gpus: GPUs with a changed value, presence, process or holder.
        nodes: Nodes with a change of their own or of one of their GPUs.
        workloads: (cluster, uid) of workloads that changed, came or went.
        sources: Names of sources whose status changed.
        replaced: Old key to new key of GPUs that turned out to be another row, or None for a row that is
            gone; a selection follows it.
        rows: Whether nodes or GPUs came, went or got another key.
    """

    gpus: set[GpuKey] = field(default_factory=set[GpuKey])
    nodes: set[NodeKey] = field(default_factory=set[NodeKey])
    workloads: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    sources: set[str] = field(default_factory=set[str])
    replaced: dict[GpuKey, GpuKey | None] = field(default_factory=dict[GpuKey, GpuKey | None])
    rows: bool = False

    def __bool__(self) -> bool:
        return bool(self.gpus or self.nodes or self.workloads or self.sources or self.rows)
