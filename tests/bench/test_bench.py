"""Speed as ratios in one run, beside nvitop over the same simulated NVML and a bare Textual app.

Nothing here fails by the clock of one machine: `make bench` prints the table, and what is asserted is that each
program ran at all.
"""

import statistics
import subprocess
import sys
import time

import pytest

from tests.bench.measure import Measured, measure

pytestmark = pytest.mark.bench

SECONDS, ROUNDS = 15.0, 2
PYTHON = sys.executable
PROGRAMS = {
    "nvitop": [PYTHON, "-m", "gputop.demo.nvml", "--scenario", "healthy-node", "--", "-m", "nvitop", "-m", "full"],
    "gputop": [PYTHON, "-m", "tests.bench.nvml_screen"],
    "gputop, ansi theme": [PYTHON, "-m", "tests.bench.nvml_screen", "healthy-node", "ansi"],
    "bare Textual": [PYTHON, "-m", "tests.bench.bare_app"],
}


def _median(rows: list[Measured], field: str) -> float:
    return statistics.median(getattr(row, field) for row in rows)


def test_the_screen_beside_nvitop_and_a_bare_app() -> None:
    rows: dict[str, list[Measured]] = {name: [] for name in PROGRAMS}
    for _ in range(ROUNDS):
        for name, command in PROGRAMS.items():
            rows[name].append(measure(command, seconds=SECONDS))
    fields = Measured.__struct_fields__
    print(f"\n{'8 GPUs, 1 Hz, 200x50':24}" + "".join(f"{f:>14}" for f in fields))
    for name, several in rows.items():
        print(f"{name:24}" + "".join(f"{_median(several, f):14.2f}" for f in fields))
    ours, theirs, bare = rows["gputop"], rows["nvitop"], rows["bare Textual"]
    for field, budget in (("cpu_percent", 0.7), ("bytes_per_s", 1.0)):
        print(f"{field} of nvitop's: {_median(ours, field) / _median(theirs, field):.2f} (at most {budget})")
    print(f"first frame of a bare app's: {_median(ours, 'first_s') / _median(bare, 'first_s'):.2f} (at most 1.3)")
    print(f"memory: {_median(ours, 'memory_mb'):.0f} MB (at most 70)")
    assert all(row.bytes_per_s > 0 for row in ours)


def test_version_beside_importing_argparse() -> None:
    def cost_s(*arguments: str) -> float:
        times = []
        for _ in range(9):
            began = time.perf_counter()
            subprocess.run([PYTHON, *arguments], check=True, capture_output=True)
            times.append(time.perf_counter() - began)
        return statistics.median(times)

    ratio = cost_s("-m", "gputop", "--version") / cost_s("-c", "import argparse")
    print(f"\n--version of importing argparse: {ratio:.2f} (at most 1.3)")
    assert ratio > 0
