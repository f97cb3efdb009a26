"""The child over a real shared library, loaded by the dynamic linker and called through ctypes."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gputop.model.facts import Presence
from gputop.model.reading import Absent
from gputop.sources.nvml.source import NvmlSource
from tests.integration.nvml_rig import Recorder

_SOURCE = Path(__file__).parents[1] / "fixtures" / "nvml" / "library.c"
_NAME = "libnvidia-ml.so.550.54.15"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the library, under the names that a driver's installer gives it."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: the library of this test cannot be built")
    folder = tmp_path_factory.mktemp("library")
    command = [compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(folder / _NAME), str(_SOURCE)]
    subprocess.run(command, check=True, timeout=60)
    (folder / "libnvidia-ml.so.1").symlink_to(_NAME)
    return folder


@pytest.fixture
def source(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NvmlSource:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
    proc = tmp_path / "proc" / "driver" / "nvidia"
    proc.mkdir(parents=True)
    (proc / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6\n")
    return NvmlSource("node-a", proc_root=tmp_path / "proc", sys_root=tmp_path / "sys")


async def test_every_call_has_its_c_shape(source: NvmlSource) -> None:
    async with Recorder(source) as seen:
        await seen.until(lambda: seen.rounds > 2, "some rounds")
        assert [seen.refs[index].uuid[-1] for index in (0, 1)] == ["0", "1"]
        assert [seen.refs[index].bus_id for index in (0, 1)] == ["00000000:1b:00.0", "00000000:1c:00.0"]
        assert [seen.value(index, "utilization") for index in (0, 1)] == [30.0, 31.0]
        assert [seen.value(index, "power_w") for index in (0, 1)] == [250.0, 251.0]
        assert seen.value(0, "memory_reserved_mib") == 551.0
        assert seen.value(0, "memory_used_mib") == 1000.0
        assert (seen.value(0, "sm_clock_mhz"), seen.value(0, "memory_clock_mhz")) == (1001.0, 1002.0)
        # Uncorrected (1), aggregate (1), SRAM (7) and DRAM (2), in the order of the arguments.
        assert seen.value(0, "ecc_aggregate_sram_uncorrected") == 117.0
        assert seen.value(0, "ecc_volatile_dram_corrected") == 2.0
        assert seen.value(0, "memory_temperature_c") == 64.0
        assert isinstance(seen.value(0, "power_instant_w"), Absent)
        missing = seen.value(0, "fan_speed_percent")
        assert isinstance(missing, Absent)
        assert "no function" in missing.reason
        assert {presence for presence, _ in seen.presence.values()} == {Presence.PRESENT}
        await seen.until(lambda: seen.xids, "the Xid")
        assert (seen.xids[0].xid, seen.xids[0].ref.index) == (63, 1)


async def test_processes_and_their_samples(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
    async with Recorder(NvmlSource("node-a")) as seen:
        await seen.until(lambda: 1 in seen.processes, "process tables")
        table = seen.processes[1].processes
        assert not isinstance(table, Absent)
        (process,) = table
        assert (process.pid, process.kinds, process.memory_mib, process.sm_percent) == (1, "C", 2048.0, 42.0)


async def test_versions_that_do_not_fit(source: NvmlSource, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 3: the library's version is in its file's name, whatever it answers."""
    monkeypatch.setenv("GPUTOP_TEST_NVML", "init18")
    async with Recorder(source) as seen:
        error = await seen.until_error()
        assert "550.54.15" in error.reason
        assert "535.54.03" in error.reason


async def test_a_crash_inside_the_library_is_a_reason(source: NvmlSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUTOP_TEST_NVML", "crash")
    async with Recorder(source) as seen:
        error = await seen.until_error()
        assert "SIGABRT" in error.reason


async def test_what_the_library_prints_breaks_nothing(source: NvmlSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUTOP_TEST_NVML", "noisy")
    async with Recorder(source) as seen:
        await seen.until(lambda: seen.rounds > 2, "some rounds")
        assert seen.error is None


async def test_no_library_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has the library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    async with Recorder(NvmlSource("node-a", sys_root=tmp_path)) as seen:
        error = await seen.until_error()
        assert "libnvidia-ml.so.1" in error.reason
        assert "no_library" in seen.troubles
