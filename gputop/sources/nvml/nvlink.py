"""NVLink: how many links there are, how many are up, and what they have counted.

A board without NVLink has no links; it has not lost them (NVIDIA/NVSentinel#1481 raised alarms on PCIe
cards). Which counters exist depends on the generation: up to NVLink 4 there are totals of CRC, replay and
recovery, later drivers count each link for itself, and NVLink 5 counts packets, symbols and recoveries by
kind and tells bit error rates.
"""

import ctypes
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from gputop.model.reading import NA, Absent, Value
from gputop.sources.nvml import errors
from gputop.sources.nvml.device import Device, Outcome
from gputop.sources.nvml.library import FieldBatch, Library, symbol
from gputop.sources.nvml.ways import Field, number

NO_NVLINK: Final = Absent(NA, "not_supported", "this GPU has no NVLink")
_LINK_COUNT: Final = 91
_LINK_STATE: Final = 165
_MOST_LINKS: Final = 36

# Active, and asleep to save power: a link that sleeps wakes by itself.
_UP: Final = frozenset({1.0, 2.0})

# nvmlNvlinkVersion_t
_VERSIONS: Final = {1: "1.0", 2: "2.0", 3: "2.2", 4: "3.0", 5: "3.1", 6: "4.0", 7: "5.0", 8: "6.0"}


# All bits of a rate: nothing has been counted that it could be worked out from (nvidia-smi: 15e-255).
_NO_RATE: Final = 0xFFF
_NO_ERRORS_YET: Final = Absent(NA, "no_errors", "no bit error has been counted, so there is no rate")


class _Total(Struct, frozen=True):
    """A counter of the whole board."""

    field: int

    def fields(self, links: int) -> tuple[Field, ...]:
        del links
        return (Field(self.field),)


class _PerLink(Struct, frozen=True):
    """A number of each link: a counter, added up, or a bit error rate, of which the worst counts."""

    field: int
    is_rate: bool = False

    def fields(self, links: int) -> tuple[Field, ...]:
        return tuple(Field(self.field, link) for link in range(links))


COUNTERS: Final[dict[str, tuple[_Total | _PerLink, ...]]] = {
    "nvlink_crc_flit_errors": (_Total(38), _PerLink(163)),
    "nvlink_crc_data_errors": (_Total(45),),
    "nvlink_replay_errors": (_Total(52), _PerLink(161)),
    "nvlink_recovery_errors": (_Total(59), _PerLink(162), _PerLink(215)),
    "nvlink_ecc_data_errors": (_Total(160),),
    "nvlink_malformed_packet_errors": (_PerLink(206),),
    "nvlink_buffer_overrun_errors": (_PerLink(207),),
    "nvlink_receive_errors": (_PerLink(208),),
    "nvlink_receive_remote_errors": (_PerLink(209),),
    "nvlink_receive_general_errors": (_PerLink(210),),
    "nvlink_link_integrity_errors": (_PerLink(211),),
    "nvlink_transmit_discards": (_PerLink(212),),
    "nvlink_recoveries_successful": (_PerLink(213),),
    "nvlink_recoveries_failed": (_PerLink(214),),
    "nvlink_effective_errors": (_PerLink(219),),
    "nvlink_symbol_errors": (_PerLink(221),),
    "nvlink_effective_ber": (_PerLink(220, is_rate=True),),
    "nvlink_symbol_ber": (_PerLink(222, is_rate=True),),
}
"""The ways to each counter, tried in order."""

QUANTITIES: Final = frozenset({"nvlink_links", "nvlink_links_active", "nvlink_version", *COUNTERS})


class _Known(Struct):
    """What has been learnt of a device's links."""

    links: int
    version: Value
    state_by_field: bool
    ways: dict[str, int]


class Links:
    """Reads the links of devices."""

    quantities = QUANTITIES

    def __init__(self, library: Library) -> None:
        self._library = library
        self._known: dict[int, _Known] = {}
        self._state = symbol("nvmlDeviceGetNvLinkState")
        self._version = symbol("nvmlDeviceGetNvLinkVersion")

    def forget(self, slot: int) -> None:
        """Look at a device's links anew."""
        self._known.pop(slot, None)

    def read(self, device: Device, outcome: Outcome, wanted: frozenset[str] | None) -> None:
        """Take the link readings of a board into `outcome`.

        Args:
            device: The board.
            outcome: Where values and codes go.
            wanted: Quantities that are wanted, None for all: NVLink 5 has hundreds of counters to a board.
        """
        known = self._known.get(device.slot)
        if known is None:
            links = self._count(device, outcome)
            if outcome.fatal or links is None:
                return
            version = self._read_version(device, outcome) if links else NO_NVLINK
            known = self._known[device.slot] = _Known(links, version, True, dict.fromkeys(COUNTERS, 0))
        if not known.links:
            outcome.values.update(dict.fromkeys(QUANTITIES, NO_NVLINK))
            return
        outcome.values["nvlink_links"] = float(known.links)
        outcome.values["nvlink_version"] = known.version
        outcome.values["nvlink_links_active"] = self._active(device, known, outcome)
        pending = [counter for counter in COUNTERS if wanted is None or counter in wanted]
        while pending and not outcome.fatal:
            pending = self._count_errors(device, known, pending, outcome)

    def _count(self, device: Device, outcome: Outcome) -> int | None:
        """Return the number of links, None when it cannot be told now."""
        batch = self._library.batch((Field(_LINK_COUNT),))
        code = self._library.read_fields(batch, device.index, device.handle) or batch.code(0)
        outcome.note(code)
        if code == errors.SUCCESS:
            raw = batch.raw(0)
            return int(raw) if isinstance(raw, float) and raw <= _MOST_LINKS else None
        if errors.permanent(code) is None:
            return None
        for link in range(_MOST_LINKS):
            code = self._link_state(device, link)[0]
            if code in (errors.INVALID_ARGUMENT, errors.CODE_NOT_SUPPORTED, errors.FUNCTION_NOT_FOUND):
                return link
            if not outcome.note(code):
                return None
        return _MOST_LINKS

    def _link_state(self, device: Device, link: int) -> tuple[int, float]:
        if self._state is None:
            return errors.FUNCTION_NOT_FOUND, 0.0
        active = ctypes.c_uint(0)
        code = self._library.raw(
            self._state,
            b"nvmlDeviceGetNvLinkState",
            device.index,
            device.handle,
            ctypes.c_uint(link),
            ctypes.byref(active),
        )
        return code, float(active.value)

    def _read_version(self, device: Device, outcome: Outcome) -> Value:
        code = errors.FUNCTION_NOT_FOUND
        version = ctypes.c_uint(0)
        if self._version is not None:
            code = self._library.raw(
                self._version,
                b"nvmlDeviceGetNvLinkVersion",
                device.index,
                device.handle,
                ctypes.c_uint(0),
                ctypes.byref(version),
            )
        outcome.note(code)
        if code != errors.SUCCESS:
            return errors.permanent(code) or errors.passing(code)
        return _VERSIONS.get(version.value, f"unknown ({version.value})")

    def _active(self, device: Device, known: _Known, outcome: Outcome) -> Value:
        if known.state_by_field:
            batch = self._library.batch(_PerLink(_LINK_STATE).fields(known.links))
            total = self._sum(device, batch, outcome, lambda raw: float(raw in _UP))
            if not isinstance(total, Absent) or total.state != NA:
                return total
            known.state_by_field = False
        active = 0.0
        for link in range(known.links):
            code, state = self._link_state(device, link)
            if not outcome.note(code) or code != errors.SUCCESS:
                return errors.permanent(code) or errors.passing(code)
            active += float(state in _UP)
        return active

    def _count_errors(self, device: Device, known: _Known, quantities: list[str], outcome: Outcome) -> list[str]:
        """Read the counters' current ways in one call; return those whose way turned out not to exist."""
        spans: list[tuple[str, range, bool]] = []
        fields: list[Field] = []
        for quantity in quantities:
            ways = COUNTERS[quantity]
            if known.ways[quantity] >= len(ways):
                outcome.values[quantity] = Absent(NA, "not_supported", "this NVLink generation does not count it")
                continue
            way = ways[known.ways[quantity]]
            own = way.fields(known.links)
            is_rate = isinstance(way, _PerLink) and way.is_rate
            spans.append((quantity, range(len(fields), len(fields) + len(own)), is_rate))
            fields += own
        if not fields:
            return []
        batch = self._library.batch(tuple(fields))
        whole = self._library.read_fields(batch, device.index, device.handle)
        if not outcome.note(whole):
            return []
        again: list[str] = []
        for quantity, span, is_rate in spans:
            total = (_worst if is_rate else _add)(batch, whole, span, outcome)
            if isinstance(total, Absent) and total.state == NA and total is not _NO_ERRORS_YET:
                known.ways[quantity] += 1
                again.append(quantity)
            else:
                outcome.values[quantity] = number(quantity, total, 1.0) if isinstance(total, float) else total
        return again

    def _sum(
        self, device: Device, batch: FieldBatch, outcome: Outcome, count: Callable[[float], float]
    ) -> float | Absent:
        whole = self._library.read_fields(batch, device.index, device.handle)
        if not outcome.note(whole):
            return errors.passing(whole)
        return _add(batch, whole, range(batch.count), outcome, count)


def _read(batch: FieldBatch, whole: int, position: int, outcome: Outcome) -> float | Absent:
    """Return one entry, or why there is none; its failure is noted."""
    code = whole or batch.code(position)
    if code == errors.SUCCESS:
        return batch.raw(position)
    outcome.note(code)
    return errors.permanent(code) or errors.passing(code)


def _add(
    batch: FieldBatch,
    whole: int,
    span: range,
    outcome: Outcome,
    weigh: Callable[[float], float] = float,
) -> float | Absent:
    """Return the sum over some entries, or why there is none: a sum with a part missing is no sum."""
    total = 0.0
    for position in span:
        raw = _read(batch, whole, position, outcome)
        if isinstance(raw, Absent):
            return raw
        total += weigh(raw)
    outcome.note(errors.SUCCESS)
    return total


def _worst(batch: FieldBatch, whole: int, span: range, outcome: Outcome) -> float | Absent:
    """Return the largest bit error rate of some links, or why there is none."""
    rates: list[float] = []
    for position in span:
        raw = _read(batch, whole, position, outcome)
        if isinstance(raw, Absent):
            return raw
        if int(raw) != _NO_RATE:
            rates.append(bit_error_rate(int(raw)))
    outcome.note(errors.SUCCESS)
    return max(rates) if rates else _NO_ERRORS_YET


def bit_error_rate(raw: int) -> float:
    """Return a rate that the driver packs: mantissa in bits 8 to 11, power of ten below (nvml.h, BER_…)."""
    return float(f"{raw >> 8 & 0xF}e-{raw & 0xFF}")
