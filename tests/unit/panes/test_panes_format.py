"""Numbers, ages and codes as a person reads them."""

import pytest

from gputop.model.reading import NOT_EXPORTED, NOT_SUPPORTED, Origin, Reading
from gputop.panes.ascii import fold
from gputop.panes.format import age, count, gib, percent, rate, reading_cell, size
from gputop.panes.words import clock_letter, clock_words, recovery_words


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"), (1.4, "1s"), (89, "89s"), (95, "2m"), (240, "4m"), (5900, "98m"), (5970, "2h"), (7200, "2h"),
        (47 * 3600, "47h"), (72 * 3600, "3d"), (40 * 86400, "40d"),
    ],
)  # fmt: skip
def test_an_age_has_one_unit_and_fits_three_cells(seconds, shown):
    assert age(seconds) == shown
    assert len(shown) <= 3


@pytest.mark.parametrize(
    ("shorten", "value", "shown"),
    [
        (gib, 0.0, "0"), (gib, 265.0, "0.3"), (gib, 10188.0, "9.9"), (gib, 10240.0, "10"), (gib, 75776.0, "74"),
        (count, 0.0, "0"), (count, 9999.0, "9999"), (count, 12345.0, "12k"), (count, 999_999.0, "1M"),
        (count, 4e18, "4E"), (rate, 999.0, "999B/s"), (rate, 26.5e9, "26.5GB/s"), (size, 1536.0, "1.5k"),
        (size, 17.0, "17"),
    ],
)  # fmt: skip
def test_numbers_are_short(shorten, value, shown):
    assert shorten(value) == shown


@pytest.mark.parametrize(
    ("reading", "now", "shown", "role"),
    [
        (None, 100.0, "?", "unknown"),
        (Reading(NOT_SUPPORTED, Origin("nvml", 0, 100.0, 5.0)), 100.0, "n/a", "na"),
        (Reading(NOT_EXPORTED, Origin("prometheus", 2, 100.0, 60.0)), 100.0, "?", "unknown"),
        (Reading(0.0, Origin("nvml", 0, 100.0, 5.0)), 105.0, "0%", ""),
        (Reading(81.0, Origin("nvml", 0, 100.0, 5.0)), 105.1, "81%", "stale"),
        (Reading("yes", Origin("nvml", 0, 100.0, 5.0)), 100.0, "yes", ""),
    ],
)
def test_the_four_kinds_of_cell(reading, now, shown, role):
    assert reading_cell(reading, now, percent) == (shown, role, ())


def test_noise_below_what_is_shown_repaints_nothing():
    origin = Origin("nvml", 0, 100.0, 5.0)
    drawn = {reading_cell(Reading(v, origin), 100.0) for v in (690.02, 690.3, 689.9)}
    assert len(drawn) == 1


@pytest.mark.parametrize(
    ("mask", "letter", "words"),
    [
        (0x0, "", "none"),
        (0x1, "", "idle"),
        (0x2, "", "application clocks setting"),
        (0x4, "P", "power cap"),
        (0x8, "H", "hardware slowdown"),
        (0x10, "S", "sync boost"),
        (0x20, "T", "software thermal slowdown"),
        (0x48, "T", "hardware thermal slowdown, hardware slowdown"),
        (0x84, "B", "hardware power brake (power supply or rack), power cap"),
        (0x4000, "?", "unknown reason 0x4000"),
        (0x4004, "P", "power cap, unknown reason 0x4000"),
    ],
)
def test_why_the_clock_is_held_down(mask, letter, words):
    assert clock_letter(mask)[0] == letter
    assert clock_words(mask) == words


@pytest.mark.parametrize(("action", "words"), [(0.0, "none"), (1.0, "GPU reset"), (2.0, "node reboot")])
def test_recovery_actions(action, words):
    assert recovery_words(action) == words


def test_an_unknown_recovery_action_keeps_its_number():
    assert "42" in recovery_words(42.0)


@pytest.mark.parametrize(
    ("text", "folded"), [("plain", "plain"), ("≥89 °C …", ">=89 C ..."), ("müller", "muller"), ("訓練", "??")]
)
def test_text_in_ascii(text, folded):
    assert fold(text) == folded
