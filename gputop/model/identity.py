"""Who is who: spellings of UUIDs, PCI bus ids and host names, and the keys built from them.

A GPU is (cluster, host, UUID, GPU instance). Its index is shown but never a key: enumeration changes with
reboots, lost cards and cgroups (NVML header, `nvmlDeviceGetHandleByIndex`).
"""

import ipaddress
import re
from typing import Final

from msgspec import Struct

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_BUS_ID: Final = re.compile(
    r"(?:PCI:)?(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-7]))?", re.IGNORECASE
)
_OLD_MIG: Final = re.compile(r"MIG-GPU-([0-9a-f-]+)/(\d+)/(\d+)", re.IGNORECASE)


class NodeKey(Struct, frozen=True, order=True):
    """A node: the cluster ("" when no source tells one) and the host name first heard."""

    cluster: str
    host: str


class GpuKey(Struct, frozen=True, order=True):
    """A GPU or a MIG instance.

    Attributes:
        cluster: Cluster of its node, "" when no source tells one.
        host: Host of its node.
        uuid: "GPU-…" in lower-case hex; "pci-<bus id>" while only the PCI bus knows it; "index-N" when a
            source told nothing else.
        instance: "" for the board; for a MIG instance its GPU instance id ("7"), with "/<compute
            instance>" when that is not 0, or the MIG UUID when no source tells the id.
    """

    cluster: str
    host: str
    uuid: str
    instance: str = ""

    @property
    def node(self) -> NodeKey:
        """The node that holds it."""
        return NodeKey(self.cluster, self.host)

    @property
    def board(self) -> "GpuKey":
        """The board: the key itself unless it is a MIG instance."""
        return GpuKey(self.cluster, self.host, self.uuid) if self.instance else self


class NodeRef(Struct, frozen=True):
    """How one source names a node. Empty fields are not told."""

    host: str
    cluster: str = ""


class GpuRef(Struct, frozen=True):
    """How one source names a GPU or MIG instance; fields are normalised, empty ones are not told.

    Attributes:
        host: Host as the source spells it.
        cluster: Cluster, if the source tells one.
        uuid: `normal_uuid` of the board.
        bus_id: `normal_bus_id` of the board.
        index: Index on its host, -1 if not told.
        instance: GPU instance id as in `GpuKey`, "" for the board or when not told.
        mig_uuid: UUID of the MIG device, "" for the board or when not told.
    """

    host: str
    cluster: str = ""
    uuid: str = ""
    bus_id: str = ""
    index: int = -1
    instance: str = ""
    mig_uuid: str = ""

    @property
    def is_instance(self) -> bool:
        """Whether it names a MIG instance."""
        return bool(self.instance or self.mig_uuid)


def normal_uuid(text: str) -> str:
    """Return the UUID of a board as "GPU-" and lower-case hex, or "" if `text` holds none.

    Takes "GPU-…" in any case, without the prefix (nvidia_gpu_exporter), and the board's part of an old
    MIG name. Short forms such as "GPU-aa03", which real drivers never write but tests and truncated
    labels do, are kept as they are with the prefix's case settled.
    """
    text = text.strip()
    old = _OLD_MIG.fullmatch(text)
    if old:
        text = old.group(1)
    lowered = text.lower()
    if _UUID.fullmatch(lowered):
        return "GPU-" + lowered
    if lowered.startswith("gpu-") and len(lowered) > 4 and lowered.isprintable():
        return "GPU-" + lowered[4:]
    return ""


def normal_mig_uuid(text: str) -> str:
    """Return a MIG device's UUID with the prefix "MIG-" and lower-case hex, or "" if it is none."""
    lowered = text.strip().lower()
    if not lowered.startswith("mig-"):
        return ""
    rest = lowered[4:]
    return "MIG-GPU-" + rest[4:] if rest.startswith("gpu-") else "MIG-" + rest


def instance_of_old_mig_uuid(text: str) -> str:
    """Return the instance id told by a MIG name of drivers before 470 ("MIG-GPU-<uuid>/<gi>/<ci>"), or ""."""
    match = _OLD_MIG.fullmatch(text.strip())
    return instance_id(match.group(2), match.group(3)) if match else ""


def instance_id(gpu_instance: int | str, compute_instance: int | str = 0) -> str:
    """Return the instance part of a key from NVML's GPU and compute instance ids."""
    return str(gpu_instance) if str(compute_instance) in {"0", ""} else f"{gpu_instance}/{compute_instance}"


def normal_bus_id(text: str) -> str:
    """Return a PCI bus id as "dddddddd:bb:dd.f" in lower case, or "" if `text` is none.

    NVML writes 8 digits of domain, sysfs and the kernel 4, kernel Xid lines none of the function, and the
    case varies: `00000008:06:00.0`, `0008:06:00.0` and `PCI:0008:06:00` are one device.
    """
    match = _BUS_ID.fullmatch(text.strip().rstrip("\0"))
    if not match:
        return ""
    domain, bus, device, function = match.groups()
    return f"{int(domain or '0', 16):08x}:{int(bus, 16):02x}:{int(device, 16):02x}.{function or '0'}"


def normal_host(text: str) -> str:
    """Return a host name as it is compared: lower case, no closing dot, no port."""
    host = text.strip().rstrip(".").lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, colon, port = host.rpartition(":")
    if colon and port.isdigit() and ":" not in name:
        return name
    return host


def is_address(host: str) -> bool:
    """Whether a normalised host is an IP address, which has no short form."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def short_host(host: str) -> str:
    """Return the first label of a normalised host name; an address is returned whole."""
    return host if is_address(host) else host.partition(".")[0]
