"""The NVML source on the real GPUs of this machine (``make gpu-check``)."""

import asyncio
import shutil
import subprocess
import time

import pynvml
import pytest

from gputop.model.facts import GpuFact, ProcessesFact, Roster
from gputop.model.identity import GpuRef, normal_uuid
from gputop.model.reading import Absent, Value
from gputop.sources.base import Demand, DemandBoard
from gputop.sources.nvml.source import NvmlSource

pytestmark = pytest.mark.gpu

_DEADLINE_S = 40.0


class Seen:
    """What a source said until its first whole round, or for some seconds."""

    def __init__(self) -> None:
        self.refs: tuple[GpuRef, ...] = ()
        self.values: dict[str, dict[str, Value]] = {}
        self.tables: dict[str, ProcessesFact] = {}
        self.cost = 0.0


async def read(demand: Demand, seconds: float = 0.0) -> Seen:
    source = NvmlSource()
    seen = Seen()
    end: float | None = None
    async with asyncio.timeout(_DEADLINE_S):
        async for batch in source.batches(DemandBoard(demand)):
            for fact in batch.facts:
                if isinstance(fact, Roster):
                    seen.refs = fact.gpus
                elif isinstance(fact, GpuFact) and not fact.ref.is_instance:
                    seen.values.setdefault(fact.ref.uuid, {}).update(fact.readings)
                elif isinstance(fact, ProcessesFact):
                    seen.tables[fact.ref.uuid] = fact
            if batch.round_done:
                end = end or time.monotonic() + seconds
                if time.monotonic() >= end:
                    break
    seen.cost = source.cost().cpu_s
    await source.aclose()
    return seen


def smi(query: str) -> list[list[str]]:
    """Return a query of nvidia-smi, a list for each GPU."""
    program = shutil.which("nvidia-smi")
    if program is None:
        pytest.skip("nvidia-smi is not installed: nothing to compare with")
    done = subprocess.run(
        [program, f"--query-gpu={query}", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines() if line.strip()]


async def test_every_gpu_of_nvidia_smi_is_listed_by_its_uuid() -> None:
    seen = await read(Demand())
    expected = {normal_uuid(row[0]) for row in smi("uuid")}
    assert {ref.uuid for ref in seen.refs if not ref.is_instance} == expected
    assert all(ref.bus_id for ref in seen.refs)


async def test_readings_agree_with_nvidia_smi() -> None:
    seen = await read(Demand())
    for uuid, name, total, driver in smi("uuid,name,memory.total,driver_version"):
        values = seen.values[normal_uuid(uuid)]
        assert values["model"] == name
        assert driver
        if total.isdigit() and isinstance(values["memory_total_mib"], float):
            assert values["memory_total_mib"] == pytest.approx(float(total), abs=2.0)


async def test_what_is_told_is_plausible() -> None:
    seen = await read(Demand())
    for values in seen.values.values():
        for quantity in ("utilization", "temperature_c", "power_w", "memory_used_mib"):
            value = values[quantity]
            # Absent is an answer, too, but it must say why.
            assert isinstance(value, float) or (isinstance(value, Absent) and value.reason)
        power, limit = values["power_w"], values["power_limit_w"]
        if isinstance(power, float) and isinstance(limit, float) and limit:
            assert power < 2.0 * limit


async def test_process_lists_answer() -> None:
    seen = await read(Demand())
    assert set(seen.tables) >= set(seen.values)
    for fact in seen.tables.values():
        if not isinstance(fact.processes, Absent):
            assert all(process.pid > 0 for process in fact.processes)


async def test_gpm_answers_where_the_chip_has_it() -> None:
    seen = await read(Demand(profiling=True, interval_s=0.5), seconds=3.0)
    for values in seen.values.values():
        value = values["sm_activity"]
        assert isinstance(value, float) or (isinstance(value, Absent) and value.code != "first_sample")


async def test_the_child_lets_go_of_the_devices() -> None:
    source = NvmlSource()
    async with asyncio.timeout(_DEADLINE_S):
        async for batch in source.batches(DemandBoard(Demand())):
            if batch.round_done:
                break
    assert source._current is not None
    process = source._current.process
    await source.aclose()
    end = time.monotonic() + 10.0
    while process.status() is None:
        assert time.monotonic() < end, "the child has not ended"
        await asyncio.sleep(0.05)


async def test_uuids_are_those_of_the_library() -> None:
    pynvml.nvmlInit()
    try:
        direct = {
            normal_uuid(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(index)))
            for index in range(pynvml.nvmlDeviceGetCount())
        }
    finally:
        pynvml.nvmlShutdown()
    seen = await read(Demand(frozenset({"power_w"}), processes=False))
    assert {ref.uuid for ref in seen.refs if not ref.is_instance} == direct
