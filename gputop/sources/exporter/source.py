"""An exporter read directly: one page a round, decoded as Prometheus' samples are."""

import math
import socket
import time
from collections.abc import AsyncIterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from msgspec import structs

from gputop.model.endpoint import Endpoint
from gputop.model.facts import Batch, Fact, HoldersFact
from gputop.model.status import Cost, Finding
from gputop.model.text import clean
from gputop.sources.base import DemandBoard, SourceError
from gputop.sources.exporter.client import ExporterClient, Page
from gputop.sources.metrics.decode import Decoder
from gputop.sources.metrics.labels import is_local
from gputop.sources.metrics.lacking import exporters, generation, lacking
from gputop.sources.metrics.sample import Sample
from gputop.sources.metrics.text import Text, local_times, read_text

_RANK: Final = 1
_LEAST_INTERVAL_S: Final = 5.0
"""dcgm-exporter collects each 30 s by default; asking faster than this only costs it time."""
_STALE_AFTER_ROUNDS: Final = 3
_FACTS_PER_BATCH: Final = 300
_SKEW_WORTH_TELLING_S: Final = 5.0


class ExporterSource:
    """One exporter; see `gputop.sources.base.Source`.

    Args:
        endpoint: Where and as whom; a URL without a path means /metrics.
    """

    kind = "exporter"
    deadline_s = 60.0

    def __init__(self, endpoint: Endpoint) -> None:
        parts = urlsplit(endpoint.url if "://" in endpoint.url else f"http://{endpoint.url}")
        path = parts.path if parts.path not in {"", "/"} else "/metrics"
        # Credentials in the address are settled before; what is left of them must not be shown.
        netloc = parts.netloc.rpartition("@")[2]
        url = parts._replace(netloc=netloc, path=path).geturl()
        # One address may serve the pages of several exporters.
        self.name = endpoint.name or clean(f"exporter {netloc}{path.removesuffix('/metrics')}")
        self.found = endpoint.found
        self.target = clean(parts._replace(netloc=netloc, path=path, query="").geturl())
        host = parts.hostname or ""
        self._client = ExporterClient(url, endpoint)
        self._decoder = Decoder(
            source=self.name,
            rank=_RANK,
            cluster=endpoint.cluster,
            default_host=socket.gethostname() if is_local(host) else host,
        )
        self._trouble = ""
        self._is_silent = False
        self._versions: dict[str, str] = {}
        self._last_skew_s = 0.0
        self._gpus = 0
        self._requests = 0
        self._bytes = 0
        self._cpu_s = 0.0
        self._last_s: float | None = None

    def trouble(self) -> str:
        """Return what of the page could not be used, or ""."""
        return self._trouble

    def versions(self) -> tuple[tuple[str, str], ...]:
        """Return the exporter's family, generation and version, and the driver's."""
        return tuple({**self._versions, **self._decoder.versions}.items())

    def findings(self) -> tuple[Finding, ...]:
        """Return what the exporter tells and what it lacks, with the line to add."""
        if self._last_s is None:
            return ()
        found = [Finding(f"{self._gpus} GPUs and MIG instances", severity="ok" if self._gpus else "warning")]
        if abs(self._last_skew_s) > _SKEW_WORTH_TELLING_S:
            words = f"its clock is {self._last_skew_s:+.0f} s from ours; times on its page are corrected"
            found.append(Finding(words, severity="warning"))
        return (*found, *lacking(self._decoder.names))

    def cost(self) -> Cost:
        """Return requests, bytes and the time of reading."""
        slowest = (("GET", self._last_s),) if self._last_s is not None else ()
        return Cost(self._requests, self._bytes, self._cpu_s, self._last_s, slowest)

    async def aclose(self) -> None:
        """Let go of the connection; a request under way is not waited for."""
        self._client.close()

    async def batches(self, board: DemandBoard) -> AsyncIterator[Batch]:
        """Read a page each round.

        Raises:
            SourceError: There is no page; the GPUs told before are silent then, not gone.
        """
        while True:
            interval_s = max(_LEAST_INTERVAL_S, board.current.interval_s)
            began = time.monotonic()
            self._requests += 1
            try:
                facts = await self._client.fetch(self._facts)
            except SourceError as error:
                # Told once for each outage: a batch means that the source is alive.
                if not self._is_silent:
                    self._is_silent = True
                    now = time.time()
                    silence = self._decoder.silence(error.reason, now)
                    for batch in self._batches(silence, now, interval_s) if silence else ():
                        yield structs.replace(batch, round_done=False)
                raise
            self._is_silent = False
            self._last_s = time.monotonic() - began
            for batch in self._batches(facts, time.time(), interval_s):
                yield batch
            await board.wait(interval_s)

    def _facts(self, page: Page) -> list[Fact]:
        began = time.thread_time()
        self._bytes += page.size
        text = read_text(page.text)
        if text.refusal and page.text.strip():
            raise SourceError(text.refusal)
        self._last_skew_s = page.clock_skew_s
        samples = local_times(text.samples, page.clock_skew_s)
        is_cut = page.is_cut or text.is_cut
        facts = self._decoder.decode(samples, time.time(), complete=not is_cut and bool(samples))
        self._learn(samples)
        self._gpus = sum(1 for fact in facts if isinstance(fact, HoldersFact))
        self._trouble = self._words(text, page)
        if not self._gpus:
            facts = self._decoder.no_data("its exporter answers without GPU data")
        self._cpu_s += time.thread_time() - began
        return facts

    def _words(self, text: Text, page: Page) -> str:
        words = [text.trouble] if text.trouble else []
        if page.is_cut:
            words.append("the answer broke off")
        if not self._gpus:
            words.append("it answers without GPU data (reload, or the driver is unbound?)")
        return "; ".join(words)

    def _learn(self, samples: Sequence[Sample]) -> None:
        names = self._decoder.names
        families = exporters(names)
        if families:
            self._versions["exporter"] = ", ".join(families)
        words = generation(names)
        if words:
            self._versions["metrics"] = words
        for sample in samples:
            if sample.name.endswith("exporter_build_info") and sample.labels.get("version"):
                self._versions["version"] = clean(sample.labels["version"], 40)

    def _batches(self, facts: Sequence[Fact], at: float, interval_s: float) -> list[Batch]:
        count = max(1, math.ceil(len(facts) / _FACTS_PER_BATCH))
        return [
            Batch(
                source=self.name,
                rank=_RANK,
                at=at,
                stale_after_s=_STALE_AFTER_ROUNDS * interval_s,
                facts=tuple(facts[n * _FACTS_PER_BATCH : (n + 1) * _FACTS_PER_BATCH]),
                interval_s=interval_s,
                round_done=n == count - 1,
            )
            for n in range(count)
        ]
