"""Process tables: lists merged, nonsense dropped, samples judged."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gputop.model.process import GpuProcess
from gputop.model.reading import NA, Absent
from gputop.sources.nvml.boards import open_board
from gputop.sources.nvml.device import Device
from gputop.sources.nvml.library import Library
from gputop.sources.nvml.marker import Marker
from gputop.sources.nvml.processes import Tables
from gputop.sources.nvml.procfs import Processes as People
from tests.unit.nvml import fake
from tests.unit.nvml.fake import MIB, Code, FakeLibrary, Process, Sample, plain_gpu
from tests.unit.nvml.rig import add_process

GIB = 1024 * MIB
MakeLibrary = Callable[..., tuple[FakeLibrary, Library]]


def reader(made: tuple[FakeLibrary, Library], proc: Path) -> tuple[Tables, list[Device]]:
    library = made[1]
    devices: list[Device] = []
    for index, gpu in enumerate(made[0].gpus):
        device = Device(index, index)
        assert open_board(library, device) == 0
        assert device.uuid == gpu.uuid
        devices.append(device)
    return Tables(library, People(proc, "node-a", Marker(None))), devices


def listed(table: tuple[GpuProcess, ...] | Absent | None) -> dict[int, GpuProcess]:
    assert isinstance(table, tuple)
    return {process.pid: process for process in table}


@pytest.fixture
def proc(roots: tuple[Path, Path]) -> Path:
    for pid in (700, 701, 702):
        add_process(roots[0], pid)
    return roots[0]


def test_one_process_on_two_lists_and_two_gpus(library: MakeLibrary, proc: Path) -> None:
    """Case 10: C+G on GPU 0 counts once; GPU 1 is a row of its own."""
    gpus = [plain_gpu(0), plain_gpu(1)]
    gpus[0].processes = {"C": [Process(700, GIB)], "G": [Process(700, GIB)]}
    gpus[1].processes = {"C": [Process(700, 2 * GIB)]}
    tables, devices = reader(library(gpus), proc)
    first = listed(tables.read(devices[0], 81559.0, 5.0))
    second = listed(tables.read(devices[1], 81559.0, 5.0))
    assert (first[700].kinds, first[700].memory_mib) == ("C+G", 1024.0)
    assert (second[700].kinds, second[700].memory_mib) == ("C", 2048.0)


def test_mps_clients_are_listed(library: MakeLibrary, proc: Path) -> None:
    gpu = plain_gpu()
    gpu.processes = {"C": [Process(700, GIB)], "M": [Process(701, GIB)]}
    tables, (device,) = reader(library([gpu]), proc)
    table = listed(tables.read(device, 81559.0, 5.0))
    assert table[701].kinds == "M"


def test_memory_that_is_not_told(library: MakeLibrary, proc: Path) -> None:
    """Case 8: 2**64 - 1 is no number of bytes; the other process keeps its own."""
    gpu = plain_gpu()
    gpu.processes = {"C": [Process(700, 2**64 - 1), Process(701, 3 * GIB)]}
    tables, (device,) = reader(library([gpu]), proc)
    table = listed(tables.read(device, 81559.0, 5.0))
    told = table[700].memory_mib
    assert isinstance(told, Absent)
    assert told.state == NA
    assert table[701].memory_mib == 3072.0


def test_more_memory_than_the_gpu_has_is_no_number(library: MakeLibrary, proc: Path) -> None:
    gpu = plain_gpu()
    gpu.processes = {"C": [Process(700, 90_000 * MIB)]}
    tables, (device,) = reader(library([gpu]), proc)
    told = listed(tables.read(device, 81559.0, 5.0))[700].memory_mib
    assert isinstance(told, Absent)
    assert told.code == "implausible"


def test_a_scrambled_list_loses_its_nonsense(library: MakeLibrary, proc: Path) -> None:
    gpu = plain_gpu()
    gpu.processes = {"C": [Process(pid, GIB) for pid in (700, 0, 4294967295, 4294967295, 16040)]}
    tables, (device,) = reader(library([gpu]), proc)
    # 16040 is not in /proc of the host's own PID namespace.
    assert listed(tables.read(device, 81559.0, 5.0)).keys() == {700}


def test_the_list_may_grow_between_the_calls(library: MakeLibrary, proc: Path) -> None:
    gpu = plain_gpu()
    pids = range(2000, 2150)
    for pid in pids:
        add_process(proc, pid)
    gpu.processes = {"C": [Process(pid, MIB) for pid in pids]}
    tables, (device,) = reader(library([gpu]), proc)
    assert listed(tables.read(device, 81559.0, 5.0)).keys() == set(pids)


@pytest.mark.parametrize(
    ("lacks", "used"),
    [
        (set(), "nvmlDeviceGetComputeRunningProcesses_v3"),
        ({"nvmlDeviceGetComputeRunningProcesses_v3"}, "nvmlDeviceGetComputeRunningProcesses_v2"),
        (
            {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"},
            "nvmlDeviceGetComputeRunningProcesses",
        ),
    ],
)
def test_struct_and_symbol_fit(library: MakeLibrary, proc: Path, lacks: set[str], used: str) -> None:
    gpu = plain_gpu()
    gpu.processes = {"C": [Process(700, GIB), Process(701, 2 * GIB)]}
    made = library([gpu], lacks)
    tables, (device,) = reader(made, proc)
    table = listed(tables.read(device, 81559.0, 5.0))
    assert [process.memory_mib for process in table.values()] == [1024.0, 2048.0]
    assert made[0].calls[used] == 1


@pytest.mark.parametrize(
    ("driver", "version"),
    [((535, 54, 3), "_v2"), ((535, 86, 10), "_v2"), ((535, 104, 5), "_v3"), ((570, 86), "_v3"), ((), "_v3")],
)
def test_drivers_with_longer_entries_are_asked_the_older_way(
    library: MakeLibrary, proc: Path, driver: tuple[int, ...], version: str
) -> None:
    gpu = plain_gpu()
    gpu.processes = {"C": [Process(700, GIB)]}
    made = library([gpu])
    (device,) = reader(made, proc)[1]
    tables = Tables(made[1], People(proc, "node-a", Marker(None)), driver)
    assert listed(tables.read(device, 81559.0, 5.0)).keys() == {700}
    assert made[0].calls["nvmlDeviceGetComputeRunningProcesses" + version] == 1


def test_no_samples_means_idle(library: MakeLibrary, proc: Path) -> None:
    """Case 11, first part: NOT_FOUND is 0 %, not an error."""
    gpu = plain_gpu()
    gpu.processes = {"C": [Process(700, GIB)]}
    gpu.samples = Code(fake.NOT_FOUND)
    tables, (device,) = reader(library([gpu]), proc)
    assert listed(tables.read(device, 81559.0, 5.0))[700].sm_percent == 0.0


def test_bad_and_old_samples_are_dropped(library: MakeLibrary, proc: Path) -> None:
    """Case 11, second part: nothing above 100 %, nothing a minute old."""
    now = time.time_ns() // 1000
    gpu = plain_gpu()
    gpu.processes = {"C": [Process(700, GIB), Process(701, GIB), Process(702, GIB)]}
    gpu.samples = [
        Sample(700, now, 4294967),
        Sample(701, now - 60_000_000, 88),
        Sample(702, now - 900_000, 10),
        Sample(702, now - 100_000, 35, encoder=5),
    ]
    tables, (device,) = reader(library([gpu]), proc)
    table = listed(tables.read(device, 81559.0, 5.0))
    absurd = table[700].sm_percent
    assert isinstance(absurd, Absent)
    assert table[701].sm_percent == 0.0
    assert table[702].sm_percent == 35.0
    assert table[702].encoder_percent == 5.0


def test_the_time_of_the_newest_sample_is_given_back(library: MakeLibrary, proc: Path) -> None:
    now = time.time_ns() // 1000
    gpu = plain_gpu()
    gpu.processes = {"C": [Process(700, GIB)]}
    gpu.samples = [Sample(700, now, 35)]
    tables, (device,) = reader(library([gpu]), proc)
    tables.read(device, 81559.0, 5.0)
    gpu.samples = []
    table = listed(tables.read(device, 81559.0, 5.0))
    assert gpu.samples_since[1] == now
    # Nothing newer within the window: the last sample still holds.
    assert table[700].sm_percent == 35.0


def test_no_sampling_is_asked_once(library: MakeLibrary, proc: Path) -> None:
    gpu = plain_gpu()
    gpu.processes = {"C": [Process(700, GIB)]}
    gpu.samples = Code(fake.NOT_SUPPORTED)
    tables, (device,) = reader(library([gpu]), proc)
    for _ in range(3):
        told = listed(tables.read(device, 81559.0, 5.0))[700].sm_percent
        assert isinstance(told, Absent)
        assert told.state == NA
    assert len(gpu.samples_since) == 1


def test_lists_that_are_refused_are_not_empty(library: MakeLibrary, proc: Path) -> None:
    gpu = plain_gpu()
    gpu.processes = dict.fromkeys(("C", "G", "M"), Code(fake.NO_PERMISSION))
    tables, (device,) = reader(library([gpu]), proc)
    table = tables.read(device, 81559.0, 5.0)
    assert isinstance(table, Absent)
    assert table.code == "denied"


def test_one_list_of_three_is_enough(library: MakeLibrary, proc: Path) -> None:
    gpu = plain_gpu()
    gpu.processes = {"C": [Process(700, GIB)], "G": Code(fake.NOT_SUPPORTED), "M": Code(fake.NOT_SUPPORTED)}
    tables, (device,) = reader(library([gpu]), proc)
    assert listed(tables.read(device, 81559.0, 5.0)).keys() == {700}


def test_a_lost_gpu_has_no_table(library: MakeLibrary, proc: Path) -> None:
    gpu = plain_gpu()
    tables, (device,) = reader(library([gpu]), proc)
    gpu.every_call = fake.GPU_IS_LOST
    assert tables.read(device, 81559.0, 5.0) is None


def test_a_process_that_has_just_gone_is_left_out(library: MakeLibrary, proc: Path) -> None:
    gpu = plain_gpu()
    gpu.processes = {"C": [Process(700, GIB), Process(9999, GIB)]}
    tables, (device,) = reader(library([gpu]), proc)
    assert listed(tables.read(device, 81559.0, 5.0)).keys() == {700}


def test_user_command_and_holder_come_with_it(library: MakeLibrary, proc: Path) -> None:
    pod = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
    add_process(
        proc,
        800,
        command=b"python\0-c\0evil\x1b[31m\0",
        cgroup=f"0::/kubepods/burstable/pod{pod}/{'a' * 64}\n",
        environ=b"HOSTNAME=llama-ft-0\0SECRET=hunter2\0",
        started=5000,
    )
    gpu = plain_gpu()
    gpu.processes = {"C": [Process(800, GIB)]}
    tables, (device,) = reader(library([gpu]), proc)
    process = listed(tables.read(device, 81559.0, 5.0))[800]
    assert process.user == "root"
    assert isinstance(process.command, str)
    assert "\x1b" not in process.command
    assert isinstance(process.started_at, float)
    assert process.started_at > 1_700_000_000.0
    assert process.holder is not None
    assert (process.holder.scheduler, process.holder.uid, process.holder.name) == (
        "kubernetes",
        pod,
        "llama-ft-0",
    )
    assert "cgroup" in process.holder_reason
    assert "hunter2" not in repr(process)
