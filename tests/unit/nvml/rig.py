"""A sweep of the NVML child in this process, and small trees that stand for /proc and /sys."""

from pathlib import Path
from typing import Any, TypeVar

from gputop.sources.nvml.marker import Marker
from gputop.sources.nvml.protocol import NoNvml, Plan, Sample, State, Up
from gputop.sources.nvml.sweep import Place, Sweep
from tests.unit.nvml.fake import FakeLibrary

EVERYTHING = Plan(None, processes=True, profiling=False, interval_s=1.0)


T = TypeVar("T")


class Rig:
    """A sweep over a scripted library, with everything it has sent."""

    def __init__(self, library: FakeLibrary, proc_root: Path, sys_root: Path) -> None:
        self.library = library
        self.sent: list[Up] = []
        self.nudges = 0
        self.sweep = Sweep(Place("node-a", proc_root, sys_root), Marker(None), self.sent.append, self._nudge)

    def _nudge(self) -> None:
        self.nudges += 1

    def open(self, plan: Plan = EVERYTHING) -> NoNvml | None:
        self.sweep.look_at_bus()
        return self.sweep.open(plan)

    def read(self, group: int = 0) -> dict[int, dict[str, Any]]:
        """Take a sample and return what it says, by slot."""
        self.sweep.read(group)
        sample = [message for message in self.sent if isinstance(message, Sample)][-1]
        return {device.slot: dict(device.values) for device in sample.devices}

    def states(self, slot: int) -> list[State]:
        return [message for message in self.sent if isinstance(message, State) and message.slot == slot]

    def of(self, kind: type[T]) -> list[T]:
        return [message for message in self.sent if isinstance(message, kind)]


def pci_device(
    sys_root: Path,
    address: str,
    *,
    driver: str = "nvidia",
    device: str = "0x2330",
    kind: str = "0x030200",
    vendor: str = "0x10de",
    status: str = "active",
) -> None:
    """Add a device to a sysfs."""
    folder = sys_root / "bus" / "pci" / "devices" / address
    (folder / "power").mkdir(parents=True)
    (folder / "vendor").write_text(vendor + "\n")
    (folder / "class").write_text(kind + "\n")
    (folder / "device").write_text(device + "\n")
    (folder / "power" / "runtime_status").write_text(status + "\n")
    if driver:
        target = sys_root / "bus" / "pci" / "drivers" / driver
        target.mkdir(parents=True, exist_ok=True)
        (folder / "driver").symlink_to(target)


def add_process(
    proc_root: Path,
    pid: int,
    *,
    command: bytes = b"python\0train.py\0",
    uid: int = 0,
    cgroup: str = "0::/user.slice\n",
    environ: bytes = b"",
    started: int = 100,
) -> Path:
    """Add a process to a procfs."""
    folder = proc_root / str(pid)
    folder.mkdir()
    fields = " ".join(["S", *["0"] * 18, str(started), *["0"] * 20])
    (folder / "stat").write_text(f"{pid} (a (odd) name) {fields}\n")
    (folder / "status").write_text(f"Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
    (folder / "cmdline").write_bytes(command)
    (folder / "cgroup").write_text(cgroup)
    (folder / "environ").write_bytes(environ)
    return folder
