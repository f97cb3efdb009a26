"""What parent and child say to each other: frames of msgpack with a length in front.

Values travel in the form of the model, already judged. A reading that has not changed since the child's
last frame is not sent again: being listed in the frame says that it was read and is the same, and the
parent stamps it anew.
"""

import struct
from typing import Final

import msgspec
from msgspec import Struct

from gputop.model.facts import PciGpu, Presence
from gputop.model.process import GpuProcess
from gputop.model.reading import Absent, Value
from gputop.model.status import Finding

_LENGTH: Final = struct.Struct("<I")
_MAX_FRAME: Final = 16 * 1024 * 1024


class Skip(Struct, frozen=True, array_like=True, gc=False):
    """A GPU that the child is not to touch because another child is stuck on it."""

    index: int
    bus_id: str


class Plan(Struct, frozen=True, tag="plan", array_like=True):
    """What to read from now on, as in `gputop.sources.base.Demand`.

    Attributes:
        quantities: Ids; None for all.
        processes: Whether to list processes.
        profiling: Whether GPM sampling is allowed.
        interval_s: Cadence of the fast readings.
        skip: GPUs not to touch.
    """

    quantities: frozenset[str] | None
    processes: bool
    profiling: bool
    interval_s: float
    skip: tuple[Skip, ...] = ()


class Refresh(Struct, frozen=True, tag="refresh", array_like=True):
    """Read everything now."""


class Host(Struct, frozen=True, tag="host", array_like=True):
    """The node itself: what its PCI bus shows (None when it cannot be looked at) and its readings."""

    at: float
    pci: tuple[PciGpu, ...] | None
    readings: dict[str, Value]


class NoNvml(Struct, frozen=True, tag="no_nvml", array_like=True):
    """NVML cannot be used; the child ends after this.

    Attributes:
        code: Word as in `NodeTrouble.code`.
        text: One sentence, with the next step where there is one.
        denied: It is a matter of this user's rights.
    """

    code: str
    text: str
    denied: bool = False


class DeviceInfo(Struct, frozen=True, array_like=True, gc=False):
    """A device that NVML counts.

    Attributes:
        slot: Number by which later frames name it; never given to another device by the same child.
        index: NVML index, of the board for an instance; -1 when it is not certain.
        uuid: Of the board; "" when not told.
        bus_id: Of the board; "" when not told.
        board: Slot of the board for a MIG instance, else -1.
        instance: As `GpuRef.instance`.
        mig_uuid: As `GpuRef.mig_uuid`.
    """

    slot: int
    index: int
    uuid: str
    bus_id: str
    board: int = -1
    instance: str = ""
    mig_uuid: str = ""


class Devices(Struct, frozen=True, tag="devices", array_like=True):
    """Every device the child reads or tries to; replaces the list before."""

    devices: tuple[DeviceInfo, ...]


class State(Struct, frozen=True, tag="state", array_like=True):
    """A device's state has changed."""

    slot: int
    presence: Presence
    reason: str
    at: float


class DeviceSample(Struct, frozen=True, array_like=True):
    """One device in a sample.

    Attributes:
        slot: The device.
        at: When it was read, seconds since the epoch.
        full: `values` is all there is; else what changed.
        values: Readings by quantity id.
    """

    slot: int
    at: float
    full: bool
    values: dict[str, Value]


class Sample(Struct, frozen=True, tag="sample", array_like=True):
    """Readings of one cadence class; a device that is not in it did not answer.

    Attributes:
        group: Index into `gputop.sources.nvml.cadence.CADENCES`.
        devices: The devices that answered.
        interval_s: Time to the next sample of the class.
    """

    group: int
    devices: tuple[DeviceSample, ...]
    interval_s: float


class ProcessTable(Struct, frozen=True, array_like=True):
    """Processes on one device; None when they are the same as in the frame before."""

    slot: int
    processes: tuple[GpuProcess, ...] | Absent | None


class Processes(Struct, frozen=True, tag="processes", array_like=True):
    """Process tables of the devices that answered."""

    at: float
    tables: tuple[ProcessTable, ...]
    interval_s: float


class XidEvent(Struct, frozen=True, tag="xid", array_like=True):
    """An Xid came through the event set."""

    slot: int
    xid: int
    at: float


class Costs(Struct, frozen=True, tag="costs", array_like=True):
    """What the child has cost since its start, and its slowest calls since the frame before."""

    cpu_s: float
    calls: int
    round_s: float
    slowest: tuple[tuple[str, float], ...]


class Notes(Struct, frozen=True, tag="notes", array_like=True):
    """What the child may see and what it lacks; replaces the notes before."""

    findings: tuple[Finding, ...]


class RoundDone(Struct, frozen=True, tag="round", array_like=True):
    """Everything asked for has been read at least once."""


class Restart(Struct, frozen=True, tag="restart", array_like=True):
    """The child ends because only a fresh process can go on (driver reloaded, GPUs came or went)."""

    reason: str


Up = Host | NoNvml | Devices | State | Sample | Processes | XidEvent | Costs | Notes | RoundDone | Restart
"""From the child."""

Down = Plan | Refresh
"""From the parent."""

_encoder: Final = msgspec.msgpack.Encoder()


class FrameError(Exception):
    """The bytes are no frames of this protocol: something else writes into the pipe."""


def frame(message: Up | Down) -> bytes:
    """Return a message with its length in front."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


def up_decoder() -> msgspec.msgpack.Decoder[Up]:
    """Return a decoder of what the child says; made only where it is needed, as it takes memory."""
    return msgspec.msgpack.Decoder(Up)


def down_decoder() -> msgspec.msgpack.Decoder[Down]:
    """Return a decoder of what the parent says."""
    return msgspec.msgpack.Decoder(Down)


class Frames:
    """Cuts a stream of bytes into the bodies of frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Take in bytes and return the bodies that are complete.

        Raises:
            FrameError: A length is beyond anything this protocol sends.
        """
        self._buffer += data
        bodies: list[bytes] = []
        start = 0
        while len(self._buffer) - start >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._buffer, start)
            if size > _MAX_FRAME:
                raise FrameError(f"a frame of {size} bytes")
            end = start + _LENGTH.size + size
            if end > len(self._buffer):
                break
            bodies.append(bytes(self._buffer[start + _LENGTH.size : end]))
            start = end
        del self._buffer[:start]
        return bodies
