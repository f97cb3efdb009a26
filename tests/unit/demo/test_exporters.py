"""The exporters' text: it parses, and each generation writes its own names, labels and units."""

import math

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gputop.demo import scenario
from gputop.demo.exporters import dcgm, smi
from gputop.demo.exporters.kubernetes import KubeStateMetrics
from gputop.demo.series import render
from gputop.demo.store import Store
from gputop.demo.world import World

NODE = 'title = "t"\n[[nodes]]\nname = "n1"\ngpus = 2\n{group}\n[[jobs]]\nname = "train"\nnamespace = "lab"\n'


def world(group, more=""):
    return World(scenario.parse(NODE.format(group=group) + more, "t"), 1)


def page(group, more="", t=0.0):
    node = world(group, more).nodes[0]
    make = smi if node.group.exporter == "nvidia-gpu-exporter" else dcgm
    families = text_string_to_metric_families(render(make.exporter(node), t))
    return {
        (sample.name, sample.labels.get("gpu", sample.labels.get("uuid"))): sample
        for family in families
        for sample in family.samples
    }


@pytest.mark.parametrize("flavour", list(dcgm.GENERATIONS))
def test_old_and_new_names_say_the_same_in_their_own_units(flavour):
    found = page(f'exporter = "{flavour}"')
    old = flavour != "dcgm-4.9"
    used = found["DCGM_FI_DEV_FB_USED" if old else "DCGM_FI_DEV_FB_USED_BYTES", "0"].value
    clock = found["DCGM_FI_DEV_SM_CLOCK" if old else "DCGM_FI_DEV_SM_CLOCK_HERTZ", "0"].value
    busy = found["DCGM_FI_DEV_GPU_UTIL" if old else "DCGM_FI_DEV_GPU_UTIL_RATIO", "0"].value
    reference = page('exporter = "dcgm-4.5"')
    assert used == reference["DCGM_FI_DEV_FB_USED", "0"].value * (1 if old else 2**20)
    assert clock == reference["DCGM_FI_DEV_SM_CLOCK", "0"].value * (1 if old else 1e6)
    assert busy == pytest.approx(reference["DCGM_FI_DEV_GPU_UTIL", "0"].value * (1 if old else 0.01))


@pytest.mark.parametrize(
    ("flavour", "label"),
    [("dcgm-3.3", "Hostname"), ("dcgm-4.5", "Hostname"), ("dcgm-4.6", "hostname"), ("dcgm-4.9", "hostname")],
)
def test_the_host_label_is_the_generations_own(flavour, label):
    labels = {name for name, _ in [("Hostname", 0), ("hostname", 0)]}
    sample = next(iter(page(f'exporter = "{flavour}"').values()))
    assert labels & sample.labels.keys() == {label}
    assert sample.labels[label] == "n1"


def test_total_memory_adds_up_where_reserved_is_there():
    found = page('exporter = "dcgm-4.5"')
    parts = [found[f"DCGM_FI_DEV_FB_{part}", "0"].value for part in ("USED", "FREE", "RESERVED")]
    assert sum(parts) == 81559
    assert ("DCGM_FI_DEV_FB_RESERVED", "0") not in page('exporter = "dcgm-3.3"')


def test_a_missing_memory_sensor_is_written_as_each_generation_does():
    model = 'model = "l4"\nexporter = '
    name = ("DCGM_FI_DEV_MEMORY_TEMP", "0")
    assert page(model + '"dcgm-4.5"')[name].value == 0
    assert page(model + '"dcgm-2.1"')[name].value > 9.2e18
    assert name not in page(model + '"dcgm-4.9"')


def test_an_xid_is_absent_until_the_first_one_and_then_a_series_of_its_own():
    fault = '[[faults]]\nkind = "xid"\nnode = "n1"\ngpus = [0]\nxid = 94\nat_s = 10'
    name = ("DCGM_FI_DEV_XID_ERRORS", "0")
    assert name not in page('exporter = "dcgm-4.5"', fault)
    later = page('exporter = "dcgm-4.5"', fault, 20.0)[name]
    assert (later.value, later.labels["err_code"]) == (94, "94")
    assert page('exporter = "dcgm-3.3"', fault)[name].value == 0


def test_mig_rows_stand_for_instances_and_have_no_device_utilisation():
    node = world('exporter = "dcgm-4.5"\nmig = ["3g.40gb", "1g.10gb"]', 'mig = "3g.40gb"').nodes[0]
    exporter = dcgm.exporter(node)
    rows = exporter.series("DCGM_FI_DEV_FB_USED", 0.0)
    assert [(labels.pairs["GPU_I_ID"], value > 0) for labels, value in rows[:2]] == [
        ("1", True),
        ("7", False),
    ]
    assert {labels.pairs["UUID"] for labels, _ in rows} == {gpu.uuid for gpu in node.gpus}
    assert exporter.series("DCGM_FI_DEV_GPU_UTIL", 0.0) == []
    active = dict(exporter.series("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.0))
    assert sorted(value > 0.5 for value in active.values()) == [False, False, False, True]


def test_the_other_exporter_drops_the_prefix_and_uses_ratios():
    found = page('exporter = "nvidia-gpu-exporter"')
    node = world('exporter = "nvidia-gpu-exporter"').nodes[0]
    uuid = node.gpus[0].uuid.removeprefix("GPU-")
    assert 0.5 < found["nvidia_smi_utilization_gpu_ratio", uuid].value <= 1
    assert found["nvidia_smi_memory_total_bytes", uuid].value == 81559 * 2**20
    assert found["nvidia_smi_gpu_info", uuid].labels["pci_bus_id"] == node.gpus[0].bus_id


def test_a_sentinel_a_frozen_value_and_a_lost_board_reach_the_text():
    faults = """
[[faults]]
kind = "exporter_value"
node = "n1"
gpus = [1]
metric = "DCGM_FI_DEV_*_CLOCK"
value = nan
[[faults]]
kind = "exporter_frozen"
node = "n1"
at_s = 100
[[faults]]
kind = "gpu_lost"
node = "n1"
gpus = [0]
at_s = 50
until_s = 90
"""
    assert math.isnan(page("", faults)["DCGM_FI_DEV_SM_CLOCK", "1"].value)
    assert ("DCGM_FI_DEV_GPU_TEMP", "0") not in page("", faults, 60.0)
    # The parser adds the suffix that OpenMetrics wants of a counter.
    energy = ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_total", "1")
    assert page("", faults, 200.0)[energy].value == page("", faults, 900.0)[energy].value
    assert page("", faults, 40.0)[energy].value < page("", faults, 80.0)[energy].value


@pytest.mark.parametrize(("pod_labels", "key"), [("plain", "pod"), ("exported", "exported_pod")])
def test_honor_labels_decides_whose_the_pod_label_is(pod_labels, key):
    store = Store(world(f'pod_labels = "{pod_labels}"'), 0.0)
    target = store.targets[0]
    busy, idle = (labels for labels, _ in target.samples("DCGM_FI_DEV_GPU_TEMP", 0.0, None))
    assert busy.pairs[key].startswith("train-")
    assert idle.pairs["pod"].startswith("nvidia-dcgm-exporter-")
    assert "exported_pod" not in idle.pairs


def test_kube_state_metrics_tells_pods_and_nodes():
    more = """duration_s = 3700
[[jobs]]
name = "big"
gpus = 9
[[faults]]
kind = "unallocatable"
node = "n1"
[[faults]]
kind = "cordoned"
node = "n1"
at_s = 50
"""
    state = KubeStateMetrics(world("", more))
    names = {name for family in text_string_to_metric_families(render(state, 0.0)) for name in [family.name]}
    assert {"kube_pod_info", "kube_node_status_capacity", "kube_pod_owner"} <= names

    def value(name, t=0.0, **wanted):
        return [one for labels, one in state.series(name, t) if wanted.items() <= labels.pairs.items()]

    assert value("kube_node_status_capacity", resource="nvidia_com_gpu") == [2]
    assert value("kube_node_status_allocatable", resource="nvidia_com_gpu") == [1]
    assert value("kube_node_spec_unschedulable") == [0]
    assert value("kube_node_spec_unschedulable", 60.0) == [1]
    assert value("kube_pod_container_resource_requests", node="n1", resource="nvidia_com_gpu") == [1]
    waiting = [labels for labels, _ in state.series("kube_pod_status_unschedulable", 0.0)]
    assert [labels.pairs["pod"].startswith("big-") for labels in waiting] == [True]
    assert sum(value("kube_pod_status_phase", phase="Running")) == 1
    # A finished pod keeps its requests, and is Succeeded.
    assert sum(value("kube_pod_status_phase", 200.0, phase="Succeeded")) == 1
    assert value("kube_pod_container_resource_requests", 200.0, node="n1", resource="nvidia_com_gpu") == [1]
