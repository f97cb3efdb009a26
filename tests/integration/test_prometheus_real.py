"""The Prometheus source against a real Prometheus that scrapes exporter text: rows, silence, return, restart."""

import asyncio
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gputop.fleet import Fleet, GpuState
from gputop.model.demand import Demand
from gputop.model.endpoint import Endpoint
from gputop.model.facts import Presence
from gputop.model.status import SourceState, SourceStatus
from gputop.sources.base import DemandBoard
from gputop.sources.prometheus.source import PrometheusSource
from gputop.sources.supervisor import Supervisor

pytestmark = pytest.mark.real_prometheus

UUID = "GPU-e72b0ac6-47aa-d9df-9b50-5a5f1f925d0{i}"
LINE = (
    '{name}{{gpu="{i}",UUID="{uuid}",pci_bus_id="00000000:0{i}:00.0",modelName="NVIDIA H100",Hostname="gpu-a01"}} {v}\n'
)


class Exporter:
    """An exporter's page that a test can change, break and hang."""

    def __init__(self) -> None:
        self.util = 71
        self.gpus = 2
        self.status = 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = outer.page().encode()
                self.send_response(outer.status)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's own name
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.server.server_address[1]}"

    def page(self) -> str:
        values = {
            "DCGM_FI_DEV_GPU_UTIL": self.util, "DCGM_FI_DEV_GPU_TEMP": 61, "DCGM_FI_DEV_FB_USED": 18642,
            "DCGM_FI_DEV_FB_FREE": 62274, "DCGM_FI_DEV_FB_RESERVED": 643, "DCGM_FI_DEV_MEMORY_TEMP": 0,
            "DCGM_FI_DEV_POWER_USAGE": 9223372036854775794,
        }  # fmt: skip
        lines = [
            LINE.format(name=name, i=i, uuid=UUID.format(i=i), v=value)
            for i in range(self.gpus)
            for name, value in values.items()
        ]
        return "".join(lines)


class Server:
    """A real Prometheus in a folder of its own."""

    def __init__(self, folder: Path, target: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder = folder
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
            "scrape_configs:\n"
            f"- {{job_name: dcgm-exporter, static_configs: [{{targets: ['{target}']}}]}}\n",
            encoding="utf-8",
        )
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = shutil.which("prometheus")
        if program is None:
            if os.environ.get("CI"):
                pytest.fail("no prometheus binary, and CI must have one")
            pytest.skip("no prometheus binary on PATH")
        self.process = subprocess.Popen(
            [
                program, f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
                f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=error",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(20)


class Watch:
    """The source under its supervisor, filling a fleet."""

    def __init__(self, port: int) -> None:
        self.fleet = Fleet()
        self.status: SourceStatus | None = None
        self.board = DemandBoard(Demand())
        source = PrometheusSource(Endpoint(url=f"http://127.0.0.1:{port}", timeout_s=3.0))
        self.supervisor = Supervisor([source], self.board, self.fleet.apply, self._tell)

    def _tell(self, status: SourceStatus) -> None:
        self.status = status

    def rows(self) -> list[GpuState]:
        return sorted(self.fleet.view().gpus.values(), key=lambda g: g.index)

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            if time.monotonic() > deadline:
                seen = [(r.presence, r.presence_reason) for r in self.rows()]
                raise AssertionError(f"never {what}: {self.status}, {seen}")
            self.board.refresh()
            await asyncio.sleep(0.3)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[tuple[Exporter, Server, Watch]]:
    exporter = Exporter()
    server = Server(tmp_path, exporter.target)
    server.start()
    watch = Watch(server.port)
    watch.supervisor.start()
    yield exporter, server, watch
    await watch.supervisor.aclose()
    server.stop()
    exporter.server.shutdown()
    exporter.server.server_close()


def _number(row: GpuState, quantity: str) -> float | None:
    return row.readings[quantity].number if quantity in row.readings else None


async def test_rows_follow_scrapes_silence_return_and_restart(rig: tuple[Exporter, Server, Watch]) -> None:
    exporter, server, watch = rig
    await watch.until(lambda: len(watch.rows()) == 2 and _number(watch.rows()[0], "utilization") == 71, "two rows")
    row = watch.rows()[0]
    assert row.key.host == "gpu-a01"
    assert _number(row, "memory_total_mib") == 81559
    assert row.readings["memory_temperature_c"].state(time.time()) == "n/a"
    assert row.readings["power_w"].state(time.time()) == "n/a"
    assert 0 <= row.readings["utilization"].age_s(time.time()) < 30

    exporter.util = 12
    await watch.until(lambda: _number(watch.rows()[0], "utilization") == 12, "a new value")

    exporter.gpus = 1
    await watch.until(lambda: watch.rows()[1].presence is Presence.MISSING, "the second GPU missing")
    exporter.gpus = 2
    await watch.until(lambda: watch.rows()[1].presence is Presence.PRESENT, "the second GPU back")

    exporter.status = 500
    await watch.until(lambda: watch.rows()[0].presence is Presence.UNKNOWN, "GPUs unknown while the exporter fails")
    assert _number(watch.rows()[0], "utilization") == 12
    exporter.status = 200
    await watch.until(lambda: watch.rows()[0].presence is Presence.PRESENT, "GPUs back")

    server.stop()
    await watch.until(lambda: watch.status is not None and watch.status.state is SourceState.DOWN, "down")
    assert watch.status is not None
    assert "refused" in watch.status.reason
    assert len(watch.rows()) == 2
    server.start()
    exporter.util = 33
    await watch.until(lambda: _number(watch.rows()[0], "utilization") == 33, "live after a restart")
