"""Processes on a device: three lists merged, with how busy each keeps it.

NVML lists compute, graphics and MPS clients apart, and a process that does both is on two lists with the
same memory each time (lablup/all-smi#123): it is one row, and its memory counts once.
"""

import ctypes
import time
from typing import Final

import pynvml
from msgspec import Struct

from gputop.model.process import GpuProcess
from gputop.model.reading import NA, NOT_SUPPORTED, Absent, Value
from gputop.model.sanity import judge_raw
from gputop.sources.nvml import errors
from gputop.sources.nvml.device import Device
from gputop.sources.nvml.library import Library, Symbol, symbol
from gputop.sources.nvml.procfs import Processes
from gputop.sources.nvml.structs import ProcessInfoV1
from gputop.sources.nvml.ways import CObject

_MIB: Final = 1024.0 * 1024.0
_FIRST_ROOM: Final = 32
_TRIES: Final = 5
# Pids no process has: the idle task's and the two halves of a scrambled struct (wookayin/gpustat#157).
_NO_PIDS: Final = frozenset({0, 0xFFFFFFFF})
_MEMORY_NOT_TOLD: Final = Absent(NA, "not_told", "the driver does not tell it for this process")
_MEMORY_ABSURD: Final = Absent(NA, "implausible", "implausible: more than the GPU has")
_SAMPLE_ABSURD: Final = Absent(NA, "implausible", "implausible: the driver gave more than 100 %")

# Struct and symbol belong together: with another struct the list comes out scrambled (XuehaiPan/nvitop#75).
_LAYOUTS: Final = (
    ("_v3", pynvml.c_nvmlProcessInfo_v2_t),
    ("_v2", pynvml.c_nvmlProcessInfo_v2_t),
    ("", ProcessInfoV1),
)
# From 535.43 up to 535.98 the third version wrote entries of 32 bytes: into the array of any other driver,
# a scrambled list and a write past its end. The second version is as ever.
_LONG_ENTRIES: Final = ((535, 43), (535, 98))
_LISTS: Final = (
    ("C", "nvmlDeviceGetComputeRunningProcesses"),
    ("G", "nvmlDeviceGetGraphicsRunningProcesses"),
    ("M", "nvmlDeviceGetMPSComputeRunningProcesses"),
)
_SAMPLED: Final = ("smUtil", "encUtil", "decUtil")


class _List:
    """One of the three lists, with the newest symbol this library has for it."""

    def __init__(self, kind: str, function: str, driver: tuple[int, ...]) -> None:
        self.kind = kind
        self.name = b""
        self.symbol: Symbol | None = None
        self.layout: type[ctypes.Structure] = ProcessInfoV1
        first, end = _LONG_ENTRIES
        for suffix, layout in _LAYOUTS[1:] if first <= driver[:2] < end else _LAYOUTS:
            self.symbol = symbol(function + suffix)
            if self.symbol is not None:
                self.name = (function + suffix).encode()
                self.layout = layout
                break


class _Entry:
    """A process while the lists are merged."""

    __slots__ = ("kinds", "memory")

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.memory: float | Absent = _MEMORY_NOT_TOLD


class Sampled(Struct, frozen=True, gc=False):
    """The last sample of one process within the window, each in percent or absurd."""

    sm: float | Absent
    encoder: float | Absent
    decoder: float | Absent


class Tables:
    """Reads process tables of devices.

    Args:
        library: The library.
        people: Looks up what /proc tells.
        driver: Version of the driver, () when not told.
    """

    def __init__(self, library: Library, people: Processes, driver: tuple[int, ...] = ()) -> None:
        self._library = library
        self._people = people
        self._lists = tuple(_List(kind, function, driver) for kind, function in _LISTS)
        self._sampler = symbol("nvmlDeviceGetProcessUtilization")
        self._room = _FIRST_ROOM
        self._arrays: dict[tuple[type[ctypes.Structure], int], CObject] = {}
        self._newest: dict[int, dict[int, tuple[int, Sampled]]] = {}
        self._unsampled: dict[int, Absent] = {}
        self._unlisted: dict[tuple[int, str], Absent] = {}
        self._refused: set[tuple[int, str]] = set()
        self._pids: set[int] = set()

    def begin_round(self) -> None:
        """Begin to note which processes are listed."""
        self._pids = set()

    def end_round(self) -> None:
        """Forget processes that no device listed in this round."""
        self._people.forget_all_but(self._pids)

    def forget(self, slot: int) -> None:
        """Ask again for what a device did not support: its mode has changed, or it came back."""
        self._unsampled.pop(slot, None)
        self._newest.pop(slot, None)
        self._refused = {key for key in self._refused if key[0] != slot}
        for key in [key for key in self._unlisted if key[0] == slot]:
            del self._unlisted[key]

    def refused(self) -> frozenset[int]:
        """Return the slots of the devices that refuse a list of processes to this user."""
        return frozenset(slot for slot, _ in self._refused)

    def read(self, device: Device, total_mib: Value | None, window_s: float) -> tuple[GpuProcess, ...] | Absent | None:
        """Return the processes on a device, why they cannot be told, or None when it does not answer.

        Args:
            device: An open device.
            total_mib: Its memory, to judge what a process claims.
            window_s: Age up to which samples count.
        """
        entries: dict[int, _Entry] = {}
        refusal: Absent | None = None
        answered = False
        for one in self._lists:
            code = self._list(one, device, entries, total_mib)
            known = errors.RETURNS.get(code)
            if code == errors.SUCCESS:
                answered = True
            elif known is not None and known.presence is not None:
                return None
            else:
                refusal = refusal or errors.permanent(code) or errors.passing(code)
        if not answered:
            return refusal or NOT_SUPPORTED
        samples = self._samples(device, window_s) if entries else {}
        return tuple(
            found for pid in sorted(entries) if (found := self._process(pid, entries[pid], samples)) is not None
        )

    def _list(self, one: _List, device: Device, entries: dict[int, _Entry], total_mib: Value | None) -> int:
        if one.symbol is None or (device.slot, one.kind) in self._unlisted:
            return errors.CODE_NOT_SUPPORTED
        code = errors.INSUFFICIENT_SIZE
        count = ctypes.c_uint(0)
        array: CObject = None
        for _ in range(_TRIES):
            array = self._array(one.layout, self._room)
            count.value = self._room
            code = self._library.raw(one.symbol, one.name, device.index, device.handle, ctypes.byref(count), array)
            if code != errors.INSUFFICIENT_SIZE:
                break
            # It says how many there are now; more may come before the next call.
            self._room = max(self._room, count.value) * 2
        self._refused.discard((device.slot, one.kind))
        if code == errors.SUCCESS:
            for position in range(min(count.value, self._room)):
                self._merge(entries, array[position], one.kind, total_mib)
        elif (absent := errors.permanent(code)) is not None:
            self._unlisted[device.slot, one.kind] = absent
        elif code == errors.NO_PERMISSION:
            self._refused.add((device.slot, one.kind))
        return code

    def _array(self, kind: type[ctypes.Structure], room: int) -> CObject:
        array = self._arrays.get((kind, room))
        if array is None:
            array = self._arrays[kind, room] = (kind * room)()
        return array

    @staticmethod
    def _merge(entries: dict[int, _Entry], raw: CObject, kind: str, total_mib: Value | None) -> None:
        pid = int(raw.pid)
        if pid in _NO_PIDS:
            return
        entry = entries.setdefault(pid, _Entry())
        if kind not in entry.kinds:
            entry.kinds.append(kind)
        memory = _memory(raw.usedGpuMemory, total_mib)
        known = entry.memory
        if isinstance(memory, float):
            # The same memory on each list; with several instances of a MIG board, each its own.
            entry.memory = max(memory, known) if isinstance(known, float) else memory
        elif not isinstance(known, float):
            entry.memory = memory

    def _process(self, pid: int, entry: _Entry, samples: dict[int, Sampled] | Absent) -> GpuProcess | None:
        person = self._people.look_up(pid)
        if person is None:
            return None
        self._pids.add(pid)
        idle = Sampled(0.0, 0.0, 0.0)
        sampled = Sampled(samples, samples, samples) if isinstance(samples, Absent) else samples.get(pid, idle)
        return GpuProcess(
            pid=pid,
            kinds="+".join(entry.kinds),
            memory_mib=entry.memory,
            sm_percent=sampled.sm,
            encoder_percent=sampled.encoder,
            decoder_percent=sampled.decoder,
            user=person.user,
            command=person.command,
            started_at=person.started_at,
            holder=person.answer.holder,
            holder_reason=person.answer.reason,
        )

    def _samples(self, device: Device, window_s: float) -> dict[int, Sampled] | Absent:
        """Return the newest sample of each process within the window, or why there are none.

        NOT_FOUND means that no process was busy. The call takes the time of the newest sample already
        seen; given anything else there it returns old ones (Syllo/nvtop#110).
        """
        refused = self._unsampled.get(device.slot)
        if refused is not None or self._sampler is None:
            return refused or NOT_SUPPORTED
        now_us = time.time_ns() // 1000
        oldest_us = now_us - int(window_s * 1e6)
        known = self._newest.get(device.slot, {})
        newest = {pid: kept for pid, kept in known.items() if kept[0] >= oldest_us}
        since = max((stamp for stamp, _ in newest.values()), default=oldest_us)
        code, count, array = self._sample_call(self._sampler, device, since)
        if code == errors.NOT_FOUND:
            self._newest[device.slot] = {}
            return {}
        if code != errors.SUCCESS:
            absent = errors.permanent(code)
            if absent is not None:
                self._unsampled[device.slot] = absent
            return absent or errors.passing(code)
        for position in range(count):
            raw = array[position]
            stamp = int(raw.timeStamp)
            # Old ones are what some drivers give for lack of new ones; a little ahead is clock noise.
            if oldest_us <= stamp <= now_us + int(window_s * 1e6):
                pid = int(raw.pid)
                if pid not in newest or newest[pid][0] <= stamp:
                    newest[pid] = (stamp, Sampled(*(_percent(getattr(raw, name)) for name in _SAMPLED)))
        self._newest[device.slot] = newest
        return {pid: sampled for pid, (_, sampled) in newest.items()}

    def _sample_call(self, sampler: Symbol, device: Device, since: int) -> tuple[int, int, CObject]:
        """Ask for samples newer than `since` and return the code, their number and where they are."""
        count = ctypes.c_uint(0)
        code = errors.INSUFFICIENT_SIZE
        array: CObject = None
        for _ in range(_TRIES):
            array = self._array(pynvml.c_nvmlProcessUtilizationSample_t, self._room)
            count.value = self._room
            code = self._library.raw(
                sampler,
                b"nvmlDeviceGetProcessUtilization",
                device.index,
                device.handle,
                array,
                ctypes.byref(count),
                ctypes.c_ulonglong(since),
            )
            if code != errors.INSUFFICIENT_SIZE:
                break
            self._room = max(self._room, count.value) * 2
        return code, min(count.value, self._room), array


def _memory(raw: int | None, total_mib: Value | None) -> float | Absent:
    # pynvml's wrappers turn the marker into None.
    if raw is None or judge_raw(float(raw)) is not None:
        return _MEMORY_NOT_TOLD
    mib = raw / _MIB
    if isinstance(total_mib, float) and total_mib > 0.0 and mib > total_mib * 1.05:
        return _MEMORY_ABSURD
    return mib


def _percent(raw: int) -> float | Absent:
    return float(raw) if raw <= 100 else _SAMPLE_ABSURD
