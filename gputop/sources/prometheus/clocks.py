"""Sample times: an instant vector carries the time of the question, not of the sample.

Each target is scraped as a whole, so one metric's `timestamp()` tells the age of all metrics of that target.
Where several series of one GPU stand side by side, each series' own time decides which is the newer.
Times of the server are put on this machine's clock.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final

from gputop.sources.metrics.envelope import SeriesAnswer, number

SKEW_WORTH_TELLING_S: Final = 2.0
_MOST_SCRAPE_S: Final = 300.0
_TIME_OF_SERVER_S: Final = 1.0
"""Some services tell their time in whole seconds."""
_AHEAD_S: Final = 5.0
"""A sample so far ahead of the server's own time was stamped by a wrong clock."""

TARGET_LABELS: Final = ("instance", "cluster")
"""Labels that name a target: two clusters behind one query address may use the same address."""

_Series = frozenset[tuple[str, str]]


class Clocks:
    """Sample times by target, and how the server's clock differs from ours.

    Attributes:
        offset_s: This machine's time minus the server's.
        is_told: The server has told its time.
        scrape_s: Scrape interval as seen from sample times, None before two rounds.
        ahead: Targets whose samples are stamped by a clock that is ahead of the server's, and by how many seconds.
    """

    def __init__(self) -> None:
        self.offset_s = 0.0
        self.is_told = False
        self.scrape_s: float | None = None
        self.ahead: dict[tuple[str, str], float] = {}
        self._at: dict[tuple[str, str], float] = {}
        self._own: dict[str, dict[_Series, float]] = {}
        self._own_labels: frozenset[str] = frozenset()

    def greet(self, server: float, asked: float, answered: float) -> None:
        """Compare the server's clock with this machine's.

        Args:
            server: The server's time, NaN if it did not tell it.
            asked: When it was asked, on this machine's clock.
            answered: When its answer came.
        """
        self.is_told = math.isfinite(server)
        offset_s = (asked + answered) / 2 - server if self.is_told else 0.0
        # The server read its clock somewhere between: within that doubt the clocks are taken for equal.
        doubt_s = (answered - asked) / 2 + _TIME_OF_SERVER_S
        self.offset_s = offset_s if abs(offset_s) > doubt_s else 0.0

    def take(self, answers: Iterable[SeriesAnswer], now: float) -> None:
        """Take the answer to a query of `timestamp()` by target.

        Args:
            answers: The series, with sample times in the server's time.
            now: When the answer came, in the server's time.
        """
        steps: list[float] = []
        told: dict[tuple[str, str], float] = {}
        ahead: dict[tuple[str, str], float] = {}
        for answer in answers:
            at = _time(answer)
            if at is None:
                continue
            target = _target(answer.metric)
            told[target] = max(at, told.get(target, at))
            if at - now > _AHEAD_S:
                # The newest sample is the furthest ahead; when it ceases to come, it ages from there.
                ahead[target] = max(at - now, self.ahead.get(target, 0.0), ahead.get(target, 0.0))
            before = self._at.get(target)
            if before is not None and 0.5 < at - before < _MOST_SCRAPE_S:
                steps.append(at - before)
        self._at, self.ahead = told, ahead
        if steps:
            # A round may span several scrapes, so the smallest step seen is the nearest to the interval.
            step = min(steps)
            self.scrape_s = step if self.scrape_s is None else min(self.scrape_s, step)

    def take_own(self, answers: Iterable[SeriesAnswer], labels: Iterable[str]) -> None:
        """Take the times of single series, in the server's time.

        Args:
            answers: The series of `timestamp()`, which drops the name: the labels are those of every metric in
                the same row of an exporter.
            labels: Labels that tell one series from another, of all that either side may carry.
        """
        self._own_labels = frozenset(labels)
        self._own = {}
        for answer in answers:
            at = _time(answer)
            if at is not None:
                of_target = self._own.setdefault(answer.metric.get("instance", ""), {})
                series = self._series(answer.metric)
                of_target[series] = max(at, of_target.get(series, at))

    def at(self, labels: Mapping[str, str], asked_at: float) -> float:
        """Return a sample's time on this machine's clock, the time of the question if nobody tells it."""
        own = self._own.get(labels.get("instance", ""))
        told = own.get(self._series(labels)) if own else None
        target = _target(labels)
        if told is None:
            told = self._at.get(target)
        if told is None:
            return asked_at + self.offset_s
        return told - self.ahead.get(target, 0.0) + self.offset_s

    def _series(self, labels: Mapping[str, str]) -> _Series:
        return frozenset(item for item in labels.items() if item[0] in self._own_labels and item[1])

    def stale_after_s(self, interval_s: float) -> float:
        """Return the age from which a sample is stale: three scrapes, or three of our own rounds."""
        return 3.0 * max(self.scrape_s or 15.0, interval_s) + 5.0


def _target(labels: Mapping[str, str]) -> tuple[str, str]:
    return labels.get("instance", ""), labels.get("cluster", "")


def _time(answer: SeriesAnswer) -> float | None:
    if answer.value is None:
        return None
    at = number(answer.value[1])
    return at if math.isfinite(at) else None
