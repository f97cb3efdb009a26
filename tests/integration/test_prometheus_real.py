"""The Prometheus source against a real Prometheus that scrapes exporters which fail, hang and have wrong clocks."""

import json
import socket
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from gputop.fleet import GpuState
from gputop.model.endpoint import Endpoint
from gputop.model.facts import Presence
from gputop.model.reading import STALE
from gputop.model.status import SourceState
from tests.integration.prometheus_world import Watch, value, watching

pytestmark = pytest.mark.real_prometheus

UUID = "GPU-e72b0ac6-47aa-d9df-9b50-5a5f1f925{b}0{i}"
LINE = (
    '{name}{{gpu="{i}",UUID="{uuid}",pci_bus_id="00000000:0{i}:00.0",modelName="NVIDIA H100",Hostname="{host}"}} '
    "{v}{stamp}\n"
)


class Loopback:
    """A server on the loopback that nobody waits for at its end."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.server.block_on_close = False
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.server.server_address[1]}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Silent(BaseHTTPRequestHandler):
    """A handler that writes nothing among the tests' output."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's own name
        return


class Exporter(Loopback):
    """An exporter's page that a test can change, break, hang and stamp with a time of its own."""

    def __init__(self, host: str = "gpu-a01", board: str = "0") -> None:
        self.host = host
        self.board = board
        self.util = 71
        self.gpus = 2
        self.status = 200
        self.clock_off_s: float | None = None
        self.hangs = threading.Event()
        self.ended = threading.Event()
        outer = self

        class Handler(Silent):
            def do_GET(self) -> None:
                if outer.hangs.is_set():
                    outer.ended.wait(60)
                    return
                body = outer.page().encode()
                self.send_response(outer.status)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(body)

        super().__init__(Handler)

    def page(self) -> str:
        values = {
            "DCGM_FI_DEV_GPU_UTIL": self.util, "DCGM_FI_DEV_GPU_TEMP": 61, "DCGM_FI_DEV_FB_USED": 18642,
            "DCGM_FI_DEV_FB_FREE": 62274, "DCGM_FI_DEV_FB_RESERVED": 643, "DCGM_FI_DEV_MEMORY_TEMP": 0,
            "DCGM_FI_DEV_POWER_USAGE": 9223372036854775794,
        }  # fmt: skip
        stamp = "" if self.clock_off_s is None else f" {(time.time() + self.clock_off_s) * 1000:.0f}"
        lines = [
            LINE.format(name=name, i=i, uuid=UUID.format(b=self.board, i=i), host=self.host, v=value, stamp=stamp)
            for i in range(self.gpus)
            for name, value in values.items()
        ]
        return "".join(lines)

    def close(self) -> None:
        self.ended.set()
        super().close()


class Server:
    """A real Prometheus in a folder of its own."""

    def __init__(self, program: str, folder: Path, *targets: str) -> None:
        self.program = program
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder = folder
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
            "scrape_configs:\n"
            f"- {{job_name: dcgm-exporter, static_configs: [{{targets: {list(targets)}}}]}}\n",
            encoding="utf-8",
        )
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                self.program, f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
                f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=error",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(20)


Rig = Callable[..., AbstractAsyncContextManager[tuple[Server, Watch]]]


@pytest.fixture
def rig(tmp_path: Path, prometheus_binary: str) -> Rig:
    """Return what runs a server that scrapes some exporters, and the source that reads it."""

    @asynccontextmanager
    async def run(*exporters: Exporter, via: Callable[[int], str] | None = None) -> AsyncIterator[tuple[Server, Watch]]:
        server = Server(prometheus_binary, tmp_path, *(e.target for e in exporters))
        server.start()
        url = via(server.port) if via else f"http://127.0.0.1:{server.port}"
        try:
            async with watching(Endpoint(url=url, timeout_s=3.0)) as watch:
                yield server, watch
        finally:
            server.stop()
            for exporter in exporters:
                exporter.close()

    return run


async def until(watch: Watch, condition: Callable[[], bool], what: str) -> None:
    """Wait for something as long as a slow machine may need to start a server and scrape some times."""
    await watch.until(condition, what, deadline_s=60.0, every_s=0.3)


def rows_of(watch: Watch, host: str) -> list[GpuState]:
    return [row for row in watch.rows() if row.key.host == host]


async def test_rows_follow_scrapes_silence_return_and_restart(rig: Rig) -> None:
    exporter = Exporter()
    async with rig(exporter) as (server, watch):
        await until(watch, lambda: [value(row, "utilization") for row in watch.rows()] == [71, 71], "two rows")
        row = watch.rows()[0]
        assert row.key.host == "gpu-a01"
        assert value(row, "memory_total_mib") == 81559
        assert row.readings["memory_temperature_c"].state(time.time()) == "n/a"
        assert row.readings["power_w"].state(time.time()) == "n/a"
        assert 0 <= row.readings["utilization"].age_s(time.time()) < 30

        exporter.util = 12
        await until(watch, lambda: value(watch.rows()[0], "utilization") == 12, "a new value")

        exporter.gpus = 1
        await until(watch, lambda: watch.rows()[1].presence is Presence.MISSING, "the second GPU missing")
        exporter.gpus = 2
        await until(watch, lambda: watch.rows()[1].presence is Presence.PRESENT, "the second GPU back")

        exporter.status = 500
        await until(
            watch, lambda: watch.rows()[0].presence is Presence.UNKNOWN, "GPUs unknown while the exporter fails"
        )
        assert value(watch.rows()[0], "utilization") == 12
        exporter.status = 200
        await until(watch, lambda: watch.rows()[0].presence is Presence.PRESENT, "GPUs back")

        server.stop()
        await until(watch, lambda: watch.state is SourceState.DOWN, "down")
        assert "refused" in watch.status.reason
        assert len(watch.rows()) == 2
        server.start()
        exporter.util = 33
        await until(watch, lambda: value(watch.rows()[0], "utilization") == 33, "live after a restart")


async def test_a_target_that_hangs_keeps_its_rows_and_is_named(rig: Rig) -> None:
    good, bad = Exporter(), Exporter("gpu-b02", board="1")
    async with rig(good, bad) as (_, watch):
        await until(watch, lambda: len(watch.rows()) == 4 and watch.state is SourceState.LIVE, "four rows")
        bad.hangs.set()
        good.util = 44
        await until(watch, lambda: bad.target in watch.status.reason, "the target named")
        assert watch.state is SourceState.DEGRADED
        assert "1 of 2 exporters silent" in watch.status.reason
        await until(watch, lambda: value(rows_of(watch, "gpu-a01")[0], "utilization") == 44, "the others go on")
        for row in rows_of(watch, "gpu-b02"):
            assert (row.presence, value(row, "utilization")) == (Presence.UNKNOWN, 71)
            assert bad.target in row.presence_reason
            reading = row.readings["utilization"]
            # Its last sample is from before it hung, and nothing makes it younger.
            assert reading.origin.at < rows_of(watch, "gpu-a01")[0].readings["utilization"].origin.at
            assert reading.state(reading.origin.at + reading.origin.stale_after_s + 1.0) == STALE
        troubles = [
            t.fact.text for n in watch.fleet.view().nodes.values() for t in n.troubles if n.key.host == "gpu-b02"
        ]
        assert any(bad.target in text for text in troubles)
        bad.hangs.clear()
        bad.ended.set()
        await until(watch, lambda: watch.state is SourceState.LIVE, "live again")
        assert all(row.presence is Presence.PRESENT for row in watch.rows())


async def test_an_exporter_that_is_silent_from_the_start_is_told(rig: Rig) -> None:
    good, bad = Exporter(), Exporter("gpu-b02", board="1")
    bad.status = 500
    async with rig(good, bad) as (_, watch):
        await until(watch, lambda: len(watch.rows()) == 2 and bad.target in watch.status.reason, "the target named")
        assert watch.state is SourceState.DEGRADED
        assert all(row.key.host == "gpu-a01" for row in watch.rows())
        texts = [t.fact.text for node in watch.fleet.view().nodes.values() for t in node.troubles]
        assert any(bad.target in text and "unknown" in text for text in texts)
        bad.status = 200
        await until(watch, lambda: len(watch.rows()) == 4 and watch.state is SourceState.LIVE, "its rows")
        await until(
            watch, lambda: not [t for n in watch.fleet.view().nodes.values() for t in n.troubles], "no trouble left"
        )


async def test_nothing_but_silent_exporters_is_not_a_server_without_gpus(rig: Rig) -> None:
    bad = Exporter()
    bad.status = 500
    async with rig(bad) as (_, watch):
        await until(watch, lambda: bad.target in watch.status.reason, "the target named")
        assert watch.state is SourceState.DEGRADED
        assert "no metric of any GPU exporter" in watch.status.reason


async def test_samples_that_are_stamped_late_are_old_from_the_start(rig: Rig) -> None:
    right, late = Exporter(), Exporter("gpu-b02", board="1")
    late.clock_off_s = -240.0
    async with rig(right, late) as (_, watch):
        await until(watch, lambda: len(watch.rows()) == 4, "four rows")
        now = time.time()
        for row in rows_of(watch, "gpu-b02"):
            reading = row.readings["utilization"]
            assert 230.0 < reading.age_s(now) < 300.0
            assert reading.state(now) == STALE
        assert all(row.readings["utilization"].age_s(now) < 60.0 for row in rows_of(watch, "gpu-a01"))


@pytest.mark.parametrize("off_s", [3600.0, -3600.0])
async def test_samples_that_are_stamped_an_hour_off_are_not_seen_and_that_is_told(rig: Rig, off_s: float) -> None:
    right, wrong = Exporter(), Exporter("gpu-b02", board="1")
    wrong.clock_off_s = off_s
    async with rig(right, wrong) as (_, watch):
        await until(watch, lambda: len(watch.rows()) == 2, "the rows of the other")
        await until(
            watch,
            lambda: any(wrong.target in t.fact.text for n in watch.fleet.view().nodes.values() for t in n.troubles),
            "the target told",
        )
        texts = [t.fact.text for n in watch.fleet.view().nodes.values() for t in n.troubles]
        assert any("answers without GPU data" in text for text in texts)


class WrongClock(Loopback):
    """What stands before a server and tells every time as a machine would whose clock is off."""

    def __init__(self, port: int, off_s: float) -> None:
        class Handler(Silent):
            def do_GET(self) -> None:
                self._pass(b"")

            def do_POST(self) -> None:
                self._pass(self.rfile.read(int(self.headers["Content-Length"])))

            def _pass(self, form: bytes) -> None:
                there = HTTPConnection("127.0.0.1", port, timeout=10)
                there.request(self.command, self.path, form, {"Content-Type": self.headers.get("Content-Type", "")})
                answer = there.getresponse()
                body = answer.read()
                there.close()
                if self.path.endswith("/query") and answer.status == 200:
                    body = _shifted(body, parse_qs(form.decode())["query"][0], off_s)
                self.send_response(answer.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def date_time_string(self, timestamp: float | None = None) -> str:
                return super().date_time_string((timestamp or time.time()) + off_s)

        super().__init__(Handler)


def _shifted(body: bytes, query: str, off_s: float) -> bytes:
    answer = json.loads(body)
    result = answer["data"]["result"]
    pairs = [result] if answer["data"]["resultType"] == "scalar" else [series["value"] for series in result]
    for pair in pairs:
        pair[0] += off_s
        if "timestamp(" in query or query == "time()":
            pair[1] = str(float(pair[1]) + off_s)
    return json.dumps(answer).encode()


@pytest.mark.parametrize("off_s", [3600.0, -3600.0])
async def test_a_server_whose_clock_is_an_hour_off(rig: Rig, off_s: float) -> None:
    shims: list[WrongClock] = []

    def via(port: int) -> str:
        shims.append(WrongClock(port, off_s))
        return f"http://{shims[0].target}"

    async with rig(Exporter(), via=via) as (_, watch):
        await until(watch, lambda: len(watch.rows()) == 2 and watch.rounds_done > 1, "two rows")
        assert 0.0 <= watch.rows()[0].readings["utilization"].age_s(time.time()) < 30.0
        assert watch.rows()[0].readings["utilization"].origin.at < time.time() + 1.0
        assert watch.state is SourceState.DEGRADED
        assert f"3600 s {'ahead of' if off_s > 0 else 'behind'} ours" in watch.status.reason
    shims[0].close()
