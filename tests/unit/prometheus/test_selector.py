"""Selectors: what a user or a label says is never read as PromQL."""

import re

import pytest

from gputop.sources.base import SourceError
from gputop.sources.prometheus.queries import halves
from gputop.sources.prometheus.selector import check_matchers, one_of, quoted, select


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ('cluster="prod-eu"', 'cluster="prod-eu"'),
        ('{cluster="prod", region!~"us-.*"}', 'cluster="prod",region!~"us-.*"'),
        (r'pod="a\"b",', r'pod="a\"b"'),
    ],
)
def test_matchers_are_taken_in_one_spelling(text: str, expected: str) -> None:
    assert check_matchers(text) == expected


@pytest.mark.parametrize(
    "text",
    ["cluster", "cluster=prod", 'cluster="a" region="b"', 'a="b"} or vector(1) or x{a="b"', 'a="b', '1a="b"', 'a=="b"'],
)
def test_what_is_no_list_of_matchers_is_refused(text: str) -> None:
    with pytest.raises(SourceError, match="selector"):
        check_matchers(text)


def test_values_cannot_leave_their_quotes() -> None:
    assert quoted('a"} or up\\\n') == '"a\\"} or up\\\\\\n"'


def test_a_choice_of_values_matches_exactly_these() -> None:
    hosts = ["gpu-001", "10.0.0.1:9400", "a+b", "c|d"]
    pattern = one_of(hosts)[1:-1].replace("\\\\", "\\")
    assert all(re.fullmatch(pattern, host) for host in hosts)
    assert not any(re.fullmatch(pattern, other) for other in ("gpu-0011", "10x0.0.1:9400", "aab", "c", "d"))


def test_a_selector_of_one_name_names_it_and_of_several_uses_an_expression() -> None:
    assert select(["up"]) == "up"
    assert select(["up"], "", 'job="a"') == 'up{job="a"}'
    assert select(["a", "b"], 'c="d"') == '{__name__=~"a|b",c="d"}'
    # A name that Prometheus 2 cannot spell bare.
    assert select(["my.metric"]).startswith("{__name__=~")


def test_the_halves_of_a_metric_share_no_series_and_miss_none() -> None:
    one, other = halves("DCGM_FI_DEV_GPU_UTIL")
    label, pattern = one.split("=~")
    assert other == f"{label}!~{pattern}"
    uuids = [f"GPU-{digit}c0ffee0-0000" for digit in "0123456789abcdef"]
    assert sum(re.fullmatch(pattern.strip('"'), uuid) is not None for uuid in uuids) == 8
    assert halves("nvidia_smi_temperature_gpu")[0].startswith("uuid=~")
