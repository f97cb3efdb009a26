"""The Fleet pane: what each node is worth, and what is said of it first."""

from typing import Any

import pytest

from gputop.fleet import Fleet
from gputop.model.facts import GpuFact, HoldersFact, NodeFact, NodeTrouble, Presence, ProcessesFact, XidFact, XidKind
from gputop.model.identity import NodeKey, NodeRef
from gputop.model.reading import NOT_SUPPORTED
from gputop.model.workload import Holder
from gputop.panes.header import header_lines
from gputop.panes.node_summary import SUMMARIES
from tests.unit.panes.look import (
    EXPORTER,
    FULL,
    NOW,
    NVML,
    PROMETHEUS,
    busy_node,
    cell,
    context,
    gpu,
    lines,
    pod,
    ref,
    roster,
    scheduled,
    tell,
    text,
)


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


def shown(fleet: Fleet, host: str, column: str, now: float = NOW) -> str:
    return cell("fleet", fleet, NodeKey("", host), column, now=now).plain


def counts(fleet: Fleet, host: str) -> list[str]:
    return [shown(fleet, host, c) for c in ("advertised", "healthy", "used", "free")]


def header(fleet: Fleet, line: int, now: float = NOW) -> str:
    left, _ = header_lines(context(fleet, now), marks=(), interval_s=1.0, read_only=True)[line]
    return text(left)


def test_80_columns_tell_state_gpus_counts_memory_power_heat_and_age(fleet):
    busy_node(fleet, "gpu-a01")
    scheduled(fleet, "gpu-a01", 8.0, 8.0)
    pod(fleet, "llama", 8.0, "gpu-a01")
    (line,) = lines("fleet", fleet)
    assert line.split() == ["gpu-a01", "●", "████████", "8", "8", "8", "0", "592/637", "5.5", "71", "0s"]


def test_each_state_of_a_gpu_has_its_own_glyph(fleet):
    host = "gpu-a01"
    facts = [gpu(host, i, utilization=u) for i, u in enumerate((97.0, 40.0, 0.0, 0.0, 0.0))]
    held = HoldersFact(ref(host, 3), (Holder("kubernetes", "ml", "a", uid="u"),))
    nobody = ProcessesFact(ref(host, 2), ())
    lost = GpuFact(ref(host, 5), {}, Presence.LOST, "gone")
    silent = GpuFact(ref(host, 6), {"temperature_c": 40.0})
    sliced = GpuFact(ref(host, 7), {"utilization": NOT_SUPPORTED})
    tell(fleet, NVML, NOW, *facts, lost, silent, sliced, roster(host, *range(8)), nobody, held)
    drawn = cell("fleet", fleet, NodeKey("", host), "gpus")
    assert drawn.plain == "█▄·▁oX?-"
    assert [role for _, role in drawn.runs[2:]] == ["free", "idle", "dim", "bad", "unknown", "na"]
    assert cell("fleet", fleet, NodeKey("", host), "gpus", ascii_only=True).plain == "#-._oX?-"


def test_old_load_is_unknown_in_the_strip_and_in_the_counts(fleet):
    busy_node(fleet, "gpu-a01")
    assert "busy 8" in header(fleet, 1)
    assert shown(fleet, "gpu-a01", "gpus", NOW + 60) == "????????"
    assert "busy 0" in header(fleet, 1, NOW + 60)
    assert "not told 8" in header(fleet, 1, NOW + 60)
    assert cell("fleet", fleet, NodeKey("", "gpu-a01"), "power", now=NOW + 60).role == "stale"


# -- allocation -------------------------------------------------------------------------------------------


def test_without_a_scheduler_nothing_is_free_or_used(fleet):
    busy_node(fleet, "gpu-a01")
    assert counts(fleet, "gpu-a01") == ["?", "?", "?", "?"]
    assert "free ?" in header(fleet, 1)


def test_counts_without_any_workload_told_do_not_make_a_node_free(fleet):
    busy_node(fleet, "gpu-a01")
    scheduled(fleet, "gpu-a01", 8.0, 7.0)
    assert counts(fleet, "gpu-a01") == ["8", "7", "?", "?"]


def test_free_is_healthy_less_used_and_ended_pods_use_nothing(fleet):
    busy_node(fleet, "gpu-a01")
    scheduled(fleet, "gpu-a01", 8.0, 7.0)
    pod(fleet, "a", 4.0, "gpu-a01")
    pod(fleet, "b", 2.0, "gpu-a01", phase="Succeeded")
    assert counts(fleet, "gpu-a01") == ["8", "7", "4", "3"]
    assert "free 3" in header(fleet, 1)


def test_a_cordoned_node_has_nothing_free_and_says_so(fleet):
    busy_node(fleet, "gpu-a01")
    scheduled(fleet, "gpu-a01", 8.0, 8.0, cordoned=True)
    pod(fleet, "a", 4.0, "gpu-a01")
    assert counts(fleet, "gpu-a01")[3] == "-"
    assert shown(fleet, "gpu-a01", "state").endswith("C")
    assert "free 0" in header(fleet, 1)


def test_shares_of_a_gpu_are_not_counted_as_hardware(fleet):
    busy_node(fleet, "gpu-a01", 0, 1)
    scheduled(fleet, "gpu-a01", 8.0, 8.0)
    pod(fleet, "a", 1.0, "gpu-a01")
    assert counts(fleet, "gpu-a01") == ["8", "8", "1", "7"]
    assert "8 shares of 2 GPUs" in shown(fleet, "gpu-a01", "health")
    assert "free ?" in header(fleet, 1)


def test_where_some_nodes_have_no_scheduler_free_is_a_lower_bound(fleet):
    busy_node(fleet, "gpu-a01")
    busy_node(fleet, "gpu-b01")
    scheduled(fleet, "gpu-a01", 8.0, 8.0)
    pod(fleet, "a", 6.0, "gpu-a01")
    assert "free ≥2" in header(fleet, 1)


# -- sums -------------------------------------------------------------------------------------------------


def test_a_board_that_does_not_tell_makes_a_sum_a_lower_bound(fleet):
    tell(
        fleet,
        NVML,
        NOW,
        gpu("gpu-a01", 0, power_w=600.0),
        gpu("gpu-a01", 1, temperature_c=50.0),
        roster("gpu-a01", 0, 1),
    )
    assert shown(fleet, "gpu-a01", "power") == "≥0.6"
    assert shown(fleet, "gpu-a01", "vram") == "?"


def test_nothing_told_is_a_question_mark_not_0(fleet):
    tell(fleet, NVML, NOW, roster("gpu-a01", 0))
    assert [shown(fleet, "gpu-a01", c) for c in ("power", "temp", "vram")] == ["?", "?", "?"]


# -- health -----------------------------------------------------------------------------------------------


def test_a_gpu_at_little_load_looks_neither_idle_nor_free_without_colour(fleet):
    facts = [gpu("gpu-a01", i, utilization=u) for i, u in enumerate((6.0, 0.0, 0.0))]
    claims = (ProcessesFact(ref("gpu-a01", 1), ()), HoldersFact(ref("gpu-a01", 2), (Holder("kubernetes", "ml", "a"),)))
    tell(fleet, NVML, NOW, *facts, *claims, roster("gpu-a01", 0, 1, 2))
    for ascii_only in (False, True):
        drawn = cell("fleet", fleet, NodeKey("", "gpu-a01"), "gpus", ascii_only=ascii_only).plain
        assert len(set(drawn)) == 3


def test_the_slowest_pcie_link_of_a_node_is_marked_under_load_alone(fleet):
    tell(fleet, NVML, NOW, gpu("gpu-a01", 0, **FULL, **FULL_LINK), roster("gpu-a01", 0))
    assert shown(fleet, "gpu-a01", "pcie") == "5x16"
    tell(fleet, NVML, NOW, gpu("gpu-a01", 1, **FULL, **SLOW_LINK), roster("gpu-a01", 0, 1))
    assert shown(fleet, "gpu-a01", "pcie") == "1x16!"
    idle: dict[str, Any] = {**FULL, **SLOW_LINK, "utilization": 0.0}
    tell(fleet, NVML, NOW, gpu("gpu-a01", 1, **idle))
    assert shown(fleet, "gpu-a01", "pcie") == "1x16"


def test_how_many_pods_is_unknown_where_nobody_can_say_of_some_gpu(fleet):
    busy_node(fleet, "gpu-a01", 0, 1)
    assert shown(fleet, "gpu-a01", "holders") == "?"
    claims = [HoldersFact(ref("gpu-a01", i), (Holder("kubernetes", "ml", "a", uid="u"),)) for i in (0, 1)]
    tell(fleet, NVML, NOW, *claims)
    assert shown(fleet, "gpu-a01", "holders") == "1"


SLOW_LINK: dict[str, Any] = {
    "pcie_generation": 1.0,
    "pcie_generation_max": 5.0,
    "pcie_width": 16.0,
    "pcie_width_max": 16.0,
}
FULL_LINK: dict[str, Any] = {**SLOW_LINK, "pcie_generation": 5.0}


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        ({}, ""),
        ({"row_remap_failed": 1.0}, "gpu0 remap FAILED"),
        ({"row_remap_pending": 1.0}, "gpu0 remap pending"),
        ({"ecc_volatile_uncorrected": 2.0}, "gpu0 2 uncorrected ECC"),
        ({"recovery_action": 2.0}, "gpu0 asks: node reboot"),
        ({"clock_event_reasons": 64.0}, "gpu0 HW thermal"),
        ({"clock_event_reasons": 4.0}, ""),
        ({"temperature_c": 91.0}, "gpu0 91 °C"),
        ({"temperature_c": 80.0, "temperature_margin_c": 4.0}, "gpu0 80 °C"),
        ({"temperature_c": 91.0, "temperature_margin_c": 20.0}, ""),
        ({"temperature_c": 91.0, "temperature_slowdown_c": 105.0}, ""),
        ({"nvlink_links": 18.0, "nvlink_links_active": 17.0}, "gpu0 17/18 NVLinks"),
        ({"nvlink_links": 12.0, "nvlink_links_active": 0.0}, ""),
        ({**SLOW_LINK}, "gpu0 PCIe 1x16 of 5x16"),
        ({**SLOW_LINK, "utilization": 0.0}, ""),
        ({"ecc_volatile_corrected": 4000.0}, ""),
        ({"ecc_aggregate_uncorrected": 3.0}, ""),
    ],
)
def test_what_is_said_of_a_node(fleet, readings, words):
    tell(fleet, NVML, NOW, GpuFact(ref("gpu-a01", 0), {**FULL, **readings}), roster("gpu-a01", 0))
    assert shown(fleet, "gpu-a01", "health") == words


def test_a_lost_gpu_outranks_everything_and_counts_what_else_there_is(fleet):
    host = "gpu-a01"
    lost = GpuFact(ref(host, 3), {}, Presence.LOST, "gone")
    hot = GpuFact(ref(host, 1), {**FULL, "temperature_c": 95.0})
    tell(fleet, NVML, NOW, hot, lost, XidFact(ref(host, 3), 79, XidKind.EVENT), roster(host, 1, 3))
    assert shown(fleet, host, "health") == "gpu3 LOST, Xid 79 (+1)"
    assert "broken 1" in header(fleet, 1)


@pytest.mark.parametrize(("kind", "told"), [(XidKind.EVENT, True), (XidKind.LAST, False)])
def test_an_xid_is_news_only_when_it_is_known_to_be_new(fleet, kind, told):
    tell(fleet, PROMETHEUS, NOW, gpu("gpu-a01", 0, **FULL), XidFact(ref("gpu-a01", 0), 31, kind), roster("gpu-a01", 0))
    assert ("gpu0 Xid 31" in shown(fleet, "gpu-a01", "health")) is told
    assert "Xid" not in shown(fleet, "gpu-a01", "health", NOW + 2 * 3600)


def test_fewer_gpus_than_expected(fleet):
    busy_node(fleet, "gpu-h12", 0, 1, 2, 3)
    tell(fleet, PROMETHEUS, NOW, NodeFact(NodeRef("gpu-h12"), {"gpus_expected": 8.0}))
    assert shown(fleet, "gpu-h12", "health") == "lists 4 of 8 expected"


def test_a_silent_exporter_is_named_with_how_long_it_is_silent(fleet):
    tell(fleet, EXPORTER, NOW, gpu("gpu-a01", 0, **FULL), roster("gpu-a01", 0))
    tell(fleet, EXPORTER, NOW, roster("gpu-a01", silent="connection refused"))
    assert "exporter silent 41s: connection refused" in shown(fleet, "gpu-a01", "health", NOW + 41)
    assert "exporter silent 42s: connection refused" in shown(fleet, "gpu-a01", "health", NOW + 42)
    assert shown(fleet, "gpu-a01", "state").startswith("?")


def test_a_trouble_is_said_and_goes_when_it_ends(fleet):
    busy_node(fleet, "gpu-a01", 0)
    for words in ("driver 570 does not fit library 580", ""):
        tell(fleet, NVML, NOW, NodeTrouble(NodeRef("gpu-a01"), "driver_mismatch", words, "critical"))
        assert shown(fleet, "gpu-a01", "health") == words


def test_sources_that_disagree_on_a_number_are_told(fleet):
    tell(fleet, NVML, NOW, gpu("gpu-a01", 0, temperature_c=40.0), roster("gpu-a01", 0))
    tell(fleet, PROMETHEUS, NOW, gpu("gpu-a01", 0, temperature_c=80.0), stale_after_s=60.0)
    assert "gpu0: sources disagree on temperature" in shown(fleet, "gpu-a01", "health")


def test_what_needs_a_look_comes_first_and_the_rest_by_name(fleet):
    for host in ("gpu-a03", "gpu-a01", "gpu-a02"):
        busy_node(fleet, host, 0)
    tell(fleet, NVML, NOW, GpuFact(ref("gpu-a02", 0), {}, Presence.LOST, "gone"), roster("gpu-a02", 0))
    assert [line.split()[0] for line in lines("fleet", fleet)] == ["gpu-a02", "gpu-a01", "gpu-a03"]


def test_busy_idle_and_broken_are_never_added_to_free(fleet):
    host = "gpu-a01"
    held = HoldersFact(ref(host, 1), (Holder("kubernetes", "ml", "a", uid="u"),))
    tell(fleet, NVML, NOW, gpu(host, 0, utilization=90.0), gpu(host, 1, utilization=0.0), held, roster(host, 0, 1))
    assert header(fleet, 1).split() == ["busy", "1", "idle", "1", "free", "?"]


def test_a_large_fleet_is_summed_up_bit_by_bit_and_ends_exact(fleet):
    hosts = [f"n{i:03}" for i in range(300)]
    for load, counted in ((90.0, "busy 300"), (0.0, "busy 0")):
        for host in hosts:
            tell(fleet, PROMETHEUS, NOW, gpu(host, 0, utilization=load), roster(host, 0), stale_after_s=60.0)
        first = header(fleet, 1)
        assert counted not in first
        assert ("nodes not counted yet" in first) == (load > 0)
        for key in SUMMARIES.all(fleet.view(), NOW).due:
            SUMMARIES.of(fleet.view(), key, NOW)
        assert counted in header(fleet, 1)
        assert "not counted" not in header(fleet, 1)


def test_two_fleets_with_the_same_version_do_not_share_their_workloads():
    free = []
    for wants in (2.0, 5.0):
        fleet = Fleet()
        busy_node(fleet, "gpu-a01")
        scheduled(fleet, "gpu-a01", 8.0, 8.0)
        pod(fleet, "a", wants, "gpu-a01")
        free.append(counts(fleet, "gpu-a01")[3])
    assert free == ["6", "3"]
