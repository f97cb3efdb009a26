"""Field values: one call for many fields, each with its own type, timestamp, cost and return code."""

from collections.abc import Callable
from typing import NamedTuple

from gputop.demo import counters
from gputop.demo.nvml import abi
from gputop.demo.nvml.gauges import margin_c, power_limit_mw
from gputop.demo.nvml.health import ecc_counts, remap_of, retired_of
from gputop.demo.nvml.library import Device, FakeNvml, refusal
from gputop.demo.nvml.links import NVML_VERSIONS, link_of
from gputop.demo.nvml.table import entry
from gputop.demo.world import Gpu

_DOUBLE, _UINT, _ULONG_LONG, _INT = 0, 1, 3, 5
_MEMBER = {_DOUBLE: "dVal", _UINT: "uiVal", _ULONG_LONG: "ullVal", _INT: "siVal"}
# A cached reading costs little, one that goes to the GPU's firmware more.
_CHEAP_US, _FIRMWARE_US = 4, 180
_ALL_LINKS = 0xFFFFFFFF
_NVLINK_5 = 5

Read = Callable[[FakeNvml, Gpu, int], float]


class Field(NamedTuple):
    """A field: its value type, how it is read from (library, board, scope), the first driver with it."""

    kind: int
    read: Read
    since: tuple[int, int] = (0, 0)
    latency_us: int = _CHEAP_US


def _ecc(location: str, error: str, counter: int) -> Read:
    def read(lib: FakeNvml, gpu: Gpu, _scope: int) -> float:
        counts = ecc_counts(lib, gpu, counter)
        dram = counts.corrected_dram if error == "corrected" else counts.uncorrected_dram
        sram = counts.corrected_sram if error == "corrected" else counts.uncorrected_sram
        return {"total": dram + sram, "dram": dram, "sram": sram}[location]

    return read


def _mode(_lib: FakeNvml, gpu: Gpu, _scope: int) -> float:
    if not gpu.model.ecc:
        raise abi.RefusalError(abi.NOT_SUPPORTED)
    return 1


def _memory_temperature(lib: FakeNvml, gpu: Gpu, _scope: int) -> float:
    if not gpu.model.memory_sensor:
        raise abi.RefusalError(abi.NOT_SUPPORTED)
    return round(lib.state(gpu).memory_temperature_c)


def _power(lib: FakeNvml, gpu: Gpu, scope: int) -> float:
    # Scope 0 is the GPU; module and memory scopes exist on superchips only.
    if scope:
        raise abi.RefusalError(abi.NOT_SUPPORTED)
    return round(lib.state(gpu).power_w * 1000)


def _average_power(lib: FakeNvml, gpu: Gpu, scope: int) -> float:
    # The A100 has no averaged reading (nvml.h names GA100 as the exception).
    if gpu.model.architecture < 7 or gpu.model.name.startswith("NVIDIA A100"):
        raise abi.RefusalError(abi.NOT_SUPPORTED)
    return _power(lib, gpu, scope)


def _limit(which: str) -> Read:
    def read(lib: FakeNvml, gpu: Gpu, scope: int) -> float:
        if scope:
            raise abi.RefusalError(abi.NOT_SUPPORTED)
        current = power_limit_mw(lib, gpu)
        fixed = {"min": gpu.model.power_min_w * 1000, "max": gpu.model.power_limit_w * 1000}
        return fixed.get(which, current)

    return read


def _thermal_limit(offset: int) -> Read:
    def read(lib: FakeNvml, gpu: Gpu, _scope: int) -> float:
        margin_c(lib, gpu)
        return offset

    return read


def _throttle(reason: str) -> Read:
    def read(lib: FakeNvml, gpu: Gpu, _scope: int) -> float:
        return int(getattr(counters.throttle_ns(gpu, lib.now()), reason)) if reason else 0

    return read


def _remap(member: str) -> Read:
    def read(lib: FakeNvml, gpu: Gpu, _scope: int) -> float:
        return int(getattr(remap_of(lib, gpu), member))

    return read


def _retired(member: str) -> Read:
    def read(lib: FakeNvml, gpu: Gpu, _scope: int) -> float:
        return int(getattr(retired_of(lib, gpu), member))

    return read


def _links(gpu: Gpu, scope: int) -> range:
    """Return the links that a scope names: one, or all of them for the scope that means all."""
    if scope == _ALL_LINKS:
        link_of(gpu, 0)
        return range(gpu.model.nvlinks)
    link = link_of(gpu, scope)
    return range(link, link + 1)


def _classic(gpu: Gpu) -> None:
    if not gpu.model.nvlinks or gpu.model.nvlink_version >= _NVLINK_5:
        raise abi.RefusalError(abi.NOT_SUPPORTED)


def _link_errors(error: str, links: range | None) -> Read:
    def read(lib: FakeNvml, gpu: Gpu, _scope: int) -> float:
        _classic(gpu)
        wanted = range(gpu.model.nvlinks) if links is None else links
        if wanted[-1] >= gpu.model.nvlinks:
            raise abi.RefusalError(abi.NOT_SUPPORTED)
        if not error:
            return 0
        return sum(counters.nvlink_errors(gpu, link, error, lib.now()) for link in wanted)

    return read


def _scoped_errors(error: str, *, newest_only: bool = False) -> Read:
    def read(lib: FakeNvml, gpu: Gpu, scope: int) -> float:
        links = _links(gpu, scope)
        if newest_only and gpu.model.nvlink_version < _NVLINK_5:
            raise abi.RefusalError(abi.NOT_SUPPORTED)
        return sum(counters.nvlink_errors(gpu, link, error, lib.now()) for link in links) if error else 0

    return read


def _link_state(lib: FakeNvml, gpu: Gpu, scope: int) -> float:
    return int(counters.nvlink_active(gpu, link_of(gpu, scope), lib.now()))


def _link_traffic(unit: float) -> Read:
    def read(lib: FakeNvml, gpu: Gpu, scope: int) -> float:
        links = _links(gpu, scope)
        return int(counters.nvlink_bytes(gpu, lib.now()) * len(links) / gpu.model.nvlinks / unit)

    return read


def _link_speed(_lib: FakeNvml, gpu: Gpu, scope: int) -> float:
    link_of(gpu, scope)
    return gpu.model.nvlink_mbps


def _link_version(_lib: FakeNvml, gpu: Gpu, scope: int) -> float:
    link_of(gpu, scope)
    return NVML_VERSIONS[gpu.model.nvlink_version]


def _error_rate(error: str) -> Read:
    """Return the read of a bit error rate as NVML packs it: all bits set while nothing was counted."""

    def read(lib: FakeNvml, gpu: Gpu, scope: int) -> float:
        count = _scoped_errors(error, newest_only=True)(lib, gpu, scope)
        return 3 << 8 | 12 if count else 0xFFF

    return read


def _link_count(_lib: FakeNvml, gpu: Gpu, _scope: int) -> float:
    return gpu.model.nvlinks


def _common_speed(_lib: FakeNvml, gpu: Gpu, _scope: int) -> float:
    link_of(gpu, 0)
    return gpu.model.nvlink_mbps


def _pcie_traffic(part: float) -> Read:
    def read(lib: FakeNvml, gpu: Gpu, _scope: int) -> float:
        return int(counters.pcie_bytes(gpu, lib.now()) * part)

    return read


FIELDS: dict[int, Field] = {
    1: Field(_UINT, _mode),
    2: Field(_UINT, _mode),
    3: Field(_ULONG_LONG, _ecc("total", "corrected", 0)),
    4: Field(_ULONG_LONG, _ecc("total", "uncorrected", 0)),
    5: Field(_ULONG_LONG, _ecc("total", "corrected", 1)),
    6: Field(_ULONG_LONG, _ecc("total", "uncorrected", 1)),
    9: Field(_ULONG_LONG, _ecc("sram", "corrected", 0)),
    10: Field(_ULONG_LONG, _ecc("sram", "uncorrected", 0)),
    11: Field(_ULONG_LONG, _ecc("dram", "corrected", 0)),
    12: Field(_ULONG_LONG, _ecc("dram", "uncorrected", 0)),
    20: Field(_ULONG_LONG, _ecc("sram", "corrected", 1)),
    21: Field(_ULONG_LONG, _ecc("sram", "uncorrected", 1)),
    22: Field(_ULONG_LONG, _ecc("dram", "corrected", 1)),
    23: Field(_ULONG_LONG, _ecc("dram", "uncorrected", 1)),
    29: Field(_ULONG_LONG, _retired("single_bit")),
    30: Field(_ULONG_LONG, _retired("double_bit")),
    31: Field(_UINT, _retired("pending")),
    38: Field(_ULONG_LONG, _link_errors("crc", None)),
    45: Field(_ULONG_LONG, _link_errors("", None)),
    52: Field(_ULONG_LONG, _link_errors("replay", None)),
    59: Field(_ULONG_LONG, _link_errors("recovery", None)),
    74: Field(_ULONG_LONG, _throttle("sw_power_cap")),
    75: Field(_ULONG_LONG, _throttle("sw_thermal")),
    76: Field(_ULONG_LONG, _throttle("")),
    82: Field(_UINT, _memory_temperature, latency_us=_FIRMWARE_US),
    83: Field(_ULONG_LONG, lambda lib, gpu, _scope: counters.energy_mj(gpu, lib.now()), latency_us=_FIRMWARE_US),
    90: Field(_UINT, _common_speed),
    91: Field(_UINT, _link_count),
    92: Field(_UINT, _retired("pending")),
    93: Field(_UINT, _retired("pending")),
    94: Field(_UINT, lambda lib, gpu, _scope: counters.pcie_replays(gpu, lib.now())),
    138: Field(_ULONG_LONG, _link_traffic(1024.0), (450, 0)),
    139: Field(_ULONG_LONG, _link_traffic(1024.0), (450, 0)),
    140: Field(_ULONG_LONG, _link_traffic(960.0), (450, 0)),
    141: Field(_ULONG_LONG, _link_traffic(960.0), (450, 0)),
    142: Field(_UINT, _remap("correctable"), (450, 51)),
    143: Field(_UINT, _remap("uncorrectable"), (450, 51)),
    144: Field(_UINT, _remap("pending"), (450, 51)),
    145: Field(_UINT, _remap("failed"), (450, 51)),
    160: Field(_ULONG_LONG, _link_errors("", None), (450, 0)),
    161: Field(_ULONG_LONG, _scoped_errors("replay"), (510, 0)),
    162: Field(_ULONG_LONG, _scoped_errors("recovery"), (510, 0)),
    163: Field(_ULONG_LONG, _scoped_errors("crc"), (510, 0)),
    164: Field(_UINT, _link_speed, (510, 0)),
    165: Field(_UINT, _link_state, (510, 0)),
    166: Field(_UINT, _link_version, (510, 0)),
    185: Field(_UINT, _average_power, (520, 0), _FIRMWARE_US),
    186: Field(_UINT, _power, (520, 0), _FIRMWARE_US),
    187: Field(_UINT, _limit("min"), (520, 0)),
    188: Field(_UINT, _limit("max"), (520, 0)),
    189: Field(_UINT, _limit("max"), (520, 0)),
    190: Field(_UINT, _limit("current"), (520, 0)),
    191: Field(_ULONG_LONG, lambda lib, gpu, _scope: counters.energy_mj(gpu, lib.now()), (520, 0), _FIRMWARE_US),
    192: Field(_UINT, _limit("current"), (520, 0)),
    193: Field(_INT, _thermal_limit(-8), (525, 0)),
    194: Field(_INT, _thermal_limit(-2), (525, 0)),
    195: Field(_INT, _thermal_limit(0), (525, 0)),
    196: Field(_INT, _thermal_limit(0), (525, 0)),
    197: Field(_ULONG_LONG, _pcie_traffic(0.4), (535, 0)),
    198: Field(_ULONG_LONG, _pcie_traffic(1.0), (535, 0)),
    202: Field(_ULONG_LONG, _link_traffic(1.0), (550, 0)),
    204: Field(_ULONG_LONG, _link_traffic(1.0), (550, 0)),
    206: Field(_ULONG_LONG, _scoped_errors("", newest_only=True), (550, 0)),
    207: Field(_ULONG_LONG, _scoped_errors("", newest_only=True), (550, 0)),
    208: Field(_ULONG_LONG, _scoped_errors("crc", newest_only=True), (550, 0)),
    209: Field(_ULONG_LONG, _scoped_errors("", newest_only=True), (550, 0)),
    210: Field(_ULONG_LONG, _scoped_errors("", newest_only=True), (550, 0)),
    211: Field(_ULONG_LONG, _scoped_errors("", newest_only=True), (550, 0)),
    212: Field(_ULONG_LONG, _scoped_errors("", newest_only=True), (550, 0)),
    213: Field(_ULONG_LONG, _scoped_errors("recovery", newest_only=True), (550, 0)),
    214: Field(_ULONG_LONG, _scoped_errors("", newest_only=True), (550, 0)),
    215: Field(_ULONG_LONG, _scoped_errors("recovery", newest_only=True), (550, 0)),
    219: Field(_ULONG_LONG, _scoped_errors("replay", newest_only=True), (550, 0)),
    220: Field(_ULONG_LONG, _error_rate("replay"), (550, 0)),
    221: Field(_ULONG_LONG, _scoped_errors("crc", newest_only=True), (550, 0)),
    222: Field(_ULONG_LONG, _error_rate("crc"), (550, 0)),
    230: Field(_UINT, lambda lib, gpu, _scope: counters.recovery_action(gpu, lib.now()), (560, 0)),
    269: Field(_ULONG_LONG, _throttle("sw_thermal"), (570, 0)),
    270: Field(_ULONG_LONG, _throttle("hw_thermal"), (570, 0)),
    271: Field(_ULONG_LONG, _throttle("hw_power_brake"), (570, 0)),
}
"""Fields by NVML's number. Per-link counters of the first twelve links are added below."""

# Counters of links 0 to 5 and 6 to 11 have numbers of their own, in two runs for each error type.
for _error, _low, _high in (("crc", 32, 96), ("", 39, 102), ("replay", 46, 108), ("recovery", 53, 114)):
    for _link in range(12):
        _number = _low + _link if _link < 6 else _high + _link - 6
        FIELDS[_number] = Field(_ULONG_LONG, _link_errors(_error, range(_link, _link + 1)))


@entry("nvmlDeviceGetFieldValues")
def field_values(lib: FakeNvml, device: Device, count: abi.CArgument, values: abi.CArgument) -> int:
    """Fill in each field asked for; the call itself succeeds where single fields fail."""
    array = abi.pointee(values)
    wanted = abi.number(count)
    if wanted <= 0:
        return abi.INVALID_ARGUMENT
    stamp = int(lib.clock() * 1e6)
    for place in range(wanted):
        value = array[place]
        value.timestamp = stamp
        field = FIELDS.get(value.fieldId)
        value.latencyUsec = field.latency_us if field else 0
        try:
            _read(lib, device.gpu, value, field)
            value.nvmlReturn = abi.SUCCESS
        except abi.RefusalError as refused:
            value.nvmlReturn = refused.code
    return abi.SUCCESS


def _read(lib: FakeNvml, gpu: Gpu, value: abi.CArgument, field: Field | None) -> None:
    if field is None or lib.driver < field.since:
        raise abi.RefusalError(abi.NOT_SUPPORTED)
    code = refusal(gpu, f"field:{value.fieldId}", lib.now()) if gpu.faults else abi.SUCCESS
    if code:
        raise abi.RefusalError(code)
    result = field.read(lib, gpu, value.scopeId)
    value.valueType = field.kind
    setattr(value.value, _MEMBER[field.kind], result)
