"""The process lists of `nvidia-smi -q`, put on the boards and MIG instances they belong to."""

from collections.abc import Iterator
from typing import Final

from msgspec import structs

from gputop.model.identity import instance_id
from gputop.model.process import GpuProcess
from gputop.model.reading import UNKNOWN, Absent, failed
from gputop.model.text import clean, is_whole
from gputop.sources.bundle.page import Unit
from gputop.sources.bundle.smi_tree import Section
from gputop.sources.bundle.smi_values import number, word

_CUT: Final = Absent(UNKNOWN, "cut", "the file ends within the process list")
_NOT_TOLD: Final = Absent(UNKNOWN, "not_in_file", "the file does not tell it")
_NO_NAME: Final = Absent(UNKNOWN, "no_name", "nvidia-smi could not tell the name")
_MEMORY: Final = number("MiB")
_KINDS: Final = {"C": "C", "G": "G", "C+G": "C+G", "G+C": "C+G", "M": "M", "M+C": "C+M", "C+M": "C+M"}


def _memory(text: str | None) -> float | Absent:
    value = _NOT_TOLD if text is None else _MEMORY("memory_used_mib", text)
    return value if not isinstance(value, str) else failed("not a number")


def _name(text: str) -> str | Absent:
    # A process may be called anything, so only a text that is nothing but a marker is one.
    plain = text.strip().strip("[]").casefold()
    if plain in {"", "n/a", "-", "not found", "insufficient permissions", "unknown error"}:
        return _NO_NAME
    return clean(text.strip())


def _child(section: Section, *names: str) -> str | None:
    return next((child.value for child in section.children if child.name in names), None)


def _process(pid: str, section: Section) -> GpuProcess | None:
    # Process lists scrambled by a change of NVML's structs show pids 0 and 4294967295 (nvitop#75).
    if not is_whole(pid) or not 0 < int(pid) < 0xFFFFFFFF:
        return None
    return GpuProcess(
        pid=int(pid),
        kinds=_KINDS.get((_child(section, "type") or "").strip().upper(), ""),
        memory_mib=_memory(_child(section, "usedmemory", "usedgpumemory")),
        sm_percent=_NOT_TOLD,
        encoder_percent=_NOT_TOLD,
        decoder_percent=_NOT_TOLD,
        user=_NOT_TOLD,
        command=_name(_child(section, "processname", "name") or ""),
        started_at=_NOT_TOLD,
    )


def _listed(processes: Section) -> Iterator[tuple[str, GpuProcess]]:
    """Yield each process with the instance it runs on, "" for the board."""
    gi = ci = ""
    for child in processes.children:
        if child.name == "processinfo":
            process = _process(_child(child, "pid") or "", child)
            gi, ci = _child(child, "gpuinstanceid") or "", _child(child, "computeinstanceid") or ""
        elif child.name == "processid":
            process = _process(child.value, child)
        else:
            # In text the instance ids stand before the process, on its level.
            gi = child.value if child.name == "gpuinstanceid" else gi
            ci = child.value if child.name == "computeinstanceid" else ci
            continue
        if process is not None:
            yield (instance_id(gi, ci) if is_whole(gi) and is_whole(ci) else ""), process
        gi = ci = ""


def _merged(processes: list[GpuProcess]) -> tuple[GpuProcess, ...]:
    """Join the lines of one process on the compute and the graphics list; its memory counts once."""
    by_pid: dict[int, GpuProcess] = {}
    for process in processes:
        known = by_pid.get(process.pid)
        if known is None:
            by_pid[process.pid] = process
            continue
        kinds = "+".join(sorted({*known.kinds.split("+"), *process.kinds.split("+")} - {""}))
        memory = process.memory_mib if isinstance(known.memory_mib, Absent) else known.memory_mib
        by_pid[process.pid] = structs.replace(known, kinds=kinds, memory_mib=memory)
    return tuple(by_pid.values())


def read_processes(gpu: Section, units: list[Unit], *, cut: bool) -> list[Unit]:
    """Return the units with the processes that the output lists on them.

    Args:
        gpu: The GPU's section.
        units: The board, then its MIG instances.
        cut: The file breaks within this GPU.
    """
    section = gpu.find("processes")
    if section is None:
        return units
    if cut and not section.closed and not (section.value and not section.children):
        return [structs.replace(units[0], processes=_CUT), *units[1:]]
    found = word(section.value) if section.value else None
    if found is not None and not section.children:
        return [structs.replace(units[0], processes=found.absent), *units[1:]]
    # An instance whose id is not told cannot be given its processes.
    named = [unit for unit in units if unit.instance or not unit.is_instance]
    lists: dict[str, list[GpuProcess]] = {unit.instance: [] for unit in named}
    for instance, process in _listed(section):
        # An instance that is not listed was made or destroyed meanwhile: the board holds it all the same.
        lists[instance if instance in lists else ""].append(process)
    return [structs.replace(unit, processes=_merged(lists[unit.instance])) if unit in named else unit for unit in units]
