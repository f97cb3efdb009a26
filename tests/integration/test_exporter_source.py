"""An exporter read directly, over real sockets: what it tells, and each fault in its own words."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from email.utils import formatdate
from pathlib import Path
from socket import socket
from typing import cast

import pytest

from gputop.fleet import Fleet
from gputop.fleet.state import View
from gputop.model.demand import Demand
from gputop.model.endpoint import Endpoint
from gputop.model.facts import Batch, Presence
from gputop.model.secret import Secret
from gputop.model.status import SourceState
from gputop.sources.base import DemandBoard, SourceError
from gputop.sources.exporter.client import ExporterClient
from gputop.sources.exporter.source import ExporterSource
from tests.integration.exporter_rig import PAGE, StubExporter, reply, running


@pytest.fixture
def stub() -> Iterator[StubExporter]:
    with running() as server:
        yield server


class Reader:
    """A source with the fleet it feeds, one round at a time."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.source = ExporterSource(endpoint)
        self.fleet = Fleet()

    async def round(self) -> View:
        """Read one round; a failure is raised after what it says was applied."""
        rounds = self.source.batches(DemandBoard(Demand()))
        try:
            async for batch in rounds:
                self.fleet.apply(batch)
                if batch.round_done:
                    break
        finally:
            await close(rounds)
        return self.fleet.view()

    async def failure(self) -> SourceError:
        with pytest.raises(SourceError) as caught:
            await self.round()
        return caught.value


async def close(rounds: AsyncIterator[Batch]) -> None:
    # A source gives a generator, though the protocol promises only an iterator.
    await cast(AsyncGenerator[Batch, None], rounds).aclose()


def endpoint(stub: StubExporter, **more: object) -> Endpoint:
    return Endpoint(**{"url": stub.url, "timeout_s": 2.0, "found": "--exporter", **more})


async def test_a_page_becomes_a_row(stub: StubExporter) -> None:
    reader = Reader(endpoint(stub))
    view = await reader.round()
    (gpu,) = view.gpus.values()
    assert (gpu.key.host, gpu.key.uuid, gpu.index, gpu.bus_id) == ("n1", "GPU-a0", 0, "00000000:3b:00.0")
    assert gpu.readings["power_w"].value == 30.5
    assert gpu.readings["power_w"].origin.rank == 1
    assert time.time() - gpu.readings["power_w"].origin.at < 10
    assert stub.requests[0].startswith("GET /metrics ")
    source = reader.source
    assert source.name == f"exporter {stub.url.removeprefix('http://')}"
    assert dict(source.versions())["metrics"] == "names before DCGM 4.6"
    assert any("DCGM_FI_DEV_FB_RESERVED" in f.advice for f in source.findings())
    assert (source.cost().requests, source.cost().bytes_read, source.trouble()) == (1, len(PAGE), "")
    await source.aclose()


HTML = b"<html><head><title>Sign in</title></head></html>"


@pytest.mark.parametrize(
    ("body", "status", "state", "words"),
    [
        (HTML, "200 OK", SourceState.DOWN, 'a web page titled "Sign in"'),
        (b'{"status":"error","error":"no"}', "200 OK", SourceState.DOWN, "JSON"),
        (b"error collecting metrics\n", "200 OK", SourceState.DOWN, "no metrics: error collecting"),
        (b"", "401 Unauthorized", SourceState.DENIED, "not logged in"),
        (b"", "403 Forbidden", SourceState.DENIED, "not allowed"),
        (b"404 page not found", "404 Not Found", SourceState.DOWN, "is the path right"),
        (b"collected metric was duplicated", "500 Internal Server Error", SourceState.DOWN, "was duplicated"),
        (HTML, "503 Service Unavailable", SourceState.DOWN, "starting, or overloaded"),
    ],
)
async def test_an_answer_that_is_no_page(
    stub: StubExporter, body: bytes, status: str, state: SourceState, words: str
) -> None:
    reader = Reader(endpoint(stub))
    await reader.round()
    stub.answer = reply(body, status)
    error = await reader.failure()
    assert error.state is state
    assert words in error.reason
    (gpu,) = reader.fleet.view().gpus.values()
    # The row and its last values stay; nothing is known of the GPU.
    assert gpu.presence is Presence.UNKNOWN
    assert gpu.readings["power_w"].value == 30.5
    stub.answer = reply(PAGE.encode())
    (gpu,) = (await reader.round()).gpus.values()
    assert gpu.presence is Presence.PRESENT


async def test_an_outage_is_told_once_and_an_unknown_host_is_not_made_up(stub: StubExporter) -> None:
    stub.answer = reply(b"", "500 Internal Server Error")
    reader = Reader(endpoint(stub))
    await reader.failure()
    assert not reader.fleet.view().nodes
    stub.answer = reply(PAGE.encode())
    await reader.round()
    stub.answer = reply(b"", "500 Internal Server Error")
    board = DemandBoard(Demand())
    told: list[Batch] = []

    async def drain() -> None:
        async for batch in reader.source.batches(board):
            told.append(batch)  # noqa: PERF401 - what came before the failure counts

    for _ in range(3):
        with pytest.raises(SourceError):
            await drain()
    assert len(told) == 1
    assert not told[0].round_done


async def test_a_redirect_is_not_followed(stub: StubExporter) -> None:
    stub.answer = reply(b"", "302 Found", "Location: https://login.example/?x=1\r\n")
    error = await Reader(endpoint(stub)).failure()
    assert "redirected" in error.reason
    assert len(stub.requests) == 1


async def test_nobody_listens() -> None:
    with running() as stub:
        dead = endpoint(stub)
    error = await Reader(dead).failure()
    assert "connection refused" in error.reason


def _hang(stub: StubExporter, head: bytes = b"", drip: bytes = b"") -> None:
    def answer(connection: socket, _request: str) -> None:
        connection.sendall(head)
        while not stub.ended.wait(0.05):
            if drip:
                connection.sendall(drip)

    stub.answer = answer


@pytest.mark.parametrize(
    ("head", "drip"),
    [
        (b"", b""),
        (b"HTTP/1.1 200 OK\r\n\r\n" + PAGE.encode(), b""),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"A 1\n"),
    ],
    ids=["no answer", "stops in the middle", "a line now and then"],
)
async def test_a_server_that_hangs_or_drips_is_left(stub: StubExporter, head: bytes, drip: bytes) -> None:
    _hang(stub, head, drip)
    began = time.monotonic()
    error = await Reader(endpoint(stub, timeout_s=0.5)).failure()
    assert "0 s" in error.reason or "complete" in error.reason
    assert time.monotonic() - began < 5


async def test_headers_that_drip_are_left_too(stub: StubExporter) -> None:
    _hang(stub, b"HTTP/1.1 200 OK\r\nX: ", b"x")
    reader = Reader(endpoint(stub, timeout_s=0.3))
    assert "no complete answer" in (await reader.failure()).reason
    # The thread is still on it: no second one joins it.
    assert "still hangs" in (await reader.failure()).reason
    assert len(stub.requests) == 1


async def test_a_broken_off_page_keeps_what_came(stub: StubExporter) -> None:
    two = PAGE + PAGE.replace("GPU-a0", "GPU-a1").replace('gpu="0"', 'gpu="1"').replace("3B", "5E")
    stub.answer = reply(two.encode())
    reader = Reader(endpoint(stub))
    await reader.round()
    stub.answer = reply(PAGE.encode() + b"DCGM_FI_DEV_SM_CLOCK{gp", length=9000)
    view = await reader.round()
    assert "broke off" in reader.source.trouble()
    assert [g.presence for g in view.gpus.values()] == [Presence.PRESENT] * 2


async def test_an_empty_answer_is_no_data_and_not_no_gpus(stub: StubExporter) -> None:
    reader = Reader(endpoint(stub))
    await reader.round()
    stub.answer = reply(b"")
    view = await reader.round()
    (gpu,) = view.gpus.values()
    assert gpu.presence is Presence.UNKNOWN
    assert [t.fact.code for n in view.nodes.values() for t in n.troubles][:1] == ["exporter_no_data"]
    assert "without GPU data" in reader.source.trouble()


async def test_a_bad_line_is_told(stub: StubExporter) -> None:
    bad = 'DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-a0"} ERROR - FAILED TO CONVERT TO STRING\n'
    stub.answer = reply((PAGE + bad).encode())
    reader = Reader(endpoint(stub))
    assert len((await reader.round()).gpus) == 1
    assert "1 line cannot be read" in reader.source.trouble()


async def test_a_clock_an_hour_off(stub: StubExporter) -> None:
    theirs = time.time() + 3600
    page = PAGE.replace(" 41\n", f" 41 {theirs * 1000:.0f}\n").replace(" 30.5\n", f" 30.5 {theirs * 1000:.0f}\n")
    stub.answer = reply(page.encode(), more=f"Date: {formatdate(theirs, usegmt=True)}\r\n")
    reader = Reader(endpoint(stub))
    (gpu,) = (await reader.round()).gpus.values()
    assert abs(time.time() - gpu.readings["power_w"].origin.at) < 10
    assert any("clock" in f.text for f in reader.source.findings())


async def test_credentials_are_sent_and_not_shown(stub: StubExporter, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n", encoding="utf-8")
    reader = Reader(endpoint(stub, token_file=str(token), headers=(("X-Key", Secret("s3cret")),)))
    await reader.round()
    assert "Authorization: Bearer first" in stub.requests[0]
    assert "X-Key: s3cret" in stub.requests[0]
    token.write_text("the second\n", encoding="utf-8")
    await reader.round()
    assert "Authorization: Bearer the second" in stub.requests[1]
    stub.answer = reply(b"", "401 Unauthorized")
    shown = f"{await reader.failure()} {reader.source.target} {reader.source.name} {reader.source.findings()}"
    assert "second" not in shown
    assert "s3cret" not in shown


async def test_a_password_goes_as_basic_authentication(stub: StubExporter) -> None:
    await Reader(endpoint(stub, username="u", password=Secret("p"))).round()
    assert "Authorization: Basic dTpw" in stub.requests[0]


async def test_it_is_not_read_faster_than_it_can_change(stub: StubExporter) -> None:
    reader = Reader(endpoint(stub))
    board = DemandBoard(Demand(interval_s=0.1))
    rounds = reader.source.batches(board)
    batch = await anext(rounds)
    assert batch.interval_s == 5.0
    waiting = asyncio.ensure_future(anext(rounds))
    done, _ = await asyncio.wait({waiting}, timeout=0.3)
    assert not done
    board.refresh()
    assert (await waiting).facts
    await close(rounds)


@pytest.mark.parametrize("own", ["ca.pem", False])
def test_certificates_of_the_configuration_win_over_the_environment(
    stub: StubExporter, monkeypatch: pytest.MonkeyPatch, own: str | bool
) -> None:
    # requests lets REQUESTS_CA_BUNDLE override a session's verify (psf/requests#3829).
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/etc/other.pem")
    settings = {"ca_file": own} if own else {"insecure": True}
    session = ExporterClient(stub.url, endpoint(stub, **settings))._session
    merged = session.merge_environment_settings("https://n1:9400", {}, True, None, None)
    assert merged["verify"] == own
