"""Commands as a shell meets them: exit codes, streams, options on both sides, signals."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

REPO = Path(__file__).parents[2]
SCHEMAS = REPO / "docs" / "schema"
XML = """<?xml version="1.0" ?>
<nvidia_smi_log><timestamp>Mon Apr 14 12:55:43 2025</timestamp><driver_version>570.86.15</driver_version>
<attached_gpus>1</attached_gpus><gpu id="00000000:04:00.0"><product_name>NVIDIA H100</product_name>
<uuid>GPU-19816bb5-5b5f-3a1b-5c48-e373a49c372b</uuid>
<fb_memory_usage><total>81559 MiB</total><reserved>469 MiB</reserved><used>1 MiB</used><free>81090 MiB</free>
</fb_memory_usage><utilization><gpu_util>7 %</gpu_util></utilization></gpu></nvidia_smi_log>
"""


def _run(*arguments: str, timeout: float = 60, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gputop", *arguments],
        check=False, capture_output=True, text=True, timeout=timeout, cwd=REPO, stdin=subprocess.DEVNULL,
        env={**os.environ, "GPUTOP_CONFIG_DIR": "/nonexistent", **env},
    )  # fmt: skip


@pytest.fixture
def bundle(tmp_path: Path) -> str:
    path = tmp_path / "gpu-a03.xml"
    path.write_text(XML, encoding="utf-8")
    return str(path)


def test_the_screen_needs_a_terminal_and_says_what_to_do() -> None:
    done = _run()
    assert done.returncode == 2
    assert "gputop snapshot" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("side", ["before", "after"])
def test_options_stand_before_or_after_the_command(bundle: str, side: str) -> None:
    words = ["--bundle", bundle]
    done = _run(*words, "snapshot", "--json") if side == "before" else _run("snapshot", "--json", *words)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    (gpu,) = answer["gpus"]
    assert (answer["schema"], answer["mark"]) == ("gputop.snapshot/1", "BUNDLE")
    assert (gpu["utilization"]["value"], gpu["memory_used_mib"]["value"]) == (7, 1)
    assert gpu["node"] == "gpu-a03"


def test_ages_in_a_bundle_count_from_its_capture(bundle: str) -> None:
    (gpu,) = json.loads(_run("snapshot", "--json", "--bundle", bundle).stdout)["gpus"]
    assert gpu["utilization"]["age_s"] == 0.0
    assert gpu["utilization"]["state"] == "ok"


def test_nothing_to_read_is_3_with_words_on_what_was_looked_for() -> None:
    done = _run("snapshot", "--no-detect")
    assert (done.returncode, done.stdout) == (3, "")
    assert "detection is off" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--interval", "0"],
        ["snapshot", "--bogus"],
        ["no-such-command"],
        ["snapshot", "--pane", "foo"],
        ["snapshot", "--at", "garbage"],
        ["doctor", "--bundle", "no-such-file"],
        ["snapshot", "--demo", "--bundle", str(REPO / "README.md")],
        ["snapshot", "--demo", "no-such-file.toml"],
        ["doctor", "--log-file", "no-such-folder/log"],
    ],
    ids=" ".join,
)
def test_a_mistake_is_2_and_no_traceback(arguments: list[str]) -> None:
    done = _run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


def test_a_scenario_that_is_none_is_2_with_the_near_one() -> None:
    done = _run("snapshot", "--demo", "healty-node")
    assert done.returncode == 2
    assert "did you mean healthy-node" in done.stderr


@pytest.mark.parametrize("command", ["snapshot", "doctor"])
def test_every_command_logs_the_states_of_sources_and_no_secret(command: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    secret = "a-very-secret-word"
    done = _run(
        command, "--no-nvml", "--prometheus", "http://127.0.0.1:9", "--log-file", str(log),
        GPUTOP_PROMETHEUS_TOKEN=secret,
    )  # fmt: skip
    assert done.returncode == 3
    (line,) = [one for one in log.read_text(encoding="utf-8").splitlines() if "source prometheus: down: " in one]
    assert " INFO " in line
    assert secret not in log.read_text(encoding="utf-8")


def test_a_source_that_does_not_answer_is_3_with_its_reason() -> None:
    done = _run("snapshot", "--no-nvml", "--prometheus", "http://127.0.0.1:9", "--timeout", "5")
    assert done.returncode == 3
    assert "connection refused" in done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_reports_the_demo_and_fits_its_schema() -> None:
    done = _run("doctor", "--json", "--demo", "healthy-node", "--nvml-only")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["schema"] == "gputop.doctor/1"
    jsonschema.validate(report, json.loads((SCHEMAS / "gputop.doctor.1.json").read_text(encoding="utf-8")))
    assert [s["name"] for s in report["sources"]] == ["nvml"]
    (source,) = report["sources"]
    assert source["versions"]["driver"]
    rights = {one["name"]: one["ok"] for one in source["permissions"]}
    assert rights["Xid events"] is True
    assert rights["ECC"] is True
    assert rights["MIG"] is None


def test_doctor_says_since_when_a_source_is_as_it_is() -> None:
    done = _run("doctor", "--no-nvml", "--prometheus", "http://127.0.0.1:9")
    assert done.returncode == 3
    assert re.search(
        r"^prometheus: down since \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ \(\d+s\), no data yet", done.stdout, re.MULTILINE
    )


def test_watch_goes_on_until_it_is_told_to_end() -> None:
    command = [sys.executable, "-m", "gputop", "snapshot", "--watch", "--demo", "healthy-node", "--nvml-only"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPO) as process:
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
    assert lines[0]["at"] < lines[1]["at"]


def test_a_demo_of_nvml_alone_starts_no_server() -> None:
    command = [sys.executable, "-m", "gputop", "snapshot", "--watch", "--demo", "healthy-node", "--nvml-only"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPO) as process:
        assert process.stdout is not None
        process.stdout.readline()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
        words = [Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in children]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
    assert [b"gputop.demo.nvml" in one for one in words] == [True]


def test_a_reader_that_goes_away_is_no_error_message(bundle: str) -> None:
    shell = f"{sys.executable} -m gputop snapshot --json --bundle {bundle} | head -c 1 >/dev/null"
    done = subprocess.run(["bash", "-c", shell], check=False, capture_output=True, text=True, cwd=REPO)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_of_that_shell(shell: str) -> None:
    done = _run("completion", shell)
    assert done.returncode == 0
    assert "_GPUTOP_COMPLETE" in done.stdout


def test_release_without_a_screen_says_so(tmp_path: Path) -> None:
    done = _run("release", "--json", "--proc-root", str(tmp_path), XDG_RUNTIME_DIR=str(tmp_path))
    assert done.returncode == 0
    answer = json.loads(done.stdout)
    assert answer == {"schema": "gputop.release/1", "told": [], "holders": [], "unread": 0}
    jsonschema.validate(answer, json.loads((SCHEMAS / "gputop.release.1.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("content", [b"", b"\x00\xff" * 500, b"no such thing\n"])
def test_a_bundle_in_which_nothing_can_be_read_is_3_with_the_reason(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file.txt").write_bytes(content)
    done = _run("snapshot", "--bundle", str(tmp_path))
    assert done.returncode == 3
    assert "nothing in it that gputop reads" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_ends_a_watch_with_141(bundle: str) -> None:
    shell = (
        f"{sys.executable} -m gputop snapshot --watch --bundle {bundle} | head -n 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", shell], check=False, capture_output=True, text=True, cwd=REPO, timeout=60)
    assert done.stdout.strip() == "141"
    assert "Traceback" not in done.stderr
