"""Speed as ratios in one run, beside nvitop over the same simulated NVML and a bare Textual app.

`make bench` prints what each budget came to and fails if one is missed; it is no part of `make test`, whose
result is not to depend on how busy a machine is.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from msgspec import Struct

from tests.bench.latency import latency
from tests.bench.measure import Measured, first_frame_s, measure

pytestmark = pytest.mark.bench

SECONDS, ROUNDS, KEYS = 15.0, 2, 200
PYTHON = sys.executable
SCREEN = [PYTHON, "-m", "tests.bench.nvml_screen"]
BARE = [PYTHON, "-m", "tests.bench.bare_app"]
PROGRAMS = {
    "nvitop": [PYTHON, "-m", "gputop.demo.nvml", "--scenario", "healthy-node", "--", "-m", "nvitop", "-m", "full"],
    "gputop": [*SCREEN, "healthy-node"],
    "gputop, ansi theme": [*SCREEN, "healthy-node", "--theme", "ansi"],
}
FLEET = [PYTHON, "-m", "gputop", "demo", "fleet", "--pane"]


class Budget(Struct, frozen=True):
    """What was measured against what it may be."""

    what: str
    came_to: float
    at_most: float
    unit: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether it is no more than it may be."""
        return self.came_to <= self.at_most

    def __str__(self) -> str:
        kept = "kept" if self.is_kept else "MISSED"
        return f"{self.what:52}{self.came_to:8.2f}{self.unit:3} at most {self.at_most:g}{self.unit}: {kept}"


@pytest.fixture(scope="module")
def budgets() -> list[Budget]:
    """All that was measured so far."""
    return []


def _median(rows: list[Measured], field: str) -> float:
    return statistics.median(getattr(row, field) for row in rows)


def _in_turn(one: Callable[[], float], other: Callable[[], float], rounds: int) -> float:
    """Return the ratio of two medians, measured in turn."""
    times = [(one(), other()) for _ in range(rounds)]
    return statistics.median(a for a, _ in times) / statistics.median(b for _, b in times)


def test_the_screen_beside_nvitop(budgets: list[Budget]) -> None:
    rows: dict[str, list[Measured]] = {name: [] for name in PROGRAMS}
    for _ in range(ROUNDS):
        for name, command in PROGRAMS.items():
            rows[name].append(measure(command, seconds=SECONDS))
    fields = Measured.__struct_fields__
    print(f"\n{'8 GPUs, 1 Hz, 200x50':24}" + "".join(f"{f:>14}" for f in fields))
    for name, several in rows.items():
        print(f"{name:24}" + "".join(f"{_median(several, f):14.2f}" for f in fields))
    ours, theirs = rows["gputop"], rows["nvitop"]
    for field, most in (("cpu_percent", 0.7), ("bytes_per_s", 1.0)):
        budgets.append(Budget(f"{field}, of nvitop's", _median(ours, field) / _median(theirs, field), most))
    budgets.append(Budget("memory of all processes", _median(ours, "memory_mb"), 70, "MB"))
    assert all(row.bytes_per_s > 0 for row in ours)


def test_first_frame_beside_a_bare_textual_app(budgets: list[Budget]) -> None:
    ours = [PYTHON, "-m", "gputop", "--nvml-only"]
    first_frame_s(ours)
    ratio = _in_turn(lambda: first_frame_s(ours), lambda: first_frame_s(BARE), 9)
    budgets.append(Budget("first frame, of a bare Textual app's", ratio, 1.3))
    assert ratio > 0


def test_version_beside_importing_argparse(budgets: list[Budget]) -> None:
    def cost_s(*arguments: str) -> float:
        began = time.perf_counter()
        subprocess.run([PYTHON, *arguments], check=True, capture_output=True)
        return time.perf_counter() - began

    cost_s("-m", "gputop", "--version")
    ratio = _in_turn(lambda: cost_s("-m", "gputop", "--version"), lambda: cost_s("-c", "import argparse"), 15)
    budgets.append(Budget("--version, of importing argparse", ratio, 1.3))
    assert ratio > 0


def test_quit_with_a_call_that_blocks(budgets: list[Budget]) -> None:
    blocked = measure([*SCREEN, "tests/fixtures/scenarios/blocked-call.toml"], seconds=3.0)
    budgets.append(Budget("quit with an NVML call blocked for 30 s", blocked.quit_s, 1.0, "s"))
    assert blocked.bytes_per_s > 0


@pytest.mark.parametrize("pane", ["fleet", "gpus"])
def test_a_key_while_10240_gpus_are_read(budgets: list[Budget], pane: str) -> None:
    told = latency([*FLEET, pane], ready="1281 nodes", keys=KEYS)
    print(f"\n10,240 GPUs, {pane}: {told}")
    budgets.append(Budget(f"10,240 GPUs, {pane}: key to paint, 99th percentile", told.p99_ms, 50, "ms"))
    budgets.append(Budget(f"10,240 GPUs, {pane}: memory without the demo", told.memory_mb, 400, "MB"))
    assert told.keys == KEYS


def test_every_budget_is_kept(budgets: list[Budget]) -> None:
    print("\n", *budgets, sep="\n")
    assert budgets
    assert [str(b) for b in budgets if not b.is_kept] == []
