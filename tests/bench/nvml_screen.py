"""`gputop --nvml-only` over the simulated NVML, as on a machine with GPUs: what the benchmark measures.

python -m tests.bench.nvml_screen SCENARIO [options of gputop]
"""

import sys

from gputop.cli import main
from gputop.sources.nvml import source


def _run(scenario: str, *options: str) -> None:
    def command() -> tuple[str, ...]:
        demo = ("-m", "gputop.demo.nvml", "--scenario", scenario, "--")
        return sys.executable, *demo, "-m", "gputop.sources.nvml.child"

    # All but the library that the child loads is what a user runs, the command line included.
    source.default_command = command
    sys.argv = ["gputop", "--nvml-only", "--pane", "gpus", "--no-mouse", *options]
    main()


if __name__ == "__main__":
    _run(*sys.argv[1:])
