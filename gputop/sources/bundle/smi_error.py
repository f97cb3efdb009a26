"""What nvidia-smi says when it cannot do its work: of a whole node, or of one GPU among others.

The messages are those of nvidia-smi 418 to 610 and of the shells and container runtimes that failed to start
it. Each becomes a trouble of the node under the code that the NVML source uses for the same state, or a row
for the GPU that it names.
"""

import re
from typing import Final

from msgspec import Struct

from gputop.model.facts import Presence
from gputop.model.identity import normal_bus_id
from gputop.model.reading import Value
from gputop.model.text import clean
from gputop.sources.bundle.page import Trouble, Unit
from gputop.sources.bundle.smi_values import word


class _Message(Struct, frozen=True):
    """A message about the whole node: how it is known, its code, and what it means."""

    pattern: re.Pattern[str]
    code: str
    text: str


def _message(pattern: str, code: str, text: str) -> _Message:
    return _Message(re.compile(pattern, re.IGNORECASE), code, text)


_MESSAGES: Final = (
    _message(
        r"couldn.t communicate with the nvidia driver|failed to initialize nvml: driver not loaded",
        "driver_not_loaded",
        "the NVIDIA driver is not loaded: load the nvidia module, or install the driver for this kernel",
    ),
    _message(
        r"driver/library version mismatch|nvml/rm version mismatch"
        r"|failed to initialize nvml: .*version mismatch",
        "driver_mismatch",
        "kernel module and NVML library have different versions: reboot, or reload the nvidia module",
    ),
    _message(
        r"couldn.t find libnvidia-ml|libnvidia-ml\.so[.\d]*: cannot open|nvml shared library not found"
        r"|failed to initialize nvml: (?:error_)?library[_ ]not[_ ]found",
        "no_library",
        "libnvidia-ml.so is not found: install the driver's user-space libraries",
    ),
    _message(
        r"nvidia-smi['\"]?(?:\.exe)?: (?:command )?not found|nvidia-smi\S*: no such file or directory"
        r"|executable file not found in \S*path|command 'nvidia-smi' not found"
        r"|'nvidia-smi' is not recognized",
        "no_nvidia_smi",
        "nvidia-smi is not installed here or not in the path",
    ),
    _message(r"no devices (?:were )?found|no gpus were found", "no_gpu", "the driver finds no GPU"),
    _message(
        r"failed to initialize nvml: (?:insufficient permissions|permission denied)"
        r"|nvidia-smi\S*: permission denied",
        "no_permission",
        "this user may not open the NVIDIA devices",
    ),
    _message(
        r"access blocked by the operating|failed to initialize nvml: .*(?:blocked by|has blocked)",
        "no_permission",
        "the operating system blocks access to the GPUs (device cgroup, or WSL without a driver)",
    ),
    _message(
        r"failed to initialize nvml: gpu is lost",
        "gpu_lost",
        "NVML does not start because a GPU is lost: look at the kernel log, then reboot",
    ),
    _message(
        r"failed to initialize nvml: (?:gpu )?(?:requires|needs) re(?:set|start)",
        "reset_required",
        "NVML does not start because a GPU requires a reset",
    ),
    _message(
        r"failed to initialize nvml: unknown error",
        "nvml_unknown_error",
        "NVML does not start: in a container, its device cgroup may have been rewritten (systemctl "
        "daemon-reload); restart the container",
    ),
    _message(r"failed to initialize nvml", "nvml_error", "NVML does not start"),
    _message(
        r"insufficiently powered",
        "insufficient_power",
        "a GPU is insufficiently powered: check its power cables",
    ),
    _message(r"nvidia-smi has failed because", "nvml_error", "nvidia-smi has failed"),
)
"""The first that matches a line decides."""

_LIBRARY_VERSION: Final = re.compile(r"NVML library version:\s*([\d.]+)", re.IGNORECASE)
_BUS: Final = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"
# "GPU 0000:3B:00.0: …", "GPU0: 0000:02:00.0: …", "gpu 2: …": an index is not followed by more of a bus id.
_INDEX: Final = r"\d{1,3}(?=\s*:\s*(?:[0-9A-Fa-f]{4,8}:|[^\s0-9])|\s*$)"
_HANDLE: Final = re.compile(
    r"(?:unable|failed) to (?:determine|get) the device handle for gpu"
    rf"\s*(?P<index>{_INDEX})?\s*:?\s*(?P<bus>{_BUS})?\s*:?\s*(?P<why>[^\n]*)",
    re.IGNORECASE,
)
_INFOROM: Final = re.compile(rf"inforom is corrupted at gpu\s+({_BUS})", re.IGNORECASE)


# A word that stands in every message, so that thousands of lines of values are passed over quickly.
_HINT: Final = re.compile(
    r"nvidia-smi|nvml|nvidia driver|libnvidia|device handle|inforom|no devices|no gpus|path|blocked|powered",
    re.IGNORECASE,
)


class Said(Struct, frozen=True):
    """What nvidia-smi's messages in a text say.

    Attributes:
        troubles: Of the whole node.
        units: GPUs named as not to be opened, with why.
        node: Versions that stand beside.
    """

    troubles: tuple[Trouble, ...] = ()
    units: tuple[Unit, ...] = ()
    node: dict[str, Value] = {}

    @property
    def nothing(self) -> bool:
        """Whether there was no message."""
        return not self.troubles and not self.units


def is_message(line: str) -> bool:
    """Whether the line is one of nvidia-smi's errors or warnings."""
    return not read_errors(line).nothing


def _unit(match: re.Match[str]) -> Unit | None:
    bus_id = normal_bus_id(match.group("bus") or "")
    index = int(match.group("index")) if match.group("index") else -1
    if not bus_id and index < 0:
        return None
    why = clean(" ".join(match.group("why").split()), 160).rstrip(".")
    found = word(why)
    presence = (found.presence if found else None) or Presence.ERROR
    return Unit(
        bus_id=bus_id,
        index=index,
        presence=presence,
        presence_reason=f"nvidia-smi cannot open it: {why or 'no reason given'}",
    )


def read_errors(text: str) -> Said:
    """Return what nvidia-smi's own error and warning messages in `text` say."""
    troubles: dict[str, Trouble] = {}
    units: list[Unit] = []
    for line in text.splitlines():
        if not _HINT.search(line):
            continue
        handle = _HANDLE.search(line)
        if handle:
            unit = _unit(handle)
            if unit is not None and unit not in units:
                units.append(unit)
            continue
        inforom = _INFOROM.search(line)
        if inforom:
            bus_id = normal_bus_id(inforom.group(1))
            troubles["inforom_corrupted"] = Trouble(
                "inforom_corrupted", f"the InfoROM of the GPU at {bus_id} is corrupted", "warning"
            )
            continue
        for message in _MESSAGES:
            if message.pattern.search(line):
                troubles.setdefault(message.code, Trouble(message.code, message.text, "critical"))
                break
    # "No devices were found" follows when the only GPU cannot be opened: it is there all the same.
    if units:
        troubles.pop("no_gpu", None)
    version = _LIBRARY_VERSION.search(text)
    node: dict[str, Value] = {"nvml_version": version.group(1)} if version else {}
    return Said(tuple(troubles.values()), tuple(units), node)
