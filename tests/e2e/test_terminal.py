"""The screen in a real terminal: how it is left, what it writes, and in which colours."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.pty_program import Program

REPO = Path(__file__).parents[2]
GPUTOP = [sys.executable, "-m", "gputop"]
DEMO = [*GPUTOP, "demo", "healthy-node", "--nvml-only"]
SHOWN = "llm-pretrain"
PLAIN = {"GPUTOP_CONFIG_DIR": "/nonexistent"}
GIVEN_BACK = (b"\x1b[?1049l", b"\x1b[?25h")
SGR = re.compile(rb"\x1b\[([0-9;]*)m")
COLOURS = {*range(30, 39), *range(40, 49), *range(90, 98), *range(100, 108)}
DEEP = {38, 48}
"""What begins a colour that a terminal of 16 colours does not know."""


def _colours(written: bytes) -> set[int]:
    """Return the numbers in all that sets a style and that set a colour."""
    return {int(n) for part in SGR.findall(written) for n in part.split(b";") if n} & COLOURS


@pytest.fixture(autouse=True)
def _in_repo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPO)


def _start(*command: str, env: dict[str, str] | None = None, columns: int = 120, lines: int = 30) -> Program:
    return Program(command, columns, lines, {**PLAIN, **(env or {})})


def _shows(program: Program, wanted: str) -> None:
    screen = program.read_until_shown(wanted, 15)
    assert wanted in screen, screen


@pytest.mark.parametrize(
    ("how", "code"), [(b"q", 0), (b"\x03", 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_the_terminal_is_given_back_on_every_way_out(how: bytes | signal.Signals, code: int) -> None:
    with _start(*DEMO) as program:
        _shows(program, SHOWN)
        if isinstance(how, bytes):
            os.write(program.fd, how)
        else:
            os.kill(program.pid, how)
        written = program.wait(20)
    assert program.status == code
    assert all(sequence in written for sequence in GIVEN_BACK)


@pytest.mark.parametrize("unread_s", [0.0, 3.0])
def test_a_lost_terminal_ends_the_program(unread_s: float) -> None:
    with _start(*DEMO, columns=200, lines=50) as program:
        _shows(program, SHOWN)
        # A terminal that takes nothing any more, as behind a broken link: writes pile up before it is gone.
        program.leave_unread(unread_s)
        program.hang_up()
        program.wait(20)
    assert program.status == 129


def test_an_error_in_the_program_gives_the_terminal_back_and_says_itself() -> None:
    broken = (
        "import sys; from gputop.screens.main import MainScreen\n"
        "def steps(self):\n    raise RuntimeError('this went wrong')\n    yield\n"
        "MainScreen.steps = steps\n"
        f"sys.argv = ['gputop', *{DEMO[3:]!r}]\n"
        "from gputop.cli import main; main()"
    )
    with _start(sys.executable, "-c", broken) as program:
        written = program.wait(30)
    assert program.status == 1
    assert all(sequence in written for sequence in GIVEN_BACK)
    assert b"this went wrong" in written.rpartition(GIVEN_BACK[0])[2]


def test_quit_does_not_wait_for_a_call_that_blocks() -> None:
    scenario = "tests/fixtures/scenarios/blocked-call.toml"
    with _start(sys.executable, "-m", "tests.bench.nvml_screen", scenario) as program:
        _shows(program, "has not answered")
        took_s = program.quit()
    assert program.status == 0
    # The call itself takes 30 s.
    assert took_s < 15


def test_a_screen_on_which_nothing_changes_writes_nothing(tmp_path: Path) -> None:
    text = (
        "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
        'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-19816bb5-5b5f-3a1b-5c48-e373a49c372b",pci_bus_id="00000000:04:00.0",'
        'device="nvidia0",modelName="NVIDIA H100",Hostname="gpu-a03"} 7\n'
    )
    (tmp_path / "metrics.txt").write_text(text)
    with _start(*GPUTOP, "--bundle", str(tmp_path)) as program:
        _shows(program, "7%")
        program.read_for(2.0)
        # Time stands still in a bundle, so not even the clock goes on.
        assert program.read_for(3.5) == b""
        program.quit()


def test_a_live_screen_on_which_nothing_changes_writes_its_clock_alone() -> None:
    still = (
        "import sys, asyncio, time; sys.path.insert(0, '.')\n"
        "from tests.e2e.rig import Told, app\n"
        "from gputop.app import run\n"
        "from gputop.model.facts import GpuFact, Roster\n"
        "from gputop.model.identity import GpuRef, NodeRef\n"
        "ref = GpuRef('gpu-a03', uuid='GPU-19816bb5-5b5f-3a1b-5c48-e373a49c372b', index=0)\n"
        "source = Told(GpuFact(ref, {'utilization': 7.0}), Roster(NodeRef('gpu-a03'), (ref,)))\n"
        "run(app(source, pane='gpus'), mouse=False)"
    )
    with _start(sys.executable, "-c", still, columns=80, lines=24) as program:
        _shows(program, "7%")
        program.read_for(2.0)
        ticks = [program.read_for(1.0) for _ in range(4)]
        program.quit()
    # The clock, and the ages of the row and of the source, which count with it.
    assert all(0 < len(_drawn(tick)) <= 8 for tick in ticks if tick), ticks
    assert any(ticks)


def _drawn(written: bytes) -> str:
    """Return the characters that are drawn, without what moves the cursor and sets styles."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode())


@pytest.mark.parametrize(("options", "env"), [(["--no-color"], {}), ([], {"NO_COLOR": "1"})])
def test_without_colours_none_is_written(options: list[str], env: dict[str, str]) -> None:
    with _start(*DEMO, *options, env=env) as program:
        _shows(program, SHOWN)
        written = program.written + program.read_for(1.5)
        program.quit()
    assert not _colours(written)


def test_a_terminal_of_sixteen_colours_is_sent_no_others() -> None:
    with _start(*DEMO, env={"TERM": "xterm-16color", "COLORTERM": ""}) as program:
        _shows(program, SHOWN)
        written = program.written + program.read_for(1.5)
        program.quit()
    assert _colours(written)
    assert not _colours(written) & DEEP
