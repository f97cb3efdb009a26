"""Rounds over several GPUs: an error stays in its row, and only what is wanted is asked."""

from collections.abc import Callable

import pytest

from gputop.model.facts import Presence
from gputop.model.reading import NA, UNKNOWN, Absent
from gputop.sources.nvml.cadence import FAST, MEDIUM, ONCE, SLOW
from gputop.sources.nvml.protocol import Costs, Plan, Processes, RoundDone, Sample
from tests.unit.nvml import fake
from tests.unit.nvml.fake import Code, Gpu, memory_v2, plain_gpu
from tests.unit.nvml.rig import Rig

MakeRig = Callable[..., Rig]


def eight() -> list[Gpu]:
    return [plain_gpu(number) for number in range(8)]


def test_readings_have_the_model_s_units(make_rig: MakeRig) -> None:
    rig = make_rig([plain_gpu()])
    assert rig.open() is None
    values = rig.read()[0]
    assert values["utilization"] == 40.0
    assert values["memory_utilization"] == 20.0
    assert values["power_w"] == 300.0
    assert values["temperature_c"] == 50.0


def test_reserved_memory_is_not_used_memory(make_rig: MakeRig) -> None:
    """Case 7: with version 2 an idle GPU uses nothing, and a MiB of rounding is no error."""
    gpu = plain_gpu()
    gpu.answers["nvmlDeviceGetMemoryInfo_v2"] = memory_v2(15360, 265, 0, 15096)
    rig = make_rig([gpu])
    rig.open()
    values = rig.read()[0]
    assert values["memory_used_mib"] == 0.0
    assert values["memory_reserved_mib"] == 265.0
    assert values["memory_total_mib"] == 15360.0
    assert "does not count" in str(values["memory_meaning"])


def test_version_1_of_memory_says_what_it_cannot_tell(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    del gpu.answers["nvmlDeviceGetMemoryInfo_v2"]
    gpu.answers["nvmlDeviceGetMemoryInfo"] = {"total": 15360 << 20, "used": 265 << 20, "free": 15095 << 20}
    rig = make_rig([gpu], {"nvmlDeviceGetMemoryInfo_v2"})
    rig.open()
    values = rig.read()[0]
    assert values["memory_used_mib"] == 265.0
    assert isinstance(values["memory_reserved_mib"], Absent)
    assert "may count" in str(values["memory_meaning"])


def test_one_failing_field_costs_only_itself(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    gpu.answers["nvmlDeviceGetPowerUsage"] = Code(fake.UNKNOWN)
    rig = make_rig([gpu])
    rig.open()
    values = rig.read()[0]
    power = values["power_w"]
    assert isinstance(power, Absent)
    assert power.state == UNKNOWN
    assert "999" in power.reason
    assert values["utilization"] == 40.0
    gpu.answers["nvmlDeviceGetPowerUsage"] = 250_000
    assert rig.read()[0]["power_w"] == 250.0


def test_not_supported_is_asked_once(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    rig = make_rig([gpu])
    rig.open()
    first = rig.read(MEDIUM)[0]
    fan = first["fan_speed_percent"]
    assert isinstance(fan, Absent)
    assert fan.state == NA
    asked = rig.library.calls["nvmlDeviceGetFanSpeed"]
    rig.read(MEDIUM)
    rig.read(MEDIUM)
    assert rig.library.calls["nvmlDeviceGetFanSpeed"] == asked == 1


def test_a_failing_call_is_asked_less_and_less(make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("gputop.sources.nvml.sweep.time.monotonic", lambda: now[0])
    gpu = plain_gpu()
    gpu.answers["nvmlDeviceGetPowerUsage"] = Code(fake.UNKNOWN)
    rig = make_rig([gpu])
    rig.open()
    for _ in range(120):
        now[0] += 1.0
        rig.read()
    assert 5 <= rig.library.calls["nvmlDeviceGetPowerUsage"] <= 12


def test_an_unchanged_reading_is_not_sent_but_is_confirmed(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    rig = make_rig([gpu])
    rig.open()
    rig.read()
    assert rig.read()[0] == {}
    gpu.answers["nvmlDeviceGetUtilizationRates"] = {"gpu": 77, "memory": 20}
    assert rig.read()[0] == {"utilization": 77.0}


def test_only_what_is_wanted_is_asked(make_rig: MakeRig) -> None:
    rig = make_rig([plain_gpu()])
    rig.open(Plan(frozenset({"utilization"}), processes=False, profiling=False, interval_s=1.0))
    before = rig.library.calls.copy()
    for group in (FAST, MEDIUM, SLOW, ONCE):
        rig.sweep.read(group)
    asked = rig.library.calls - before
    assert asked["nvmlDeviceGetUtilizationRates"] == 1
    # Whether MIG was switched and boards came is looked at whatever is on screen.
    assert set(asked) == {"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetCount_v2", "nvmlDeviceGetMigMode"}
    sample = rig.of(Sample)[0]
    assert sample.devices[0].values.keys() == {"utilization"}


def test_what_belongs_to_the_board_is_asked_once(make_rig: MakeRig) -> None:
    rig = make_rig([plain_gpu()])
    rig.open()
    first = rig.read(ONCE)[0]
    assert first["model"] == "NVIDIA H100 80GB HBM3"
    assert first["architecture"] == "Hopper"
    names = rig.library.calls["nvmlDeviceGetName"]
    assert rig.read(ONCE)[0] == {}
    assert rig.library.calls["nvmlDeviceGetName"] == names


def test_another_plan_sends_everything_anew(make_rig: MakeRig) -> None:
    rig = make_rig([plain_gpu()])
    rig.open()
    rig.read()
    rig.sweep.set_plan(Plan(frozenset({"power_w"}), processes=False, profiling=False, interval_s=1.0))
    rig.sweep.read(FAST)
    sample = rig.of(Sample)[-1].devices[0]
    assert sample.full
    assert sample.values == {"power_w": 300.0}


@pytest.mark.parametrize(
    ("architecture", "device_id", "meaning"),
    [
        (9, 0x2330, "averaged"),
        (7, 0x20B0, "instantaneous"),
        (7, 0x2204, "averaged"),
        (6, 0x1EB8, "instantaneous"),
    ],
)
def test_the_power_number_says_what_it_is(make_rig: MakeRig, architecture: int, device_id: int, meaning: str) -> None:
    gpu = plain_gpu()
    gpu.answers["nvmlDeviceGetArchitecture"] = architecture
    gpu.answers["nvmlDeviceGetPciInfo_v3"] = {
        "busId": b"00000000:1B:00.0",
        "pciDeviceId": device_id << 16 | 0x10DE,
    }
    rig = make_rig([gpu])
    rig.open()
    assert meaning in str(rig.read(ONCE)[0]["power_meaning"])


def test_limits_are_temperatures_on_old_boards_and_margins_on_new_ones(make_rig: MakeRig) -> None:
    old, new = plain_gpu(0), plain_gpu(1)
    for which, limit in enumerate((92, 89, 95, 85)):
        old.answers["nvmlDeviceGetTemperatureThreshold", which] = limit
    new.fields = {(193, 0): -8, (194, 0): -2, (195, 0): 0, (196, 0): 0}
    new.field_type = 5
    rig = make_rig([old, new])
    rig.open()
    values = rig.read(SLOW)
    limits = ("temperature_shutdown", "temperature_slowdown", "temperature_max", "memory_temperature_max")
    assert [values[0][f"{name}_c"] for name in limits] == [92.0, 89.0, 85.0, 95.0]
    assert [values[1][f"{name}_margin_c"] for name in limits] == [-8.0, -2.0, 0.0, 0.0]
    for name in limits:
        assert isinstance(values[0][f"{name}_margin_c"], Absent)
        assert isinstance(values[1][f"{name}_c"], Absent)


@pytest.mark.parametrize(("raw", "margin"), [(2**32 - 8, -8.0), (12, 12.0), (2**32 - 1, None), (2**31 - 1, None)])
def test_a_margin_below_0_of_an_unsigned_type(make_rig: MakeRig, raw: int, margin: float | None) -> None:
    gpu = plain_gpu()
    gpu.fields = {(193, 0): raw}
    gpu.field_type = 1
    rig = make_rig([gpu])
    rig.open()
    told = rig.read(SLOW)[0]["temperature_shutdown_margin_c"]
    assert isinstance(told, Absent) if margin is None else told == margin


def test_the_first_utilisation_without_persistence_mode_is_left_out(make_rig: MakeRig) -> None:
    """Case K-08: opening an idle GPU makes it busy."""
    gpu = plain_gpu()
    gpu.answers["nvmlDeviceGetPersistenceMode"] = 0
    gpu.answers["nvmlDeviceGetUtilizationRates"] = {"gpu": 96, "memory": 3}
    rig = make_rig([gpu])
    rig.open()
    first = rig.read()[0]["utilization"]
    assert isinstance(first, Absent)
    assert first.code == "first_sample"
    rig.sweep.read(MEDIUM)
    rig.sweep.read(SLOW)
    gpu.answers["nvmlDeviceGetUtilizationRates"] = {"gpu": 0, "memory": 0}
    assert rig.read()[0]["utilization"] == 0.0


def test_a_round_ends_once_everything_was_read(make_rig: MakeRig) -> None:
    rig = make_rig([plain_gpu()])
    rig.open()
    rig.sweep.read(FAST)
    rig.sweep.end_round()
    assert not rig.of(RoundDone)
    for group in (MEDIUM, SLOW, ONCE):
        rig.sweep.read(group)
    rig.sweep.read_processes()
    rig.sweep.end_round()
    assert len(rig.of(RoundDone)) == 1


def test_a_round_ends_without_the_utilisation_nobody_wants(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    gpu.answers["nvmlDeviceGetPersistenceMode"] = 0
    rig = make_rig([gpu])
    rig.open(Plan(frozenset({"power_w"}), processes=False, profiling=False, interval_s=1.0))
    for group in (FAST, MEDIUM, SLOW, ONCE):
        rig.sweep.read(group)
    rig.sweep.end_round()
    assert rig.of(RoundDone)


def test_a_round_waits_for_the_second_utilisation_but_not_of_a_lost_gpu(make_rig: MakeRig) -> None:
    gpus = [plain_gpu(0), plain_gpu(1)]
    for gpu in gpus:
        gpu.answers["nvmlDeviceGetPersistenceMode"] = 0
    rig = make_rig(gpus)
    rig.open(Plan(None, processes=False, profiling=False, interval_s=1.0))
    gpus[1].every_call = fake.GPU_IS_LOST
    for group in (MEDIUM, SLOW, ONCE):
        rig.sweep.read(group)
    rig.sweep.end_round()
    assert not rig.of(RoundDone)
    rig.sweep.read(FAST)
    rig.sweep.end_round()
    assert rig.of(RoundDone)


def test_an_instance_that_refuses_does_not_keep_the_child_busy(make_rig: MakeRig) -> None:
    board = plain_gpu()
    board.answers["nvmlDeviceGetMigMode"] = (1, 1)
    board.instances = [
        Gpu(uuid="MIG-1", answers={"nvmlDeviceGetGpuInstanceId": 1, "nvmlDeviceGetComputeInstanceId": 0})
    ]
    rig = make_rig([board])
    rig.open()
    instance = board.instances[0]
    assert instance is not None
    instance.every_call = fake.NO_PERMISSION
    for _ in range(10):
        rig.read()
    assert rig.nudges == 1
    assert rig.states(1)[-1].presence is Presence.DENIED


def test_a_board_that_cannot_remap_is_not_called_healthy(make_rig: MakeRig) -> None:
    """Case 17, third part: success with zeros from a board without ECC says nothing."""
    gpu = plain_gpu()
    gpu.answers["nvmlDeviceGetEccMode"] = Code(fake.NOT_SUPPORTED)
    gpu.answers["nvmlDeviceGetRemappedRows"] = (0, 0, 0, 0)
    rig = make_rig([gpu])
    rig.open()
    values = rig.read(MEDIUM)[0]
    for quantity in ("row_remap_pending", "row_remap_failed", "row_remap_uncorrected"):
        value = values[quantity]
        assert isinstance(value, Absent)
        assert value.state == NA


def test_implausible_numbers_are_no_numbers(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    gpu.answers["nvmlDeviceGetUtilizationRates"] = {"gpu": 4294967, "memory": 20}
    gpu.answers["nvmlDeviceGetPowerUsage"] = 0xFFFFFFFF
    rig = make_rig([gpu])
    rig.open()
    values = rig.read()[0]
    for quantity in ("utilization", "power_w"):
        value = values[quantity]
        assert isinstance(value, Absent)
        assert value.state == NA
    assert values["memory_utilization"] == 20.0


def test_power_above_a_kilowatt_is_plausible(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    gpu.answers["nvmlDeviceGetPowerUsage"] = 1_180_250
    rig = make_rig([gpu])
    rig.open()
    assert rig.read()[0]["power_w"] == 1180.25


def test_the_old_name_of_the_clock_reasons_is_tried(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    gpu.answers["nvmlDeviceGetCurrentClocksThrottleReasons"] = 0x84
    rig = make_rig([gpu], {"nvmlDeviceGetCurrentClocksEventReasons"})
    rig.open()
    assert rig.read()[0]["clock_event_reasons"] == float(0x84)


def test_ecc_totals_fall_back_to_the_function(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    gpu.answers["nvmlDeviceGetTotalEccErrors", 0] = 5
    gpu.answers["nvmlDeviceGetTotalEccErrors", 1] = 2
    rig = make_rig([gpu])
    rig.open()
    values = rig.read(MEDIUM)[0]
    assert values["ecc_volatile_corrected"] == 5.0
    assert values["ecc_volatile_uncorrected"] == 2.0


def test_byte_counters_become_rates(make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [500.0]
    monkeypatch.setattr("gputop.sources.nvml.device.time.monotonic", lambda: now[0])
    gpu = plain_gpu()
    gpu.fields[198, 0] = 1_000_000
    rig = make_rig([gpu])
    rig.open()
    first = rig.read()[0]["pcie_rx_bytes_per_s"]
    assert isinstance(first, Absent)
    gpu.fields[198, 0] = 3_000_000
    now[0] += 2.0
    assert rig.read()[0]["pcie_rx_bytes_per_s"] == 1_000_000.0
    gpu.fields[198, 0] = 10
    now[0] += 1.0
    restarted = rig.read()[0]["pcie_rx_bytes_per_s"]
    assert isinstance(restarted, Absent)
    assert restarted.state == UNKNOWN


def test_a_counter_of_32_bits_gives_no_rate(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    gpu.field_type = 1
    gpu.fields[198, 0] = 1000
    rig = make_rig([gpu])
    rig.open()
    rig.read()
    gpu.fields[198, 0] = 2000
    value = {**rig.of(Sample)[0].devices[0].values, **rig.read()[0]}["pcie_rx_bytes_per_s"]
    assert isinstance(value, Absent)
    assert value.code == "wraps"


def test_a_field_of_unknown_type_is_no_number(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    gpu.field_type = 42
    gpu.fields[186, 0] = 1000
    rig = make_rig([gpu])
    rig.open()
    value = rig.read()[0]["power_instant_w"]
    assert isinstance(value, Absent)
    assert "type 42" in value.reason


def test_row_remap_by_fields_and_by_the_old_call(make_rig: MakeRig) -> None:
    """Case 17, with both ways to it."""
    by_field, by_call = plain_gpu(0), plain_gpu(1)
    by_field.fields = {(142, 0): 3, (143, 0): 1, (144, 0): 1, (145, 0): 0}
    by_call.answers["nvmlDeviceGetRemappedRows"] = (3, 9, 0, 1)
    rig = make_rig([by_field, by_call])
    rig.open()
    values = rig.read(MEDIUM)
    names = ("row_remap_corrected", "row_remap_uncorrected", "row_remap_pending", "row_remap_failed")
    assert [values[0][name] for name in names] == [3.0, 1.0, 1.0, 0.0]
    assert [values[1][name] for name in names] == [3.0, 9.0, 0.0, 1.0]


def test_the_library_s_own_cost_of_a_field_is_told(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    gpu.fields = {(82, 0): 70, (83, 0): 5}
    gpu.latency_us = {82: 180_000, 83: 4}
    rig = make_rig([gpu])
    rig.open()
    rig.read(MEDIUM)
    rig.sweep.tell_costs()
    slowest = rig.of(Costs)[-1].slowest
    assert slowest[0] == ("nvmlDeviceGetFieldValues(82)", pytest.approx(0.18))
    assert slowest == tuple(sorted(slowest, key=lambda item: -item[1]))


def test_a_vgpu_without_processes_is_not_called_free(make_rig: MakeRig) -> None:
    guest, board = plain_gpu(0), plain_gpu(1)
    guest.answers["nvmlDeviceGetVirtualizationMode"] = 2
    rig = make_rig([guest, board])
    rig.open()
    rig.sweep.read_processes()
    tables = {table.slot: table.processes for table in rig.of(Processes)[-1].tables}
    told = tables[0]
    assert isinstance(told, Absent)
    assert told.state == UNKNOWN
    assert tables[1] == ()
