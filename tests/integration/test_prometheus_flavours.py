"""Servers that speak the Prometheus API each in its own way: what they are sent, and what the user is told."""

import json
import math
import sys
import time
from pathlib import Path
from socket import socket

import pytest

from gputop.model.endpoint import Endpoint
from gputop.model.facts import Presence
from gputop.model.status import SourceState
from tests.integration.prometheus_rig import Answer, Request, StubServer, error, reply
from tests.integration.prometheus_world import World, asks, uuid, value, watching


def build(**fields: str) -> Answer:
    return reply(json.dumps({"status": "success", "data": fields}).encode())


def under(stub: StubServer, world: World, prefix: str) -> str:
    """Let the server answer below a path only, and return its address."""

    def answer(connection: socket, request: Request) -> None:
        if request.path.startswith(f"{prefix}/api/v1/"):
            world.answer(connection, request)
        else:
            reply(b"404 page not found", "404 Not Found")(connection, request)

    stub.answer = answer
    return f"{stub.url}{prefix}"


def queries(stub: StubServer) -> list[Request]:
    """Return the requests for data after the server has been recognised."""
    return [r for r in stub.requests if r.path.endswith("/query") and r.query != "time()"]


async def test_a_server_behind_a_path_prefix(stub: StubServer, world: World) -> None:
    url = under(stub, world, "/monitoring/prom")
    async with watching(Endpoint(url=url)) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round")
        assert watch.state is SourceState.LIVE
        assert len(watch.rows()) == 2
    assert all(r.path.startswith("/monitoring/prom/api/v1/") for r in stub.requests)
    async with watching(Endpoint(url=stub.url)) as watch:
        await watch.until(lambda: watch.state is SourceState.DOWN, "down")
        assert "is the path prefix right" in watch.status.reason


async def test_prometheus_is_sent_nothing_that_it_does_not_know(stub: StubServer, world: World) -> None:
    async with watching(Endpoint(url=stub.url, timeout_s=7.0, selector='cluster="eu"')) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round")
    assert {frozenset(r.form) for r in queries(stub)} == {frozenset({"query", "timeout"})}
    assert {r.form["timeout"] for r in queries(stub)} == {"7s"}
    assert all('cluster="eu"' in r.query for r in queries(stub))
    assert not any("x-scope-orgid" in r.headers for r in stub.requests)


async def test_thanos_is_asked_for_what_its_living_stores_have(stub: StubServer, world: World) -> None:
    world.routes["/api/v1/stores"] = reply(b'{"status":"success","data":{"sidecar":[]}}')
    world.routes["/api/v1/status/buildinfo"] = build(version="0.37.2", goVersion="go1.23")
    async with watching(Endpoint(url=stub.url)) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round")
        assert dict(watch.status.versions) == {"Thanos": "0.37.2"}
        assert watch.state is SourceState.LIVE
        sent = {(r.form.get("partial_response"), r.form.get("dedup")) for r in queries(stub)}
        assert sent == {("true", "true")}
        # A store is down: its own part is missing, and that is no loss of GPUs.
        world.more = {"warnings": ["No StoreAPIs matched for this query"]}
        world.without(UUID=uuid(1, 1))
        await watch.rounds()
        assert watch.state is SourceState.DEGRADED
        assert "No StoreAPIs matched" in watch.status.reason
        assert [row.presence for row in watch.rows()] == [Presence.PRESENT, Presence.PRESENT]


async def test_mimir_wants_a_prefix_and_a_tenant(stub: StubServer, world: World) -> None:
    world.routes["/api/v1/status/buildinfo"] = build(application="Grafana Mimir", version="2.14.1")
    world.faults = [(lambda r: r.headers.get("x-scope-orgid") != "team-a|team-b", reply(b"no org id\n", "401 Unauth"))]
    url = under(stub, world, "/prometheus")
    async with watching(Endpoint(url=url)) as watch:
        await watch.until(lambda: watch.state is SourceState.DENIED, "denied")
        assert "set tenant" in watch.status.reason
    async with watching(Endpoint(url=url, tenant="team-a|team-b")) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round")
        assert dict(watch.status.versions) == {"Grafana Mimir": "2.14.1"}
        assert watch.state is SourceState.LIVE
    async with watching(Endpoint(url=stub.url, tenant="team-a|team-b")) as watch:
        await watch.until(lambda: watch.state is SourceState.DOWN, "down")
        assert "Mimir: /prometheus" in watch.status.reason


async def test_mimirs_limits_narrow_the_question(stub: StubServer, world: World) -> None:
    words = "the query exceeded the maximum number of chunks (err-mimir-max-chunks-per-query)"
    world.faults = [
        (lambda r: r.query.count("DCGM_") > 3, reply(error("execution", words), "422 Unprocessable Entity"))
    ]
    async with watching(Endpoint(url=stub.url)) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round")
        assert watch.state is SourceState.LIVE
        assert value(watch.rows()[0], "power_w") == 233.5
        assert "narrowed" in watch.findings()


async def test_victoriametrics_is_known_by_its_flag_and_not_by_the_version_it_imitates(
    stub: StubServer, world: World
) -> None:
    world.routes["/api/v1/status/buildinfo"] = build(version="2.24.0")
    world.more = {"isPartial": False, "stats": {"seriesFetched": "2", "executionTimeMsec": 1}}
    url = under(stub, world, "/select/0/prometheus")
    async with watching(Endpoint(url=url)) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round")
        assert dict(watch.status.versions) == {"VictoriaMetrics": "version not told"}
        assert watch.state is SourceState.LIVE
        world.more = {"isPartial": True}
        world.without(UUID=uuid(1, 1))
        await watch.rounds()
        assert watch.state is SourceState.DEGRADED
        assert "partial" in watch.status.reason
        assert watch.rows()[1].presence is Presence.PRESENT


GMP = "http://monitoring.googleapis.com/v1/projects/p/location/global/prometheus"


@pytest.fixture
def through(stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> StubServer:
    """Let every address lead to the stub, as the name of a managed service is how it is known."""
    monkeypatch.setenv("http_proxy", stub.url)
    return stub


async def test_google_managed_prometheus(through: StubServer, world: World, tmp_path: Path) -> None:
    count = tmp_path / "count"
    script = f"p = {str(count)!r}; open(p, 'a').write('x'); print('token-%d' % len(open(p).read()))"
    good = {"token-1", "token-2"}

    def fits(request: Request) -> bool:
        return request.headers.get("authorization", "").removeprefix("Bearer ") not in good

    labels = {"cluster": "c1", "node_name": "gke-1", "namespace_name": "lab", "pod_name": "train-0"}
    labels |= {"accelerator_id": uuid(7, 0), "model": "nvidia-h100", "instance": ""}
    world.series = []
    world.put("kubernetes_io:container_accelerator_duty_cycle", labels, 64.0)
    world.put("kubernetes_io:container_accelerator_memory_used", labels, 2.0**30)
    world.routes = {}
    world.faults = [
        (fits, reply(b'{"error":{"code":401,"status":"UNAUTHENTICATED"}}', "401 Unauthorized")),
        (lambda r: "." in r.form.get("start", ""), reply(b'{"status":"success","data":null}')),
    ]
    endpoint = Endpoint(url=GMP, token_command=(sys.executable, "-c", script))
    async with watching(endpoint) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round")
        assert dict(watch.status.versions) == {"Google Managed Prometheus": "version not told"}
        assert watch.state is SourceState.LIVE
        (row,) = watch.rows()
        assert (row.key.cluster, row.key.host, row.key.uuid) == ("c1", "gke-1", uuid(7, 0))
        assert value(row, "utilization") == 64.0
        assert value(row, "memory_used_mib") == 1024.0
        history = await watch.source.history(row.key, ("gke-1",), "utilization", 1.0)
        # A token lives for an hour.
        good.clear()
        good.add("token-2")
        await watch.rounds()
        assert watch.state is SourceState.LIVE
    assert history is not None
    ranges = [r for r in through.requests if r.path.endswith("/query_range")]
    assert ranges
    assert all(r.form[key].isdecimal() for r in ranges for key in ("start", "end", "step"))
    assert not any("partial_response" in r.form for r in through.requests)


async def test_a_service_that_takes_no_query_without_a_name_is_asked_name_by_name(
    stub: StubServer, world: World
) -> None:
    refused = reply(error("bad_data", "query must select on a metric name"), "400 Bad Request")
    world.faults = [(asks("__name__"), refused)]
    async with watching(Endpoint(url=stub.url)) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round")
        assert value(watch.rows()[0], "power_w") == 233.5
        assert value(watch.rows()[0], "memory_total_mib") == 81559.0
        assert watch.state is SourceState.DEGRADED
        assert "names could not be listed" in watch.status.reason


async def test_amazon_wants_signed_requests(through: StubServer) -> None:
    through.answer = reply(b'{"message":"Missing Authentication Token"}', "403 Forbidden")
    async with watching(Endpoint(url="http://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-1")) as watch:
        await watch.until(lambda: watch.state is SourceState.DENIED, "denied")
        assert "SigV4" in watch.status.reason


async def test_a_range_of_hours_is_asked_on_a_grid_of_its_own_step(stub: StubServer, world: World) -> None:
    async with watching(Endpoint(url=stub.url)) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round")
        row = watch.rows()[0]
        history = await watch.source.history(row.key, ("gpu-001",), "utilization", 2.0)
    assert history is not None
    assert {v for v in history.values if not math.isnan(v)} == {71.0}
    assert history.end <= time.time()
    (asked,) = (r for r in stub.requests if r.path.endswith("/query_range"))
    start, end, step = (int(asked.form[name]) for name in ("start", "end", "step"))
    assert start % step == end % step == 0
    assert (end - start) / step <= 11_000
