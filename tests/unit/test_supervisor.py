"""A source can fail, hang or lie: its status tells, the others go on, and closing never waits."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Self

import pytest

from gputop.model.facts import Batch
from gputop.model.status import Cost, Finding, SourceState, SourceStatus
from gputop.sources.base import Demand, DemandBoard, SourceError
from gputop.sources.supervisor import Supervisor

Script = Callable[[DemandBoard], AsyncIterator[Batch]]


def _batch(*, done: bool = True) -> Batch:
    return Batch("fake", 0, 1.0, 5.0, (), round_done=done)


class Scripted:
    """A source that does what the test says."""

    kind, found, target = "nvml", "test", "nowhere"

    def __init__(self, script: Script, name: str = "fake", deadline_s: float = 30.0) -> None:
        self.name, self.deadline_s, self._script = name, deadline_s, script
        self.starts = 0
        self.closed = 0
        self.words = ""

    def batches(self, board: DemandBoard) -> AsyncIterator[Batch]:
        self.starts += 1
        return self._script(board)

    def trouble(self) -> str:
        return self.words

    def versions(self) -> tuple[tuple[str, str], ...]:
        return ()

    def findings(self) -> tuple[Finding, ...]:
        return ()

    def cost(self) -> Cost:
        return Cost()

    async def aclose(self) -> None:
        self.closed += 1


class Watch:
    """Runs sources and waits for what they come to."""

    def __init__(self, *sources: Scripted) -> None:
        self.board = DemandBoard(Demand())
        self.batches: list[Batch] = []
        self.statuses: list[SourceStatus] = []
        self.supervisor = Supervisor(sources, self.board, self.batches.append, self.statuses.append)

    async def __aenter__(self) -> Self:
        self.supervisor.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.supervisor.aclose()

    async def until(self, state: SourceState, name: str = "fake") -> SourceStatus:
        async with asyncio.timeout(10):
            while True:
                for status in reversed(self.statuses):
                    if status.name == name:
                        if status.state is state:
                            return status
                        break
                await asyncio.sleep(0.005)


async def _becomes(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.005)


async def _endless(board: DemandBoard) -> AsyncIterator[Batch]:
    while True:
        yield _batch()
        await board.wait(0.01)


async def _hung(_: DemandBoard) -> AsyncIterator[Batch]:
    await asyncio.Event().wait()
    yield _batch()


async def _refused(_: DemandBoard) -> AsyncIterator[Batch]:
    raise SourceError("403: no right to\x1b[2J read nodes", SourceState.DENIED, retry_s=1000)
    yield _batch()


async def _buggy(_: DemandBoard) -> AsyncIterator[Batch]:
    yield _batch(done=False)
    raise KeyError("oops")


async def test_a_source_that_answers_is_live() -> None:
    async with Watch(Scripted(_endless)) as watch:
        status = await watch.until(SourceState.LIVE)
        assert status.last_data_at is not None
        assert watch.batches


async def test_a_refusal_is_told_without_escape_codes_and_with_the_next_try() -> None:
    async with Watch(Scripted(_refused)) as watch:
        status = await watch.until(SourceState.DENIED)
        assert status.reason == "403: no right to[2J read nodes"
        assert status.next_try_at is not None
        assert status.next_try_at - time.time() > 900


async def test_a_hung_source_is_called_late_then_down_and_holds_up_no_other() -> None:
    hung = Scripted(_hung, "hung", deadline_s=0.02)
    async with Watch(hung, Scripted(_endless)) as watch:
        status = await watch.until(SourceState.DOWN, "hung")
        assert "no answer for" in status.reason
        await watch.until(SourceState.LIVE)
        assert hung.starts == 1


async def test_a_fault_of_our_own_ends_in_the_status(caplog: pytest.LogCaptureFixture) -> None:
    async with Watch(Scripted(_buggy)) as watch:
        status = await watch.until(SourceState.DOWN)
        assert "internal error: KeyError" in status.reason
    assert "oops" in caplog.text


async def test_a_refresh_cuts_the_back_off_short() -> None:
    source = Scripted(_refused)
    async with Watch(source) as watch:
        await watch.until(SourceState.DENIED)
        watch.board.refresh()
        await _becomes(lambda: source.starts >= 2)


async def test_a_partial_answer_is_degraded_with_its_words() -> None:
    source = Scripted(_endless)
    source.words = "2 of 160 exporters silent"
    async with Watch(source) as watch:
        assert (await watch.until(SourceState.DEGRADED)).reason == "2 of 160 exporters silent"
        source.words = ""
        assert (await watch.until(SourceState.LIVE)).reason == ""


async def test_first_round_names_who_is_late_and_does_not_wait_for_who_failed() -> None:
    async with Watch(Scripted(_hung, "hung"), Scripted(_refused, "refused"), Scripted(_endless)) as watch:
        assert await watch.supervisor.first_round(0.2) == ("hung",)


async def test_release_lets_go_until_resumed() -> None:
    source = Scripted(_endless)
    async with Watch(source) as watch:
        await watch.until(SourceState.LIVE)
        await watch.supervisor.release("nvml")
        assert source.closed == 1
        await watch.until(SourceState.RELEASED)
        watch.supervisor.resume("nvml")
        await watch.until(SourceState.LIVE)
        assert source.starts == 2


async def test_closing_does_not_wait_for_a_source_that_hangs_in_its_own_close() -> None:
    class Stubborn(Scripted):
        async def aclose(self) -> None:
            await asyncio.Event().wait()

    watch = Watch(Stubborn(_hung))
    watch.supervisor.start()
    async with asyncio.timeout(5):
        await watch.supervisor.aclose()


async def test_demand_wakes_only_on_a_change() -> None:
    board = DemandBoard(Demand())
    waiting = asyncio.create_task(board.wait(1000))
    await asyncio.sleep(0)
    board.post(Demand())
    await asyncio.sleep(0)
    assert not waiting.done()
    board.post(Demand(interval_s=5.0))
    await asyncio.wait_for(waiting, 5)


async def test_each_change_of_state_or_reason_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    goes_on = asyncio.Event()

    async def script(_: DemandBoard) -> AsyncIterator[Batch]:
        yield _batch()
        yield _batch()
        await goes_on.wait()
        raise SourceError("refused\x1b[31m", SourceState.DENIED)

    caplog.set_level(logging.INFO, "gputop.sources.supervisor")
    async with Watch(Scripted(script)) as watch:
        await watch.until(SourceState.LIVE)
        goes_on.set()
        status = await watch.until(SourceState.DENIED)
    lines = [record.getMessage() for record in caplog.records]
    assert lines == ["source fake: live", f"source fake: denied: {status.reason}"]
    assert "\x1b" not in lines[1]
    assert {record.levelname for record in caplog.records} == {"INFO"}
