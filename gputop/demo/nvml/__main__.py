"""``python -m gputop.demo.nvml [--scenario S] [--node NAME] [--seed N] -- PROGRAM …``.

PROGRAM is ``-m MODULE`` or a script, with its arguments. It runs in this process, over the simulated library.
"""

import argparse
import os
import runpy
import sys
import time
from pathlib import Path

from gputop.demo.nvml.install import ENVIRONMENT, Settings, install
from gputop.demo.scenario import DEFAULT, ScenarioError


def main(arguments: list[str]) -> int:
    """Install the library, then run the program as ``python`` would."""
    own, _, program = _split(arguments)
    parser = argparse.ArgumentParser(
        prog="python -m gputop.demo.nvml", description="Run a program over a simulated NVML."
    )
    given = Settings.decode(os.environ.get(ENVIRONMENT, ""))
    parser.add_argument("--scenario", default=given.scenario or DEFAULT, help="built-in name or TOML file")
    parser.add_argument("--node", default=given.node, help="node to show (the first)")
    parser.add_argument("--seed", type=int, default=given.seed)
    parser.add_argument("--nodes", type=int, default=given.nodes, help="resize the scenario to so many nodes")
    parser.add_argument("--started", type=float, default=given.started, help="unix time of the scenario's start (now)")
    options = parser.parse_args(own)
    if not program:
        parser.error("nothing to run: add -- -m MODULE or -- SCRIPT")
    started = options.started or time.time()
    settings = Settings(
        scenario=options.scenario, node=options.node, seed=options.seed, nodes=options.nodes, started=started
    )
    try:
        install(settings.world(), options.node, started)
    except ScenarioError as error:
        parser.error(str(error))
    # Children of the program that ask for it see the same node at the same time.
    os.environ[ENVIRONMENT] = settings.encode()
    if program[0] == "-m":
        if len(program) < 2:
            parser.error("-m needs a module")
        sys.argv = program[1:]
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = program
        sys.path.insert(0, str(Path(program[0]).parent))
        runpy.run_path(program[0], run_name="__main__")
    return 0


def _split(arguments: list[str]) -> tuple[list[str], str, list[str]]:
    if "--" not in arguments:
        return arguments, "", []
    place = arguments.index("--")
    return arguments[:place], "--", arguments[place + 1 :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
