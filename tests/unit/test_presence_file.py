"""Which screens `gputop release` finds."""

import os
import subprocess
import sys
from pathlib import Path

from gputop.presence_file import PresenceFile, running


def test_a_screen_is_found_while_it_runs(tmp_path: Path) -> None:
    held = PresenceFile(tmp_path / "gputop")
    held.write()
    assert running(tmp_path / "gputop") == (os.getpid(),)
    held.remove()
    assert running(tmp_path / "gputop") == ()


def test_a_file_left_behind_names_nobody_and_is_taken_away(tmp_path: Path) -> None:
    # The number of a process that runs, and is none of ours: it was given out anew.
    left = tmp_path / f"{os.getppid()}.lock"
    left.touch()
    assert running(tmp_path) == ()
    assert not left.exists()


def test_a_process_that_was_killed_is_not_found(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys, time; from gputop.presence_file import PresenceFile\n"
        "held = PresenceFile(pathlib.Path(sys.argv[1])); held.write(); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert running(tmp_path) == (process.pid,)
        process.kill()
    assert running(tmp_path) == ()


def test_what_is_no_such_file_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "1.lock").symlink_to("/etc/passwd")
    (tmp_path / "x.lock").touch()
    (tmp_path / "2.lock").mkdir()
    assert running(tmp_path) == ()


def test_a_folder_that_cannot_be_made_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    held = PresenceFile(tmp_path / "file" / "gputop")
    held.write()
    held.remove()
    assert running(tmp_path / "file" / "gputop") == ()
