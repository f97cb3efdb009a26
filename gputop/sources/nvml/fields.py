"""The plan of reads: every reading that one call on one device gives, as data.

Symbols, field ids and units are nvml.h's (13.0). Readings that take more than one call (NVLink, GPM,
processes, MIG instances) have their own modules.
"""

from ctypes import c_int, c_uint, c_ulonglong
from typing import Final

import pynvml

from gputop.model.reading import NA, Absent, Value
from gputop.sources.nvml.cadence import FAST, MEDIUM, ONCE, SLOW
from gputop.sources.nvml.structs import (
    FabricInfo,
    LicensableFeatures,
    MarginTemperature,
    SramEccStatus,
    Temperature,
    version_of,
)
from gputop.sources.nvml.ways import (
    NOT_TOLD_BY_OLD_CALL,
    Call,
    CObject,
    Field,
    Out,
    Read,
    Take,
    TextOut,
    signed,
    unless,
    words,
)

_MIB: Final = 1.0 / (1024 * 1024)
_MILLI: Final = 1e-3
_UINT: Final = (Out(c_uint),)
_ULL: Final = (Out(c_ulonglong),)
_UNKNOWN_PSTATE: Final = 32
ALL_LINKS: Final = 0xFFFFFFFF
_SCOPE_MODULE: Final = 1
_SCOPE_MEMORY: Final = 2

# nvmlMemoryErrorType_t, nvmlEccCounterType_t, nvmlMemoryLocation_t
_CORRECTED, _UNCORRECTED = 0, 1
_VOLATILE, _AGGREGATE = 0, 1
_DRAM, _SRAM = 2, 7

BRANDS: Final = {
    1: "Quadro", 2: "Tesla", 3: "NVS", 4: "GRID", 5: "GeForce", 6: "Titan", 7: "NVIDIA vApps",
    8: "NVIDIA vPC", 9: "NVIDIA vCS", 10: "NVIDIA RTX vWS", 11: "NVIDIA Cloud Gaming", 12: "Quadro RTX",
    13: "NVIDIA RTX", 14: "NVIDIA", 15: "GeForce RTX", 16: "Titan RTX",
}  # fmt: skip
ARCHITECTURES: Final = {
    2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada", 9: "Hopper",
    10: "Blackwell", 13: "Rubin",
}  # fmt: skip
COMPUTE_MODES: Final = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
VIRTUALIZATION_MODES: Final = {0: "none", 1: "passthrough", 2: "vGPU", 3: "vGPU host", 4: "vSGA host"}
_FABRIC_STATES: Final = {1: "not started", 2: "in progress", 3: "completed"}
_DEGRADED_BANDWIDTH: Final = 1


def _fabric(info: CObject) -> Value:
    if info.state == 0:
        return Absent(NA, "not_supported", "this GPU is part of no NVLink fabric")
    state = _FABRIC_STATES.get(info.state, f"unknown ({info.state})")
    if info.state == 3 and info.status:
        state += f", failed with error {info.status}"
    if info.healthMask & 0x3 == _DEGRADED_BANDWIDTH:
        state += ", degraded bandwidth"
    return state


def _licensed(features: CObject) -> Value:
    if not features.isGridLicenseSupported:
        return Absent(NA, "not_supported", "needs no vGPU licence")
    listed = features.gridLicensableFeatures[: min(features.licensableFeaturesCount, 3)]
    return 1.0 if any(one.featureState for one in listed) else 0.0


def _uint(quantity: str, function: str, group: int, scale: float = 1.0) -> Read:
    return Read((quantity,), (Call(function, (Take(quantity, scale=scale),), _UINT),), group)


def _word(quantity: str, function: str, group: int, names: dict[int, str], out: type = c_uint) -> Read:
    take = Take(quantity, convert=words(names))
    return Read((quantity,), (Call(function, (take,), (Out(out),)),), group)


def _text(quantity: str, function: str, size: int = 96) -> Read:
    return Read((quantity,), (Call(function, (Take(quantity),), (TextOut(size),)),), ONCE)


def _clock(quantity: str, function: str, kind: int, group: int) -> Read:
    return Read((quantity,), (Call(function, (Take(quantity),), _UINT, ((c_uint, kind),)),), group)


def _busy(quantity: str, function: str, group: int) -> Read:
    return Read((quantity,), (Call(function, (Take(quantity),), (Out(c_uint), Out(c_uint))),), group)


def _field(quantity: str, field: int, group: int, scale: float = 1.0, scope: int = 0) -> Read:
    return Read((quantity,), (Field(field, scope, scale),), group)


def _rate(quantity: str, field: int, scale: float, scope: int = 0, *, also: tuple[str, ...] = ()) -> Read:
    return Read((quantity, *also), (Field(field, scope, scale),), FAST, rate=True)


def _ecc_total(quantity: str, field: int, error: int, counter: int, group: int) -> Read:
    call = Call("nvmlDeviceGetTotalEccErrors", (Take(quantity),), _ULL, ((c_uint, error), (c_uint, counter)))
    return Read((quantity,), (Field(field), call), group)


def _ecc_split(quantity: str, error: int, counter: int, location: int) -> Read:
    args = ((c_uint, error), (c_uint, counter), (c_uint, location))
    call = Call("nvmlDeviceGetMemoryErrorCounter", (Take(quantity),), _ULL, args)
    # Of MIG instances the driver counts only what was uncorrected outside of DRAM since it was loaded
    # (nvml.h, nvmlDeviceGetMemoryErrorCounter).
    own = (error, counter, location) == (_UNCORRECTED, _VOLATILE, _SRAM)
    return Read((quantity,), (call,), SLOW, instance=own)


def _pair(first: str, second: str, function: str, group: int) -> Read:
    takes = (Take(first), Take(second, out=1))
    return Read((first, second), (Call(function, takes, (Out(c_uint), Out(c_uint))),), group)


def _memory() -> Read:
    version2 = Call(
        "nvmlDeviceGetMemoryInfo_v2",
        (
            Take("memory_total_mib", "total", scale=_MIB),
            Take("memory_used_mib", "used", scale=_MIB),
            Take("memory_free_mib", "free", scale=_MIB),
            Take("memory_reserved_mib", "reserved", scale=_MIB),
            Take("memory_meaning", "", convert=lambda _: "used does not count what the driver reserves"),
        ),
        (Out(pynvml.c_nvmlMemory_v2_t, version_of(pynvml.c_nvmlMemory_v2_t, 2)),),
    )
    # Version 1 counts the driver's reserved memory as used since R510 (wookayin/gpustat#141).
    version1 = Call(
        "nvmlDeviceGetMemoryInfo",
        (
            Take("memory_total_mib", "total", scale=_MIB),
            Take("memory_used_mib", "used", scale=_MIB),
            Take("memory_free_mib", "free", scale=_MIB),
            Take("memory_reserved_mib", "", convert=lambda _: NOT_TOLD_BY_OLD_CALL),
            Take("memory_meaning", "", convert=lambda _: "used may count what the driver reserves"),
        ),
        (Out(pynvml.c_nvmlMemory_t),),
    )
    quantities = tuple(take.quantity for take in version2.takes)
    return Read(quantities, (version2, version1), FAST, instance=True)


def _bar1() -> Read:
    takes = (
        Take("bar1_total_mib", "bar1Total", scale=_MIB),
        Take("bar1_used_mib", "bar1Used", scale=_MIB),
    )
    call = Call("nvmlDeviceGetBAR1MemoryInfo", takes, (Out(pynvml.c_nvmlBAR1Memory_t),))
    return Read(("bar1_total_mib", "bar1_used_mib"), (call,), MEDIUM)


def _temperature() -> Read:
    new = Out(Temperature, version_of(Temperature, 1), (("sensorType", 0),))
    return Read(
        ("temperature_c",),
        (
            Call("nvmlDeviceGetTemperatureV", (Take("temperature_c", "temperature"),), (new,)),
            Call("nvmlDeviceGetTemperature", (Take("temperature_c"),), _UINT, ((c_uint, 0),)),
        ),
        FAST,
    )


def _margin() -> Read:
    out = Out(MarginTemperature, version_of(MarginTemperature, 1))
    take = Take("temperature_margin_c", "marginTemperature")
    return Read((take.quantity,), (Call("nvmlDeviceGetMarginTemperature", (take,), (out,)),), MEDIUM)


def _threshold(quantity: str, which: int) -> Read:
    call = Call("nvmlDeviceGetTemperatureThreshold", (Take(quantity),), _UINT, ((c_uint, which),))
    return Read((quantity,), (call,), SLOW)


def _margin_limit(quantity: str, field: int) -> Read:
    """Return the read of a limit told as T.Limit, on boards that no longer have absolute ones."""
    return Read((quantity,), (Field(field, convert=signed(quantity)),), SLOW)


def _clock_events() -> Read:
    take = (Take("clock_event_reasons"),)
    return Read(
        ("clock_event_reasons",),
        (
            # Named so since R535.
            Call("nvmlDeviceGetCurrentClocksEventReasons", take, _ULL),
            Call("nvmlDeviceGetCurrentClocksThrottleReasons", take, _ULL),
        ),
        FAST,
    )


def _performance_state() -> Read:
    convert = unless(_UNKNOWN_PSTATE, "the driver does not know it", "performance_state")
    take = Take("performance_state", convert=convert)
    return Read(
        (take.quantity,),
        (
            Call("nvmlDeviceGetPerformanceState", (take,), _UINT),
            Call("nvmlDeviceGetPowerState", (take,), _UINT),
        ),
        MEDIUM,
    )


_REMAP_FIELDS: Final = {
    "row_remap_corrected": 142,
    "row_remap_uncorrected": 143,
    "row_remap_pending": 144,
    "row_remap_failed": 145,
}


def _row_remap() -> tuple[Read, ...]:
    """Return the reads of the row remapper: by field, else by the call that older libraries have."""
    return tuple(
        Read(
            (quantity,),
            (Field(field), Call("nvmlDeviceGetRemappedRows", (Take(quantity, out=position),), _UINT * 4)),
            MEDIUM,
        )
        for position, (quantity, field) in enumerate(_REMAP_FIELDS.items())
    )


def _remap_banks() -> Read:
    members = ("max", "high", "partial", "low", "none")
    takes = tuple(Take(f"row_remap_banks_{member}", member) for member in members)
    call = Call("nvmlDeviceGetRowRemapperHistogram", takes, (Out(pynvml.c_nvmlRowRemapperHistogramValues),))
    return Read(tuple(take.quantity for take in takes), (call,), SLOW)


def _sram_threshold() -> Read:
    out = Out(SramEccStatus, version_of(SramEccStatus, 1))
    take = Take("ecc_sram_threshold_exceeded", "bThresholdExceeded")
    return Read((take.quantity,), (Call("nvmlDeviceGetSramEccErrorStatus", (take,), (out,)),), SLOW)


def _power_limits() -> Read:
    call = Call(
        "nvmlDeviceGetPowerManagementLimitConstraints",
        (Take("power_limit_max_w", out=1, scale=_MILLI),),
        (Out(c_uint), Out(c_uint)),
    )
    return Read(("power_limit_max_w",), (call,), SLOW)


def _energy() -> Read:
    take = Take("energy_j", scale=_MILLI)
    call = Call("nvmlDeviceGetTotalEnergyConsumption", (take,), _ULL)
    return Read((take.quantity,), (Field(pynvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, 0, _MILLI), call), MEDIUM)


def _replay() -> Read:
    call = Call("nvmlDeviceGetPcieReplayCounter", (Take("pcie_replay_total"),), _UINT)
    return Read(("pcie_replay_total",), (Field(pynvml.NVML_FI_DEV_PCIE_REPLAY_COUNTER), call), MEDIUM)


def _utilization() -> Read:
    takes = (Take("utilization", "gpu"), Take("memory_utilization", "memory"))
    call = Call("nvmlDeviceGetUtilizationRates", takes, (Out(pynvml.c_nvmlUtilization_t),))
    return Read(("utilization", "memory_utilization"), (call,), FAST)


READS: Final[tuple[Read, ...]] = (
    _utilization(),
    _memory(),
    _temperature(),
    _uint("power_w", "nvmlDeviceGetPowerUsage", FAST, _MILLI),
    _clock("sm_clock_mhz", "nvmlDeviceGetClockInfo", 1, FAST),
    _clock("memory_clock_mhz", "nvmlDeviceGetClockInfo", 2, FAST),
    _clock_events(),
    _busy("encoder_utilization", "nvmlDeviceGetEncoderUtilization", FAST),
    _busy("decoder_utilization", "nvmlDeviceGetDecoderUtilization", FAST),
    _field("power_average_w", 185, FAST, _MILLI),
    _field("power_instant_w", 186, FAST, _MILLI),
    _field("power_memory_w", 186, FAST, _MILLI, _SCOPE_MEMORY),
    _field("power_module_w", 186, FAST, _MILLI, _SCOPE_MODULE),
    # Byte counters: nvmlDeviceGetPcieThroughput waits 20 ms for each direction (nvml.h).
    _rate("pcie_rx_bytes_per_s", 198, 1.0),
    _rate("pcie_tx_bytes_per_s", 197, 1.0),
    _rate("nvlink_rx_bytes_per_s", 139, 1024.0, ALL_LINKS, also=("nvlink_throughput_bytes_per_s",)),
    _rate("nvlink_tx_bytes_per_s", 138, 1024.0, ALL_LINKS, also=("nvlink_throughput_bytes_per_s",)),
    _busy("jpeg_utilization", "nvmlDeviceGetJpgUtilization", MEDIUM),
    _busy("ofa_utilization", "nvmlDeviceGetOfaUtilization", MEDIUM),
    _clock("graphics_clock_mhz", "nvmlDeviceGetClockInfo", 0, MEDIUM),
    _clock("video_clock_mhz", "nvmlDeviceGetClockInfo", 3, MEDIUM),
    _performance_state(),
    _bar1(),
    _field("memory_temperature_c", pynvml.NVML_FI_DEV_MEMORY_TEMP, MEDIUM),
    _margin(),
    _uint("fan_speed_percent", "nvmlDeviceGetFanSpeed", MEDIUM),
    _uint("power_limit_w", "nvmlDeviceGetEnforcedPowerLimit", MEDIUM, _MILLI),
    _energy(),
    # Times held down, in ns. Fields, because nvmlDeviceGetViolationStatus is deprecated (13.0).
    _field("clock_event_power_cap_ns", 74, MEDIUM),
    _field("clock_event_sync_boost_ns", 76, MEDIUM),
    _field("clock_event_sw_thermal_ns", 269, MEDIUM),
    _field("clock_event_hw_thermal_ns", 270, MEDIUM),
    _field("clock_event_power_brake_ns", 271, MEDIUM),
    _uint("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration", MEDIUM),
    _uint("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth", MEDIUM),
    _replay(),
    _ecc_total("ecc_volatile_corrected", 3, _CORRECTED, _VOLATILE, MEDIUM),
    _ecc_total("ecc_volatile_uncorrected", 4, _UNCORRECTED, _VOLATILE, MEDIUM),
    *_row_remap(),
    _field("recovery_action", 230, MEDIUM),
    _field("retired_pages_sbe", pynvml.NVML_FI_DEV_RETIRED_SBE, SLOW),
    _field("retired_pages_dbe", pynvml.NVML_FI_DEV_RETIRED_DBE, SLOW),
    _field("retired_pages_pending", pynvml.NVML_FI_DEV_RETIRED_PENDING, SLOW),
    _ecc_total("ecc_aggregate_corrected", 5, _CORRECTED, _AGGREGATE, SLOW),
    _ecc_total("ecc_aggregate_uncorrected", 6, _UNCORRECTED, _AGGREGATE, SLOW),
    _ecc_split("ecc_volatile_dram_corrected", _CORRECTED, _VOLATILE, _DRAM),
    _ecc_split("ecc_volatile_dram_uncorrected", _UNCORRECTED, _VOLATILE, _DRAM),
    _ecc_split("ecc_volatile_sram_corrected", _CORRECTED, _VOLATILE, _SRAM),
    _ecc_split("ecc_volatile_sram_uncorrected", _UNCORRECTED, _VOLATILE, _SRAM),
    _ecc_split("ecc_aggregate_dram_corrected", _CORRECTED, _AGGREGATE, _DRAM),
    _ecc_split("ecc_aggregate_dram_uncorrected", _UNCORRECTED, _AGGREGATE, _DRAM),
    _ecc_split("ecc_aggregate_sram_corrected", _CORRECTED, _AGGREGATE, _SRAM),
    _ecc_split("ecc_aggregate_sram_uncorrected", _UNCORRECTED, _AGGREGATE, _SRAM),
    _sram_threshold(),
    _remap_banks(),
    _pair("ecc_mode", "ecc_mode_pending", "nvmlDeviceGetEccMode", SLOW),
    _pair("mig_mode", "mig_mode_pending", "nvmlDeviceGetMigMode", SLOW),
    _uint("persistence_mode", "nvmlDeviceGetPersistenceMode", SLOW),
    _uint("display_attached", "nvmlDeviceGetDisplayMode", SLOW),
    _uint("display_active", "nvmlDeviceGetDisplayActive", SLOW),
    _threshold("temperature_shutdown_c", 0),
    _threshold("temperature_slowdown_c", 1),
    _threshold("memory_temperature_max_c", 2),
    _threshold("temperature_max_c", 3),
    _margin_limit("temperature_shutdown_margin_c", 193),
    _margin_limit("temperature_slowdown_margin_c", 194),
    _margin_limit("memory_temperature_max_margin_c", 195),
    _margin_limit("temperature_max_margin_c", 196),
    _uint("power_limit_requested_w", "nvmlDeviceGetPowerManagementLimit", SLOW, _MILLI),
    _uint("power_limit_default_w", "nvmlDeviceGetPowerManagementDefaultLimit", SLOW, _MILLI),
    _power_limits(),
    _clock("sm_clock_max_mhz", "nvmlDeviceGetMaxClockInfo", 1, SLOW),
    _clock("memory_clock_max_mhz", "nvmlDeviceGetMaxClockInfo", 2, SLOW),
    _uint("pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration", SLOW),
    _uint("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth", SLOW),
    Read(
        ("fabric_state",),
        (
            Call(
                "nvmlDeviceGetGpuFabricInfoV",
                (Take("fabric_state", "", convert=_fabric),),
                (Out(FabricInfo, version_of(FabricInfo, 2)),),
            ),
        ),
        SLOW,
    ),
    _word("compute_mode", "nvmlDeviceGetComputeMode", SLOW, COMPUTE_MODES),
    _word("virtualization_mode", "nvmlDeviceGetVirtualizationMode", SLOW, VIRTUALIZATION_MODES, c_ulonglong),
    Read(
        ("vgpu_licensed",),
        (
            Call(
                "nvmlDeviceGetGridLicensableFeatures_v4",
                (Take("vgpu_licensed", "", convert=_licensed),),
                (Out(LicensableFeatures),),
            ),
        ),
        SLOW,
    ),
    Read(
        ("model",),
        (Call("nvmlDeviceGetName", (Take("model"),), (TextOut(96),)),),
        ONCE,
        instance=True,
    ),
    _word("brand", "nvmlDeviceGetBrand", ONCE, BRANDS),
    _word("architecture", "nvmlDeviceGetArchitecture", ONCE, ARCHITECTURES),
    _text("serial", "nvmlDeviceGetSerial", 30),
    _text("part_number", "nvmlDeviceGetBoardPartNumber", 80),
    _text("vbios_version", "nvmlDeviceGetVbiosVersion", 32),
    _text("inforom_version", "nvmlDeviceGetInforomImageVersion", 16),
    Read(
        ("gsp_firmware_version",),
        (
            Call(
                "nvmlDeviceGetGspFirmwareVersion",
                (Take("gsp_firmware_version"),),
                (TextOut(64, sized=False),),
            ),
        ),
        ONCE,
    ),
    Read(
        ("multiprocessors",),
        (
            Call(
                "nvmlDeviceGetAttributes_v2",
                (Take("multiprocessors", "multiprocessorCount"),),
                (Out(pynvml.c_nvmlDeviceAttributes),),
            ),
        ),
        ONCE,
        board=False,
        instance=True,
    ),
)
"""Every such reading, the fast ones first."""

IDENTITY: Final = {
    "capability": Call(
        "nvmlDeviceGetCudaComputeCapability",
        (Take("major"), Take("minor", out=1)),
        (Out(c_int), Out(c_int)),
    ),
    "uuid": Call("nvmlDeviceGetUUID", (Take("uuid"),), (TextOut(96),)),
    "pci": Call("nvmlDeviceGetPciInfo_v3", (Take("bus_id", "busId"),), (Out(pynvml.nvmlPciInfo_t),)),
    "architecture": Call("nvmlDeviceGetArchitecture", (Take("architecture"),), _UINT),
    "persistence": Call("nvmlDeviceGetPersistenceMode", (Take("persistence"),), _UINT),
    "mig": Call("nvmlDeviceGetMigMode", (Take("current"), Take("pending", out=1)), _UINT * 2),
    "virtualization": Call("nvmlDeviceGetVirtualizationMode", (Take("virtualization"),), _ULL),
    "ecc": Call("nvmlDeviceGetEccMode", (Take("current"), Take("pending", out=1)), _UINT * 2),
}
"""Calls that tell who a device is; their takes name no quantities."""
