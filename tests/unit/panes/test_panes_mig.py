"""MIG on screen: a board is what its instances are, and instances are counted apart from boards."""

import pytest

from gputop.fleet import Fleet
from gputop.model.facts import DeviceCount, GpuFact, HoldersFact, ProcessesFact, Roster
from gputop.model.identity import GpuRef, NodeKey, NodeRef
from gputop.model.reading import NOT_SUPPORTED
from gputop.model.workload import Holder
from gputop.panes.header import header_lines
from gputop.panes.heat import heat_glyph
from tests.unit.panes.look import BUSES, NOW, NVML, PROMETHEUS, UUIDS, cell, context, key_of, pod, tell, text

HOST = "mig-01"


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


def _ref(i: int, instance: str = "") -> GpuRef:
    return GpuRef(HOST, "", UUIDS[i], BUSES[i], i, instance)


def _boards(fleet: Fleet, *loads: tuple[float | None, ...], at: float = NOW) -> None:
    """Tell of boards in MIG mode by the loads of their instances, None where it is not told."""
    facts: list[GpuFact] = []
    refs: list[GpuRef] = []
    for i, of_board in enumerate(loads):
        refs.append(_ref(i))
        facts.append(GpuFact(_ref(i), {"mig_mode": 1.0, "utilization": NOT_SUPPORTED}))
        for j, load in enumerate(of_board):
            refs.append(_ref(i, str(j + 1)))
            facts.append(GpuFact(refs[-1], {} if load is None else {"graphics_activity": load}))
    tell(fleet, NVML, at, *facts, Roster(NodeRef(HOST), tuple(refs)))


def _holds(fleet: Fleet, i: int, instance: str, name: str = "asr-0") -> None:
    tell(fleet, NVML, NOW, HoldersFact(_ref(i, instance), (Holder("kubernetes", "serving", name, uid=name),)))


def _free(fleet: Fleet, i: int, *instances: str) -> None:
    tell(fleet, NVML, NOW, *(ProcessesFact(_ref(i, instance), ()) for instance in instances))


def _counts(fleet: Fleet, now: float = NOW) -> str:
    left, _ = header_lines(context(fleet, now), marks=(), interval_s=1.0, read_only=True)[1]
    return text(left)


def _shown(fleet: Fleet, column: str) -> str:
    return cell("fleet", fleet, NodeKey("", HOST), column).plain


def test_a_board_is_busy_if_an_instance_is_and_no_board_in_mig_mode_is_not_told(fleet):
    _boards(fleet, (0.0, 60.0, None), (0.0, 0.0))
    _holds(fleet, 1, "1")
    assert _counts(fleet).startswith("busy 1 idle 1 ")
    assert "MIG 1 of 5 busy, 1 not told" in _counts(fleet)


def test_a_board_is_idle_only_if_all_its_instances_are_known_to_be(fleet):
    _boards(fleet, (0.0, None))
    _holds(fleet, 0, "1")
    assert _counts(fleet).startswith("not told 1 busy 0 idle 0 ")


def test_a_board_in_mig_mode_without_instances_is_not_a_gap(fleet):
    _boards(fleet, ())
    assert _counts(fleet) == "busy 0 idle 0 free ?"
    assert _shown(fleet, "gpus") == "-"


def test_loads_of_instances_grow_old(fleet):
    _boards(fleet, (60.0,))
    assert "busy 1" in _counts(fleet)
    assert _counts(fleet, NOW + 60).startswith("not told 1 busy 0")


def test_an_instance_that_changes_alone_changes_its_board(fleet):
    _boards(fleet, (0.0,))
    assert "busy 0" in _counts(fleet)
    tell(fleet, NVML, NOW, GpuFact(_ref(0, "1"), {"graphics_activity": 80.0}))
    assert _counts(fleet).startswith("busy 1")


def test_the_holder_of_a_board_in_mig_mode_is_told_by_its_instances(fleet):
    _boards(fleet, (60.0, 0.0), (0.0,), (0.0,))
    _holds(fleet, 0, "1")
    _free(fleet, 1, "1")
    assert [cell("gpus", fleet, key_of(HOST, i), "holder").plain for i in range(3)] == ["1 on MIG", "-", "?"]
    assert cell("gpus", fleet, key_of(HOST, 0, "1"), "holder").plain == "serving/asr-0"


def test_a_node_of_mig_instances_alone_counts_them_as_such(fleet):
    _boards(fleet, (60.0, 0.0))
    told = [DeviceCount(NodeRef(HOST), r, n, n) for r, n in (("nvidia.com/gpu", 0.0), ("nvidia.com/mig-1g.10gb", 7.0))]
    tell(fleet, PROMETHEUS, NOW, *told, stale_after_s=60.0)
    pod(fleet, "other", 0.0, HOST)
    assert [_shown(fleet, c) for c in ("advertised", "healthy", "used", "free")] == ["7", "7", "0", "7"]
    assert cell("fleet", fleet, NodeKey("", HOST), "advertised").role == "info"
    assert "7 of 7 MIG instances free" in _shown(fleet, "health")
    assert "free 0" in _counts(fleet)
    assert "MIG 1 of 2 busy, 7 free" in _counts(fleet)


def test_the_heat_map_draws_a_board_by_its_instances(fleet):
    _boards(fleet, (90.0,))
    glyph, role = heat_glyph(context(fleet), key_of(HOST, 0))
    assert glyph not in "-?o"
    assert role.startswith("util-")
