"""The Prometheus source and the fleet it feeds, against a server that refuses, hangs, misleads and changes."""

import time
from collections.abc import AsyncIterator
from socket import socket

import pytest

from gputop.fleet import GpuState
from gputop.model.demand import Demand
from gputop.model.endpoint import Endpoint
from gputop.model.facts import Presence
from gputop.model.reading import STALE
from gputop.model.status import SourceState
from gputop.sources.prometheus.queries import SMALL_FLEET
from tests.integration.prometheus_rig import Answer, Request, StubServer, error, reply
from tests.integration.prometheus_world import Watch, World, absence, asks, printable, uuid, value, watching

HTML = b"<html><head><title>Sign in</title></head></html>"
AS_HTML = "Content-Type: text/html\r\n"


@pytest.fixture
async def watch(stub: StubServer, world: World) -> AsyncIterator[Watch]:
    async with watching(Endpoint(url=stub.url, timeout_s=1.0)) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a first round")
        yield watch


async def test_rows_values_ages_and_a_live_source(watch: Watch) -> None:
    one, two = watch.rows()
    assert (one.key.host, one.key.uuid, one.index) == ("gpu-001", uuid(1, 0), 0)
    assert (value(two, "utilization"), value(two, "memory_total_mib")) == (71.0, 81559.0)
    assert 3.5 < one.readings["power_w"].age_s(time.time()) < 10.0
    assert (watch.state, watch.status.reason) == (SourceState.LIVE, "")
    assert dict(watch.status.versions) == {"Prometheus": "3.5.0"}


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (reply(error("timeout", "query timed out in expression evaluation"), "503 Service Unavailable"),
         SourceState.DOWN, "the server is slow, asking less often: query timed out"),
        (reply(HTML, more=AS_HTML), SourceState.DENIED, "a web page in place of data: not logged in"),
        (reply(b"no org id", "401 Unauthorized"), SourceState.DENIED, "the tenant header is missing"),
        (reply(b"", "401 Unauthorized"), SourceState.DENIED, "token or password"),
        (reply(b"", "403 Forbidden"), SourceState.DENIED, "not allowed"),
        (reply(b"", "404 Not Found"), SourceState.DOWN, "path prefix"),
        (reply(b"", "302 Found", more="Location: https://sso.example/login\r\n"), SourceState.DENIED, "redirected"),
        (reply(b"", "429 Too Many Requests"), SourceState.DOWN, "fewer queries"),
        (reply(HTML, "502 Bad Gateway", more=AS_HTML), SourceState.DOWN, "the proxy answers, not the server"),
        (reply(error("unavailable", "TSDB not ready"), "503 Service Unavailable"), SourceState.DOWN, "not ready"),
        (reply(error("bad_data", "odd")), SourceState.DOWN, "does not take the query: odd"),
        (reply(b'{"status":"success","data":{"resultType":"vector","res', length=900), SourceState.DOWN, "broke off"),
        (reply(b'{"status":"success","data":{"resultType":"vector","res'), SourceState.DOWN, "no answer of the Prom"),
        (reply(b"[]"), SourceState.DOWN, "no answer of the Prometheus API"),
        (reply(b'{"status":"success","data":7}'), SourceState.DOWN, "another shape"),
        (lambda _connection, _request: None, SourceState.DOWN, "closed without an answer"),
    ],
)  # fmt: skip
async def test_a_server_that_refuses_says_why_and_rows_keep_their_values(
    watch: Watch, world: World, answer: Answer, state: SourceState, words: str
) -> None:
    world.faults = [(asks(), answer)]
    await watch.until(lambda: watch.state is state, "the state")
    assert words in watch.status.reason
    assert watch.status.reason.isprintable()
    assert watch.status.next_try_at is not None
    assert [value(row, "utilization") for row in watch.rows()] == [71.0, 71.0]
    assert all(row.presence is Presence.PRESENT for row in watch.rows())
    reading = watch.rows()[0].readings["utilization"]
    assert reading.state(time.time() + reading.origin.stale_after_s) == STALE
    world.faults = []
    await watch.until(lambda: watch.state is SourceState.LIVE, "live again")


@pytest.mark.parametrize("after", ["0", "86400"])
async def test_a_server_says_when_to_come_again_within_reason(watch: Watch, world: World, after: str) -> None:
    world.faults = [(asks(), reply(b"", "429 Too Many Requests", more=f"Retry-After: {after}\r\n"))]
    await watch.until(lambda: watch.state is SourceState.DOWN, "down")
    assert watch.status.next_try_at is not None
    assert 0.5 <= watch.status.next_try_at - watch.status.since <= 301.0


def _too_many_names(limit: int) -> Answer:
    """Refuse as Prometheus does what asks for more names than it can load, and answer what is narrower."""
    return reply(
        error("execution", "query processing would load too many samples into memory in query execution"),
        "422 Unprocessable Entity",
    ) if limit else reply(b"")  # fmt: skip


async def test_queries_that_are_too_wide_are_narrowed_and_that_is_said(stub: StubServer, world: World) -> None:
    world.faults = [(lambda r: r.query.count("|") > 2 and "DCGM_FI_DEV_FB" in r.query, _too_many_names(1))]
    async with watching(Endpoint(url=stub.url)) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round")
        assert watch.state is SourceState.LIVE
        assert value(watch.rows()[0], "memory_used_mib") == 18642.0
        assert "narrowed" in watch.findings()


async def test_a_metric_that_stays_too_wide_costs_that_metric_and_is_said(watch: Watch, world: World) -> None:
    world.set("DCGM_FI_DEV_POWER_USAGE", 300.0)
    world.set("DCGM_FI_DEV_GPU_UTIL", 12.0)
    world.faults = [(asks("DCGM_FI_DEV_GPU_UTIL"), _too_many_names(1))]
    await watch.until(lambda: value(watch.rows()[0], "power_w") == 300.0, "the other values")
    await watch.until(lambda: watch.state is SourceState.DEGRADED, "degraded")
    assert "too wide" in watch.status.reason
    assert value(watch.rows()[0], "utilization") == 71.0


async def test_a_server_that_hangs_midway_blocks_nothing_and_values_grow_old(
    watch: Watch, world: World, stub: StubServer
) -> None:
    def hang(_connection: socket, _request: Request) -> None:
        stub.ended.wait(30)

    asked = len(stub.requests)
    world.set("DCGM_FI_DEV_GPU_TEMP", 75.0)
    world.faults = [(asks("FB_USED", "kube_"), hang)]
    before = watch.rows()[0].readings["memory_used_mib"].origin.at
    await watch.until(lambda: watch.state is SourceState.DEGRADED, "degraded")
    assert "no answer within 1 s" in watch.status.reason
    # What can still be had is had.
    await watch.until(lambda: value(watch.rows()[0], "temperature_c") == 75.0, "the other values")
    reading = watch.rows()[0].readings["memory_used_mib"]
    assert (reading.value, reading.origin.at) == (18642.0, before)
    assert watch.rows()[0].readings["temperature_c"].origin.at > before
    assert len(stub.requests) - asked < 60
    world.faults = []
    await watch.until(lambda: watch.state is SourceState.LIVE, "live again")


async def test_a_server_that_hangs_at_everything_is_asked_no_further(
    watch: Watch, world: World, stub: StubServer
) -> None:
    def hang(_connection: socket, _request: Request) -> None:
        stub.ended.wait(30)

    world.faults = [(lambda r: asks()(r) and "time()" not in r.query, hang)]
    started = time.monotonic()
    await watch.until(lambda: watch.state is SourceState.DOWN, "down")
    assert "no answer within 1 s" in watch.status.reason
    assert time.monotonic() - started < 15
    assert [value(row, "utilization") for row in watch.rows()] == [71.0, 71.0]


async def test_remarks_of_the_server_are_shown_and_what_only_informs_is_no_trouble(watch: Watch, world: World) -> None:
    world.more = {"infos": ["PromQL info: metric might not be a counter \x1b[2J"]}
    await watch.until(lambda: "might not be a counter" in watch.findings(), "the info")
    assert watch.state is SourceState.LIVE
    assert printable(watch.findings().splitlines())
    world.more = {"warnings": ["PromQL warning: bucket label le is missing"]}
    await watch.until(lambda: watch.state is SourceState.DEGRADED, "degraded")
    assert "bucket label" in watch.status.reason


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"isPartial": True}, "partial"),
        ({"warnings": ['fetch series for {cluster="eu"}: rpc error: code = Unavailable']}, "rpc error"),
        ({"warnings": ["results truncated due to limit"]}, "truncated"),
    ],
)  # fmt: skip
async def test_what_a_partial_answer_lacks_is_not_missing(
    watch: Watch, world: World, more: dict[str, object], words: str
) -> None:
    world.host(2)
    await watch.until(lambda: len(watch.rows()) == 4, "four rows")
    world.more = more
    world.without(UUID=uuid(1, 1))
    world.without(instance="10.0.0.2:9400")
    await watch.rounds()
    assert watch.state is SourceState.DEGRADED
    assert words in watch.status.reason
    assert [row.presence for row in watch.rows()] == [Presence.PRESENT] * 4
    assert [value(row, "utilization") for row in watch.rows()] == [71.0] * 4
    world.more = {}
    await watch.until(lambda: watch.rows()[1].presence is Presence.MISSING, "missing, once the answer is whole")
    assert watch.rows()[3].presence is Presence.UNKNOWN
    assert "no scrape target" in watch.rows()[3].presence_reason


@pytest.mark.parametrize(
    ("spelt", "words"),
    [
        ("NaN", "NaN"), ("+Inf", "implausible"), ("-Inf", "implausible"), ("-40", "implausible"),
        ("808334905", "implausible"), ("4294967295", "blank"), ("2147483634", "not supported"),
        ("9223372036854776000", "blank"), ("1e400", "implausible"), ("ERROR - FAILED TO CONVERT TO STRING", "NaN"),
    ],
)  # fmt: skip
async def test_a_number_that_is_none_costs_its_own_cell_only(
    stub: StubServer, world: World, spelt: str, words: str
) -> None:
    world.raw = {("DCGM_FI_DEV_GPU_UTIL", "0"): spelt}
    async with watching(Endpoint(url=stub.url)) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round")
        one, two = watch.rows()
        assert value(one, "utilization") is None
        assert words in absence(one, "utilization")
        assert value(two, "utilization") == 71.0
        assert value(one, "power_w") == 233.5
        assert watch.state is SourceState.LIVE


@pytest.mark.parametrize("broken", [71, None, {"count": 1}, []])
async def test_a_series_of_another_shape_costs_that_series_and_is_said(
    stub: StubServer, world: World, broken: object
) -> None:
    world.raw = {("DCGM_FI_DEV_GPU_UTIL", "0"): broken}
    async with watching(Endpoint(url=stub.url)) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round")
        one, two = watch.rows()
        assert value(one, "utilization") is None
        assert (value(one, "power_w"), value(two, "utilization")) == (233.5, 71.0)
        assert watch.state is SourceState.DEGRADED
        assert "could not be read" in watch.status.reason


@pytest.mark.parametrize("hosts", [1, SMALL_FLEET // 8 + 2])
async def test_of_two_series_of_one_gpu_the_newest_counts_in_fleets_of_any_size(stub: StubServer, hosts: int) -> None:
    world = World()
    stub.answer = world.answer
    for host in range(2, hosts + 1):
        world.host(host, 8)
    old, new = ({"exported_pod": f"job-{n}", "exported_namespace": "lab"} for n in (1, 2))
    world.host(1, 2, age_s=90.0, **old)
    world.host(1, 2, age_s=4.0, **new)
    world.set("DCGM_FI_DEV_FB_USED", 70110.0, exported_pod="job-1")
    world.set("DCGM_FI_DEV_FB_USED", 1200.0, exported_pod="job-2")
    world.set("DCGM_FI_DEV_GPU_UTIL", 3.0, exported_pod="job-2")
    async with watching(Endpoint(url=stub.url)) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round", deadline_s=60.0)
        rows = [row for row in watch.rows() if row.key.host == "gpu-001"]
        assert [value(row, "memory_used_mib") for row in rows] == [1200.0, 1200.0]
        assert [value(row, "utilization") for row in rows] == [3.0, 3.0]
        assert [h.name for row in rows for claim in row.holders for h in claim.holders] == ["job-2", "job-2"]
        assert len(watch.rows()) == (hosts - 1) * 8 + 2
        assert watch.state is SourceState.LIVE


async def test_replicas_that_nobody_merges_double_every_series_of_a_large_fleet(stub: StubServer) -> None:
    world = World()
    stub.answer = world.answer
    hosts = SMALL_FLEET // 4 + 4
    for host in range(1, hosts + 1):
        world.host(host, 4, age_s=4.0, prometheus_replica="a")
        world.host(host, 4, age_s=19.0, prometheus_replica="b")
    world.set("DCGM_FI_DEV_GPU_UTIL", 5.0, prometheus_replica="a")
    async with watching(Endpoint(url=stub.url)) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round", deadline_s=60.0)
        rows = watch.rows()
        assert len(rows) == hosts * 4
        assert {value(row, "utilization") for row in rows} == {5.0}
        assert {value(row, "power_w") for row in rows} == {233.5}
        assert max(row.readings["utilization"].age_s(time.time()) for row in rows) < 15.0


async def test_copies_of_one_reading_for_each_pod_of_a_shared_gpu_are_one(stub: StubServer) -> None:
    world = World()
    stub.answer = world.answer
    for share in range(3):
        world.host(1, 1, vgpu=str(share), exported_pod=f"nb-{share}", exported_namespace="lab")
    async with watching(Endpoint(url=stub.url)) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round")
        (row,) = watch.rows()
        assert value(row, "utilization") == 71.0
        assert [h.name for claim in row.holders for h in claim.holders] == ["nb-0", "nb-1", "nb-2"]


async def test_links_are_added_up_and_not_reduced_to_the_busiest_in_a_large_fleet(stub: StubServer) -> None:
    world = World()
    stub.answer = world.answer
    for host in range(1, SMALL_FLEET // 8 + 2):
        world.host(host, 8)
    for link in range(3):
        labels = {"UUID": uuid(1, 0), "Hostname": "gpu-001", "gpu": "0", "instance": "10.0.0.1:9400"}
        world.put("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", labels | {"nvlink": str(link)}, 2.0)
    async with watching(Endpoint(url=stub.url)) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round", deadline_s=60.0)
        row = next(r for r in watch.rows() if r.key.host == "gpu-001" and r.index == 0)
        assert value(row, "nvlink_replay_errors") == 6.0


NASTY = "\x1b]0;owned\x07\x1b[2Jlate\n[bold red]x[/]\u202eabc"


async def test_labels_cannot_write_to_the_terminal(stub: StubServer) -> None:
    world = World()
    stub.answer = world.answer
    world.host(1, 1, modelName=NASTY, exported_pod=NASTY, exported_namespace=NASTY)
    world.host(2, 1, Hostname=NASTY, instance=f"{NASTY}:9400")
    world.put("up", {"job": "dcgm-exporter", "instance": f"{NASTY}:9401"}, 0.0)
    async with watching(Endpoint(url=stub.url)) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round")
        assert len(watch.rows()) == 2
        view = watch.fleet.view()
        shown = [repr(part) for part in (*view.gpus.values(), *view.nodes.values(), *view.sources.values())]
        assert printable(shown)
        texts = [t for row in watch.rows() for r in row.readings.values() if (t := r.text) is not None]
        texts += [h.name for row in watch.rows() for claim in row.holders for h in claim.holders]
        texts += [t.fact.text for node in view.nodes.values() for t in node.troubles]
        texts += [*(key.host for key in view.nodes), watch.status.reason, watch.findings().replace("\n", " ")]
        assert printable(texts)
        assert "silent" in watch.status.reason


@pytest.mark.parametrize("skew_s", [3600.0, -3600.0])
async def test_a_server_whose_clock_is_an_hour_off(stub: StubServer, world: World, skew_s: float) -> None:
    world.skew_s = skew_s
    async with watching(Endpoint(url=stub.url)) as watch:
        await watch.until(lambda: watch.rounds_done > 1, "rounds")
        reading = watch.rows()[0].readings["utilization"]
        assert 2.0 < reading.age_s(time.time()) < 10.0
        assert reading.origin.at < time.time()
        assert watch.state is SourceState.DEGRADED
        assert f"3600 s {'ahead of' if skew_s > 0 else 'behind'} ours" in watch.status.reason
        # The clock is set right while one watches.
        world.skew_s = 0.0
        await watch.until(lambda: watch.state is SourceState.LIVE, "live")
        assert 2.0 < watch.rows()[0].readings["utilization"].age_s(time.time()) < 10.0


async def test_an_exporter_whose_clock_is_ahead_of_the_servers(watch: Watch, world: World) -> None:
    def stamp(ahead_s: float) -> None:
        world.series = [s._replace(at=-ahead_s) for s in world.series]

    stamp(3600.0)
    await watch.until(lambda: watch.state is SourceState.DEGRADED, "degraded")
    assert "10.0.0.1:9400" in watch.status.reason
    assert "ahead of the server's clock" in watch.status.reason
    await watch.rounds()
    reading = watch.rows()[0].readings["utilization"]
    assert reading.age_s(time.time()) < 10.0
    assert reading.origin.at < time.time() + 1.0


async def test_a_server_that_does_not_tell_its_time_is_said_to(stub: StubServer, world: World) -> None:
    world.faults = [
        (lambda r: r.query == "time()", reply(b'{"status":"success","data":{"resultType":"scalar","result":[1,"x"]}}'))
    ]
    async with watching(Endpoint(url=stub.url)) as watch:
        await watch.until(lambda: watch.rounds_done > 0, "a round")
        assert watch.state is SourceState.DEGRADED
        assert "ages may be wrong" in watch.status.reason
        assert value(watch.rows()[0], "utilization") == 71.0


def _by_uuid(watch: Watch) -> dict[tuple[str, str], GpuState]:
    return {(row.key.host, row.key.uuid): row for row in watch.rows()}


async def test_a_host_that_comes_back_with_other_boards(watch: Watch, world: World) -> None:
    world.without(Hostname="gpu-001")
    for gpu in range(2):
        world.host(1, 0)
        labels = {"UUID": uuid(99, gpu), "Hostname": "gpu-001", "gpu": str(gpu), "instance": "10.0.0.1:9400"}
        world.put("DCGM_FI_DEV_GPU_TEMP", labels, 40.0)
        world.put("DCGM_FI_DEV_GPU_UTIL", labels, 9.0)
    await watch.until(lambda: len(watch.rows()) == 4, "old and new rows")
    await watch.rounds()
    rows = _by_uuid(watch)
    for gpu in range(2):
        old, new = rows["gpu-001", uuid(1, gpu)], rows["gpu-001", uuid(99, gpu)]
        assert old.presence is Presence.MISSING
        assert (value(old, "utilization"), value(new, "utilization")) == (71.0, 9.0)
        assert new.presence is Presence.PRESENT


async def test_boards_that_move_to_another_host(watch: Watch, world: World) -> None:
    world.series = [
        s._replace(labels=s.labels.having({"Hostname": "gpu-777", "instance": "10.0.9.9:9400"}), value=33.0)
        if s.name == "DCGM_FI_DEV_GPU_UTIL"
        else s._replace(labels=s.labels.having({"Hostname": "gpu-777", "instance": "10.0.9.9:9400"}))
        for s in world.series
        if s.name != "up"
    ]
    await watch.until(lambda: ("gpu-777", uuid(1, 0)) in _by_uuid(watch), "the row on the new host")
    await watch.rounds()
    rows = _by_uuid(watch)
    assert value(rows["gpu-777", uuid(1, 0)], "utilization") == 33.0
    assert rows["gpu-777", uuid(1, 0)].presence is Presence.PRESENT
    old = rows.get(("gpu-001", uuid(1, 0)))
    if old is not None:
        # It keeps what was last read there, and says that nobody tells of it now.
        assert (old.presence, value(old, "utilization")) == (Presence.UNKNOWN, 71.0)
        assert old.presence_reason


async def test_one_uuid_on_two_hosts_at_once_stays_two_rows(watch: Watch, world: World) -> None:
    for one in list(world.series):
        if one.name != "up":
            labels = one.labels.having({"Hostname": "gpu-clone", "instance": "10.0.9.9:9400"})
            world.put(one.name, labels.pairs, 20.0 if one.name == "DCGM_FI_DEV_GPU_UTIL" else one.value)
    await watch.until(lambda: len(watch.rows()) == 4, "four rows")
    await watch.rounds()
    assert sorted((r.key.host, value(r, "utilization")) for r in watch.rows() if r.index == 0) == [
        ("gpu-001", 71.0), ("gpu-clone", 20.0)
    ]  # fmt: skip


async def test_a_silent_exporter_is_named_and_its_rows_stay(watch: Watch, world: World) -> None:
    world.without(UUID=uuid(1, 0))
    world.without(UUID=uuid(1, 1))
    world.set("up", 0.0, instance="10.0.0.1:9400")
    world.host(2)
    await watch.until(lambda: len(watch.rows()) == 4, "the other host")
    await watch.rounds()
    assert "1 of 2 exporters silent: 10.0.0.1:9400" in watch.status.reason
    old = watch.rows()[0]
    assert (old.presence, value(old, "utilization")) == (Presence.UNKNOWN, 71.0)
    assert "10.0.0.1:9400" in old.presence_reason


async def test_an_exporter_that_was_silent_from_the_start_leaves_no_trouble_behind(
    stub: StubServer, world: World
) -> None:
    address = "10.0.0.2:9400"
    world.put("up", {"job": "dcgm-exporter", "instance": address}, 0.0)
    async with watching(Endpoint(url=stub.url)) as watch:

        def troubles() -> list[str]:
            return [t.fact.text for node in watch.fleet.view().nodes.values() for t in node.troubles]

        await watch.until(lambda: watch.rounds_done > 0, "a round")
        assert address in watch.status.reason
        assert any(address in text for text in troubles())
        world.without(instance=address)
        world.host(2)
        await watch.until(lambda: watch.state is SourceState.LIVE, "live")
        assert len(watch.rows()) == 4
        assert troubles() == []


@pytest.mark.parametrize("processes", [True, False])
async def test_processes_that_an_exporter_tells_are_asked_for_where_they_are_looked_at(
    stub: StubServer, processes: bool
) -> None:
    world = World()
    stub.answer = world.answer
    board = {"hostname": "tern-04", "index": "0", "uuid": uuid(9, 0), "instance": "10.0.0.9:8000", "job": "nvitop"}
    world.put("gpu_utilization_Percentage", board | {"devicename": "NVIDIA L4"}, 8.0)
    world.put("process_gpu_memory_MiB", board | {"pid": "700", "username": "mara"}, 4096.0)
    wanted = Demand(quantities=frozenset({"utilization"}), processes=processes)
    async with watching(Endpoint(url=stub.url), wanted) as watch:
        await watch.until(lambda: watch.rounds_done > 1, "two rounds")
        (row,) = watch.rows()
    lists = [table.processes for table in row.processes]
    assert bool(lists) == processes
    if processes and isinstance(lists[0], tuple):
        (process,) = lists[0]
        assert (process.pid, process.user, process.memory_mib) == (700, "mara", 4096.0)
