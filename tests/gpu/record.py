"""What NVML answers on this machine, recorded as a fixture; run by `tests.gpu.check` in a process of its own.

After each GPU the file is written anew, so that a call that hangs costs what comes after it and no more.

    python -m tests.gpu.record --output FILE [--repeat N] [--marker-fd FD]
"""

import argparse
import ctypes
import json
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pynvml

from gputop.sources.nvml import errors, gpm, mig, nvlink
from gputop.sources.nvml.boards import open_board
from gputop.sources.nvml.device import Device, Outcome
from gputop.sources.nvml.fields import IDENTITY, READS
from gputop.sources.nvml.library import Bound, Library
from gputop.sources.nvml.marker import Marker
from gputop.sources.nvml.protocol import Plan
from gputop.sources.nvml.sweep import Place, Sweep
from gputop.sources.nvml.ways import Call, Field
from tests.gpu.timed import Timed

SCHEMA: Final = "gputop.nvml-fixture/1"
_GROUPS: Final = 4
_HANGS_S: Final = 5.0
_UUID: Final = re.compile(r"(?<=-)[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_SECRETS: Final = frozenset({"nvmlDeviceGetSerial"})

Fixture = dict[str, Any]


def calls() -> Iterator[Call]:
    """Give every function of the plan, those of identity first."""
    yield from IDENTITY.values()
    for read in READS:
        yield from (way for way in read.ways if isinstance(way, Call))


def fields(links: int) -> tuple[Field, ...]:
    """Return every field value of the plan, with those of so many links."""
    found = [way for read in READS for way in read.ways if isinstance(way, Field)]
    for ways in nvlink.COUNTERS.values():
        for way in ways:
            found += way.fields(links)
    return tuple(dict.fromkeys(Field(field.field, field.scope) for field in found))


def name_of(call: Call) -> str:
    """Return a call as it is written in C, without the handle and the out parameters."""
    arguments = ", ".join(str(value) for _, value in call.args)
    return f"{call.function}({arguments})"


def answer_of(code: int, bound: Bound) -> dict[str, Any]:
    """Return what a call gave: its out parameters as the library wrote them, or the name of the error."""
    if code != errors.SUCCESS:
        return {"error": error_name(code)}
    return {"value": [_plain(out) for out in bound.outs]}


def error_name(code: int) -> str:
    """Return the name of a return code without its prefix, or the number of one that is not known."""
    known = errors.RETURNS.get(code)
    return known.name if known else str(code)


def _plain(out: Any) -> Any:
    if isinstance(out, ctypes.Structure):
        return {name: _plain(getattr(out, name)) for name, *_ in out._fields_}
    if isinstance(out, ctypes.Array):
        raw = getattr(out, "value", None)
        return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else [_plain(one) for one in out]
    if isinstance(out, bytes):
        return out.decode("utf-8", "replace")
    return getattr(out, "value", out)


def made_up(text: str, number: int) -> str:
    """Return a text with every UUID in it replaced by one that only tells the number of its device."""
    return _UUID.sub(f"00000000-0000-4000-8000-{number:012d}", text)


def record(library: Library, device: Device) -> dict[str, Any]:
    """Return everything one open board answers."""
    answers: dict[str, Any] = {}
    for call in calls():
        bound = library.bind(call)
        answer = answer_of(library.run(bound, device.index, device.handle), bound)
        if call.function in _SECRETS and "value" in answer:
            answer["value"] = [f"{device.index:013d}"]
        answers[name_of(call)] = answer
    readings = _readings(nvlink.Links(library), device)
    links = int(float(readings.get("nvlink_links", "1"))) if readings.get("nvlink_links", "1").isdigit() else 1
    batch = library.batch(fields(max(1, links)))
    whole = library.read_fields(batch, device.index, device.handle)
    values: dict[str, Any] = {}
    for position, field in enumerate(batch.fields):
        code = whole or batch.code(position)
        key = f"{field.field}/{field.scope}" if field.scope else str(field.field)
        entry = batch.array[position]
        values[key] = (
            {"error": error_name(code)}
            if code
            else {"value": batch.raw(position), "type": entry.valueType, "latency_us": entry.latencyUsec}
        )
    found = {
        "index": device.index,
        "uuid": device.uuid,
        "bus_id": device.bus_id,
        "calls": answers,
        "fields": values,
        "nvlink": readings,
        "gpm": _gpm(library, device),
        "mig": [
            {"instance": one.instance, "profile": one.profile, "uuid": f"MIG-instance-{one.instance}"}
            for one in mig.instances(library, device, None)[0]
        ],
    }
    return json.loads(made_up(json.dumps(found), device.index))


def _readings(links: nvlink.Links, device: Device) -> dict[str, str]:
    outcome = Outcome()
    links.read(device, outcome, None)
    return {quantity: _word(value) for quantity, value in sorted(outcome.values.items())}


def _gpm(library: Library, device: Device) -> dict[str, str]:
    sampler = gpm.Gpm(library)
    outcome = Outcome()
    for _ in range(2):
        sampler.read(device, outcome, time.monotonic())
        time.sleep(0.2)
    sampler.read(device, outcome, time.monotonic())
    sampler.forget(device.slot)
    return {quantity: _word(value) for quantity, value in sorted(outcome.values.items())}


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(getattr(value, "code", value))


def take(timed: Timed, repeat: int, write: Callable[[Fixture], None]) -> tuple[Fixture, list[str]]:
    """Record this machine; return the fixture and lines for people.

    Args:
        timed: Installed, so that it sees every call.
        repeat: How many rounds gputop's own reader makes, for the times.
        write: Takes the fixture after each part.

    Raises:
        pynvml.NVMLError: NVML cannot be used here.
    """
    fixture: Fixture = {"schema": SCHEMA, "gpus": [], "timings_us": {}, "refused": {}}
    pynvml.nvmlInitWithFlags(0)
    library = Library(Marker(None))
    count = ctypes.c_uint(0)
    library.system("nvmlDeviceGetCount_v2", ctypes.byref(count))
    cuda = ctypes.c_int(0)
    library.system("nvmlSystemGetCudaDriverVersion_v2", ctypes.byref(cuda))
    fixture |= {
        "driver": str(library.system_text("nvmlSystemGetDriverVersion")),
        "nvml": str(library.system_text("nvmlSystemGetNVMLVersion")),
        "cuda": cuda.value,
        "binding": _binding_version(),
    }
    lines = [f"driver {fixture['driver']}, NVML {fixture['nvml']}, {count.value} GPUs"]
    for index in range(count.value):
        device = Device(index, index)
        code = open_board(library, device)
        if code != errors.SUCCESS:
            fixture["gpus"].append({"index": index, "error": error_name(code)})
            lines.append(f"GPU {index}: {errors.describe(code)}")
        else:
            found = record(library, device)
            fixture["gpus"].append(found)
            answered = sum("value" in answer for answer in found["calls"].values())
            told = sum("value" in answer for answer in found["fields"].values())
            lines.append(
                f"GPU {index}: {answered} of {len(found['calls'])} calls, {told} of {len(found['fields'])} fields"
            )
        write(_with_times(fixture, timed))
    pynvml.nvmlShutdown()
    read_as_gputop_does(repeat, lambda: write(_with_times(fixture, timed)))
    return _with_times(fixture, timed), lines


def read_as_gputop_does(repeat: int, after_each: Callable[[], None]) -> None:
    """Open NVML and read all there is as the child does: lists of processes, GPM, MIG, links and events, too."""
    sweep = Sweep(Place("", Path("/proc"), Path("/sys")), Marker(None), lambda _: None, lambda: None)
    sweep.look_at_bus()
    if sweep.open(Plan(None, processes=True, profiling=True, interval_s=1.0)) is not None:
        return
    for _ in range(repeat):
        for group in range(_GROUPS):
            sweep.read(group)
        sweep.read_processes()
        # Says what the user may see, for which it waits until the events are subscribed.
        sweep.tell_costs()
        after_each()
    sweep.close()


def _with_times(fixture: Fixture, timed: Timed) -> Fixture:
    """Return the fixture with the time of every call so far, and with those that were refused."""
    times = {
        name: {
            "calls": len(seconds),
            "median": round(statistics.median(seconds) * 1e6, 1),
            "max": round(max(seconds) * 1e6, 1),
        }
        for name, seconds in sorted(timed.seconds.copy().items())
    }
    refused = {
        name: {error_name(code): times for code, times in sorted(codes.items()) if code != errors.SUCCESS}
        for name, codes in sorted(timed.codes.copy().items())
        if any(code not in (errors.SUCCESS, errors.TIMEOUT) for code in codes)
    }
    return fixture | {"gpus": [*fixture["gpus"]], "timings_us": times, "refused": refused}


def lines_of(fixture: Fixture) -> list[str]:
    """Return the times, the slowest first, and what was refused, for people."""
    times = sorted(fixture["timings_us"].items(), key=lambda item: -item[1]["median"])
    lines = [
        f"  {t['median']:9.1f} us median {t['max']:9.1f} us max {t['calls']:5d} calls  {name}" for name, t in times
    ]
    for name, codes in fixture["refused"].items():
        lines.append(f"  refused: {name}: " + ", ".join(f"{code} {times} times" for code, times in codes.items()))
    return lines


def _binding_version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  (only here, and slow)

    try:
        return version("nvidia-ml-py")
    except PackageNotFoundError:
        return ""


def _write(output: Path, fixture: Fixture) -> None:
    # In one step: the reader may come at any moment.
    part = output.with_suffix(".part")
    part.write_text(json.dumps(fixture, indent=1) + "\n", encoding="utf-8")
    part.replace(output)


def main() -> int:
    """Record and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--marker-fd", type=int)
    options = parser.parse_args()
    from gputop.demo.nvml import install_from_env  # noqa: PLC0415  (only where a demo stands in for the library)

    install_from_env()
    with Timed(Marker(options.marker_fd)) as timed:
        try:
            fixture, lines = take(timed, options.repeat, lambda made: _write(options.output, made))
        except pynvml.NVMLError as error:
            print(f"NVML cannot be used: {error}", file=sys.stderr)
            return 1
        _write(options.output, fixture)
        hanging = timed.unanswered(_HANGS_S)
    print("\n".join([*lines, *lines_of(fixture)]), flush=True)
    for label in hanging:
        print(f"{label} has not returned", file=sys.stderr, flush=True)
    return 1 if hanging else 0


if __name__ == "__main__":
    STATUS = main()
    # No teardown: a thread may still be inside NVML.
    os._exit(STATUS)
