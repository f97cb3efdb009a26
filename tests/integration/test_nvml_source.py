"""The NVML source with its child, over a simulated node."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from gputop.model.facts import Presence
from gputop.model.reading import NA, Absent
from gputop.model.status import SourceState
from gputop.sources.base import Demand
from gputop.sources.nvml.source import NvmlSource
from tests.integration.nvml_rig import CHILD, NODE, Recorder, demo

ALL = set(range(8))


async def test_eight_gpus_with_everything(tmp_path: Path) -> None:
    async with Recorder(demo(tmp_path)) as seen:
        await seen.until(lambda: seen.rounds > 2, "some rounds")
        assert seen.roster is not None
        assert [ref.index for ref in seen.roster.gpus] == list(range(8))
        assert all(ref.uuid.startswith("GPU-") and ref.bus_id and ref.host == "gpu-a" for ref in seen.roster.gpus)
        for index in ALL:
            for quantity in ("utilization", "memory_used_mib", "power_w", "temperature_c", "ecc_mode"):
                assert isinstance(seen.value(index, quantity), float), quantity
            assert seen.value(index, "model") == "NVIDIA H100 80GB HBM3"
            fan = seen.value(index, "fan_speed_percent")
            assert isinstance(fan, Absent)
            assert fan.state == NA
        assert {presence for presence, _ in seen.presence.values()} == {Presence.PRESENT}
        assert dict(seen.source.versions())["driver"] == "570.133.20"
        assert seen.node is not None
        assert len(seen.node.pci or ()) == 8
        assert seen.source.trouble() == ""
        await seen.until_fresh(ALL)


async def test_only_what_is_wanted_until_more_is(tmp_path: Path) -> None:
    wanted = frozenset({"power_w"})
    async with Recorder(demo(tmp_path), Demand(wanted, processes=False, interval_s=0.2)) as seen:
        await seen.until(lambda: seen.rounds > 3, "some rounds")
        assert set(seen.values[0, ""]) == {"power_w"}
        assert not seen.processes
        seen.board.post(Demand(wanted | {"temperature_c"}, processes=True, interval_s=0.2))
        await seen.until(lambda: seen.value(0, "temperature_c"), "the temperature comes at once")
        await seen.until(lambda: 0 in seen.processes, "processes come")


async def test_a_refresh_reads_at_once(tmp_path: Path) -> None:
    async with Recorder(demo(tmp_path), Demand(interval_s=600.0)) as seen:
        await seen.until(lambda: seen.rounds > 0, "the first round")
        before = time.time()
        seen.board.refresh()
        await seen.until_fresh(ALL, before)


async def test_processes_have_their_pods(tmp_path: Path) -> None:
    job = """
[[jobs]]
name = "llama-ft"
namespace = "ml"
gpus = 2
user = "root"
command = "python3 train.py --cfg a.yaml"
"""
    async with Recorder(demo(tmp_path, job)) as seen:
        await seen.until(lambda: 0 in seen.processes and 1 in seen.processes, "process tables")
        table = seen.processes[0].processes
        assert not isinstance(table, Absent)
        (process,) = table
        assert process.command == "python3 train.py --cfg a.yaml"
        assert process.user == "root"
        assert isinstance(process.memory_mib, float)
        assert process.holder is not None
        assert process.holder.scheduler == "kubernetes"
        assert process.holder.name.startswith("llama-ft")
        assert seen.processes[5].processes == ()


async def test_mig_instances_under_their_board(tmp_path: Path) -> None:
    node = NODE + 'mig = ["3g.40gb", "2g.20gb", "1g.10gb"]\nmig_gpus = [0]\n'
    async with Recorder(demo(tmp_path, node=node)) as seen:
        await seen.until(lambda: seen.rounds > 1, "some rounds")
        assert seen.roster is not None
        instances = [ref for ref in seen.roster.gpus if ref.is_instance]
        assert len(instances) == 3
        assert {ref.uuid for ref in instances} == {seen.refs[0].uuid}
        told = seen.value(0, "utilization")
        assert isinstance(told, Absent)
        profiles = {seen.value(0, "mig_profile", ref.instance) for ref in instances}
        assert profiles == {"3g.40gb", "2g.20gb", "1g.10gb"}
        assert all(isinstance(seen.value(0, "memory_used_mib", ref.instance), float) for ref in instances)


async def test_a_gpu_lost_from_the_start_keeps_its_place(tmp_path: Path) -> None:
    fault = '[[faults]]\nkind = "gpu_lost"\nnode = "*"\ngpus = [3]\n'
    async with Recorder(demo(tmp_path, fault)) as seen:
        await seen.until_fresh(ALL - {3})
        assert seen.presence[3][0] is Presence.LOST
        assert len(seen.refs) == 8
        bus = [gpu.bus_id for gpu in (seen.node.pci if seen.node else None) or ()]
        assert seen.refs[3].bus_id == bus[3]
        assert "GPU 3" in seen.source.trouble()
        assert "GPU_IS_LOST" in seen.source.trouble()


async def test_a_gpu_that_is_lost_and_comes_back(tmp_path: Path) -> None:
    fault = '[[faults]]\nkind = "gpu_lost"\nnode = "*"\ngpus = [3]\nat_s = 3.0\nuntil_s = 5.0\n'
    async with Recorder(demo(tmp_path, fault)) as seen:
        await seen.until_fresh(ALL)
        uuid = seen.refs[3].uuid
        await seen.until(lambda: seen.presence.get(3, ("", ""))[0] is Presence.LOST, "GPU 3 is lost")
        last = seen.at(3)
        await seen.until_fresh(ALL - {3})
        assert seen.at(3) == last
        await seen.until(lambda: seen.presence[3][0] is Presence.PRESENT, "GPU 3 is back")
        await seen.until_fresh(ALL)
        assert seen.refs[3].uuid == uuid
        assert seen.source.trouble() == ""


async def test_an_xid_is_told_with_its_time(tmp_path: Path) -> None:
    fault = '[[faults]]\nkind = "xid"\nnode = "*"\ngpus = [5]\nat_s = 3.0\nxid = 94\n'
    async with Recorder(demo(tmp_path, fault)) as seen:
        await seen.until_fresh(ALL)
        await seen.until(lambda: seen.xids, "the Xid")
        xid = seen.xids[0]
        assert (xid.xid, xid.ref.index) == (94, 5)
        assert xid.at is not None
        assert abs(xid.at - time.time()) < 10.0


@pytest.mark.parametrize(
    ("code", "word", "says", "state"),
    [
        (18, "driver_mismatch", ("535.54.03", "570.133.20", "reboot"), SourceState.DOWN),
        (9, "driver_not_loaded", ("modprobe",), SourceState.DOWN),
        (12, "no_library", ("libnvidia-ml.so.1",), SourceState.DOWN),
        (4, "no_permission", ("/dev/nvidiactl",), SourceState.DENIED),
        (28, "no_gpu", ("PCI bus shows 8",), SourceState.DOWN),
        (999, "nvml_error", ("999",), SourceState.DOWN),
    ],
)
async def test_a_failed_init_is_told_in_its_own_words(
    tmp_path: Path, code: int, word: str, says: tuple[str, ...], state: SourceState
) -> None:
    fault = f'[[faults]]\nkind = "nvml_init_error"\nnode = "*"\ncode = {code}\nkernel_driver = "535.54.03"\n'
    async with Recorder(demo(tmp_path, fault)) as seen:
        error = await seen.until_error()
        assert error.state is state
        assert error.retry_s == 30.0
        for part in says:
            assert part in error.reason
        assert seen.troubles[word].text == error.reason
        # What the bus shows is told all the same.
        assert seen.node is not None
        assert len(seen.node.pci or ()) == 8
        assert seen.roster is not None
        assert seen.roster.silent == error.reason


async def test_a_sleeping_gpu_is_not_woken(tmp_path: Path) -> None:
    source = demo(tmp_path, node=NODE.replace("gpus = 8", "gpus = 1"))
    _put_to_sleep(tmp_path)
    async with Recorder(source) as seen:
        error = await seen.until_error()
        assert "sleeps" in error.reason
        assert seen.troubles["asleep"].severity == "info"
        assert seen.node is not None
        assert [gpu.asleep for gpu in seen.node.pci or ()] == [True]
        assert not seen.values


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("import sys; print('boom', file=sys.stderr); sys.exit(3)", ("status 3", "boom")),
        ("import os; os.kill(os.getpid(), 11)", ("SIGSEGV",)),
        ("print('no frames here ' * 100)", ("cannot be read",)),
        (
            "import sys; sys.stdout.buffer.write(b'\\x03\\0\\0\\0\\x93\\x01\\x02'); sys.stdout.flush()",
            ("cannot be read",),
        ),
        ("import sys; print('\\x1b[31mred\\x1b[0m', file=sys.stderr); sys.exit(1)", ("red",)),
    ],
)
async def test_a_child_that_dies_or_lies_is_a_reason(script: str, says: tuple[str, ...]) -> None:
    async with Recorder(NvmlSource("gpu-a", (sys.executable, "-c", script))) as seen:
        error = await seen.until_error()
        for part in says:
            assert part in error.reason
        assert "\x1b" not in error.reason


async def test_a_child_that_cannot_be_started_is_a_reason() -> None:
    async with Recorder(NvmlSource("gpu-a", ("/nonexistent/python",))) as seen:
        error = await seen.until_error()
        assert "cannot be started" in error.reason


async def test_a_fresh_child_takes_the_place_of_a_dead_one(tmp_path: Path) -> None:
    source = demo(tmp_path)
    async with Recorder(source) as seen:
        await seen.until_fresh(ALL)
        assert source._current is not None
        os.kill(source._current.process.pid, signal.SIGKILL)
        error = await seen.until_error()
        assert "SIGKILL" in error.reason
    async with Recorder(source) as again:
        await again.until_fresh(ALL)


async def test_the_child_has_no_terminal_and_outlives_ctrl_c(tmp_path: Path) -> None:
    source = demo(tmp_path)
    async with Recorder(source) as seen:
        await seen.until_fresh(ALL)
        assert source._current is not None
        pid = source._current.process.pid
        assert os.getsid(pid) == pid
        assert _stat(pid)[4] == "0", "it has a controlling terminal"
        os.kill(pid, signal.SIGINT)
        await seen.until_fresh(ALL)


async def test_the_child_ends_with_its_parent(tmp_path: Path) -> None:
    """Also when the parent is killed and can close nothing."""
    path = tmp_path / "scenario.toml"
    path.write_text(NODE)
    script = f"""
import asyncio, sys, time
sys.path.insert(0, {str(Path.cwd())!r})
from gputop.sources.base import Demand, DemandBoard
from gputop.sources.nvml.source import NvmlSource
command = [sys.executable, "-m", "gputop.demo.nvml", "--scenario", {str(path)!r}, "--", *{CHILD!r}]
async def main():
    source = NvmlSource("gpu-a", command)
    async for batch in source.batches(DemandBoard(Demand(interval_s=0.2))):
        if batch.round_done:
            print(source._current.process.pid, flush=True)
asyncio.run(main())
"""
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE)
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    assert _runs(child)
    parent.kill()
    await parent.wait()
    end = time.monotonic() + 10.0
    while _runs(child):
        assert time.monotonic() < end, "the child outlives its parent"
        await asyncio.sleep(0.05)


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _runs(pid: int) -> bool:
    try:
        return _stat(pid)[0] not in "ZX"
    except FileNotFoundError:
        return False


def _put_to_sleep(root: Path) -> None:
    (status,) = root.glob("sys/bus/pci/devices/*/power/runtime_status")
    status.write_text("suspended\n")


async def test_closing_is_polite_and_ends_the_child(tmp_path: Path) -> None:
    source = demo(tmp_path)
    async with Recorder(source) as seen:
        await seen.until_fresh(ALL)
        assert source._current is not None
        pid = source._current.process.pid
    end = time.monotonic() + 10.0
    while _runs(pid):
        assert time.monotonic() < end, "the child does not end"
        await asyncio.sleep(0.02)
    assert source.cost().bytes_read > 0


async def test_it_knows_what_it_costs(tmp_path: Path) -> None:
    async with Recorder(demo(tmp_path)) as seen:
        await seen.until(lambda: seen.source.cost().slowest, "the child tells its cost")
        cost = seen.source.cost()
        assert cost.requests > 100
        assert cost.cpu_s > 0.0
        assert cost.bytes_read > 1000
        assert cost.last_s is not None
        assert all(name.startswith("nvml") and seconds >= 0.0 for name, seconds in cost.slowest)


async def test_the_child_imports_nothing_of_the_screen() -> None:
    script = "import gputop.sources.nvml.child, sys; print(' '.join(sys.modules))"
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE)
    out, _ = await child.communicate()
    modules = set(out.decode().split())
    assert "gputop.sources.nvml.sweep" in modules
    for heavy in ("asyncio", "textual", "rich", "click", "requests", "inspect", "gputop.sources.base"):
        assert heavy not in modules
