"""The faults a scenario can inject, one struct for each, told apart by ``kind``.

Every fault names the nodes it strikes with a glob, and most name GPUs by index (all of the node where
omitted). It holds from ``at_s`` until ``until_s``, seconds after the scenario's start; without ``at_s`` it
was there before anyone looked, without ``until_s`` it stays.
"""

from typing import Literal

import msgspec

_ALWAYS = -1e12


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """What all faults share: where (a glob over node names) and when (seconds after the start)."""

    node: str
    at_s: float = _ALWAYS
    until_s: float | None = None

    def active(self, t: float) -> bool:
        """Say whether the fault holds at ``t`` seconds after the start."""
        return t >= self.at_s and (self.until_s is None or t < self.until_s)

    def elapsed_s(self, t: float, since: float) -> float:
        """Return for how many seconds, counted from ``since``, the fault has held up to ``t``."""
        end = t if self.until_s is None else min(t, self.until_s)
        return max(0.0, end - max(self.at_s, since))


class GpuFault(Fault, frozen=True, kw_only=True):
    """A fault of single GPUs: those at ``gpus`` (NVML index), or every GPU of the node."""

    gpus: tuple[int, ...] | None = None

    def strikes(self, index: int) -> bool:
        """Say whether the GPU at this index is meant."""
        return self.gpus is None or index in self.gpus


class GpuLost(GpuFault, frozen=True, kw_only=True, tag="gpu_lost"):
    """The GPU fell off the bus: NVML says GPU_IS_LOST, exporters drop its series, Xid 79 is raised."""


class ResetRequired(GpuFault, frozen=True, kw_only=True, tag="reset_required"):
    """The GPU wants a reset: NVML says RESET_REQUIRED (16) for every call, Xid 95 is raised."""


class NoPermission(GpuFault, frozen=True, kw_only=True, tag="no_permission"):
    """NVML counts the GPU and refuses to open it: NO_PERMISSION (4). Exporters, being root, still see it."""


class NvmlError(GpuFault, frozen=True, kw_only=True, tag="nvml_error"):
    """NVML answers ``code`` to calls that match one of the globs in ``calls``."""

    code: int
    calls: tuple[str, ...] = ("*",)


class CallBlock(GpuFault, frozen=True, kw_only=True, tag="call_block"):
    """NVML calls that match one of the globs in ``calls`` block for ``seconds`` before they answer."""

    seconds: float
    calls: tuple[str, ...] = ("nvmlDeviceGetPowerUsage",)


class GpuMissing(GpuFault, frozen=True, kw_only=True, tag="gpu_missing"):
    """NVML does not count the GPU at all. PCI sysfs still shows it, held by ``driver`` (empty: by none)."""

    driver: str = ""


class Unsupported(GpuFault, frozen=True, kw_only=True, tag="unsupported"):
    """NVML answers NOT_SUPPORTED to calls that match, as on a vGPU guest; field ids go by ``field:<id>``."""

    calls: tuple[str, ...]


class NvmlInit(Fault, frozen=True, kw_only=True, tag="nvml_init_error"):
    """``nvmlInit`` fails with ``code`` (9 driver not loaded, 12 no library, 18 mismatch, 28 no GPU).

    ``kernel_driver`` is the version that the loaded kernel module reports in ``/proc/driver/nvidia/version``
    while the library is the node's own version: the state after an upgrade without a reboot.
    """

    code: int
    kernel_driver: str = ""


class Ecc(GpuFault, frozen=True, kw_only=True, tag="ecc"):
    """ECC errors in DRAM or SRAM: so many each minute, and ``uncorrected`` ones at once."""

    corrected_per_min: float = 0.0
    uncorrected_per_min: float = 0.0
    uncorrected: int = 0
    location: Literal["dram", "sram"] = "dram"
    sram_threshold: bool = False


class RowRemap(GpuFault, frozen=True, kw_only=True, tag="row_remap"):
    """Rows remapped for uncorrectable errors: ``pending`` wants a reset (Xid 63), ``failed`` a new board."""

    state: Literal["done", "pending", "failed"] = "pending"
    rows: int = 1
    correctable_rows: int = 0


class RetiredPages(GpuFault, frozen=True, kw_only=True, tag="retired_pages"):
    """Pages retired on a board before Ampere, by cause; ``pending`` ones want a driver reload."""

    double_bit: int = 1
    single_bit: int = 0
    pending: bool = False


class Xid(GpuFault, frozen=True, kw_only=True, tag="xid"):
    """An Xid event at ``at_s``, and again each ``every_s`` seconds where that is set."""

    xid: int
    every_s: float | None = None


class Thermal(GpuFault, frozen=True, kw_only=True, tag="thermal"):
    """Too hot: clocks fall; the reason is SW thermal slowdown, or HW thermal slowdown with ``hardware``."""

    hardware: bool = False
    clock_factor: float = 0.6


class PowerCap(GpuFault, frozen=True, kw_only=True, tag="power_cap"):
    """Someone lowered the power limit to ``limit_w``; a busy GPU shows SW power cap and lower clocks."""

    limit_w: float


class PowerBrake(GpuFault, frozen=True, kw_only=True, tag="power_brake"):
    """The rack pulled the power brake: HW slowdown and HW power brake reasons, clocks at a fraction."""

    clock_factor: float = 0.4


class NvlinkDown(GpuFault, frozen=True, kw_only=True, tag="nvlink_down"):
    """These NVLinks are inactive, and Xid 74 is raised."""

    links: tuple[int, ...]


class NvlinkErrors(GpuFault, frozen=True, kw_only=True, tag="nvlink_errors"):
    """These NVLinks count errors of one type at a rate."""

    links: tuple[int, ...]
    error: Literal["crc", "replay", "recovery"] = "crc"
    per_min: float = 6.0


class PcieDegraded(GpuFault, frozen=True, kw_only=True, tag="pcie_degraded"):
    """The PCIe link trained at a lower generation or width than the board and slot can do."""

    generation: int | None = None
    width: int | None = None


class PcieReplay(GpuFault, frozen=True, kw_only=True, tag="pcie_replay"):
    """The PCIe replay counter grows."""

    per_min: float = 60.0


class Recovery(GpuFault, frozen=True, kw_only=True, tag="recovery_action"):
    """The driver recommends a recovery action (field 230) and raises Xid 154."""

    action: int


class MigLayout(GpuFault, frozen=True, kw_only=True, tag="mig_layout"):
    """The GPU was partitioned anew: these profiles from now on; an empty list turns MIG off."""

    profiles: tuple[str, ...]


class ExporterSilent(Fault, frozen=True, kw_only=True, tag="exporter_silent"):
    """The exporter does not answer: ``up`` is 0 and its series are stale."""


class ExporterError(Fault, frozen=True, kw_only=True, tag="exporter_error"):
    """The exporter answers with an HTTP error: ``up`` is 0 and its series are stale."""

    status: int = 500


class ExporterEmpty(Fault, frozen=True, kw_only=True, tag="exporter_empty"):
    """The exporter answers 200 without any GPU series: ``up`` is 1, as during a reload."""


class ExporterFrozen(Fault, frozen=True, kw_only=True, tag="exporter_frozen"):
    """The exporter repeats the values it had when the fault began, under fresh scrape times."""


class ExporterValue(GpuFault, frozen=True, kw_only=True, tag="exporter_value"):
    """Series whose name matches the glob ``metric`` carry ``value``: a sentinel, garbage, NaN."""

    metric: str
    value: float


class ClockSkew(Fault, frozen=True, kw_only=True, tag="clock_skew"):
    """The node's clock is off, and its exporter writes its own (wrong) sample timestamps."""

    skew_s: float


class Cordoned(Fault, frozen=True, kw_only=True, tag="cordoned"):
    """The node is unschedulable."""


class NotReady(Fault, frozen=True, kw_only=True, tag="not_ready"):
    """The kubelet stopped posting: the node's Ready condition is unknown."""


class Unallocatable(Fault, frozen=True, kw_only=True, tag="unallocatable"):
    """The device plugin marks ``count`` GPUs unhealthy: allocatable falls below capacity."""

    count: int = 1


AnyFault = (
    GpuLost
    | ResetRequired
    | NoPermission
    | NvmlError
    | CallBlock
    | GpuMissing
    | Unsupported
    | NvmlInit
    | Ecc
    | RowRemap
    | RetiredPages
    | Xid
    | Thermal
    | PowerCap
    | PowerBrake
    | NvlinkDown
    | NvlinkErrors
    | PcieDegraded
    | PcieReplay
    | Recovery
    | MigLayout
    | ExporterSilent
    | ExporterError
    | ExporterEmpty
    | ExporterFrozen
    | ExporterValue
    | ClockSkew
    | Cordoned
    | NotReady
    | Unallocatable
)
