"""Codes of NVML in words: clock-event reasons, recovery actions, presence.

Bits as in `nvml.h` (nvmlClocksEventReason*); idle, application clocks and display clocks are settings and
no throttling. Actions as in nvmlDeviceGpuRecoveryAction_t and nvidia-ml-py 13.615; an unknown one is shown
as its number.
"""

from typing import Final

from msgspec import Struct

from gputop.model.facts import Presence


class ClockReason(Struct, frozen=True, gc=False):
    """One bit: its letter in the table ("" when it is no slowdown), its words, how bad it is, a few letters."""

    bit: int
    letter: str
    words: str
    role: str
    brief: str = ""


CLOCK_REASONS: Final = (
    ClockReason(0x80, "B", "hardware power brake (power supply or rack)", "bad", "power brake"),
    ClockReason(0x40, "T", "hardware thermal slowdown", "bad", "HW thermal"),
    ClockReason(0x08, "H", "hardware slowdown", "bad", "HW slowdown"),
    ClockReason(0x20, "T", "software thermal slowdown", "warn", "SW thermal"),
    ClockReason(0x04, "P", "power cap", "dim"),
    ClockReason(0x10, "S", "sync boost", "dim"),
    ClockReason(0x200, "L", "board limit", "dim"),
    ClockReason(0x400, "R", "reliability limit", "dim"),
    ClockReason(0x01, "", "idle", "dim"),
    ClockReason(0x02, "", "application clocks setting", "dim"),
    ClockReason(0x100, "", "display clocks setting", "dim"),
)
_KNOWN_BITS: Final = sum(r.bit for r in CLOCK_REASONS)


def clock_letter(mask: int) -> tuple[str, str]:
    """Return the letter and the role of the worst reason that holds the clock down; ("", "") for none."""
    for reason in CLOCK_REASONS:
        if mask & reason.bit and reason.letter:
            return reason.letter, reason.role
    return ("?", "warn") if mask & ~_KNOWN_BITS else ("", "")


def clock_brief(mask: int) -> str:
    """Return the worst reason in a few letters; what is not known as hex."""
    for reason in CLOCK_REASONS:
        if mask & reason.bit and reason.letter:
            return reason.brief or reason.words
    return f"clock reason {mask & ~_KNOWN_BITS:#x}"


def clock_words(mask: int) -> str:
    """Return all reasons in words; bits that are not known as hex."""
    words = [r.words for r in CLOCK_REASONS if mask & r.bit]
    unknown = mask & ~_KNOWN_BITS
    if unknown:
        words.append(f"unknown reason {unknown:#x}")
    return ", ".join(words) or "none"


_ACTIONS: Final = {
    0: "none",
    1: "GPU reset",
    2: "node reboot",
    3: "drain P2P: no new peer-to-peer jobs",
    4: "drain and reset",
    5: "recover the IMEX domain",
    6: "bus reset",
    7: "system reboot",
}


def recovery_words(action: float) -> str:
    """Return what the device asks for."""
    return _ACTIONS.get(int(action), f"recovery action {action:.0f} (unknown)")


PRESENCE_WORDS: Final = {
    Presence.PRESENT: "present",
    Presence.LOST: "LOST",
    Presence.RESET_REQUIRED: "RESET REQUIRED",
    Presence.DENIED: "DENIED",
    Presence.ERROR: "ERROR",
    Presence.MISSING: "MISSING",
    Presence.DRIVERLESS: "NO DRIVER",
    Presence.UNKNOWN: "UNKNOWN",
}
PRESENCE_ROLES: Final = {
    Presence.PRESENT: "ok",
    Presence.LOST: "bad",
    Presence.RESET_REQUIRED: "bad",
    Presence.DENIED: "warn",
    Presence.ERROR: "bad",
    Presence.MISSING: "bad",
    Presence.DRIVERLESS: "info",
    Presence.UNKNOWN: "unknown",
}
BROKEN: Final = frozenset({Presence.LOST, Presence.RESET_REQUIRED, Presence.ERROR, Presence.MISSING})
"""States in which a GPU does not work."""
