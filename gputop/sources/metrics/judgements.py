"""What exporters judge or count by kind, put into words: one text from many series of one GPU.

DCGM's health stays as bad as it once was until its host engine restarts, and its windows count samples, not
events: both are told as what they are, and neither is taken for the state of the moment.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from gputop.model.sanity import judge_raw
from gputop.model.text import is_whole
from gputop.sources.metrics.labels import first
from gputop.sources.metrics.rows import SAME_SCRAPE_S, Row
from gputop.sources.metrics.rule import MetricRule, Role
from gputop.sources.metrics.sample import Sample

_WELL: Final = "pass"
# dcgmHealthWatchResults_t
_RESULTS: Final = {0.0: _WELL, 10.0: "warning", 20.0: "failure"}
_ORDER: Final = ("failure", "warning", _WELL)
# AMD's exporter: 1 is healthy.
_AMD_RESULTS: Final = {1.0: _WELL, 0.0: "failure"}
_MOST_TOLD: Final = 4


class Judged(Struct):
    """The series of one GPU in one answer: results of health watches, and counts of clock events."""

    at: float
    health: dict[str, str] = {}
    events: dict[tuple[str, str], float] = {}


def take(seen: dict[tuple[str, str, str, str], Judged], row: Row, rule: MetricRule, sample: Sample, at: float) -> None:
    """Take one series into account; a newer scrape replaces an older one."""
    judged = seen.setdefault(row.key, Judged(at))
    if at - judged.at > SAME_SCRAPE_S:
        judged = seen[row.key] = Judged(at)
    elif judged.at - at > SAME_SCRAPE_S or judge_raw(sample.value) is not None:
        return
    if rule.role is Role.HEALTH:
        watch = first(sample.labels, ("health_watch",))
        code = first(sample.labels, ("health_error_code",))
        results = _RESULTS if rule.exporter == "dcgm" else _AMD_RESULTS
        result = results.get(sample.value, f"code {sample.value:g}")
        judged.health[f"{watch} {code}".strip()] = result
    else:
        event = first(sample.labels, ("clock_event",))
        if event and sample.value > 0:
            key = (event, first(sample.labels, ("window_size_in_ms",)))
            # Rows of MIG instances repeat the count of the GPU.
            judged.events[key] = max(sample.value, judged.events.get(key, 0.0))


def put(rows: Mapping[tuple[str, str, str, str], Row], seen: Mapping[tuple[str, str, str, str], Judged]) -> None:
    """Put the words among the values of the rows."""
    for key, judged in seen.items():
        if judged.health:
            rows[key].put("exporter_health", _health(judged.health), judged.at)
        if judged.events:
            rows[key].put("clock_events_lately", _events(judged.events), judged.at)


def _health(results: Mapping[str, str]) -> str:
    for worst in (*sorted(set(results.values()) - set(_ORDER)), *_ORDER):
        of = sorted(watch for watch, result in results.items() if result == worst and watch)
        if worst in results.values():
            told = of[:_MOST_TOLD]
            more = f" and {len(of) - len(told)} more" if len(of) > len(told) else ""
            return worst if worst == _WELL or not told else f"{worst}: {', '.join(told)}{more}"
    return _WELL


def _events(events: Mapping[tuple[str, str], float]) -> str:
    told = [
        f"{event} {count:g}" + (f" in {int(window) // 1000} s" if is_whole(window) else "")
        for (event, window), count in sorted(events.items())
    ]
    return "samples with " + ", ".join(told)
