"""What a board is: names, numbers, PCI address, modes, firmware."""

from gputop.demo import noise
from gputop.demo.nvml import abi
from gputop.demo.nvml.library import Device, FakeNvml
from gputop.demo.nvml.session import mig_uuid, pci_numbers
from gputop.demo.nvml.table import entry


@entry("nvmlDeviceGetName", "device")
def name(_lib: FakeNvml, device: Device, buffer: abi.CArgument, size: abi.CArgument) -> int:
    """Return the product name; a MIG device adds its profile."""
    tail = f" MIG {device.instance.profile.name}" if device.instance else ""
    return abi.put_text(buffer, size, device.gpu.model.name + tail)


@entry("nvmlDeviceGetUUID", "device")
def uuid(lib: FakeNvml, device: Device, buffer: abi.CArgument, size: abi.CArgument) -> int:
    """Return the UUID of the board or MIG device."""
    if device.instance:
        return abi.put_text(buffer, size, mig_uuid(lib, device.gpu, device.instance.gpu_instance))
    return abi.put_text(buffer, size, device.gpu.uuid)


@entry("nvmlDeviceGetIndex", "device")
def index(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return NVML's index, counted over the boards that this session enumerated."""
    if device.instance:
        return abi.put(result, device.instance.slot)
    return abi.put(result, lib.boards.index(device.gpu))


@entry("nvmlDeviceGetMinorNumber")
def minor_number(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return N of ``/dev/nvidiaN``."""
    return abi.put(result, device.gpu.minor)


@entry("nvmlDeviceGetSerial")
def serial(_lib: FakeNvml, device: Device, buffer: abi.CArgument, size: abi.CArgument) -> int:
    """Return the serial number; consumer boards have none in the InfoROM."""
    if device.gpu.model.display:
        return abi.NOT_SUPPORTED
    return abi.put_text(buffer, size, device.gpu.serial)


@entry("nvmlDeviceGetBoardId")
def board_id(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return a number that is the same for all GPUs of one board."""
    return abi.put(result, pci_numbers(device.gpu)[1] << 8)


@entry("nvmlDeviceGetBoardPartNumber")
def part_number(_lib: FakeNvml, device: Device, buffer: abi.CArgument, size: abi.CArgument) -> int:
    """Return the part number from the InfoROM."""
    return abi.put_text(buffer, size, device.gpu.model.part_number)


@entry("nvmlDeviceGetPciInfo_v3")
@entry("nvmlDeviceGetPciInfo_v2")
def pci_info(_lib: FakeNvml, device: Device, info: abi.CArgument) -> int:
    """Return the PCI address: eight digits of domain, and the old field with four."""
    domain, bus, slot = pci_numbers(device.gpu)
    return abi.fill(
        info,
        busIdLegacy=f"{domain & 0xFFFF:04X}:{bus:02X}:{slot:02X}.0",
        domain=domain,
        bus=bus,
        device=slot,
        pciDeviceId=device.gpu.model.pci_device_id,
        pciSubSystemId=device.gpu.model.pci_subsystem_id,
        busId=f"{domain:08X}:{bus:02X}:{slot:02X}.0",
    )


@entry("nvmlDeviceGetBrand")
def brand(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return NVML's brand number."""
    return abi.put(result, device.gpu.model.brand)


@entry("nvmlDeviceGetArchitecture", since=(455, 0))
def architecture(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return NVML's architecture number."""
    return abi.put(result, device.gpu.model.architecture)


@entry("nvmlDeviceGetCudaComputeCapability", "device")
def compute_capability(_lib: FakeNvml, device: Device, major: abi.CArgument, minor: abi.CArgument) -> int:
    """Return the CUDA compute capability."""
    abi.put(major, device.gpu.model.compute_capability[0])
    return abi.put(minor, device.gpu.model.compute_capability[1])


@entry("nvmlDeviceGetNumGpuCores", since=(515, 0))
def cores(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the number of CUDA cores."""
    return abi.put(result, device.gpu.model.cores)


@entry("nvmlDeviceGetMemoryBusWidth", since=(515, 0))
def bus_width(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the width of the memory bus in bits."""
    return abi.put(result, device.gpu.model.bus_width_bits)


@entry("nvmlDeviceGetVbiosVersion")
def vbios(_lib: FakeNvml, device: Device, buffer: abi.CArgument, size: abi.CArgument) -> int:
    """Return the VBIOS version."""
    return abi.put_text(buffer, size, device.gpu.model.vbios)


@entry("nvmlDeviceGetInforomImageVersion")
def inforom_image(_lib: FakeNvml, device: Device, buffer: abi.CArgument, size: abi.CArgument) -> int:
    """Return the version of the InfoROM image."""
    if device.gpu.model.display:
        return abi.NOT_SUPPORTED
    return abi.put_text(buffer, size, f"{device.gpu.model.part_number[:4]}.0200.00.05")


_INFOROM = {0: "2.1", 1: "7.16", 2: ""}


@entry("nvmlDeviceGetInforomVersion")
def inforom(_lib: FakeNvml, device: Device, kind: abi.CArgument, buffer: abi.CArgument, size: abi.CArgument) -> int:
    """Return the version of an InfoROM object (0 OEM, 1 ECC, 2 power); a missing object is NOT_SUPPORTED."""
    version = _INFOROM.get(abi.number(kind))
    if version is None:
        return abi.INVALID_ARGUMENT
    if not version or (abi.number(kind) == 1 and not device.gpu.model.ecc):
        return abi.NOT_SUPPORTED
    return abi.put_text(buffer, size, version)


@entry("nvmlDeviceGetGspFirmwareVersion", since=(510, 0))
def gsp_version(lib: FakeNvml, device: Device, buffer: abi.CArgument) -> int:
    """Return the version of the GSP firmware, which is the driver's; Turing and newer have it."""
    if device.gpu.model.architecture < 6:
        return abi.NOT_SUPPORTED
    return abi.put_text(buffer, 64, lib.node.group.driver)


@entry("nvmlDeviceGetPersistenceMode")
def persistence(lib: FakeNvml, _device: Device, result: abi.CArgument) -> int:
    """Return whether the driver stays loaded without clients."""
    return abi.put(result, int(lib.node.group.persistence))


@entry("nvmlDeviceGetDisplayMode")
@entry("nvmlDeviceGetDisplayActive")
def display(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return whether a display is attached, or in use."""
    return abi.put(result, int(device.gpu.model.display))


@entry("nvmlDeviceGetComputeMode")
def compute_mode(_lib: FakeNvml, _device: Device, result: abi.CArgument) -> int:
    """Return the compute mode; 0 is the default mode."""
    return abi.put(result, 0)


@entry("nvmlDeviceGetDriverModel")
@entry("nvmlDeviceGetDriverModel_v2", since=(570, 0))
def driver_model(_lib: FakeNvml, _device: Device, _current: abi.CArgument, _pending: abi.CArgument) -> int:
    """Refuse: driver models are a thing of Windows."""
    return abi.NOT_SUPPORTED


@entry("nvmlDeviceGetVirtualizationMode")
def virtualization(_lib: FakeNvml, _device: Device, result: abi.CArgument) -> int:
    """Return 0: bare metal."""
    return abi.put(result, 0)


@entry("nvmlDeviceGetMultiGpuBoard")
def multi_gpu_board(_lib: FakeNvml, _device: Device, result: abi.CArgument) -> int:
    """Return 0: one GPU on each board."""
    return abi.put(result, 0)


@entry("nvmlDeviceGetModuleId", since=(535, 0))
def module_id(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return the place of the GPU on its baseboard, which is not the NVML index."""
    return abi.put(result, 1 + noise.mix(device.gpu.node.seed) % 8 ^ (device.gpu.index & 7))


@entry("nvmlDeviceGetNumaNodeId", since=(530, 0))
def numa_node(_lib: FakeNvml, _device: Device, _result: abi.CArgument) -> int:
    """Refuse: only boards whose memory is a NUMA node of the host have one."""
    return abi.NOT_SUPPORTED
