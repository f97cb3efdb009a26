"""Which devices there are: boards opened, opened again after a failure, and the MIG instances on them."""

import ctypes
import time
from collections.abc import Callable, Iterable

from gputop.model.facts import PciGpu, Presence
from gputop.model.reading import Value
from gputop.sources.nvml import boards, errors, mig
from gputop.sources.nvml.device import Device
from gputop.sources.nvml.library import Library
from gputop.sources.nvml.protocol import Devices, Plan, State, Up
from gputop.sources.nvml.xid import Watched


class RestartNeededError(Exception):
    """Only a fresh process can go on."""


_LOST_CONNECTION = "NVML lost its connection to the driver"


class Inventory:
    """The devices of the child.

    Args:
        library: The library.
        send: Takes each message for the parent.
        forget: Called with the slot of a device of which everything learnt is void.
    """

    def __init__(self, library: Library, send: Callable[[Up], None], forget: Callable[[int], None]) -> None:
        self._library = library
        self._send = send
        self._forget = forget
        self._slots = 0
        self._counted = 0
        self._skipped: set[int] = set()
        self.all: list[Device] = []
        self.totals: dict[int, Value] = {}

    def count(self) -> tuple[int, int]:
        """Ask how many boards NVML counts; return the code and the number."""
        count = ctypes.c_uint(0)
        code = self._library.system("nvmlDeviceGetCount_v2", ctypes.byref(count))
        return code, count.value

    def open(self, counted: int, plan: Plan, pci: tuple[PciGpu, ...] | None) -> None:
        """Open the boards that are not yet open and not to be skipped, and tell who there is.

        Args:
            counted: How many NVML counts.
            plan: Names those to be skipped.
            pci: What the bus shows.
        """
        self._counted = counted
        self._skipped = {skip.index for skip in plan.skip}
        avoid = {device.index for device in self.all} | self._skipped
        added = [self._board(index) for index in range(counted) if index not in avoid]
        if not added and self.all:
            return
        self.all = sorted([*self.all, *added], key=lambda device: device.index)
        boards.place_unopened(self.boards(), pci, skipped={skip.bus_id for skip in plan.skip})
        for device in added:
            self.find_instances(device)
        self.tell()
        for device in added:
            if device.failing:
                self.tell_state(device)

    def _board(self, index: int) -> Device:
        device = Device(self._new_slot(), index)
        code = boards.open_board(self._library, device)
        if code != errors.SUCCESS:
            boards.note_failure(device, code)
        return device

    def _new_slot(self) -> int:
        self._slots += 1
        return self._slots - 1

    def boards(self) -> list[Device]:
        """Return every board, by index."""
        return [device for device in self.all if device.board is None]

    def readable(self) -> list[Device]:
        """Return the devices that are not to be skipped."""
        return [device for device in self.all if device.index not in self._skipped]

    def watched(self) -> list[Watched]:
        """Return the boards whose events are of interest; safe to call from another thread."""
        return [
            Watched(device.slot, device.handle, not device.failing)
            for device in self.readable()
            if device.board is None and device.handle is not None
        ]

    def slot_of(self, board_slot: int, gpu_instance: int) -> int:
        """Return the slot of an instance of a board, or the board's where there is no such instance."""
        for device in list(self.all):
            if device.board and device.board.slot == board_slot and device.gpu_instance == gpu_instance:
                return device.slot
        return board_slot

    def reopen(self, device: Device, now: float) -> bool:
        """Try to open a failing device again; return whether it is open.

        Raises:
            RestartNeededError: It is another board now, or NVML has lost the driver.
        """
        if device.board is not None:
            # An instance comes back with its board, or is found again when instances are listed.
            return True
        if not device.due_to_reopen(now):
            return False
        uuid = device.uuid
        code = boards.open_board(self._library, device)
        if code == errors.UNINITIALIZED:
            raise RestartNeededError(_LOST_CONNECTION)
        if code != errors.SUCCESS:
            if boards.note_failure(device, code):
                self.tell_state(device)
            return False
        if uuid and device.uuid != uuid:
            raise RestartNeededError(f"another GPU is at index {device.index} now")
        self._forget(device.slot)
        if uuid != device.uuid:
            self.tell()
        # Whether it is well is for its readings to say: a board may open and answer nothing.
        device.presence = None
        device.reopened = True
        if self.find_instances(device):
            self.tell()
        return True

    def look_for_changes(self) -> bool:
        """Count the boards and list the instances anew; return whether anything has changed.

        Raises:
            RestartNeededError: NVML lists another number of boards, or has lost the driver.
        """
        code, count = self.count()
        if code == errors.UNINITIALIZED:
            raise RestartNeededError(_LOST_CONNECTION)
        if code == errors.SUCCESS and count != self._counted:
            raise RestartNeededError(f"NVML lists {count} GPUs now, {self._counted} before")
        changed = [self.find_instances(device) for device in self.readable() if device.board is None]
        if any(changed):
            self.tell()
        return any(changed)

    def find_instances(self, board: Device) -> bool:
        """List a board's MIG instances anew; return whether anything has changed."""
        if board.handle is None or board.failing:
            return False
        was_on = board.mig_on
        board.mig_on = boards.mig_mode(self._library, board)
        switched = was_on != board.mig_on
        if switched:
            # What the board does not support depends on the mode.
            board.opened()
            self._forget(board.slot)
        known = {device.instance: device for device in self.all if device.board is board}
        total = self.totals.get(board.slot)
        found, trouble = (
            mig.instances(self._library, board, total if isinstance(total, float) else None)
            if board.mig_on
            else ([], errors.SUCCESS)
        )
        board.unlisted_instances = trouble
        same = all(one.instance in known and known[one.instance].mig_uuid == one.uuid for one in found)
        # With some not to be listed now, those that were known before are kept.
        if same and (trouble or len(found) == len(known)):
            for one in found:
                known[one.instance].handle = one.handle
            return switched
        self._replace_instances(board, found)
        return True

    def _replace_instances(self, board: Device, found: Iterable[mig.Instance]) -> None:
        for device in self.all:
            if device.board is board:
                self._forget(device.slot)
        made: list[Device] = []
        for instance in found:
            device = Device(self._new_slot(), board.index, board)
            device.handle, device.uuid, device.bus_id = instance.handle, board.uuid, board.bus_id
            device.instance, device.mig_uuid = instance.instance, instance.uuid
            device.gpu_instance, device.profile = instance.gpu_instance, instance.profile
            device.capability, device.architecture = board.capability, board.architecture
            made.append(device)
        rest = [device for device in self.all if device.board is not board]
        place = rest.index(board) + 1
        self.all = rest[:place] + made + rest[place:]

    def tell(self) -> None:
        """Tell the parent who there is."""
        self._send(Devices(tuple(device.info for device in self.all)))

    def tell_state(self, device: Device) -> None:
        """Tell the parent how a device is."""
        self._send(State(device.slot, device.presence or Presence.PRESENT, device.reason, time.time()))
