"""`gputop doctor`: what is read, how it was found, what it costs, and what to add."""

import asyncio
import importlib.metadata
import os
import platform
import sys
from datetime import UTC, datetime
from typing import Final

import msgspec

from gputop import __version__
from gputop.answers.doctor import (
    SCHEMA,
    CostAnswer,
    Doctor,
    FindingAnswer,
    FoundAnswer,
    PermissionAnswer,
    SettingAnswer,
    SourceReport,
)
from gputop.cli.exits import Exit
from gputop.config.config import Config
from gputop.config.detect import Surroundings, detect
from gputop.config.paths import paths
from gputop.model.status import SourceState, SourceStatus
from gputop.panes.format import age, size
from gputop.session import NothingFoundError, Session, open_session
from gputop.terminal import abilities
from gputop.themes.loader import load_themes

_MARKS: Final = {"ok": "+", "info": " ", "warning": "!", "critical": "!!"}
_RIGHTS: Final = {"ok": True, "warning": False, "critical": False}
"""Whether a right is given, by the severity of what is said of it; others are not asked for."""


def doctor(config: Config, *, as_json: bool) -> int:
    """Examine everything and print the report; return the exit code."""
    around = Surroundings(os.environ)
    try:
        session = open_session(config, around)
    except NothingFoundError as error:
        detected = detect(around, network=config.detect) if config.detect else ()
        report = _report(config, (), [FoundAnswer(f.kind, f.target, f.how, f.read) for f in detected], "")
        problem = FindingAnswer("critical", error.reason, "gputop --prometheus URL, or --exporter URL, or gputop demo")
        report = msgspec.structs.replace(report, problems=[problem, *report.problems])
        _print(report, as_json=as_json)
        return Exit.NO_SOURCE
    report = asyncio.run(_examine(session))
    _print(report, as_json=as_json)
    usable = any(s.state in {SourceState.LIVE, SourceState.DEGRADED} for s in report.sources)
    return Exit.OK if usable else Exit.NO_SOURCE


async def _examine(session: Session) -> Doctor:
    async with session:
        await session.first_round(session.config.timeout)
        statuses = tuple(session.fleet.view().sources.values())
        found = [FoundAnswer(f.kind, f.target, f.how, f.read) for f in session.detected]
        return _report(session.config, statuses, found, session.mark, session.now())


def _report(
    config: Config, statuses: tuple[SourceStatus, ...], found: list[FoundAnswer], mark: str, now: float = 0.0
) -> Doctor:
    return Doctor(
        schema=SCHEMA,
        at=round(now, 3),
        mark=mark,
        sources=[_source(s, now) for s in statuses],
        detected=found,
        settings=[
            SettingAnswer(name, str(value), origin) for name, value, origin in config.items() if origin != "default"
        ],
        environment=_environment(),
        problems=_problems(),
    )


def _source(status: SourceStatus, now: float) -> SourceReport:
    cost = status.cost
    return SourceReport(
        name=status.name,
        kind=status.kind,
        state=status.state,
        reason=status.reason,
        found=status.found,
        target=status.target,
        since=status.since,
        data_age_s=None if status.last_data_at is None else round(max(0.0, now - status.last_data_at), 1),
        versions=dict(status.versions),
        cost=CostAnswer(
            cost.requests,
            cost.bytes_read,
            round(cost.cpu_s, 3),
            None if cost.last_s is None else round(cost.last_s, 4),
            {name: round(seconds, 6) for name, seconds in cost.slowest},
        ),
        permissions=[PermissionAnswer(f.right, _RIGHTS.get(f.severity), f.text) for f in status.findings if f.right],
        findings=[FindingAnswer(f.severity, f.text, f.advice) for f in status.findings],
    )


def _environment() -> dict[str, str]:
    terminal = abilities(os.environ, sys.stderr.encoding)
    return {
        "gputop": __version__,
        "python": platform.python_version(),
        "textual": _version("textual"),
        "nvidia-ml-py": _version("nvidia-ml-py"),
        "terminal": os.environ.get("TERM", ""),
        "colours": "none (NO_COLOR)" if terminal.no_color else terminal.colours or "none",
        "unicode": "yes" if terminal.unicode else "no: drawn in ASCII",
        "configuration": str(paths(os.environ).config_file),
    }


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _problems() -> list[FindingAnswer]:
    found: list[FindingAnswer] = []
    if _version("pynvml") != "not installed":
        # The deprecated distribution brings a module of the same name over nvidia-ml-py's.
        words = "the deprecated distribution pynvml is installed beside nvidia-ml-py and may hide it"
        found.append(
            FindingAnswer("warning", words, "pip uninstall pynvml; pip install --force-reinstall nvidia-ml-py")
        )
    found += [FindingAnswer("warning", problem, "") for problem in load_themes(paths(os.environ).themes).problems]
    return found


def _print(report: Doctor, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(report)))
    sys.stdout.flush()


def _lines(report: Doctor) -> list[str]:
    lines = [f"*** {report.mark}: these are not this machine's own sources ***"] if report.mark else []
    for source in report.sources:
        told = f"data {age(source.data_age_s)} old" if source.data_age_s is not None else "no data yet"
        since = f"{source.state} since {_moment(source.since)} ({age(max(0.0, report.at - source.since))})"
        lines.append(f"{source.name}: {since}, {told}" + (f": {source.reason}" if source.reason else ""))
        lines.append(f"    reads {source.target}, found by {source.found or 'a setting'}")
        if source.versions:
            lines.append("    " + ", ".join(f"{name} {version}" for name, version in source.versions.items()))
        cost = source.cost
        took = f", last round {cost.last_s:.3f} s" if cost.last_s is not None else ""
        lines.append(f"    {cost.requests} reads, {size(cost.bytes_read)} bytes, {cost.cpu_s:.2f} s of CPU{took}")
        if cost.slowest:
            slowest = sorted(cost.slowest.items(), key=lambda pair: -pair[1])[:3]
            lines.append("    slowest: " + ", ".join(f"{name} {1000 * s:.2f} ms" for name, s in slowest))
        lines += _finding_lines(source.findings)
    unread = [f for f in report.detected if not f.read]
    lines += [f"{f.kind}: found by {f.how}; this version does not read it yet" for f in unread]
    lines += [f"{s.name} = {s.value}  ({s.origin})" for s in report.settings]
    lines.append("environment: " + ", ".join(f"{name} {value}" for name, value in report.environment.items()))
    return lines + _finding_lines(report.problems)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _finding_lines(findings: list[FindingAnswer]) -> list[str]:
    lines: list[str] = []
    for finding in findings:
        lines.append(f"  {_MARKS.get(finding.severity, ' '):>2} {finding.text}")
        if finding.advice:
            lines.append(f"       add: {finding.advice}")
    return lines
