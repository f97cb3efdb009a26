"""Reads a whole bundle at once: files to pages, pages to machines, machines to the batches of facts."""

import math
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from gputop.model.facts import Batch, Fact, GpuFact, NodeFact, NodeTrouble, ProcessesFact, Roster
from gputop.model.identity import GpuRef, NodeRef
from gputop.model.status import Finding
from gputop.model.text import clean
from gputop.sources.base import SourceError
from gputop.sources.bundle.archive import Entry, Limits, walk
from gputop.sources.bundle.hosts import Place, Traces, place
from gputop.sources.bundle.instances import name_instances
from gputop.sources.bundle.kinds import Kind
from gputop.sources.bundle.page import Page, Unit
from gputop.sources.bundle.parts import machines
from gputop.sources.bundle.read import read

_FACTS_PER_BATCH: Final = 300
_SAME_CAPTURE_S: Final = 60.0
"""Outputs of one machine this far apart are two captures: the older one does not contradict the newer."""
_UNTIMED_S: Final = 1.0
_NAMES_TOLD: Final = 5
_RICHNESS: Final = {Kind.SMI_XML: 4, Kind.SMI_QUERY: 3, Kind.SMI_LIST: 2, Kind.EXPORTER: 1}


class LoadedBundle(Struct, frozen=True):
    """A bundle that was read.

    Attributes:
        batches: What it says, the last of them with `round_done`; never empty.
        findings: What each file was read as, how many GPUs it tells, what was left out.
        at: Capture time, seconds since the epoch: the clock of everything that shows the bundle.
        files: Number of files looked at.
        bytes_read: Their size after decompression.
        drivers: Driver versions in it.
        trouble: Why nothing can be shown, or which files are not whole; "" when all is well.
    """

    batches: tuple[Batch, ...]
    findings: tuple[Finding, ...]
    at: float
    files: int
    bytes_read: int
    drivers: tuple[str, ...]
    trouble: str


class _File(Struct):
    """One file on its way: where it lies and what it says."""

    path: str
    root: str
    mtime: float | None
    kind: Kind
    pages: tuple[Page, ...]


class _Collected:
    """What a walk over the bundle has found so far."""

    def __init__(self) -> None:
        self.files: list[_File] = []
        self.findings: list[Finding] = []
        self.unread: dict[str, list[str]] = {}
        self.count = 0
        self.bytes_read = 0

    def broken(self) -> list[str]:
        """Return, for each file that is not whole, its name and where it breaks."""
        told = [f"{path}: {why}" for why, paths in self.unread.items() if _DAMAGED in why for path in paths]
        for file in self.files:
            told += [f"{file.path}: {page.broken}" for page in file.pages if page.broken][:1]
        return told + [finding.text for finding in self.findings]

    def trouble(self) -> str:
        """Return why nothing can be shown, or which files are not whole."""
        broken = self.broken()
        if not self.files:
            return f"nothing in it that gputop reads ({self.count} files)" + (f"; {broken[0]}" if broken else "")
        if not broken:
            return ""
        return f"not whole: {broken[0]}" + (f", and {len(broken) - 1} more files" if len(broken) > 1 else "")

    def take(self, entry: Entry) -> None:
        self.count += 1
        if entry.skipped:
            self.unread.setdefault(f"not read: {entry.skipped}", []).append(entry.path)
            return
        self.bytes_read += len(entry.data)
        got = read(entry.data)
        if got.pages:
            self.files.append(_File(entry.path, entry.root, entry.mtime, got.kind, got.pages))
        elif got.is_read:
            self.findings.append(
                Finding(
                    f"{entry.path}: it looks like {got.kind}, but nothing in it can be read",
                    severity="warning",
                )
            )
        else:
            why = "not read by this version" if got.kind not in _NOTHING else "nothing to read"
            self.unread.setdefault(f"{got.kind}: {why}", []).append(entry.path)

    def leftover(self) -> list[Finding]:
        """Return one finding for each kind of file that was not read, with the names of the first."""
        return [
            Finding(f"{_few(paths)}: {why}", severity="info" if "by this version" in why else "warning")
            for why, paths in self.unread.items()
        ]


_DAMAGED: Final = "cut or damaged"
_NOTHING: Final = frozenset({Kind.EMPTY, Kind.BINARY, Kind.TEXT, Kind.HTML})


def _few(paths: Sequence[str]) -> str:
    shown = ", ".join(paths[:_NAMES_TOLD])
    more = len(paths) - _NAMES_TOLD
    return f"{shown} and {more} more" if more > 0 else shown


def _collect(paths: Sequence[Path], limits: Limits | None) -> _Collected:
    collected = _Collected()
    roots: set[str] = set()
    for number, path in enumerate(paths, start=1):
        prefix = ""
        try:
            for entry in walk(path, limits):
                if len(paths) > 1 and not prefix:
                    # Several bundles stand side by side as if they were folders of one, which they are
                    # when a shell expanded "gpu-*/nvidia-smi.xml" or "gpu-*.tar.gz".
                    prefix = f"{entry.root}/" if entry.root not in roots else f"{entry.root}-{number}/"
                    roots.add(entry.root)
                collected.take(structs.replace(entry, path=prefix + entry.path))
        except OSError as error:
            raise SourceError(f"cannot open {clean(str(path))}: {error.strerror or error}") from error
    return collected


def _traces(file: _File) -> Traces:
    # Pages that name their own machine say nothing of the machine of the file.
    units = [unit for page in file.pages if not page.own_host for unit in page.units]
    on_bus = [gpu.bus_id for page in file.pages for gpu in page.pci or ()]
    told = {host for page in file.pages for host in page.hosts}
    return Traces(
        path=file.path,
        root=file.root,
        boards={unit.uuid: unit.bus_id for unit in units if unit.uuid and not unit.is_instance},
        buses=frozenset(on_bus) | {unit.bus_id for unit in units if unit.bus_id},
        told=next(iter(told)) if len(told) == 1 else "",
        rich=_RICHNESS.get(file.kind, 0),
    )


def _ref(unit: Unit, host: str) -> GpuRef:
    return GpuRef(
        host=host,
        uuid=unit.uuid,
        bus_id=unit.bus_id,
        index=unit.index,
        instance=unit.instance,
        mig_uuid=unit.mig_uuid,
    )


def _facts(page: Page, host: str) -> list[Fact]:
    node = NodeRef(host)
    facts: list[Fact] = []
    if page.node or page.pci is not None:
        facts.append(NodeFact(node, page.node, pci=page.pci))
    facts.extend(NodeTrouble(node, t.code, t.text, t.severity) for t in page.troubles)
    for unit in page.units:
        ref = _ref(unit, host)
        facts.append(GpuFact(ref, unit.readings, presence=unit.presence, presence_reason=unit.presence_reason))
        if unit.processes is not None:
            facts.append(ProcessesFact(ref, unit.processes))
    facts.extend(_placed(fact, page.facts_host, host) for fact in page.facts)
    if page.lists_all and page.units:
        facts.append(Roster(node, tuple(_ref(unit, host) for unit in page.units)))
    return facts


def _placed(fact: Fact, named: str, host: str) -> Fact:
    """Return the fact on the machine that its page is put on, if it is of that machine."""
    ref = getattr(fact, "ref", None)
    if ref is None or ref.host != named or not named:
        return fact
    return structs.replace(fact, ref=structs.replace(ref, host=host))


class _Timed(Struct):
    """A page with the machine it is of and the time it counts from."""

    file: _File
    page: Page
    host: str
    at: float
    newest: float


def _stamp(day: float) -> str:
    return datetime.fromtimestamp(day, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _capture_time(files: Sequence[_File], at: float | None) -> tuple[float, Finding]:
    stamps = [page.at for file in files for page in file.pages if page.at is not None]
    changed = [file.mtime for file in files if file.mtime is not None]
    if at is not None:
        later = sum(1 for stamp in stamps if stamp > at)
        words = f"; {later} outputs are later than that" if later else ""
        severity = "warning" if later else "info"
        return at, Finding(f"capture time {_stamp(at)}, as given{words}", severity=severity)
    if stamps:
        words = "the newest time that stands in it; nvidia-smi tells no time zone, so it is taken as UTC"
        return max(stamps), Finding(f"capture time {_stamp(max(stamps))}: {words}", "--at TIME")
    if changed:
        words = "no file tells its time: it is when the newest one was changed"
        return max(changed), Finding(f"capture time {_stamp(max(changed))}: {words}", "--at TIME", "warning")
    words = "no file tells its time: it counts as captured now"
    return time.time(), Finding(words, "--at TIME", "warning")


def _hosts(file: _File, where: Place) -> list[str]:
    """Return the host of each page of a file."""
    numbers = iter(machines([page for page in file.pages if not page.own_host]))
    hosts: list[str] = []
    for page in file.pages:
        number = 0 if page.own_host else next(numbers)
        name = where.host if not number else f"{where.host}-{number + 1}"
        hosts.append(page.facts_host if page.own_host else name)
    return hosts


def _timed(files: Sequence[_File], places: dict[str, Place], at: float) -> list[_Timed]:
    """Put times on all pages of a machine; a page without one never outweighs one that has it."""
    by_host: dict[str, list[tuple[_File, int]]] = {}
    for file in files:
        for number, host in enumerate(_hosts(file, places[file.path])):
            by_host.setdefault(host, []).append((file, number))
    timed: list[_Timed] = []
    for host, found in by_host.items():
        pages = name_instances([file.pages[number] for file, number in found])
        stamps = [page.at for page in pages if page.at is not None]
        untimed = min(stamps) - _UNTIMED_S if stamps else at
        newest = max(stamps, default=at)
        timed.extend(
            _Timed(file, page, host, page.at if page.at is not None else untimed, newest)
            for (file, _), page in zip(found, pages, strict=True)
        )
    return sorted(timed, key=lambda t: (t.at, t.file.path))


def _batches(timed: Sequence[_Timed], at: float) -> tuple[Batch, ...]:
    batches: list[Batch] = []
    for entry in timed:
        facts = _facts(entry.page, entry.host)
        superseded = entry.newest - entry.at > _SAME_CAPTURE_S
        batches.extend(
            Batch(
                source=f"bundle {entry.file.path}",
                rank=0,
                at=entry.at,
                stale_after_s=_SAME_CAPTURE_S if superseded else math.inf,
                facts=tuple(facts[start : start + _FACTS_PER_BATCH]),
            )
            for start in range(0, len(facts), _FACTS_PER_BATCH)
        )
    if not batches:
        return (Batch("bundle", 0, at, math.inf, (), round_done=True),)
    return (*batches[:-1], structs.replace(batches[-1], round_done=True))


def _count(page: Page) -> str:
    boards = sum(1 for unit in page.units if not unit.is_instance)
    instances = len(page.units) - boards
    if page.kind is Kind.LSPCI:
        boards = len(page.pci or ())
    words = f"{boards} GPU" + "s" * (boards != 1)
    return f"{words} and {instances} MIG devices" if instances else words


def _told(file: _File, where: Place) -> Finding:
    pages = file.pages
    # Of several outputs in one file the fullest speaks for it: a later one may be of a single section.
    fullest = max(pages, key=lambda page: (len(page.units), page.at or 0.0))
    several = max(machines([page for page in pages if not page.own_host]), default=0) + 1
    of = f" of {several} machines" if several > 1 else ""
    times = f", the fullest of {len(pages)} outputs{of}" if len(pages) > 1 else ""
    when = f", {_stamp(fullest.at)}" if fullest.at is not None else ""
    where_words = f"{_count(fullest)} on {where.host} (host by {where.how})"
    own = [page for page in pages if page.own_host]
    if own:
        times = ""
        where_words = "; ".join(f"{_count(page)} on {page.facts_host}" for page in own[:_NAMES_TOLD])
        where_words += f"; {len(own) - _NAMES_TOLD} more hosts" if len(own) > _NAMES_TOLD else ""
    elif fullest.facts and not fullest.units:
        where_words = f"{len(fullest.facts)} facts of a scheduler"
    words = f"{file.path}: {fullest.what}{times}{when}: {where_words}"
    notes = list(dict.fromkeys(note for page in pages for note in page.notes))
    return Finding("; ".join([words, *notes]), severity="warning" if notes else "ok")


def load(paths: Sequence[Path | str], at: float | None = None, limits: Limits | None = None) -> LoadedBundle:
    """Read bundles.

    Args:
        paths: Folders, archives and files.
        at: Capture time to count ages from, seconds since the epoch; None to take the newest time of
            something that happened in the files, else when the newest file was changed.
        limits: How much is read.

    Raises:
        SourceError: A path cannot be opened.
    """
    collected = _collect([Path(path) for path in paths], limits)
    files = collected.files
    captured, said = _capture_time(files, at)
    places = place([_traces(file) for file in files])
    timed = _timed(files, places, captured)
    versions = {page.node.get("driver_version") for file in files for page in file.pages}
    return LoadedBundle(
        batches=_batches(timed, captured),
        findings=(
            said,
            *(_told(file, places[file.path]) for file in files),
            *collected.findings,
            *collected.leftover(),
        ),
        at=captured,
        files=collected.count,
        bytes_read=collected.bytes_read,
        drivers=tuple(sorted(v for v in versions if isinstance(v, str))),
        trouble=collected.trouble(),
    )
