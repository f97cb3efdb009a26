"""The schema gputop.release/1: which screens were told to let go, and who still holds a device."""

from typing import Final

from msgspec import Struct

SCHEMA: Final = "gputop.release/1"


class DeviceHolder(Struct, frozen=True):
    """A process with an open NVIDIA device file.

    Attributes:
        pid: Its process id.
        user: Its user.
        command: Its command line.
        devices: The device files.
    """

    pid: int
    user: str
    command: str
    devices: list[str]


class ReleaseAnswer(Struct, frozen=True):
    """What came of it.

    Attributes:
        schema: "gputop.release/1".
        told: Processes of gputop that were told.
        holders: Processes that still hold a device.
        unread: Processes whose files this user may not see.
    """

    schema: str
    told: list[int]
    holders: list[DeviceHolder]
    unread: int
