"""The screen: `gputop` and `gputop demo`."""

import logging
import os
import sys

from gputop import collector
from gputop.cli.exits import Exit, complain
from gputop.config.config import Config
from gputop.config.detect import Surroundings
from gputop.config.paths import paths
from gputop.session import NothingFoundError, Session, open_demo, open_session
from gputop.terminal import abilities, no_terminal


def top(config: Config, *, fall_back: bool = False) -> int:
    """Show the screen on what the settings name or the machine has; return the exit code.

    Args:
        config: The settings.
        fall_back: Show the demo, loudly marked, when there is nothing to read.
    """
    if why := no_terminal():
        complain(f"{why}; for one answer without a screen: gputop snapshot [--json]")
        return Exit.USAGE
    collector.hold()
    _keep_off_the_screen()
    try:
        session = open_session(config, Surroundings(os.environ))
    except NothingFoundError as error:
        if not fall_back:
            raise
        complain(f"{error.reason}: showing the DEMO, a simulated cluster. `gputop doctor` tells what was looked for.")
        session = open_demo(config)
    return _show(session)


def demo(config: Config, scenario: str | None, *, list_only: bool) -> int:
    """Show the simulated cluster, or name its scenarios; return the exit code."""
    if list_only:
        from gputop.demo.scenario import names  # noqa: PLC0415 - needed here alone

        sys.stdout.write("".join(f"{name}\n" for name in names()))
        return Exit.OK
    if why := no_terminal():
        complain(f"{why}; for one answer without a screen: gputop snapshot --demo")
        return Exit.USAGE
    collector.hold()
    _keep_off_the_screen()
    return _show(open_demo(config, scenario))


def _show(session: Session) -> int:
    from gputop.app import GputopApp, run  # noqa: PLC0415 - Textual is not for words alone
    from gputop.presence_file import PresenceFile  # noqa: PLC0415 - see above
    from gputop.themes.loader import load_themes  # noqa: PLC0415 - see above

    if not session.config.color:
        # Textual reads the variable itself when the app is made.
        os.environ["NO_COLOR"] = "1"
    where = paths(os.environ)
    terminal = abilities(os.environ, sys.stderr.encoding)
    app = GputopApp(session, load_themes(where.themes), terminal, PresenceFile(where.runtime))
    return run(app, mouse=session.config.mouse)


def _keep_off_the_screen() -> None:
    # A line on stderr would land in the middle of the screen.
    logging.lastResort = None
