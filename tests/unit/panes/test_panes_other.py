"""Memory, Errors, Sources, processes, details, heat map, header; and everything in ASCII."""

import pytest

from gputop.fleet import Fleet
from gputop.model.facts import GpuFact, HoldersFact, NodeTrouble, Presence, ProcessesFact, XidFact, XidKind
from gputop.model.identity import GpuRef, NodeKey, NodeRef
from gputop.model.process import GpuProcess
from gputop.model.reading import NOT_SUPPORTED, Absent, Value
from gputop.model.status import Cost, Finding, SourceState, SourceStatus
from gputop.model.workload import Holder
from gputop.panes.charts import CHARTS, Drawing, draw
from gputop.panes.details import detail_lines, detail_title
from gputop.panes.header import header_lines
from gputop.panes.heat import heat_glyph, heat_rows, heat_summary, heat_title
from gputop.panes.processes import ProcessesPane, ProcessKey
from gputop.panes.registry import PANES
from tests.unit.panes.look import (
    BUSES,
    EXPORTER,
    FULL,
    NOW,
    NVML,
    PROMETHEUS,
    UUIDS,
    busy_node,
    cell,
    context,
    gpu,
    key_of,
    lines,
    ref,
    roster,
    row,
    scheduled,
    tell,
    text,
)

HOST = "gpu-a03"


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


def one(fleet: Fleet, **readings: Value) -> None:
    tell(fleet, NVML, NOW, GpuFact(ref(HOST, 0), {**FULL, **readings}), roster(HOST, 0))


def process(pid: int, memory: float | Absent, kinds: str = "C", user: str | Absent = "ml") -> GpuProcess:
    return GpuProcess(pid, kinds, memory, 96.0, 0.0, 0.0, user, "python train.py --cfg x", NOW - 60)


# -- Memory -----------------------------------------------------------------------------------------------


def test_reserved_memory_stands_apart_from_used(fleet):
    one(
        fleet,
        memory_total_mib=15360.0,
        memory_used_mib=0.0,
        memory_reserved_mib=265.0,
        memory_free_mib=15096.0,
    )
    told = [cell("memory", fleet, key_of(HOST, 0), c).plain for c in ("used", "reserved", "free", "total", "percent")]
    assert told == ["0", "0.3", "15", "15", "0%"]
    assert "#" not in cell("memory", fleet, key_of(HOST, 0), "fill").plain


@pytest.mark.parametrize(("amounts", "shown"), [((1024.0, 2048.0), "3.0"), ((1024.0, NOT_SUPPORTED), "?"), ((), "0")])
def test_the_sum_of_processes_is_unknown_when_one_of_them_is(fleet, amounts, shown):
    one(fleet)
    tell(fleet, NVML, NOW, ProcessesFact(ref(HOST, 0), tuple(process(i, a) for i, a in enumerate(amounts))))
    assert cell("memory", fleet, key_of(HOST, 0), "procs").plain == shown


# -- Errors -----------------------------------------------------------------------------------------------


def test_ecc_that_is_off_counts_nothing(fleet):
    one(fleet, ecc_mode=0.0, ecc_volatile_uncorrected=0.0)
    assert cell("errors", fleet, key_of(HOST, 0), "vunc").plain == "off"


@pytest.mark.parametrize(
    ("told", "shown", "role"),
    [(None, "?", "unknown"), (NOT_SUPPORTED, "n/a", "na"), (0.0, "0", "dim"), (3.0, "3", "bad")],
)
def test_an_error_count_is_0_only_when_it_is_told(fleet, told, shown, role):
    one(fleet, **({} if told is None else {"ecc_volatile_uncorrected": told}))
    assert cell("errors", fleet, key_of(HOST, 0), "vunc")[:2] == (shown, role)


def test_a_standing_xid_is_old_news(fleet):
    fact = XidFact(ref(HOST, 0), 31, XidKind.LAST)
    for at in (NOW - 6 * 3600, NOW):
        tell(fleet, PROMETHEUS, at, gpu(HOST, 0, **FULL), fact, roster(HOST, 0), stale_after_s=60.0)
    shown = cell("errors", fleet, key_of(HOST, 0), "xid")
    assert shown[:2] == ("last 31, >6h old", "dim")
    assert cell("fleet", fleet, NodeKey("", HOST), "health").plain == ""
    assert cell("fleet", fleet, NodeKey("", HOST), "gpus").plain == "█"


def test_no_xid_told_is_a_dash_not_0(fleet):
    one(fleet)
    assert cell("errors", fleet, key_of(HOST, 0), "xid").plain == "-"


def test_an_xid_event_is_told_with_its_age_and_count(fleet):
    one(fleet)
    for at in (NOW - 60, NOW - 10):
        tell(fleet, NVML, at, XidFact(ref(HOST, 0), 94, XidKind.EVENT, at=at))
    assert cell("errors", fleet, key_of(HOST, 0), "xid")[:2] == ("94 x2 10s ago", "warn")


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        ({"nvlink_recovery_errors": 1.0}, "1 NVLink recovery"),
        ({"nvlink_crc_flit_errors": 12.0}, "12 NVLink CRC"),
        ({"recovery_action": 1.0}, "asks: GPU reset"),
        ({"row_remap_failed": 1.0, "ecc_volatile_corrected": 4.0}, "remap FAILED"),
        ({"ecc_volatile_corrected": 27000.0}, "27k corrected ECC"),
    ],
)
def test_80_columns_tell_why_a_row_stands_first_also_without_a_column_for_it(fleet, readings, words):
    one(fleet, **readings)
    tell(fleet, NVML, NOW, gpu("gpu-a04", 0, **FULL), roster("gpu-a04", 0))
    first = lines("errors", fleet, width=80)[0]
    assert HOST in first
    assert words in first


def test_nothing_is_wrong_only_where_some_counter_says_so(fleet):
    one(fleet)
    assert cell("errors", fleet, key_of(HOST, 0), "worst").plain == "?"
    one(fleet, ecc_volatile_uncorrected=0.0)
    assert cell("errors", fleet, key_of(HOST, 0), "worst").plain == "-"


def test_what_only_a_board_counts_is_not_missing_from_its_instances(fleet):
    instance = GpuRef(HOST, "", UUIDS[0], BUSES[0], 0, "1", "MIG-1")
    facts = (gpu(HOST, 0, **FULL), GpuFact(instance, {"memory_used_mib": 1024.0}))
    tell(fleet, NVML, NOW, *facts, roster(HOST, 0))
    key = key_of(HOST, 0, "1")
    assert cell("errors", fleet, key, "vunc").plain == "n/a"
    assert cell("gpus", fleet, key, "temp").plain == "n/a"
    assert cell("gpus", fleet, key, "sm").plain == "?"


def test_gpus_that_have_anything_to_tell_come_first(fleet):
    told = ({}, {"ecc_aggregate_corrected": 5.0}, {"row_remap_failed": 1.0}, {"row_remap_pending": 1.0})
    tell(
        fleet, NVML, NOW, *(GpuFact(ref(HOST, i), {**FULL, **r}) for i, r in enumerate(told)), roster(HOST, 0, 1, 2, 3)
    )
    assert [line.split()[0] for line in lines("errors", fleet)] == ["2", "3", "1", "0"]


# -- Sources ----------------------------------------------------------------------------------------------


def test_a_source_tells_state_since_why_when_again_and_what_it_lacks(fleet):
    lacks = Finding("no process is told", "--nvml", "warning")
    down = SourceStatus(
        "prometheus", "prometheus", SourceState.DENIED, NOW - 240, "HTTP 403", next_try_at=NOW + 12,
        last_data_at=NOW - 300, findings=(lacks,), cost=Cost(7, 2048, 0.5, 0.25),
    )  # fmt: skip
    fleet.set_status(down)
    shown = lines("sources", fleet, width=120)
    assert "HTTP 403" in shown[1]
    for part in ("prometheus", "✗ denied", "4m", "5m", "in 12s", "0.25s", "0.5", "7"):
        assert part in shown[0]
    assert "no process is told" in shown[2]
    assert "--nvml" in shown[2]


@pytest.mark.parametrize("width", [20, 40, 80])
def test_why_a_source_is_down_can_be_read_whole_at_any_width(fleet, width):
    reason = "NVIDIA library 550.163.01 does not fit the loaded kernel module 535.54.03: load the module again"
    advice = "add to the exporter's list: DCGM_EXP_XID_ERRORS_COUNT, DCGM_EXP_XID_ERRORS_TOTAL"
    findings = (Finding("only the last Xid is told", advice, "warning"),)
    fleet.set_status(SourceStatus("nvml", "nvml", SourceState.DOWN, NOW - 1, reason, findings=findings))
    shown = "".join("".join(lines("sources", fleet, width=width)[1:]).split())
    for words in (reason, advice):
        assert "".join(words.split()) in shown


def test_the_header_puts_the_broken_source_first_with_its_reason(fleet):
    for name, state, reason in (("nvml", SourceState.LIVE, ""), ("prom", SourceState.DOWN, "timeout")):
        fleet.set_status(SourceStatus(name, name, state, NOW - 1, reason, last_data_at=NOW - 41))
    left, _ = header_lines(context(fleet), marks=(), interval_s=1.0, read_only=True)[2]
    assert text(left) == "prom ✗ 41s timeout nvml ● 41s"


# -- Processes --------------------------------------------------------------------------------------------


def processes(fleet: Fleet, width: int = 80, now: float = NOW) -> list[str]:
    shown, at = ProcessesPane(), context(fleet, now, node=NodeKey("", HOST))
    return [row(shown, at, key, width) for key in shown.order(at)]


def told_processes(fleet: Fleet) -> None:
    """Two GPUs: ann trains on the first, bob serves on the second, whose pod only an exporter names."""
    train = GpuProcess(
        4001, "C", 9000.0, 96.0, 0.0, 0.0, "ann", "python train.py", NOW, Holder("kubernetes", "ml", "t")
    )
    serve = GpuProcess(4002, "C", 8000.0, 10.0, 0.0, 0.0, "bob", "vllm serve", NOW)
    facts = [gpu(HOST, i, **{**FULL, "utilization": u}) for i, u in enumerate((97.0, 20.0))]
    tell(
        fleet,
        NVML,
        NOW,
        *facts,
        roster(HOST, 0, 1),
        ProcessesFact(ref(HOST, 0), (train,)),
        ProcessesFact(ref(HOST, 1), (serve,)),
    )
    tell(fleet, PROMETHEUS, NOW, HoldersFact(ref(HOST, 1), (Holder("kubernetes", "web", "chat"),)), stale_after_s=60.0)


@pytest.mark.parametrize(
    ("typed", "pids"),
    [
        ("", "4001 4002"),
        ("train", "4001"),
        ("user:bob", "4002"),
        ("command:vllm", "4002"),
        ("pid:4001", "4001"),
        ("holder:web/", "4002"),
        ("!user:ann", "4002"),
        ("util>50", "4001"),
        ("name:gpu1", "4002"),
        ("nobody", ""),
    ],
)
def test_a_filter_holds_for_processes_and_for_the_gpus_they_are_on(fleet, typed, pids):
    told_processes(fleet)
    at = context(fleet, filter=typed)
    assert " ".join(str(key.pid) for key in ProcessesPane().order(at) if isinstance(key, ProcessKey)) == pids
    assert [line.split()[0] for line in lines("gpus", fleet, filter=typed)] == [
        str(int(p) - 4001) for p in pids.split()
    ]
    assert "filter" in ProcessesPane().empty(context(fleet, filter="nobody")).plain


def test_a_node_is_found_by_a_process_on_it(fleet):
    told_processes(fleet)
    tell(fleet, NVML, NOW, gpu("gpu-a04", 0, **FULL), roster("gpu-a04", 0))
    assert [line.split()[0] for line in lines("fleet", fleet, filter="user:bob")] == [HOST]


def test_a_process_on_an_instance_names_the_board_and_the_instance(fleet):
    instance = GpuRef(HOST, "", UUIDS[1], BUSES[1], -1, "7", "MIG-7")
    facts = (gpu(HOST, 1, **FULL), GpuFact(instance, {"memory_used_mib": 1024.0}), roster(HOST, 1))
    tell(fleet, NVML, NOW, *facts, ProcessesFact(instance, (process(41, 1024.0),)))
    assert processes(fleet)[0].split()[:2] == ["41", "1:7"]


def test_one_process_on_two_gpus_is_two_rows_and_unknown_memory_comes_last(fleet):
    busy_node(fleet, HOST, 0, 1)
    tell(
        fleet,
        NVML,
        NOW,
        ProcessesFact(ref(HOST, 0), (process(699, NOT_SUPPORTED), process(700, 1024.0, "C+G"))),
        ProcessesFact(ref(HOST, 1), (process(700, 2048.0),)),
    )
    shown = processes(fleet)
    assert [line.split()[:2] for line in shown] == [["700", "1"], ["700", "0"], ["699", "0"]]
    assert "2.0G" in shown[0]
    assert "C+G" in shown[1]
    assert "n/a" in shown[2]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (None, "no source lists processes"),
        ((), "no process on these GPUs"),
        (Absent("unknown", "x", "not allowed"), "not allowed"),
    ],
)
def test_no_process_says_whether_there_is_none_or_nobody_tells(fleet, told, words):
    busy_node(fleet, HOST, 0)
    if told is not None:
        tell(fleet, NVML, NOW, ProcessesFact(ref(HOST, 0), told))
    assert words in ProcessesPane().empty(context(fleet, node=NodeKey("", HOST))).plain


# -- Details, charts, heat map ----------------------------------------------------------------------------


def test_details_tell_value_source_age_rivals_and_reasons(fleet):
    tell(fleet, NVML, NOW - 3, gpu(HOST, 0, temperature_c=40.0, fan_speed_percent=NOT_SUPPORTED), roster(HOST, 0))
    tell(fleet, PROMETHEUS, NOW - 20, gpu(HOST, 0, temperature_c=80.0), roster(HOST, 0), stale_after_s=60.0)
    told = "\n".join(line.plain for line in detail_lines(context(fleet), key_of(HOST, 0)))
    assert "40 °C  nvml 3s ago" in told
    assert "80 °C  prometheus 20s ago" in told
    assert "Sources disagree" in told
    assert "not supported by this device" in told
    assert key_of(HOST, 0).uuid in told


def test_details_of_a_node_tell_everything_found(fleet):
    one(fleet, row_remap_failed=1.0, temperature_c=95.0)
    told = "\n".join(line.plain for line in detail_lines(context(fleet), NodeKey("", HOST)))
    assert "remap FAILED" in told
    assert "95 °C" in told


def test_details_of_a_gpu_that_is_gone_say_so(fleet):
    assert "gone" in text(detail_title(context(fleet), key_of(HOST, 0)))
    assert detail_lines(context(fleet), key_of(HOST, 0)) == []


def drawn(fleet: Fleet, kind: str, now: float = NOW, **settings: object) -> Drawing:
    at = context(fleet, now, series=fleet.history.series, **settings)
    return draw(at, key_of(HOST, 0), next(k for k in CHARTS if k.id == kind), None)


def test_a_chart_ends_now_and_leaves_a_gap_where_nothing_was_told(fleet):
    for at in [*range(60), *range(90, 120)]:
        tell(fleet, NVML, NOW + at, gpu(HOST, 0, power_w=300.0 + at))
    values = drawn(fleet, "power", NOW + 119).series[0].values
    assert values[-1] == 419.0
    assert [v is None for v in values[-120:]] == [False] * 60 + [True] * 30 + [False] * 30
    silent = drawn(fleet, "power", NOW + 149)
    assert silent.series[0].values[-30:] == (None,) * 30
    assert silent.title[0].plain.startswith("power ?")
    held = drawn(fleet, "power", NOW + 100)
    assert held.series[0].values[-1] == 400.0


def test_a_slow_cadence_is_no_gap(fleet):
    for at in range(0, 60, 2):
        tell(fleet, NVML, NOW + at, gpu(HOST, 0, power_w=300.0))
    for at in range(60, 120, 4):
        tell(fleet, NVML, NOW + at, gpu(HOST, 0, power_w=300.0))
    assert None not in drawn(fleet, "power", NOW + 117).series[0].values[-57:]


def test_a_chart_says_the_newest_value_and_how_far_it_went(fleet):
    for at, power in enumerate((300.0, 120.0, 610.0, 450.0)):
        tell(fleet, NVML, NOW + at, gpu(HOST, 0, power_w=power, utilization=50.0, memory_used_mib=1.0))
    assert drawn(fleet, "power", NOW + 3).title[0].plain == "power 450W (120 to 610)"
    assert "to" not in text(list(drawn(fleet, "util", NOW + 3).title))


def test_a_chart_without_history_says_unknown(fleet):
    one(fleet)
    drawing = draw(context(fleet), key_of(HOST, 0), next(k for k in CHARTS if k.id == "power"), None)
    assert "power ?" in text(list(drawing.title))


def test_the_heat_map_has_a_glyph_for_each_board(fleet):
    busy_node(fleet, HOST, 0, 1)
    (shown,) = heat_rows(context(fleet))
    assert [heat_glyph(context(fleet), key)[0] for key in shown.keys] == ["█", "█"]
    assert "97%" in text(heat_summary(context(fleet), key_of(HOST, 1)))


def test_a_narrowed_heat_map_has_the_board_of_an_instance_and_all_boards_of_a_node(fleet):
    other = busy_node(fleet, "gpu-a01", 3, 4)
    busy_node(fleet, HOST, 0, 1)
    busy_node(fleet, "gpu-a09", 5)
    shown = heat_rows(context(fleet), [other, key_of(HOST, 1, instance="3")])
    assert [row.label.plain for row in shown] == ["gpu-a01", HOST]
    assert [row.keys for row in shown] == [(key_of("gpu-a01", 3), key_of("gpu-a01", 4)), (key_of(HOST, 1),)]
    assert heat_rows(context(fleet), []) == []


def test_the_title_of_the_heat_map_tells_what_it_is_narrowed_to(fleet):
    told = text(heat_title(context(fleet, filter="util>80", node=NodeKey("", HOST))))
    assert told.startswith(f"Utilisation node {HOST} /util>80")
    assert text(heat_title(context(fleet, filter="wörk", ascii_only=True))).isascii()
    assert text(heat_title(context(fleet))).startswith("Utilisation · free")


# -- ASCII ------------------------------------------------------------------------------------------------


def everything(fleet: Fleet) -> None:
    busy_node(fleet, HOST, 0, 1, 2)
    scheduled(fleet, HOST, 8.0, 8.0)
    holders = (Holder("kubernetes", "ml", "wörk-訓練", uid="1"), Holder("kubernetes", "ml", "b", uid="2"))
    tell(
        fleet,
        NVML,
        NOW,
        GpuFact(ref(HOST, 1), {**FULL, "temperature_c": 99.0}),
        GpuFact(ref(HOST, 2), {}, Presence.LOST, "weg für immer"),
        GpuFact(ref(HOST, 3), {"memory_used_mib": 10.0, "memory_total_at_least_mib": 90.0}),
        roster(HOST, 0, 1, 2, 3),
        ProcessesFact(ref(HOST, 0), (process(1, 10.0, user="jürgen"),)),
        NodeTrouble(NodeRef(HOST), "x", "größer als erwartet …"),
    )
    tell(fleet, EXPORTER, NOW, HoldersFact(ref(HOST, 1), holders))
    fleet.set_status(SourceStatus("nvml", "nvml", SourceState.DOWN, NOW, "kaputt – später", findings=(Finding("é"),)))


@pytest.mark.parametrize("width", [20, 80, 200])
def test_ascii_alone_where_asked_for(fleet, width):
    everything(fleet)
    at = context(fleet, width=width, ascii_only=True)
    drawn = [text(left + right) for left, right in header_lines(at, marks=(), interval_s=1.0, read_only=False)]
    for shown in (*PANES, ProcessesPane()):
        drawn += [c.title for c in shown.columns(at)] + [shown.empty(at).plain]
        drawn += [c.plain for key in shown.order(at) for c in shown.cells(at, key) if c is not None]
    drawn += [c.plain for key in (key_of(HOST, 1), NodeKey("", HOST)) for c in detail_lines(at, key)]
    drawn += [heat_glyph(at, key)[0] for line in heat_rows(at) for key in line.keys]
    drawn += [text(heat_summary(at, key_of(HOST, i))) for i in (0, 2)]
    drawn += [text(list(draw(at, key_of(HOST, 0), kind, None).title)) for kind in CHARTS]
    assert [d for d in drawn if not d.isascii()] == []


@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("width", [3, 20, 80, 156, 184, 240])
def test_every_width_keeps_the_columns_in_their_places(fleet, count, width):
    busy_node(fleet, HOST, *range(count))
    everything(fleet)
    for shown in PANES:
        at = context(fleet, width=width)
        drawn = [row(shown, at, key, width) for key in shown.order(at)]
        assert drawn
        assert all(len(line) <= width for line in drawn)


def test_no_source_and_no_row_say_what_is_waited_for(fleet):
    assert "no source" in PANES[1].empty(context(fleet)).plain
    fleet.set_status(SourceStatus("prom", "prometheus", SourceState.DOWN, NOW, "refused"))
    assert "prom is down: refused" in PANES[1].empty(context(fleet)).plain


def test_a_long_label_of_the_details_ends_before_its_value(fleet):
    holder = Holder("kubernetes", "a-namespace-of-some-length", "a-pod-with-a-long-name-0", how="process cgroup")
    tell(fleet, NVML, NOW, gpu(HOST, 0, **FULL), HoldersFact(ref(HOST, 0), (holder,)), roster(HOST, 0))
    shown = "\n".join(line.plain for line in detail_lines(context(fleet), key_of(HOST, 0)))
    assert "a-namespace-of-some-length/a-pod-with-a-long-name-0  process cgroup" in shown
