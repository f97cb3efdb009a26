"""Which GPUs there are: those that cannot be opened, are lost, left alone or others than before."""

from collections.abc import Callable

import pytest

from gputop.model.facts import Presence
from gputop.sources.nvml.cadence import FAST, MEDIUM, ONCE, SLOW
from gputop.sources.nvml.inventory import RestartNeededError
from gputop.sources.nvml.protocol import Devices, Plan, Skip
from tests.unit.nvml import fake
from tests.unit.nvml.fake import Gpu, plain_gpu
from tests.unit.nvml.rig import EVERYTHING, Rig, pci_device

MakeRig = Callable[..., Rig]


def eight() -> list[Gpu]:
    return [plain_gpu(number) for number in range(8)]


@pytest.mark.parametrize(
    ("code", "presence", "word"),
    [
        (fake.GPU_IS_LOST, Presence.LOST, "fallen off the bus"),
        (fake.RESET_REQUIRED, Presence.RESET_REQUIRED, "needs a reset"),
        (fake.NO_PERMISSION, Presence.DENIED, "not allowed"),
        (fake.UNKNOWN, Presence.ERROR, "unknown error"),
    ],
)
def test_a_gpu_that_cannot_be_opened_hides_no_other(
    make_rig: MakeRig, roots: tuple, code: int, presence: Presence, word: str
) -> None:
    """Case 1: seven are read, and the eighth has a row with its place on the bus and the word for it."""
    gpus = eight()
    gpus[3].open_code = code
    for number in range(8):
        pci_device(roots[1], f"0000:{0x1A + number:02x}:00.0")
    rig = make_rig(gpus)
    assert rig.open() is None
    assert sorted(rig.read()) == [0, 1, 2, 4, 5, 6, 7]
    (state,) = rig.states(3)
    assert state.presence is presence
    assert word in state.reason
    assert str(code) in state.reason
    devices = rig.of(Devices)[-1].devices
    assert len(devices) == 8
    assert devices[3].bus_id == "00000000:1d:00.0"
    assert devices[3].index == 3


@pytest.mark.parametrize(
    ("lost", "absent", "places"),
    [
        # One lost, and one that NVML does not count at all: only one address fits between its neighbours.
        ({3}, {6}, {3: "1d"}),
        ({3, 4}, set(), {3: "1d", 4: "1e"}),
        ({0}, set(), {0: "1a"}),
        ({7}, set(), {7: "21"}),
        # Two addresses between the neighbours, one board: nobody can tell.
        ({3}, {4}, {}),
    ],
)
def test_lost_gpus_get_the_addresses_that_can_only_be_theirs(
    make_rig: MakeRig, roots: tuple, lost: set[int], absent: set[int], places: dict[int, str]
) -> None:
    gpus = eight()
    for number in range(8):
        pci_device(roots[1], f"0000:{0x1A + number:02x}:00.0")
    for number in lost:
        gpus[number].open_code = fake.GPU_IS_LOST
    rig = make_rig([gpu for number, gpu in enumerate(gpus) if number not in absent])
    rig.open()
    found = {device.index: device.bus_id for device in rig.of(Devices)[-1].devices if not device.uuid}
    assert {index: bus_id for index, bus_id in found.items() if bus_id} == {
        index: f"00000000:{bus}:00.0" for index, bus in places.items()
    }


@pytest.mark.parametrize("code", [fake.GPU_IS_LOST, fake.RESET_REQUIRED, fake.NO_PERMISSION, fake.UNKNOWN])
def test_a_gpu_that_fails_for_a_while_keeps_its_name_and_comes_back(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Case 2: the error comes at one poll and goes at another; GPUs 4 to 7 never notice."""
    now = [1000.0]
    monkeypatch.setattr("gputop.sources.nvml.sweep.time.monotonic", lambda: now[0])
    gpus = eight()
    rig = make_rig(gpus)
    rig.open()
    uuid = gpus[3].uuid
    for poll in range(12):
        now[0] += 6.0
        broken = 4 <= poll < 8
        gpus[3].every_call = code if broken else 0
        gpus[5].answers["nvmlDeviceGetTemperature"] = 60 + poll
        read = rig.read()
        assert (3 in read) is not broken
        assert {0, 1, 2, 4, 5, 6, 7} <= set(read)
        assert read[5]["temperature_c"] == 60.0 + poll
    presences = [state.presence for state in rig.states(3)]
    assert presences[0] is Presence.PRESENT
    assert presences[1] not in (Presence.PRESENT, None)
    assert presences[-1] is Presence.PRESENT
    assert all(message.devices[3].uuid == uuid for message in rig.of(Devices))


def test_a_gpu_that_opens_but_answers_nothing_is_not_called_well(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("gputop.sources.nvml.sweep.time.monotonic", lambda: now[0])
    gpu = plain_gpu()
    rig = make_rig([gpu])
    rig.open()
    rig.read()
    gpu.every_call = fake.UNKNOWN
    for _ in range(30):
        now[0] += 1.0
        rig.read()
    presences = [state.presence for state in rig.states(0)]
    assert presences[0] is Presence.PRESENT
    assert set(presences[1:]) == {Presence.ERROR}


def test_rows_that_await_a_reset_and_a_replacement(make_rig: MakeRig) -> None:
    """Case 17, the readings of it: pending and failed are told as they are."""
    gpu = plain_gpu()
    rig = make_rig([gpu])
    rig.open()
    gpu.answers["nvmlDeviceGetRemappedRows"] = (0, 1, 1, 0)
    values = rig.read(MEDIUM)[0]
    assert (values["row_remap_pending"], values["row_remap_failed"]) == (1.0, 0.0)
    gpu.answers["nvmlDeviceGetRemappedRows"] = (0, 1, 1, 1)
    assert rig.read(MEDIUM)[0]["row_remap_failed"] == 1.0


def test_counters_that_begin_again_ask_for_a_fresh_process(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    gpu.fields[3, 0] = 12
    rig = make_rig([gpu])
    rig.open()
    rig.read(MEDIUM)
    gpu.fields[3, 0] = 0
    with pytest.raises(RestartNeededError, match="loaded anew"):
        rig.read(MEDIUM)


def test_another_number_of_gpus_asks_for_a_fresh_process(make_rig: MakeRig) -> None:
    rig = make_rig(eight())
    rig.open()
    rig.library.counted = 7
    with pytest.raises(RestartNeededError, match="lists 7 GPUs now, 8 before"):
        rig.sweep.read(SLOW)


def test_a_lost_connection_asks_for_a_fresh_process(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    rig = make_rig([gpu])
    rig.open()
    gpu.every_call = fake.UNINITIALIZED
    with pytest.raises(RestartNeededError, match="connection"):
        rig.read()


def test_a_board_changed_under_its_index_asks_for_a_fresh_process(make_rig: MakeRig) -> None:
    gpu = plain_gpu()
    rig = make_rig([gpu])
    rig.open()
    rig.read()
    gpu.every_call = fake.GPU_IS_LOST
    rig.read()
    gpu.every_call = 0
    gpu.answers["nvmlDeviceGetUUID"] = b"GPU-99999999-0000-0000-0000-000000000000"
    with pytest.raises(RestartNeededError, match="another GPU is at index 0"):
        rig.read()


def test_a_skipped_gpu_is_never_touched(make_rig: MakeRig) -> None:
    gpus = eight()
    rig = make_rig(gpus)
    touched: list[str] = []
    gpus[3].answers["nvmlDeviceGetUUID"] = lambda: touched.append("uuid") or b""
    rig.open(Plan(None, processes=True, profiling=False, interval_s=1.0, skip=(Skip(3, "00000000:1d:00.0"),)))
    for group in (FAST, MEDIUM, SLOW, ONCE):
        rig.sweep.read(group)
    rig.sweep.read_processes()
    assert not touched
    assert len(rig.of(Devices)[-1].devices) == 7
    rig.sweep.set_plan(EVERYTHING)
    assert touched
    assert len(rig.of(Devices)[-1].devices) == 8


def test_a_gpu_skipped_later_is_left_alone_from_then_on(make_rig: MakeRig) -> None:
    gpus = eight()
    rig = make_rig(gpus)
    rig.open()
    rig.sweep.set_plan(Plan(None, processes=True, profiling=False, interval_s=1.0, skip=(Skip(3, "00000000:1d:00.0"),)))
    assert sorted(rig.read()) == [0, 1, 2, 4, 5, 6, 7]


def test_no_gpu_and_failed_init_have_their_own_words(make_rig: MakeRig, roots: tuple) -> None:
    pci_device(roots[1], "0000:1b:00.0", driver="nouveau")
    pci_device(roots[1], "0000:2c:00.0", driver="vfio-pci")
    rig = make_rig([])
    nothing = rig.open()
    assert nothing is not None
    assert nothing.code == "no_gpu"
    assert "1 held by nouveau" in nothing.text
    assert "1 held by vfio-pci" in nothing.text


def test_versions_that_do_not_fit_are_both_named(make_rig: MakeRig, roots: tuple) -> None:
    """Case 3, the source's part: one sentence with both versions and what to do."""
    folder = roots[0] / "driver" / "nvidia"
    folder.mkdir(parents=True)
    (folder / "version").write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\n"
    )
    rig = make_rig([plain_gpu()])
    rig.library.init_code = 18
    rig.library.system["nvmlSystemGetNVMLVersion"] = b"12.550.54.15"
    refusal = rig.open()
    assert refusal is not None
    assert refusal.code == "driver_mismatch"
    assert "535.54.03" in refusal.text
    assert "550.54.15" in refusal.text
    assert "reboot" in refusal.text


@pytest.mark.parametrize(
    ("code", "step"),
    [
        (fake.GPU_IS_LOST, "power it off and on"),
        (fake.RESET_REQUIRED, "nvidia-smi --gpu-reset"),
        (fake.NO_PERMISSION, "/dev/nvidia*"),
        (fake.UNKNOWN, "daemon-reload"),
        (17, "daemon-reload"),
    ],
)
def test_a_device_that_answers_nothing_says_what_to_do(make_rig: MakeRig, code: int, step: str) -> None:
    gpus = [plain_gpu(0), plain_gpu(1)]
    gpus[1].open_code = code
    rig = make_rig(gpus)
    rig.open()
    (state,) = rig.states(1)
    assert str(code) in state.reason
    assert step in state.reason
