"""Whose clock says what: ages of samples, whatever the server's clock and the exporters' show."""

import math

import pytest

from gputop.sources.metrics.envelope import SeriesAnswer
from gputop.sources.prometheus.clocks import Clocks

NOW = 1_790_000_000.0
A = {"instance": "10.0.0.1:9400"}


def _told(at: float | str, **labels: str) -> SeriesAnswer:
    return SeriesAnswer(A | labels, (NOW, str(at)))


@pytest.mark.parametrize("skew_s", [0.0, 0.6, 3600.0, -3600.0])
def test_samples_are_put_on_our_clock(skew_s: float) -> None:
    clocks = Clocks()
    clocks.greet(NOW + skew_s, NOW - 0.05, NOW + 0.05)
    clocks.take([_told(NOW + skew_s - 12.0)], NOW + skew_s)
    assert clocks.at(A, NOW + skew_s) == pytest.approx(NOW - 12.0, abs=0.7)


def test_a_slow_answer_makes_no_clock_wrong() -> None:
    clocks = Clocks()
    # It read its clock at once and took eight seconds to say so.
    clocks.greet(NOW, NOW, NOW + 8.0)
    assert clocks.offset_s == 0.0
    clocks.greet(NOW + 60.0, NOW, NOW + 8.0)
    assert clocks.offset_s == pytest.approx(-56.0)


def test_a_server_without_a_time_is_remembered() -> None:
    clocks = Clocks()
    clocks.greet(math.nan, NOW, NOW)
    assert (clocks.is_told, clocks.offset_s) == (False, 0.0)
    clocks.greet(NOW, NOW, NOW)
    assert clocks.is_told


def test_samples_of_the_future_age_from_the_newest_of_them() -> None:
    clocks = Clocks()
    clocks.take([_told(NOW + 3600.0)], NOW)
    assert clocks.at(A, NOW) == NOW
    # The next one did not come: it is a minute old, and not new until our own clock has passed it.
    clocks.take([_told(NOW + 3600.0)], NOW + 60.0)
    assert clocks.at(A, NOW + 60.0) == NOW
    assert clocks.ahead == {("10.0.0.1:9400", ""): 3600.0}
    # Its clock was set right.
    clocks.take([_told(NOW + 70.0)], NOW + 75.0)
    assert clocks.at(A, NOW + 75.0) == NOW + 70.0
    assert clocks.ahead == {}


@pytest.mark.parametrize("text", ["NaN", "+Inf", "x"])
def test_a_time_that_is_none_is_not_told(text: str) -> None:
    clocks = Clocks()
    clocks.take([_told(text)], NOW)
    clocks.take_own([_told(text, pod="a")], ["instance", "pod"])
    assert clocks.at(A | {"pod": "a"}, NOW) == NOW


def test_a_series_time_is_known_by_the_labels_that_both_sides_carry() -> None:
    clocks = Clocks()
    clocks.take([_told(NOW - 5.0)], NOW)
    clocks.take_own([_told(NOW - 95.0, pod="old", model="x"), _told(NOW - 5.0, pod="new")], ["instance", "pod"])
    assert clocks.at(A | {"pod": "old"}, NOW) == NOW - 95.0
    assert clocks.at(A | {"pod": "new", "model": "x"}, NOW) == NOW - 5.0
    assert clocks.at(A | {"pod": "third"}, NOW) == NOW - 5.0


def test_the_scrape_interval_is_the_smallest_step_seen() -> None:
    clocks = Clocks()
    for at in (0.0, 45.0, 60.0, 1000.0):
        clocks.take([_told(NOW + at)], NOW + at)
    assert clocks.scrape_s == 15.0
    assert clocks.stale_after_s(5.0) == 50.0
