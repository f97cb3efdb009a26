"""Other programs over the simulated NVML, in processes of their own."""

import subprocess
import sys

import pytest

from gputop.demo import scenario
from gputop.demo.launcher import start
from gputop.demo.nvml import Settings
from gputop.demo.scenario import ScenarioError


def over_fake(*arguments, program):
    return subprocess.run(
        [sys.executable, "-m", "gputop.demo.nvml", *arguments, "--", *program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("node", scenario.node_names(scenario.load("zoo")))
def test_nvitop_runs_over_every_kind_of_node(node):
    done = over_fake("--scenario", "zoo", "--node", node, program=["-m", "nvitop", "-1"])
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "Driver Version" in done.stdout
    count = next(group.gpus for group in scenario.load("zoo").nodes if group.name == node)
    assert f"│   {count - 1} " in done.stdout


def test_nvitop_shows_what_the_scenario_says():
    done = over_fake("--scenario", "healthy-node", program=["-m", "nvitop", "-1"])
    assert "570.133.20" in done.stdout
    assert done.stdout.count("H100 80GB HBM3") == 8
    assert done.stdout.count("No Such Process") == 7


def test_nvitop_lists_mig_devices():
    done = over_fake("--scenario", "mig", "--node", "mig-001", program=["-m", "nvitop", "-1"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("3g.40gb @ GI/CI") == 2


SCRIPT = """
import sys
import pynvml
pynvml.nvmlInit()
print(sys.argv, pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(0)))
"""


def test_a_script_gets_its_arguments_and_the_demos_own_boards(tmp_path):
    script = tmp_path / "read.py"
    script.write_text(SCRIPT)
    with start("default", seed=4) as demo:
        command = [*demo.nvml_command("lab-001"), str(script), "--flag"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        folder = demo.host_folder("lab-001")
        assert (folder / "proc" / "driver" / "nvidia" / "version").is_file()
    world = Settings(scenario="default", seed=4).world()
    assert world.by_name["lab-001"].gpus[0].uuid in done.stdout
    assert "--flag" in done.stdout
    assert not folder.exists()


def test_the_environment_carries_the_same_settings():
    settings = Settings(scenario="mig", node="mig-002", seed=9, started=1_790_000_000.25)
    assert Settings.decode(settings.encode()) == settings
    for broken in ("scenario=mig;colour=red", "seed=many", "started=nan"):
        with pytest.raises(ScenarioError):
            Settings.decode(broken)


def test_a_program_without_a_scenario_says_so():
    done = over_fake("--scenario", "nowhere", program=["-m", "nvitop", "-1"])
    assert done.returncode == 2
    assert "built-in scenarios" in done.stderr


def test_the_launcher_is_light_to_import():
    heavy = ("pynvml", "http.server", "requests", "textual", "gputop.demo.world", "gputop.demo.scenario")
    code = f"import sys, gputop.demo.launcher; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
