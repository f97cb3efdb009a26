"""The GPUs pane as it stands on the screen."""

import pytest

from gputop.fleet import Fleet
from gputop.model.facts import GpuFact, HoldersFact, PciGpu, Presence, ProcessesFact
from gputop.model.facts import NodeFact as OfNode
from gputop.model.identity import GpuRef, NodeKey, NodeRef
from gputop.model.process import GpuProcess
from gputop.model.reading import NOT_SUPPORTED, Absent
from gputop.model.workload import Holder
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
    pane,
    ref,
    roster,
    tell,
)

HOST = "gpu-a03"
POD = Holder("kubernetes", "ml", "llama-ft-0", uid="u-1", how="process cgroup")


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


def process(pid: int, memory: float | Absent = 1024.0, holder: Holder | None = None) -> GpuProcess:
    return GpuProcess(pid, "C", memory, 90.0, 0.0, 0.0, "ml", "python train.py", NOW - 60, holder)


def test_80_columns_tell_load_memory_power_heat_clock_and_holder(fleet):
    busy_node(fleet, HOST)
    tell(fleet, EXPORTER, NOW, HoldersFact(ref(HOST, 0), (POD,)))
    shown = lines("gpus", fleet)
    assert len(shown) == 8
    for part in ("97%", "74/80G", "690/700", "P", "71", "1755", "ml/llama-ft-0"):
        assert part in shown[0]
    assert all(len(line) <= 80 for line in shown)


def test_200_columns_add_the_model_and_the_bus(fleet):
    busy_node(fleet, HOST)
    shown = lines("gpus", fleet, width=240)[0]
    assert "NVIDIA H100 80GB HBM3" in shown
    assert BUSES[0] in shown


@pytest.mark.parametrize(
    ("presence", "reason", "word"),
    [
        (Presence.LOST, "the GPU has fallen off the bus", "LOST"),
        (Presence.RESET_REQUIRED, "the GPU needs a reset", "RESET REQUIRED"),
        (Presence.DENIED, "no permission", "DENIED"),
        (Presence.ERROR, "unknown error 999", "ERROR"),
    ],
)
def test_a_gpu_that_fails_keeps_its_row_with_state_time_last_value_and_holder(fleet, presence, reason, word):
    busy_node(fleet, HOST)
    tell(fleet, NVML, NOW, ProcessesFact(ref(HOST, 3), (process(41, holder=POD),)))
    tell(fleet, NVML, NOW + 1, GpuFact(ref(HOST, 3), {}, presence, reason), roster(HOST, *range(8)))
    shown = lines("gpus", fleet, width=140, now=NOW + 2)
    assert len(shown) == 8
    assert word in shown[3]
    assert "last 97%" in shown[3]
    assert reason[:12] in shown[3]
    assert "ml/llama-ft-0" in shown[3]
    assert all("97%" in line and word not in line for line in shown[:3] + shown[4:])


def test_a_gpu_that_comes_back_is_an_ordinary_row_again(fleet):
    busy_node(fleet, HOST, 0, 1)
    tell(fleet, NVML, NOW + 1, GpuFact(ref(HOST, 1), {}, Presence.LOST, "gone"), roster(HOST, 0, 1))
    assert "LOST" in lines("gpus", fleet, now=NOW + 1)[1]
    tell(fleet, NVML, NOW + 2, GpuFact(ref(HOST, 1), dict(FULL), Presence.PRESENT), roster(HOST, 0, 1))
    assert "97%" in lines("gpus", fleet, now=NOW + 2)[1]


def test_a_gpu_that_is_no_longer_listed_is_missing_and_the_others_keep_their_places(fleet):
    busy_node(fleet, HOST, 0, 1, 2)
    busy_node(fleet, HOST, 0, 2, at=NOW + 1)
    shown = lines("gpus", fleet, now=NOW + 1)
    assert [line.split()[0] for line in shown] == ["0", "1", "2"]
    assert "MISSING" in shown[1]


def test_a_gpu_given_to_a_virtual_machine_says_so(fleet):
    tell(fleet, NVML, NOW, OfNode(NodeRef(HOST), pci=(PciGpu(BUSES[0], driver="vfio-pci"),)))
    shown = lines("gpus", fleet, width=120)
    assert "NO DRIVER" in shown[0]
    assert "virtual machine" in shown[0]


def test_a_row_with_stale_numbers_is_marked_also_where_there_is_no_colour(fleet):
    busy_node(fleet, HOST, 0)
    for name in ("gpus", "memory"):
        assert cell(name, fleet, key_of(HOST, 0), "index").plain == "0"
        assert cell(name, fleet, key_of(HOST, 0), "index", now=NOW + 60).plain == "~0"


@pytest.mark.parametrize(
    ("readings", "shown", "role"),
    [
        ({"temperature_c": 84.0}, "84", "warn"),
        ({"temperature_c": 86.0}, "86!", "bad"),
        ({"temperature_c": 71.0, "temperature_margin_c": 3.0}, "71!", "bad"),
        ({"temperature_c": 86.0, "temperature_slowdown_c": 104.0}, "86", ""),
        ({"temperature_c": 103.0, "temperature_slowdown_c": 104.0}, "103", "bad"),
    ],
)
def test_a_temperature_is_hot_by_the_limit_of_its_board(fleet, readings, shown, role):
    tell(fleet, NVML, NOW, GpuFact(ref(HOST, 0), {**FULL, **readings}), roster(HOST, 0))
    assert cell("gpus", fleet, key_of(HOST, 0), "temp")[:2] == (shown, role)


def test_a_board_in_mig_mode_has_no_load_also_when_gpm_is_off(fleet):
    off = Absent("unknown", "gpm_off", "GPM sampling is off")
    tell(fleet, NVML, NOW, GpuFact(ref(HOST, 0), {"utilization": NOT_SUPPORTED, "graphics_activity": off}))
    assert cell("gpus", fleet, key_of(HOST, 0), "util").plain == "n/a"
    tell(fleet, NVML, NOW + 1, GpuFact(ref(HOST, 0), {"graphics_activity": 40.0}))
    assert "40%" in cell("gpus", fleet, key_of(HOST, 0), "util", now=NOW + 1).plain


def test_mig_instances_stand_under_their_board_whose_load_is_not_0(fleet):
    instances = [GpuRef(HOST, "", UUIDS[0], BUSES[0], 0, i, f"MIG-{i}") for i in ("7", "14")]
    facts = [GpuFact(i, {"memory_used_mib": 100.0, "memory_total_mib": 9856.0}) for i in instances]
    tell(
        fleet,
        NVML,
        NOW,
        GpuFact(ref(HOST, 0), {**FULL, "utilization": NOT_SUPPORTED}),
        gpu(HOST, 1, **FULL),
        *facts,
        roster(HOST, 0, 1),
    )
    shown = lines("gpus", fleet)
    assert [line.split()[0] for line in shown] == ["0", "└7", "└14", "1"]
    assert "n/a" in shown[0]
    assert "0%" not in shown[0].split("G")[0]
    assert "0.1/9.6G" in shown[1]


def test_a_clock_that_is_held_down_by_the_power_cap_is_no_alarm_and_by_heat_it_is(fleet):
    facts = [
        GpuFact(ref(HOST, i), {**FULL, "clock_event_reasons": m}) for i, m in enumerate((4.0, 32.0, 128.0, 0.0, 1.0))
    ]
    tell(fleet, NVML, NOW, *facts, roster(HOST, *range(5)))
    drawn = [cell("gpus", fleet, key_of(HOST, i), "power").runs[-1] for i in range(5)]
    assert drawn == [("P", "dim"), ("T", "warn"), ("B", "bad"), (" ", ""), (" ", "")]


@pytest.mark.parametrize(
    ("limit", "shown"), [(0.0, "1180"), (700.0, "1180/700"), (NOT_SUPPORTED, "1180")], ids=["zero", "over", "none"]
)
def test_an_odd_power_limit_breaks_nothing(fleet, limit, shown):
    tell(fleet, NVML, NOW, gpu(HOST, 0, power_w=1180.0, power_limit_w=limit), roster(HOST, 0))
    assert cell("gpus", fleet, key_of(HOST, 0), "power").plain.split() == shown.split()


@pytest.mark.parametrize(("load", "shown"), [(80.0, ("1x16!", "warn")), (0.0, ("1x16", "dim"))])
def test_a_narrow_link_is_judged_only_under_load(fleet, load, shown):
    link = {"pcie_generation": 1.0, "pcie_generation_max": 5.0, "pcie_width": 16.0, "pcie_width_max": 16.0}
    tell(fleet, NVML, NOW, GpuFact(ref(HOST, 0), {"utilization": load, **link}), roster(HOST, 0))
    assert cell("gpus", fleet, key_of(HOST, 0), "pcie")[:2] == shown


def test_a_dead_source_leaves_stale_numbers_not_fresh_ones(fleet):
    busy_node(fleet, HOST, 0)
    drawn = cell("gpus", fleet, key_of(HOST, 0), "util", now=NOW + 60)
    assert "97%" in drawn.plain
    assert {role for _, role in drawn.runs} == {"stale"}
    assert cell("gpus", fleet, key_of(HOST, 0), "age", now=NOW + 60).plain == "60s"


@pytest.mark.parametrize(("used", "shown"), [(None, "?"), (18642.0, "18/≥79G")])
def test_memory_without_a_total_is_a_lower_bound_or_unknown(fleet, used, shown):
    values = {} if used is None else {"memory_used_mib": used, "memory_total_at_least_mib": used + 62274.0}
    tell(fleet, PROMETHEUS, NOW, GpuFact(ref(HOST, 0), {"utilization": 1.0, **values}), roster(HOST, 0))
    assert cell("gpus", fleet, key_of(HOST, 0), "vram").plain == shown


def test_system_memory_is_told_from_vram(fleet):
    unified = Absent("n/a", "unified_memory", "this GPU uses the system's memory")
    node = OfNode(NodeRef(HOST), {"system_memory_total_mib": 122880.0, "system_memory_available_mib": 102400.0})
    told = gpu(HOST, 0, utilization=1.0, memory_total_mib=unified, memory_free_mib=unified, memory_used_mib=1229.0)
    tell(fleet, NVML, NOW, told, roster(HOST, 0), node)
    assert cell("gpus", fleet, key_of(HOST, 0), "vram").plain == "1.2/120S"
    assert [cell("memory", fleet, key_of(HOST, 0), c).plain for c in ("total", "free", "percent")] == [
        "120S", "100S", "n/a",
    ]  # fmt: skip


# -- holders ----------------------------------------------------------------------------------------------


def holder_of(fleet: Fleet, now: float = NOW) -> tuple[str, str]:
    drawn = cell("gpus", fleet, key_of(HOST, 0), "holder", now=now)
    return drawn.plain, drawn.runs[-1][1]


@pytest.mark.parametrize(
    ("processes", "claimed", "shown"),
    [
        (None, None, "?"),
        ((), None, "-"),
        (Absent("unknown", "denied", "may not"), None, "?"),
        ((process(7),), None, "1 process, no pod known"),
        ((process(7, holder=POD),), None, "ml/llama-ft-0"),
        (None, (POD,), "ml/llama-ft-0"),
        (None, (), "?"),
        ((process(7, holder=POD),), (POD,), "ml/llama-ft-0"),
        ((process(7, holder=Holder("kubernetes", name="llama-ft-0")),), (POD,), "ml/llama-ft-0"),
    ],
)
def test_who_holds_a_gpu(fleet, processes, claimed, shown):
    busy_node(fleet, HOST, 0)
    if processes is not None:
        tell(fleet, NVML, NOW, ProcessesFact(ref(HOST, 0), processes))
    if claimed is not None:
        tell(fleet, EXPORTER, NOW, HoldersFact(ref(HOST, 0), claimed))
    assert holder_of(fleet)[0] == shown


def test_shared_gpu_is_one_row_with_its_pods_counted(fleet):
    pods = tuple(Holder("kubernetes", "nb", f"nb-{i}", uid=f"u{i}", how="exporter label") for i in (1, 2, 3))
    tell(fleet, PROMETHEUS, NOW, gpu(HOST, 0, utilization=80.0), HoldersFact(ref(HOST, 0), pods), roster(HOST, 0))
    shown = lines("gpus", fleet, width=120)
    assert len(shown) == 1
    assert "80%" in shown[0]
    assert "240" not in shown[0]
    assert "3 share: nb/nb-1" in shown[0]


def test_two_sources_that_name_different_pods_contradict_each_other(fleet):
    busy_node(fleet, HOST, 0)
    other = Holder("kubernetes", "ml", "old", uid="u-2", how="exporter label")
    tell(fleet, NVML, NOW, ProcessesFact(ref(HOST, 0), (process(7, holder=POD),)))
    tell(fleet, EXPORTER, NOW, HoldersFact(ref(HOST, 0), (other,)))
    assert holder_of(fleet) == ("ml/llama-ft-0 ≠ ml/old (exporter)", "warn")
    assert "disagree on the holder" in cell("fleet", fleet, NodeKey("", HOST), "health").plain


def test_a_pod_named_long_ago_gives_way_to_what_a_live_source_says(fleet):
    busy_node(fleet, HOST, 0)
    old = Holder("kubernetes", "ml", "old", uid="u-2", how="exporter label")
    tell(fleet, EXPORTER, NOW, HoldersFact(ref(HOST, 0), (old,)))
    tell(fleet, NVML, NOW + 60, ProcessesFact(ref(HOST, 0), (process(7, holder=POD),)))
    assert holder_of(fleet, NOW + 60) == ("ml/llama-ft-0", "")


def test_nobody_is_no_longer_known_once_it_is_stale(fleet):
    busy_node(fleet, HOST, 0)
    tell(fleet, NVML, NOW, ProcessesFact(ref(HOST, 0), ()))
    assert holder_of(fleet, NOW) == ("-", "dim")
    assert holder_of(fleet, NOW + 60) == ("?", "unknown")


# -- order ------------------------------------------------------------------------------------------------


def test_unknown_values_come_last_in_either_direction(fleet):
    tell(
        fleet,
        NVML,
        NOW,
        *(gpu(HOST, i, utilization=v) for i, v in enumerate((50.0, NOT_SUPPORTED, 90.0, 10.0))),
        roster(HOST, 0, 1, 2, 3),
    )
    shown = pane("gpus")
    for descending, wanted in ((True, [2, 0, 3, 1]), (False, [3, 0, 2, 1])):
        order = shown.order(context(fleet, sort=("util", descending)))
        assert order == [key_of(HOST, i) for i in wanted]


def test_several_nodes_have_a_column_for_the_node_unless_narrowed_to_one(fleet):
    one = busy_node(fleet, "gpu-a01", 0)
    busy_node(fleet, "gpu-a02", 0)
    assert [line.split()[0] for line in lines("gpus", fleet)] == ["gpu-a01", "gpu-a02"]
    assert [line.split()[0] for line in lines("gpus", fleet, node=one)] == ["0"]


def test_groups_head_their_rows_and_fold(fleet):
    busy_node(fleet, "gpu-a01", 0)
    busy_node(fleet, "gpu-a02", 0)
    shown = lines("gpus", fleet, group="node", collapsed=frozenset({"gpu-a02"}))
    assert shown[0] == "- gpu-a01"
    assert shown[-1] == "+ gpu-a02"
    assert len(shown) == 3
