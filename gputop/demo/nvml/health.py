"""ECC, row remapping, retired pages, and how long clocks were held back."""

from gputop.demo import counters, noise
from gputop.demo.counters import EccCounts
from gputop.demo.nvml import abi
from gputop.demo.nvml.gauges import refuse_when_partitioned
from gputop.demo.nvml.library import Device, FakeNvml
from gputop.demo.nvml.table import entry
from gputop.demo.world import Gpu

_CORRECTED, _UNCORRECTED = 0, 1
_VOLATILE, _AGGREGATE = 0, 1
_LOCATIONS = range(8)
_L2, _DRAM, _SRAM = 1, 2, 7


def ecc_counts(lib: FakeNvml, gpu: Gpu, counter: int) -> EccCounts:
    """Return the ECC counters of a board: 0 volatile, 1 aggregate.

    Without ECC they are NOT_SUPPORTED, and in MIG mode so are volatile ones of the whole board (nvml.h).
    """
    if not gpu.model.ecc:
        raise abi.RefusalError(abi.NOT_SUPPORTED)
    if counter not in (_VOLATILE, _AGGREGATE):
        raise abi.RefusalError(abi.INVALID_ARGUMENT)
    if counter == _VOLATILE:
        refuse_when_partitioned(lib, gpu)
    return counters.ecc(gpu, lib.now(), aggregate=counter == _AGGREGATE)


def _total(counts: EccCounts, error: int) -> int:
    if error == _CORRECTED:
        return counts.corrected_dram + counts.corrected_sram
    if error == _UNCORRECTED:
        return counts.uncorrected_dram + counts.uncorrected_sram
    raise abi.RefusalError(abi.INVALID_ARGUMENT)


@entry("nvmlDeviceGetEccMode")
def ecc_mode(_lib: FakeNvml, device: Device, current: abi.CArgument, pending: abi.CArgument) -> int:
    """Return whether ECC is on now and after the next reset."""
    if not device.gpu.model.ecc:
        return abi.NOT_SUPPORTED
    abi.put(current, 1)
    return abi.put(pending, 1)


@entry("nvmlDeviceGetDefaultEccMode")
def ecc_default(_lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return whether ECC is on by default."""
    return abi.put(result, 1) if device.gpu.model.ecc else abi.NOT_SUPPORTED


@entry("nvmlDeviceGetTotalEccErrors")
def ecc_total(
    lib: FakeNvml, device: Device, error: abi.CArgument, counter: abi.CArgument, result: abi.CArgument
) -> int:
    """Return all ECC errors of a severity since the driver was loaded, or over the board's life."""
    counts = ecc_counts(lib, device.gpu, abi.number(counter))
    return abi.put(result, _total(counts, abi.number(error)))


@entry("nvmlDeviceGetMemoryErrorCounter")
def ecc_by_location(
    lib: FakeNvml,
    device: Device,
    error: abi.CArgument,
    counter: abi.CArgument,
    location: abi.CArgument,
    result: abi.CArgument,
) -> int:
    """Return ECC errors at a location: 2 is DRAM, 7 SRAM (Ampere and newer); older boards split further."""
    counts = ecc_counts(lib, device.gpu, abi.number(counter))
    place = abi.number(location)
    if place not in _LOCATIONS:
        return abi.INVALID_ARGUMENT
    ampere = bool(device.gpu.model.remap_banks)
    # Before Ampere there is no sum over SRAM; its errors are counted in the L2 cache.
    sram = _SRAM if ampere else _L2
    if place not in (_DRAM, sram):
        return abi.NOT_SUPPORTED
    corrected = abi.number(error) == _CORRECTED
    if place == _DRAM:
        return abi.put(result, counts.corrected_dram if corrected else counts.uncorrected_dram)
    return abi.put(result, counts.corrected_sram if corrected else counts.uncorrected_sram)


@entry("nvmlDeviceGetDetailedEccErrors")
def ecc_detailed(
    lib: FakeNvml, device: Device, error: abi.CArgument, counter: abi.CArgument, result: abi.CArgument
) -> int:
    """Return the deprecated split of ECC errors; Ampere and newer do not have it."""
    counts = ecc_counts(lib, device.gpu, abi.number(counter))
    if device.gpu.model.remap_banks:
        return abi.NOT_SUPPORTED
    corrected = abi.number(error) == _CORRECTED
    return abi.fill(
        result,
        l1Cache=0,
        l2Cache=counts.corrected_sram if corrected else counts.uncorrected_sram,
        deviceMemory=counts.corrected_dram if corrected else counts.uncorrected_dram,
        registerFile=0,
    )


@entry("nvmlDeviceGetSramEccErrorStatus", since=(535, 0))
def sram_status(lib: FakeNvml, device: Device, status: abi.CArgument) -> int:
    """Return SRAM errors and whether they passed the threshold; Ampere and newer."""
    if not device.gpu.model.remap_banks:
        return abi.NOT_SUPPORTED
    struct = abi.versioned(status, abi.struct_version(104, 1))
    life = ecc_counts(lib, device.gpu, _AGGREGATE)
    lately = counters.ecc(device.gpu, lib.now(), aggregate=False)
    return abi.fill(
        struct,
        aggregateUncParity=life.uncorrected_sram,
        aggregateCor=life.corrected_sram,
        volatileUncParity=lately.uncorrected_sram,
        volatileCor=lately.corrected_sram,
        aggregateUncBucketL2=life.uncorrected_sram,
        bThresholdExceeded=int(counters.sram_threshold_exceeded(device.gpu, lib.now())),
    )


@entry("nvmlDeviceGetRemappedRows", since=(450, 51))
def remapped_rows(
    lib: FakeNvml,
    device: Device,
    correctable: abi.CArgument,
    uncorrectable: abi.CArgument,
    pending: abi.CArgument,
    failed: abi.CArgument,
) -> int:
    """Return remapped rows by cause and the two flags; not in MIG mode, not before Ampere."""
    rows = remap_of(lib, device.gpu)
    abi.put(correctable, rows.correctable)
    abi.put(uncorrectable, rows.uncorrectable)
    abi.put(pending, int(rows.pending))
    return abi.put(failed, int(rows.failed))


def remap_of(lib: FakeNvml, gpu: Gpu) -> counters.Remap:
    """Return the state of the row remapper, or refuse where there is none to ask."""
    if not gpu.model.remap_banks:
        raise abi.RefusalError(abi.NOT_SUPPORTED)
    refuse_when_partitioned(lib, gpu)
    return counters.remap(gpu, lib.now())


@entry("nvmlDeviceGetRowRemapperHistogram", since=(460, 0))
def remap_histogram(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return how many banks still have all, most, some, few or no spare rows."""
    rows = remap_of(lib, device.gpu)
    touched = rows.correctable + rows.uncorrectable
    none = 1 if rows.failed else 0
    high = max(0, touched - none)
    total = device.gpu.model.remap_banks
    return abi.fill(result, max=total - high - none, high=high, partial=0, low=0, none=none)


def retired_of(lib: FakeNvml, gpu: Gpu) -> counters.Retired:
    """Return the retired pages, or refuse on boards that remap rows instead."""
    if not gpu.model.retires_pages:
        raise abi.RefusalError(abi.NOT_SUPPORTED)
    return counters.retired(gpu, lib.now())


def _pages(
    lib: FakeNvml,
    gpu: Gpu,
    cause: abi.CArgument,
    count: abi.CArgument,
    pages: abi.CArgument,
    times: abi.CArgument,
) -> int:
    found = retired_of(lib, gpu)
    number = abi.number(cause)
    if number not in (0, 1):
        return abi.INVALID_ARGUMENT
    wanted = found.double_bit if number else found.single_bit
    room = abi.number(abi.pointee(count))
    abi.put(count, wanted)
    if pages is None or room < wanted:
        return abi.INSUFFICIENT_SIZE if wanted else abi.SUCCESS
    for place in range(wanted):
        pages[place] = noise.mix(gpu.seed ^ (number << 32) ^ place) % (gpu.model.memory_mib << 20) // 4096 * 4096
        if times is not None:
            times[place] = int(lib.started + counters.boot_s(gpu)) * 1_000_000
    return abi.SUCCESS


@entry("nvmlDeviceGetRetiredPages")
def retired_pages(
    lib: FakeNvml, device: Device, cause: abi.CArgument, count: abi.CArgument, pages: abi.CArgument
) -> int:
    """Return the addresses of pages retired for a cause: 0 many single-bit, 1 double-bit errors."""
    return _pages(lib, device.gpu, cause, count, pages, None)


@entry("nvmlDeviceGetRetiredPages_v2")
def retired_pages_v2(
    lib: FakeNvml,
    device: Device,
    cause: abi.CArgument,
    count: abi.CArgument,
    pages: abi.CArgument,
    times: abi.CArgument = None,
) -> int:
    """Return the addresses of retired pages with the times at which they were retired."""
    return _pages(lib, device.gpu, cause, count, pages, times)


@entry("nvmlDeviceGetRetiredPagesPendingStatus")
def retired_pending(lib: FakeNvml, device: Device, result: abi.CArgument) -> int:
    """Return whether pages wait for a driver reload to be retired."""
    return abi.put(result, int(retired_of(lib, device.gpu).pending))


@entry("nvmlDeviceGetViolationStatus")
def violation(lib: FakeNvml, device: Device, policy: abi.CArgument, result: abi.CArgument) -> int:
    """Return the time under a performance policy in ns: 0 power, 1 thermal."""
    times = counters.throttle_ns(device.gpu, lib.now())
    number = abi.number(policy)
    values = {0: times.sw_power_cap, 1: times.sw_thermal + times.hw_thermal, 2: 0, 3: times.hw_power_brake}
    if number not in values:
        return abi.NOT_SUPPORTED if number < 12 else abi.INVALID_ARGUMENT
    return abi.fill(result, referenceTime=int(lib.clock() * 1e6), violationTime=values[number])
