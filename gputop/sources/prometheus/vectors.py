"""Instant vectors to samples."""

from collections.abc import Iterable

from gputop.sources.metrics.envelope import SeriesAnswer, number
from gputop.sources.metrics.sample import Sample
from gputop.sources.prometheus.clocks import Clocks


def to_samples(answers: Iterable[SeriesAnswer], only: str, clocks: Clocks, asked_at: float) -> list[Sample]:
    """Return samples of an instant vector.

    Args:
        answers: The series.
        only: Name of series whose answer carries none, as that of an aggregation.
        clocks: Gives sample times.
        asked_at: Time of asking in the server's time.
    """
    samples: list[Sample] = []
    for answer in answers:
        if answer.value is None:
            continue
        labels = answer.metric
        name = labels.pop("__name__", only)
        samples.append(Sample(name, labels, number(answer.value[1]), clocks.at(labels, asked_at)))
    return samples
