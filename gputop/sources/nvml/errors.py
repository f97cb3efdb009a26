"""What NVML's return codes mean for a row, as a table.

Names and numbers follow `nvmlReturn_t` in nvml.h (13.0). A code this table does not know is shown as its
number: newer drivers add some.
"""

from typing import Final

from msgspec import Struct

from gputop.model.facts import Presence
from gputop.model.reading import DEPRECATED, NA, NOT_SUPPORTED, Absent, denied, failed

SUCCESS: Final = 0
UNINITIALIZED: Final = 1
INVALID_ARGUMENT: Final = 2
CODE_NOT_SUPPORTED: Final = 3
NO_PERMISSION: Final = 4
NOT_FOUND: Final = 6
INSUFFICIENT_SIZE: Final = 7
DRIVER_NOT_LOADED: Final = 9
TIMEOUT: Final = 10
LIBRARY_NOT_FOUND: Final = 12
FUNCTION_NOT_FOUND: Final = 13
GPU_IS_LOST: Final = 15
RESET_REQUIRED: Final = 16
LIB_RM_VERSION_MISMATCH: Final = 18
ARGUMENT_VERSION_MISMATCH: Final = 25
GPU_NOT_FOUND: Final = 28


class Return(Struct, frozen=True, gc=False):
    """One return code.

    Attributes:
        name: Name without the "NVML_ERROR_" prefix.
        words: What it means, for people.
        presence: What it says of the whole device whatever call returned it; None when it may concern
            one call only.
        absent: The cell of a field that returned it for good, so that it is not asked again; None when
            the field may answer next time.
        step: What to do where a whole device answers nothing else, "" where nothing is known to help.
    """

    name: str
    words: str
    presence: Presence | None = None
    absent: Absent | None = None
    step: str = ""


# Since a container's device rules were rewritten under it, every call fails; nothing but a new container
# gets them back (NVIDIA/nvidia-container-toolkit#48).
_NEW_CONTAINER: Final = "in a container: systemctl daemon-reload may have taken its devices away, restart it"


RETURNS: Final[dict[int, Return]] = {
    UNINITIALIZED: Return("UNINITIALIZED", "NVML is not initialised"),
    INVALID_ARGUMENT: Return("INVALID_ARGUMENT", "NVML refuses the arguments"),
    CODE_NOT_SUPPORTED: Return("NOT_SUPPORTED", "not supported by this device", absent=NOT_SUPPORTED),
    NO_PERMISSION: Return(
        "NO_PERMISSION",
        "not allowed for this user",
        step="check the mode of /dev/nvidia*, the user's groups and the container's devices",
    ),
    NOT_FOUND: Return("NOT_FOUND", "not found"),
    INSUFFICIENT_SIZE: Return("INSUFFICIENT_SIZE", "the answer kept growing"),
    8: Return("INSUFFICIENT_POWER", "external power cables are not attached"),
    DRIVER_NOT_LOADED: Return("DRIVER_NOT_LOADED", "the NVIDIA driver is not loaded"),
    TIMEOUT: Return("TIMEOUT", "NVML timed out"),
    11: Return("IRQ_ISSUE", "the kernel reports an interrupt problem with the GPU"),
    LIBRARY_NOT_FOUND: Return("LIBRARY_NOT_FOUND", "the NVML library was not found"),
    FUNCTION_NOT_FOUND: Return(
        "FUNCTION_NOT_FOUND",
        "this driver's library lacks the function",
        absent=Absent(NA, "not_supported", "this driver's library has no function for it"),
    ),
    14: Return("CORRUPTED_INFOROM", "the board's infoROM is corrupted"),
    GPU_IS_LOST: Return(
        "GPU_IS_LOST",
        "the GPU has fallen off the bus",
        presence=Presence.LOST,
        step="drain the node, then power it off and on: a reset does not reach the GPU",
    ),
    RESET_REQUIRED: Return(
        "RESET_REQUIRED",
        "the GPU needs a reset",
        presence=Presence.RESET_REQUIRED,
        step="end its processes, then nvidia-smi --gpu-reset",
    ),
    17: Return("OPERATING_SYSTEM", "the operating system or a cgroup blocks access to the GPU", step=_NEW_CONTAINER),
    LIB_RM_VERSION_MISMATCH: Return(
        "LIB_RM_VERSION_MISMATCH", "the NVML library and the kernel module have different versions"
    ),
    19: Return("IN_USE", "the GPU is in use"),
    20: Return("MEMORY", "out of memory"),
    21: Return("NO_DATA", "no data yet"),
    22: Return(
        "VGPU_ECC_NOT_SUPPORTED",
        "ECC is not told to this vGPU",
        absent=Absent(NA, "not_supported", "ECC is not told to this vGPU"),
    ),
    23: Return("INSUFFICIENT_RESOURCES", "the driver is out of resources"),
    ARGUMENT_VERSION_MISMATCH: Return(
        "ARGUMENT_VERSION_MISMATCH",
        "this driver knows another version of the call",
        absent=Absent(NA, "not_supported", "this driver knows only another version of the call"),
    ),
    26: Return("DEPRECATED", "deprecated in this driver", absent=DEPRECATED),
    27: Return("NOT_READY", "the GPU is not ready"),
    GPU_NOT_FOUND: Return("GPU_NOT_FOUND", "no GPU was found"),
    29: Return("INVALID_STATE", "the GPU is in a state in which this cannot be told"),
    999: Return("UNKNOWN", "unknown error", step=_NEW_CONTAINER),
}


DENIED: Final = "denied"
"""Code of the absence of what this user may not read (`gputop.model.reading.denied`)."""


def describe(code: int) -> str:
    """Return the words for a code, with its name and number: both are what people search for."""
    known = RETURNS.get(code)
    return f"{known.words} ({known.name}, {code})" if known else f"NVML error {code}"


def describe_device(code: int) -> str:
    """Return the words for a device on which every call answers `code`, with the next step."""
    known = RETURNS.get(code)
    return f"{describe(code)}: {known.step}" if known and known.step else describe(code)


def permanent(code: int) -> Absent | None:
    """Return the cell of a field that answered `code`, if it will never answer otherwise."""
    known = RETURNS.get(code)
    return known.absent if known else None


def passing(code: int) -> Absent:
    """Return the cell of a field that answered `code` this time."""
    known = RETURNS.get(code)
    if code == NO_PERMISSION:
        return denied(describe(code))
    return failed(describe(code), known.name.lower() if known else "error")


def presence(code: int) -> Presence:
    """Return the state of a device on which every call answers `code`."""
    known = RETURNS.get(code)
    if known and known.presence:
        return known.presence
    return Presence.DENIED if code == NO_PERMISSION else Presence.ERROR
