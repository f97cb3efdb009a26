"""A scripted NVML library read by the child's own sweep, told to a fleet as the source tells it."""

import time
from pathlib import Path
from typing import Any

import pytest

from gputop.fleet import Fleet
from gputop.fleet.state import GpuState
from gputop.model.facts import Batch
from gputop.model.process import GpuProcess
from gputop.sources.nvml.cadence import CADENCES
from gputop.sources.nvml.marker import Marker
from gputop.sources.nvml.picture import Identities, Picture
from gputop.sources.nvml.protocol import Devices, Host, NoNvml, Processes, Sample, State, Up
from gputop.sources.nvml.sweep import Place, Sweep
from tests.unit.nvml import fake
from tests.unit.nvml.fake import MIB, Code, FakeLibrary, Gpu, Process, install, memory_v2, plain_gpu
from tests.unit.nvml.rig import EVERYTHING, add_process, pci_device

ERRORS = {
    "GPU_IS_LOST": fake.GPU_IS_LOST,
    "RESET_REQUIRED": fake.RESET_REQUIRED,
    "NO_PERMISSION": fake.NO_PERMISSION,
    "UNKNOWN": fake.UNKNOWN,
    "NOT_SUPPORTED": fake.NOT_SUPPORTED,
    "": fake.SUCCESS,
}
POLL_S = 6.0
"""Time between two polls: more than a failing device waits before it is opened again."""


class NvmlRig:
    """Scripted boards, the sweep over them, and the fleet that hears of them."""

    def __init__(self, gpus: list[Gpu], root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.gpus = gpus
        self.clock = 1000.0
        proc, sys = root / "proc", root / "sys"
        (proc / "1").mkdir(parents=True)
        (proc / "meminfo").write_text("MemTotal: 527600748 kB\nMemAvailable: 318566368 kB\n")
        (proc / "stat").write_text("btime 1700000000\n")
        (sys / "bus" / "pci" / "devices").mkdir(parents=True)
        self.proc = proc
        for gpu in gpus:
            pci_device(sys, gpu.bus_id[4:].lower())
        monkeypatch.setattr("gputop.sources.nvml.sweep.time.monotonic", lambda: self.clock)
        self.library = install(FakeLibrary(gpus), monkeypatch)
        self.fleet = Fleet()
        self._picture = Picture("nvml", "node-a", Identities())
        self.sweep = Sweep(Place("node-a", proc, sys), Marker(None), self._take, lambda: None)

    def _take(self, message: Up) -> None:
        picture = self._picture
        batch: Batch | None = None
        if isinstance(message, Devices):
            picture.devices(message)
            batch = picture.batch(time.time(), 5.0, (picture.roster(),))
        elif isinstance(message, State):
            fact = picture.state(message)
            batch = picture.batch(message.at, 30.0, (fact,)) if fact else None
        elif isinstance(message, Sample):
            batch = picture.sample(message)
        elif isinstance(message, Processes):
            batch = picture.processes(message)
        elif isinstance(message, Host):
            batch = picture.node(message)
        if batch is not None:
            self.fleet.apply(batch)

    def open(self) -> NoNvml | None:
        self.sweep.look_at_bus()
        return self.sweep.open(EVERYTHING)

    def poll(self) -> None:
        """Read everything once."""
        self.clock += POLL_S
        for group in range(len(CADENCES)):
            self.sweep.read(group)
        self.sweep.read_processes()

    def board(self, index: int) -> GpuState:
        (found,) = [g for g in self.fleet.view().gpus.values() if g.index == index and not g.key.instance]
        return found

    def processes(self, index: int) -> dict[int, GpuProcess]:
        (table,) = self.board(index).processes
        assert isinstance(table.processes, tuple)
        return {process.pid: process for process in table.processes}

    def memory(self, free_gib: float, available_gib: float) -> None:
        """Write what the kernel says of the system's memory."""
        kib = 1024 * 1024
        (self.proc / "meminfo").write_text(
            f"MemTotal: 127600748 kB\nMemFree: {int(free_gib * kib)} kB\nMemAvailable: {int(available_gib * kib)} kB\n"
        )

    def person(self, pid: int) -> None:
        add_process(self.proc, pid)


def script(gpu: Gpu, told: dict[str, Any]) -> None:
    """Let a board answer what a case says.

    Keys: `error` (every call), `memory_v2` (total, reserved, used and free in MiB), `fields` (by number),
    `utilization` (a number, or the name of an error), `processes` (lists of [pid, MiB], -1 MiB for "not
    told", by list), `power` (draw and enforced limit in mW), `remap` (the four numbers of the row remapper),
    `ecc` (false: has none).
    """
    if "error" in told:
        gpu.every_call = gpu.open_code = ERRORS[told["error"]]
    if "memory_v2" in told:
        gpu.answers["nvmlDeviceGetMemoryInfo_v2"] = memory_v2(*told["memory_v2"])
    gpu.fields.update({(int(number), 0): value for number, value in told.get("fields", {}).items()})
    utilization = told.get("utilization")
    if isinstance(utilization, str):
        gpu.answers["nvmlDeviceGetUtilizationRates"] = Code(ERRORS[utilization])
    elif utilization is not None:
        gpu.answers["nvmlDeviceGetUtilizationRates"] = {"gpu": utilization, "memory": 0}
    for kind, listed in told.get("processes", {}).items():
        gpu.processes[kind] = [Process(pid, mib * MIB if mib >= 0 else 2**64 - 1) for pid, mib in listed]
    if "power" in told:
        gpu.answers["nvmlDeviceGetPowerUsage"], gpu.answers["nvmlDeviceGetEnforcedPowerLimit"] = told["power"]
    if "remap" in told:
        gpu.answers["nvmlDeviceGetRemappedRows"] = tuple(told["remap"])
    if told.get("ecc") is False:
        gpu.answers["nvmlDeviceGetEccMode"] = Code(fake.NOT_SUPPORTED)


def plain(count: int) -> list[Gpu]:
    return [plain_gpu(number) for number in range(count)]
