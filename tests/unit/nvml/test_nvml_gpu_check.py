"""The script behind ``make gpu-check``: its recording over a scripted library, its deadline over the demo's."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gputop.sources.nvml.marker import Marker
from tests.gpu import check, record
from tests.gpu.timed import Timed
from tests.unit.nvml import fake, replay
from tests.unit.nvml.fake import Code, FakeLibrary, plain_gpu

MakeLibrary = Callable[..., tuple[FakeLibrary, object]]
ONE_NODE = '[[nodes]]\nname = "gpu-001"\nmodel = "h100"\ngpus = 2\n'
BLOCKED = (
    '[[faults]]\nkind = "call_block"\nnode = "*"\ngpus = [1]\ncalls = ["nvmlDeviceGetPowerUsage"]\nseconds = 600\n'
)


def taken(repeat: int = 1) -> tuple[dict[str, Any], list[dict[str, Any]], list[str]]:
    """Return the fixture, what was written on the way, and the lines for people."""
    written: list[dict[str, Any]] = []
    with Timed(Marker(None)) as timed:
        fixture, lines = record.take(timed, repeat, written.append)
    return fixture, written, [*lines, *record.lines_of(fixture)]


def run_check(
    tmp_path: Path, scenario: str, *options: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any] | None]:
    file, output = tmp_path / "scenario.toml", tmp_path / "new" / "fixture.json"
    file.write_text(f'title = "t"\ndescription = "d"\n\n{scenario}', encoding="utf-8")
    demo = [sys.executable, "-m", "gputop.demo.nvml", "--scenario", str(file), "--"]
    program = ["-m", "tests.gpu.check", "--skip-tests", "--repeat", "1", "--output", str(output), *options]
    done = subprocess.run([*demo, *program], cwd=check.REPO, capture_output=True, text=True, timeout=60, check=False)
    return done, json.loads(output.read_text(encoding="utf-8")) if output.exists() else None


def test_the_fixture_holds_answers_and_errors_by_name(library: MakeLibrary) -> None:
    gpu = plain_gpu()
    gpu.answers["nvmlDeviceGetSerial"] = b"1327532408382"
    gpu.answers["nvmlDeviceGetPowerUsage"] = Code(fake.UNKNOWN)
    gpu.fields[82, 0] = 64
    broken = plain_gpu(1)
    broken.open_code = fake.GPU_IS_LOST
    library([gpu, broken])
    fixture, _, lines = taken()
    first, second = fixture["gpus"]
    assert fixture["schema"] == record.SCHEMA
    assert fixture["driver"] == "570.133.20"
    assert first["calls"]["nvmlDeviceGetUtilizationRates()"] == {"value": [{"gpu": 40, "memory": 20}]}
    assert first["calls"]["nvmlDeviceGetPowerUsage()"] == {"error": "UNKNOWN"}
    assert first["calls"]["nvmlDeviceGetFanSpeed()"] == {"error": "NOT_SUPPORTED"}
    assert first["fields"]["82"]["value"] == 64.0
    assert first["fields"]["83"] == {"error": "NOT_SUPPORTED"}
    assert second == {"index": 1, "error": "GPU_IS_LOST"}
    assert any("fallen off the bus" in line for line in lines)


def test_every_call_of_a_round_is_timed_and_what_is_refused_is_told_by_its_error(library: MakeLibrary) -> None:
    made, _ = library([plain_gpu()], {"nvmlDeviceGetTemperatureV"})
    fixture, _, lines = taken(repeat=2)
    timed = fixture["timings_us"]
    called = {name.partition("(")[0] for name in timed}
    assert set(made.calls) == called
    for part in (
        "nvmlInitWithFlags", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetFieldValues",
        "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlGpmQueryDeviceSupport", "nvmlEventSetCreate", "nvmlShutdown",
    ):  # fmt: skip
        assert part in called
    one = timed["nvmlDeviceGetUtilizationRates()"]
    assert one["max"] >= one["median"] > 0.0
    assert one["calls"] >= 3
    assert fixture["refused"]["nvmlDeviceGetFanSpeed()"].keys() == {"NOT_SUPPORTED"}
    assert fixture["refused"]["nvmlDeviceGetTemperatureV()"].keys() == {"FUNCTION_NOT_FOUND"}
    assert "nvmlDeviceGetUtilizationRates()" not in fixture["refused"]
    assert any("refused: nvmlDeviceGetFanSpeed(): NOT_SUPPORTED" in line for line in lines)


def test_it_is_written_after_each_gpu(library: MakeLibrary) -> None:
    library([plain_gpu(), plain_gpu(1)])
    _, written, _ = taken()
    assert [len(one["gpus"]) for one in written[:2]] == [1, 2]


def test_the_fixture_names_no_board(library: MakeLibrary) -> None:
    gpu = plain_gpu()
    gpu.answers["nvmlDeviceGetUUID"] = b"GPU-deadbeef-1234-5678-9abc-def012345678"
    gpu.answers["nvmlDeviceGetSerial"] = b"1327532408382"
    library([gpu])
    fixture, _, _ = taken()
    text = json.dumps(fixture)
    assert "deadbeef" not in text
    assert "1327532408382" not in text
    assert fixture["gpus"][0]["uuid"] == "GPU-00000000-0000-4000-8000-000000000000"


def test_a_machine_without_nvml_is_told_so(
    library: MakeLibrary, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made, _ = library([])
    made.init_code = 9
    monkeypatch.setattr("sys.argv", ["record.py", "--output", str(tmp_path / "fixture.json")])
    assert record.main() == 1
    assert "Driver Not Loaded" in capsys.readouterr().err
    assert not (tmp_path / "fixture.json").exists()


def test_a_whole_check_writes_what_can_be_replayed(tmp_path: Path) -> None:
    done, fixture = run_check(tmp_path, ONE_NODE)
    assert done.returncode == 0, done.stderr
    assert fixture is not None
    assert len(replay.replay(fixture).gpus) == 2
    assert "us median" in done.stdout
    assert "stopped" not in fixture


def test_a_call_that_hangs_is_named_and_what_was_recorded_is_kept(tmp_path: Path) -> None:
    done, fixture = run_check(tmp_path, ONE_NODE + BLOCKED, "--deadline", "50", "--patience", "1")
    assert done.returncode == 1
    assert "nvmlDeviceGetPowerUsage() on GPU 1 has not returned for" in done.stderr
    assert fixture is not None
    assert [gpu["index"] for gpu in fixture["gpus"]] == [0]
    assert "nvmlDeviceGetPowerUsage" in fixture["stopped"]


def test_the_deadline_holds_even_for_what_is_waited_for(tmp_path: Path) -> None:
    done, fixture = run_check(tmp_path, ONE_NODE, "--deadline", "0")
    assert done.returncode == 1
    assert "was stopped between two calls" in done.stderr
    assert fixture is None


def test_a_program_that_does_not_end_is_killed_at_the_deadline() -> None:
    assert check.run_until([sys.executable, "-c", "import signal; signal.pause()"], 0.0) is None
    assert check.run_until([sys.executable, "-c", "raise SystemExit(3)"], time.monotonic() + 60.0) == 3


def test_fixtures_have_names_of_model_and_driver() -> None:
    path = check.default_output("NVIDIA H100 80GB HBM3", "570.133.20")
    assert path.name == "nvidia-h100-80gb-hbm3-570.133.20.json"
    assert path.parent.parts[-3:] == ("tests", "fixtures", "nvml")
