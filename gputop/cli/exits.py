"""Exit codes and standard error: the one place that decides both."""

import sys
from enum import IntEnum

from gputop.model.text import clean


class Exit(IntEnum):
    """Exit codes; 128 + N by signal N."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NO_SOURCE = 3
    HANGUP = 129
    INTERRUPT = 130
    PIPE = 141
    TERMINATED = 143


def complain(words: str) -> None:
    """Say something to the person; standard output stays data."""
    sys.stderr.write(f"gputop: {clean(words, 2000)}\n")
    sys.stderr.flush()
