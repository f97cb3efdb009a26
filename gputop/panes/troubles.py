"""What an error counter or state says of a GPU: how urgent it is, and in which words."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from gputop.fleet import GpuState
from gputop.model.facts import Presence
from gputop.panes.format import count
from gputop.panes.words import recovery_words

LINK_ERRORS: Final = (
    "nvlink_crc_flit_errors", "nvlink_crc_data_errors", "nvlink_replay_errors", "nvlink_recovery_errors",
    # NVLink 5 and newer count these instead. Symbol errors are corrected on the way and are no errors.
    "nvlink_malformed_packet_errors", "nvlink_buffer_overrun_errors", "nvlink_receive_errors",
    "nvlink_link_integrity_errors", "nvlink_recoveries_failed",
)  # fmt: skip
"""Counters of which any count is an error of the NVLinks."""

_ABSENT: Final = 6.0
_XID: Final = 0.8
"""An Xid is dated in a column of its own; here it only lifts the row above those with nothing to tell."""


class Trouble(Struct, frozen=True):
    """What a reading above 0 says of a GPU.

    Attributes:
        quantity: The reading.
        weight: How urgent it is, up to 9; below 1 it is worth telling and asks for nothing.
        words: Gives the words from the number.
    """

    quantity: str
    weight: float
    words: Callable[[float], str]

    @property
    def role(self) -> str:
        """How it is drawn."""
        return "bad" if self.weight >= 4.0 else "warn" if self.weight >= 1.0 else "dim"


def _so_many(words: str, one: str = "", more: str = "") -> Callable[[float], str]:
    """Return what gives "12 words" with the ending for one or for more."""
    return lambda v: f"{count(v)} {words}{one if v == 1 else more}"


TROUBLES: Final = (
    Trouble("row_remap_failed", 5.0, lambda _: "remap FAILED"),
    Trouble("ecc_sram_threshold_exceeded", 4.0, lambda _: "SRAM threshold"),
    Trouble("ecc_volatile_uncorrected", 4.0, _so_many("uncorrected ECC")),
    Trouble("recovery_action", 4.0, lambda v: f"asks: {recovery_words(v)}"),
    Trouble("row_remap_pending", 3.0, lambda _: "remap pending"),
    Trouble("retired_pages_pending", 3.0, lambda _: "page retirement pending"),
    Trouble("nvlink_recoveries_failed", 3.0, _so_many("NVLink recover", "y failed", "ies failed")),
    Trouble("nvlink_recovery_errors", 2.0, _so_many("NVLink recover", "y", "ies")),
    Trouble("retired_pages_dbe", 1.0, _so_many("page", " retired", "s retired")),
    Trouble("row_remap_uncorrected", 1.0, _so_many("row", " remapped", "s remapped")),
    # Corrected errors are no fault by themselves, and what a board has lived through is history.
    Trouble("ecc_aggregate_uncorrected", 0.6, _so_many("uncorrected ever")),
    Trouble("nvlink_link_integrity_errors", 0.5, _so_many("NVLink integrity error", "", "s")),
    Trouble("nvlink_replay_errors", 0.5, _so_many("NVLink replay", "", "s")),
    Trouble("nvlink_crc_flit_errors", 0.5, _so_many("NVLink CRC error", "", "s")),
    Trouble("nvlink_crc_data_errors", 0.5, _so_many("NVLink CRC error", "", "s")),
    Trouble("nvlink_malformed_packet_errors", 0.5, _so_many("NVLink bad packet", "", "s")),
    Trouble("nvlink_buffer_overrun_errors", 0.5, _so_many("NVLink packet", " dropped", "s dropped")),
    Trouble("nvlink_receive_errors", 0.5, _so_many("NVLink receive error", "", "s")),
    Trouble("ecc_volatile_corrected", 0.4, _so_many("corrected ECC")),
    Trouble("ecc_aggregate_corrected", 0.3, _so_many("corrected ever")),
)
"""The most urgent first, so that the first that holds is the worst."""

_RAISING: Final = tuple(t for t in TROUBLES if t.weight >= 1.0)


def worst_trouble(gpu: GpuState) -> tuple[Trouble, float] | None:
    """Return the most urgent trouble of a GPU with its number, None where no counter or state says anything."""
    return _first(gpu, TROUBLES)


def raised_trouble(gpu: GpuState) -> tuple[Trouble, float] | None:
    """Return the most urgent trouble of those that ask for a look."""
    return _first(gpu, _RAISING)


def _first(gpu: GpuState, troubles: tuple[Trouble, ...]) -> tuple[Trouble, float] | None:
    readings = gpu.readings
    for trouble in troubles:
        reading = readings.get(trouble.quantity)
        value = reading.number if reading is not None else None
        if value:
            return trouble, value
    return None


def interest(gpu: GpuState) -> float:
    """Return how far up a GPU belongs among errors: what needs a look, then what has anything at all to tell."""
    if gpu.presence is not Presence.PRESENT:
        return _ABSENT
    found = worst_trouble(gpu)
    return max(found[0].weight if found else 0.0, _XID if gpu.xids else 0.0)
