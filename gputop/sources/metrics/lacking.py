"""What an exporter could tell and does not, with the line that would make it."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct

from gputop.model.status import Finding
from gputop.sources.metrics.names import METRICS


class _Line(Struct, frozen=True):
    """Quantities (or a metric name) any of which is enough, what lacks without, the CSV line to add."""

    any_of: tuple[str, ...]
    without: str
    line: str


_DCGM_LINES: Final = (
    _Line(
        ("memory_total_mib", "memory_reserved_mib"),
        "the memory total is only a lower bound",
        "DCGM_FI_DEV_FB_RESERVED, gauge, Framebuffer memory reserved (in MiB).",
    ),
    _Line(
        ("ecc_volatile_uncorrected", "ecc_aggregate_uncorrected"),
        "ECC errors are not told",
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL, counter, Total number of double-bit volatile ECC errors.",
    ),
    _Line(
        ("row_remap_pending",),
        "a row remap that awaits a reset is not told",
        "DCGM_FI_DEV_ROW_REMAP_PENDING, gauge, Whether remapping of rows is pending.",
    ),
    _Line(
        ("row_remap_failed",),
        "a failed row remap is not told",
        "DCGM_FI_DEV_ROW_REMAP_FAILURE, gauge, Whether remapping of rows has failed.",
    ),
    _Line(
        ("graphics_activity",),
        "no profiling: MIG instances have no utilisation, SM and tensor activity are not told",
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, Ratio of time the graphics engine is active.",
    ),
    _Line(
        ("clock_event_reasons",),
        "why clocks are held down is not told",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS, gauge, Current clock event reasons (bitmask).",
    ),
    _Line(
        ("power_limit_w",),
        "power limits are not told",
        "DCGM_FI_DEV_ENFORCED_POWER_LIMIT, gauge, Effective power limit that the driver enforces (in W).",
    ),
    _Line(
        ("DCGM_EXP_XID_ERRORS_COUNT",),
        "only the last Xid is told, repeats of it are hidden",
        "DCGM_EXP_XID_ERRORS_COUNT, gauge, Count of XID errors within a time window.",
    ),
)


def exporters(names: AbstractSet[str]) -> tuple[str, ...]:
    """Return the families of exporter that metric names are of, in the order of the tables."""
    return tuple(dict.fromkeys(rule.exporter for rule in METRICS.values() if rule.name in names))


def generation(names: Iterable[str]) -> str:
    """Return in words which generation of names a dcgm-exporter uses, "" if there are none."""
    dcgm = [name for name in names if name.lower().startswith("dcgm_")]
    if not dcgm:
        return ""
    if any(name.startswith("dcgm_") for name in dcgm):
        return "names of dcgm-exporter 1.x (--use-old-namespace)"
    if any("_FB_" in name and name.endswith("_BYTES") for name in dcgm):
        return "names of DCGM 4.7"
    if any(name.endswith(("_CELSIUS", "_WATTS", "_HERTZ", "_RATIO")) for name in dcgm):
        return "names of DCGM 4.6"
    return "names before DCGM 4.6"


def lacking(names: AbstractSet[str]) -> tuple[Finding, ...]:
    """Return what a dcgm-exporter's CSV file lacks; nothing for other exporters, which have no such file."""
    if "dcgm" not in exporters(names):
        return ()
    told = {METRICS[name].quantity for name in names if name in METRICS} | names
    return tuple(
        Finding(line.without, f"add to the exporter's CSV file: {line.line}")
        for line in _DCGM_LINES
        if not told.intersection(line.any_of)
    )
