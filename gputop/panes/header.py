"""The header: where we are, how many GPUs do what, and how the sources are; what is wrong comes first."""

from collections.abc import Sequence
from datetime import datetime

from gputop.model.status import SourceState
from gputop.panes.ascii import fold_cell
from gputop.panes.base import PaneContext
from gputop.panes.format import age
from gputop.panes.node_summary import SUMMARIES, NodeSummary
from gputop.panes.sources import MARKS, mark
from gputop.widgets.cells import Cell

HeaderLine = tuple[list[Cell], list[Cell]]


def header_lines(
    context: PaneContext, *, marks: Sequence[str], interval_s: float, read_only: bool
) -> tuple[HeaderLine, ...]:
    """Return (left, right) of three lines.

    Args:
        context: What the screen is set to.
        marks: Loud words, such as DEMO and PAUSED.
        interval_s: Seconds between readings.
        read_only: No action that changes anything is offered.
    """
    lines = (_where(context, marks, interval_s, read_only=read_only), _counts(context), _sources(context))
    if not context.ascii_only:
        return lines
    return tuple(([fold_cell(c) for c in left], [fold_cell(c) for c in right]) for left, right in lines)


def _where(context: PaneContext, marks: Sequence[str], interval_s: float, *, read_only: bool) -> HeaderLine:
    view = context.view
    clusters = sorted({n.cluster for n in view.nodes} - {""})
    boards = sum(1 for k in view.gpus if not k.instance)
    left = [Cell("gputop", "title"), *(Cell(f" {m} ", "alert") for m in marks)]
    if clusters:
        left.append(Cell(" + ".join(clusters[:3]) + (" …" if len(clusters) > 3 else "")))
    nodes = len(view.nodes)
    if nodes:
        left.append(Cell(f"{nodes} node{'s' if nodes != 1 else ''} {boards} GPU{'s' if boards != 1 else ''}"))
    if nodes == 1:
        left += _versions(context)
    right = [
        Cell("read-only", "dim") if read_only else Cell(" read-write ", "alert"),
        Cell(f"every {interval_s:g}s", "dim"),
        Cell(datetime.fromtimestamp(context.now).astimezone().strftime("%H:%M:%S")),
    ]
    return left, right


def _versions(context: PaneContext) -> list[Cell]:
    (node,) = context.view.nodes.values()
    told = ((words, node.readings.get(q)) for words, q in (("driver", "driver_version"), ("CUDA", "cuda_version")))
    return [Cell(f"{words} {r.text}", "dim") for words, r in told if r is not None and r.text]


def _counts(context: PaneContext) -> HeaderLine:
    """Return the counts; free is what a scheduler would give, idle is held and unused, and they are never added."""
    view = context.view
    known = SUMMARIES.all(view, context.now)
    summaries = known.of.values()
    busy, idle, broken, unknown = (
        sum(getattr(s, part) for s in summaries) for part in ("busy", "idle", "broken", "unknown")
    )
    free = _free_words([s.free_boards for s in summaries], ascii_only=context.ascii_only)
    waiting = sum(1 for w in view.workloads.values() if not w.workload.node and w.workload.phase == "Pending")
    if not view.nodes:
        return [], []
    cells = [Cell(f"broken {broken}", "bad")] if broken else []
    cells += [Cell(f"not told {unknown}", "unknown")] if unknown else []
    cells += [Cell.of(("busy ", "dim"), (str(busy), "busy")), Cell.of(("idle ", "dim"), (str(idle), "idle"))]
    cells.append(Cell.of(("free ", "dim"), (free, "unknown" if free == "?" else "free")))
    cells += _mig(list(summaries))
    cells += [Cell.of(("waiting ", "dim"), (str(waiting), "info"))] if waiting else []
    cells += [Cell(f"{known.missing} nodes not counted yet", "dim")] if known.missing else []
    return cells, []


def _mig(summaries: list[NodeSummary]) -> list[Cell]:
    """Return what MIG instances do: they are counted apart, for several are one board."""
    instances, busy, unknown = (
        sum(getattr(s, part) for s in summaries) for part in ("instances", "instances_busy", "instances_unknown")
    )
    if not instances:
        return []
    runs = [("MIG ", "dim"), (f"{busy}", "busy"), (f" of {instances} busy", "dim")]
    runs += [(f", {unknown} not told", "unknown")] if unknown else []
    told = [s.counted.mig.free for s in summaries if s.counted.mig is not None]
    known = [v for v in told if v is not None]
    # Where some node's scheduler does not tell, the sum of the others would be no number of free instances.
    runs += [(f", {sum(known):.0f}", "free"), (" free", "dim")] if known and len(known) == len(told) else []
    return [Cell.of(*runs)]


def _free_words(told: list[float | None], *, ascii_only: bool) -> str:
    """Return how many boards a new job could get: a lower bound where some node's scheduler does not tell."""
    known = [v for v in told if v is not None]
    if not known:
        return "?"
    sign = "" if len(known) == len(told) else ">=" if ascii_only else "≥"
    return f"{sign}{sum(known):.0f}"


def _sources(context: PaneContext) -> HeaderLine:
    """Return the sources, those with a trouble first and with their reason."""
    cells: list[Cell] = []
    ordered = sorted(context.view.sources.values(), key=lambda s: s.state is SourceState.LIVE)
    for status in ordered:
        role = MARKS[status.state].role
        told = age(max(0.0, context.now - status.last_data_at)) if status.last_data_at is not None else ""
        words = f" {status.reason}" if status.reason and status.state is not SourceState.LIVE else ""
        drawn = mark(status, ascii_only=context.ascii_only)
        cells.append(
            Cell.of((f"{status.name} ", "dim"), (drawn, role), (f" {told}" if told else "", ""), (words, role))
        )
    return cells, []
