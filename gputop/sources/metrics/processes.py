"""Processes as exporters tell them: one series for each process and number.

nvidia_gpu_exporter (`--collect.compute-apps`) tells compute processes with their name and memory and how many
there are; nvitop-exporter tells processes with user, command, memory and how busy they keep the GPU, but not
that there are none.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from gputop.model.facts import Fact, ProcessesFact
from gputop.model.identity import GpuRef
from gputop.model.process import GpuProcess
from gputop.model.reading import UNKNOWN, Absent, implausible
from gputop.model.sanity import judge_raw
from gputop.model.text import is_whole
from gputop.sources.metrics.labels import first
from gputop.sources.metrics.rows import SAME_SCRAPE_S, Row, RowKey
from gputop.sources.metrics.sample import Sample

_NOT_TOLD: Final = Absent(UNKNOWN, "not_exported", "the exporter does not tell it")
_COUNT: Final = "count"
_INFO: Final = "info"
_RUNNING: Final = "running_s"
_MOST_PERCENT: Final = 100.0

PARTS: Final = (
    # Metric, exporter, what it tells of a process, factor.
    ("nvidia_smi_compute_apps", "nvidia_gpu_exporter", _COUNT, 1.0),
    ("nvidia_smi_compute_app_info", "nvidia_gpu_exporter", _INFO, 1.0),
    ("nvidia_smi_compute_app_used_memory_bytes", "nvidia_gpu_exporter", "memory_mib", 1.0 / (1024.0 * 1024.0)),
    ("process_info_info", "nvitop", _INFO, 1.0),
    ("process_gpu_memory_MiB", "nvitop", "memory_mib", 1.0),
    ("process_gpu_sm_utilization_Percentage", "nvitop", "sm_percent", 1.0),
    ("process_gpu_encoder_utilization_Percentage", "nvitop", "encoder_percent", 1.0),
    ("process_gpu_decoder_utilization_Percentage", "nvitop", "decoder_percent", 1.0),
    ("process_running_time_Second", "nvitop", _RUNNING, 1.0),
)
"""The series that make up process lists."""
_PART_OF: Final = {name: (part, scale) for name, _, part, scale in PARTS}
# nvidia_gpu_exporter lists compute contexts only; nvitop lists all and does not say which are which.
_KINDS: Final = {name: "C" if exporter == "nvidia_gpu_exporter" else "" for name, exporter, _, _ in PARTS}


class _Seen(Struct):
    """What the series of one process say."""

    at: float
    kinds: str
    user: str = ""
    command: str = ""
    numbers: dict[str, float | Absent] = {}


class ProcessTable(Struct):
    """The processes of one GPU in one answer."""

    at: float
    count: float | None = None
    processes: dict[int, _Seen] = {}


class ProcessTables:
    """Collects series, and remembers which GPUs had processes.

    A large fleet is asked metric by metric, so what one answer tells is put to what another told of the same
    scrape.
    """

    def __init__(self) -> None:
        self._tables: dict[RowKey, ProcessTable] = {}
        self._had: dict[RowKey, GpuRef] = {}

    def take(self, tables: dict[RowKey, ProcessTable], row: Row, sample: Sample, at: float) -> None:
        """Take one series into account, and put the table it belongs to into `tables`."""
        part, scale = _PART_OF[sample.name]
        table = self._tables.get(row.key)
        if table is None or at - table.at > SAME_SCRAPE_S:
            # What an older scrape listed has ended.
            table = self._tables[row.key] = ProcessTable(at)
        elif table.at - at > SAME_SCRAPE_S:
            return
        tables[row.key] = table
        if part == _COUNT:
            if judge_raw(sample.value) is None and sample.value >= 0:
                table.count = max(sample.value, table.count or 0.0)
            return
        pid = first(sample.labels, ("pid",))
        if not is_whole(pid) or not 0 < int(pid) < 0xFFFFFFFF:
            return
        seen = table.processes.setdefault(int(pid), _Seen(at, _KINDS[sample.name]))
        _name(seen, sample.labels)
        if part != _INFO:
            seen.numbers[part] = _number(part, sample.value, scale)

    def facts(self, tables: Mapping[RowKey, ProcessTable], rows: Mapping[RowKey, Row], *, complete: bool) -> list[Fact]:
        """Return the process lists that the answer tells.

        Args:
            tables: What `take` has collected.
            rows: All rows of the answer.
            complete: Everything the source tells of the GPUs is in it, so that a list that is not there any
                more is empty.
        """
        facts: list[Fact] = []
        for key, table in tables.items():
            row = rows[key]
            if table.processes or table.count == 0.0:
                self._had[key] = row.ref
                processes = tuple(_process(pid, table.processes[pid]) for pid in sorted(table.processes))
                facts.append(ProcessesFact(row.ref, processes, table.at))
        if complete:
            gone = [key for key in self._had if key not in tables and key in rows and rows[key].cells]
            facts += [ProcessesFact(self._had.pop(key), (), rows[key].newest) for key in gone]
            for key in gone:
                self._tables.pop(key, None)
        return facts


def _name(seen: _Seen, labels: Mapping[str, str]) -> None:
    seen.user = seen.user or first(labels, ("username",))
    seen.command = seen.command or first(labels, ("command", "process_name"))


def _number(part: str, value: float, scale: float) -> float | Absent:
    blank = judge_raw(value)
    if blank is not None:
        return blank
    number = value * scale
    if number < 0.0 or (part.endswith("_percent") and number > _MOST_PERCENT):
        return implausible(number, 0.0, _MOST_PERCENT, "%" if part.endswith("_percent") else "")
    return number


def _process(pid: int, seen: _Seen) -> GpuProcess:
    running = seen.numbers.get(_RUNNING)
    return GpuProcess(
        pid=pid,
        kinds=seen.kinds,
        memory_mib=seen.numbers.get("memory_mib", _NOT_TOLD),
        sm_percent=seen.numbers.get("sm_percent", _NOT_TOLD),
        encoder_percent=seen.numbers.get("encoder_percent", _NOT_TOLD),
        decoder_percent=seen.numbers.get("decoder_percent", _NOT_TOLD),
        user=seen.user or _NOT_TOLD,
        command=seen.command or _NOT_TOLD,
        started_at=seen.at - running if isinstance(running, float) else _NOT_TOLD,
        holder_reason="the exporter names no workload of a process",
    )
