"""The past: charts of nodes, VRAM over time, sparklines in the tables; what was not told is a gap."""

import math

import pytest

from gputop.fleet import Fleet, Series
from gputop.model.facts import Batch, GpuFact, Presence
from gputop.model.identity import GpuKey, NodeKey
from gputop.model.reading import NOT_SUPPORTED, Value
from gputop.panes.base import PaneContext
from gputop.panes.charts import CHARTS, NODE_CHARTS, Drawing, draw
from gputop.widgets.columns import lay_out
from tests.unit.panes.look import (
    NOW,
    NVML,
    PROMETHEUS,
    cell,
    context,
    gpu,
    key_of,
    lines,
    pane,
    ref,
    roster,
    tell,
    text,
)

HOST = "gpu-a03"
NODE = NodeKey("", HOST)


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


def at(fleet: Fleet, now: float, **settings: object) -> PaneContext:
    return context(fleet, now, series=fleet.history.series, **settings)


def told(fleet: Fleet, seconds: range, which: tuple[int, ...] = (0, 1), **values: Value) -> None:
    for second in seconds:
        tell(fleet, NVML, NOW + second, *(gpu(HOST, i, "", **values) for i in which))


def of_node(fleet: Fleet, kind: str, now: float, **settings: object) -> Drawing:
    chosen = next(k for k in NODE_CHARTS if k.id == kind)
    return draw(at(fleet, now, **settings), NODE, chosen, None)


# -- Charts of a node -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "newest", "title", "top"),
    [
        ("util", 40.0, "mean util 40%", 100.0),
        ("vram", 30720.0, "VRAM 30G", 163840.0),
        ("power", 500.0, "power 500W", 1400.0),
        ("heat", 70.0, "hottest 70°C", 100.0),
    ],
)
def test_a_node_is_the_mean_sum_or_highest_of_its_boards(fleet, kind, newest, title, top):
    whole = {"memory_total_mib": 81920.0, "power_limit_w": 700.0}
    first = gpu(HOST, 0, "", utilization=20.0, memory_used_mib=10240.0, power_w=200.0, temperature_c=50.0, **whole)
    second = gpu(HOST, 1, "", utilization=60.0, memory_used_mib=20480.0, power_w=300.0, temperature_c=70.0, **whole)
    tell(fleet, NVML, NOW, first, second, roster(HOST, 0, 1))
    drawing = of_node(fleet, kind, NOW)
    assert drawing.series[-1].values[-1] == newest
    assert text(list(drawing.title)) == title
    assert drawing.scale.high == top


def test_a_sum_of_some_boards_is_never_drawn_as_the_whole(fleet):
    told(fleet, range(60), power_w=300.0)
    told(fleet, range(60, 120), (0,), power_w=300.0)
    drawing = of_node(fleet, "power", NOW + 119, width=160)
    part, whole = drawing.series
    assert whole.values[-1] is None
    assert whole.values[-100] == 600.0
    assert part.values[-1] == 300.0
    assert part.values[-100] is None
    assert part.role != whole.role
    assert text(list(drawing.title)) == "power 300W of 1/2 GPUs"


def test_a_node_of_which_nobody_tells_is_a_gap_not_0(fleet):
    told(fleet, range(30), power_w=300.0)
    silent = of_node(fleet, "power", NOW + 90)
    assert [s.values[-30:] for s in silent.series] == [(None,) * 30]
    assert text(list(silent.title)) == "power ?"
    assert text(list(draw(context(fleet), NodeKey("", "gone"), NODE_CHARTS[0], None).title)) == "mean util ?"


def test_a_mean_without_the_boards_in_mig_mode_is_not_told_as_the_nodes(fleet):
    told(fleet, range(3), (0,), utilization=50.0)
    told(fleet, range(3), (1,), utilization=NOT_SUPPORTED)
    assert text(list(of_node(fleet, "util", NOW + 2).title)) == "mean util 50% of 1/2 GPUs"
    look = {"width": 200, "series": fleet.history.series}
    tell(fleet, NVML, NOW + 2, roster(HOST, 0, 1))
    assert cell("fleet", fleet, NODE, "trend", NOW + 2, **look).plain == "n/a"
    assert cell("gpus", fleet, key_of(HOST, 1), "trend", NOW + 2, **look).plain == "n/a"
    told(fleet, range(3, 6), (0, 1), utilization=NOT_SUPPORTED)
    assert text(list(of_node(fleet, "util", NOW + 5).title)) == "mean util n/a"


def test_hours_of_a_node_come_from_the_answers_for_its_boards(fleet):
    tell(fleet, NVML, NOW, gpu(HOST, 0, power_w=1.0), gpu(HOST, 1, power_w=1.0), roster(HOST, 0, 1))
    hours = {
        key_of(HOST, 0): {"power_w": Series(NOW, 15.0, (100.0, math.nan, 100.0, 100.0))},
        # Asked a moment earlier, so that its answer ends a step earlier.
        key_of(HOST, 1): {"power_w": Series(NOW - 15.0, 15.0, (200.0, 200.0, 200.0, 201.0))},
    }
    power = next(k for k in NODE_CHARTS if k.id == "power")
    part, whole = draw(at(fleet, NOW), NODE, power, hours).series
    assert whole.values == (300.0, None, 301.0, 301.0)
    assert part.values == (None, 200.0, None, None)
    assert whole.role != part.role


def test_boards_of_another_cadence_are_put_on_one_time_line(fleet):
    tell(fleet, NVML, NOW, gpu(HOST, 0), gpu(HOST, 1), roster(HOST, 0, 1))
    hours = {
        key_of(HOST, 0): {"power_w": Series(NOW, 10.0, (1.0, 2.0, 3.0, 4.0))},
        key_of(HOST, 1): {"power_w": Series(NOW, 20.0, (10.0, 20.0))},
    }
    power = next(k for k in NODE_CHARTS if k.id == "power")
    (whole,) = draw(at(fleet, NOW), NODE, power, hours).series
    assert whole.values == (12.0, 24.0)


# -- VRAM -------------------------------------------------------------------------------------------------


def test_vram_of_the_past_is_not_divided_by_the_present_total(fleet):
    vram = next(k for k in CHARTS if k.id == "vram")
    told(fleet, range(10), (0,), memory_used_mib=61440.0, memory_total_mib=81920.0)
    told(fleet, range(10, 20), (0,), memory_used_mib=5120.0, memory_total_mib=10240.0)
    drawing = draw(at(fleet, NOW + 19), key_of(HOST, 0), vram, None)
    assert drawing.series[0].values[-1] == 5120.0
    assert drawing.series[0].values[-15] == 61440.0
    assert drawing.scale.high == 61440.0
    assert drawing.scale.label(drawing.scale.high) == "60"
    assert text(list(drawing.title)) == "VRAM 5.0G (5.0 to 60)"


@pytest.mark.parametrize(("width", "shown"), [(78, "SM clock 1755MHz"), (200, "SM clock 1755MHz (345 to 1755)")])
def test_how_far_a_line_went_stands_where_there_is_room(fleet, width, shown):
    told(fleet, range(2), (0,), sm_clock_mhz=345.0)
    told(fleet, range(2, 4), (0,), sm_clock_mhz=1755.0)
    clock = next(k for k in CHARTS if k.id == "clock")
    assert text(list(draw(at(fleet, NOW + 3, width=width), key_of(HOST, 0), clock, None).title)) == shown


# -- Sparklines -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ascii_only", "shown"), [(False, "      ▁▁█  █"), (True, "      __#  #")])
def test_a_gpu_shows_its_last_minutes_with_gaps_as_gaps(fleet, ascii_only, shown):
    told(fleet, range(20), (0,), utilization=0.0)
    told(fleet, range(20, 30), (0,), utilization=100.0)
    told(fleet, range(50, 62), (0,), utilization=100.0)
    trend = cell(
        "gpus", fleet, key_of(HOST, 0), "trend", NOW + 62, width=200, ascii_only=ascii_only, series=fleet.history.series
    )
    assert trend.plain == shown


def test_a_trend_stands_still_until_a_stretch_of_time_has_passed(fleet):
    seen = set()
    told(fleet, range(40), (0,), utilization=0.0)
    for second in range(40, 50):
        told(fleet, range(second, second + 1), (0,), utilization=100.0)
        look = {"width": 200, "series": fleet.history.series}
        seen.add(cell("gpus", fleet, key_of(HOST, 0), "trend", NOW + second, **look).plain)
    assert len(seen) == 1


def test_a_node_shows_the_mean_of_its_boards_and_a_gap_where_one_is_missing(fleet):
    tell(fleet, NVML, NOW, roster(HOST, 0, 1))
    told(fleet, range(20), (0,), utilization=100.0)
    told(fleet, range(20), (1,), utilization=0.0)
    told(fleet, range(20, 41), (0,), utilization=100.0)
    look = {"width": 200, "series": fleet.history.series}
    assert cell("fleet", fleet, NODE, "trend", NOW + 41, **look).plain == "        ▅▅  "
    # A board that is lost counts no more.
    tell(fleet, NVML, NOW + 42, GpuFact(ref(HOST, 1), {}, Presence.LOST, "off the bus"))
    assert cell("fleet", fleet, NODE, "trend", NOW + 42, **look).plain == "        ████"


def test_slow_sources_have_a_glyph_for_each_sample(fleet):
    start = NOW // 15 * 15
    for number in range(8):
        fact = gpu(HOST, 0, utilization=100.0 * (number % 2))
        fleet.apply(Batch(*PROMETHEUS, start + 15 * number, 45.0, (fact, roster(HOST, 0)), interval_s=15.0))
    look = {"width": 200, "series": fleet.history.series}
    assert cell("gpus", fleet, key_of(HOST, 0), "trend", start + 15 * 8 + 1, **look).plain == "    ▁█▁█▁█▁█"


@pytest.mark.parametrize("name", ["gpus", "fleet"])
@pytest.mark.parametrize("width", [80, 100, 160, 200])
def test_the_past_is_asked_only_where_it_is_shown(fleet, name, width):
    told(fleet, range(30), utilization=50.0)
    asked: list[int] = []

    def series(key: GpuKey, quantity: str, slots: int) -> Series | None:
        asked.append(slots)
        return fleet.history.series(key, quantity, slots)

    at_width = context(fleet, NOW + 29, width=width)
    placed = [pane(name).columns(at_width)[p.index].key for p in lay_out(pane(name).columns(at_width), width)]
    lines(name, fleet, width, NOW + 29, series=series)
    assert ("trend" in placed) == bool(asked) == (width >= 160)
    assert max(asked, default=0) <= 130
