"""What each GPU model is and can do: the table behind the simulated boards.

Sizes, limits and clocks follow NVIDIA's data sheets and what nvidia-smi prints for these boards; enum numbers
(architecture, brand) are NVML's. A model that lacks a feature has it as 0 or False, and the fake NVML then
answers NOT_SUPPORTED, as the driver does.
"""

import msgspec


class MigProfile(msgspec.Struct, frozen=True):
    """One MIG profile of a model: memory in MiB, multiprocessors, and GPU slices of seven."""

    name: str
    memory_mib: int
    multiprocessors: int
    slices: int


class GpuModel(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU model.

    ``nvlink_mbps`` is the line rate of one link, ``remap_banks`` the banks of the row remapper (0: the board
    retires pages or has no ECC), ``fans`` the fans that software can see, ``unified`` a part whose memory is
    the host's, ``gpm`` the profiling counters of Hopper and newer, ``margin`` the T.Limit readings.
    """

    name: str
    architecture: int
    brand: int
    compute_capability: tuple[int, int]
    cores: int
    memory_mib: int
    reserved_mib: int
    bar1_mib: int
    bus_width_bits: int
    power_limit_w: int
    power_min_w: int
    power_idle_w: float
    sm_clock_max_mhz: int
    sm_clock_idle_mhz: int
    mem_clock_max_mhz: int
    pci_device_id: int
    pci_subsystem_id: int
    pcie_gen: int
    pcie_width: int
    vbios: str
    part_number: str
    nvlinks: int = 0
    nvlink_version: int = 0
    nvlink_mbps: int = 0
    ecc: bool = True
    remap_banks: int = 0
    retires_pages: bool = False
    memory_sensor: bool = True
    slowdown_c: int = 87
    shutdown_c: int = 92
    memory_max_c: int = 95
    fans: int = 0
    display: bool = False
    unified: bool = False
    gpm: bool = False
    margin: bool = False
    mig: tuple[MigProfile, ...] = ()

    def profile(self, name: str) -> MigProfile | None:
        """Return the MIG profile of this name, or None where the model has no such profile."""
        return next((profile for profile in self.mig if profile.name == name), None)


_MIG_80 = (
    MigProfile("1g.10gb", 9728, 14, 1),
    MigProfile("2g.20gb", 19968, 28, 2),
    MigProfile("3g.40gb", 40192, 42, 3),
    MigProfile("4g.40gb", 40192, 56, 4),
    MigProfile("7g.80gb", 80896, 98, 7),
)
_MIG_H100 = (
    MigProfile("1g.10gb", 9984, 16, 1),
    MigProfile("2g.20gb", 20096, 32, 2),
    MigProfile("3g.40gb", 40448, 60, 3),
    MigProfile("4g.40gb", 40448, 64, 4),
    MigProfile("7g.80gb", 81152, 132, 7),
)
_MIG_H200 = (
    MigProfile("1g.18gb", 16384, 16, 1),
    MigProfile("2g.35gb", 33280, 32, 2),
    MigProfile("3g.71gb", 70656, 60, 3),
    MigProfile("4g.71gb", 70656, 64, 4),
    MigProfile("7g.141gb", 143104, 132, 7),
)

MODELS: dict[str, GpuModel] = {
    "h100": GpuModel(
        name="NVIDIA H100 80GB HBM3",
        architecture=9,
        brand=14,
        compute_capability=(9, 0),
        cores=16896,
        memory_mib=81559,
        reserved_mib=551,
        bar1_mib=131072,
        bus_width_bits=5120,
        power_limit_w=700,
        power_min_w=200,
        power_idle_w=68.0,
        sm_clock_max_mhz=1980,
        sm_clock_idle_mhz=345,
        mem_clock_max_mhz=2619,
        pci_device_id=0x233010DE,
        pci_subsystem_id=0x16C110DE,
        pcie_gen=5,
        pcie_width=16,
        vbios="96.00.89.00.01",
        part_number="2330-885-A1",
        nvlinks=18,
        nvlink_version=4,
        nvlink_mbps=26562,
        remap_banks=2560,
        gpm=True,
        margin=True,
        mig=_MIG_H100,
    ),
    "h200": GpuModel(
        name="NVIDIA H200",
        architecture=9,
        brand=14,
        compute_capability=(9, 0),
        cores=16896,
        memory_mib=143771,
        reserved_mib=612,
        bar1_mib=262144,
        bus_width_bits=6144,
        power_limit_w=700,
        power_min_w=200,
        power_idle_w=76.0,
        sm_clock_max_mhz=1980,
        sm_clock_idle_mhz=345,
        mem_clock_max_mhz=3201,
        pci_device_id=0x233510DE,
        pci_subsystem_id=0x18BE10DE,
        pcie_gen=5,
        pcie_width=16,
        vbios="96.00.B9.00.01",
        part_number="2335-885-A1",
        nvlinks=18,
        nvlink_version=4,
        nvlink_mbps=26562,
        remap_banks=3072,
        gpm=True,
        margin=True,
        mig=_MIG_H200,
    ),
    "a100-80": GpuModel(
        name="NVIDIA A100-SXM4-80GB",
        architecture=7,
        brand=14,
        compute_capability=(8, 0),
        cores=6912,
        memory_mib=81920,
        reserved_mib=593,
        bar1_mib=131072,
        bus_width_bits=5120,
        power_limit_w=400,
        power_min_w=100,
        power_idle_w=58.0,
        sm_clock_max_mhz=1410,
        sm_clock_idle_mhz=210,
        mem_clock_max_mhz=1593,
        pci_device_id=0x20B210DE,
        pci_subsystem_id=0x147F10DE,
        pcie_gen=4,
        pcie_width=16,
        vbios="92.00.45.00.03",
        part_number="20B2-895-A1",
        nvlinks=12,
        nvlink_version=3,
        nvlink_mbps=25000,
        remap_banks=640,
        mig=_MIG_80,
    ),
    "b200": GpuModel(
        name="NVIDIA B200",
        architecture=10,
        brand=14,
        compute_capability=(10, 0),
        cores=18944,
        memory_mib=183359,
        reserved_mib=780,
        bar1_mib=262144,
        bus_width_bits=8192,
        power_limit_w=1000,
        power_min_w=200,
        power_idle_w=140.0,
        sm_clock_max_mhz=1965,
        sm_clock_idle_mhz=120,
        mem_clock_max_mhz=3996,
        pci_device_id=0x290110DE,
        pci_subsystem_id=0x199910DE,
        pcie_gen=5,
        pcie_width=16,
        vbios="97.00.82.00.0B",
        part_number="2901-886-A1",
        nvlinks=18,
        nvlink_version=5,
        nvlink_mbps=53125,
        remap_banks=4096,
        gpm=True,
        margin=True,
    ),
    "l40s": GpuModel(
        name="NVIDIA L40S",
        architecture=8,
        brand=14,
        compute_capability=(8, 9),
        cores=18176,
        memory_mib=46068,
        reserved_mib=580,
        bar1_mib=65536,
        bus_width_bits=384,
        power_limit_w=350,
        power_min_w=100,
        power_idle_w=34.0,
        sm_clock_max_mhz=2520,
        sm_clock_idle_mhz=210,
        mem_clock_max_mhz=9001,
        pci_device_id=0x26B910DE,
        pci_subsystem_id=0x185110DE,
        pcie_gen=4,
        pcie_width=16,
        vbios="95.02.66.00.02",
        part_number="26B9-896-A1",
        remap_banks=192,
        memory_sensor=False,
        margin=True,
    ),
    "l4": GpuModel(
        name="NVIDIA L4",
        architecture=8,
        brand=14,
        compute_capability=(8, 9),
        cores=7424,
        memory_mib=23034,
        reserved_mib=512,
        bar1_mib=32768,
        bus_width_bits=192,
        power_limit_w=72,
        power_min_w=40,
        power_idle_w=16.0,
        sm_clock_max_mhz=2040,
        sm_clock_idle_mhz=210,
        mem_clock_max_mhz=6251,
        pci_device_id=0x27B810DE,
        pci_subsystem_id=0x16CA10DE,
        pcie_gen=4,
        pcie_width=16,
        vbios="95.04.29.00.06",
        part_number="27B8-895-A1",
        remap_banks=96,
        memory_sensor=False,
        margin=True,
    ),
    "t4": GpuModel(
        name="Tesla T4",
        architecture=6,
        brand=14,
        compute_capability=(7, 5),
        cores=2560,
        memory_mib=15360,
        reserved_mib=451,
        bar1_mib=256,
        bus_width_bits=256,
        power_limit_w=70,
        power_min_w=60,
        power_idle_w=10.0,
        sm_clock_max_mhz=1590,
        sm_clock_idle_mhz=300,
        mem_clock_max_mhz=5001,
        pci_device_id=0x1EB810DE,
        pci_subsystem_id=0x12A210DE,
        pcie_gen=3,
        pcie_width=16,
        vbios="90.04.38.00.03",
        part_number="1EB8-895-A1",
        retires_pages=True,
        memory_sensor=False,
        slowdown_c=93,
        shutdown_c=96,
    ),
    "v100": GpuModel(
        name="Tesla V100-SXM2-32GB",
        architecture=5,
        brand=2,
        compute_capability=(7, 0),
        cores=5120,
        memory_mib=32768,
        reserved_mib=267,
        bar1_mib=32768,
        bus_width_bits=4096,
        power_limit_w=300,
        power_min_w=150,
        power_idle_w=42.0,
        sm_clock_max_mhz=1530,
        sm_clock_idle_mhz=135,
        mem_clock_max_mhz=877,
        pci_device_id=0x1DB510DE,
        pci_subsystem_id=0x124910DE,
        pcie_gen=3,
        pcie_width=16,
        vbios="88.00.80.00.01",
        part_number="1DB5-896-A1",
        nvlinks=6,
        nvlink_version=2,
        nvlink_mbps=25781,
        retires_pages=True,
    ),
    "rtx4090": GpuModel(
        name="NVIDIA GeForce RTX 4090",
        architecture=8,
        brand=5,
        compute_capability=(8, 9),
        cores=16384,
        memory_mib=24564,
        reserved_mib=353,
        bar1_mib=32768,
        bus_width_bits=384,
        power_limit_w=450,
        power_min_w=10,
        power_idle_w=17.0,
        sm_clock_max_mhz=3105,
        sm_clock_idle_mhz=210,
        mem_clock_max_mhz=10501,
        pci_device_id=0x268410DE,
        pci_subsystem_id=0x889D1043,
        pcie_gen=4,
        pcie_width=16,
        vbios="95.02.3C.00.8C",
        part_number="2684-300-A1",
        ecc=False,
        memory_sensor=False,
        fans=2,
        display=True,
        slowdown_c=91,
        shutdown_c=99,
    ),
    "gb10": GpuModel(
        name="NVIDIA GB10",
        architecture=10,
        brand=14,
        compute_capability=(12, 1),
        cores=6144,
        memory_mib=122504,
        reserved_mib=0,
        bar1_mib=0,
        bus_width_bits=256,
        power_limit_w=0,
        power_min_w=0,
        power_idle_w=4.0,
        sm_clock_max_mhz=3003,
        sm_clock_idle_mhz=208,
        mem_clock_max_mhz=0,
        pci_device_id=0x2E1210DE,
        pci_subsystem_id=0x000010DE,
        pcie_gen=1,
        pcie_width=16,
        vbios="9A.0B.1E.00.00",
        part_number="2E12-000-A1",
        ecc=False,
        memory_sensor=False,
        unified=True,
        slowdown_c=90,
        shutdown_c=95,
    ),
}
