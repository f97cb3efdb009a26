"""Calls that do not return: the rest stays live, the words are exact, and nobody waits."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gputop.model.facts import Presence
from gputop.model.status import SourceState, SourceStatus
from gputop.sources.base import Demand, DemandBoard
from gputop.sources.nvml import source as source_module
from gputop.sources.nvml.spawn import reap
from gputop.sources.supervisor import Supervisor
from tests.integration.nvml_rig import Recorder, demo

ALL = set(range(8))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up on a call sooner than a person would want."""
    monkeypatch.setattr(source_module, "_REPLACE_AFTER_S", 1.5)
    monkeypatch.setattr(source_module, "_PATIENCE_S", 0.5)
    monkeypatch.setattr(source_module, "_SLOW_CALL_S", 0.4)


def block(seconds: float, *, at: float = 3.0, until: float = 1e9, call: str = "nvmlDeviceGetPowerUsage") -> str:
    return (
        f'[[faults]]\nkind = "call_block"\nnode = "*"\ngpus = [3]\nseconds = {seconds}\n'
        f'at_s = {at}\nuntil_s = {until}\ncalls = ["{call}"]\n'
    )


async def test_seven_of_eight_go_on_beside_a_stuck_one(tmp_path: Path) -> None:
    source = demo(tmp_path, block(60.0))
    async with Recorder(source) as seen:
        await seen.until_fresh(ALL)
        await seen.until(lambda: "GPU 3: nvmlDeviceGetPowerUsage" in source.trouble(), "the words for it")
        last = seen.at(3)
        await seen.until(lambda: seen.presence[3][0] is Presence.ERROR, "GPU 3 is given up")
        assert "nvmlDeviceGetPowerUsage has not answered since" in seen.presence[3][1]
        await seen.until_fresh(ALL - {3})
        assert seen.at(3) == last, "its last reading keeps its age"
        assert "GPU 3: nvmlDeviceGetPowerUsage has not answered for" in source.trouble()
        assert seen.roster is not None
        assert {ref.index for ref in seen.roster.gpus} == ALL, "its row stays"
        began = time.monotonic()
        await source.aclose()
        assert time.monotonic() - began < 1.0


async def test_a_gpu_that_answers_again_is_taken_back(tmp_path: Path) -> None:
    source = demo(tmp_path, block(5.0, until=4.0))
    async with Recorder(source) as seen:
        await seen.until_fresh(ALL)
        uuid = seen.refs[3].uuid
        await seen.until(lambda: seen.presence[3][0] is Presence.ERROR, "GPU 3 is given up")
        await seen.until(lambda: seen.presence[3][0] is Presence.PRESENT, "GPU 3 answers again")
        await seen.until_fresh(ALL)
        assert seen.refs[3].uuid == uuid
        assert source.trouble() == ""
        assert not source._stuck


async def test_the_xid_of_a_stuck_gpu_is_told_once(tmp_path: Path) -> None:
    """The child that is stuck on it is the only one that still hears of it."""
    xid = '[[faults]]\nkind = "xid"\nnode = "*"\ngpus = [3, 5]\nat_s = 9.0\nxid = 119\n'
    source = demo(tmp_path, block(60.0) + xid)
    async with Recorder(source) as seen:
        await seen.until(lambda: seen.presence.get(3, ("", ""))[0] is Presence.ERROR, "GPU 3 is given up")
        await seen.until_fresh(ALL - {3})
        await seen.until(lambda: len(seen.xids) >= 2, "both Xids")
        await seen.until_fresh(ALL - {3})
        assert sorted(fact.ref.index for fact in seen.xids) == [3, 5]


async def test_a_stuck_start_is_named(tmp_path: Path) -> None:
    source = demo(tmp_path, block(60.0, at=-1e9, call="nvmlInitWithFlags"))
    async with Recorder(source) as seen:
        await seen.until(lambda: "nvmlInit has not answered for" in source.trouble(), "the words for it")
        assert seen.node is not None, "the bus is told before"
        began = time.monotonic()
        await source.aclose()
        assert time.monotonic() - began < 1.0


async def test_stuck_while_it_is_opened(tmp_path: Path) -> None:
    """The GPU blocks from the first call on it; the others come all the same."""
    source = demo(tmp_path, block(60.0, at=-1e9, call="nvmlDeviceGetUUID"))
    async with Recorder(source) as seen:
        await seen.until_fresh(ALL - {3})
        assert "GPU 3: nvmlDeviceGetUUID has not answered for" in source.trouble()
        assert seen.roster is not None
        assert {ref.index for ref in seen.roster.gpus} == ALL


async def test_only_so_many_children_are_left_behind(tmp_path: Path) -> None:
    """Every GPU blocks: there is an end to starting children, and it is said."""
    fault = block(60.0).replace("gpus = [3]\n", "")
    source = demo(tmp_path, fault)
    async with Recorder(source) as seen:
        await seen.until_fresh(ALL)
        await seen.until(lambda: len(source._stuck) == 3, "three children wait")
        await seen.until(
            lambda: source._current is not None and source._current.process.pending() is not None,
            "the fourth is stuck as well",
        )
        await asyncio.sleep(2.0)
        assert len(source._stuck) == 3
        assert any("wait in the driver" in finding.text for finding in source.findings())
        assert source.trouble().count("has not answered") == 4


async def test_the_supervisor_calls_it_degraded_with_the_words(tmp_path: Path) -> None:
    source = demo(tmp_path, block(60.0))
    told: list[SourceStatus] = []
    supervisor = Supervisor([source], DemandBoard(Demand(interval_s=0.2)), lambda _: None, told.append)
    supervisor.start()

    async def until(state: SourceState, words: str) -> None:
        end = time.monotonic() + 20.0
        while not (told[-1].state is state and words in told[-1].reason):
            assert time.monotonic() < end, told[-1]
            await asyncio.sleep(0.02)

    await until(SourceState.LIVE, "")
    await until(SourceState.DEGRADED, "GPU 3: nvmlDeviceGetPowerUsage has not answered for")
    began = time.monotonic()
    await supervisor.aclose()
    assert time.monotonic() - began < 1.0


async def test_released_it_holds_nothing_until_it_is_resumed(tmp_path: Path) -> None:
    source = demo(tmp_path)
    told: list[SourceStatus] = []
    supervisor = Supervisor([source], DemandBoard(Demand(interval_s=0.2)), lambda _: None, told.append)
    supervisor.start()

    async def until(state: SourceState) -> None:
        end = time.monotonic() + 20.0
        while told[-1].state is not state:
            assert time.monotonic() < end, told[-1]
            await asyncio.sleep(0.02)

    await until(SourceState.LIVE)
    assert source._current is not None
    process = source._current.process
    await supervisor.release("nvml")
    assert told[-1].state is SourceState.RELEASED
    end = time.monotonic() + 10.0
    while process.status() is None:
        assert time.monotonic() < end, "the child still holds the devices"
        await asyncio.sleep(0.02)
    supervisor.resume("nvml")
    await until(SourceState.LIVE)
    await supervisor.aclose()


async def test_a_stopped_child_is_ended_and_another_takes_its_place(tmp_path: Path) -> None:
    source = demo(tmp_path)
    told: list[SourceStatus] = []
    supervisor = Supervisor([source], DemandBoard(Demand(interval_s=0.2)), lambda _: None, told.append)
    supervisor.start()
    try:
        await _until(lambda: told[-1].state is SourceState.LIVE, "live")
        assert source._current is not None
        first = source._current.process.pid
        os.kill(first, signal.SIGSTOP)
        await _until(lambda: any("was stopped and had not answered" in status.reason for status in told), "the words")
        await _until(lambda: not Path(f"/proc/{first}").exists(), "the stopped one is gone")
        await _until(lambda: told[-1].state is SourceState.LIVE, "live again")
        assert source._current.process.pid != first
    finally:
        await supervisor.aclose()


async def test_a_stopped_child_does_not_outlive_the_program(tmp_path: Path) -> None:
    source = demo(tmp_path)
    async with Recorder(source) as seen:
        await seen.until_fresh(ALL)
        assert source._current is not None
        pid = source._current.process.pid
        os.kill(pid, signal.SIGSTOP)
        await _until(source._current.process.is_stopped, "stopped")
        await source.aclose()
        await _until(lambda: not _runs(pid), "gone")


def _runs(pid: int) -> bool:
    reap()
    return Path(f"/proc/{pid}").exists()


async def _until(condition: Callable[[], bool], what: str) -> None:
    ends = asyncio.get_running_loop().time() + 25
    while not condition():
        assert asyncio.get_running_loop().time() < ends, f"never {what}"
        await asyncio.sleep(0.02)
