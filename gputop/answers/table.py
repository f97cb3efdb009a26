"""The snapshot as a table for people: plain text, one line a GPU, states in words."""

from collections.abc import Sequence
from typing import Any, Final

from gputop.answers.quantity import Quantity
from gputop.answers.snapshot import HolderAnswer, Snapshot
from gputop.model.reading import STALE

_HEADINGS: Final = ("NODE", "GPU", "STATE", "UTIL", "VRAM MiB", "POWER W", "TEMP C", "HOLDER", "MODEL")
_RIGHT: Final = frozenset({"UTIL", "VRAM MiB", "POWER W", "TEMP C"})


def table_lines(answer: Snapshot) -> list[str]:
    """Return the lines of the table, sources with a trouble first."""
    lines = [f"*** {answer.mark}: these are not this machine's own readings ***"] if answer.mark else []
    lines += [
        f"{source.name}: {source.state}: {source.reason or 'has not answered yet'}"
        for source in answer.sources
        if source.state != "live"
    ]
    lines += [f"{node.name}: {trouble.severity}: {trouble.text}" for node in answer.nodes for trouble in node.troubles]
    rows = [_row(gpu) for gpu in answer.gpus]
    if not rows:
        return [*lines, "no GPU is known"]
    lines += _align([_HEADINGS, *rows])
    waiting = [w for w in answer.workloads if not w.node and w.phase == "Pending"]
    for workload in waiting:
        wants = ", ".join(f"{count:g} {resource}" for resource, count in workload.wants.items())
        lines.append(f"waiting: {workload.namespace}/{workload.name} wants {wants}")
    return lines


def _row(gpu: Any) -> tuple[str, ...]:  # noqa: ANN401 - its fields are made from the table of quantities
    name = "?" if gpu.index is None else str(gpu.index)
    if gpu.instance:
        name = f"{name} {_text(gpu.mig_profile)} #{gpu.instance}" if gpu.index is not None else f"  #{gpu.instance}"
    state = gpu.state if gpu.state == "present" else f"{gpu.state}: {gpu.state_reason}"
    used, total = _text(gpu.memory_used_mib), _text(gpu.memory_total_mib)
    at_least = gpu.memory_total_at_least_mib
    if gpu.memory_total_mib.value is None and at_least.value is not None:
        total = f">={_text(at_least)}"
    return (
        gpu.node, name, state, _text(gpu.utilization, "%"), f"{used}/{total}",
        f"{_text(gpu.power_w)}/{_text(gpu.power_limit_w)}", _text(gpu.temperature_c), _held(gpu),
        _text(gpu.model),
    )  # fmt: skip


def _held(gpu: Any) -> str:  # noqa: ANN401 - as above
    named: dict[str, None] = dict.fromkeys(_holder(h) for h in gpu.holders)
    if not named and gpu.mig_instances_held:
        return f"{gpu.mig_instances_held} on MIG"
    return ", ".join(named) or "?"


def _holder(holder: HolderAnswer) -> str:
    name = f"{holder.namespace}/{holder.name}".strip("/")
    return name or holder.uid


def _text(quantity: Quantity, unit: str = "") -> str:
    """Return a value; a stale one carries its age, a missing one its state."""
    value = quantity.value
    if value is None:
        return "n/a" if quantity.state == "n/a" else "?"
    text = f"{value:.0f}{unit}" if isinstance(value, float) else str(value)
    return f"{text} ({quantity.age_s:.0f}s old)" if quantity.state == STALE else text


def _align(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADINGS))]
    lines: list[str] = []
    for row in rows:
        cells = [
            text.rjust(width) if heading in _RIGHT else text.ljust(width)
            for text, width, heading in zip(row, widths, _HEADINGS, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
