"""What was recorded on machines is read as those machines would be; a new recording is a new case."""

import json
from pathlib import Path
from typing import Any

import pytest

from gputop.model.facts import Presence
from gputop.model.reading import Absent
from gputop.sources.nvml.fields import READS
from gputop.sources.nvml.protocol import Devices
from gputop.sources.nvml.ways import Call
from tests.gpu.record import SCHEMA, name_of
from tests.unit.nvml import replay
from tests.unit.nvml.fake import FakeLibrary, install
from tests.unit.nvml.rig import EVERYTHING, Rig

FOLDER = Path(__file__).parents[2] / "fixtures" / "nvml"
RECORDED = sorted(FOLDER.glob("*.json"))


def load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(params=RECORDED, ids=lambda path: path.stem)
def fixture(request: pytest.FixtureRequest) -> dict[str, Any]:
    return load(request.param)


@pytest.fixture
def rig(fixture: dict[str, Any], monkeypatch: pytest.MonkeyPatch, roots: tuple[Path, Path]) -> Rig:
    library = install(replay.replay(fixture), monkeypatch)
    made = Rig(library, *roots)
    assert made.open(EVERYTHING) is None
    return made


def read_all(rig: Rig) -> dict[int, dict[str, Any]]:
    values: dict[int, dict[str, Any]] = {}
    for group in range(4):
        for slot, found in rig.read(group).items():
            values.setdefault(slot, {}).update(found)
    return values


def test_there_is_a_recording_and_its_schema_is_the_one_that_is_written() -> None:
    assert RECORDED
    assert SCHEMA == replay.SCHEMA


def test_every_recorded_gpu_is_listed_and_those_that_failed_still_do(fixture: dict[str, Any], rig: Rig) -> None:
    devices = rig.of(Devices)[-1].devices
    assert [device.index for device in devices] == [gpu["index"] for gpu in fixture["gpus"]]
    for device, gpu in zip(devices, fixture["gpus"], strict=True):
        if "error" in gpu:
            assert rig.states(device.slot)[-1].presence is not Presence.PRESENT
        else:
            assert (device.uuid, device.bus_id) == (gpu["uuid"], gpu["bus_id"])
    rig.sweep.close()


def test_what_was_refused_is_absent_and_what_was_answered_is_told(fixture: dict[str, Any], rig: Rig) -> None:
    values = read_all(rig)
    told = 0
    for slot, gpu in enumerate(fixture["gpus"]):
        for read in READS:
            if "calls" not in gpu or not all(isinstance(way, Call) for way in read.ways):
                continue
            answers = [gpu["calls"].get(name_of(way), {}) for way in read.ways if isinstance(way, Call)]
            value = values[slot].get(read.quantities[0])
            if all("error" in answer for answer in answers):
                assert value is None or isinstance(value, Absent), (read.quantities, value)
            elif value is not None and not isinstance(value, Absent):
                told += 1
    assert told or all("error" in gpu for gpu in fixture["gpus"])
    rig.sweep.close()


def test_names_and_memory_are_those_recorded(fixture: dict[str, Any], rig: Rig) -> None:
    values = read_all(rig)
    for slot, gpu in enumerate(fixture["gpus"]):
        name = gpu.get("calls", {}).get("nvmlDeviceGetName()", {})
        if "value" in name:
            assert values[slot]["model"] == name["value"][0]
        memory = gpu.get("calls", {}).get("nvmlDeviceGetMemoryInfo_v2()", {})
        if "value" in memory:
            assert values[slot]["memory_total_mib"] == pytest.approx(memory["value"][0]["total"] / 2**20, abs=0.01)
    rig.sweep.close()


@pytest.mark.parametrize(
    "broken",
    [
        {"schema": "gputop.nvml-fixture/2", "gpus": []},
        {"schema": SCHEMA, "driver": "1", "nvml": "1", "cuda": 1, "gpus": [{"index": 0, "error": "NO_SUCH_ERROR"}]},
    ],
    ids=["schema", "error"],
)
def test_a_fixture_that_is_none_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"schema|NO_SUCH_ERROR"):
        replay.replay(broken)


def test_a_call_is_told_apart_by_all_its_arguments(fixture: dict[str, Any]) -> None:
    library = replay.replay(fixture)
    assert isinstance(library, FakeLibrary)
    asked = {key[1:] for gpu in library.gpus for key in gpu.answers if key[0] == "nvmlDeviceGetTotalEccErrors"}
    assert len({len(arguments) for arguments in asked}) <= 1
    assert all(len(arguments) == 2 for arguments in asked)
