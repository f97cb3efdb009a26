"""Which node a host name means.

The same machine is "gpu-a03" to its kernel, "gpu-a03.example.com" to an exporter and a cloud instance name
to Kubernetes. Names are joined when they are equal, when one is the short form of exactly one other, or
when both carry the same GPUs; a name that could mean two nodes stays a node of its own.
"""

from gputop.model.identity import NodeKey, is_address, normal_host, short_host


class Hosts:
    """The names of the nodes known so far."""

    def __init__(self) -> None:
        self._exact: dict[str, set[NodeKey]] = {}
        self._short: dict[str, set[NodeKey]] = {}

    def add(self, node: NodeKey, name: str) -> None:
        """Remember that `name` means `node`."""
        host = normal_host(name)
        self._exact.setdefault(host, set()).add(node)
        self._short.setdefault(short_host(host), set()).add(node)

    def move(self, old: NodeKey, new: NodeKey) -> None:
        """Let every name of `old` mean `new`."""
        for names in (self._exact, self._short):
            for nodes in names.values():
                if old in nodes:
                    nodes.discard(old)
                    nodes.add(new)

    def forget(self, node: NodeKey) -> None:
        """Drop every name of a node."""
        for names in (self._exact, self._short):
            for nodes in names.values():
                nodes.discard(node)

    def find(self, name: str, cluster: str) -> tuple[NodeKey | None, str]:
        """Return the node that `name` means, and how that is known; (None, "") if it means none or several.

        Args:
            name: Host as a source spells it.
            cluster: Cluster the source tells; "" matches every cluster, and a node whose cluster is not
                known matches every one.
        """
        host = normal_host(name)
        exact = _in_cluster(self._exact.get(host), cluster)
        if len(exact) == 1:
            return exact[0], "host name"
        if exact or is_address(host):
            return None, ""
        short = _in_cluster(self._short.get(short_host(host)), cluster)
        # Two full names that differ are two machines, however alike their first labels are.
        fitting = [n for n in short if "." not in host or "." not in normal_host(n.host)]
        if len(fitting) == 1 and len(short) == 1:
            return fitting[0], f"short host name of {name}"
        return None, ""


def _in_cluster(nodes: set[NodeKey] | None, cluster: str) -> list[NodeKey]:
    if not nodes:
        return []
    own = [n for n in nodes if n.cluster == cluster]
    if own or not cluster:
        return own or list(nodes)
    return [n for n in nodes if not n.cluster]
