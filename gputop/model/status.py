"""The state of a source, as the Sources pane and `gputop doctor` show it."""

from enum import StrEnum

from msgspec import Struct


class SourceState(StrEnum):
    """How a source is."""

    STARTING = "starting"
    LIVE = "live"
    DEGRADED = "degraded"
    """It answers in part: some of it fails, is late, or is known to be wrong."""
    DENIED = "denied"
    """It refuses this user."""
    DOWN = "down"
    """It does not answer."""
    RELEASED = "released"
    """Let go on the user's order; it is not asked until it is taken up again."""


class Cost(Struct, frozen=True, gc=False):
    """What reading the source costs.

    Attributes:
        requests: Requests or polls since the start.
        bytes_read: Bytes received since the start.
        cpu_s: CPU seconds of its own process or thread since the start.
        last_s: Duration of the last round in seconds; None before the first.
        slowest: The slowest calls of the last round as (name, seconds).
    """

    requests: int = 0
    bytes_read: int = 0
    cpu_s: float = 0.0
    last_s: float | None = None
    slowest: tuple[tuple[str, float], ...] = ()


class Finding(Struct, frozen=True, gc=False):
    """Something a source lacks or sees, with the line that would mend it.

    Attributes:
        text: One sentence.
        advice: The command or configuration line to add, "" when there is none.
        severity: "ok", "info", "warning" or "critical".
        right: What this user may or may not do ("processes", "Xid events"), where it tells of that: "ok" if it is
            given, "info" if it is not asked for or needed, else it lacks; "" where it tells of something else.
    """

    text: str
    advice: str = ""
    severity: str = "info"
    right: str = ""


class SourceStatus(Struct, frozen=True, gc=False):
    """The state of one source.

    Attributes:
        name: Unique name, as in `Origin.source`.
        kind: "nvml", "prometheus", "exporter", "kubernetes", "nomad" or "bundle".
        state: How it is.
        since: Since when it is so, seconds since the epoch.
        reason: Why, in one line; "" when live.
        found: How it was found ("--prometheus", "GPUTOP_PROMETHEUS_URL", "libnvidia-ml.so.1", …).
        target: What it reads, without secrets.
        next_try_at: When it is tried again; None when it is being read.
        last_data_at: When it last gave facts; None before the first.
        versions: Names and versions, such as ("driver", "570.86.15").
        findings: What it may see, what it lacks.
        cost: What reading it costs.
    """

    name: str
    kind: str
    state: SourceState
    since: float
    reason: str = ""
    found: str = ""
    target: str = ""
    next_try_at: float | None = None
    last_data_at: float | None = None
    versions: tuple[tuple[str, str], ...] = ()
    findings: tuple[Finding, ...] = ()
    cost: Cost = Cost()
