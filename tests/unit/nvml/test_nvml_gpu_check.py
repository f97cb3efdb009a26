"""The script behind ``make gpu-check``, over a scripted library."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gpu import check
from tests.unit.nvml import fake
from tests.unit.nvml.fake import Code, FakeLibrary, plain_gpu

MakeLibrary = Callable[..., tuple[FakeLibrary, object]]


def test_the_fixture_holds_answers_and_errors_by_name(library: MakeLibrary) -> None:
    gpu = plain_gpu()
    gpu.answers["nvmlDeviceGetSerial"] = b"1327532408382"
    gpu.answers["nvmlDeviceGetPowerUsage"] = Code(fake.UNKNOWN)
    gpu.fields[82, 0] = 64
    broken = plain_gpu(1)
    broken.open_code = fake.GPU_IS_LOST
    library([gpu, broken])
    fixture, lines = check.check_nvml(repeat=3)
    first, second = fixture["gpus"]
    assert fixture["schema"] == check.SCHEMA
    assert fixture["driver"] == "570.133.20"
    assert first["calls"]["nvmlDeviceGetUtilizationRates()"] == {"value": [{"gpu": 40, "memory": 20}]}
    assert first["calls"]["nvmlDeviceGetPowerUsage()"] == {"error": "UNKNOWN"}
    assert first["calls"]["nvmlDeviceGetFanSpeed()"] == {"error": "NOT_SUPPORTED"}
    assert first["fields"]["82"]["value"] == 64.0
    assert first["fields"]["83"] == {"error": "NOT_SUPPORTED"}
    assert second == {"index": 1, "error": "GPU_IS_LOST"}
    assert any("fallen off the bus" in line for line in lines)
    timed = fixture["timings_us"]
    assert timed["nvmlDeviceGetUtilizationRates()"]["max"] >= timed["nvmlDeviceGetUtilizationRates()"]["median"]
    assert "nvmlDeviceGetFanSpeed()" not in timed


def test_the_fixture_names_no_board(library: MakeLibrary) -> None:
    gpu = plain_gpu()
    gpu.answers["nvmlDeviceGetUUID"] = b"GPU-deadbeef-1234-5678-9abc-def012345678"
    gpu.answers["nvmlDeviceGetSerial"] = b"1327532408382"
    library([gpu])
    fixture, _ = check.check_nvml(repeat=1)
    text = json.dumps(fixture)
    assert "deadbeef" not in text
    assert "1327532408382" not in text
    assert fixture["gpus"][0]["uuid"] == "GPU-00000000-0000-4000-8000-000000000000"


def test_it_writes_where_it_is_told_to(
    library: MakeLibrary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library([plain_gpu()])
    output = tmp_path / "new" / "fixture.json"
    monkeypatch.setattr("sys.argv", ["check.py", "--skip-tests", "--repeat", "1", "--output", str(output)])
    assert check.main() == 0
    assert json.loads(output.read_text())["gpus"][0]["index"] == 0
    assert "us median" in capsys.readouterr().out


def test_a_machine_without_nvml_is_told_so(
    library: MakeLibrary, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, _ = library([])
    made.init_code = 9
    monkeypatch.setattr("sys.argv", ["check.py", "--skip-tests"])
    assert check.main() == 1
    assert "Driver Not Loaded" in capsys.readouterr().err


def test_fixtures_have_names_of_model_and_driver() -> None:
    path = check.default_output("NVIDIA H100 80GB HBM3", "570.133.20")
    assert path.name == "nvidia-h100-80gb-hbm3-570.133.20.json"
    assert path.parent.parts[-3:] == ("tests", "fixtures", "nvml")
