"""Sample times: an instant vector carries the time of the question, not of the sample.

Each target is scraped as a whole, so one metric's `timestamp()` tells the age of all metrics of that target.
Where several series of one GPU stand side by side, each series' own time decides which is the newer.
Times of the server are put on this machine's clock.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from gputop.sources.metrics.envelope import SeriesAnswer, number

SKEW_WORTH_TELLING_S: Final = 2.0
_MOST_SCRAPE_S: Final = 300.0

TARGET_LABELS: Final = ("instance", "cluster")
"""Labels that name a target: two clusters behind one query address may use the same address."""


class Clocks:
    """Sample times by target, and how the server's clock differs from ours.

    Attributes:
        offset_s: This machine's time minus the server's.
        scrape_s: Scrape interval as seen from sample times, None before two rounds.
    """

    def __init__(self) -> None:
        self.offset_s = 0.0
        self.scrape_s: float | None = None
        self._at: dict[tuple[str, str], float] = {}
        self._own: dict[frozenset[tuple[str, str]], float] = {}

    def take(self, answers: Iterable[SeriesAnswer]) -> None:
        """Take the answer to a query of `timestamp()` by target, in the server's time."""
        steps: list[float] = []
        now: dict[tuple[str, str], float] = {}
        for answer in answers:
            if answer.value is None:
                continue
            at = number(answer.value[1])
            target = _target(answer.metric)
            now[target] = max(at, now.get(target, at))
            before = self._at.get(target)
            if before is not None and 0.5 < at - before < _MOST_SCRAPE_S:
                steps.append(at - before)
        self._at = now
        if steps:
            # A round may span several scrapes, so the smallest step seen is the nearest to the interval.
            step = min(steps)
            self.scrape_s = step if self.scrape_s is None else min(self.scrape_s, step)

    def take_own(self, answers: Iterable[SeriesAnswer]) -> None:
        """Take the answers to queries of `timestamp()` with all labels, in the server's time."""
        # `timestamp` drops the name, so the labels are those of every metric in the same row of an exporter.
        self._own = {frozenset(a.metric.items()): number(a.value[1]) for a in answers if a.value is not None}

    def at(self, labels: Mapping[str, str], asked_at: float) -> float:
        """Return a sample's time on this machine's clock, the time of the question if nobody tells it."""
        told = self._own.get(frozenset(labels.items())) if self._own else None
        if told is None:
            told = self._at.get(_target(labels))
        return (told if told is not None else asked_at) + self.offset_s

    def stale_after_s(self, interval_s: float) -> float:
        """Return the age from which a sample is stale: three scrapes, or three of our own rounds."""
        return 3.0 * max(self.scrape_s or 15.0, interval_s) + 5.0


def _target(labels: Mapping[str, str]) -> tuple[str, str]:
    return labels.get("instance", ""), labels.get("cluster", "")
