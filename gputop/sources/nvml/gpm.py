"""GPM: how busy the SMs and the tensor cores of Hopper and newer really are.

Utilisation says that some kernel ran; GPM says how much of the GPU it used. It works by the difference of
two samples more than 100 ms apart (nvml.h), and is off until asked for: whether it disturbs profilers is
disputed. Calls are never made in parallel, which crashed in leptonai/gpud.
"""

import ctypes
from collections.abc import Mapping
from typing import Final

import pynvml
from msgspec import Struct

from gputop.model.reading import NA, NOT_SUPPORTED, UNKNOWN, Absent, Value
from gputop.model.sanity import judge, judge_raw
from gputop.sources.nvml import errors
from gputop.sources.nvml.device import Device, Outcome
from gputop.sources.nvml.library import Library, symbol
from gputop.sources.nvml.marker import NO_DEVICE
from gputop.sources.nvml.ways import CObject

METRICS: Final = {
    1: "graphics_activity",
    2: "sm_activity",
    3: "sm_occupancy",
    5: "tensor_activity",
    10: "dram_activity",
}
"""nvmlGpmMetricId_t to quantity."""

QUANTITIES: Final = frozenset(METRICS.values())
OPT_IN: Final = Absent(UNKNOWN, "opt_in", "GPM sampling is off: it is done only when asked for")
_FIRST: Final = Absent(UNKNOWN, "first_sample", "GPM needs two samples")
_TOO_OLD: Final = Absent(NA, "not_supported", "GPM needs Hopper or newer")
_INSTANCES_ONLY: Final = Absent(NA, "not_supported", "with MIG on, GPM tells of instances only")
_APART_S: Final = 0.11
_VERSION: Final = 1


class _Pair(Struct):
    """The two samples of a device, used in turn; `last` is the one taken last."""

    samples: list[CObject]
    last: int
    taken_at: float
    values: dict[str, Value]


class Gpm:
    """Samples devices."""

    quantities = QUANTITIES

    def __init__(self, library: Library) -> None:
        self._library = library
        self._pairs: dict[int, _Pair] = {}
        self._unsupported: dict[int, Absent] = {}
        self._request = pynvml.c_nvmlGpmMetricsGet_t()

    @property
    def unsupported(self) -> Mapping[int, Absent]:
        """Why devices give no sample, by slot."""
        refused = {
            slot: value
            for slot, pair in self._pairs.items()
            for value in pair.values.values()
            if isinstance(value, Absent) and value.code == errors.DENIED
        }
        return refused | self._unsupported

    def forget(self, slot: int) -> None:
        """Let go of a device's samples."""
        self._unsupported.pop(slot, None)
        pair = self._pairs.pop(slot, None)
        if pair is not None:
            for sample in pair.samples:
                self._library.system("nvmlGpmSampleFree", sample)

    def read(self, device: Device, outcome: Outcome, now: float) -> None:
        """Take a sample of a device and put what it gives into `outcome`."""
        absent = self._unsupported.get(device.slot) or self._support(device, outcome)
        if outcome.fatal:
            return
        if absent is not None:
            self._unsupported[device.slot] = absent
            outcome.values.update(dict.fromkeys(QUANTITIES, absent))
            return
        pair = self._pairs.get(device.slot)
        if pair is None:
            samples = [self._allocate(), self._allocate()]
            if None in samples:
                outcome.values.update(dict.fromkeys(QUANTITIES, NOT_SUPPORTED))
                return
            pair = self._pairs[device.slot] = _Pair(samples, 1, 0.0, dict.fromkeys(QUANTITIES, _FIRST))
        if now - pair.taken_at >= _APART_S:
            self._sample(device, pair, outcome, now)
        if not outcome.fatal:
            outcome.values.update(pair.values)

    def _support(self, device: Device, outcome: Outcome) -> Absent | None:
        if device.slot in self._pairs:
            return None
        if device.mig_on and device.board is None:
            return _INSTANCES_ONLY
        board = device.board or device
        answer = pynvml.c_nvmlGpmSupport_t()
        answer.version = _VERSION
        code = self._call("nvmlGpmQueryDeviceSupport", board, board.handle, ctypes.byref(answer))
        outcome.note(code)
        if code != errors.SUCCESS:
            return errors.permanent(code) or errors.passing(code)
        return None if answer.isSupportedDevice else _TOO_OLD

    def _allocate(self) -> CObject:
        sample = pynvml.c_nvmlGpmSample_t()
        code = self._library.system("nvmlGpmSampleAlloc", ctypes.byref(sample))
        return sample if code == errors.SUCCESS else None

    def _call(self, name: str, device: Device, *arguments: CObject) -> int:
        function = symbol(name)
        if function is None:
            return errors.FUNCTION_NOT_FOUND
        return self._library.raw(function, name.encode(), device.index, *arguments)

    def _sample(self, device: Device, pair: _Pair, outcome: Outcome, now: float) -> None:
        fresh = 1 - pair.last
        if device.board is not None:
            code = self._call(
                "nvmlGpmMigSampleGet",
                device,
                device.board.handle,
                ctypes.c_uint(device.gpu_instance),
                pair.samples[fresh],
            )
        else:
            code = self._call("nvmlGpmSampleGet", device, device.handle, pair.samples[fresh])
        outcome.note(code)
        if code != errors.SUCCESS:
            absent = errors.permanent(code)
            if absent is not None:
                self._unsupported[device.slot] = absent
            pair.values = dict.fromkeys(QUANTITIES, absent or errors.passing(code))
            pair.taken_at = 0.0
            return
        first_ever = pair.taken_at == 0.0
        previous, pair.last, pair.taken_at = pair.samples[pair.last], fresh, now
        if not first_ever:
            pair.values = self._metrics(previous, pair.samples[fresh])

    def _metrics(self, first: CObject, second: CObject) -> dict[str, Value]:
        request: CObject = self._request
        request.version = _VERSION
        request.numMetrics = len(METRICS)
        request.sample1, request.sample2 = first, second
        for position, metric in enumerate(METRICS):
            request.metrics[position].metricId = metric
            request.metrics[position].nvmlReturn = 999
        function = symbol("nvmlGpmMetricsGet")
        if function is None:
            return dict.fromkeys(QUANTITIES, NOT_SUPPORTED)
        code = self._library.raw(function, b"nvmlGpmMetricsGet", NO_DEVICE, ctypes.byref(request))
        values: dict[str, Value] = {}
        for position, quantity in enumerate(METRICS.values()):
            entry = request.metrics[position]
            own = code or int(entry.nvmlReturn)
            if own != errors.SUCCESS:
                values[quantity] = errors.permanent(own) or errors.passing(own)
            else:
                raw = float(entry.value)
                values[quantity] = judge_raw(raw) or judge(quantity, raw)
        return values
