"""A scripted library that answers as a machine did when it was recorded (`gputop.nvml-fixture/1`)."""

import re
from typing import Any

from gputop.sources.nvml.errors import RETURNS
from tests.unit.nvml.fake import Code, FakeLibrary, Gpu

SCHEMA = "gputop.nvml-fixture/1"

_CODES = {known.name: code for code, known in RETURNS.items()}
_CALL = re.compile(r"(\w+)\(([-\d, ]*)\)")


def replay(fixture: dict[str, Any]) -> FakeLibrary:
    """Return the library of a recorded machine.

    Raises:
        ValueError: It is no fixture of this schema, or a name in it is not known.
    """
    if fixture.get("schema") != SCHEMA:
        raise ValueError(f"schema is {fixture.get('schema')}, not {SCHEMA}")
    library = FakeLibrary([_gpu(recorded) for recorded in fixture["gpus"]])
    library.system = {
        "nvmlSystemGetDriverVersion": fixture["driver"].encode(),
        "nvmlSystemGetNVMLVersion": fixture["nvml"].encode(),
        "nvmlSystemGetCudaDriverVersion_v2": fixture["cuda"],
    }
    return library


def code_of(error: str) -> Code:
    """Return the code of an error by its name or number.

    Raises:
        ValueError: It is neither.
    """
    return Code(_CODES[error] if error in _CODES else int(error))


def _gpu(recorded: dict[str, Any]) -> Gpu:
    if "error" in recorded:
        return Gpu(open_code=code_of(recorded["error"]))
    gpu = Gpu(uuid=recorded["uuid"], bus_id=recorded["bus_id"])
    for name, answer in recorded["calls"].items():
        match = _CALL.fullmatch(name)
        if match is None:
            raise ValueError(f"{name} is no call")
        function, words = match.groups()
        arguments = tuple(int(word) for word in words.split(",") if word.strip())
        gpu.answers[(function, *arguments) if arguments else function] = _answer(answer)
    for key, answer in recorded["fields"].items():
        number, _, scope = key.partition("/")
        place = int(number), int(scope or 0)
        if "error" in answer:
            gpu.fields[place] = code_of(answer["error"])
            continue
        gpu.field_types[place] = answer["type"]
        # Type 0 is a double; all others are whole numbers.
        gpu.fields[place] = answer["value"] if answer["type"] == 0 else int(answer["value"])
        gpu.latency_us[place[0]] = answer["latency_us"]
    return gpu


def _answer(answer: dict[str, Any]) -> Any:
    if "error" in answer:
        return code_of(answer["error"])
    values = answer["value"]
    if len(values) == 1:
        return values[0].encode() if isinstance(values[0], str) else values[0]
    return tuple(values)
