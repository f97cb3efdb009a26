"""What pynvml reads from a simulated board: values, units, struct versions, buffers and missing symbols."""

import ctypes
import re
from typing import Any

import pynvml
import pytest

# pynvml has no type information of its own, and ctypes members are made at run time.
nv: Any = pynvml

NODE = """
[[nodes]]
name = "n1"
model = "{model}"
gpus = 2
{extra}
[[jobs]]
name = "train"
gpus = 1
load = "train"
user = "mara"
processes_per_gpu = 3
"""


def node(model="h100", extra=""):
    return NODE.format(model=model, extra=extra)


def fails(code, call, *arguments):
    with pytest.raises(nv.NVMLError) as caught:
        call(*arguments)
    assert caught.value.value == code


def test_a_busy_board_reads_as_busy_and_an_idle_one_as_idle(nvml):
    nvml(node())
    busy, idle = nv.nvmlDeviceGetHandleByIndex(0), nv.nvmlDeviceGetHandleByIndex(1)
    assert nv.nvmlDeviceGetName(busy) == "NVIDIA H100 80GB HBM3"
    assert re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", nv.nvmlDeviceGetUUID(busy))
    assert nv.nvmlDeviceGetUtilizationRates(busy).gpu > 80
    assert nv.nvmlDeviceGetUtilizationRates(idle).gpu == 0
    assert nv.nvmlDeviceGetPowerUsage(busy) > 5 * nv.nvmlDeviceGetPowerUsage(idle) > 0
    assert nv.nvmlDeviceGetPowerUsage(busy) <= nv.nvmlDeviceGetEnforcedPowerLimit(busy) == 700_000
    assert nv.nvmlDeviceGetTemperature(busy, 0) > nv.nvmlDeviceGetTemperature(idle, 0) > 20
    assert nv.nvmlDeviceGetClockInfo(busy, nv.NVML_CLOCK_SM) > nv.nvmlDeviceGetClockInfo(idle, nv.NVML_CLOCK_SM)
    assert nv.nvmlDeviceGetCurrentClocksEventReasons(idle) == 1


def test_memory_v2_adds_up_and_v1_counts_reserved_as_used(nvml):
    nvml(node())
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    new = nv.nvmlDeviceGetMemoryInfo(handle, nv.nvmlMemory_v2)
    old = nv.nvmlDeviceGetMemoryInfo(handle)
    assert new.total == new.reserved + new.used + new.free == 81559 << 20
    assert old.used == new.used + new.reserved
    assert new.reserved == 551 << 20


def test_a_struct_of_the_wrong_version_is_refused(nvml):
    nvml(node())
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    fails(nv.NVML_ERROR_ARGUMENT_VERSION_MISMATCH, nv.nvmlDeviceGetMemoryInfo, handle, 2)


def test_a_small_string_buffer_is_refused_and_left_alone(nvml):
    nvml(node())
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    buffer = ctypes.create_string_buffer(8)
    function = nv._nvmlGetFunctionPointer("nvmlDeviceGetUUID")
    assert function(handle, buffer, ctypes.c_uint(8)) == nv.NVML_ERROR_INSUFFICIENT_SIZE
    assert buffer.value == b""


def test_an_old_driver_lacks_the_new_symbols(nvml):
    nvml(node("a100-80", 'driver = "470.57.02"\ncuda = "11.4"'))
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    fails(nv.NVML_ERROR_FUNCTION_NOT_FOUND, nv.nvmlDeviceGetCurrentClocksEventReasons, handle)
    fails(nv.NVML_ERROR_FUNCTION_NOT_FOUND, nv.nvmlDeviceGetMemoryInfo, handle, nv.nvmlMemory_v2)
    fails(nv.NVML_ERROR_FUNCTION_NOT_FOUND, nv.nvmlDeviceGetComputeRunningProcesses_v3, handle)
    assert len(nv.nvmlDeviceGetComputeRunningProcesses_v2(handle)) == 3
    assert nv.nvmlDeviceGetCurrentClocksThrottleReasons(handle) in (0, 4)
    assert nv.nvmlSystemGetCudaDriverVersion() == 11040
    # Before R510 reserved memory was not part of what was used.
    held = sum(process.usedGpuMemory for process in nv.nvmlDeviceGetComputeRunningProcesses_v2(handle))
    assert nv.nvmlDeviceGetMemoryInfo(handle).used == pytest.approx(held, abs=8)


def test_the_r535_process_list_scrambles_for_a_caller_with_the_sound_struct(nvml):
    nvml(node("h100", 'driver = "535.54.03"'))
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    pids = [process.pid for process in nv.nvmlDeviceGetComputeRunningProcesses(handle)]
    assert len(pids) == 3
    assert pids[0] > 5_000_000
    assert pids[1] < 5_000_000 or pids[1] == 0xFFFFFFFF


@pytest.mark.parametrize("model", ["t4", "rtx4090", "l40s"])
def test_a_board_without_a_feature_says_not_supported(nvml, model):
    nvml(node(model))
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    fails(nv.NVML_ERROR_NOT_SUPPORTED, nv.nvmlDeviceGetNvLinkState, handle, 0)
    field = nv.nvmlDeviceGetFieldValues(handle, [nv.NVML_FI_DEV_MEMORY_TEMP])[0]
    assert field.nvmlReturn == nv.NVML_ERROR_NOT_SUPPORTED
    assert nv.nvmlDeviceGetMaxMigDeviceCount(handle) == 0
    fails(nv.NVML_ERROR_NOT_SUPPORTED, nv.nvmlDeviceGetMigMode, handle)


def test_consumer_boards_have_no_ecc_and_integrated_ones_no_memory_of_their_own(nvml):
    nvml(node("rtx4090"))
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    fails(nv.NVML_ERROR_NOT_SUPPORTED, nv.nvmlDeviceGetTotalEccErrors, handle, 1, 0)
    assert nv.nvmlDeviceGetFanSpeed(handle) >= 30
    nvml(node("gb10", "pci_domain = 15"))
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    fails(nv.NVML_ERROR_NOT_SUPPORTED, nv.nvmlDeviceGetMemoryInfo, handle)
    fails(nv.NVML_ERROR_NOT_SUPPORTED, nv.nvmlDeviceGetEnforcedPowerLimit, handle)
    assert nv.nvmlDeviceGetPciInfo(handle).busId.startswith("0000000F:")


def test_field_values_answer_one_by_one(nvml):
    nvml(node())
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    asked = [
        nv.NVML_FI_DEV_POWER_INSTANT,
        (nv.NVML_FI_DEV_POWER_INSTANT, 1),
        9999,
        nv.NVML_FI_DEV_MEMORY_TEMP,
        nv.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION,
        nv.NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT,
    ]
    power, module, unknown, memory, energy, shutdown = nv.nvmlDeviceGetFieldValues(handle, asked)
    assert (power.nvmlReturn, power.valueType) == (0, nv.NVML_VALUE_TYPE_UNSIGNED_INT)
    assert power.value.uiVal == nv.nvmlDeviceGetPowerUsage(handle)
    assert module.nvmlReturn == unknown.nvmlReturn == nv.NVML_ERROR_NOT_SUPPORTED
    assert memory.value.uiVal > nv.nvmlDeviceGetTemperature(handle, 0)
    assert energy.valueType == nv.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
    assert energy.value.ullVal == nv.nvmlDeviceGetTotalEnergyConsumption(handle)
    assert (shutdown.valueType, shutdown.value.siVal) == (nv.NVML_VALUE_TYPE_SIGNED_INT, -8)
    assert energy.timestamp > 0
    assert energy.latencyUsec > power.latencyUsec - 1000


def test_process_lists_want_room(nvml):
    nvml(node())
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    function = nv._nvmlGetFunctionPointer("nvmlDeviceGetComputeRunningProcesses_v3")
    count = ctypes.c_uint(1)
    array = (nv.c_nvmlProcessInfo_v2_t * 1)()
    assert function(handle, ctypes.byref(count), array) == nv.NVML_ERROR_INSUFFICIENT_SIZE
    assert count.value == 3
    assert array[0].pid == 0
    found = nv.nvmlDeviceGetComputeRunningProcesses(handle)
    assert sum(process.usedGpuMemory for process in found) == pytest.approx(
        nv.nvmlDeviceGetMemoryInfo(handle, nv.nvmlMemory_v2).used, abs=8
    )
    # Above the highest id that Linux gives out, so that no tool can find, or end, a real process.
    assert min(process.pid for process in found) > 4 * 1024 * 1024
    assert nv.nvmlDeviceGetComputeRunningProcesses(nv.nvmlDeviceGetHandleByIndex(1)) == []


def test_process_utilization_has_no_samples_on_an_idle_board(nvml, clock):
    nvml(node())
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    samples = nv.nvmlDeviceGetProcessUtilization(handle, 0)
    assert len(samples) == 3
    assert sum(sample.smUtil for sample in samples) == pytest.approx(
        nv.nvmlDeviceGetUtilizationRates(handle).gpu, abs=3
    )
    fails(nv.NVML_ERROR_NOT_FOUND, nv.nvmlDeviceGetProcessUtilization, nv.nvmlDeviceGetHandleByIndex(1), 0)
    fails(nv.NVML_ERROR_NOT_FOUND, nv.nvmlDeviceGetProcessUtilization, handle, samples[0].timeStamp)
    clock.now += 1
    assert nv.nvmlDeviceGetProcessUtilization(handle, samples[0].timeStamp)


def test_mig_devices_stand_under_their_board(nvml):
    nvml(node("h100", 'mig = ["3g.40gb", "1g.10gb"]\nmig_gpus = [1]').replace("gpus = 1\n", 'mig = "3g.40gb"\n'))
    board = nv.nvmlDeviceGetHandleByIndex(1)
    assert nv.nvmlDeviceGetMigMode(board) == [1, 1]
    assert nv.nvmlDeviceGetMaxMigDeviceCount(board) == 7
    fails(nv.NVML_ERROR_NOT_SUPPORTED, nv.nvmlDeviceGetUtilizationRates, board)
    fails(nv.NVML_ERROR_NOT_SUPPORTED, nv.nvmlDeviceGetRemappedRows, board)
    fails(nv.NVML_ERROR_NOT_FOUND, nv.nvmlDeviceGetMigDeviceHandleByIndex, board, 2)
    big, small = (nv.nvmlDeviceGetMigDeviceHandleByIndex(board, place) for place in (0, 1))
    assert nv.nvmlDeviceGetUUID(big).startswith("MIG-")
    assert (nv.nvmlDeviceGetGpuInstanceId(big), nv.nvmlDeviceGetGpuInstanceId(small)) == (1, 7)
    assert nv.nvmlDeviceGetAttributes(big).memorySizeMB == 40448
    assert nv.nvmlDeviceGetMemoryInfo(big).used > 0 == nv.nvmlDeviceGetMemoryInfo(small).used
    assert [one.gpuInstanceId for one in nv.nvmlDeviceGetComputeRunningProcesses(board)] == [1, 1, 1]
    parent = nv.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(big)
    assert nv.nvmlDeviceGetUUID(parent) == nv.nvmlDeviceGetUUID(board)
    fails(nv.NVML_ERROR_NOT_SUPPORTED, nv.nvmlDeviceGetPowerUsage, big)
    assert nv.nvmlDeviceGetUUID(nv.nvmlDeviceGetHandleByUUID(nv.nvmlDeviceGetUUID(big))) == nv.nvmlDeviceGetUUID(big)


def test_gpm_needs_two_samples_apart_and_a_board_that_has_it(nvml, clock):
    nvml(node())
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    assert nv.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice == 1
    first, second = nv.nvmlGpmSampleAlloc(), nv.nvmlGpmSampleAlloc()
    request = nv.c_nvmlGpmMetricsGet_t()
    request.version, request.numMetrics = nv.NVML_GPM_METRICS_GET_VERSION, 2
    request.sample1, request.sample2 = first, second
    request.metrics[0].metricId, request.metrics[1].metricId = nv.NVML_GPM_METRIC_SM_UTIL, 200
    nv.nvmlGpmSampleGet(handle, first)
    nv.nvmlGpmSampleGet(handle, second)
    fails(nv.NVML_ERROR_INVALID_ARGUMENT, nv.nvmlGpmMetricsGet, request)
    clock.now += 1
    nv.nvmlGpmSampleGet(handle, second)
    nv.nvmlGpmMetricsGet(request)
    assert 50 < request.metrics[0].value <= 100
    assert request.metrics[1].nvmlReturn == nv.NVML_ERROR_NOT_SUPPORTED
    nv.nvmlGpmSampleFree(first)
    fails(nv.NVML_ERROR_INVALID_ARGUMENT, nv.nvmlGpmSampleFree, first)
    nvml(node("a100-80"))
    assert nv.nvmlGpmQueryDeviceSupport(nv.nvmlDeviceGetHandleByIndex(0)).isSupportedDevice == 0


def test_pcie_throughput_takes_its_20_ms(nvml, clock):
    nvml(node())
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    assert nv.nvmlDeviceGetPcieThroughput(handle, nv.NVML_PCIE_UTIL_RX_BYTES) > 0
    assert clock.slept == [0.02]


def test_init_is_counted_and_nothing_works_without_it(nvml):
    nvml(node(), init=False)
    fails(nv.NVML_ERROR_UNINITIALIZED, nv.nvmlDeviceGetCount)
    nv.nvmlInit()
    nv.nvmlInit()
    nv.nvmlShutdown()
    assert nv.nvmlDeviceGetCount() == 2
    nv.nvmlShutdown()
    fails(nv.NVML_ERROR_UNINITIALIZED, nv.nvmlDeviceGetCount)
    fails(nv.NVML_ERROR_UNINITIALIZED, nv.nvmlShutdown)


def test_a_null_or_foreign_handle_is_an_invalid_argument(nvml):
    nvml(node())
    fails(nv.NVML_ERROR_INVALID_ARGUMENT, nv.nvmlDeviceGetName, nv.c_nvmlDevice_t())
    fails(nv.NVML_ERROR_INVALID_ARGUMENT, nv.nvmlDeviceGetHandleByIndex, 2)


def test_bus_ids_are_found_in_every_spelling(nvml):
    nvml(node())
    info = nv.nvmlDeviceGetPciInfo(nv.nvmlDeviceGetHandleByIndex(1))
    assert info.busId == "00000000:2C:00.0"
    assert info.busIdLegacy == "0000:2C:00.0"
    for spelling in ("00000000:2C:00.0", "0000:2c:00.0", "2c:00.0"):
        found = nv.nvmlDeviceGetHandleByPciBusId(spelling.encode())
        assert nv.nvmlDeviceGetIndex(found) == 1
    fails(nv.NVML_ERROR_NOT_FOUND, nv.nvmlDeviceGetHandleByPciBusId, b"0000:ff:00.0")
    fails(nv.NVML_ERROR_INVALID_ARGUMENT, nv.nvmlDeviceGetHandleByPciBusId, b"nowhere")


@pytest.mark.parametrize(
    ("model", "version"),
    [("v100", "2_0"), ("a100-80", "3_0"), ("h100", "4_0"), ("b200", "5_0")],
)
def test_nvlink_versions_are_numbers_of_nvml_s_enum(nvml, model, version):
    nvml(node(model))
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    wanted = getattr(nv, f"NVML_NVLINK_VERSION_{version}")
    assert nv.nvmlDeviceGetNvLinkVersion(handle, 0) == wanted
    (field,) = nv.nvmlDeviceGetFieldValues(handle, [(nv.NVML_FI_DEV_NVLINK_GET_VERSION, 0)])
    assert field.value.uiVal == wanted
