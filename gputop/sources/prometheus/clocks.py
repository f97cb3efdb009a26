"""Sample times: an instant vector carries the time of the question, not of the sample.

Each target is scraped as a whole, so one metric's `timestamp()` tells the age of all metrics of that target.
Times of the server are put on this machine's clock.
"""

from typing import Final

from gputop.sources.prometheus.envelope import SeriesAnswer, number

SKEW_WORTH_TELLING_S: Final = 2.0
_MOST_SCRAPE_S: Final = 300.0


class Clocks:
    """Sample times by target, and how the server's clock differs from ours.

    Attributes:
        offset_s: This machine's time minus the server's.
        scrape_s: Scrape interval as seen from sample times, None before two rounds.
    """

    def __init__(self) -> None:
        self.offset_s = 0.0
        self.scrape_s: float | None = None
        self._at: dict[str, float] = {}

    def take(self, answers: list[SeriesAnswer]) -> None:
        """Take the answer to a query of `timestamp()` by instance, in the server's time."""
        steps: list[float] = []
        now: dict[str, float] = {}
        for answer in answers:
            if answer.value is None:
                continue
            at = number(answer.value[1])
            target = answer.metric.get("instance", "")
            now[target] = max(at, now.get(target, at))
            before = self._at.get(target)
            if before is not None and 0.5 < at - before < _MOST_SCRAPE_S:
                steps.append(at - before)
        self._at = now
        if steps:
            # A round may span several scrapes, so the smallest step seen is the nearest to the interval.
            step = min(steps)
            self.scrape_s = step if self.scrape_s is None else min(self.scrape_s, step)

    def at(self, labels: dict[str, str], asked_at: float) -> float:
        """Return a sample's time on this machine's clock, the time of the question if the target tells none."""
        told = self._at.get(labels.get("instance", ""))
        return (told if told is not None else asked_at) + self.offset_s

    def stale_after_s(self, interval_s: float) -> float:
        """Return the age from which a sample is stale: three scrapes, or three of our own rounds."""
        return 3.0 * max(self.scrape_s or 15.0, interval_s) + 5.0
