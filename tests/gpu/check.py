"""``make gpu-check``: what gputop needs of NVML, tried on the real GPUs of this machine, within 5 minutes.

It runs ``pytest -m gpu``, then records what each device answers as a fixture: one answer, or the name of the
error, for each function and field, how long every NVML call of gputop took, and which were refused. UUIDs and
serial numbers in it are made up; nothing of the machine's users is in it. Both parts run in processes of their
own under one deadline: when a call hangs, its name is said, what was recorded until then is kept, and the exit
status is 1.

    python -m tests.gpu.check [--output FILE] [--skip-tests] [--repeat N] [--deadline SECONDS] [--patience SECONDS]
"""

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from gputop.sources.nvml.marker import NO_DEVICE, MarkerPage, Pending

REPO: Final = Path(__file__).resolve().parents[2]
_DEADLINE_S: Final = 280.0
_TESTS_S: Final = 150.0
_PATIENCE_S: Final = 60.0
_END_S: Final = 2.0
_STEP_S: Final = 0.1


def default_output(model: str, driver: str) -> Path:
    """Return where a fixture belongs."""
    stem = re.sub(r"[^a-z0-9.]+", "-", f"{model}-{driver}".lower()).strip("-")
    return REPO / "tests" / "fixtures" / "nvml" / f"{stem}.json"


def model_of(fixture: dict[str, Any]) -> str:
    """Return the name of the first GPU that tells it."""
    for gpu in fixture["gpus"]:
        answer = gpu.get("calls", {}).get("nvmlDeviceGetName()", {})
        if "value" in answer:
            return str(answer["value"][0])
    return "unknown"


def run_until(
    command: Sequence[str], deadline: float, descriptor: int | None = None, stuck: Callable[[], bool] = lambda: False
) -> int | None:
    """Run a program in a group of its own; return its exit status, None when it had to be killed.

    Args:
        command: Its words.
        deadline: Monotonic time of its end.
        descriptor: A file descriptor for it to inherit.
        stuck: Asked now and then whether it is of no use to wait for it any longer.
    """
    keep = () if descriptor is None else (descriptor,)
    process = subprocess.Popen(command, cwd=REPO, start_new_session=True, pass_fds=keep)
    try:
        while (left := deadline - time.monotonic()) > 0.0 and not stuck():
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(min(_STEP_S, left))
        return None
    finally:
        # What is stuck in the driver dies when the driver lets it; that is not waited for.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)


def words_for(pending: Pending | None) -> str:
    """Return which call hangs, for people."""
    if pending is None:
        return "the recording was stopped between two calls"
    where = f" on GPU {pending.device}" if pending.device != NO_DEVICE else ""
    return f"{pending.call}{where} has not returned for {pending.seconds:.0f} s"


def record_until(output: Path, repeat: int, deadline: float, patience_s: float) -> tuple[int, str]:
    """Record into a file; return the exit status and what went wrong.

    Args:
        output: The file.
        repeat: How many rounds are timed.
        deadline: Monotonic time of its end.
        patience_s: How long one call is waited for.
    """
    hanging: list[Pending] = []

    def hangs() -> bool:
        pending = page.pending()
        if pending is not None and pending.seconds > patience_s:
            hanging.append(pending)
        return bool(hanging)

    page = MarkerPage()
    command = [
        sys.executable, "-m", "tests.gpu.record", "--output", str(output), "--repeat", str(repeat),
        "--marker-fd", str(page.fd),
    ]  # fmt: skip
    try:
        status = run_until(command, deadline, page.fd, hangs)
        return (1, words_for(hanging[0] if hanging else page.pending())) if status is None else (status, "")
    finally:
        page.close()


def main() -> int:
    """Run the check and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, help="where the fixture goes (tests/fixtures/nvml/MODEL-DRIVER.json)")
    parser.add_argument("--skip-tests", action="store_true", help="do not run pytest -m gpu")
    parser.add_argument("--repeat", type=int, default=20, help="how many rounds of reading are timed (20)")
    parser.add_argument("--deadline", type=float, default=_DEADLINE_S, help="seconds for all of it (280)")
    parser.add_argument("--patience", type=float, default=_PATIENCE_S, help="seconds one call is waited for (60)")
    options = parser.parse_args()
    deadline = time.monotonic() + options.deadline
    status = 0
    if not options.skip_tests:
        command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", str(REPO / "tests" / "gpu")]
        ended = run_until(command, min(deadline, time.monotonic() + _TESTS_S))
        if ended is None:
            print("the tests were stopped: they did not end in time", file=sys.stderr)
        status = 1 if ended is None else ended
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "fixture.json"
        recorded, trouble = record_until(made, options.repeat, deadline, options.patience)
        if trouble:
            print(trouble, file=sys.stderr)
        if made.exists():
            fixture = json.loads(made.read_text(encoding="utf-8"))
            if trouble:
                fixture["stopped"] = trouble
            output = options.output or default_output(model_of(fixture), fixture["driver"])
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(json.dumps(fixture, indent=1) + "\n", encoding="utf-8")
            print(f"written: {output}")
    return status or recorded


if __name__ == "__main__":
    sys.exit(main())
