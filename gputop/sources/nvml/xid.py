"""Xid events: a thread of the child that waits for them.

NVML has no "last Xid" to be read; it only hands out events while one waits. The wait is in a thread of
its own, so that an Xid is told even while the reading thread is stuck in a call, which is when it matters.
"""

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Final

import pynvml
from msgspec import Struct

from gputop.sources.nvml import errors
from gputop.sources.nvml.library import symbol
from gputop.sources.nvml.ways import CObject

XID: Final = 0x8
MIG_CHANGED: Final = 0x100
GPU_UNAVAILABLE: Final = 0x4000
RECOVERY_ACTION: Final = 0x8000
_NUDGES: Final = MIG_CHANGED | GPU_UNAVAILABLE | RECOVERY_ACTION

# A shorter wait wakes the child for nothing; a longer one keeps a release waiting.
_WAIT_MS: Final = 500
_PAUSE_S: Final = 5.0
_GIVE_UP_AFTER: Final = 3


class Watched(Struct, frozen=True):
    """A board to be watched."""

    slot: int
    handle: CObject
    usable: bool


class Xids:
    """Waits for events of all boards.

    Args:
        boards: Returns the boards as they are now; called in the thread.
        on_xid: Takes (slot, Xid, instance number or -1, time); called in the thread.
        on_nudge: Takes the slot of a board whose state has changed; called in the thread.
    """

    def __init__(
        self,
        boards: Callable[[], list[Watched]],
        on_xid: Callable[[int, int, int, float], None],
        on_nudge: Callable[[int], None],
    ) -> None:
        self._boards = boards
        self._on_xid = on_xid
        self._on_nudge = on_nudge
        self._stop = threading.Event()
        self._anew = threading.Event()
        self._thread: threading.Thread | None = None
        self._slots: dict[int, int] = {}
        self._known = threading.Event()
        self.trouble = ""
        self.partial = ""
        self.registered: int | None = None

    def start(self) -> None:
        """Begin to wait, in the background."""
        self._thread = threading.Thread(target=self._run, name="xid", daemon=True)
        self._thread.start()

    def wait_until_known(self, seconds: float) -> None:
        """Wait until it is known whether events are told, no longer than this."""
        self._known.wait(seconds)

    def rearm(self) -> None:
        """Make the set anew: a board has come back or been opened again."""
        self._anew.set()

    def stop(self) -> bool:
        """End the wait, and return whether it has ended: NVML must not be shut down under it."""
        self._stop.set()
        if self._thread is None:
            return True
        self._thread.join(_WAIT_MS / 1000.0 + 0.1)
        return not self._thread.is_alive()

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            began = time.monotonic()
            code = self._watch()
            if self._anew.is_set():
                self._anew.clear()
                failures = 0
                continue
            if code in (errors.FUNCTION_NOT_FOUND, errors.CODE_NOT_SUPPORTED):
                self.trouble = "this driver reports no Xid events: they are in the kernel log only"
                self._known.set()
                return
            # A wait on a set with a lost GPU returns at once, for ever: the set is made anew without it.
            failures = failures + 1 if time.monotonic() - began < _PAUSE_S else 1
            if failures >= _GIVE_UP_AFTER:
                self.trouble = f"Xid events are not read: {errors.describe(code)}"
                self._known.set()
                self._stop.wait(_PAUSE_S * failures)
            else:
                self._stop.wait(0.2)

    def _watch(self) -> int:
        """Wait on a new event set until it fails, and return the code; SUCCESS when told to stop."""
        create, wait, free = (
            symbol(name) for name in ("nvmlEventSetCreate", "nvmlEventSetWait_v2", "nvmlEventSetFree")
        )
        if create is None or wait is None or free is None:
            return errors.FUNCTION_NOT_FOUND
        events = pynvml.c_nvmlEventSet_t()
        code = create(ctypes.byref(events))
        if code != errors.SUCCESS:
            return code
        try:
            code = self._register(events)
            data = pynvml.c_nvmlEventData_t()
            while code == errors.SUCCESS and not (self._stop.is_set() or self._anew.is_set()):
                code = wait(events, ctypes.byref(data), ctypes.c_uint(_WAIT_MS))
                if code == errors.TIMEOUT:
                    code = errors.SUCCESS
                elif code == errors.SUCCESS:
                    self.trouble = ""
                    self._tell(data)
            return code
        finally:
            free(events)

    def _register(self, events: CObject) -> int:
        """Register every board that can be; return why none could."""
        types, register = (symbol(name) for name in ("nvmlDeviceGetSupportedEventTypes", "nvmlDeviceRegisterEvents"))
        if types is None or register is None:
            return errors.FUNCTION_NOT_FOUND
        code = errors.CODE_NOT_SUPPORTED
        refused = 0
        self._slots = {}
        boards = self._boards()
        for board in boards:
            if not board.usable:
                # Try again once it is back; nothing is known of events by then.
                code = errors.GPU_IS_LOST
                refused += 1
                continue
            supported = ctypes.c_ulonglong(0)
            own = types(board.handle, ctypes.byref(supported))
            wanted = supported.value & (XID | _NUDGES)
            if own == errors.SUCCESS:
                own = (
                    register(board.handle, ctypes.c_ulonglong(wanted), events) if wanted else errors.CODE_NOT_SUPPORTED
                )
            if own == errors.SUCCESS:
                address = ctypes.cast(board.handle, ctypes.c_void_p).value or 0
                self._slots[address] = board.slot
            else:
                code = own
                refused += 1
        if not self._slots:
            return code
        self.registered = len(self._slots)
        self.partial = (
            f"Xid events of {refused} of {len(boards)} GPUs are not read: {errors.describe(code)}" if refused else ""
        )
        self._known.set()
        return errors.SUCCESS

    def _tell(self, data: CObject) -> None:
        slot = self._slots.get(ctypes.cast(data.device, ctypes.c_void_p).value or 0)
        if slot is None:
            return
        kind = int(data.eventType)
        if kind & XID and int(data.eventData):
            gpu_instance = int(data.gpuInstanceId)
            self._on_xid(slot, int(data.eventData), -1 if gpu_instance > 0xFFFF else gpu_instance, time.time())
        if kind & _NUDGES:
            self._on_nudge(slot)
