"""A GPU in short: what the node's line and the header count, and the worst thing to say of it.

Made once for each record of a GPU: records are immutable, so the same object has the same digest until a
time in it passes.
"""

import math
from datetime import datetime
from typing import Final

from msgspec import Struct

from gputop.fleet import GpuState
from gputop.fleet.holding import contradiction, holders, is_held
from gputop.fleet.mig import instances_held, is_mig
from gputop.fleet.precedence import disagreements
from gputop.fleet.state import XidRecord
from gputop.model.facts import Presence, XidKind
from gputop.model.quantity import QUANTITIES
from gputop.panes.format import last
from gputop.panes.gpu_table import gpu_name
from gputop.panes.gpus import IDLE_PERCENT, activity, memory_pair
from gputop.panes.links import PcieLink, nvlinks, pcie_link
from gputop.panes.temperature import HOT, heat_of
from gputop.panes.troubles import raised_trouble
from gputop.panes.words import BROKEN, PRESENCE_WORDS, clock_brief, clock_letter

_XID_NEWS_S: Final = 3600.0
"""How long an Xid is told of in the node's line; afterwards it stands in the Errors pane alone."""


class Finding(Struct, frozen=True, gc=False):
    """Something to say: how urgent (0 to 9), in which role, in which words."""

    urgency: float
    role: str
    words: str


class GpuDigest(Struct, frozen=True, gc=False):
    """A board in short.

    Attributes:
        load: Utilisation in percent, None when nobody tells a fresh one; of a board in MIG mode that of its
            busiest instance, None while it may be another one's.
        held: A workload or process is on it; None when nobody can say.
        labels: Labels of its holders, and of its instances'.
        instances: Its MIG instances.
        loads: The load of each of them.
        is_empty_mig: It is in MIG mode and has no instance, so nothing can run on it.
        memory_used: MiB, fresh or stale, None when not told.
        memory_total: MiB.
        total_is_least: The total is only a lower bound.
        power: W, fresh or stale, None when not told.
        power_limit: W.
        heat: °C.
        hot: It is close to its limit.
        links: (NVLinks up, NVLinks), None when not told.
        pcie: The PCIe link, None when not told.
        findings: What to say of it.
        until: Time from which the digest may be another one.
    """

    load: float | None
    held: bool | None
    labels: tuple[str, ...]
    instances: tuple[GpuState, ...]
    loads: tuple[float | None, ...]
    is_empty_mig: bool
    memory_used: float | None
    memory_total: float | None
    total_is_least: bool
    power: float | None
    power_limit: float | None
    heat: float | None
    hot: bool
    links: tuple[float, float] | None
    pcie: PcieLink | None
    findings: tuple[Finding, ...]
    until: float


def digest(gpu: GpuState, now: float, instances: tuple[GpuState, ...] = ()) -> GpuDigest:
    """Return a board in short as seen at `now`.

    Args:
        gpu: The board.
        now: The time on screen.
        instances: Its MIG instances.
    """
    readings = gpu.readings
    load, until = _load(gpu, now)
    loads: list[float | None] = []
    for instance in instances:
        of_instance, stale_from = _load(instance, now)
        loads.append(of_instance)
        until = min(until, stale_from)
    if instances:
        load = _busiest(loads)
    links, link = nvlinks(gpu), pcie_link(gpu)
    findings, news_until = _findings(gpu, now, load, links, link)
    used, total, prefix = memory_pair(gpu)
    return GpuDigest(
        load=load,
        held=_is_held(gpu, instances),
        labels=tuple([h.label for g in (gpu, *instances) for h, _ in holders(g)]),
        instances=instances,
        loads=tuple(loads),
        is_empty_mig=is_mig(gpu) and not instances,
        memory_used=used,
        memory_total=total,
        total_is_least=bool(prefix),
        power=last(readings.get("power_w")),
        power_limit=last(readings.get("power_limit_w")),
        heat=last(readings.get("temperature_c")),
        hot=heat_of(gpu) == HOT,
        links=links,
        pcie=link,
        findings=findings,
        until=min(until, news_until),
    )


def _load(gpu: GpuState, now: float) -> tuple[float | None, float]:
    """Return the fresh load of a GPU or instance, and until when it is fresh."""
    reading = gpu.readings.get(activity(gpu))
    load = last(reading)
    if reading is None or load is None:
        return None, math.inf
    stale_from = reading.origin.at + reading.origin.stale_after_s
    return (load, stale_from) if now <= stale_from else (None, math.inf)


def _busiest(loads: list[float | None]) -> float | None:
    known = [v for v in loads if v is not None]
    most = max(known, default=0.0)
    # One busy instance makes the board busy; that it is idle needs all of them.
    return most if most >= IDLE_PERCENT or len(known) == len(loads) else None


def _is_held(gpu: GpuState, instances: tuple[GpuState, ...]) -> bool | None:
    if not instances:
        return is_held(gpu)
    told = instances_held(instances)
    return True if told.held or is_held(gpu) else None if told.unknown else False


def _findings(
    gpu: GpuState, now: float, load: float | None, links: tuple[float, float] | None, link: PcieLink | None
) -> tuple[tuple[Finding, ...], float]:
    if gpu.presence is not Presence.PRESENT:
        absence = _absence(gpu)
        return ((absence,) if absence else ()), math.inf
    name = gpu_name(gpu)
    found: list[Finding] = []
    raised = raised_trouble(gpu)
    if raised is not None:
        trouble, value = raised
        found.append(Finding(trouble.weight, trouble.role, f"{name} {trouble.words(value)}"))
    mask = last(gpu.readings.get("clock_event_reasons"))
    if mask:
        letter, role = clock_letter(int(mask))
        if letter and role in {"bad", "warn"}:
            found.append(Finding(3.5 if role == "bad" else 2.5, role, f"{name} {clock_brief(int(mask))}"))
    heat = last(gpu.readings.get("temperature_c"))
    if heat is not None and heat_of(gpu) == HOT:
        found.append(Finding(2.0, "warn", f"{name} {heat:.0f} °C"))
    # A board whose NVLinks are all down stands alone, which is how it was built.
    if links is not None and 0 < links[0] < links[1]:
        found.append(Finding(2.1, "warn", f"{name} {links[0]:.0f}/{links[1]:.0f} NVLinks"))
    if link is not None and link.is_below and load is not None and load >= IDLE_PERCENT:
        found.append(Finding(1.8, "warn", f"{name} PCIe {link.words} of {link.most_words}"))
    if gpu.rivals:
        labels = [QUANTITIES[d.quantity].label for d in disagreements(gpu.readings, gpu.rivals, now)]
        if labels:
            found.append(Finding(3.0, "warn", f"{name}: sources disagree on {', '.join(dict.fromkeys(labels))}"))
    if len(gpu.holders) + len(gpu.processes) > 1 and contradiction(gpu) is not None:
        found.append(Finding(3.0, "warn", f"{name}: sources disagree on the holder"))
    until = math.inf
    if gpu.xids:
        news, until = _xid_news(gpu, now, name)
        found += news
    return tuple(found), until


def _absence(gpu: GpuState) -> Finding | None:
    name = gpu_name(gpu)
    if gpu.presence in BROKEN:
        xid = max(gpu.xids, key=lambda x: x.first_seen, default=None)
        words = f"{name} {PRESENCE_WORDS[gpu.presence]}"
        return Finding(9.0, "bad", f"{words}, Xid {xid.xid}" if xid else words)
    if gpu.presence is Presence.DENIED:
        return Finding(5.0, "warn", f"{name} denied")
    if gpu.presence is Presence.DRIVERLESS:
        return Finding(2.0, "info", f"{name}: {gpu.presence_reason}")
    return Finding(4.0, "unknown", f"{name}: {gpu.presence_reason}")


def _xid_news(gpu: GpuState, now: float, name: str) -> tuple[list[Finding], float]:
    """Return the newest Xid that is known to have happened lately, and until when it is news.

    A standing number that was there from the start may be days old (NVIDIA/DCGM#277) and is never news.
    """
    dated = [x for x in gpu.xids if x.kind is XidKind.EVENT or (x.kind is XidKind.LAST and not x.from_start)]
    if not dated:
        return [], math.inf
    newest = max(dated, key=_happened)
    happened = _happened(newest)
    if now - happened > _XID_NEWS_S:
        return [], math.inf
    times = f" x{newest.count}" if newest.kind is XidKind.EVENT and newest.count > 1 else ""
    at = datetime.fromtimestamp(happened).astimezone().strftime("%H:%M")
    return [Finding(2.2, "warn", f"{name} Xid {newest.xid}{times} {at}")], happened + _XID_NEWS_S


def _happened(xid: XidRecord) -> float:
    # A standing number is told again with each sample: only its first sight is near the event.
    return xid.last_seen if xid.kind is XidKind.EVENT else xid.first_seen
