"""Series behind the stub of the Prometheus API, with the simulated cluster's PromQL, and the source that reads them."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from socket import socket
from typing import Any, Final

from gputop.demo.promql.errors import QueryError
from gputop.demo.promql.evaluate import instant, over_range
from gputop.demo.promql.matching import labels_test, name_test
from gputop.demo.promql.parser import parse
from gputop.demo.promql.syntax import Matcher
from gputop.demo.series import Labels, Sample, number
from gputop.fleet import Fleet, GpuState
from gputop.model.demand import Demand
from gputop.model.endpoint import Endpoint
from gputop.model.facts import Batch
from gputop.model.status import SourceState, SourceStatus
from gputop.sources.base import DemandBoard
from gputop.sources.prometheus.source import PrometheusSource
from gputop.sources.supervisor import Supervisor
from tests.integration.prometheus_rig import Answer, Request, error, reply

LOOKBACK_S: Final = 300.0
_ALL: Final = Demand()
VALUES: Final = {
    "DCGM_FI_DEV_GPU_TEMP": 61.0,
    "DCGM_FI_DEV_GPU_UTIL": 71.0,
    "DCGM_FI_DEV_FB_USED": 18642.0,
    "DCGM_FI_DEV_FB_FREE": 62274.0,
    "DCGM_FI_DEV_FB_RESERVED": 643.0,
    "DCGM_FI_DEV_POWER_USAGE": 233.5,
}


def uuid(host: int, gpu: int) -> str:
    return f"GPU-{host:08x}-47aa-d9df-9b50-{gpu:012x}"


class World:
    """What the server has; the tests change it while it runs.

    Attributes:
        series: Samples as they were scraped: `at` is an age, in seconds before the question.
        raw: Values by (metric, index) in a spelling of their own, which no number has.
        skew_s: How far the server's clock is ahead.
        more: Further fields of each envelope of a query.
        routes: Answers of paths other than queries.
        faults: What a question gets in place of an answer, by what the test sees in it.
    """

    def __init__(self) -> None:
        self.series: list[Sample] = []
        self.raw: dict[tuple[str, str], object] = {}
        self.skew_s = 0.0
        self.more: dict[str, Any] = {}
        self.routes: dict[str, Answer] = {
            "/api/v1/status/buildinfo": reply(b'{"status":"success","data":{"version":"3.5.0"}}')
        }
        self.faults: list[tuple[Callable[[Request], bool], Answer]] = []

    def put(self, name: str, labels: dict[str, str], value: float, age_s: float = 4.0) -> None:
        self.series.append(Sample(name, Labels(labels), value, age_s))

    def host(self, host: int = 1, gpus: int = 2, age_s: float = 4.0, **more: str) -> None:
        """Put a host with the usual metrics of dcgm-exporter."""
        for gpu in range(gpus):
            labels = {
                "UUID": uuid(host, gpu), "Hostname": f"gpu-{host:03}", "gpu": str(gpu), "job": "dcgm-exporter",
                "instance": f"10.0.{host // 250}.{host % 250}:9400", "modelName": "NVIDIA H100 80GB HBM3",
                "pci_bus_id": f"00000000:{gpu + 1:02X}:00.0",
            } | more  # fmt: skip
            for name, value in VALUES.items():
                self.put(name, {k: v for k, v in labels.items() if v}, value, age_s)
        self.put("up", {"job": "dcgm-exporter", "instance": f"10.0.{host // 250}.{host % 250}:9400"}, 1.0, age_s)

    def set(self, name: str, value: float, **labels: str) -> None:
        """Give the series of a metric another value."""
        for at, one in enumerate(self.series):
            if one.name == name and labels.items() <= one.labels.pairs.items():
                self.series[at] = one._replace(value=value)

    def without(self, **labels: str) -> None:
        """Drop the series with these labels."""
        self.series = [s for s in self.series if not labels.items() <= s.labels.pairs.items()]

    def select(self, matchers: tuple[Matcher, ...], at: float) -> list[Sample]:
        accepts, wanted = name_test(matchers), labels_test(matchers)
        return [
            one._replace(at=at - one.at)
            for one in self.series
            if accepts(one.name) and one.at < LOOKBACK_S and (wanted is None or wanted(one.labels))
        ]

    def select_range(
        self, matchers: tuple[Matcher, ...], start: float, end: float
    ) -> list[tuple[str, Labels, list[tuple[float, float]]]]:
        return [(one.name, one.labels, [(end, one.value)]) for one in self.select(matchers, end) if start < end]

    def answer(self, connection: socket, request: Request) -> None:
        for fits, fault in self.faults:
            if fits(request):
                fault(connection, request)
                return
        path = request.path[request.path.index("/api/v1/") :] if "/api/v1/" in request.path else request.path
        try:
            if path == "/api/v1/query":
                chosen = reply(self._query(request))
            elif path == "/api/v1/query_range":
                chosen = reply(self._range(request))
            else:
                chosen = self.routes.get(path, reply(b"404 page not found", "404 Not Found"))
        except QueryError as problem:
            chosen = reply(error(problem.kind, str(problem)), "400 Bad Request")
        chosen(connection, request)

    def _query(self, request: Request) -> bytes:
        at = time.time() + self.skew_s
        value = instant(parse(request.query), self, at)
        if isinstance(value, float | int):
            data: object = {"resultType": "scalar", "result": [at, number(value)]}
        elif isinstance(value, str):
            data = {"resultType": "string", "result": [at, value]}
        else:
            rows = [{"metric": _named(s.name, s.labels), "value": [at, self._spelt(s)]} for s in value]
            data = {"resultType": "vector", "result": rows}
        return json.dumps({"status": "success", "data": data, **self.more}).encode()

    def _spelt(self, sample: Sample) -> object:
        return self.raw.get((sample.name, sample.labels.pairs.get("gpu", "")), number(sample.value))

    def _range(self, request: Request) -> bytes:
        start, end, step = (float(request.form[name]) for name in ("start", "end", "step"))
        found = over_range(parse(request.query), self, start, end, step)
        rows = [
            {"metric": _named(name, labels), "values": [[at, number(value)] for at, value in points]}
            for name, labels, points in found
        ]
        return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": rows}, **self.more}).encode()


def _named(name: str, labels: Labels) -> dict[str, str]:
    return ({"__name__": name} if name else {}) | labels.pairs


def asks(*parts: str) -> Callable[[Request], bool]:
    """Return whether a request's query holds one of these parts; with none, whether it is any query."""
    return lambda request: any(p in request.query for p in parts) if parts else "/query" in request.path


class Watch:
    """The source under its supervisor, filling a fleet."""

    def __init__(self, endpoint: Endpoint, demand: Demand = _ALL) -> None:
        self.fleet = Fleet()
        self.told: list[SourceStatus] = []
        self.board = DemandBoard(demand)
        self.source = PrometheusSource(endpoint)
        self.rounds_done = 0
        self.supervisor = Supervisor([self.source], self.board, self._apply, self.told.append)

    def _apply(self, batch: Batch) -> None:
        self.fleet.apply(batch)
        self.rounds_done += batch.round_done

    @property
    def status(self) -> SourceStatus:
        return self.told[-1]

    @property
    def state(self) -> SourceState:
        return self.status.state

    def rows(self) -> list[GpuState]:
        return sorted(self.fleet.view().gpus.values(), key=lambda g: (g.key.host, g.index, g.key.uuid))

    def findings(self) -> str:
        return "\n".join(f.text for f in self.status.findings)

    async def until(
        self, condition: Callable[[], bool], what: str, deadline_s: float = 20.0, every_s: float = 0.05
    ) -> None:
        """Wait for something, asking for another round all the while."""
        deadline = time.monotonic() + deadline_s
        while not condition():
            if time.monotonic() > deadline:
                seen = [(r.key, r.presence, r.presence_reason) for r in self.rows()]
                raise AssertionError(f"never {what}: {self.status}, {seen}")
            self.board.refresh()
            await asyncio.sleep(every_s)

    async def rounds(self, count: int = 1) -> None:
        """Wait for whole rounds that begin from now on."""
        # The round that is under way may have asked before the test changed anything.
        wanted = self.rounds_done + count + 1
        await self.until(lambda: self.rounds_done >= wanted, "a round")


def value(row: GpuState, quantity: str) -> float | None:
    """Return the number of a quantity, None if there is none."""
    return row.readings[quantity].number if quantity in row.readings else None


def absence(row: GpuState, quantity: str) -> str:
    """Return why a quantity has no value, "" if it has one or nobody spoke of it."""
    absent = row.readings[quantity].absent if quantity in row.readings else None
    return absent.reason if absent else ""


@asynccontextmanager
async def watching(endpoint: Endpoint, demand: Demand = _ALL) -> AsyncIterator[Watch]:
    watch = Watch(endpoint, demand)
    watch.supervisor.start()
    try:
        yield watch
    finally:
        await watch.supervisor.aclose()


def printable(texts: Iterable[str]) -> bool:
    """Whether texts can be written to a terminal as they are."""
    return all(text.isprintable() or not text for text in texts)
