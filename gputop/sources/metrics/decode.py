"""The decoder: samples of any exporter in, facts out."""

from collections.abc import Iterable

from gputop.model.facts import Fact
from gputop.sources.metrics.sample import Sample


class Decoder:
    """Turns the samples of one source into facts.

    It remembers, for as long as the source lives: which hosts and GPUs it has listed, since when the
    energy counter of each GPU has stood still, which exporters tell percentages under a ratio's name, and
    which troubles it has told.

    Args:
        source: Name of the source, as in `Origin.source`.
        rank: Nearness to the device: 1 for an exporter, 2 for Prometheus.
        cluster: Cluster of samples that carry no cluster label.
        default_host: Host of samples that name none (an exporter read directly).
        cluster_labels: Labels that tell the cluster, the first that is there counts.
        host_labels: Labels that tell the host, tried before the usual ones.
    """

    def __init__(
        self,
        *,
        source: str,
        rank: int,
        cluster: str = "",
        default_host: str = "",
        cluster_labels: tuple[str, ...] = ("cluster",),
        host_labels: tuple[str, ...] = (),
    ) -> None:
        self._source = source
        self._rank = rank
        self._cluster = cluster
        self._default_host = default_host
        self._cluster_labels = cluster_labels
        self._host_labels = host_labels

    def decode(self, samples: Iterable[Sample], at: float, *, complete: bool = True) -> list[Fact]:
        """Return what the samples say.

        Args:
            samples: Samples of one answer, or of several answers of one round.
            at: Time of the answer on this machine's clock.
            complete: The samples are the whole of what the source lists now for the hosts in them, so that
                rosters may be given; a GPU seen before and not in them is then missing.
        """
        raise NotImplementedError

    def silence(self, reason: str, at: float) -> list[Fact]:
        """Return the facts that make every host told so far silent.

        Args:
            reason: Why nothing can be said, one phrase.
            at: Time of it.
        """
        raise NotImplementedError
