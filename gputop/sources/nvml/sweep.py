"""Reading all devices in turn: rounds by cadence class, states, process tables, the node."""

import ctypes
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pynvml
from msgspec import Struct

from gputop.model.facts import PciGpu, Presence
from gputop.model.power import power_meaning
from gputop.model.process import GpuProcess
from gputop.model.reading import NA, UNKNOWN, Absent, Value
from gputop.model.status import Finding
from gputop.sources.nvml import boards, cadence, errors, gpm, host, nvlink, rights, unified
from gputop.sources.nvml.device import Device, Outcome
from gputop.sources.nvml.fields import ARCHITECTURES, READS
from gputop.sources.nvml.inventory import Inventory, RestartNeededError
from gputop.sources.nvml.library import Library
from gputop.sources.nvml.marker import NO_DEVICE, Marker
from gputop.sources.nvml.pci import PciBus
from gputop.sources.nvml.processes import Tables
from gputop.sources.nvml.procfs import Processes as People
from gputop.sources.nvml.protocol import (
    Costs,
    DeviceSample,
    Host,
    NoNvml,
    Notes,
    Plan,
    Processes,
    ProcessTable,
    RoundDone,
    Sample,
    Up,
    XidEvent,
)
from gputop.sources.nvml.ways import Read
from gputop.sources.nvml.xid import Xids

_SAMPLE_WINDOW_S: Final = 5.0
_INSTANCES_HOLD: Final = Absent(NA, "not_supported", "with MIG on, processes belong to the instances")
_COSTS_TOLD: Final = 8
_EVENTS_KNOWN_S: Final = 0.2
"""How long the first round waits to learn whether the driver tells of Xids."""
_NOT_SHOWN_TO_GUESTS: Final = Absent(UNKNOWN, "vgpu", "a vGPU may not show its processes to the guest")
_GROUPS: Final = (cadence.FAST, cadence.MEDIUM, cadence.SLOW, cadence.ONCE)


class Place(Struct, frozen=True):
    """Where the child looks.

    Attributes:
        host: Name of this node.
        proc_root: Where procfs is mounted.
        sys_root: Where sysfs is mounted.
    """

    host: str
    proc_root: Path
    sys_root: Path


class Sweep:
    """Everything the child reads.

    Args:
        place: Where it looks.
        marker: Where the parent sees what call the child is in.
        send: Takes each message for the parent; safe to call from any thread.
        nudge: Called in the event thread when a board's state has changed.
    """

    def __init__(
        self,
        place: Place,
        marker: Marker,
        send: Callable[[Up], None],
        nudge: Callable[[], None],
    ) -> None:
        self._proc_root = place.proc_root
        self._marker = marker
        self._send = send
        self._nudge = nudge
        self._library = Library(marker)
        self._bus = PciBus(place.sys_root, place.proc_root)
        self._pci: tuple[PciGpu, ...] | None = None
        self._people = People(place.proc_root, place.host, marker)
        self._tables: Tables | None = None
        self._links: nvlink.Links | None = None
        self._gpm: gpm.Gpm | None = None
        self._xids: Xids | None = None
        self._inventory = Inventory(self._library, send, self._forget)
        self._plan = Plan(frozenset(), processes=False, profiling=False, interval_s=1.0)
        self._board_reads: dict[int, list[Read]] = {}
        self._instance_reads: dict[int, list[Read]] = {}
        self._system_mib: float | None = None
        self._texts: dict[str, Value] = {}
        self._sent_tables: dict[int, tuple[GpuProcess, ...] | Absent] = {}
        self._unread: set[str] = set()
        self._counted = 0
        self._round_s = 0.0
        self._noted: tuple[Finding, ...] = ()
        self.all_due = False

    # Opening and closing.

    def look_at_bus(self) -> tuple[PciGpu, ...] | None:
        """Look at the PCI bus, tell the parent, and return what it shows."""
        self._pci = self._bus.gpus()
        memory = host.system_memory(self._proc_root)
        total = memory.get("system_memory_total_mib")
        self._system_mib = total if isinstance(total, float) else None
        kernel = host.kernel_driver_version(self._proc_root)
        readings: dict[str, Value] = {**memory, **self._texts}
        if kernel:
            readings["kernel_driver_version"] = kernel
        wanted = self._plan.quantities
        kept = {q: v for q, v in readings.items() if wanted is None or q in wanted or q in self._texts}
        self._send(Host(time.time(), self._pci, kept))
        return self._pci

    def open(self, plan: Plan) -> NoNvml | None:
        """Open NVML and every board; return why that cannot be done, if it cannot."""
        code = self._init()
        if code != errors.SUCCESS:
            version = self._library.system_text("nvmlSystemGetNVMLVersion")
            return host.explain_init_failure(
                code, host.library_version(version), host.kernel_driver_version(self._proc_root), self._pci
            )
        code, self._counted = self._inventory.count()
        if code != errors.SUCCESS or not self._counted:
            return host.no_gpu(self._pci)
        self._read_versions()
        self._tables = Tables(self._library, self._people, host.numbers(self._texts["driver_version"]))
        self._links = nvlink.Links(self._library)
        self._gpm = gpm.Gpm(self._library)
        self._inventory.open(self._counted, plan, self._pci)
        self._xids = Xids(self._inventory.watched, self._on_xid, lambda _: self._nudge())
        self._xids.start()
        self.set_plan(plan)
        return None

    def _init(self) -> int:
        self._marker.begin(NO_DEVICE, b"nvmlInit")
        try:
            pynvml.nvmlInitWithFlags(0)
        except pynvml.NVMLError as error:
            # Set by its __new__, where no type checker looks.
            return int(getattr(error, "value", errors.LIBRARY_NOT_FOUND))
        finally:
            self._marker.end()
        return errors.SUCCESS

    def close(self) -> None:
        """Let go of NVML, unless a thread is inside it: shutting down then crashes (XuehaiPan/nvitop#222)."""
        if self._xids is None or self._xids.stop():
            self._library.system("nvmlShutdown")

    def _read_versions(self) -> None:
        cuda = ctypes.c_int(0)
        code = self._library.system("nvmlSystemGetCudaDriverVersion_v2", ctypes.byref(cuda))
        self._texts = {
            "driver_version": self._library.system_text("nvmlSystemGetDriverVersion"),
            "nvml_version": self._library.system_text("nvmlSystemGetNVMLVersion"),
            "cuda_version": (
                f"{cuda.value // 1000}.{cuda.value % 1000 // 10}"
                if code == errors.SUCCESS
                else errors.permanent(code) or errors.passing(code)
            ),
        }

    # What is wanted.

    def set_plan(self, plan: Plan) -> None:
        """Read as `plan` says from now on."""
        same_readings = (plan.quantities, plan.profiling) == (self._plan.quantities, self._plan.profiling)
        self._plan = plan
        self._inventory.open(self._counted, plan, self._pci)
        if not same_readings or not self._board_reads:
            wanted = [read for read in READS if self._wants(read.quantities)]
            for group in _GROUPS:
                self._board_reads[group] = [r for r in wanted if r.group == group and r.board]
                self._instance_reads[group] = [r for r in wanted if r.group == group and r.instance]
            for device in self._inventory.all:
                device.forget_sent()
        self._unread = {str(group) for group in _GROUPS} | ({"processes"} if plan.processes else set())
        self.all_due = True

    def _wants(self, quantities: frozenset[str] | tuple[str, ...]) -> bool:
        wanted = self._plan.quantities
        return wanted is None or not wanted.isdisjoint(quantities)

    @property
    def plan(self) -> Plan:
        """What is being read."""
        return self._plan

    @property
    def has_unified(self) -> bool:
        """Whether a device uses the system's memory, which then is worth reading more often."""
        return any(self._inventory.totals.get(device.slot) is unified.UNIFIED for device in self._inventory.all)

    # Rounds.

    def read(self, group: int) -> None:
        """Take one sample of a cadence class of every device and send it."""
        began = time.monotonic()
        samples: list[DeviceSample] = []
        for device in self._inventory.readable():
            sample = self._read_device(device, group, began)
            if sample is not None:
                samples.append(sample)
        interval = cadence.interval_s(group, self._plan.interval_s)
        self._send(Sample(group, tuple(samples), interval))
        if group == cadence.FAST:
            self._round_s = time.monotonic() - began
        self._unread.discard(str(group))
        if group == cadence.SLOW and self._inventory.look_for_changes():
            self.all_due = True

    def _read_device(self, device: Device, group: int, now: float) -> DeviceSample | None:
        if device.board is not None and device.board.failing:
            if device.set_presence(device.board.presence or Presence.ERROR, device.board.reason):
                self._inventory.tell_state(device)
            return None
        if device.failing and not self._inventory.reopen(device, now):
            return None
        if not cadence.CADENCES[group].repeats and device.has_sent(group):
            return device.confirmation()
        reads = (self._instance_reads if device.board else self._board_reads).get(group, [])
        outcome = Outcome()
        device.read(self._library, reads, group, outcome, now)
        if not outcome.fatal:
            self._read_more(device, group, outcome, now)
        if not self._judge(device, outcome, group):
            return None
        self._complete(device, group, outcome.values)
        return device.sample(group, outcome.values, self._plan.quantities)

    def _read_more(self, device: Device, group: int, outcome: Outcome, now: float) -> None:
        if (
            group == cadence.MEDIUM
            and device.board is None
            and self._links is not None
            and self._wants(nvlink.QUANTITIES)
        ):
            self._links.read(device, outcome, self._plan.quantities)
        if group == cadence.FAST and self._gpm is not None and self._wants(gpm.QUANTITIES):
            if self._plan.profiling:
                self._gpm.read(device, outcome, now)
            else:
                outcome.values.update(dict.fromkeys(gpm.QUANTITIES, gpm.OPT_IN))

    def _judge(self, device: Device, outcome: Outcome, group: int) -> bool:
        """Decide how a device is by the codes of a round; return whether its readings count."""
        if outcome.fatal == errors.UNINITIALIZED:
            raise RestartNeededError("NVML lost its connection to the driver")
        if device.reloaded:
            raise RestartNeededError("the driver was loaded anew: its error counters began again")
        if not outcome.good and not outcome.codes:
            # Nothing was asked: all of it is settled, or waits for another try.
            return not device.failing
        if _is_one_setting(outcome, group) and not device.failing and not device.reopened:
            return True
        if outcome.fatal or not outcome.good:
            code = outcome.fatal or Counter(outcome.codes).most_common(1)[0][0]
            device.reopened = False
            if boards.note_failure(device, code):
                self._inventory.tell_state(device)
                if device.board is not None:
                    # The instance may have been destroyed under its handle.
                    self._nudge()
            return False
        if boards.note_answer(device):
            self._inventory.tell_state(device)
        if device.reopened:
            device.reopened = False
            self.all_due = True
            if self._xids is not None:
                self._xids.rearm()
        return True

    def _complete(self, device: Device, group: int, values: dict[str, Value]) -> None:
        if "memory_total_mib" in values and device.board is None:
            if unified.is_unified(device.capability, values, self._system_mib):
                unified.as_unified(values, device.processes_mib)
                self._inventory.totals[device.slot] = unified.UNIFIED
            else:
                self._inventory.totals[device.slot] = values["memory_total_mib"]
        elif "memory_total_mib" in values:
            self._inventory.totals[device.slot] = values["memory_total_mib"]
        if group == cadence.ONCE:
            if device.board is None and self._wants(("power_meaning",)):
                device_id = boards.pci_device_id(self._library, device)
                values["power_meaning"] = power_meaning(ARCHITECTURES.get(device.architecture, ""), device_id)
            if device.board is not None and device.profile:
                values["mig_profile"] = device.profile

    def look_again(self) -> None:
        """Look for MIG changes and states now: an event says that something changed."""
        self._inventory.look_for_changes()
        self.all_due = True

    def _forget(self, slot: int) -> None:
        for reader in (self._tables, self._links, self._gpm):
            if reader is not None:
                reader.forget(slot)

    # Processes.

    def read_processes(self) -> None:
        """List the processes of every device and send them."""
        if self._tables is None:
            return
        self._tables.begin_round()
        tables: list[ProcessTable] = []
        for device in self._inventory.readable():
            if device.failing:
                continue
            table: tuple[GpuProcess, ...] | Absent | None = _INSTANCES_HOLD
            if not device.mig_on:
                total = self._inventory.totals.get(device.slot)
                table = self._tables.read(device, total, _SAMPLE_WINDOW_S)
                if table == () and device.is_vgpu:
                    table = _NOT_SHOWN_TO_GUESTS
            if table is None:
                continue
            device.processes_mib = _sum_of_memory(table)
            same = self._sent_tables.get(device.slot) == table
            self._sent_tables[device.slot] = table
            tables.append(ProcessTable(device.slot, None if same else table))
        self._tables.end_round()
        interval = max(cadence.PROCESSES_S, self._plan.interval_s)
        self._send(Processes(time.time(), tuple(tables), interval))
        self._unread.discard("processes")

    def resend_processes(self) -> None:
        """Send whole tables the next time."""
        self._sent_tables.clear()

    # Telling.

    def end_round(self) -> None:
        """Tell that a whole round is done, once everything has been read for the plan of the moment."""
        waits = self._wants(("utilization",)) and any(
            device.awaits_second_sample and not device.failing for device in self._inventory.readable()
        )
        if not self._unread and not waits:
            self._send(RoundDone())

    def tell_costs(self) -> None:
        """Tell what the child has cost, and the slowest calls since it was last told."""
        calls = {name.decode(): seconds for name, seconds in self._library.slowest.items()}
        costs = sorted({**calls, **self._library.field_costs()}.items(), key=lambda item: -item[1])
        self._library.slowest.clear()
        self._send(
            Costs(
                time.process_time(),
                self._library.calls,
                self._round_s,
                tuple(costs[:_COSTS_TOLD]),
            )
        )
        findings = self._findings()
        if findings != self._noted:
            self._noted = findings
            self._send(Notes(findings))

    def _findings(self) -> tuple[Finding, ...]:
        xids = self._xids
        if xids is not None:
            xids.wait_until_known(_EVENTS_KNOWN_S)
        asked = rights.Asked(
            devices=self._inventory.readable(),
            foreign=self._people.foreign,
            unlisted=self._tables.refused() if self._tables else frozenset(),
            events=xids.registered if xids else None,
            events_trouble=(xids.trouble or xids.partial) if xids else "",
            profiling=self._plan.profiling,
            unsampled=self._gpm.unsupported if self._gpm else {},
        )
        found = list(rights.findings(asked, self._proc_root))
        if any(device.persistent is False for device in self._inventory.all):
            found.append(
                Finding(
                    "persistence mode is off: each first look at an idle GPU starts it up",
                    "systemctl enable --now nvidia-persistenced",
                )
            )
        return tuple(found)

    def _on_xid(self, slot: int, xid: int, gpu_instance: int, at: float) -> None:
        self._send(XidEvent(self._inventory.slot_of(slot, gpu_instance), xid, at))


def _is_one_setting(outcome: Outcome, group: int) -> bool:
    """Whether all that failed is one rarely read number, which says nothing of the device as a whole.

    Some are for root only (nvmlDeviceGetSramEccErrorStatus), and of a MIG instance only one is asked.
    """
    return group in (cadence.SLOW, cadence.ONCE) and not outcome.fatal and not outcome.good and len(outcome.codes) == 1


def _sum_of_memory(table: tuple[GpuProcess, ...] | Absent) -> float | None:
    """Return the memory of all processes, None when one is not known."""
    if isinstance(table, Absent):
        return None
    total = 0.0
    for process in table:
        if isinstance(process.memory_mib, Absent):
            return None
        total += process.memory_mib
    return total
