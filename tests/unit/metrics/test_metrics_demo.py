"""Pages of the demo's exporters, all generations: what is decoded is what the simulated world has."""

import pytest

from gputop.demo import scenario
from gputop.demo.exporters import dcgm, smi
from gputop.demo.exporters.kubernetes import KubeStateMetrics
from gputop.demo.series import render
from gputop.demo.state import gpu_state
from gputop.demo.world import World
from gputop.fleet import Fleet
from gputop.fleet.state import View
from gputop.model.facts import Batch
from gputop.model.identity import normal_bus_id
from gputop.model.reading import Absent
from gputop.sources.metrics.decode import Decoder
from gputop.sources.metrics.text import read_text

TEXT = """title = "t"
[[nodes]]
name = "n1"
gpus = 2
optional_metrics = true
{group}
[[jobs]]
name = "train"
namespace = "lab"
"""
STARTED = 1_790_000_000.0


def world(group: str, more: str = "") -> World:
    return World(scenario.parse(TEXT.format(group=group) + more, "t"), 1)


def fleet(pages: list[str]) -> View:
    decoder = Decoder(source="exporter", rank=1, default_host="n1")
    state = Fleet()
    for minute, page in enumerate(pages):
        text, at = read_text(page), STARTED + 60 * minute
        assert not text.trouble
        state.apply(Batch("exporter", 1, at, 60.0, tuple(decoder.decode(text.samples, at))))
    return state.view()


@pytest.mark.parametrize("flavour", [*dcgm.GENERATIONS, "nvidia-gpu-exporter"])
def test_every_generation_tells_the_worlds_values(flavour: str) -> None:
    node = world(f'exporter = "{flavour}"').nodes[0]
    make = smi if flavour == "nvidia-gpu-exporter" else dcgm
    view = fleet([render(make.exporter(node), 0.0)])
    assert [k.host for k in view.nodes] == ["n1"]
    assert len(view.gpus) == len(node.gpus) == 2
    for gpu in node.gpus:
        state = gpu_state(gpu, 0.0)
        shown = next(g for k, g in view.gpus.items() if k.uuid == gpu.uuid.lower().replace("gpu-", "GPU-"))
        number = {q: r.value for q, r in shown.readings.items()}
        assert shown.index == gpu.index
        assert number["utilization"] == pytest.approx(state.utilization * 100, abs=0.51)
        assert number["memory_used_mib"] == pytest.approx(int(state.memory_used_mib))
        assert number["power_w"] == pytest.approx(state.power_w, abs=0.01)
        assert number["temperature_c"] == pytest.approx(round(state.temperature_c))
        assert number["sm_clock_mhz"] == pytest.approx(state.sm_clock_mhz)
        assert number["memory_clock_mhz"] == pytest.approx(state.memory_clock_mhz)
        assert number["clock_event_reasons"] == float(state.reasons)
        if flavour in {"dcgm-2.1", "dcgm-3.3"}:
            assert number["memory_total_at_least_mib"] == gpu.model.memory_mib - gpu.model.reserved_mib
        else:
            assert number["memory_total_mib"] == gpu.model.memory_mib
        if flavour != "dcgm-2.1":
            assert shown.bus_id == normal_bus_id(gpu.bus_id)
            assert number["model"] == gpu.model.name
        if flavour.startswith("dcgm-") and gpu.model.nvlinks:
            assert number["nvlink_throughput_bytes_per_s"] == pytest.approx(state.nvlink_bytes_s * 2, abs=1e6)


def test_energy_is_the_same_in_all_units() -> None:
    told = {}
    for flavour in (*dcgm.GENERATIONS, "nvidia-gpu-exporter"):
        node = world(f'exporter = "{flavour}"').nodes[0]
        make = smi if flavour == "nvidia-gpu-exporter" else dcgm
        view = fleet([render(make.exporter(node), 500.0)])
        told[flavour] = [g.readings["energy_j"].value for _, g in sorted(view.gpus.items())]
    first, *others = told.values()
    assert all(other == pytest.approx(first) for other in others)
    assert all(isinstance(v, float) and v > 0 for v in first)


def test_mig_instances_stand_under_their_board() -> None:
    node = world('exporter = "dcgm-4.5"\nmig = ["3g.40gb", "1g.10gb"]', 'mig = "3g.40gb"').nodes[0]
    view = fleet([render(dcgm.exporter(node), 0.0)])
    boards = [g for k, g in view.gpus.items() if not k.instance]
    instances = {(k.uuid, k.instance): g for k, g in view.gpus.items() if k.instance}
    assert len(boards) == 2
    assert len(instances) == 4
    assert all(g.readings["temperature_c"].number for g in boards)
    assert all(g.readings["model"].text and g.readings["mig_mode"].number == 1.0 for g in boards)
    assert not any("mig_profile" in g.readings for g in boards)
    assert all("temperature_c" not in g.readings for g in instances.values())
    assert sorted((g.readings["utilization"].number or 0.0) > 50 for g in instances.values()) == [False] * 3 + [True]
    assert {g.readings["mig_profile"].value for g in instances.values()} == {"3g.40gb", "1g.10gb"}
    assert {g.readings["memory_total_mib"].number for g in instances.values()} == {
        float(i.profile.memory_mib) for gpu in node.gpus for i in gpu.instances(0.0)
    }


def test_a_missing_sensor_is_no_number_in_any_generation() -> None:
    for flavour in dcgm.GENERATIONS:
        view = fleet([render(dcgm.exporter(world(f'exporter = "{flavour}"\nmodel = "l4"').nodes[0]), 0.0)])
        for gpu in view.gpus.values():
            reading = gpu.readings.get("memory_temperature_c")
            assert reading is None or isinstance(reading.value, Absent)


def test_xids_and_a_lost_board_of_the_demo() -> None:
    faults = """
[[faults]]
kind = "xid"
node = "n1"
gpus = [0]
xid = 94
at_s = 10
[[faults]]
kind = "gpu_lost"
node = "n1"
gpus = [1]
at_s = 50
"""
    exporter = dcgm.exporter(world('exporter = "dcgm-4.5"', faults).nodes[0])
    view = fleet([render(exporter, t) for t in (0.0, 20.0, 60.0)])
    by_index = {g.index: g for g in view.gpus.values()}
    assert [x.xid for x in by_index[0].xids] == [94]
    assert not by_index[0].xids[0].from_start
    assert by_index[1].presence == "missing"
    assert by_index[1].readings["power_w"].number is not None


def test_kube_state_metrics_of_the_demo() -> None:
    more = """
[[jobs]]
name = "big"
gpus = 9
[[faults]]
kind = "unallocatable"
node = "n1"
[[faults]]
kind = "cordoned"
node = "n1"
"""
    made = world("", more)
    view = fleet([render(dcgm.exporter(made.nodes[0]), 0.0), render(KubeStateMetrics(made), 0.0)])
    (node,) = view.nodes.values()
    ((count, _),) = node.devices
    assert (count.resource, count.advertised, count.healthy) == ("nvidia.com/gpu", 2.0, 1.0)
    assert (node.conditions[0][0].cordoned, node.conditions[0][0].ready) == (True, True)
    assert node.readings["gpus_expected"].value == 2.0
    workloads = {w.workload.name.split("-")[0]: w for w in view.workloads.values()}
    assert workloads["train"].workload.holds
    assert workloads["train"].node == node.key
    assert workloads["big"].workload.wants == (("nvidia.com/gpu", 9.0),)
    assert workloads["big"].node is None
