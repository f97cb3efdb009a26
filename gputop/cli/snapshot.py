"""`gputop snapshot`: the fleet once, or again and again, as a table or as JSON."""

import asyncio
import os
import signal
import sys
from typing import Final

import msgspec

from gputop.answers.snapshot import Snapshot, make
from gputop.answers.table import table_lines
from gputop.cli.exits import Exit, complain
from gputop.config.config import Config
from gputop.config.detect import Surroundings
from gputop.session import Session, open_session

_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def snapshot(config: Config, *, as_json: bool, watch: bool) -> int:
    """Print the fleet; return the exit code.

    Args:
        config: The settings.
        as_json: One JSON object in place of the table.
        watch: Go on, one JSON object a line, until interrupted.
    """
    return asyncio.run(_run(open_session(config, Surroundings(os.environ)), as_json=as_json, watch=watch))


async def _run(session: Session, *, as_json: bool, watch: bool) -> int:
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def end(number: int) -> None:
        if not ended.done():
            ended.set_result(128 + number)

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, end, number)
    answering = asyncio.create_task(_answer(session, as_json=as_json, watch=watch))
    await asyncio.wait([answering, ended], return_when=asyncio.FIRST_COMPLETED)
    if ended.done():
        answering.cancel()
        await asyncio.wait([answering], timeout=1.0)
        return ended.result()
    try:
        return answering.result()
    except BrokenPipeError:
        # Click would call it a failure; the reader has gone, as `head` does, and has what it wanted.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.PIPE


async def _answer(session: Session, *, as_json: bool, watch: bool) -> int:
    async with session:
        late = await session.first_round(session.config.timeout)
        if late:
            complain(f"not waited for any longer: {', '.join(late)}")
        while True:
            view = session.fleet.view()
            answer = make(view, session.now(), session.mark)
            _write(answer, as_json=as_json or watch, indent=not watch)
            if not watch:
                return _code(answer)
            await asyncio.sleep(session.config.interval)


def _write(answer: Snapshot, *, as_json: bool, indent: bool) -> None:
    if as_json:
        data = msgspec.json.encode(answer)
        sys.stdout.buffer.write((msgspec.json.format(data, indent=2) if indent else data) + b"\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in table_lines(answer)))
    sys.stdout.flush()


def _code(answer: Snapshot) -> int:
    """Return `NO_SOURCE` when nothing told anything, else `OK`: a lost GPU is an answer, not a failure."""
    if any(s.age_s is not None for s in answer.sources):
        return Exit.OK
    for source in answer.sources:
        complain(f"{source.name}: {source.state}: {source.reason or 'has not answered yet'}")
    return Exit.NO_SOURCE
