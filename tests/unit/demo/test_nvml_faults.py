"""Faults as pynvml meets them: each in its own words, and only where it strikes."""

from typing import Any

import pynvml
import pytest

# pynvml has no type information of its own, and ctypes members are made at run time.
nv: Any = pynvml

EIGHT = """
[[nodes]]
name = "n1"
gpus = 8
{group}
[[jobs]]
name = "train"
gpus = 8
[[faults]]
node = "n1"
{fault}
"""


def board(fault, group=""):
    return EIGHT.format(fault=fault, group=group)


def outcome(index):
    try:
        return nv.nvmlDeviceGetPowerUsage(nv.nvmlDeviceGetHandleByIndex(index))
    except nv.NVMLError as error:
        return type(error).__name__


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ('kind = "gpu_lost"', "NVMLError_GpuIsLost"),
        ('kind = "reset_required"', "NVMLError_ResetRequired"),
        ('kind = "no_permission"', "NVMLError_NoPermission"),
        ('kind = "nvml_error"\ncode = 999', "NVMLError_Unknown"),
        ('kind = "nvml_error"\ncode = 17', "NVMLError_OperatingSystem"),
        ('kind = "nvml_error"\ncode = 14\ncalls = ["*PowerUsage"]', "NVMLError_CorruptedInforom"),
    ],
)
def test_one_bad_board_leaves_seven_good_ones(nvml, fault, error):
    nvml(board(fault + "\ngpus = [3]"))
    assert nv.nvmlDeviceGetCount() == 8
    results = [outcome(index) for index in range(8)]
    assert results[3] == error
    assert all(isinstance(result, int) for index, result in enumerate(results) if index != 3)


def test_a_board_is_lost_while_watched_and_comes_back(nvml, clock):
    nvml(board('kind = "gpu_lost"\ngpus = [3]\nat_s = 5\nuntil_s = 9'))
    handle = nv.nvmlDeviceGetHandleByIndex(3)
    uuid = nv.nvmlDeviceGetUUID(handle)
    clock.now += 6
    with pytest.raises(nv.NVMLError) as caught:
        nv.nvmlDeviceGetUUID(handle)
    assert caught.value.value == nv.NVML_ERROR_GPU_IS_LOST
    # Looking another board up by UUID passes the lost one first, and fails for it (nvml.h).
    last = nv.nvmlDeviceGetUUID(nv.nvmlDeviceGetHandleByIndex(7))
    with pytest.raises(nv.NVMLError):
        nv.nvmlDeviceGetHandleByUUID(last)
    clock.now += 4
    assert nv.nvmlDeviceGetUUID(handle) == uuid


@pytest.mark.parametrize(
    ("code", "error"),
    [(9, "DriverNotLoaded"), (12, "LibraryNotFound"), (18, "LibRmVersionMismatch"), (28, "GpuNotFound")],
)
def test_init_fails_in_its_own_words(nvml, code, error):
    nvml(board(f'kind = "nvml_init_error"\ncode = {code}'), init=False)
    with pytest.raises(nv.NVMLError) as caught:
        nv.nvmlInit()
    assert type(caught.value).__name__ == f"NVMLError_{error}"


def test_a_call_blocks_on_one_board_only(nvml, clock):
    nvml(board('kind = "call_block"\ngpus = [2]\nseconds = 30\ncalls = ["nvmlDeviceGetTemperature*"]'))
    nv.nvmlDeviceGetTemperature(nv.nvmlDeviceGetHandleByIndex(1), 0)
    nv.nvmlDeviceGetPowerUsage(nv.nvmlDeviceGetHandleByIndex(2))
    assert clock.slept == []
    nv.nvmlDeviceGetTemperature(nv.nvmlDeviceGetHandleByIndex(2), 0)
    assert clock.slept == [30]


def test_opening_a_board_blocks_for_the_board_that_is_named(nvml, clock):
    nvml(board('kind = "call_block"\ngpus = [2]\nseconds = 30\ncalls = ["nvmlDeviceGetHandleByIndex*"]'))
    for index in (0, 1, 3, 7):
        nv.nvmlDeviceGetHandleByIndex(index)
    assert clock.slept == []
    nv.nvmlDeviceGetHandleByIndex(2)
    assert clock.slept == [30]


def test_a_missing_board_is_not_counted_and_indices_close_up(nvml):
    library = nvml(board('kind = "gpu_missing"\ngpus = [3]'))
    assert nv.nvmlDeviceGetCount() == 7
    assert nv.nvmlDeviceGetUUID(nv.nvmlDeviceGetHandleByIndex(3)) == library.node.gpus[4].uuid
    assert nv.nvmlDeviceGetMinorNumber(nv.nvmlDeviceGetHandleByIndex(3)) == 4


def test_ecc_grows_in_its_place_and_aggregate_never_falls_below_volatile(nvml, clock):
    nvml(board('kind = "ecc"\ngpus = [0]\nat_s = 0\ncorrected_per_min = 6\nuncorrected = 2\nlocation = "sram"'))
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    clock.now += 60
    assert nv.nvmlDeviceGetTotalEccErrors(handle, 0, 0) == 6
    clock.now += 60
    assert nv.nvmlDeviceGetTotalEccErrors(handle, 0, 0) == 12
    assert nv.nvmlDeviceGetMemoryErrorCounter(handle, 1, 0, nv.NVML_MEMORY_LOCATION_SRAM) == 2
    assert nv.nvmlDeviceGetMemoryErrorCounter(handle, 1, 0, nv.NVML_MEMORY_LOCATION_DRAM) == 0
    assert nv.nvmlDeviceGetTotalEccErrors(handle, 0, 1) >= 12
    status = nv.c_nvmlEccSramErrorStatus_v1_t()
    nv.nvmlDeviceGetSramEccErrorStatus(handle, nv.byref(status))
    assert (status.volatileUncParity, status.bThresholdExceeded) == (2, 0)


def test_remap_pending_and_failed_are_told_apart(nvml):
    nvml(
        board(
            'kind = "row_remap"\ngpus = [1]\nstate = "pending"\n[[faults]]\nnode = "n1"\n'
            'kind = "row_remap"\ngpus = [6]\nstate = "failed"\nrows = 9'
        )
    )
    assert nv.nvmlDeviceGetRemappedRows(nv.nvmlDeviceGetHandleByIndex(1)) == (0, 1, 1, 0)
    assert nv.nvmlDeviceGetRemappedRows(nv.nvmlDeviceGetHandleByIndex(6)) == (0, 9, 0, 1)
    failed = nv.nvmlDeviceGetFieldValues(nv.nvmlDeviceGetHandleByIndex(6), [nv.NVML_FI_DEV_REMAPPED_FAILURE])[0]
    assert failed.value.uiVal == 1


def test_retired_pages_exist_before_ampere_only(nvml):
    nvml(board('kind = "retired_pages"\ngpus = [0]\ndouble_bit = 3\npending = true', 'model = "v100"'))
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    pages = nv.nvmlDeviceGetRetiredPages(handle, nv.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR)
    assert len(set(pages)) == 3
    assert nv.nvmlDeviceGetRetiredPagesPendingStatus(handle) == 1
    with pytest.raises(nv.NVMLError) as caught:
        nv.nvmlDeviceGetRemappedRows(handle)
    assert caught.value.value == nv.NVML_ERROR_NOT_SUPPORTED


def test_heat_and_power_show_their_reasons(nvml):
    nvml(
        board(
            'kind = "thermal"\ngpus = [0]\nhardware = true\n[[faults]]\nnode = "n1"\nkind = "power_brake"\n'
            'gpus = [1]\n[[faults]]\nnode = "n1"\nkind = "power_cap"\ngpus = [2]\nlimit_w = 300'
        )
    )
    hot, braked, capped, fine = (nv.nvmlDeviceGetHandleByIndex(index) for index in range(4))
    assert nv.nvmlDeviceGetCurrentClocksEventReasons(hot) & 0x48 == 0x48
    assert nv.nvmlDeviceGetCurrentClocksEventReasons(braked) & 0x88 == 0x88
    assert nv.nvmlDeviceGetCurrentClocksEventReasons(capped) & 0x4
    assert nv.nvmlDeviceGetPowerUsage(capped) <= nv.nvmlDeviceGetEnforcedPowerLimit(capped) == 300_000
    assert nv.nvmlDeviceGetTemperature(hot, 0) >= 87 > nv.nvmlDeviceGetTemperature(fine, 0)
    assert nv.nvmlDeviceGetMarginTemperature(hot) < nv.nvmlDeviceGetMarginTemperature(fine)
    assert nv.nvmlDeviceGetClockInfo(braked, 1) < nv.nvmlDeviceGetClockInfo(fine, 1)


def test_nvlink_faults_strike_single_links(nvml, clock):
    nvml(
        board(
            'kind = "nvlink_down"\ngpus = [0]\nlinks = [4]\n[[faults]]\nnode = "n1"\nkind = "nvlink_errors"\n'
            "gpus = [0]\nlinks = [2]\nat_s = 0\nper_min = 30"
        )
    )
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    clock.now += 120
    states = [nv.nvmlDeviceGetNvLinkState(handle, link) for link in range(18)]
    assert states.count(0) == 1
    assert states[4] == 0
    assert nv.nvmlDeviceGetNvLinkErrorCounter(handle, 2, nv.NVML_NVLINK_ERROR_DL_CRC_FLIT) == 60
    assert nv.nvmlDeviceGetNvLinkErrorCounter(handle, 3, nv.NVML_NVLINK_ERROR_DL_CRC_FLIT) == 0
    total = nv.nvmlDeviceGetFieldValues(handle, [nv.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL])[0]
    assert total.value.ullVal == 60
    with pytest.raises(nv.NVMLError) as caught:
        nv.nvmlDeviceGetNvLinkState(handle, 18)
    assert caught.value.value == nv.NVML_ERROR_INVALID_ARGUMENT


def test_xid_events_arrive_in_order_and_a_quiet_wait_times_out(nvml, clock):
    nvml(
        board(
            'kind = "xid"\ngpus = [5]\nxid = 31\nat_s = 2\nevery_s = 10\nuntil_s = 15\n'
            '[[faults]]\nnode = "n1"\nkind = "gpu_lost"\ngpus = [6]\nat_s = 30'
        )
    )
    events = nv.nvmlEventSetCreate()
    for index in range(8):
        handle = nv.nvmlDeviceGetHandleByIndex(index)
        nv.nvmlDeviceRegisterEvents(handle, nv.nvmlEventTypeXidCriticalError, events)
    first = nv.nvmlEventSetWait(events, 5000)
    assert (first.eventData, nv.nvmlDeviceGetIndex(first.device)) == (31, 5)
    assert clock.now == pytest.approx(1_790_000_002, abs=0.1)
    with pytest.raises(nv.NVMLError_Timeout):
        nv.nvmlEventSetWait(events, 1000)
    assert nv.nvmlEventSetWait(events, 20_000).eventData == 31
    assert nv.nvmlEventSetWait(events, 60_000).eventData == 79
    with pytest.raises(nv.NVMLError_GpuIsLost):
        nv.nvmlEventSetWait(events, 60_000)
    nv.nvmlEventSetFree(events)
    with pytest.raises(nv.NVMLError_InvalidArgument):
        nv.nvmlEventSetWait(events, 0)


def test_recovery_action_is_a_field_of_new_drivers(nvml):
    fault = 'kind = "recovery_action"\ngpus = [0]\naction = 4'
    nvml(board(fault))
    field = nv.nvmlDeviceGetFieldValues(nv.nvmlDeviceGetHandleByIndex(0), [230])[0]
    assert (field.nvmlReturn, field.value.uiVal) == (0, 4)
    nvml(board(fault, 'driver = "535.183.06"'))
    field = nv.nvmlDeviceGetFieldValues(nv.nvmlDeviceGetHandleByIndex(0), [230])[0]
    assert field.nvmlReturn == nv.NVML_ERROR_NOT_SUPPORTED


def test_a_process_that_cannot_say_its_memory_says_so(nvml):
    nvml(board('kind = "unsupported"\ngpus = [0]\ncalls = ["usedGpuMemory", "field:82"]'))
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    assert nv.nvmlDeviceGetComputeRunningProcesses(handle)[0].usedGpuMemory is None
    assert nv.nvmlDeviceGetFieldValues(handle, [82])[0].nvmlReturn == nv.NVML_ERROR_NOT_SUPPORTED


def test_a_board_is_partitioned_anew(nvml, clock):
    nvml(
        board('kind = "mig_layout"\ngpus = [7]\nat_s = 10\nprofiles = ["1g.10gb", "1g.10gb"]').replace(
            "gpus = 8\n[[faults", "gpus = 4\n[[faults"
        )
    )
    handle = nv.nvmlDeviceGetHandleByIndex(7)
    assert nv.nvmlDeviceGetMigMode(handle) == [0, 0]
    clock.now += 11
    assert nv.nvmlDeviceGetMigMode(handle) == [1, 1]
    assert nv.nvmlDeviceGetName(nv.nvmlDeviceGetMigDeviceHandleByIndex(handle, 1)).endswith("MIG 1g.10gb")
