"""Samples through the decoder into a fleet, as every source does it."""

from collections.abc import Iterable
from typing import Any

from gputop.fleet import Fleet
from gputop.fleet.state import GpuState, NodeState, View
from gputop.model.facts import Batch
from gputop.model.reading import Absent
from gputop.sources.metrics.decode import Decoder
from gputop.sources.metrics.sample import Sample
from gputop.sources.metrics.text import read_text

T = 1_790_000_000.0


class Rig:
    """A decoder and the fleet it feeds."""

    def __init__(self, **settings: Any) -> None:
        self.decoder = Decoder(**{"source": "prometheus", "rank": 2, "default_host": "tern-04"} | settings)
        self.fleet = Fleet()

    def feed(self, text: str, at: float = T, *, complete: bool = True, times: Iterable[float] = ()) -> None:
        """Decode lines of exporter text; `times` are their sample times, in order."""
        samples = read_text(text.strip() + "\n").samples
        if times:
            samples = tuple(Sample(s.name, s.labels, s.value, t) for s, t in zip(samples, times, strict=True))
        facts = self.decoder.decode(samples, at, complete=complete)
        self.fleet.apply(Batch("prometheus", 2, at, 60.0, tuple(facts)))

    @property
    def view(self) -> View:
        return self.fleet.view()

    def gpu(self, uuid: str, instance: str = "") -> GpuState:
        found = [g for k, g in self.view.gpus.items() if (k.uuid, k.instance) == (uuid, instance)]
        assert len(found) == 1, sorted(self.view.gpus)
        return found[0]

    def by_index(self, index: int) -> GpuState:
        found = [g for g in self.view.gpus.values() if g.index == index and not g.key.instance]
        assert len(found) == 1, sorted(self.view.gpus)
        return found[0]

    def node(self, host: str) -> NodeState:
        return next(n for k, n in self.view.nodes.items() if k.host == host)


def shown(gpu: GpuState, quantity: str) -> float | str | None:
    """Return a value; "n/a" or "unknown" for an absence, None where nothing was told."""
    reading = gpu.readings.get(quantity)
    if reading is None:
        return None
    return reading.value.state if isinstance(reading.value, Absent) else reading.value


def holders(gpu: GpuState) -> list[str]:
    return [h.label for claim in gpu.holders for h in claim.holders]
