"""What the fleet makes of facts: which source counts, who is missing, what changed, what is remembered."""

import math

import pytest

from gputop.fleet import Fleet
from gputop.fleet.precedence import disagreements
from gputop.model.facts import (
    DeviceCount,
    GpuFact,
    HoldersFact,
    NodeCondition,
    Presence,
    WorkloadFact,
    WorkloadsRoster,
    XidFact,
    XidKind,
)
from gputop.model.identity import GpuRef, NodeKey, NodeRef
from gputop.model.reading import NOT_SUPPORTED
from gputop.model.status import SourceState, SourceStatus
from gputop.model.workload import Holder, Workload
from tests.unit.fleet.build import EXPORTER, NVML, PROMETHEUS, UUIDS, gpu, nodes, ref, roster, rows, tell


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


def test_the_nearer_source_counts_while_it_is_fresh(fleet: Fleet) -> None:
    tell(fleet, PROMETHEUS, 10.0, gpu("h", 0, power_w=300.0), stale_after_s=60.0)
    tell(fleet, NVML, 10.0, gpu("h", 0, power_w=690.0), stale_after_s=5.0)
    tell(fleet, PROMETHEUS, 12.0, gpu("h", 0, power_w=310.0), stale_after_s=60.0)
    assert rows(fleet)[0].readings["power_w"].number == 690.0
    tell(fleet, PROMETHEUS, 30.0, gpu("h", 0, power_w=320.0), stale_after_s=60.0)
    assert rows(fleet)[0].readings["power_w"].number == 320.0
    tell(fleet, NVML, 31.0, gpu("h", 0, power_w=700.0), stale_after_s=5.0)
    assert rows(fleet)[0].readings["power_w"].number == 700.0


def test_a_number_beats_a_nearer_absence(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, gpu("h", 0, utilization=NOT_SUPPORTED))
    tell(fleet, EXPORTER, 10.0, gpu("h", 0, utilization=71.0))
    assert rows(fleet)[0].readings["utilization"].number == 71.0


def test_an_absence_is_never_a_number(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, gpu("h", 0, utilization=NOT_SUPPORTED))
    reading = rows(fleet)[0].readings["utilization"]
    assert reading.number is None
    assert reading.state(10.0) == "n/a"


def test_a_late_fact_does_not_overwrite_a_newer_one(fleet: Fleet) -> None:
    tell(fleet, EXPORTER, 20.0, gpu("h", 0, utilization=50.0))
    tell(fleet, EXPORTER, 10.0, gpu("h", 0, utilization=10.0))
    assert rows(fleet)[0].readings["utilization"].number == 50.0


def test_a_value_goes_stale_with_time_alone(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, gpu("h", 0, utilization=50.0), stale_after_s=5.0)
    reading = rows(fleet)[0].readings["utilization"]
    assert (reading.state(14.0), reading.state(16.0)) == ("ok", "stale")
    assert reading.age_s(9.0) == 0.0


def test_sources_that_cannot_both_be_right_are_named(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, gpu("h", 0, ecc_aggregate_uncorrected=0.0, utilization=3.0))
    tell(fleet, EXPORTER, 10.0, gpu("h", 0, ecc_aggregate_uncorrected=4.0, utilization=90.0))
    row = rows(fleet)[0]
    (found,) = disagreements(row.readings, row.rivals, 10.0)
    assert (found.quantity, found.counts.number, found.other.number) == (
        "ecc_aggregate_uncorrected",
        0.0,
        4.0,
    )


def test_a_gpu_no_longer_listed_stays_as_missing_with_its_last_values(fleet: Fleet) -> None:
    tell(fleet, EXPORTER, 10.0, roster("h", *range(8)), *(gpu("h", i, utilization=96.0) for i in range(8)))
    tell(fleet, EXPORTER, 40.0, roster("h", 0, 1, 2, 4, 5, 6, 7))
    row = rows(fleet)[3]
    assert (row.presence, row.presence_since) == (Presence.MISSING, 40.0)
    assert "lists 7" in row.presence_reason
    assert row.readings["utilization"].number == 96.0
    assert len(rows(fleet)) == 8


def test_a_missing_gpu_comes_back(fleet: Fleet) -> None:
    tell(fleet, EXPORTER, 10.0, roster("h", 0, 1))
    tell(fleet, EXPORTER, 20.0, roster("h", 0))
    tell(fleet, EXPORTER, 30.0, roster("h", 0, 1))
    assert [r.presence for r in rows(fleet)] == [Presence.PRESENT] * 2


def test_a_silent_exporter_makes_gpus_unknown_not_missing(fleet: Fleet) -> None:
    tell(fleet, EXPORTER, 10.0, roster("h", 0, 1))
    tell(fleet, EXPORTER, 20.0, roster("h", silent="HTTP 500"))
    assert {r.presence for r in rows(fleet)} == {Presence.UNKNOWN}
    assert "HTTP 500" in rows(fleet)[0].presence_reason
    assert nodes(fleet)[0].coverage[0].boards == 2


def test_lost_by_nvml_beats_a_list_of_the_exporter(fleet: Fleet) -> None:
    tell(fleet, EXPORTER, 10.0, roster("h", 0))
    tell(fleet, NVML, 10.0, GpuFact(ref("h", 0), {}, Presence.LOST, "GPU is lost"))
    tell(fleet, EXPORTER, 11.0, roster("h", 0))
    assert rows(fleet)[0].presence is Presence.LOST
    tell(fleet, NVML, 12.0, GpuFact(ref("h", 0), {}, Presence.PRESENT))
    assert rows(fleet)[0].presence is Presence.PRESENT


def test_one_bad_gpu_leaves_the_others_alone(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, *(gpu("h", i, utilization=1.0) for i in range(8)))
    tell(fleet, NVML, 11.0, GpuFact(ref("h", 3), {}, Presence.RESET_REQUIRED, "reset required"))
    tell(fleet, NVML, 12.0, *(gpu("h", i, utilization=2.0) for i in range(8) if i != 3))
    assert [r.readings["utilization"].number for r in rows(fleet)] == [2.0, 2.0, 2.0, 1.0, 2.0, 2.0, 2.0, 2.0]


def test_an_instance_taken_apart_by_reconfiguration_is_gone(fleet: Fleet) -> None:
    instance = GpuRef("h", uuid=UUIDS[0], instance="7")
    board = roster("h", 0)
    tell(fleet, NVML, 10.0, type(board)(NodeRef("h"), (*board.gpus, instance)))
    key = rows(fleet)[1].key
    tell(fleet, NVML, 20.0, board)
    assert len(rows(fleet)) == 1
    assert fleet.take_changes().replaced[key] is None


def test_changes_name_what_changed_and_no_more(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, *(gpu("h", i, utilization=1.0) for i in range(4)))
    assert fleet.take_changes().rows
    tell(fleet, NVML, 11.0, *(gpu("h", i, utilization=2.0 if i == 2 else 1.0) for i in range(4)))
    changes = fleet.take_changes()
    assert {k.uuid for k in changes.gpus} == {UUIDS[2]}
    assert changes.nodes == {NodeKey("", "h")}
    assert not changes.rows
    assert not fleet.take_changes()


def test_a_view_does_not_change_when_the_fleet_does(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, gpu("h", 0, utilization=1.0), gpu("h", 1, utilization=1.0))
    before = fleet.view()
    assert fleet.view() is before
    tell(fleet, NVML, 11.0, gpu("h", 0, utilization=2.0))
    after = fleet.view()
    first, second = (before.on_node(NodeKey("", "h")), after.on_node(NodeKey("", "h")))
    assert first[0].readings["utilization"].number == 1.0
    assert second[0].readings["utilization"].number == 2.0
    assert first[1] is second[1]


def test_history_keeps_gaps_as_gaps(fleet: Fleet) -> None:
    for at in (100.0, 101.0, 104.0):
        tell(fleet, NVML, at, gpu("h", 0, utilization=at - 100))
    series = fleet.history.series(rows(fleet)[0].key, "utilization", 5)
    assert series is not None
    assert [None if math.isnan(v) else v for v in series.values] == [0.0, 1.0, None, None, 4.0]
    assert series.end == 104.0


def test_history_forgets_what_is_older_than_the_ring(fleet: Fleet) -> None:
    tell(fleet, NVML, 100.0, gpu("h", 0, utilization=7.0))
    tell(fleet, NVML, 100000.0, gpu("h", 0, utilization=8.0))
    series = fleet.history.series(rows(fleet)[0].key, "utilization", 10**6)
    assert series is not None
    assert [v for v in series.values if not math.isnan(v)] == [8.0]


def test_a_standing_xid_is_one_happening_of_unknown_time(fleet: Fleet) -> None:
    for at in (10.0, 20.0, 30.0):
        tell(fleet, PROMETHEUS, at, XidFact(ref("h", 0), 31, XidKind.LAST))
    (record,) = rows(fleet)[0].xids
    assert record.from_start
    assert (record.first_seen, record.last_seen, record.count) == (10.0, 30.0, 1)


def test_a_new_standing_xid_is_a_new_happening(fleet: Fleet) -> None:
    tell(fleet, PROMETHEUS, 10.0, gpu("h", 0, temperature_c=1.0))
    for at, xid in ((20.0, 31), (30.0, 79), (40.0, 31)):
        tell(fleet, PROMETHEUS, at, XidFact(ref("h", 0), xid, XidKind.LAST))
    assert [(x.xid, x.from_start) for x in rows(fleet)[0].xids] == [(31, False), (79, False), (31, False)]


def test_xid_events_are_counted_and_windows_are_not(fleet: Fleet) -> None:
    for at in (10.0, 11.0, 12.0):
        tell(fleet, NVML, at, XidFact(ref("h", 0), 94, XidKind.EVENT))
        tell(fleet, PROMETHEUS, at, XidFact(ref("h", 0), 94, XidKind.WINDOW, 2, 300.0))
    assert {(x.kind, x.count) for x in rows(fleet)[0].xids} == {(XidKind.EVENT, 3), (XidKind.WINDOW, 2)}


def test_holders_of_each_source_are_kept_apart(fleet: Fleet) -> None:
    pod = Holder("kubernetes", "ml", "train-0", how="exporter label")
    tell(fleet, PROMETHEUS, 10.0, HoldersFact(ref("h", 0), (pod,)))
    tell(fleet, NVML, 10.0, HoldersFact(ref("h", 0), ()))
    assert [(c.origin.source, c.holders) for c in rows(fleet)[0].holders] == [
        ("nvml", ()),
        ("prometheus", (pod,)),
    ]


def _pod(name: str, node: str, phase: str) -> WorkloadFact:
    return WorkloadFact(Workload("", "kubernetes", "ml", name, name, node, phase, (("nvidia.com/gpu", 8.0),)))


def test_workloads_come_and_go(fleet: Fleet) -> None:
    tell(
        fleet,
        PROMETHEUS,
        10.0,
        DeviceCount(NodeRef("h"), "nvidia.com/gpu", 8.0, 7.0),
        _pod("a", "h", "Running"),
    )
    tell(fleet, PROMETHEUS, 10.0, _pod("b", "", "Pending"))
    view = fleet.view()
    assert view.workloads["", "a"].node == NodeKey("", "h")
    assert view.workloads["", "b"].node is None
    tell(fleet, PROMETHEUS, 20.0, WorkloadsRoster("", frozenset({"b"})))
    assert set(fleet.view().workloads) == {("", "b")}


def test_nodes_without_devices_make_no_rows(fleet: Fleet) -> None:
    tell(
        fleet, PROMETHEUS, 10.0,
        DeviceCount(NodeRef("cpu-1"), "nvidia.com/gpu", 0.0, 0.0),
        NodeCondition(NodeRef("cpu-2"), cordoned=True),
    )  # fmt: skip
    assert not nodes(fleet)


def test_a_source_status_that_did_not_change_is_no_change(fleet: Fleet) -> None:
    status = SourceStatus("nvml", "nvml", SourceState.LIVE, 10.0)
    fleet.set_status(status)
    assert fleet.take_changes().sources == {"nvml"}
    fleet.set_status(status)
    assert not fleet.take_changes()


def test_machines_long_given_back_are_forgotten(fleet: Fleet) -> None:
    tell(fleet, EXPORTER, 10.0, roster("old", 0))
    tell(fleet, EXPORTER, 1000.0, roster("new", 1))
    fleet.expire(1010.0, 500.0)
    assert [n.key.host for n in nodes(fleet)] == ["new"]
    tell(fleet, EXPORTER, 1020.0, roster("old", 0))
    assert len(nodes(fleet)) == 2
