"""What is wanted of the sources."""

from msgspec import Struct


class Demand(Struct, frozen=True):
    """What somebody on screen or on the command line wants to see, so that sources read no more.

    Attributes:
        quantities: Ids of `gputop.model.quantity.QUANTITIES`; None for all.
        hosts: Hosts whose GPUs are looked at one by one (details, the GPUs pane), as the fleet names
            them; None for all. Fleet-wide quantities are read for every host all the same.
        processes: Whether process lists are wanted.
        profiling: Whether GPM sampling (SM and tensor activity) is allowed.
        interval_s: Wanted cadence; a source is never read faster than it can change.
    """

    quantities: frozenset[str] | None = None
    hosts: frozenset[str] | None = None
    processes: bool = True
    profiling: bool = False
    interval_s: float = 1.0
