"""Values as nvidia-smi prints them, turned into numbers, texts or the reason why there is none.

nvidia-smi prints the text of an NVML error where a value should stand, and has spelt the same state in
several ways over the years ("N/A", "[N/A]", "[Not Supported]", "GPU requires reset", "[GPU requires
reset]", "ERR!"). The words below are those of `nvmlErrorString` and of `nvidia-smi --help-query-gpu`.
A number is taken only when the whole text is a number with a unit of the right dimension: half a number is
never a number.
"""

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from gputop.model.facts import Presence
from gputop.model.reading import DEPRECATED, NA, NOT_SUPPORTED, UNKNOWN, Absent, Value, denied, failed
from gputop.model.sanity import judge, judge_raw
from gputop.model.text import clean


class Word(Struct, frozen=True):
    """A text that stands where a value should.

    Attributes:
        text: What is looked for in the normalised text (see `_plain`).
        absent: What it means for the value.
        presence: What it means for the GPU; None when it tells nothing about the GPU as a whole.
        whole: The text must be all there is, not only part of it.
    """

    text: str
    absent: Absent
    presence: Presence | None = None
    whole: bool = False


LOST: Final = Absent(UNKNOWN, "lost", "the driver says that the GPU is lost")
RESET_REQUIRED: Final = Absent(UNKNOWN, "reset_required", "the driver says that the GPU requires a reset")
NO_PERMISSION: Final = denied("nvidia-smi had no permission to read it")

WORDS: Final = (
    Word("n/a", NOT_SUPPORTED, whole=True),
    Word("na", NOT_SUPPORTED, whole=True),
    Word("-", NOT_SUPPORTED, whole=True),
    Word("", Absent(UNKNOWN, "empty", "nvidia-smi left it empty"), whole=True),
    Word("not supported", NOT_SUPPORTED),
    Word("unsupported", NOT_SUPPORTED),
    Word("not available", NOT_SUPPORTED),
    Word("not applicable", NOT_SUPPORTED),
    Word("requested functionality has been deprecated", DEPRECATED),
    Word("deprecated", DEPRECATED, whole=True),
    Word("gpu is lost", LOST, Presence.LOST),
    Word("gpu lost", LOST, Presence.LOST),
    Word("lost", LOST, Presence.LOST, whole=True),
    Word("fallen off the bus", LOST, Presence.LOST),
    Word("requires reset", RESET_REQUIRED, Presence.RESET_REQUIRED),
    Word("requires a reset", RESET_REQUIRED, Presence.RESET_REQUIRED),
    Word("requires restart", RESET_REQUIRED, Presence.RESET_REQUIRED),
    Word("reset required", RESET_REQUIRED, Presence.RESET_REQUIRED),
    Word("reset is required", RESET_REQUIRED, Presence.RESET_REQUIRED),
    Word("needs reset", RESET_REQUIRED, Presence.RESET_REQUIRED),
    Word("insufficient permission", NO_PERMISSION, Presence.DENIED),
    Word("permission denied", NO_PERMISSION, Presence.DENIED),
    Word("no permission", NO_PERMISSION, Presence.DENIED),
    Word("unknown error", failed("nvidia-smi says: Unknown Error"), Presence.ERROR),
    Word("err!", failed("nvidia-smi says: ERR!"), Presence.ERROR),
    Word("error", failed("nvidia-smi says: Error"), Presence.ERROR, whole=True),
    Word(
        "operating system has blocked",
        failed("the operating system blocked nvidia-smi (device cgroup)", "os_blocked"),
        Presence.ERROR,
    ),
    Word("blocked by the operating system", failed("the operating system blocked it"), Presence.ERROR),
    Word("insufficient external power", failed("the board lacks external power"), Presence.ERROR),
    Word("interrupt request issue", failed("interrupt request issue"), Presence.ERROR),
    Word("corrupted inforom", failed("the InfoROM is corrupted")),
    Word("inforom is corrupted", failed("the InfoROM is corrupted")),
    Word("driver not loaded", failed("the driver is not loaded"), Presence.ERROR),
    Word("uninitialized", failed("NVML is not initialised"), Presence.ERROR),
    Word("version mismatch", failed("driver and library versions differ"), Presence.ERROR),
    Word("timeout", failed("the reading timed out"), Presence.ERROR),
    Word("in use by another client", failed("in use by another client")),
    Word("not ready", failed("the system is not ready")),
    Word("invalid argument", failed("nvidia-smi says: Invalid Argument")),
    Word("function not found", Absent(NA, "function_not_found", "the library is too old to tell")),
    Word("not found", Absent(NA, "not_found", "not found"), whole=True),
    Word("no data", failed("no data"), whole=True),
    Word("insufficient", failed("nvidia-smi lacked a resource to read it")),
)
"""Texts in place of a value; the first that matches decides."""

_REMARK: Final = re.compile(r"\s*\[deprecated\b[^\]]*\]\s*$", re.IGNORECASE)
_SPACES: Final = re.compile(r"\s+")


def without_remark(text: str) -> str:
    """Return `text` without the remark "[Deprecated; … Use KMD Version instead]" that driver 610 adds."""
    return _REMARK.sub("", text)


def _plain(text: str) -> str:
    text = _SPACES.sub(" ", text.strip())
    if len(text) > 1 and text[0] in "[<(\"'" and text[-1] in "])>\"'":
        text = text[1:-1].strip()
    return text.rstrip(".").casefold()


def word(text: str) -> Word | None:
    """Return the word that stands in `text` in place of a value, or None if it may be a value."""
    plain = _plain(text)
    for entry in WORDS:
        if plain == entry.text or (not entry.whole and entry.text in plain):
            return entry
    return None


def unreadable(text: str) -> Absent:
    """Return the absence of a value whose text is not understood."""
    return failed(f"not understood: {clean(text.strip(), 60)!r}", "unreadable")


UNITS: Final[dict[str, dict[str, float]]] = {
    # What is printed -> factor to the quantity's unit. "" stands for a number without a unit.
    "MiB": {"mib": 1.0, "kib": 1 / 1024, "gib": 1024.0},
    "%": {"%": 1.0},
    "°C": {"c": 1.0, "°c": 1.0},
    "W": {"w": 1.0, "mw": 0.001},
    "MHz": {"mhz": 1.0, "ghz": 1000.0},
    # The counter's step is 1000 bytes: NVML documents KB/s and rounds to whole thousands on some boards.
    "B/s": {"kb/s": 1e3, "mb/s": 1e6, "gb/s": 1e9, "b/s": 1.0},
    "ns": {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9},
    "lanes": {"x": 1.0, "": 1.0},
    "banks": {"bank(s)": 1.0, "banks": 1.0, "bank": 1.0, "": 1.0},
    "": {"": 1.0},
}
"""Units by dimension."""

_NUMBER: Final = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*(\S*)")

Read = Callable[[str, str], Value]
"""Reads a text as one quantity: (quantity id, text) to a value in the quantity's unit."""


def number(unit: str) -> Read:
    """Return a reader of numbers with a unit of `UNITS`, judged by the quantity's plausible range."""
    factors = UNITS[unit]

    def read(quantity: str, text: str) -> Value:
        found = word(text)
        if found is not None:
            return found.absent
        match = _NUMBER.fullmatch(text.strip())
        factor = factors.get(match.group(2).casefold()) if match else None
        if match is None or factor is None:
            return unreadable(text)
        value = float(match.group(1))
        return judge_raw(value) or judge(quantity, value * factor)

    return read


_ON: Final = frozenset({"enabled", "yes", "active", "on", "true"})
_OFF: Final = frozenset({"disabled", "no", "not active", "off", "false", "none"})


def flag(_quantity: str, text: str) -> Value:
    """Read "Enabled", "Yes", "Active", … as 1 and their opposites as 0."""
    found = word(text)
    if found is not None:
        return found.absent
    plain = _plain(text)
    if plain in _ON:
        return 1.0
    return 0.0 if plain in _OFF else unreadable(text)


def words(_quantity: str, text: str) -> Value:
    """Read a text, such as a version or a model name; "None" is taken as a name."""
    text = without_remark(text)
    found = word(text)
    return found.absent if found is not None else clean(_SPACES.sub(" ", text.strip()))


def performance_state(quantity: str, text: str) -> Value:
    """Read "P0" … "P15" as its number."""
    found = word(text)
    if found is not None:
        return found.absent
    match = re.fullmatch(r"[Pp](\d{1,2})", text.strip())
    return judge(quantity, float(match.group(1))) if match else unreadable(text)


def _named(names: dict[str, str]) -> Read:
    """Return a reader of names that the NVML source spells otherwise; others are taken as they are."""

    def read(quantity: str, text: str) -> Value:
        value = words(quantity, text)
        return names.get(_plain(value), value) if isinstance(value, str) else value

    return read


compute_mode: Final = _named(
    {
        "default": "default",
        "exclusive_thread": "exclusive thread",
        "exclusive_process": "exclusive process",
        "prohibited": "prohibited",
    }
)
"""Reads a compute mode in the words of the NVML source."""

virtualization_mode: Final = _named(
    {
        "none": "none",
        "pass-through": "passthrough",
        "passthrough": "passthrough",
        "vgpu": "vGPU",
        "host vgpu": "vGPU host",
        "host vsga": "vSGA host",
    }
)
"""Reads a virtualisation mode in the words of the NVML source."""


_RECOVERY: Final = {
    # NVML's nvmlDeviceGpuRecoveryAction_t, and 6 and 7 of nvidia-ml-py 13.615; "GPU" and "Node" are
    # left out of some drivers' words.
    "none": 0.0,
    "reset": 1.0,
    "gpu reset": 1.0,
    "reboot": 2.0,
    "node reboot": 2.0,
    "drain p2p": 3.0,
    "drain and reset": 4.0,
    "recover imex domain": 5.0,
    "imex": 5.0,
    "bus reset": 6.0,
    "gpu bus reset": 6.0,
    "system reboot": 7.0,
}


def recovery_action(_quantity: str, text: str) -> Value:
    """Read the recovery action's name as NVML's number."""
    plain = _plain(text)
    if plain in _RECOVERY:
        return _RECOVERY[plain]
    found = word(text)
    return found.absent if found is not None else unreadable(text)


def licensed(_quantity: str, text: str) -> Value:
    """Read a vGPU licence status: "Licensed (Expiry: …)", "Unlicensed", "Unlicensed (Restricted)"."""
    found = word(text)
    if found is not None:
        return found.absent
    plain = _plain(text)
    if plain.startswith("licensed"):
        return 1.0
    return 0.0 if plain.startswith("unlicensed") else unreadable(text)
