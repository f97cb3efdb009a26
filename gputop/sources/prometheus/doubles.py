"""Series of one metric and one GPU that stand side by side, and how they are told apart.

After a pod change within the lookback an old and a new series both answer (NVIDIA/dcgm-exporter#237, #340),
and so do the replicas of a Prometheus pair behind a query address that does not merge them. A server that
reduces them gives the largest, not the newest. So the labels in which such series differ are kept too: then
each series comes by itself, with its own time, however large the fleet.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, structs

from gputop.sources.metrics.labels import ROW_LABELS
from gputop.sources.metrics.rows import SAME_SCRAPE_S
from gputop.sources.metrics.sample import Sample

# Copies of one reading for each pod of a shared GPU differ in it (NVIDIA/dcgm-exporter#474): they are not old.
_SHARE_LABEL: Final = "vgpu"
_MIG_LABELS: Final = ("GPU_I_ID", "gpu_i_id", "dra_mig_device_uuid", "mig_uuid")
_MIG_PREFIX: Final = "MIG-"
_ROW: Final = frozenset({*ROW_LABELS, _SHARE_LABEL})


class Doubles(Struct, frozen=True):
    """What stands side by side.

    Attributes:
        instances: Addresses of the exporters that such series come from.
        labels: Labels in which the series differ.
    """

    instances: frozenset[str] = frozenset()
    labels: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.labels)


class Seen(Struct, frozen=True):
    """What the series that tell which GPUs there are come to.

    Attributes:
        boards: Number of GPUs; one of which only MIG instances are told counts too.
        instances: Number of MIG instances.
        targets: Addresses of their exporters.
        doubles: Series that stand side by side.
    """

    boards: int
    instances: int
    targets: set[str]
    doubles: Doubles


def look(samples: Iterable[Sample]) -> Seen:
    """Return what the series that tell which GPUs there are come to."""
    boards: set[tuple[str, ...]] = set()
    instances: set[tuple[str, ...]] = set()
    targets: set[str] = set()
    several = list(samples)
    for sample in several:
        labels = sample.labels
        instance = labels.get("instance", "")
        uuid = labels.get("UUID") or labels.get("uuid") or ""
        mig = uuid if uuid.startswith(_MIG_PREFIX) else next((labels[n] for n in _MIG_LABELS if labels.get(n)), "")
        # Two exporters of one board spell its UUID with and without the prefix.
        named = uuid and not uuid.startswith(_MIG_PREFIX)
        board = (uuid.removeprefix("GPU-"),) if named else (instance, labels.get("gpu") or labels.get("gpu_id") or "")
        boards.add(board)
        if mig:
            instances.add((*board, mig))
        targets.add(instance)
    return Seen(len(boards), len(instances), targets - {""}, _differing(_side_by_side(several)))


def _side_by_side(samples: Iterable[Sample]) -> list[list[Sample]]:
    """Return the groups of several series of one metric and GPU."""
    groups: dict[tuple[str, frozenset[tuple[str, str]]], list[Sample]] = {}
    for sample in samples:
        row = frozenset(item for item in sample.labels.items() if item[0] in _ROW)
        groups.setdefault((sample.name, row), []).append(sample)
    return [group for group in groups.values() if len(group) > 1]


def _differing(groups: Iterable[list[Sample]]) -> Doubles:
    instances: set[str] = set()
    labels: set[str] = set()
    for group in groups:
        instances.add(group[0].labels.get("instance", ""))
        every = [set(sample.labels.items()) for sample in group]
        labels.update(name for name, _ in set.union(*every) - set.intersection(*every))
    return Doubles(frozenset(instances), tuple(sorted(labels)))


def unequal(samples: Iterable[Sample]) -> Doubles:
    """Return those of series side by side of which one is older than another.

    Equally old ones are copies of one reading, of which the largest is right.
    """
    groups = _side_by_side(samples)
    return _differing(g for g in groups if max(_times(g)) - min(_times(g)) > SAME_SCRAPE_S)


def _times(group: Iterable[Sample]) -> list[float]:
    return [sample.at or 0.0 for sample in group]


def without(samples: Iterable[Sample], doubles: Doubles) -> list[Sample]:
    """Return samples without the labels that told series side by side apart."""
    return [structs.replace(s, labels={k: v for k, v in s.labels.items() if k not in doubles.labels}) for s in samples]
