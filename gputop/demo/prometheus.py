"""The Prometheus HTTP API over the simulated cluster, without HTTP: from path and parameters to an answer.

Envelope, status codes and number spelling follow the HTTP API of Prometheus 3.
"""

import datetime as dt
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from gputop.demo.promql.errors import QueryError
from gputop.demo.promql.evaluate import Value, instant, over_range
from gputop.demo.promql.lexer import seconds
from gputop.demo.promql.parser import parse
from gputop.demo.promql.syntax import Matcher, Selector
from gputop.demo.series import Sample, number
from gputop.demo.store import Store

VERSION = "3.5.0"
_MOST_POINTS = 11_000
_STATUS = {"bad_data": 400, "execution": 422, "not_found": 404}

Parameters = Mapping[str, list[str]]


class Answer(NamedTuple):
    """A response: HTTP status, content type, and body."""

    status: int
    kind: str
    body: str


class Api:
    """The API over a store; ``clock`` returns unix time by the server's clock."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self.store = store
        self.clock = clock
        self._routes: dict[str, Callable[[Parameters], str]] = {
            "query": self._query,
            "query_range": self._query_range,
            "labels": self._labels,
            "series": self._series,
            "metadata": self._metadata,
            "targets": self._targets,
            "status/buildinfo": self._build,
        }

    def answer(self, path: str, parameters: Parameters) -> Answer:
        """Answer a request below ``/api/v1/``; errors become error envelopes."""
        values = re.fullmatch(r"label/([^/]+)/values", path)
        try:
            if values is not None:
                return _success(self._label_values(values[1], parameters))
            route = self._routes.get(path)
            if route is None:
                return error("not_found", f"no such endpoint: {path}")
            return _success(route(parameters))
        except QueryError as problem:
            return error(problem.kind, str(problem))
        except RecursionError:
            return error("bad_data", "parse error: nested too deeply")

    def _time(self, parameters: Parameters, name: str) -> float:
        text = parameters.get(name, [""])[0]
        return self.clock() if not text else _moment(text, name)

    def _query(self, parameters: Parameters) -> str:
        at = self._time(parameters, "time")
        value = instant(parse(_needed(parameters, "query")), self.store, at)
        return _with_limit(value, at, parameters)

    def _query_range(self, parameters: Parameters) -> str:
        node = parse(_needed(parameters, "query"))
        start = _moment(_needed(parameters, "start"), "start")
        end = _moment(_needed(parameters, "end"), "end")
        step = _step(_needed(parameters, "step"))
        if end < start:
            raise QueryError('invalid parameter "end": end timestamp must not be before start time')
        if (end - start) / step > _MOST_POINTS:
            raise QueryError(
                "exceeded maximum resolution of 11,000 points per timeseries. "
                "Try decreasing the query resolution (?step=XX)"
            )
        rows = [
            f'{{"metric":{labels.json(name)},"values":[{",".join(_pair(*point) for point in points)}]}}'
            for name, labels, points in over_range(node, self.store, start, end, step)
        ]
        return f'"data":{{"resultType":"matrix","result":[{",".join(rows)}]}}'

    def _selected(self, parameters: Parameters) -> list[Sample]:
        selectors = [_selector(text) for text in parameters.get("match[]", [])]
        if not selectors:
            selectors = [(Matcher("__name__", "!=", ""),)]
        at = self._time(parameters, "end")
        return [one for matchers in selectors for one in self.store.select(matchers, at)]

    def _labels(self, parameters: Parameters) -> str:
        names = {"__name__"}
        for one in self._selected(parameters):
            names |= one.labels.pairs.keys()
        return f'"data":{json.dumps(sorted(names))}'

    def _label_values(self, label: str, parameters: Parameters) -> str:
        if label == "__name__" and not parameters.get("match[]"):
            # Names need no values: a fleet's worth of samples is not worked out to list some fifty names.
            at = self._time(parameters, "end")
            found = {name for name in self.store.names() if self.store.present(name, at)}
        elif label == "__name__":
            found = {one.name for one in self._selected(parameters)}
        else:
            found = {value for one in self._selected(parameters) if (value := one.labels.pairs.get(label))}
        return f'"data":{json.dumps(sorted(found))}'

    def _series(self, parameters: Parameters) -> str:
        if not parameters.get("match[]"):
            raise QueryError("no match[] parameter provided")
        rows = {one.labels.json(one.name): None for one in self._selected(parameters)}
        return f'"data":[{",".join(rows)}]'

    def _metadata(self, parameters: Parameters) -> str:
        wanted = parameters.get("metric", [""])[0]
        found = {
            name: [{"type": kind, "help": words, "unit": ""}]
            for name in self.store.names()
            if not wanted or name == wanted
            for kind, words in [self.store.describe(name)]
        }
        return f'"data":{json.dumps(found)}'

    def _targets(self, _parameters: Parameters) -> str:
        now = self.clock()
        scraped = now // self.store.interval_s * self.store.interval_s
        t = self.store.seconds(scraped)
        active = [
            {
                "labels": target.labels.pairs,
                "scrapePool": target.labels.pairs["job"],
                "scrapeUrl": f"http://{target.labels.pairs['instance']}/metrics",
                "health": "up" if target.up(t) else "down",
                "lastError": "" if target.up(t) else _scrape_error(target.status(t)),
                "lastScrape": _stamp(scraped),
                "scrapeInterval": f"{self.store.interval_s:g}s",
                "scrapeTimeout": "10s",
            }
            for target in self.store.targets
        ]
        return f'"data":{json.dumps({"activeTargets": active, "droppedTargets": []})}'

    def _build(self, _parameters: Parameters) -> str:
        build = {"version": VERSION, "revision": "demo", "branch": "HEAD", "goVersion": "go1.24.5"}
        return f'"data":{json.dumps(build)}'


def _with_limit(value: Value, at: float, parameters: Parameters) -> str:
    text = parameters.get("limit", [""])[0]
    if not text.isdecimal() and text:
        raise QueryError('invalid parameter "limit": limit must be non-negative')
    limit = int(text or 0)
    if limit and isinstance(value, list) and len(value) > limit:
        return f'{_data(value[:limit], at)},"warnings":["results truncated due to limit"]'
    return _data(value, at)


def _data(value: Value, at: float) -> str:
    if isinstance(value, str):
        return f'"data":{{"resultType":"string","result":[{_seconds(at)},{json.dumps(value)}]}}'
    if not isinstance(value, list):
        return f'"data":{{"resultType":"scalar","result":{_pair(at, value)}}}'
    head = f'"value":[{_seconds(at)},"'
    rows = [f'{{"metric":{one.labels.json(one.name)},{head}{number(one.value)}"]}}' for one in value]
    return f'"data":{{"resultType":"vector","result":[{",".join(rows)}]}}'


def _pair(at: float, value: float) -> str:
    return f'[{_seconds(at)},"{number(value)}"]'


def _seconds(at: float) -> str:
    return f"{at:.3f}".rstrip("0").rstrip(".")


def _success(rest: str) -> Answer:
    return Answer(200, "application/json", f'{{"status":"success",{rest}}}')


def error(kind: str, message: str, status: int | None = None) -> Answer:
    """Return an error envelope of a kind, under the status that Prometheus gives to it."""
    body = json.dumps({"status": "error", "errorType": kind, "error": message})
    return Answer(_STATUS.get(kind, 500) if status is None else status, "application/json", body)


def _needed(parameters: Parameters, name: str) -> str:
    text = parameters.get(name, [""])[0]
    if not text:
        raise QueryError(f'invalid parameter "{name}": it is missing or empty')
    return text


def _moment(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        try:
            value = dt.datetime.fromisoformat(text).timestamp()
        except ValueError as problem:
            raise QueryError(f'invalid parameter "{name}": cannot parse {text!r} to a valid timestamp') from problem
    if not math.isfinite(value):
        raise QueryError(f'invalid parameter "{name}": cannot parse {text!r} to a valid timestamp')
    return value


def _step(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = seconds(text)
    if not value > 0 or not math.isfinite(value):
        raise QueryError('invalid parameter "step": zero or negative query resolution step widths are not accepted')
    return value


def _selector(text: str) -> tuple[Matcher, ...]:
    node = parse(text)
    if not isinstance(node, Selector) or node.range_s is not None:
        raise QueryError(f'invalid parameter "match[]": {text!r} is not a selector')
    return node.matchers


def _stamp(at: float) -> str:
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat().replace("+00:00", "Z")


def _scrape_error(status: int) -> str:
    if status:
        return f"server returned HTTP status {status} Internal Server Error"
    return "context deadline exceeded"
