"""One device: who it is, how it is, and what it last told.

An error stays where it belongs. A field that the device does not have is not asked again; one that fails
is asked less often; and a device that answers nothing keeps its row, with the word for it, and is opened
again until it answers.
"""

import time
from typing import Final

from msgspec import Struct

from gputop.model.facts import Presence
from gputop.model.quantity import QUANTITIES
from gputop.model.reading import NA, UNKNOWN, Absent, Value
from gputop.model.sanity import judge
from gputop.sources.nvml import cadence, errors
from gputop.sources.nvml.library import NARROW_TYPES, FieldBatch, Library
from gputop.sources.nvml.protocol import DeviceInfo, DeviceSample
from gputop.sources.nvml.ways import CObject, Field, Read

_RETRY_MAX_S: Final = 60.0
_REOPEN_S: Final = 5.0

_FIRST_SAMPLE: Final = Absent(
    UNKNOWN,
    "first_sample",
    "with persistence mode off, opening an idle GPU makes it busy: the first sample is left out",
)
_NO_RATE_YET: Final = Absent(UNKNOWN, "first_sample", "a rate needs two samples")
_WRAPS: Final = Absent(NA, "wraps", "the driver's counter has 32 bits and wraps too fast to tell a rate")
_RESTARTED: Final = Absent(UNKNOWN, "restarted", "the counter started again")
_WITH_MIG: Final = Absent(NA, "not_supported", "not told for the board while MIG is on")
_NO_REMAPPING: Final = Absent(NA, "not_supported", "this board has no ECC and remaps no rows")

_VOLATILE: Final = ("ecc_volatile_corrected", "ecc_volatile_uncorrected")
_REMAP: Final = ("row_remap_corrected", "row_remap_uncorrected", "row_remap_pending", "row_remap_failed")


class Outcome:
    """What one round on one device gave."""

    __slots__ = ("codes", "fatal", "good", "values")

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.good = 0
        self.codes: list[int] = []
        self.fatal = errors.SUCCESS

    def note(self, code: int) -> bool:
        """Count a return code, and return whether the device can still be asked."""
        if code in (errors.SUCCESS, errors.NOT_FOUND) or errors.permanent(code) is not None:
            # "I do not have that" is an answer.
            self.good += 1
            return True
        self.codes.append(code)
        known = errors.RETURNS.get(code)
        if code == errors.UNINITIALIZED or (known is not None and known.presence is not None):
            self.fatal = code
            return False
        return True


class Retry(Struct):
    """A reading that failed and waits for its next try."""

    failures: int
    due: float
    absent: Absent


class Device:
    """A board or a MIG instance.

    Args:
        slot: Its number in the frames.
        index: NVML index of the board, -1 when not certain.
        board: The board of a MIG instance.
    """

    def __init__(self, slot: int, index: int, board: "Device | None" = None) -> None:
        self.slot = slot
        self.index = index
        self.board = board
        self.handle: CObject = None
        self.uuid = ""
        self.bus_id = ""
        self.instance = ""
        self.gpu_instance = -1
        self.mig_uuid = ""
        self.profile = ""
        self.capability: tuple[int, int] | None = None
        self.architecture = -1
        self.pci_device_id = 0
        self.persistent: bool | None = None
        self.has_ecc: bool | None = None
        self.is_vgpu = False
        self.mig_on = False
        self.unlisted_instances = errors.SUCCESS
        self.presence: Presence | None = None
        self.reason = ""
        self.reloaded = False
        self.reopened = False
        self.awaits_second_sample = False
        self.processes_mib: float | None = None
        self._ways: dict[str, int] = {}
        self._settled: dict[str, Absent] = {}
        self._retries: dict[str, Retry] = {}
        self._counters: dict[str, tuple[float, float]] = {}
        self._volatile: dict[str, float] = {}
        self._sent: dict[int, dict[str, Value]] = {}
        self._reopen_at = 0.0

    @property
    def info(self) -> DeviceInfo:
        """Who it is, for the parent."""
        return DeviceInfo(
            self.slot,
            self.index,
            self.uuid,
            self.bus_id,
            self.board.slot if self.board else -1,
            self.instance,
            self.mig_uuid,
        )

    def set_presence(self, presence: Presence, reason: str) -> bool:
        """Note how the device is, and return whether that is news."""
        news = (presence, reason) != (self.presence, self.reason)
        self.presence, self.reason = presence, reason
        return news

    def refused(self) -> list[str]:
        """Return the quantities that it refuses to this user."""
        known = {name: retry.absent for name, retry in self._retries.items()} | self._settled
        return [name for name, absent in known.items() if absent.code == errors.DENIED]

    @property
    def failing(self) -> bool:
        """Whether it answered nothing the last time."""
        return self.presence is not None and self.presence is not Presence.PRESENT

    def due_to_reopen(self, now: float) -> bool:
        """Whether a failing device is to be opened again now; at most every few seconds."""
        if now < self._reopen_at:
            return False
        self._reopen_at = now + _REOPEN_S
        return True

    def opened(self) -> None:
        """Forget what it did not support: it has just been opened, or its MIG mode has changed."""
        self._ways.clear()
        self._settled.clear()
        self._retries.clear()
        self._counters.clear()
        self._sent.clear()
        self._reopen_at = 0.0
        self.awaits_second_sample = self.persistent is False

    def forget_sent(self) -> None:
        """Send everything anew the next time: another set of readings is wanted."""
        self._sent.clear()

    def has_sent(self, group: int) -> bool:
        """Whether a sample of the class has been sent since it was opened."""
        return group in self._sent

    def confirmation(self) -> DeviceSample:
        """Return a sample that says: as before."""
        return DeviceSample(self.slot, time.time(), full=False, values={})

    def read(self, library: Library, reads: list[Read], group: int, outcome: Outcome, now: float) -> None:
        """Take the readings of one cadence class into `outcome`.

        Args:
            library: The library.
            reads: Those wanted of the class.
            group: The class.
            outcome: Where values and codes go.
            now: Monotonic time.
        """
        again = self._pass(library, reads, group, outcome, now)
        while again and not outcome.fatal:
            again = self._pass(library, again, group, outcome, now)
        self._derive(outcome.values)

    def _pass(self, library: Library, reads: list[Read], group: int, outcome: Outcome, now: float) -> list[Read]:
        """Try each reading's current way; return those whose way turned out not to exist."""
        again: list[Read] = []
        fields: list[Read] = []
        for read in reads:
            name = read.quantities[0]
            settled = self._settled.get(name)
            if settled is not None:
                self._put(outcome, read, settled)
                continue
            retry = self._retries.get(name)
            if retry is not None and now < retry.due:
                self._put(outcome, read, retry.absent)
                continue
            way = read.ways[self._ways.get(name, 0)]
            if isinstance(way, Field):
                fields.append(read)
                continue
            bound = library.bind(way)
            code = library.run(bound, self.index, self.handle)
            alive = outcome.note(code)
            if code == errors.SUCCESS:
                self._retries.pop(name, None)
                outcome.values.update(bound.values())
            elif self._failed(read, code, group, outcome, now):
                again.append(read)
            if not alive:
                return []
        if fields:
            again += self._read_fields(library, fields, group, outcome, now)
        return again

    def _read_fields(self, library: Library, reads: list[Read], group: int, outcome: Outcome, now: float) -> list[Read]:
        ways = [read.ways[self._ways.get(read.quantities[0], 0)] for read in reads]
        batch = library.batch(tuple(way for way in ways if isinstance(way, Field)))
        whole = library.read_fields(batch, self.index, self.handle)
        again: list[Read] = []
        for position, read in enumerate(reads):
            code = whole or batch.code(position)
            if not outcome.note(code):
                return []
            if code != errors.SUCCESS:
                if self._failed(read, code, group, outcome, now):
                    again.append(read)
                continue
            name = read.quantities[0]
            self._retries.pop(name, None)
            outcome.values[name] = self._rate(read, batch, position) if read.rate else batch.value(position, name)
        return again

    def _failed(self, read: Read, code: int, group: int, outcome: Outcome, now: float) -> bool:
        """Note a failure, and return whether there is another way to try at once."""
        name = read.quantities[0]
        absent = errors.permanent(code)
        if absent is not None:
            position = self._ways.get(name, 0) + 1
            if position < len(read.ways):
                self._ways[name] = position
                return True
            if self.mig_on and self.board is None and code == errors.CODE_NOT_SUPPORTED:
                absent = _WITH_MIG
            self._settled[name] = absent
        else:
            absent = errors.passing(code)
            retry = self._retries.setdefault(name, Retry(0, now, absent))
            retry.absent = absent
            # The first retry comes with the next round: most failures pass.
            if retry.failures:
                step = max(1.0, cadence.CADENCES[group].at_least_s)
                retry.due = now + min(_RETRY_MAX_S, step * 2.0**retry.failures)
            retry.failures += 1
        self._put(outcome, read, absent)
        return False

    @staticmethod
    def _put(outcome: Outcome, read: Read, absent: Absent) -> None:
        for quantity in read.quantities:
            outcome.values.setdefault(quantity, absent)

    def _rate(self, read: Read, batch: FieldBatch, position: int) -> Value:
        raw = batch.raw(position)
        if isinstance(raw, Absent):
            return raw
        name = read.quantities[0]
        now = time.monotonic()
        known = self._counters.get(name)
        self._counters[name] = (raw, now)
        if int(batch.array[position].valueType) in NARROW_TYPES:
            return _WRAPS
        if known is None:
            return _NO_RATE_YET
        before, then = known
        if raw < before:
            return _RESTARTED
        if now <= then:
            return _NO_RATE_YET
        return judge(name, (raw - before) * batch.fields[position].scale / (now - then))

    def _derive(self, values: dict[str, Value]) -> None:
        """Complete and correct readings by what is known of the device."""
        if "utilization" in values and self.awaits_second_sample:
            self.awaits_second_sample = False
            for quantity in ("utilization", "memory_utilization"):
                if isinstance(values.get(quantity), float):
                    values[quantity] = _FIRST_SAMPLE
        received, sent = values.get("nvlink_rx_bytes_per_s"), values.get("nvlink_tx_bytes_per_s")
        if isinstance(received, float) and isinstance(sent, float):
            values["nvlink_throughput_bytes_per_s"] = received + sent
        elif received is not None and sent is not None:
            values["nvlink_throughput_bytes_per_s"] = received if isinstance(received, Absent) else sent
        # A board without remapping may answer with success and zeros (leptonai/gpud, RTX 4090): that is
        # no word on its health.
        if self.has_ecc is False and all(values.get(quantity) == 0.0 for quantity in _REMAP):
            values.update(dict.fromkeys(_REMAP, _NO_REMAPPING))
        for quantity in _VOLATILE:
            count = values.get(quantity)
            if isinstance(count, float):
                # Volatile counts begin again only when the driver is loaded again.
                self.reloaded = self.reloaded or count < self._volatile.get(quantity, 0.0)
                self._volatile[quantity] = count

    def sample(self, group: int, values: dict[str, Value], wanted: frozenset[str] | None) -> DeviceSample:
        """Return what is new in `values` since the last sample of the class."""
        now = time.time()
        kept = {
            quantity: value
            for quantity, value in values.items()
            if quantity in QUANTITIES and (wanted is None or quantity in wanted)
        }
        known = self._sent.get(group)
        self._sent[group] = kept
        if known is None or known.keys() != kept.keys():
            return DeviceSample(self.slot, now, full=True, values=kept)
        changed = {quantity: value for quantity, value in kept.items() if known[quantity] != value}
        return DeviceSample(self.slot, now, full=False, values=changed)
