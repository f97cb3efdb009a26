"""Exporter text: a bad line costs that line, and what is no page of metrics is told in words."""

import pytest

from gputop.sources.metrics.text import local_times, read_text

GOOD = 'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a0"} 41\n'


def names(text: str) -> list[str]:
    return [s.name for s in read_text(text).samples]


def test_a_counter_keeps_its_name() -> None:
    page = "# TYPE DCGM_FI_DEV_PCIE_REPLAY_COUNTER counter\n" + 'DCGM_FI_DEV_PCIE_REPLAY_COUNTER{gpu="0"} 3\n'
    assert names(page) == ["DCGM_FI_DEV_PCIE_REPLAY_COUNTER"]


def test_blanks_between_labels_and_exponents() -> None:
    (sample,) = read_text('M{gpu="0", UUID="GPU-a0"} 1.98e+09\n').samples
    assert (sample.labels, sample.value, sample.at) == ({"gpu": "0", "UUID": "GPU-a0"}, 1.98e9, None)


@pytest.mark.parametrize(
    "bad",
    [
        'DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-a0"} ERROR - FAILED TO CONVERT TO STRING',
        'DCGM_FI_DEV_SM_CLOCK{gpu="0" 12',
        "-----------------",
        'DCGM_FI_DEV_SM_CLOCK{gpu="0",gpu="1"} 12',
        'DCGM_FI_DEV_SM_CLOCK{gpu="0"}',
    ],
)
def test_a_bad_line_costs_that_line(bad: str) -> None:
    text = read_text(GOOD + bad + "\n" + GOOD.replace("TEMP", "UTIL"))
    assert [s.name for s in text.samples] == ["DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_UTIL"]
    assert text.dropped == 1
    assert "1 line cannot be read" in text.trouble


def test_quotes_and_backslashes_that_nobody_escaped_are_understood() -> None:
    (sample,) = read_text('T{gpu="0",pod="a "quoted" name",path="C:\\dir"} 5\n').samples
    assert sample.labels == {"gpu": "0", "pod": 'a "quoted" name', "path": "C:\\dir"}
    assert sample.value == 5.0


def test_a_page_cut_in_the_middle_of_a_number_loses_that_number() -> None:
    text = read_text(GOOD + 'DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a0"} 97')
    assert [s.name for s in text.samples] == ["DCGM_FI_DEV_GPU_TEMP"]
    assert text.is_cut
    assert "middle of a line" in text.trouble


def test_control_characters_do_not_come_through() -> None:
    text = read_text(GOOD.replace("GPU-a0", "GPU-a0\x1b[31m\x07") + "bad \x1b[2J line\n")
    assert "\x1b" not in text.samples[0].labels["UUID"]
    assert "\x1b" not in text.trouble


def test_times_are_milliseconds_in_text_and_seconds_in_openmetrics() -> None:
    assert read_text('A{gpu="0"} 1 1790000000500\n').samples[0].at == 1790000000.5
    openmetrics = 'A_total{gpu="0"} 1 1790000000.5 # {trace="x"} 1 2\n# EOF\n'
    (sample,) = read_text(openmetrics).samples
    assert (sample.name, sample.at) == ("A_total", 1790000000.5)


def test_times_are_brought_to_our_clock() -> None:
    samples = read_text('A{gpu="0"} 1 1790003600000\nB{gpu="0"} 1\n').samples
    assert [s.at for s in local_times(samples, 3600.0)] == [1790000000.0, None]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "empty"),
        ("  \n\n", "empty"),
        ("<!DOCTYPE html><html><title>Sign in \x1b[31m</title>", 'a web page titled "Sign in'),
        ('{"status":"success","data":[]}', "JSON"),
        ("[]", "JSON"),
        ("Internal error: no device\n", "no metrics"),
    ],
)
def test_what_is_no_page_of_metrics_is_told(body: str, words: str) -> None:
    text = read_text(body)
    assert words in text.refusal
    assert "\x1b" not in text.refusal
    assert not text.samples


def test_names_in_braces_are_no_json() -> None:
    assert names('{"dotted.name",gpu="0"} 3\n') == ["dotted.name"]


def test_a_page_of_comments_alone_is_a_page_without_samples() -> None:
    text = read_text("# HELP A b\n# TYPE A gauge\n")
    assert (text.samples, text.refusal) == ((), "")
