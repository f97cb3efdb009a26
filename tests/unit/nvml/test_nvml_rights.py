"""What the user may read and what not, with the line that would give it."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gputop.model.status import Finding
from gputop.sources.nvml import rights
from gputop.sources.nvml.protocol import Notes, Plan
from tests.unit.nvml import fake
from tests.unit.nvml.fake import Code, Gpu, plain_gpu
from tests.unit.nvml.rig import Rig

MakeRig = Callable[..., Rig]
REFUSED = Code(fake.NO_PERMISSION)
NOBODY = rights.Asked(
    (), foreign=False, unlisted=frozenset(), events=None, events_trouble="", profiling=False, unsampled={}
)


def by_right(rig: Rig, *, profiling: bool = False) -> dict[str, Finding]:
    rig.open(Plan(None, processes=True, profiling=profiling, interval_s=1.0))
    for group in range(4):
        rig.read(group)
    rig.sweep.read_processes()
    rig.sweep.tell_costs()
    return {finding.right: finding for finding in rig.of(Notes)[-1].findings}


def procfs(root: Path, *, capabilities: int = 0, options: str = "rw", init: bool = True) -> Path:
    (root / "self").mkdir(parents=True)
    (root / "self" / "status").write_text(f"Name:\tgputop\nCapPrm:\t0\nCapEff:\t{capabilities:016x}\n")
    (root / "self" / "mountinfo").write_text(
        f"21 1 0:5 / / rw - ext4 /dev/sda1 rw\n22 21 0:20 / /proc rw,nosuid shared:5 - proc proc {options}\n"
    )
    if init:
        (root / "1").mkdir()
    return root


def of_processes(root: Path, asked: rights.Asked = NOBODY) -> dict[str, Finding]:
    return {f.right: f for f in rights.findings(asked, root) if f.right in {"processes", "environments"}}


def test_with_the_capability_all_is_seen_even_under_hidepid(tmp_path: Path) -> None:
    found = of_processes(procfs(tmp_path, capabilities=1 << 19, options="rw,hidepid=invisible"))
    assert [f.severity for f in found.values()] == ["ok"]


def test_without_it_commands_are_seen_and_environments_are_not(tmp_path: Path) -> None:
    found = of_processes(procfs(tmp_path))
    assert (found["processes"].severity, found["environments"].severity) == ("ok", "warning")
    assert "SYS_PTRACE" in found["environments"].advice


@pytest.mark.parametrize("word", ["1", "2", "invisible", "noaccess", "ptraceable"])
def test_hidepid_is_named_with_the_line_that_undoes_it(tmp_path: Path, word: str) -> None:
    found = of_processes(procfs(tmp_path, options=f"rw,hidepid={word}", init=word == "1"))
    assert found["processes"].severity == "warning"
    assert f"hidepid={word}" in found["processes"].text
    assert "remount,hidepid=0" in found["processes"].advice


def test_the_group_of_the_mount_sees_all_but_under_ptraceable(tmp_path: Path) -> None:
    group = os.getegid()
    assert rights.hiding(procfs(tmp_path / "a", options=f"rw,gid={group},hidepid=2")) == ""
    assert rights.hiding(procfs(tmp_path / "b", options=f"rw,gid={group},hidepid=ptraceable")) == "ptraceable"
    assert rights.hiding(procfs(tmp_path / "c", options="rw,hidepid=off")) == ""


def test_another_pid_namespace_is_told_before_anything_of_proc(tmp_path: Path) -> None:
    asked = rights.Asked(
        (), foreign=True, unlisted=frozenset(), events=None, events_trouble="", profiling=False, unsampled={}
    )
    found = of_processes(procfs(tmp_path, capabilities=1 << 19), asked)
    assert found["processes"].severity == "warning"
    assert "hostPID" in found["processes"].advice


def test_what_a_procfs_does_not_tell_is_not_claimed(tmp_path: Path) -> None:
    assert [f.severity for f in of_processes(tmp_path).values()] == ["info"]


def test_refused_readings_lists_and_gpus_are_named(make_rig: MakeRig) -> None:
    gpu, shut = plain_gpu(), plain_gpu(1)
    gpu.answers["nvmlDeviceGetSramEccErrorStatus"] = REFUSED
    gpu.processes = dict.fromkeys("CGM", REFUSED)
    shut.open_code = fake.NO_PERMISSION
    found = by_right(make_rig([gpu, shut]))
    assert found["ECC"].severity == found["process lists"].severity == found["devices"].severity == "warning"
    assert "ecc_sram_threshold_exceeded" in found["ECC"].text
    assert found["devices"].text.startswith("GPU 1 is refused")
    assert "cgroup" in found["devices"].advice


def test_what_answers_is_ok_and_what_is_off_is_neither(make_rig: MakeRig) -> None:
    found = by_right(make_rig([plain_gpu()]))
    assert {name: f.severity for name, f in found.items() if name in {"devices", "ECC", "MIG", "profiling"}} == {
        "devices": "ok", "ECC": "ok", "MIG": "info", "profiling": "info",
    }  # fmt: skip
    assert found["profiling"].advice == "--profiling"


def test_xids_that_are_not_told_are_a_lack(make_rig: MakeRig) -> None:
    rig = make_rig([plain_gpu()])
    deadline = time.monotonic() + 10
    found = by_right(rig)
    while "Xid events" not in found and time.monotonic() < deadline:
        rig.sweep.tell_costs()
        found = {f.right: f for f in rig.of(Notes)[-1].findings}
    assert found["Xid events"].severity == "warning"
    assert "kernel log" in found["Xid events"].text


def test_instances_that_are_refused_are_told_with_the_capability(make_rig: MakeRig) -> None:
    board = plain_gpu()
    board.answers["nvmlDeviceGetMigMode"] = (1, 1)
    board.instances = [Gpu(uuid="MIG-00000000-0000-0000-0000-000000000001", every_call=fake.NO_PERMISSION)]
    found = by_right(make_rig([board]))
    assert found["MIG"].severity == "warning"
    assert "nvidia-caps" in found["MIG"].advice


def test_a_refused_gpm_names_the_drivers_option(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    gpu.answers["nvmlGpmQueryDeviceSupport"] = REFUSED
    found = by_right(make_rig([gpu]), profiling=True)
    assert found["profiling"].severity == "warning"
    assert "NVreg_RestrictProfilingToAdminUsers=0" in found["profiling"].advice
