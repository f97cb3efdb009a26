"""The cases of metrics that a source of samples can meet, through the decoder into the fleet."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from gputop.model.facts import Presence, XidKind
from tests.cases.metrics_rig import Rig, T, holders, shown

VALUES = tomllib.loads((Path(__file__).parent / "data" / "metrics_values.toml").read_text(encoding="utf-8"))["case"]


def split(name: str) -> tuple[str, str]:
    uuid, _, instance = name.partition("/")
    return uuid, instance


@pytest.mark.parametrize("case", VALUES, ids=[c["id"] for c in VALUES])
def test_values_of_one_answer(case: dict[str, Any]) -> None:
    rig = Rig()
    rig.feed(case["text"])
    told = [k.uuid + (f"/{k.instance}" if k.instance else "") for k in rig.view.gpus]
    assert sorted(told) == sorted(case["gpus"])
    for name, values in case.get("shows", {}).items():
        gpu = rig.gpu(*split(name))
        assert {q: shown(gpu, q) for q in values} == pytest.approx(values) or {
            q: shown(gpu, q) for q in values
        } == values
    for name, quantities in case.get("not_told", {}).items():
        assert not rig.gpu(*split(name)).readings.keys() & set(quantities)
    for name, labels in case.get("holders", {}).items():
        assert holders(rig.gpu(*split(name))) == labels


def test_m01_an_xid_that_sticks_is_one_record_of_an_unknown_time() -> None:
    rig = Rig()
    line = (
        'DCGM_FI_DEV_XID_ERRORS{gpu="3",UUID="GPU-aa03",Hostname="tern-04",err_code="31",'
        'err_msg="GPU memory page fault"} 31\nDCGM_FI_DEV_GPU_UTIL{gpu="3",UUID="GPU-aa03",Hostname="tern-04"} 97'
    )
    for hours in range(7):
        rig.feed(line, T - 6 * 3600 + hours * 3600)
    gpu = rig.gpu("GPU-aa03")
    (record,) = gpu.xids
    assert (record.xid, record.kind, record.count, record.text) == (31, XidKind.LAST, 1, "GPU memory page fault")
    assert record.from_start
    assert record.last_seen - record.first_seen == 6 * 3600
    assert gpu.presence is Presence.PRESENT
    assert shown(gpu, "utilization") == 97.0


def test_m02_the_same_xid_again_is_told_by_the_window() -> None:
    rig = Rig()
    for step in range(3):
        window = f'DCGM_EXP_XID_ERRORS_COUNT{{gpu="0",UUID="GPU-a0",xid="94",window_size_in_ms="300000"}} {step}'
        rig.feed(f'DCGM_FI_DEV_XID_ERRORS{{gpu="0",UUID="GPU-a0",err_code="94"}} 94\n{window}', T + 60 * step)
    by_kind = {x.kind: x for x in rig.gpu("GPU-a0").xids}
    assert (by_kind[XidKind.WINDOW].xid, by_kind[XidKind.WINDOW].count) == (94, 2)
    assert by_kind[XidKind.WINDOW].window_s == 300.0
    assert by_kind[XidKind.LAST].count == 1


def test_m02_a_window_is_of_the_board_whatever_instances_repeat_it() -> None:
    rig = Rig()
    rig.feed(
        "\n".join(
            f'DCGM_EXP_XID_ERRORS_COUNT{{gpu="0",UUID="GPU-a0",GPU_I_ID="{i}",xid="13",window_size_in_ms="60000"}} 3'
            for i in (1, 2, 5)
        )
    )
    assert [(x.xid, x.count) for x in rig.gpu("GPU-a0").xids] == [(13, 3)]


def test_m03_no_xid_series_is_not_a_zero() -> None:
    rig = Rig()
    rig.feed("\n".join(f'DCGM_FI_DEV_GPU_TEMP{{gpu="{i}",UUID="GPU-b{i}"}} 41' for i in range(8)))
    assert len(rig.view.gpus) == 8
    assert all("last_xid" not in g.readings and not g.xids for g in rig.view.gpus.values())


@pytest.mark.parametrize(("old", "new"), [(13, 79), (79, 45)])
def test_m04_a_new_xid_is_a_new_series(old: int, new: int) -> None:
    rig = Rig()
    both = "\n".join(f'DCGM_FI_DEV_XID_ERRORS{{gpu="1",UUID="GPU-c1",err_code="{x}"}} {x}' for x in (old, new))
    for step in range(3):
        rig.feed(both, T + 15 * step, times=(T - 120, T + 15 * step))
    gpu = rig.gpu("GPU-c1")
    assert shown(gpu, "last_xid") == float(new)
    assert [x.xid for x in gpu.xids] == [old, new]
    assert len(rig.view.gpus) == 1


def test_m10_a_garbage_spike_is_a_gap() -> None:
    rig = Rig()
    seen = []
    for step, value in enumerate((88, 91, 808334905, 90)):
        rig.feed(
            f'DCGM_FI_DEV_GPU_UTIL{{gpu="5",UUID="GPU-a5"}} {value}\n'
            'DCGM_FI_DEV_GPU_UTIL{gpu="6",UUID="GPU-a6"} 4294967295',
            T + 30 * step,
        )
        seen.append(shown(rig.gpu("GPU-a5"), "utilization"))
    assert seen == [88.0, 91.0, "n/a", 90.0]
    assert shown(rig.gpu("GPU-a6"), "utilization") == "n/a"


OWN = 'pod="dcgm-exporter-x7k2p",namespace="gpu-operator",container="nvidia-dcgm-exporter"'


def test_m12_whose_pod_it_is() -> None:
    rig = Rig()
    exported = 'exported_pod="rl-7",exported_namespace="lab",exported_container="main"'
    plain = 'pod="rl-9",namespace="lab",container="main",cluster="two"'
    rig.feed(f"""
DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="GPU-a0",Hostname="n1",{OWN},{exported}}} 64
DCGM_FI_DEV_GPU_UTIL{{gpu="1",UUID="GPU-a1",Hostname="n1",{OWN}}} 0
DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="GPU-c0",Hostname="n2",{plain}}} 70
""")
    assert holders(rig.gpu("GPU-a0")) == ["lab/rl-7"]
    assert holders(rig.gpu("GPU-a1")) == []
    assert holders(rig.gpu("GPU-c0")) == ["lab/rl-9"]
    assert rig.gpu("GPU-c0").key.cluster == "two"


def test_m14_a_pod_change_leaves_one_gpu_with_the_newer_pod() -> None:
    rig = Rig()
    rows = "\n".join(
        f'DCGM_FI_DEV_FB_USED{{gpu="0",UUID="GPU-e1",exported_pod="{pod}",exported_namespace="lab"}} {mib}'
        for pod, mib in (("job-1", 70110), ("job-2", 1200))
    )
    rig.feed(rows, T, times=(T - 200, T - 5))
    assert len(rig.view.gpus) == 1
    gpu = rig.gpu("GPU-e1")
    assert (shown(gpu, "memory_used_mib"), holders(gpu)) == (1200.0, ["lab/job-2"])


def test_m14_a_pod_that_ended_leaves_nobody() -> None:
    rig = Rig()
    rows = (
        'DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-e1",exported_pod="job-1"} 70110\n'
        'DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-e1"} 3'
    )
    rig.feed(rows, T, times=(T - 200, T - 5))
    assert holders(rig.gpu("GPU-e1")) == []


def test_m18_a_gpu_that_fell_off_stays_and_keeps_its_values() -> None:
    rig = Rig()
    line = 'DCGM_FI_DEV_GPU_TEMP{{gpu="{i}",UUID="GPU-g{u}",Hostname="n1",exported_pod="train-z"}} 4{u}'
    rig.feed("\n".join(line.format(i=u, u=u) for u in range(8)), T - 300)
    left = [u for u in range(8) if u != 3]
    # Enumeration closes the gap: index 3 is another board now.
    rig.feed("\n".join(line.format(i=i, u=u) for i, u in enumerate(left)), T - 240)
    lost = rig.gpu("GPU-g3")
    assert (lost.presence, lost.presence_since) == (Presence.MISSING, T - 240)
    assert shown(lost, "temperature_c") == 43.0
    assert holders(lost) == ["train-z"]
    assert len(rig.view.gpus) == 8
    assert sum(g.presence is Presence.PRESENT for g in rig.view.gpus.values()) == 7


def test_m20_nvlink_bandwidth_is_a_level() -> None:
    rig = Rig()
    seen = []
    for step, value in enumerate((41200, 40900, 0, 41050)):
        rig.feed(
            "# TYPE DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL counter\n"
            f'DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{{gpu_uuid="GPU-h0",Hostname="n1"}} {value}\n'
            'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-h0",Hostname="n1"} 50',
            T + 30 * step,
        )
        seen.append(shown(rig.gpu("GPU-h0"), "nvlink_throughput_bytes_per_s"))
    assert seen == [41.2e9, 40.9e9, 0.0, 41.05e9]
    assert len(rig.view.gpus) == 1


def test_m24_finished_pods_do_not_hold_what_they_asked_for() -> None:
    rig = Rig()
    asks = 'container="c",resource="nvidia_com_gpu",unit="integer"'
    text = """
kube_pod_container_resource_requests{namespace="ml",pod="eval-1",uid="u1",node="tern-02",ASKS} 8
kube_pod_status_phase{namespace="ml",pod="eval-1",uid="u1",phase="Succeeded"} 1
kube_pod_status_phase{namespace="ml",pod="eval-1",uid="u1",phase="Running"} 0
kube_pod_container_resource_requests{namespace="ml",pod="eval-2",uid="u2",node="",ASKS} 8
kube_pod_status_phase{namespace="ml",pod="eval-2",uid="u2",phase="Pending"} 1
kube_pod_owner{namespace="ml",pod="eval-2",uid="u2",owner_kind="Job",owner_name="eval"} 1
kube_node_status_capacity{node="tern-02",resource="nvidia_com_gpu",unit="integer"} 8
kube_node_status_allocatable{node="tern-02",resource="nvidia_com_gpu",unit="integer"} 8
kube_node_status_capacity{node="tern-02",resource="nvidia_com_mig_1g_5gb",unit="integer"} 7
kube_node_spec_unschedulable{node="tern-02"} 1
kube_node_status_condition{node="tern-02",condition="Ready",status="true"} 1
kube_node_status_condition{node="tern-02",condition="Ready",status="unknown"} 0
kube_node_spec_taint{node="tern-02",key="nvidia.com/gpu",value="present",effect="NoSchedule"} 1
kube_node_status_capacity{node="cpu-01",resource="cpu",unit="core"} 64
""".replace("ASKS", asks)
    rig.feed(text, T)
    # A second replica of kube-state-metrics doubles every row.
    rig.feed(text.replace("} ", ',instance="two"} ') + text, T + 15)
    workloads = {w.workload.name: w.workload for w in rig.view.workloads.values()}
    assert not workloads["eval-1"].holds
    assert (workloads["eval-2"].node, workloads["eval-2"].phase) == ("", "Pending")
    assert workloads["eval-2"].wants == (("nvidia.com/gpu", 8.0),)
    assert workloads["eval-2"].owner == "Job/eval"
    assert [k.host for k in rig.view.nodes] == ["tern-02"]
    node = rig.node("tern-02")
    assert {d.resource: (d.advertised, d.healthy) for d, _ in node.devices}["nvidia.com/gpu"] == (8.0, 8.0)
    assert [d.resource for d, _ in node.devices] == ["nvidia.com/gpu", "nvidia.com/mig-1g.5gb"]
    condition = node.conditions[0][0]
    assert (condition.cordoned, condition.ready) == (True, True)
    assert condition.taints == ("nvidia.com/gpu=present:NoSchedule",)
    rig.feed('kube_node_spec_unschedulable{node="tern-02"} 0', T + 30)
    assert not rig.view.workloads


@pytest.mark.parametrize(
    ("up", "code", "words"),
    [(0, "exporter_silent", "fails"), (1, "exporter_no_data", "without GPU data")],
    ids=["A", "B"],
)
@pytest.mark.parametrize("seen_before", [True, False])
def test_m26_an_exporter_without_data_makes_its_gpus_unknown(up: int, code: str, words: str, seen_before: bool) -> None:
    rig = Rig(default_host="")
    labels = 'instance="10.4.2.30:9400",job="dcgm-exporter"'
    if seen_before:
        rig.feed(f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="GPU-a0",Hostname="n1",{labels}}} 50', T - 60)
    rig.feed(f'up{{{labels}}} {up}\nup{{instance="10.4.2.30:9100",job="node-exporter"}} 0', T)
    node = rig.node("n1" if seen_before else "10.4.2.30")
    assert [(t.fact.code, words in t.fact.text) for t in node.troubles] == [(code, True)]
    assert len(rig.view.nodes) == 1
    if seen_before:
        gpu = rig.gpu("GPU-a0")
        assert gpu.presence is Presence.UNKNOWN
        assert shown(gpu, "temperature_c") == 50.0
        rig.feed(f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="GPU-a0",Hostname="n1",{labels}}} 51', T + 60)
        assert rig.gpu("GPU-a0").presence is Presence.PRESENT
        assert rig.node("n1").troubles == ()


FROZEN = """
DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="GPU-a0",Hostname="n1"}} 54
DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="GPU-a0",Hostname="n1"}} {power}
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu="0",UUID="GPU-a0",Hostname="n1"}} {energy}
"""


def test_m27_frozen_values_are_told_and_grow_old() -> None:
    rig = Rig()
    for step in range(41):
        rig.feed(FROZEN.format(power=233.182, energy=771233002), T + 15 * step)
    (trouble,) = rig.node("n1").troubles
    assert trouble.fact.code == "frozen"
    assert "frozen for 10 min" in trouble.fact.text
    assert "233 W" in trouble.fact.text
    for step in range(41, 50):
        rig.feed(FROZEN.format(power=233.182, energy=771233002), T + 15 * step)
    assert rig.gpu("GPU-a0").readings["power_w"].state(T + 15 * 49) == "stale"
    rig.feed(FROZEN.format(power=240, energy=771233999), T + 15 * 50)
    assert rig.node("n1").troubles == ()
    assert rig.gpu("GPU-a0").readings["power_w"].state(T + 15 * 50) == "ok"


def test_m27_pairs_of_equal_values_and_an_idle_board_are_not_frozen() -> None:
    rig = Rig()
    for step in range(60):
        rig.feed(FROZEN.format(power=233, energy=771233002 + 1000 * (step // 2)), T + 15 * step)
    assert rig.node("n1").troubles == ()
    for step in range(60, 120):
        rig.feed(FROZEN.format(power=0, energy=771263002), T + 15 * step)
    assert rig.node("n1").troubles == ()
