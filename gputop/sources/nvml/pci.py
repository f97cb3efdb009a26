"""What the PCI bus shows of NVIDIA GPUs, read from sysfs without touching one.

NVML counts only what its driver holds. The bus also shows a card that fell off before the start, one that
nouveau holds, and one given to a virtual machine, and whether a GPU sleeps, which it must be asked before
NVML is opened: opening wakes it (aristocratos/btop#738).
"""

from pathlib import Path
from typing import Final

from gputop.model.facts import PciGpu
from gputop.model.identity import normal_bus_id
from gputop.model.text import clean

_VENDOR: Final = "0x10de"
# Base class 03 is display controllers: 00 VGA, 02 3D. Audio and USB functions of the card are others.
_CLASSES: Final = ("0x0300", "0x0302")
_ID_FILES: Final = ("/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


class PciBus:
    """The PCI bus under a sysfs root. Which devices are GPUs is learnt once for each address.

    Args:
        sys_root: Where sysfs is mounted.
        proc_root: Where procfs is mounted; the driver names its boards there.
        id_files: Where a PCI id database may be, for boards that no driver names.
    """

    def __init__(self, sys_root: Path, proc_root: Path, id_files: tuple[str, ...] = _ID_FILES) -> None:
        self._devices = sys_root / "bus" / "pci" / "devices"
        self._information = proc_root / "driver" / "nvidia" / "gpus"
        self._id_files = id_files
        self._is_gpu: dict[str, bool] = {}
        self._names: dict[str, str] = {}

    def gpus(self) -> tuple[PciGpu, ...] | None:
        """Return the GPUs in the order of their bus ids, or None where the bus cannot be looked at."""
        try:
            addresses = sorted(path.name for path in self._devices.iterdir())
        except OSError:
            return None
        gone = self._is_gpu.keys() - set(addresses)
        for address in gone:
            # Another card may come to the same address.
            del self._is_gpu[address]
        return tuple(self._gpu(address) for address in addresses if self._check(address))

    def _check(self, address: str) -> bool:
        found = self._is_gpu.get(address)
        if found is None:
            device = self._devices / address
            found = _read(device / "vendor") == _VENDOR and _read(device / "class").startswith(_CLASSES)
            self._is_gpu[address] = found
        return found

    def _gpu(self, address: str) -> PciGpu:
        device = self._devices / address
        try:
            driver = (device / "driver").readlink().name
        except OSError:
            driver = ""
        device_id = _read(device / "device").removeprefix("0x").lower()
        return PciGpu(
            bus_id=normal_bus_id(address),
            device_id=device_id,
            name=self._name(address, device_id),
            driver=driver,
            asleep=_read(device / "power" / "runtime_status") == "suspended",
        )

    def _name(self, address: str, device_id: str) -> str:
        name = self._names.get(address + device_id)
        if name is None:
            name = self._driver_name(address) or self._database_name(device_id)
            self._names[address + device_id] = name
        return name

    def _driver_name(self, address: str) -> str:
        for line in _read(self._information / address / "information").splitlines():
            key, _, value = line.partition(":")
            if key == "Model":
                return clean(value.strip())
        return ""

    def _database_name(self, device_id: str) -> str:
        wanted = f"\t{device_id}  "
        for path in self._id_files:
            try:
                with Path(path).open(encoding="utf-8", errors="replace") as lines:
                    inside = False
                    for line in lines:
                        if line[0] not in "\t#\n":
                            inside = line.startswith(_VENDOR[2:])
                        elif inside and line.startswith(wanted):
                            return clean(line[len(wanted) :].strip())
            except OSError:
                continue
        return ""
