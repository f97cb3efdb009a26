"""Details of a GPU or node: every fact with its source and age, every join with its reason."""

from collections.abc import Callable, Mapping
from typing import Final

from gputop.fleet import GpuState, NodeState
from gputop.fleet.holding import holders
from gputop.fleet.precedence import disagreements
from gputop.model.facts import XidKind
from gputop.model.identity import GpuKey, NodeKey
from gputop.model.quantity import QUANTITIES
from gputop.model.reading import Absent, Reading
from gputop.panes.ascii import fold_cell
from gputop.panes.base import PaneContext
from gputop.panes.format import age, rate
from gputop.panes.gpu_table import clock, text_of
from gputop.panes.node_summary import SUMMARIES
from gputop.panes.words import PRESENCE_ROLES, PRESENCE_WORDS, clock_words, recovery_words
from gputop.widgets.cells import Cell

_LABEL = 34


def detail_title(context: PaneContext, key: GpuKey | NodeKey) -> list[Cell]:
    """Return the title line."""
    title = _title(context, key)
    return [fold_cell(cell) for cell in title] if context.ascii_only else title


def _title(context: PaneContext, key: GpuKey | NodeKey) -> list[Cell]:
    if isinstance(key, NodeKey):
        return [Cell(key.host, "title"), Cell(key.cluster, "dim")]
    gpu = context.view.gpus.get(key)
    if gpu is None:
        return [Cell("gone: no source has listed it for a day", "warn")]
    index = f"gpu{gpu.index}" if gpu.index >= 0 else "gpu ?"
    instance = f" instance {key.instance}" if key.instance else ""
    return [
        Cell(f"{key.host} {index}{instance}", "title"),
        Cell(PRESENCE_WORDS[gpu.presence], PRESENCE_ROLES[gpu.presence]),
        Cell(text_of(gpu, "model"), "dim"),
    ]


def detail_lines(context: PaneContext, key: GpuKey | NodeKey) -> list[Cell]:
    """Return the text."""
    lines: list[Cell] = []
    if isinstance(key, NodeKey):
        node = context.view.nodes.get(key)
        lines = _node_lines(context, node) if node else []
    else:
        gpu = context.view.gpus.get(key)
        lines = _gpu_lines(context, gpu) if gpu else []
    return [fold_cell(line) for line in lines] if context.ascii_only else lines


def _line(label: str, *runs: tuple[str, str]) -> Cell:
    # A label that is too long for its column, as of a pod, still ends before the value.
    return Cell.of((f"  {label:<{_LABEL - 2}}  ", "dim"), *runs)


def _gpu_lines(context: PaneContext, gpu: GpuState) -> list[Cell]:
    now = context.now
    since = f" since {clock(gpu.presence_since, now)}" if gpu.presence_since else ""
    lines = [
        Cell("Identity", "title"),
        _line("state", (PRESENCE_WORDS[gpu.presence] + since, PRESENCE_ROLES[gpu.presence])),
        *([_line("", (gpu.presence_reason, ""))] if gpu.presence_reason else []),
        _line("UUID", (gpu.key.uuid, "")),
        *([_line("MIG instance", (f"{gpu.key.instance} {gpu.mig_uuid}", ""))] if gpu.key.instance else []),
        _line("PCI bus id", (gpu.bus_id or "?", "")),
    ]
    if gpu.pci is not None:
        lines.append(_line("kernel driver", ("none" if gpu.pci.driver == "" else gpu.pci.driver or "?", "")))
    lines += [_line(f"joined from {j.source} by", (j.how, "")) for j in gpu.joins]
    lines += [Cell(""), Cell("Holders", "title"), *_holder_lines(context, gpu)]
    lines += _disagreement_lines(gpu, now)
    lines += _xid_lines(gpu, now)
    lines += [Cell(""), Cell("Readings", "title"), *_reading_lines(gpu.readings, gpu.rivals, now)]
    lines += [Cell(""), Cell("Seen by", "title")]
    lines += [
        _line(
            s.origin.source,
            (f"{'lists it' if s.listed else 'does not list it'}, {age(max(0.0, now - s.origin.at))} ago", ""),
            (f"  silent: {s.silent}" if s.silent else "", "unknown"),
        )
        for s in gpu.sightings
    ]
    return lines


def _holder_lines(context: PaneContext, gpu: GpuState) -> list[Cell]:
    named = holders(gpu)
    lines = [_line(h.label, (f"{h.how or 'named'} ({source})", "dim")) for h, source in named]
    for key in _instances(context, gpu):
        lines += [
            _line(h.label, (f"on MIG instance {key.instance}: {h.how or 'named'} ({source})", "dim"))
            for h, source in holders(context.view.gpus[key])
        ]
    for table in gpu.processes:
        if isinstance(table.processes, Absent):
            lines.append(_line("processes", ("?", "unknown"), (f"  {table.processes.reason}", "dim")))
            continue
        for p in table.processes:
            command = p.command if isinstance(p.command, str) else f"? {p.command.reason}"
            whose = p.holder.label if p.holder else "no pod known"
            lines.append(_line(f"pid {p.pid} {p.kinds}", (command, ""), (f"  {whose}: {p.holder_reason}", "dim")))
    return lines or [_line("nobody is named", ("no source tells of a workload or process here", "dim"))]


def _instances(context: PaneContext, gpu: GpuState) -> list[GpuKey]:
    """Return the MIG instances of a board."""
    node = context.view.nodes.get(gpu.key.node)
    if node is None or gpu.key.instance:
        return []
    return [key for key in node.gpus if key.instance and key.uuid == gpu.key.uuid]


def _disagreement_lines(gpu: GpuState, now: float) -> list[Cell]:
    found = disagreements(gpu.readings, gpu.rivals, now)
    if not found:
        return []
    return [
        Cell(""),
        Cell("Sources disagree", "warn"),
        *(
            _line(
                QUANTITIES[d.quantity].label,
                (f"{d.counts.value} {d.counts.origin.source}", ""),
                (f"  but {d.other.value} {d.other.origin.source}", "warn"),
            )
            for d in found
        ),
    ]


def _xid_lines(gpu: GpuState, now: float) -> list[Cell]:
    if not gpu.xids:
        return []
    lines = [Cell(""), Cell("Xids", "title")]
    for x in reversed(gpu.xids):
        first, newest = age(max(0.0, now - x.first_seen)), age(max(0.0, now - x.last_seen))
        if x.kind is XidKind.EVENT:
            words = f"{x.count} seen, the first {first} ago, the last {newest} ago"
        elif x.kind is XidKind.WINDOW:
            words = f"{x.count} within {x.window_s:.0f} s, as of {newest} ago"
        elif x.from_start:
            words = f"the last one recorded; it stood there {first} ago, so its time is unknown"
        else:
            words = f"the last one recorded; new {first} ago; repeats cannot be seen"
        lines.append(
            _line(f"Xid {x.xid}", (words, ""), (f"  {x.text}" if x.text else "", "dim"), (f"  {x.source}", "dim"))
        )
    return lines


def _reading_lines(
    readings: Mapping[str, Reading], rivals: Mapping[str, tuple[Reading, ...]], now: float
) -> list[Cell]:
    lines: list[Cell] = []
    for quantity, rule in QUANTITIES.items():
        reading = readings.get(quantity)
        if reading is None:
            continue
        lines.append(_line(rule.label, *_value_runs(quantity, reading, now)))
        lines += [_line("", *_value_runs(quantity, other, now)) for other in rivals.get(quantity, ())]
    return lines or [_line("nothing is told yet")]


def _value_runs(quantity: str, reading: Reading, now: float) -> tuple[tuple[str, str], ...]:
    state, told = reading.state(now), f"  {reading.origin.source} {age(reading.age_s(now))} ago"
    absent = reading.absent
    if absent is not None:
        role = "na" if absent.state == "n/a" else "unknown"
        return ("n/a" if absent.state == "n/a" else "?", role), (f"  {absent.reason}", "dim"), (told, "dim")
    return (_value_text(quantity, reading), "stale" if state == "stale" else ""), (told, "dim")


def _value_text(quantity: str, reading: Reading) -> str:
    value = reading.number
    if value is None:
        return reading.text or ""
    if quantity in _WORDS:
        return _WORDS[quantity](value)
    rule = QUANTITIES[quantity]
    if rule.kind == "flag":
        return "yes" if value else "no"
    if rule.unit in _SCALED:
        return _SCALED[rule.unit](value)
    if 0 < abs(value) < _SMALL:
        return f"{value:.2g} {rule.unit}".rstrip()
    text = f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
    return f"{text} {rule.unit}".rstrip()


_WORDS: Final[Mapping[str, Callable[[float], str]]] = {
    "clock_event_reasons": lambda v: clock_words(int(v)),
    "recovery_action": recovery_words,
}
_SMALL: Final = 0.05
_SCALED: Final[Mapping[str, Callable[[float], str]]] = {"B/s": rate, "ns": lambda v: f"{v / 1e9:,.1f} s"}
"""Units that no person reads as they come."""


def _node_lines(context: PaneContext, node: NodeState) -> list[Cell]:
    now = context.now
    summary = SUMMARIES.of(context.view, node.key, now)
    lines = [Cell("Node", "title")]
    lines += [_line(f"called {n.name} by", (f"{n.source}: {n.how}", "dim")) for n in node.names]
    lines += [Cell(""), Cell("To say of it", "title")]
    lines += [_line(f"{t.source}, for {age(max(0.0, now - t.since))}", (t.fact.text, "warn")) for t in node.troubles]
    told = {t.fact.text for t in node.troubles}
    lines += [_line("found", (f.words, f.role)) for f in summary.findings if f.words not in told]
    if not summary.findings:
        lines.append(_line("nothing"))
    lines += [Cell(""), Cell("Devices as the scheduler counts them", "title")]
    lines += [
        _line(
            d.resource,
            (f"advertised {_count(d.advertised)}, healthy {_count(d.healthy)}", ""),
            (f"  {o.source}", "dim"),
        )
        for d, o in node.devices
    ] or [_line("no source tells")]
    lines += [Cell(""), Cell("GPUs listed", "title")]
    lines += [
        _line(c.origin.source, (f"{c.boards}", ""), (f"  silent: {c.silent}" if c.silent else "", "unknown"))
        for c in node.coverage
    ]
    if node.pci is not None:
        lines.append(_line("PCI bus", (str(len(node.pci)), "")))
    lines += [Cell(""), Cell("Readings", "title"), *_reading_lines(node.readings, node.rivals, now)]
    return lines


def _count(value: float | Absent) -> str:
    return "?" if isinstance(value, Absent) else f"{value:.0f}"
