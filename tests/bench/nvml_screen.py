"""The screen over the simulated NVML alone, as on a machine with 8 GPUs: what the benchmark measures.

python -m tests.bench.nvml_screen [SCENARIO] [options of gputop]
"""

import os
import sys
from pathlib import Path

from gputop.app import GputopApp, run
from gputop.config.config import load
from gputop.session import Session
from gputop.sources.nvml.source import NvmlSource
from gputop.terminal import abilities
from gputop.themes.loader import load_themes


def main() -> int:
    """Run the screen until it is left."""
    scenario = sys.argv[1] if len(sys.argv) > 1 else "healthy-node"
    flags = {"pane": "gpus", "nvml_only": True}
    if len(sys.argv) > 2:
        flags["theme"] = sys.argv[2]
    config = load(flags, {}, Path("/nonexistent"))
    child = ["-m", "gputop.sources.nvml.child"]
    command = [sys.executable, "-m", "gputop.demo.nvml", "--scenario", scenario, "--", *child]
    session = Session(config, [NvmlSource("gpu-001", command, "bench")])
    return run(GputopApp(session, load_themes(None), abilities(os.environ, sys.stderr.encoding)), mouse=False)


if __name__ == "__main__":
    sys.exit(main())
