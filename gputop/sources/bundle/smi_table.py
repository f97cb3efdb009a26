"""Which line of `nvidia-smi -q` is which quantity: one table for XML and text, drivers 418 to 610.

Paths are normal names (`smi_tree.normal_name`), alternates in the order in which they are preferred. The
first that holds a value wins; a path that only says "deprecated" never hides another one.
"""

from typing import Final

from msgspec import Struct

from gputop.sources.bundle.smi_values import (
    Read,
    compute_mode,
    flag,
    licensed,
    number,
    performance_state,
    recovery_action,
    virtualization_mode,
    words,
)


class Field(Struct, frozen=True):
    """One quantity and where it stands."""

    quantity: str
    read: Read
    paths: tuple[str, ...]


_MIB: Final = number("MiB")
_PERCENT: Final = number("%")
_CELSIUS: Final = number("°C")
_WATT: Final = number("W")
_MHZ: Final = number("MHz")
_RATE: Final = number("B/s")
_NS: Final = number("ns")
_LANES: Final = number("lanes")
_BANKS: Final = number("banks")
_COUNT: Final = number("")

HEAD_FIELDS: Final = (
    # From driver 610 on "Driver Version" is deprecated in favour of the kernel-mode and user-mode ones.
    Field("driver_version", words, ("kmdversion", "driverversion")),
    Field("cuda_version", words, ("cudaumdversion", "cudaversion")),
)
"""Fields of the node."""

MEMORY_FIELDS: Final = (
    Field("memory_total_mib", _MIB, ("fbmemoryusage/total",)),
    Field("memory_used_mib", _MIB, ("fbmemoryusage/used",)),
    Field("memory_free_mib", _MIB, ("fbmemoryusage/free",)),
    Field("memory_reserved_mib", _MIB, ("fbmemoryusage/reserved",)),
    Field("bar1_total_mib", _MIB, ("bar1memoryusage/total",)),
    Field("bar1_used_mib", _MIB, ("bar1memoryusage/used",)),
)

INSTANCE_FIELDS: Final = (
    *MEMORY_FIELDS,
    Field("utilization", _PERCENT, ("utilization/gpuutil", "utilization/gpu")),
    Field("memory_utilization", _PERCENT, ("utilization/memoryutil", "utilization/memory")),
    Field(
        "multiprocessors",
        _COUNT,
        ("deviceattributes/shared/multiprocessorcount", "deviceattributes/multiprocessorcount"),
    ),
)
"""Fields of a MIG device."""

BOARD_FIELDS: Final = (
    *MEMORY_FIELDS,
    Field("utilization", _PERCENT, ("utilization/gpuutil", "utilization/gpu")),
    Field("memory_utilization", _PERCENT, ("utilization/memoryutil", "utilization/memory")),
    Field("encoder_utilization", _PERCENT, ("utilization/encoderutil", "utilization/encoder")),
    Field("decoder_utilization", _PERCENT, ("utilization/decoderutil", "utilization/decoder")),
    Field("jpeg_utilization", _PERCENT, ("utilization/jpegutil", "utilization/jpeg")),
    Field("ofa_utilization", _PERCENT, ("utilization/ofautil", "utilization/ofa")),
    Field("temperature_c", _CELSIUS, ("temperature/gputemp", "temperature/gpucurrenttemp")),
    Field("memory_temperature_c", _CELSIUS, ("temperature/memorytemp", "temperature/memorycurrenttemp")),
    # What is called "T.Limit" is a margin, not a temperature: the board's own, and the one at each limit.
    Field(
        "temperature_margin_c",
        _CELSIUS,
        ("temperature/gputemptlimit", "temperature/gputlimittemp", "temperature/gpucurrenttlimittemp"),
    ),
    Field(
        "temperature_slowdown_c",
        _CELSIUS,
        ("temperature/gputempslowthreshold", "temperature/gpuslowdowntemp"),
    ),
    Field(
        "temperature_shutdown_c",
        _CELSIUS,
        ("temperature/gputempmaxthreshold", "temperature/gpushutdowntemp"),
    ),
    Field(
        "temperature_max_c",
        _CELSIUS,
        ("temperature/gputempmaxgputhreshold", "temperature/gpumaxoperatingtemp"),
    ),
    Field(
        "memory_temperature_max_c",
        _CELSIUS,
        ("temperature/gputempmaxmemthreshold", "temperature/memorymaxoperatingtemp"),
    ),
    Field(
        "temperature_shutdown_margin_c",
        _CELSIUS,
        ("temperature/gputempmaxtlimitthreshold", "temperature/gpushutdowntlimittemp"),
    ),
    Field(
        "temperature_slowdown_margin_c",
        _CELSIUS,
        ("temperature/gputempslowtlimitthreshold", "temperature/gpuslowdowntlimittemp"),
    ),
    Field(
        "temperature_max_margin_c",
        _CELSIUS,
        ("temperature/gputempmaxgputlimitthreshold", "temperature/gpumaxoperatingtlimittemp"),
    ),
    Field(
        "memory_temperature_max_margin_c",
        _CELSIUS,
        ("temperature/gputempmaxmemtlimitthreshold", "temperature/memorymaxoperatingtlimittemp"),
    ),
    Field("fan_speed_percent", _PERCENT, ("fanspeed",)),
    Field(
        "power_average_w",
        _WATT,
        ("gpupowerreadings/averagepowerdraw", "powerreadings/averagepowerdraw"),
    ),
    Field(
        "power_instant_w",
        _WATT,
        (
            "gpupowerreadings/instantpowerdraw",
            "gpupowerreadings/instantaneouspowerdraw",
            "powerreadings/instantpowerdraw",
            "powerreadings/instantaneouspowerdraw",
        ),
    ),
    # Instantaneous first, as the NVML source reads it; Hopper tells only the average of its memory.
    Field(
        "power_memory_w",
        _WATT,
        (
            "gpumemorypowerreadings/instantpowerdraw",
            "gpumemorypowerreadings/instantaneouspowerdraw",
            "gpumemorypowerreadings/powerdraw",
            "gpumemorypowerreadings/averagepowerdraw",
        ),
    ),
    Field(
        "power_module_w",
        _WATT,
        (
            "modulepowerreadings/instantpowerdraw",
            "modulepowerreadings/instantaneouspowerdraw",
            "modulepowerreadings/powerdraw",
            "modulepowerreadings/averagepowerdraw",
        ),
    ),
    # Before driver 530 "power limit" is what was asked for and "enforced" what holds; later the first is
    # called requested and the second current.
    Field(
        "power_limit_w",
        _WATT,
        (
            "gpupowerreadings/currentpowerlimit",
            "powerreadings/enforcedpowerlimit",
            "powerreadings/currentpowerlimit",
            "gpupowerreadings/*/currentpowerlimit",
        ),
    ),
    Field(
        "power_limit_requested_w",
        _WATT,
        (
            "gpupowerreadings/requestedpowerlimit",
            "powerreadings/powerlimit",
            "powerreadings/requestedpowerlimit",
            "gpupowerreadings/*/requestedpowerlimit",
        ),
    ),
    Field(
        "power_limit_default_w",
        _WATT,
        (
            "gpupowerreadings/defaultpowerlimit",
            "powerreadings/defaultpowerlimit",
            "gpupowerreadings/*/defaultpowerlimit",
        ),
    ),
    Field(
        "power_limit_max_w",
        _WATT,
        (
            "gpupowerreadings/maxpowerlimit",
            "powerreadings/maxpowerlimit",
            "gpupowerreadings/*/maxpowerlimit",
        ),
    ),
    Field("sm_clock_mhz", _MHZ, ("clocks/smclock", "clocks/sm")),
    Field("graphics_clock_mhz", _MHZ, ("clocks/graphicsclock", "clocks/graphics")),
    Field("memory_clock_mhz", _MHZ, ("clocks/memclock", "clocks/memory")),
    Field("video_clock_mhz", _MHZ, ("clocks/videoclock", "clocks/video")),
    Field("sm_clock_max_mhz", _MHZ, ("maxclocks/smclock", "maxclocks/sm")),
    Field("memory_clock_max_mhz", _MHZ, ("maxclocks/memclock", "maxclocks/memory")),
    Field("performance_state", performance_state, ("performancestate", "pstate")),
    Field(
        "clock_event_power_cap_ns",
        _NS,
        (
            "clockseventreasonscounters/clockseventreasonscountersswpowercap",
            "clockseventreasonscounters/swpowercapping",
        ),
    ),
    Field(
        "clock_event_sync_boost_ns",
        _NS,
        (
            "clockseventreasonscounters/clockseventreasonscounterssyncboost",
            "clockseventreasonscounters/syncboost",
        ),
    ),
    Field(
        "clock_event_sw_thermal_ns",
        _NS,
        (
            "clockseventreasonscounters/clockseventreasonscountersswthermslowdown",
            "clockseventreasonscounters/swthermalslowdown",
        ),
    ),
    Field(
        "clock_event_hw_thermal_ns",
        _NS,
        (
            "clockseventreasonscounters/clockseventreasonscountershwthermslowdown",
            "clockseventreasonscounters/hwthermalslowdown",
        ),
    ),
    Field(
        "clock_event_power_brake_ns",
        _NS,
        (
            "clockseventreasonscounters/clockseventreasonscountershwpowerbrake",
            "clockseventreasonscounters/hwpowerbraking",
        ),
    ),
    Field(
        "pcie_generation",
        _COUNT,
        ("pci/pcigpulinkinfo/pciegen/currentlinkgen", "pci/gpulinkinfo/pciegeneration/current"),
    ),
    Field(
        "pcie_generation_max",
        _COUNT,
        ("pci/pcigpulinkinfo/pciegen/maxlinkgen", "pci/gpulinkinfo/pciegeneration/max"),
    ),
    Field(
        "pcie_width",
        _LANES,
        ("pci/pcigpulinkinfo/linkwidths/currentlinkwidth", "pci/gpulinkinfo/linkwidth/current"),
    ),
    Field(
        "pcie_width_max",
        _LANES,
        ("pci/pcigpulinkinfo/linkwidths/maxlinkwidth", "pci/gpulinkinfo/linkwidth/max"),
    ),
    Field("pcie_replay_total", _COUNT, ("pci/replaycounter", "pci/replayssincereset")),
    Field("pcie_rx_bytes_per_s", _RATE, ("pci/rxutil", "pci/rxthroughput")),
    Field("pcie_tx_bytes_per_s", _RATE, ("pci/txutil", "pci/txthroughput")),
    Field("ecc_mode", flag, ("eccmode/currentecc", "eccmode/current")),
    Field("ecc_mode_pending", flag, ("eccmode/pendingecc", "eccmode/pending")),
    Field("ecc_sram_threshold_exceeded", flag, ("eccerrors/aggregate/sramthresholdexceeded",)),
    Field("row_remap_corrected", _COUNT, ("remappedrows/remappedrowcorr", "remappedrows/correctableerror")),
    Field("row_remap_uncorrected", _COUNT, ("remappedrows/remappedrowunc", "remappedrows/uncorrectableerror")),
    Field("row_remap_pending", flag, ("remappedrows/remappedrowpending", "remappedrows/pending")),
    Field(
        "row_remap_failed",
        flag,
        ("remappedrows/remappedrowfailure", "remappedrows/remappingfailureoccurred"),
    ),
    *(
        Field(
            f"row_remap_banks_{level}",
            _BANKS,
            (
                f"remappedrows/rowremapperhistogram/rowremapperhistogram{level}",
                f"remappedrows/bankremapavailabilityhistogram/{level}",
            ),
        )
        for level in ("max", "high", "partial", "low", "none")
    ),
    Field(
        "retired_pages_sbe",
        _COUNT,
        ("retiredpages/multiplesinglebitretirement/retiredcount", "retiredpages/singlebitecc"),
    ),
    Field(
        "retired_pages_dbe",
        _COUNT,
        ("retiredpages/doublebitretirement/retiredcount", "retiredpages/doublebitecc"),
    ),
    Field(
        "retired_pages_pending",
        flag,
        (
            "retiredpages/pendingretirement",
            "retiredpages/pendingblacklist",
            "retiredpages/pendingpageblacklist",
            "retiredpages/pendingpageretirement",
            "retiredpages/pending",
        ),
    ),
    Field("recovery_action", recovery_action, ("gpurecoveryaction",)),
    Field("persistence_mode", flag, ("persistencemode",)),
    # Until driver 570 "display mode" said whether a display is attached; since then it is deprecated.
    Field("display_attached", flag, ("displayattached", "displaymode")),
    Field("display_active", flag, ("displayactive",)),
    Field("mig_mode", flag, ("migmode/currentmig", "migmode/current")),
    Field("mig_mode_pending", flag, ("migmode/pendingmig", "migmode/pending")),
    Field("compute_mode", compute_mode, ("computemode",)),
    Field(
        "virtualization_mode",
        virtualization_mode,
        ("gpuvirtualizationmode/virtualizationmode", "gpuvirtualizationmode/mode"),
    ),
    Field(
        "vgpu_licensed",
        licensed,
        (
            "vgpusoftwarelicensedproduct/licensestatus",
            "gridlicensedproduct/licensestatus",
            "licensedproduct/licensestatus",
        ),
    ),
    Field("model", words, ("productname",)),
    Field("brand", words, ("productbrand",)),
    Field("architecture", words, ("productarchitecture",)),
    Field("serial", words, ("serial", "serialnumber")),
    Field("part_number", words, ("boardpartnumber",)),
    Field("vbios_version", words, ("vbiosversion",)),
    Field("inforom_version", words, ("inforomversion/imgversion", "inforomversion/imageversion")),
    Field("gsp_firmware_version", words, ("gspfirmwareversion", "gspfirmware")),
)
"""Fields of a board."""


class Sum(Struct, frozen=True):
    """A count that is printed as a whole or in parts.

    Attributes:
        quantity: The count.
        whole: Where it stands as one number.
        parts: Where its parts stand; a part that the device has not counts as nothing, a part that could
            not be read makes the sum unknown.
    """

    quantity: str
    whole: tuple[str, ...]
    parts: tuple[str, ...] = ()


def _ecc(name: str) -> tuple[Sum, ...]:
    at = f"eccerrors/{name}"
    return (
        Sum(f"ecc_{name}_dram_corrected", (f"{at}/dramcorrectable", f"{at}/singlebit/devicememory")),
        Sum(f"ecc_{name}_dram_uncorrected", (f"{at}/dramuncorrectable", f"{at}/doublebit/devicememory")),
        Sum(f"ecc_{name}_sram_corrected", (f"{at}/sramcorrectable",)),
        # Hopper and newer split what SRAM could not correct by how it was found (driver 555 and newer).
        Sum(
            f"ecc_{name}_sram_uncorrected",
            (f"{at}/sramuncorrectable",),
            (f"{at}/sramuncorrectableparity", f"{at}/sramuncorrectablesecded"),
        ),
    )


ECC_SUMS: Final = (*_ecc("volatile"), *_ecc("aggregate"))
"""ECC counts."""

_INSTANCE_ECC: Final = ("eccerrorcount/volatilecount", "eccerrors/volatile")
INSTANCE_SUMS: Final = tuple(
    Sum(
        "ecc_volatile_sram_uncorrected",
        (f"{at}/sramuncorrectable",),
        (f"{at}/sramuncorrectableparity", f"{at}/sramuncorrectablesecded"),
    )
    for at in _INSTANCE_ECC
)
"""ECC counts of a MIG device: in XML, then in text."""

ECC_TOTALS: Final = tuple(
    (
        f"ecc_{scope}_{outcome}",
        f"eccerrors/{scope}/{bits}/total",
        (f"ecc_{scope}_dram_{outcome}", f"ecc_{scope}_sram_{outcome}"),
    )
    for scope in ("volatile", "aggregate")
    for outcome, bits in (("corrected", "singlebit"), ("uncorrected", "doublebit"))
)
"""Totals of ECC errors: quantity, where it stands in the layout of boards before Turing, and the quantities
that add up to it in the layout by memory, which prints no total."""


class Reason(Struct, frozen=True):
    """One bit of NVML's clock-event reasons and the closing words of its name in XML and in text."""

    bit: int
    names: tuple[str, ...]


REASON_SECTIONS: Final = ("clockseventreasons", "clocksthrottlereasons")
"""The heading changed with driver 535."""

REASON_PREFIXES: Final = ("clockseventreason", "clocksthrottlereason")
"""What XML tags begin with."""

REASONS: Final = (
    Reason(0x1, ("gpuidle", "idle")),
    Reason(0x2, ("applicationsclockssetting", "applicationclockssetting")),
    Reason(0x4, ("swpowercap",)),
    Reason(0x8, ("hwslowdown",)),
    Reason(0x40, ("hwthermalslowdown",)),
    Reason(0x80, ("hwpowerbrakeslowdown", "hwpowerbrake")),
    Reason(0x10, ("syncboost",)),
    Reason(0x20, ("swthermalslowdown",)),
    Reason(0x100, ("displayclockssetting", "displayclocksetting")),
)
"""Bits of nvml.h `nvmlClocksEventReason*`, in the order in which they are printed; the last one ends the
section."""
