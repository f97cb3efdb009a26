"""The small /proc and /sys of a simulated node."""

from gputop.demo import hostfs, scenario
from gputop.demo.world import World

TEXT = """
title = "test"
[[nodes]]
name = "n1"
gpus = 3
[[jobs]]
name = "train"
namespace = "lab"
gpus = 1
start_s = -100
duration_s = 200
user = "mara"
command = "/usr/bin/python3 train.py --lr 3e-5"
[[faults]]
kind = "gpu_missing"
node = "n1"
gpus = [1]
driver = "vfio-pci"
[[faults]]
kind = "nvml_init_error"
node = "n1"
code = 18
kernel_driver = "535.54.03"
at_s = 50
"""


def build(tmp_path, t, **options):
    node = World(scenario.parse(TEXT, "t"), 1).nodes[0]
    hostfs.write(node, t, tmp_path, **options)
    return node


def test_a_process_has_command_user_and_pod(tmp_path):
    node = build(tmp_path, 0.0)
    load = node.gpus[0].loads[0]
    folder = tmp_path / "proc" / str(load.processes[0].pid)
    assert (folder / "cmdline").read_text().split("\0")[:2] == ["/usr/bin/python3", "train.py"]
    assert (folder / "comm").read_text() == "python3\n"
    assert load.pod.uid.replace("-", "_") in (folder / "cgroup").read_text()
    status = (folder / "status").read_text()
    assert f"Uid:\t{hostfs.user_id('mara')}\t" in status
    assert hostfs.user_id("mara") != 0 == hostfs.user_id("root")
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    assert int(fields[19]) == (800_000 - 100) * 100


def test_processes_end_with_their_pod_and_hide_behind_a_namespace(tmp_path):
    build(tmp_path / "late", 150.0)
    assert not [path for path in (tmp_path / "late" / "proc").iterdir() if path.name.isdigit()]
    build(tmp_path / "inside", 0.0, namespace=True)
    assert not [path for path in (tmp_path / "inside" / "proc").iterdir() if path.name.isdigit()]


def test_pci_shows_every_board_with_the_driver_that_holds_it(tmp_path):
    build(tmp_path, 0.0)
    devices = tmp_path / "sys" / "bus" / "pci" / "devices"
    held = {path.name: (path / "driver").resolve().name for path in devices.iterdir() if (path / "driver").exists()}
    assert held == {"0000:1b:00.0": "nvidia", "0000:2c:00.0": "vfio-pci", "0000:3d:00.0": "nvidia"}
    assert (devices / "0000:1b:00.0" / "device").read_text() == "0x2330\n"


def test_the_kernel_module_keeps_its_old_version_after_an_upgrade(tmp_path):
    build(tmp_path / "before", 0.0)
    build(tmp_path / "after", 60.0)
    path = "proc/driver/nvidia/version"
    assert "570.133.20" in (tmp_path / "before" / path).read_text()
    assert "535.54.03" in (tmp_path / "after" / path).read_text()
