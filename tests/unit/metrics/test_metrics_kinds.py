"""Processes, health, clock events and clocks by label: series that are no plain values."""

from typing import Any

import pytest

from gputop.model.process import GpuProcess
from gputop.model.reading import Absent
from gputop.sources.metrics.labels import ROW_LABELS
from gputop.sources.metrics.names import METRICS, PROCESSES, names_wanted
from gputop.sources.metrics.rule import Role
from tests.cases.metrics_rig import Rig, T, shown

UUID = "GPU-0a0a0a0a-0000-0000-0000-000000000001"
SMI = 'uuid="0a0a0a0a-0000-0000-0000-000000000001"'
NVITOP = f'hostname="tern-04",index="0",devicename="NVIDIA L4",uuid="{UUID}"'
DCGM = f'gpu="0",UUID="{UUID}",Hostname="tern-04"'


def table(rig: Rig, instance: str = "") -> dict[int, GpuProcess]:
    (only,) = rig.gpu(UUID, instance).processes
    assert isinstance(only.processes, tuple)
    return {process.pid: process for process in only.processes}


def test_nvidia_gpu_exporter_tells_compute_processes() -> None:
    rig = Rig()
    rig.feed(f"""
nvidia_smi_compute_apps{{{SMI}}} 2
nvidia_smi_compute_app_info{{pid="7",process_name="./gpu_burn",{SMI}}} 1
nvidia_smi_compute_app_info{{pid="8",process_name="evil\\u001b[31m",{SMI}}} 1
nvidia_smi_compute_app_used_memory_bytes{{pid="7",process_name="./gpu_burn",{SMI}}} 2147483648
""")
    told = table(rig)
    assert (told[7].kinds, told[7].command, told[7].memory_mib) == ("C", "./gpu_burn", 2048.0)
    # Not told is not 0 MiB.
    assert isinstance(told[8].memory_mib, Absent)
    assert isinstance(told[7].user, Absent)


def test_none_is_told_by_a_count_of_0_and_not_by_silence() -> None:
    rig = Rig()
    rig.feed(f"nvidia_smi_utilization_gpu_ratio{{{SMI}}} 0.4")
    assert rig.gpu(UUID).processes == ()
    rig.feed(f"nvidia_smi_compute_apps{{{SMI}}} 0", T + 15)
    assert table(rig) == {}


def test_nvitop_tells_user_and_command_and_how_long() -> None:
    rig = Rig()
    who = f'{NVITOP},pid="700",username="mara"'
    rig.feed(f"""
gpu_utilization_Percentage{{{NVITOP}}} 88
process_info_info{{{who},status="running",command="python train.py"}} 1
process_gpu_memory_MiB{{{who}}} 4096
process_gpu_sm_utilization_Percentage{{{who}}} 71
process_gpu_encoder_utilization_Percentage{{{who}}} 4294967295
process_running_time_Second{{{who}}} 90
process_gpu_memory_MiB{{{NVITOP},pid="4294967295",username="N/A"}} 1
""")
    told = table(rig)
    assert told.keys() == {700}
    one = told[700]
    assert (one.user, one.command, one.memory_mib, one.sm_percent) == ("mara", "python train.py", 4096.0, 71.0)
    assert one.started_at == T - 90.0
    assert isinstance(one.encoder_percent, Absent)
    # It ends: its series are gone, the GPU's are not.
    rig.feed(f"gpu_utilization_Percentage{{{NVITOP}}} 0", T + 15)
    assert table(rig) == {}


def test_an_incomplete_answer_ends_no_process() -> None:
    rig = Rig()
    rig.feed(f'gpu_utilization_Percentage{{{NVITOP}}} 8\nprocess_gpu_memory_MiB{{{NVITOP},pid="7",username="u"}} 1')
    rig.feed(f"gpu_utilization_Percentage{{{NVITOP}}} 9", T + 15, complete=False)
    assert table(rig).keys() == {7}


def test_answers_of_one_scrape_are_put_together() -> None:
    rig = Rig()
    who = f'pid="7",process_name="p",{SMI}'
    for line in (
        f"nvidia_smi_compute_app_info{{{who}}} 1",
        f"nvidia_smi_compute_app_used_memory_bytes{{{who}}} 1048576",
    ):
        rig.feed(line, T + 1.0, complete=False, times=(T,))
    assert (table(rig)[7].command, table(rig)[7].memory_mib) == ("p", 1.0)


def test_a_process_of_an_older_scrape_has_ended() -> None:
    rig = Rig()
    lines = "\n".join(f'nvidia_smi_compute_app_info{{pid="{pid}",process_name="p",{SMI}}} 1' for pid in (1, 2))
    rig.feed(lines, T, times=(T - 120, T))
    assert table(rig).keys() == {2}


@pytest.mark.parametrize(
    ("series", "words"),
    [
        ([("ALL", "", 0), ("PCIE", "", 0)], "pass"),
        ([("PCIE", "DCGM_FR_PCI_REPLAY_RATE", 10), ("MEM", "", 0)], "warning: PCIE DCGM_FR_PCI_REPLAY_RATE"),
        (
            [("MEM", "DCGM_FR_VOLATILE_DBE_DETECTED", 20), ("PCIE", "X", 10)],
            "failure: MEM DCGM_FR_VOLATILE_DBE_DETECTED",
        ),
        ([("MEM", "", 30)], "code 30: MEM"),
    ],
)
def test_health_is_the_worst_of_all_watches(series: list[tuple[str, str, int]], words: str) -> None:
    rig = Rig()
    lines = [
        f'DCGM_EXP_GPU_HEALTH_STATUS{{{DCGM},health_watch="{watch}",health_error_code="{code}"}} {value}'
        for watch, code, value in series
    ]
    rig.feed("\n".join(lines))
    assert shown(rig.gpu(UUID), "exporter_health") == words


def test_clock_events_of_a_window_are_no_reasons_of_now() -> None:
    rig = Rig()
    labels = f'{DCGM},window_size_in_ms="300000"'
    rig.feed(f"""
DCGM_EXP_CLOCK_EVENTS_COUNT{{{labels},clock_event="hw_thermal"}} 3
DCGM_EXP_CLOCK_EVENTS_COUNT{{{labels},clock_event="power_cap",GPU_I_ID="1"}} 12
DCGM_EXP_CLOCK_EVENTS_COUNT{{{labels},clock_event="power_cap",GPU_I_ID="2"}} 12
DCGM_EXP_CLOCK_EVENTS_COUNT{{{labels},clock_event="sync_boost"}} 0
""")
    board = rig.gpu(UUID)
    assert shown(board, "clock_events_lately") == "samples with hw_thermal 3 in 300 s, power_cap 12 in 300 s"
    assert "clock_event_reasons" not in board.readings


def test_a_total_of_xids_is_a_count_of_events() -> None:
    rig = Rig()
    for step, count in enumerate((1, 1, 3)):
        rig.feed(
            f'DCGM_FI_DEV_GPU_TEMP{{{DCGM}}} 40\nDCGM_EXP_XID_ERRORS_TOTAL{{{DCGM},xid="94"}} {count}', T + 15.0 * step
        )
    assert {x.xid: x.count for x in rig.gpu(UUID).xids if str(x.kind) == "event"} == {94: 2}


@pytest.mark.parametrize("spelling", ["system", "GPU_CLOCK_TYPE_SYSTEM"])
def test_amd_s_clocks_are_told_apart_by_a_label(spelling: str) -> None:
    rig = Rig()
    labels = 'gpu_id="3",hostname="m1",serial_number="S1",card_model="MI300X",gpu_partition_id="0"'
    other = "memory" if spelling == "system" else "GPU_CLOCK_TYPE_MEMORY"
    rig.feed(f"""
gpu_clock{{{labels},clock_type="{spelling}",clock_index="0"}} 1533
gpu_clock{{{labels},clock_type="{spelling}",clock_index="1"}} 2100
gpu_clock{{{labels},clock_type="{other}",clock_index="8"}} 1300
gpu_clock{{{labels},clock_type="GPU_CLOCK_TYPE_DATA",clock_index="9"}} 22
gpu_health{{{labels}}} 1
""")
    (gpu,) = rig.view.gpus.values()
    assert (shown(gpu, "sm_clock_mhz"), shown(gpu, "memory_clock_mhz")) == (2100.0, 1300.0)
    assert shown(gpu, "exporter_health") == "pass"


def test_violations_are_counters_without_a_unit() -> None:
    rig = Rig()
    rig.feed(f"DCGM_FI_DEV_THERMAL_VIOLATION{{{DCGM}}} 52000\nDCGM_FI_DEV_POWER_VIOLATION{{{DCGM}}} 0")
    gpu = rig.gpu(UUID)
    assert (shown(gpu, "violation_thermal"), shown(gpu, "violation_power")) == (52000.0, 0.0)
    assert "clock_event_power_cap_ns" not in gpu.readings


def test_nvlink_5_link_by_link_adds_up_but_rates_do_not() -> None:
    rig = Rig()
    lines = [f"DCGM_FI_DEV_GPU_TEMP{{{DCGM}}} 40"]
    for link, (errors, rate) in enumerate(((1, 3e-12), (2, 1.5e-9))):
        row = f'gpu_uuid="{UUID}",gpu="0",nvlink="{link}",Hostname="tern-04"'
        lines.append(f"DCGM_FI_DEV_NVLINK_COUNT_RX_SYMBOL_ERRORS{{{row}}} {errors}")
        lines.append(f"DCGM_FI_DEV_NVLINK_COUNT_SYMBOL_BER_FLOAT{{{row}}} {rate}")
    rig.feed("\n".join(lines))
    gpu = rig.gpu(UUID)
    assert (shown(gpu, "nvlink_symbol_errors"), shown(gpu, "nvlink_symbol_ber")) == (3.0, 1.5e-9)


def test_mig_of_nvidia_gpu_exporter_belongs_to_the_instance() -> None:
    rig = Rig()
    who = f'{SMI},gpu_instance_id="5"'
    named = 'mig_uuid="MIG-aaaaaaaa-0000-0000-0000-000000000005",compute_instance_id="0",profile="1g.10gb"'
    rig.feed(f"""
nvidia_smi_gpu_info{{{SMI},name="NVIDIA H100",index="0"}} 1
nvidia_smi_mig_info{{{who},{named}}} 1
nvidia_smi_mig_memory_used_bytes{{{who}}} 1073741824
nvidia_smi_mig_sm_activity_ratio{{{who}}} 0.5
""")
    instance = rig.gpu(UUID, "5")
    assert (shown(instance, "memory_used_mib"), shown(instance, "sm_activity")) == (1024.0, 50.0)
    assert shown(instance, "mig_profile") == "1g.10gb"
    assert shown(rig.gpu(UUID), "model") == "NVIDIA H100"


def test_a_board_known_by_its_instances_only_has_their_model() -> None:
    rig = Rig()
    rig.feed(
        f'DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{DCGM},modelName="NVIDIA A100",GPU_I_ID="1",GPU_I_PROFILE="3g.20gb"}} 0.5'
    )
    assert shown(rig.gpu(UUID), "model") == "NVIDIA A100"


def test_processes_are_asked_for_by_name() -> None:
    def roles(wanted: set[str] | None) -> set[Role]:
        return {rule.role for rule in names_wanted(wanted)}

    assert Role.PROCESS not in roles({"utilization"})
    assert Role.PROCESS in roles({"utilization", PROCESSES})
    assert Role.PROCESS in roles(None)
    assert Role.CHOICE in roles({"memory_clock_mhz"})


def test_a_server_that_reduces_keeps_what_tells_series_apart() -> None:
    needed: dict[Role, Any] = {
        Role.PROCESS: {"pid"},
        Role.HEALTH: {"health_watch", "health_error_code"},
        Role.CLOCK_EVENTS: {"clock_event", "window_size_in_ms"},
        Role.XID_COUNT: {"xid"},
    }
    for rule in METRICS.values():
        assert needed.get(rule.role, set()) <= set(ROW_LABELS)
        assert {rule.label} - {""} <= set(ROW_LABELS)
