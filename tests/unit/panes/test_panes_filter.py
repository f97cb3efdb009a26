"""Filters and sorting."""

import pytest

from gputop.fleet import Fleet
from gputop.model.facts import GpuFact, HoldersFact, Presence
from gputop.model.workload import Holder
from gputop.panes.filter import problem_of
from gputop.panes.sorting import sort_known_first
from tests.unit.panes.look import FULL, NOW, NVML, context, gpu, lines, pane, ref, roster, tell


@pytest.fixture
def fleet() -> Fleet:
    """Four GPUs of two models on two nodes: busy and held, hot, without a load, lost."""
    fleet = Fleet()
    holder = Holder("kubernetes", "ml", "llama", uid="u")
    tell(
        fleet,
        NVML,
        NOW,
        GpuFact(ref("gpu-a01", 0), dict(FULL)),
        GpuFact(ref("gpu-a01", 1), {**FULL, "utilization": 10.0, "temperature_c": 90.0}),
        gpu("gpu-b01", 0, temperature_c=50.0, model="NVIDIA A100-SXM4-40GB"),
        GpuFact(ref("gpu-b01", 1), {"model": "NVIDIA A100-SXM4-40GB"}, Presence.LOST, "fallen off the bus"),
        HoldersFact(ref("gpu-a01", 0), (holder,)),
        roster("gpu-a01", 0, 1),
        roster("gpu-b01", 0, 1),
    )
    return fleet


def found(fleet: Fleet, text: str, name: str = "gpus") -> list[str]:
    return [" ".join(line.split()[: 2 if name == "gpus" else 1]) for line in lines(name, fleet, filter=text)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", ["gpu-a01 0", "gpu-a01 1", "gpu-b01 0", "gpu-b01 1"]),
        ("H100", ["gpu-a01 0", "gpu-a01 1"]),
        ("!h100", ["gpu-b01 0", "gpu-b01 1"]),
        ("ml/llama", ["gpu-a01 0"]),
        ("node:b01 a100", ["gpu-b01 0", "gpu-b01 1"]),
        ("host:b01 state:lost", ["gpu-b01 1"]),
        ("pod:llama", ["gpu-a01 0"]),
        ('"fallen off"', ["gpu-b01 1"]),
        ("util>80", ["gpu-a01 0"]),
        ("util<=10", ["gpu-a01 1"]),
        ("!util>80", ["gpu-a01 1"]),
        ("temp>=85 h100", ["gpu-a01 1"]),
        ("power_limit_w=700", ["gpu-a01 0", "gpu-a01 1"]),
        ("nothing-of-the-kind", []),
        (r"\[red\]", []),
        ("[red", []),
        ("gpu-[ab]01", ["gpu-a01 0", "gpu-a01 1", "gpu-b01 0", "gpu-b01 1"]),
        (r"node:a\d+", ["gpu-a01 0", "gpu-a01 1"]),
        ("!^nvidia.*100-", ["gpu-a01 0", "gpu-a01 1"]),
        ("-f nvdah100", ["gpu-a01 0", "gpu-a01 1"]),
        ("00000000:02:00.0", ["gpu-a01 1", "gpu-b01 1"]),
    ],
)
def test_which_gpus_a_filter_leaves(fleet, text, rows):
    assert found(fleet, text) == rows
    assert problem_of(text) == ""


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("state:lost", ["gpu-b01"]),
        ("a100", ["gpu-b01"]),
        ("temp>85", ["gpu-a01"]),
        ("holder:llama", ["gpu-a01"]),
        ("!holder:llama", ["gpu-b01"]),
    ],
)
def test_which_nodes_a_filter_leaves(fleet, text, rows):
    assert found(fleet, text, "fleet") == rows


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"open', "quote"),
        ("!", "nothing stands after !"),
        ("stat:lost", "no column is called stat"),
        ("utl>80", "no number is called utl"),
        ("model>80", "no number is called model"),
    ],
)
@pytest.mark.parametrize("name", ["fleet", "gpus", "memory", "errors", "sources"])
def test_a_filter_that_cannot_be_read_says_why_and_filters_nothing(fleet, text, words, name):
    assert words in problem_of(text)
    assert pane(name).order(context(fleet, filter=text)) == pane(name).order(context(fleet))


def test_no_match_says_so(fleet):
    at = context(fleet, filter="zzz")
    assert "nothing matches /zzz" in pane("gpus").empty(at).plain


@pytest.mark.parametrize(("descending", "wanted"), [(False, [1, 2, 3, None, None]), (True, [3, 2, 1, None, None])])
def test_what_is_not_known_comes_last(descending, wanted):
    values = [None, 2, 3, None, 1]
    assert sort_known_first(values, lambda v: v, descending=descending) == wanted


def test_equal_values_keep_their_order_and_numbers_come_before_texts():
    items = [("a", 1.0), ("b", "x"), ("c", 1.0)]
    assert [name for name, _ in sort_known_first(items, lambda i: i[1], descending=False)] == ["a", "c", "b"]


@pytest.mark.parametrize("name", ["fleet", "gpus", "memory", "errors"])
def test_every_column_can_be_sorted_by(fleet, name):
    rows = set(pane(name).order(context(fleet)))
    for column in pane(name).columns(context(fleet)):
        for descending in (True, False):
            assert set(pane(name).order(context(fleet, sort=(column.key, descending)))) == rows


@pytest.mark.parametrize("name", ["fleet", "gpus", "memory", "errors"])
def test_every_grouping_keeps_every_row(fleet, name):
    rows = set(pane(name).order(context(fleet)))
    for group, _ in pane(name).groupings[1:]:
        assert rows < set(pane(name).order(context(fleet, group=group)))
