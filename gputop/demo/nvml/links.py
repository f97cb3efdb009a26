"""NVLink: state, version, capabilities and error counters of each link."""

from gputop.demo import counters
from gputop.demo.nvml import abi
from gputop.demo.nvml.library import Device, FakeNvml
from gputop.demo.nvml.session import pci_numbers
from gputop.demo.nvml.table import entry
from gputop.demo.world import Gpu

# Replay, recovery, CRC of flow-control units, CRC of data, ECC of data (nvmlNvLinkErrorCounter_t).
_ERRORS = {0: "replay", 1: "recovery", 2: "crc", 3: "crc"}
_ERROR_COUNT = 5
_CAPABILITIES = {0: 1, 1: 0, 2: 1, 3: 0, 4: 0, 5: 1}
_TO_SWITCH = 1
_NVLINK_5 = 5
# nvmlNvlinkVersion_t by generation.
NVML_VERSIONS = {1: 1, 2: 2, 3: 4, 4: 6, 5: 7}


def link_of(gpu: Gpu, link: abi.CArgument) -> int:
    """Return a link number, or refuse: NOT_SUPPORTED without NVLink, INVALID_ARGUMENT past the last."""
    if not gpu.model.nvlinks:
        raise abi.RefusalError(abi.NOT_SUPPORTED)
    number = abi.number(link)
    if not 0 <= number < gpu.model.nvlinks:
        raise abi.RefusalError(abi.INVALID_ARGUMENT)
    return number


def _up(lib: FakeNvml, gpu: Gpu, link: int) -> bool:
    return counters.nvlink_active(gpu, link, lib.now())


@entry("nvmlDeviceGetNvLinkState")
def state(lib: FakeNvml, device: Device, link: abi.CArgument, result: abi.CArgument) -> int:
    """Return whether a link is active."""
    return abi.put(result, int(_up(lib, device.gpu, link_of(device.gpu, link))))


@entry("nvmlDeviceGetNvLinkVersion")
def version(_lib: FakeNvml, device: Device, link: abi.CArgument, result: abi.CArgument) -> int:
    """Return the NVLink version of a link as NVML's number for it."""
    link_of(device.gpu, link)
    return abi.put(result, NVML_VERSIONS[device.gpu.model.nvlink_version])


@entry("nvmlDeviceGetNvLinkCapability")
def capability(lib: FakeNvml, device: Device, link: abi.CArgument, which: abi.CArgument, result: abi.CArgument) -> int:
    """Return whether a link has a capability: 0 P2P, 2 P2P atomics, 5 valid."""
    number = link_of(device.gpu, link)
    known = _CAPABILITIES.get(abi.number(which))
    if known is None:
        return abi.INVALID_ARGUMENT
    return abi.put(result, known if _up(lib, device.gpu, number) else 0)


@entry("nvmlDeviceGetNvLinkErrorCounter")
def errors(lib: FakeNvml, device: Device, link: abi.CArgument, counter: abi.CArgument, result: abi.CArgument) -> int:
    """Return an error counter of a link; NVLink 5 counts through field values instead."""
    number = link_of(device.gpu, link)
    which = abi.number(counter)
    if not 0 <= which < _ERROR_COUNT:
        return abi.INVALID_ARGUMENT
    if device.gpu.model.nvlink_version >= _NVLINK_5 or which not in _ERRORS:
        return abi.NOT_SUPPORTED
    # A burst of CRC errors is counted where it was seen, in the flow-control units.
    if which == 3:
        return abi.put(result, 0)
    return abi.put(result, counters.nvlink_errors(device.gpu, number, _ERRORS[which], lib.now()))


@entry("nvmlDeviceGetNvLinkRemoteDeviceType", since=(460, 0))
def remote_type(lib: FakeNvml, device: Device, link: abi.CArgument, result: abi.CArgument) -> int:
    """Return what stands at the other end: 2 is an NVSwitch."""
    number = link_of(device.gpu, link)
    return abi.put(result, 2) if _up(lib, device.gpu, number) else abi.NOT_SUPPORTED


@entry("nvmlDeviceGetNvLinkRemotePciInfo_v2")
def remote_pci(lib: FakeNvml, device: Device, link: abi.CArgument, info: abi.CArgument) -> int:
    """Return the PCI address of the NVSwitch at the other end of a link."""
    number = link_of(device.gpu, link)
    if not _up(lib, device.gpu, number):
        return abi.NOT_SUPPORTED
    domain = pci_numbers(device.gpu)[0]
    bus = _TO_SWITCH + number % 4
    return abi.fill(
        info,
        busIdLegacy=f"{domain & 0xFFFF:04X}:{bus:02X}:00.0",
        domain=domain,
        bus=bus,
        device=0,
        pciDeviceId=0x22A310DE,
        pciSubSystemId=0x179610DE,
        busId=f"{domain:08X}:{bus:02X}:00.0",
    )
