"""The terminal: whether there is one, what it can do, and that it is given back.

Textual restores the screen when it leaves by itself, but installs no handler for SIGTERM and SIGHUP, and
a terminal that is gone without a SIGHUP (under sudo or nohup) makes its input thread spin
(Textualize/textual#6690).
"""

import asyncio
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_PATIENCE_S: Final = 3.0
"""How long leaving in the ordinary way may take once the process was told to end."""


class TerminalAbilities(Struct, frozen=True):
    """What the terminal can show.

    Attributes:
        colours: "truecolor", "256", "standard", or "" for none.
        no_color: NO_COLOR is set (no-color.org: to any non-empty text).
        unicode: Block and braille characters can be written.
    """

    colours: str
    no_color: bool
    unicode: bool


def abilities(env: Mapping[str, str], encoding: str | None) -> TerminalAbilities:
    """Return what the environment says of the terminal.

    Args:
        env: The environment.
        encoding: Encoding of the output stream; Unicode needs UTF-8.
    """
    term = env.get("TERM", "")
    if env.get("COLORTERM", "").lower() in {"truecolor", "24bit"}:
        colours = "truecolor"
    elif "256color" in term:
        colours = "256"
    else:
        colours = "" if term in {"", "dumb", "unknown"} else "standard"
    utf8 = (encoding or "").lower().replace("-", "") == "utf8"
    # The Linux console has 256 or 512 glyphs, braille not among them.
    return TerminalAbilities(colours, bool(env.get("NO_COLOR")), utf8 and term not in {"linux", "dumb"})


def no_terminal() -> str:
    """Return why no screen can be shown, or "": Textual reads keys from stdin and draws on stderr."""
    streams = (("standard input", sys.__stdin__), ("standard error", sys.__stderr__))
    away = [name for name, stream in streams if stream is None or not stream.isatty()]
    return f"{' and '.join(away)} {'is' if len(away) == 1 else 'are'} not a terminal" if away else ""


def is_lost() -> bool:
    """Whether the terminal that was there is gone."""
    stream = sys.__stdin__
    if stream is None:
        return True
    try:
        os.tcgetpgrp(stream.fileno())
    except (OSError, ValueError):
        return True
    return False


def on_ending_signals(loop: asyncio.AbstractEventLoop, leave: Callable[[int], None]) -> None:
    """Call `leave` with 128 + the signal's number when the process is told to end.

    The handlers are Python's own, not the loop's: with the terminal gone or stalled the main thread may wait for
    ever to hand on what is to be written (Textual's queue of writes is bounded), and the loop would not run.

    Args:
        loop: The running loop.
        leave: Ends the app in the ordinary way, so that the terminal is restored.
    """

    def handle(number: int, _frame: object) -> None:
        end_by_force(128 + number)
        loop.call_soon_threadsafe(leave, 128 + number)

    for number in _ENDING:
        signal.signal(number, handle)


def end_by_force(code: int) -> None:
    """End the process some seconds from now, whatever holds it up; children end with their pipes."""
    watchdog = threading.Timer(_PATIENCE_S, os._exit, (code,))
    watchdog.daemon = True
    watchdog.start()


def on_release_signals(loop: asyncio.AbstractEventLoop, release: Callable[..., None]) -> None:
    """Call `release(release=True)` on SIGUSR1 and `release(release=False)` on SIGUSR2.

    `gputop release` sends them, so that a driver can be unloaded under running screens.
    """
    loop.add_signal_handler(signal.SIGUSR1, functools.partial(release, release=True))
    loop.add_signal_handler(signal.SIGUSR2, functools.partial(release, release=False))
