"""NVLink across generations, GPM, MIG instances and Xid events."""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import pytest

from gputop.model.reading import NA, UNKNOWN, Absent
from gputop.sources.nvml.cadence import FAST, MEDIUM, ONCE, SLOW
from gputop.sources.nvml.mig import profile_name
from gputop.sources.nvml.protocol import Devices, Plan, Processes
from gputop.sources.nvml.xid import Watched, Xids
from tests.unit.nvml import fake
from tests.unit.nvml.fake import Code, Gpu, Process, memory_v2, plain_gpu
from tests.unit.nvml.rig import Rig, add_process

MakeRig = Callable[..., Rig]
LINK_QUANTITIES = frozenset(
    {
        "nvlink_links",
        "nvlink_links_active",
        "nvlink_crc_flit_errors",
        "nvlink_replay_errors",
        "nvlink_recovery_errors",
    }
)


def links_of(rig: Rig) -> dict[str, Any]:
    rig.open(Plan(LINK_QUANTITIES, processes=False, profiling=False, interval_s=1.0))
    return rig.read(MEDIUM)[0]


def test_no_nvlink_is_not_nvlink_down(make_rig: MakeRig) -> None:
    values = links_of(make_rig([plain_gpu()]))
    for quantity in LINK_QUANTITIES:
        told = values[quantity]
        assert isinstance(told, Absent)
        assert told.state == NA


def test_a_count_of_0_is_no_nvlink_either(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    gpu.fields[91, 0] = 0
    told = links_of(make_rig([gpu]))["nvlink_links"]
    assert isinstance(told, Absent)
    assert "no NVLink" in told.reason


def test_links_with_states_and_totals_by_field(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    gpu.fields = {(91, 0): 4, (38, 0): 7, (45, 0): 0, (52, 0): 3, (59, 0): 1}
    gpu.fields |= {(165, link): state for link, state in enumerate((1, 0, 2, 1))}
    values = links_of(make_rig([gpu]))
    assert values["nvlink_links"] == 4.0
    # A sleeping link is up.
    assert values["nvlink_links_active"] == 3.0
    assert values["nvlink_crc_flit_errors"] == 7.0
    assert values["nvlink_replay_errors"] == 3.0


def test_old_drivers_tell_states_by_call(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    for link in range(6):
        gpu.answers["nvmlDeviceGetNvLinkState", link] = int(link != 2)
    gpu.answers["nvmlDeviceGetNvLinkState"] = Code(fake.INVALID_ARGUMENT)
    values = links_of(make_rig([gpu]))
    assert values["nvlink_links"] == 6.0
    assert values["nvlink_links_active"] == 5.0


def test_counters_without_a_total_are_added_up(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    gpu.fields = {(91, 0): 3}
    gpu.fields |= {(165, link): 1 for link in range(3)}
    gpu.fields |= {(161, link): 10 * link for link in range(3)}
    gpu.fields |= {(215, link): 1 for link in range(3)}
    values = links_of(make_rig([gpu]))
    assert values["nvlink_replay_errors"] == 30.0
    assert values["nvlink_recovery_errors"] == 3.0
    crc = values["nvlink_crc_flit_errors"]
    assert isinstance(crc, Absent)
    assert crc.state == NA


def test_a_sum_with_a_part_missing_is_no_sum(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    gpu.fields = {(91, 0): 2, (165, 0): 1, (165, 1): Code(fake.UNKNOWN)}
    told = links_of(make_rig([gpu]))["nvlink_links_active"]
    assert isinstance(told, Absent)
    assert told.state == UNKNOWN


def test_gpm_is_off_until_it_is_asked_for(make_rig: MakeRig) -> None:
    rig = make_rig([plain_gpu()])
    rig.open()
    told = rig.read(FAST)[0]["sm_activity"]
    assert isinstance(told, Absent)
    assert told.code == "opt_in"
    assert not any(name.startswith("nvmlGpm") for name in rig.library.calls)


def test_gpm_on_an_old_board_is_not_supported(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    gpu.answers["nvmlGpmQueryDeviceSupport"] = {"isSupportedDevice": 0}
    rig = make_rig([gpu])
    rig.open(Plan(None, processes=False, profiling=True, interval_s=1.0))
    told = rig.read(FAST)[0]["tensor_activity"]
    assert isinstance(told, Absent)
    assert told.state == NA
    assert "Hopper" in told.reason


@pytest.mark.parametrize(
    ("slices", "memory", "board", "name"),
    [
        ((1, 1), 4864, 40536, "1g.5gb"),
        ((3, 3), 20096, 40536, "3g.20gb"),
        ((1, 1), 9728, 81251, "1g.10gb"),
        ((7, 7), 80896, 81251, "7g.80gb"),
        ((3, 1), 40448, 81559, "1c.3g.40gb"),
        ((1, 1), 9984, None, "1g.10gb"),
    ],
)
def test_profiles_have_nvidia_s_names(slices: tuple[int, int], memory: int, board: float | None, name: str) -> None:
    assert profile_name(*slices, memory, board) == name


def instance(number: int, name: str, memory: int) -> Gpu:
    return Gpu(
        uuid=f"MIG-0000000{number}-1111-2222-3333-444444444444",
        answers={
            "nvmlDeviceGetGpuInstanceId": number,
            "nvmlDeviceGetComputeInstanceId": 0,
            "nvmlDeviceGetName": f"NVIDIA H100 80GB HBM3 MIG {name}".encode(),
            "nvmlDeviceGetMemoryInfo_v2": memory_v2(memory, 0, 100, memory - 100),
            "nvmlDeviceGetAttributes_v2": {"multiprocessorCount": 16},
        },
    )


def partitioned() -> Gpu:
    gpu = plain_gpu()
    gpu.answers["nvmlDeviceGetMigMode"] = (1, 1)
    gpu.answers["nvmlDeviceGetUtilizationRates"] = Code(fake.NOT_SUPPORTED)
    gpu.instances = [
        instance(1, "3g.40gb", 40320),
        None,
        instance(5, "2g.20gb", 20096),
        None,
        None,
        instance(9, "1g.10gb", 9984),
        None,
    ]
    return gpu


def test_instances_are_listed_and_empty_slots_are_no_error(make_rig: MakeRig) -> None:
    """Case 12: the board's utilisation is n/a, not 0 %, and three of seven slots are instances."""
    rig = make_rig([partitioned()])
    rig.open()
    devices = rig.of(Devices)[-1].devices
    assert [(device.board, device.instance) for device in devices] == [(-1, ""), (0, "1"), (0, "5"), (0, "9")]
    assert all(device.mig_uuid.startswith("MIG-") for device in devices[1:])
    values = rig.read(FAST)
    told = values[0]["utilization"]
    assert isinstance(told, Absent)
    assert told.state == NA
    assert "MIG" in told.reason
    assert [values[slot]["memory_total_mib"] for slot in (1, 2, 3)] == [40320.0, 20096.0, 9984.0]
    once = rig.read(ONCE)
    assert once[1]["mig_profile"] == "3g.40gb"
    assert once[3]["multiprocessors"] == 16.0


def test_processes_belong_to_the_instances(make_rig: MakeRig, roots: tuple) -> None:
    add_process(roots[0], 700)
    gpu = partitioned()
    found = gpu.instances[0]
    assert found is not None
    found.processes = {"C": [Process(700, 1 << 30)]}
    rig = make_rig([gpu])
    rig.open()
    rig.sweep.read(FAST)
    rig.sweep.read_processes()
    tables = {table.slot: table.processes for table in rig.of(Processes)[-1].tables}
    assert isinstance(tables[0], Absent)
    assert isinstance(tables[1], tuple)
    assert [process.pid for process in tables[1]] == [700]


def test_instances_that_come_and_go(make_rig: MakeRig) -> None:
    gpu = partitioned()
    rig = make_rig([gpu])
    rig.open()
    gpu.instances[1] = instance(2, "1g.10gb", 9984)
    gpu.instances[2] = None
    rig.sweep.look_again()
    assert [device.instance for device in rig.of(Devices)[-1].devices] == ["", "1", "2", "9"]
    gpu.answers["nvmlDeviceGetMigMode"] = (0, 0)
    gpu.instances = []
    gpu.answers["nvmlDeviceGetUtilizationRates"] = {"gpu": 11, "memory": 0}
    rig.sweep.read(SLOW)
    assert len(rig.of(Devices)[-1].devices) == 1
    assert rig.read(FAST)[0]["utilization"] == 11.0


class Events:
    """Scripted event functions: each wait gives the next of what the test has put in."""

    def __init__(self, gpus: list[Gpu]) -> None:
        self.gpus = gpus
        self.waits: list[Any] = []
        self.sets = 0
        self.registered: list[int] = []
        self.idle = threading.Event()

    def symbols(self) -> dict[str, Callable[..., int]]:
        return {
            "nvmlEventSetCreate": self._create,
            "nvmlEventSetFree": lambda _: 0,
            "nvmlDeviceGetSupportedEventTypes": self._types,
            "nvmlDeviceRegisterEvents": self._register,
            "nvmlEventSetWait_v2": self._wait,
        }

    def _create(self, _result: Any) -> int:
        self.sets += 1
        self.registered = []
        return 0

    @staticmethod
    def _types(_handle: Any, result: Any) -> int:
        result._obj.value = 0xFFFF
        return 0

    def _register(self, handle: Any, _types: Any, _events: Any) -> int:
        self.registered.append(handle)
        return 0

    def _wait(self, _events: Any, data: Any, _timeout: Any) -> int:
        if not self.waits:
            self.idle.set()
            threading.Event().wait(0.01)
            return fake.TIMEOUT
        found = self.waits.pop(0)
        if isinstance(found, int):
            return found
        gpu, kind, number = found
        ctypes.c_void_p.from_buffer(data._obj).value = ctypes.addressof(gpu.block)
        data._obj.eventType, data._obj.eventData = kind, number
        data._obj.gpuInstanceId = 0xFFFFFFFF
        return 0


def handle_of(gpu: Gpu):
    return ctypes.cast(ctypes.addressof(gpu.block), ctypes.POINTER(ctypes.c_char))


def watch(monkeypatch: pytest.MonkeyPatch, events: Events, usable: list[bool]) -> tuple[Xids, list, list]:
    table = events.symbols()
    monkeypatch.setattr("gputop.sources.nvml.xid.symbol", table.get)
    told: list[tuple[int, int]] = []
    nudged: list[int] = []
    xids = Xids(
        lambda: [Watched(slot, handle_of(gpu), usable[slot]) for slot, gpu in enumerate(events.gpus)],
        lambda slot, xid, _instance, _at: told.append((slot, xid)),
        nudged.append,
    )
    return xids, told, nudged


def test_each_xid_is_told_also_when_it_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [plain_gpu(0), plain_gpu(1)]
    events = Events(gpus)
    events.waits = [
        (gpus[1], 0x8, 31),
        (gpus[1], 0x8, 31),
        fake.TIMEOUT,
        (gpus[0], 0x8, 79),
        (gpus[0], 0x8, 0),
    ]
    xids, told, _ = watch(monkeypatch, events, [True, True])
    xids.start()
    assert events.idle.wait(5.0)
    assert xids.stop()
    assert told == [(1, 31), (1, 31), (0, 79)]


def test_events_of_state_only_nudge(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [plain_gpu(0)]
    events = Events(gpus)
    events.waits = [(gpus[0], 0x8000, 1), (gpus[0], 0x100, 0)]
    xids, told, nudged = watch(monkeypatch, events, [True])
    xids.start()
    assert events.idle.wait(5.0)
    assert xids.stop()
    assert not told
    assert nudged == [0, 0]


def test_a_lost_gpu_does_not_end_the_watch_over_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [plain_gpu(0), plain_gpu(1)]
    events = Events(gpus)
    usable = [True, True]
    events.waits = [(gpus[1], 0x8, 79), fake.GPU_IS_LOST, (gpus[0], 0x8, 94)]
    xids, told, _ = watch(monkeypatch, events, usable)
    usable[1] = False
    xids.start()
    assert events.idle.wait(5.0)
    assert xids.stop()
    assert (0, 94) in told
    assert events.sets == 2
    assert len(events.registered) == 1


def test_a_watch_that_cannot_work_says_so_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    events = Events([plain_gpu(0)])
    table = events.symbols()
    del table["nvmlEventSetCreate"]
    monkeypatch.setattr("gputop.sources.nvml.xid.symbol", table.get)
    xids = Xids(list, lambda *_: None, lambda _: None)
    xids.start()
    assert xids.stop()
    assert "kernel log" in xids.trouble


def fifth_generation(links: int) -> Gpu:
    gpu = plain_gpu()
    gpu.fields = {(91, 0): links}
    gpu.fields |= {(165, link): 1 for link in range(links)}
    gpu.fields |= {(field, link): 0 for field in range(206, 216) for link in range(links)}
    gpu.fields |= {(field, link): 0 for field in (219, 221) for link in range(links)}
    gpu.fields |= {(field, link): 0xFFF for field in (220, 222) for link in range(links)}
    return gpu


def test_nvlink_5_counts_by_kind(make_rig: MakeRig) -> None:
    gpu = fifth_generation(3)
    gpu.fields[206, 1] = 2
    gpu.fields[207, 2] = 3
    gpu.fields[211, 0] = 4
    gpu.fields[213, 0] = 5
    gpu.fields[214, 1] = 1
    gpu.fields[219, 2] = 7
    gpu.fields[221, 0] = gpu.fields[221, 1] = 10
    rig = make_rig([gpu])
    rig.open()
    values = rig.read(MEDIUM)[0]
    counted = {quantity: value for quantity, value in values.items() if quantity.startswith("nvlink") and value}
    assert {quantity: value for quantity, value in counted.items() if isinstance(value, float)} == {
        "nvlink_links": 3.0,
        "nvlink_links_active": 3.0,
        "nvlink_malformed_packet_errors": 2.0,
        "nvlink_buffer_overrun_errors": 3.0,
        "nvlink_link_integrity_errors": 4.0,
        "nvlink_recoveries_successful": 5.0,
        "nvlink_recoveries_failed": 1.0,
        "nvlink_effective_errors": 7.0,
        "nvlink_symbol_errors": 20.0,
    }
    # The kinds of the generations before do not exist, which is not 0.
    assert isinstance(values["nvlink_crc_flit_errors"], Absent)
    assert values["nvlink_crc_flit_errors"].state == NA


def test_bit_error_rates_are_the_worst_link_s_and_no_rate_is_no_0(make_rig: MakeRig) -> None:
    gpu = fifth_generation(3)
    gpu.fields[222, 0] = 3 << 8 | 12
    gpu.fields[222, 2] = 15 << 8 | 13
    rig = make_rig([gpu])
    rig.open()
    assert rig.read(MEDIUM)[0]["nvlink_symbol_ber"] == 3e-12
    gpu.fields[220, 1] = 9 << 8 | 8
    assert rig.read(MEDIUM)[0]["nvlink_effective_ber"] == 9e-8


def test_a_rate_nobody_counted_for_is_absent_and_asked_again(make_rig: MakeRig) -> None:
    gpu = fifth_generation(2)
    rig = make_rig([gpu])
    rig.open()
    told = rig.read(MEDIUM)[0]["nvlink_symbol_ber"]
    assert isinstance(told, Absent)
    assert told.code == "no_errors"
    gpu.fields[222, 0] = 1 << 8 | 9
    assert rig.read(MEDIUM)[0]["nvlink_symbol_ber"] == 1e-9


def test_only_the_link_counters_that_are_wanted_are_asked(make_rig: MakeRig) -> None:
    gpu = fifth_generation(2)
    rig = make_rig([gpu])
    rig.open(Plan(frozenset({"nvlink_symbol_errors"}), processes=False, profiling=False, interval_s=1.0))
    gpu.fields = {key: value for key, value in gpu.fields.items() if key[0] in (91, 165, 221)}
    assert rig.read(MEDIUM)[0] == {"nvlink_symbol_errors": 0.0}


def test_an_instance_tells_its_own_sram_errors_and_one_refusal_is_not_the_instance_s(make_rig: MakeRig) -> None:
    gpu = partitioned()
    first = gpu.instances[0]
    assert first is not None
    first.answers["nvmlDeviceGetMemoryErrorCounter"] = 2
    rig = make_rig([gpu])
    rig.open()
    rig.read(FAST)
    values = rig.read(SLOW)
    assert values[1]["ecc_volatile_sram_uncorrected"] == 2.0
    first.answers["nvmlDeviceGetMemoryErrorCounter"] = Code(fake.NO_PERMISSION)
    told = rig.read(SLOW)[1]["ecc_volatile_sram_uncorrected"]
    assert isinstance(told, Absent)
    assert told.state == UNKNOWN
    assert not any(state.reason for state in rig.states(1))
