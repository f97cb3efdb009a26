"""Starting the simulated cluster in a process of its own, so that its work is not the reader's."""

import os
import selectors
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

import msgspec


class DemoError(Exception):
    """The demo did not start; the message is its own words."""


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    """Where the demo answers.

    ``prometheus`` is the base URL of the API, ``exporters`` the page of each node's exporter by node,
    ``fault`` the switches of HTTP faults, ``started`` the unix time of the scenario's start.
    """

    prometheus: str
    fault: str
    kube_state_metrics: str
    exporters: dict[str, str]
    nodes: list[str]
    started: float


class DemoHandle:
    """A demo. Use it as a context manager, or call :meth:`close`. Without a process it has no servers."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes] | None",
        endpoints: Endpoints,
        scenario: str,
        seed: int,
        nodes: int | None,
    ) -> None:
        self.endpoints = endpoints
        self.scenario = scenario
        self.seed = seed
        self._nodes = nodes
        self._process = process
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def pid(self) -> int | None:
        """The id of the demo's process, None where there is none."""
        return self._process.pid if self._process is not None else None

    def nvml_environment(self, node: str = "") -> dict[str, str]:
        """Return the variable that makes a child of this demo show a node (the first where empty)."""
        settings = {
            "scenario": self.scenario,
            "node": node,
            "seed": self.seed,
            "nodes": self._nodes or 0,
            "started": self.endpoints.started,
        }
        return {"GPUTOP_DEMO_NVML": ";".join(f"{key}={value}" for key, value in settings.items())}

    def nvml_command(self, node: str = "") -> list[str]:
        """Return the words to put before ``-m MODULE …`` so that it runs over a node's simulated NVML."""
        command = [
            sys.executable,
            "-m",
            "gputop.demo.nvml",
            "--scenario",
            self.scenario,
            "--seed",
            str(self.seed),
        ]
        command += ["--started", repr(self.endpoints.started)]
        command += ["--node", node] if node else []
        command += ["--nodes", str(self._nodes)] if self._nodes else []
        return [*command, "--"]

    def host_folder(self, node: str = "") -> Path:
        """Write the ``proc`` and ``sys`` of a node as they are now, and return the folder that holds both."""
        # The world is built here only for whoever wants local files, and costs what its nodes cost.
        from gputop.demo import hostfs, scenario  # noqa: PLC0415 - the parent needs neither
        from gputop.demo.world import World  # noqa: PLC0415 - as above

        loaded = scenario.load(self.scenario)
        world = World(scenario.resized(loaded, self._nodes) if self._nodes else loaded, self.seed)
        found = world.by_name[node] if node else world.nodes[0]
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="gputop-demo-")
        folder = Path(self._folder.name) / found.name
        hostfs.write(found, time.time() - self.endpoints.started, folder)
        return folder

    def close(self) -> None:
        """Stop the demo and remove its files."""
        if self._process is not None:
            _end(self._process)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(timeout=2.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def without_servers(scenario: str, seed: int, nodes: int | None) -> DemoHandle:
    """Return a demo of which only the simulated NVML is read, so that no process of its own is needed.

    Args:
        scenario: A built-in name or the path of a TOML file.
        seed: Same seed, same cluster.
        nodes: Resize the scenario to so many nodes.

    Raises:
        ScenarioError: The scenario cannot be used.
    """
    from gputop.demo import scenario as scenarios  # noqa: PLC0415 - as in `host_folder`

    loaded = scenarios.load(scenario)
    names = scenarios.node_names(scenarios.resized(loaded, nodes) if nodes else loaded)
    endpoints = Endpoints(
        prometheus="", fault="", kube_state_metrics="", exporters={}, nodes=names, started=time.time()
    )
    return DemoHandle(None, endpoints, scenario, seed, nodes)


def start(
    scenario: str = "default",
    seed: int = 0,
    nodes: int | None = None,
    *,
    started: float | None = None,
    timeout_s: float = 30.0,
) -> DemoHandle:
    """Start a demo and wait until it answers.

    Args:
        scenario: A built-in name or the path of a TOML file.
        seed: Same seed, same cluster.
        nodes: Resize the scenario to so many nodes.
        started: Unix time of the scenario's start; now where omitted.
        timeout_s: How long to wait.

    Raises:
        DemoError: It did not start, with what it said.
    """
    command = [sys.executable, "-m", "gputop.demo", "--scenario", scenario, "--seed", str(seed)]
    command += ["--nodes", str(nodes)] if nodes else []
    command += ["--started", repr(started)] if started else []
    # Words and data share one pipe: after the first line the demo writes nothing, and nothing of it may reach
    # the terminal that the reader draws on.
    process = subprocess.Popen(  # noqa: S603  (fixed words and this interpreter)
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment(),
        start_new_session=True,
    )
    line = _first_line(process, timeout_s)
    try:
        endpoints = msgspec.json.decode(line, type=Endpoints)
    except msgspec.MsgspecError as error:
        process.kill()
        rest, _ = process.communicate()
        said = (line + rest).decode("utf-8", "replace").strip()
        raise DemoError(said or f"the demo did not answer within {timeout_s:g} s") from error
    return DemoHandle(process, endpoints, scenario, seed, nodes)


def _environment() -> dict[str, str]:
    """Return the environment with this package importable, wherever the program was started from."""
    root = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH", "")
    return os.environ | {"PYTHONPATH": os.pathsep.join(part for part in (root, known) if part)}


def _first_line(process: "subprocess.Popen[bytes]", timeout_s: float) -> bytes:
    stream = process.stdout
    if stream is None:
        return b""
    found = b""
    deadline = time.monotonic() + timeout_s
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while b"\n" not in found and selector.select(max(0.0, deadline - time.monotonic())):
            chunk = os.read(stream.fileno(), 65536)
            if not chunk:
                break
            found += chunk
    return found
