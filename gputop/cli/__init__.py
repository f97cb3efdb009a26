"""The command line. Each command imports what it needs when it runs, so that words cost little."""

import sys
from typing import NoReturn

from gputop import __version__


def main() -> NoReturn:
    """Run the command that the arguments name; never returns."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Before click, whose import would be most of the time.
        print(f"gputop {__version__}")  # noqa: T201 - a command's answer
        sys.exit(0)
    from gputop.cli.commands import run  # noqa: PLC0415 - see above

    sys.exit(run(sys.argv[1:]))
