"""``make gpu-check``: what gputop needs of NVML, tried on the real GPUs of this machine, within 5 minutes.

It runs ``pytest -m gpu``, times every NVML call of the plan of reads, and writes what each device answers
as a fixture: one answer, or the name of the error, for each function and field. UUIDs and serial numbers
in it are made up; nothing of the machine's users is in it.

    python -m tests.gpu.check [--output FILE] [--skip-tests] [--repeat N]
"""

import argparse
import ctypes
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pynvml

from gputop.sources.nvml import errors, gpm, mig, nvlink
from gputop.sources.nvml.boards import open_board
from gputop.sources.nvml.device import Device, Outcome
from gputop.sources.nvml.fields import IDENTITY, READS
from gputop.sources.nvml.library import Bound, Library
from gputop.sources.nvml.marker import Marker
from gputop.sources.nvml.ways import Call, Field

REPO: Final = Path(__file__).resolve().parents[2]
SCHEMA: Final = "gputop.nvml-fixture/1"
_TESTS_S: Final = 150
_TIMING_S: Final = 60.0
_UUID: Final = re.compile(r"(?<=-)[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_SECRETS: Final = frozenset({"nvmlDeviceGetSerial"})


def calls() -> Iterator[Call]:
    """Give every function of the plan, those of identity first."""
    yield from IDENTITY.values()
    for read in READS:
        yield from (way for way in read.ways if isinstance(way, Call))


def fields() -> tuple[Field, ...]:
    """Return every field value of the plan, with the links' own for one link."""
    found = [way for read in READS for way in read.ways if isinstance(way, Field)]
    for ways in nvlink.COUNTERS.values():
        for way in ways:
            found += way.fields(1)
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
    batch = library.batch(fields())
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
        "nvlink": _readings(nvlink.Links(library), device),
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


def time_calls(library: Library, device: Device, repeat: int, until: float) -> dict[str, tuple[float, float]]:
    """Return median and longest time in seconds of each call that a device answers."""
    took: dict[str, tuple[float, float]] = {}
    for call in calls():
        bound = library.bind(call)
        times = _times(lambda bound=bound: library.run(bound, device.index, device.handle), repeat, until)
        if times:
            took[name_of(call)] = (statistics.median(times), max(times))
    batch = library.batch(fields())
    times = _times(lambda: library.read_fields(batch, device.index, device.handle), repeat, until)
    if times:
        took[f"nvmlDeviceGetFieldValues({batch.count} fields)"] = (statistics.median(times), max(times))
    return took


def _times(call: Any, repeat: int, until: float) -> list[float]:
    times: list[float] = []
    for _ in range(repeat):
        if time.monotonic() > until:
            break
        began = time.perf_counter()
        code = call()
        if errors.permanent(code) is not None:
            return []
        times.append(time.perf_counter() - began)
    return times


def default_output(model: str, driver: str) -> Path:
    """Return where a fixture belongs."""
    stem = re.sub(r"[^a-z0-9.]+", "-", f"{model}-{driver}".lower()).strip("-")
    return REPO / "tests" / "fixtures" / "nvml" / f"{stem}.json"


def check_nvml(repeat: int) -> tuple[dict[str, Any], list[str]]:
    """Return the fixture of this machine and lines for people.

    Raises:
        pynvml.NVMLError: NVML cannot be used here.
    """
    pynvml.nvmlInitWithFlags(0)
    library = Library(Marker(None))
    count = ctypes.c_uint(0)
    library.system("nvmlDeviceGetCount_v2", ctypes.byref(count))
    cuda = ctypes.c_int(0)
    library.system("nvmlSystemGetCudaDriverVersion_v2", ctypes.byref(cuda))
    fixture: dict[str, Any] = {
        "schema": SCHEMA,
        "driver": str(library.system_text("nvmlSystemGetDriverVersion")),
        "nvml": str(library.system_text("nvmlSystemGetNVMLVersion")),
        "cuda": cuda.value,
        "binding": _binding_version(),
        "gpus": [],
        "timings_us": {},
    }
    lines = [f"driver {fixture['driver']}, NVML {fixture['nvml']}, {count.value} GPUs"]
    until = time.monotonic() + _TIMING_S
    for index in range(count.value):
        device = Device(index, index)
        code = open_board(library, device)
        if code != errors.SUCCESS:
            fixture["gpus"].append({"index": index, "error": error_name(code)})
            lines.append(f"GPU {index}: {errors.describe(code)}")
            continue
        found = record(library, device)
        fixture["gpus"].append(found)
        answered = sum("value" in answer for answer in found["calls"].values())
        told = sum("value" in answer for answer in found["fields"].values())
        lines.append(f"GPU {index}: {answered} of {len(found['calls'])} calls, {told} of {len(found['fields'])} fields")
        if not fixture["timings_us"]:
            took = time_calls(library, device, repeat, until)
            fixture["timings_us"] = {
                name: {"median": round(middle * 1e6, 1), "max": round(longest * 1e6, 1)}
                for name, (middle, longest) in took.items()
            }
            lines += [
                f"  {middle * 1e6:9.1f} us median {longest * 1e6:9.1f} us max  {name}"
                for name, (middle, longest) in sorted(took.items(), key=lambda item: -item[1][0])
            ]
    pynvml.nvmlShutdown()
    return fixture, lines


def _binding_version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  (only here, and slow)

    try:
        return version("nvidia-ml-py")
    except PackageNotFoundError:
        return ""


def _model_of(fixture: dict[str, Any]) -> str:
    for gpu in fixture["gpus"]:
        answer = gpu.get("calls", {}).get("nvmlDeviceGetName()", {})
        if "value" in answer:
            return str(answer["value"][0])
    return "unknown"


def main() -> int:
    """Run the check and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, help="where the fixture goes (tests/fixtures/nvml/MODEL-DRIVER.json)")
    parser.add_argument("--skip-tests", action="store_true", help="do not run pytest -m gpu")
    parser.add_argument("--repeat", type=int, default=20, help="how often each call is timed (20)")
    options = parser.parse_args()
    status = 0
    if not options.skip_tests:
        command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", str(REPO / "tests" / "gpu")]
        try:
            status = subprocess.run(command, cwd=REPO, timeout=_TESTS_S, check=False).returncode
        except subprocess.TimeoutExpired:
            print(f"the tests were stopped after {_TESTS_S} s", file=sys.stderr)
            status = 1
    try:
        fixture, lines = check_nvml(options.repeat)
    except pynvml.NVMLError as error:
        print(f"NVML cannot be used: {error}", file=sys.stderr)
        return 1
    print("\n".join(lines))
    output = options.output or default_output(_model_of(fixture), fixture["driver"])
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(fixture, indent=1) + "\n", encoding="utf-8")
    print(f"written: {output}")
    return status


if __name__ == "__main__":
    sys.exit(main())
