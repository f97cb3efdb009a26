"""The schema gputop.doctor/1: for each source how it is read and what it lacks, then settings and terminal."""

from typing import Final

from msgspec import Struct

SCHEMA: Final = "gputop.doctor/1"


class FindingAnswer(Struct, frozen=True):
    """Something a source sees or lacks, and the line that would mend it."""

    severity: str
    text: str
    advice: str


class PermissionAnswer(Struct, frozen=True):
    """Something that this user may read or not; `ok` is null where it is not asked for or not there."""

    name: str
    ok: bool | None
    detail: str


class CostAnswer(Struct, frozen=True):
    """What reading the source has cost so far, and its slowest calls in seconds."""

    requests: int
    bytes_read: int
    cpu_s: float
    last_s: float | None
    slowest: dict[str, float]


class SourceReport(Struct, frozen=True):
    """One source."""

    name: str
    kind: str
    state: str
    reason: str
    found: str
    target: str
    since: float
    data_age_s: float | None
    versions: dict[str, str]
    cost: CostAnswer
    permissions: list[PermissionAnswer]
    findings: list[FindingAnswer]


class FoundAnswer(Struct, frozen=True):
    """Something found on this machine; `read` tells whether this version reads it."""

    kind: str
    target: str
    how: str
    read: bool


class SettingAnswer(Struct, frozen=True):
    """A setting that somebody set, and where."""

    name: str
    value: str
    origin: str


class Doctor(Struct, frozen=True):
    """The report.

    Attributes:
        schema: "gputop.doctor/1".
        at: When it was made, seconds since the epoch.
        mark: "DEMO …" or "BUNDLE" when this is not the machine's own; else "".
        sources: Every source.
        detected: What was found on this machine.
        settings: Settings that are not the defaults.
        environment: Versions and abilities of the terminal by name.
        problems: What is wrong outside the sources, with the line to add.
    """

    schema: str
    at: float
    mark: str
    sources: list[SourceReport]
    detected: list[FoundAnswer]
    settings: list[SettingAnswer]
    environment: dict[str, str]
    problems: list[FindingAnswer]
