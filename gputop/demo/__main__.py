"""``python -m gputop.demo``: serve a simulated cluster until standard input closes.

The first line of output is one JSON object with the addresses; see :mod:`gputop.demo.launcher`.
"""

import argparse
import json
import os
import sys
import threading
import time

from gputop.demo import scenario as scenarios
from gputop.demo.server import DemoServer
from gputop.demo.world import World


def main(arguments: list[str]) -> int:
    """Serve; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m gputop.demo", description="Serve a simulated GPU cluster.")
    parser.add_argument("--scenario", default=scenarios.DEFAULT, help="built-in name or TOML file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=0, help="resize the scenario to so many nodes")
    parser.add_argument("--port", type=int, default=0, help="loopback port (a free one)")
    parser.add_argument("--started", type=float, default=0.0, help="unix time of the scenario's start (now)")
    parser.add_argument("--stay", action="store_true", help="do not stop when standard input closes")
    options = parser.parse_args(arguments)
    try:
        scenario = scenarios.load(options.scenario)
        world = World(scenarios.resized(scenario, options.nodes) if options.nodes else scenario, options.seed)
        server = DemoServer(world, options.started or time.time(), options.port)
    except (scenarios.ScenarioError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    sys.stdout.write(json.dumps(_addresses(server)) + "\n")
    sys.stdout.flush()
    _wait(forever=options.stay)
    server.shutdown()
    return 0


def _addresses(server: DemoServer) -> dict[str, object]:
    return {
        "prometheus": server.url,
        "fault": f"{server.url}/demo/fault",
        "kube_state_metrics": f"{server.url}/ksm/metrics",
        "exporters": server.exporters(),
        "nodes": [node.name for node in server.world.nodes],
        "started": server.started,
    }


def _wait(*, forever: bool) -> None:
    try:
        # An end of file is how a parent that died, or closed its demo, makes itself known.
        while forever or os.read(0, 4096):
            if forever:
                threading.Event().wait()
    except (KeyboardInterrupt, OSError):
        pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
