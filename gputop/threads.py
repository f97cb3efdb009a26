"""Blocking work in threads that nobody waits for when the program ends.

The executors of `concurrent.futures` and of asyncio are joined at exit, so that a server which sends a byte a
second would hold up the quit for ever; daemon threads are not.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


async def in_thread(work: Callable[[], _T], name: str) -> _T:
    """Run `work` in a daemon thread of its own and return what it returns, or raise what it raises.

    Cancelled, the thread goes on by itself and its result is dropped.

    Args:
        work: What blocks.
        name: Name of the thread, for debuggers.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[_T] = loop.create_future()

    def settle(action: Callable[[], None]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: None if answer.done() else action())

    def run() -> None:
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - it is raised where the answer is awaited
            failure = error
            settle(lambda: answer.set_exception(failure))
        else:
            settle(lambda: answer.set_result(result))

    threading.Thread(target=run, name=name, daemon=True).start()
    return await answer
