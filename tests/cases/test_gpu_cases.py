"""The cases of NVML and of the screen that this version's sources can meet, from the library to the row.

What needs a process is tested elsewhere: 3 (library and kernel module differ) and 4 (a call that blocks) in
tests/integration. Of 15 the reading of a kernel log waits for that source; what the fleet makes of it is here.
"""

import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gputop.fleet import Fleet
from gputop.model.facts import Batch, GpuFact, Presence, Roster, XidFact, XidKind
from gputop.model.identity import GpuRef, NodeRef, normal_bus_id
from gputop.model.reading import Absent
from tests.cases.gpu_rig import NvmlRig, plain, script
from tests.cases.metrics_rig import Rig, shown
from tests.e2e.rig import Told, app, shows
from tests.unit.nvml import fake
from tests.unit.nvml.fake import Code, Gpu, Process, Sample, plain_gpu

CASES = tomllib.loads((Path(__file__).parent / "data" / "gpu_nvml.toml").read_text(encoding="utf-8"))["case"]
MakeRig = Callable[[list[Gpu]], NvmlRig]


@pytest.fixture
def make_rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeRig:
    return lambda gpus: NvmlRig(gpus, tmp_path, monkeypatch)


def check(rig: NvmlRig, poll: dict[str, Any], uuids: list[str]) -> None:
    wanted = {str(index): "present" for index in range(len(uuids))} | poll.get("presence", {})
    assert {str(index): str(rig.board(index).presence) for index in range(len(uuids))} == wanted
    for index, words in poll.get("words", {}).items():
        assert words in rig.board(int(index)).presence_reason
    for index, values in poll.get("shows", {}).items():
        assert {quantity: shown(rig.board(int(index)), quantity) for quantity in values} == values
    for index, processes in poll.get("processes", {}).items():
        told = rig.processes(int(index))
        assert {
            str(pid): [p.kinds, p.memory_mib.state if isinstance(p.memory_mib, Absent) else p.memory_mib]
            for pid, p in told.items()
        } == processes


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_nvml(case: dict[str, Any], make_rig: MakeRig) -> None:
    gpus = plain(case["gpus"])
    rig = make_rig(gpus)
    for pid in case.get("pids", ()):
        rig.person(pid)
    opened = False
    for number, poll in enumerate(case["polls"]):
        for index, told in poll.get("board", {}).items():
            script(gpus[int(index)], told)
        # Something moves on every board, so that a row that does not is noticed.
        for gpu in gpus:
            gpu.answers["nvmlDeviceGetTemperature"] = 40 + number
        if not opened:
            assert rig.open() is None
            opened = True
        rig.poll()
        check(rig, poll, [gpu.uuid for gpu in gpus])
        assert len(rig.fleet.view().gpus) == case["gpus"]
        for index, gpu in enumerate(gpus):
            row = rig.board(index)
            if not gpu.every_call:
                assert shown(row, "temperature_c") == 40.0 + number
            elif number:
                # The last values stay, under the name that the row had.
                assert row.key.uuid == gpu.uuid
                assert isinstance(shown(row, "temperature_c"), float)


def test_6_a_page_cache_is_not_used_memory(make_rig: MakeRig) -> None:
    rig = make_rig([plain_gpu()])
    rig.open()
    used: list[float] = []
    for free, available in ((103.25, 115.85), (41.52, 115.65)):
        rig.memory(free, available)
        rig.sweep.look_at_bus()
        (node,) = rig.fleet.view().nodes.values()
        total, left = (node.readings[f"system_memory_{what}_mib"].number for what in ("total", "available"))
        assert total is not None
        assert left is not None
        used.append((total - left) / 1024)
    assert used[1] - used[0] == pytest.approx(0.2, abs=0.01)


def test_11_samples_of_processes(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    gpu.processes = {"C": [Process(700, 1 << 30), Process(701, 1 << 30)]}
    rig = make_rig([gpu])
    rig.person(700)
    rig.person(701)
    rig.open()
    rig.poll()
    assert [p.sm_percent for p in rig.processes(0).values()] == [0.0, 0.0]
    now = time.time_ns() // 1000
    gpu.samples = [Sample(700, now, 4294967), Sample(701, now - 60_000_000, 88)]
    rig.poll()
    absurd, old = (rig.processes(0)[pid].sm_percent for pid in (700, 701))
    assert isinstance(absurd, Absent)
    assert old == 0.0


def test_12_a_partitioned_board(make_rig: MakeRig) -> None:
    def instance(number: int) -> Gpu:
        return Gpu(
            uuid=f"MIG-0000000{number}-1111-2222-3333-444444444444",
            answers={
                "nvmlDeviceGetGpuInstanceId": number,
                "nvmlDeviceGetComputeInstanceId": 0,
                "nvmlDeviceGetName": b"NVIDIA H100 80GB HBM3 MIG 1g.10gb",
                "nvmlDeviceGetMemoryInfo_v2": fake.memory_v2(9984, 0, 100, 9884),
            },
        )

    board = plain_gpu()
    board.answers["nvmlDeviceGetMigMode"] = (1, 1)
    board.answers["nvmlDeviceGetUtilizationRates"] = Code(fake.NOT_SUPPORTED)
    board.instances = [instance(1), None, instance(3), None, None, instance(5), None]
    rig = make_rig([board])
    rig.open()
    rig.poll()
    assert shown(rig.board(0), "utilization") == "n/a"
    rows = {k.instance: g for k, g in rig.fleet.view().gpus.items() if k.instance}
    assert sorted(rows) == ["1", "3", "5"]
    assert {g.presence for g in rows.values()} == {Presence.PRESENT}
    assert {shown(g, "mig_profile") for g in rows.values()} == {"1g.10gb"}


def test_14_a_standing_xid_is_one_entry_of_an_unknown_time() -> None:
    rig = Rig()
    line = 'DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-a0",Hostname="n",err_code="31"} 31'
    start = 1_790_000_000.0
    for scrape in range(6 * 60):
        rig.feed(line, start + 60.0 * scrape)
    (entry,) = rig.gpu("GPU-a0").xids
    assert (entry.xid, entry.count, entry.kind, entry.from_start) == (31, 1, XidKind.LAST, True)
    assert (entry.first_seen, entry.last_seen) == (start, start + 60.0 * 359)
    assert rig.gpu("GPU-a0").presence is Presence.PRESENT


def test_15_repeats_of_an_xid_are_counts_not_rows() -> None:
    fleet = Fleet()
    boards = [GpuRef("n", uuid=f"GPU-{i:08d}-0000-0000-0000-000000000000", index=i) for i in range(8)]
    distinct = [(boards[n % 8], 13 + n) for n in range(29)]
    start, rounds = 1_790_000_000.0, 400
    for step in range(rounds):
        facts = tuple(XidFact(ref, xid, XidKind.EVENT, at=start + step) for ref, xid in distinct)
        fleet.apply(Batch("kernel log", 0, start + step, 60.0, facts))
    records = [record for gpu in fleet.view().gpus.values() for record in gpu.xids]
    assert len(records) == 29
    assert {r.count for r in records} == {rounds}
    assert {(r.first_seen, r.last_seen) for r in records} == {(start, start + rounds - 1)}


def test_15_what_is_kept_of_one_board_is_bounded() -> None:
    fleet = Fleet()
    ref = GpuRef("n", uuid="GPU-00000000-0000-0000-0000-000000000000", index=0)
    for xid in range(1, 1000):
        fleet.apply(Batch("kernel log", 0, float(xid), 60.0, (XidFact(ref, xid, XidKind.EVENT),)))
    (gpu,) = fleet.view().gpus.values()
    assert len(gpu.xids) <= 64
    assert gpu.xids[-1].xid == 999


@pytest.mark.parametrize("kernel", ["PCI:0008:06:00", "0008:06:00.0", "0008:06:00"])
@pytest.mark.parametrize("exporter", ["00000008:06:00.0", "0008:06:00.0"])
def test_16_every_spelling_of_an_address_is_the_same_row(
    make_rig: MakeRig, kernel: str, exporter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = "GPU-ABCDEF01-0000-0000-0000-000000000000"
    rig = make_rig([plain_gpu()])
    rig.gpus[0].answers["nvmlDeviceGetUUID"] = uuid.encode()
    rig.gpus[0].answers["nvmlDeviceGetPciInfo_v3"] = {"busId": b"00000008:06:00.0"}
    monkeypatch.setattr(rig.sweep, "look_at_bus", lambda: None)
    rig.open()
    rig.poll()
    ref = GpuRef("node-a", bus_id=normal_bus_id(kernel))
    rig.fleet.apply(Batch("kernel log", 0, time.time(), 60.0, (XidFact(ref, 79, XidKind.EVENT),)))
    told = Rig(default_host="node-a", source="exporter", rank=1)
    told.fleet = rig.fleet
    for spelling in (exporter, exporter.upper()):
        told.feed(f'DCGM_FI_DEV_FB_USED{{gpu="0",pci_bus_id="{spelling}"}} 7', time.time())
    (row,) = rig.fleet.view().gpus.values()
    assert row.key.uuid == uuid.lower().replace("gpu-", "GPU-")
    assert [record.xid for record in row.xids] == [79]


def _fleet_of(count: int, limit: float, power: float) -> Told:
    refs = [
        GpuRef("n", uuid=f"GPU-{i:08d}-0000-0000-0000-000000000000", bus_id=f"00000000:{i + 16:02x}:00.0", index=i)
        for i in range(count)
    ]
    values = {"power_w": power, "power_limit_w": limit, "utilization": 50.0, "temperature_c": 60.0}
    return Told(*(GpuFact(ref, dict(values)) for ref in refs), Roster(NodeRef("n"), tuple(refs)))


@pytest.mark.parametrize("count", [8, 10, 16])
async def test_19_every_size_with_a_limit_of_0_and_four_digits_of_watts(count: int) -> None:
    async with app(_fleet_of(count, 0.0, 1180.0)).run_test(size=(184, 39)) as pilot:
        screen = await shows(pilot, "1180")
        assert "inf" not in screen.lower().split()
        for size in ((156, 42), (80, 24), (20, 3), (1, 1), (184, 39)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        await shows(pilot, "1180")
