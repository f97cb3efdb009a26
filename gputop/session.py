"""What one run reads: sources chosen from the settings, the fleet they fill, and the clock they are held to."""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self

from gputop.config.config import WITH_DEMO, Config
from gputop.config.detect import Found, Surroundings, detect
from gputop.config.errors import ConfigError, nearest
from gputop.config.moment import parse_moment
from gputop.fleet import Fleet, Series
from gputop.model.demand import Demand
from gputop.model.endpoint import Endpoint
from gputop.model.identity import GpuKey
from gputop.model.text import clean
from gputop.sources.base import DemandBoard, Source, SourceError
from gputop.sources.supervisor import Supervisor

if TYPE_CHECKING:
    from gputop.demo.launcher import DemoHandle

_NVML_CHILD: Final = "gputop.sources.nvml.child"


class NothingFoundError(SourceError):
    """There is nothing to read: nothing was named and nothing was detected."""


class Session:
    """One run.

    Attributes:
        config: The settings.
        fleet: What the sources fill.
        board: What they are asked for.
        supervisor: What keeps them going.
        sources: The sources.
        detected: What was found on this machine, read or not.
        mark: "DEMO …" or "BUNDLE …" when what is shown is not this machine's; else "".
    """

    def __init__(
        self,
        config: Config,
        sources: Sequence[Source],
        *,
        detected: tuple[Found, ...] = (),
        mark: str = "",
        fixed_now: float | None = None,
        demo: "DemoHandle | None" = None,
    ) -> None:
        self.config = config
        self.fleet = Fleet()
        self.detected = detected
        self.mark = mark
        self.sources = tuple(sources)
        self.board = DemandBoard(
            Demand(interval_s=config.interval, processes=config.processes, profiling=config.profiling)
        )
        self._fixed_now = fixed_now
        self._demo = demo
        self.supervisor = Supervisor(self.sources, self.board, self.fleet.apply, self.fleet.set_status, self.now)

    def now(self) -> float:
        """Return the time that ages count to: the wall clock, or the bundle's capture time."""
        return time.time() if self._fixed_now is None else self._fixed_now

    async def start(self) -> None:
        """Start the sources; returns at once."""
        self.supervisor.start()

    async def first_round(self, timeout_s: float) -> tuple[str, ...]:
        """Wait until every source has told a whole round or failed; return the names of the late ones."""
        return await self.supervisor.first_round(timeout_s)

    async def aclose(self) -> None:
        """End the sources without waiting for them."""
        await self.supervisor.aclose()
        if self._demo is not None:
            demo, self._demo = self._demo, None
            await asyncio.to_thread(demo.close)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def range_series(self, key: GpuKey, quantities: Sequence[str], hours: float) -> dict[str, Series]:
        """Return hours of a GPU's quantities from the first Prometheus that has them.

        Raises:
            SourceError: There is no Prometheus, or it does not answer.
        """
        from gputop.sources.prometheus.source import PrometheusSource  # noqa: PLC0415 - loads its client

        node = self.fleet.view().nodes.get(key.node)
        clients = [s for s in self.sources if isinstance(s, PrometheusSource)]
        if not clients:
            raise SourceError("no Prometheus is configured: only the last minutes are in memory")
        hosts = tuple(dict.fromkeys(n.name for n in node.names)) if node else (key.host,)
        for client in clients:
            answers = await asyncio.gather(*(client.history(key, hosts, q, hours) for q in quantities))
            found = {
                q: Series(a.end, a.step_s, a.values) for q, a in zip(quantities, answers, strict=True) if a is not None
            }
            if found:
                return found
        return {}


def open_session(config: Config, around: Surroundings) -> Session:
    """Return the run that the settings ask for; nothing is read before it is started.

    Raises:
        NothingFoundError: Nothing was named and nothing was detected.
        SourceError: The bundle cannot be opened, or the demo does not start.
    """
    if config.bundle:
        return _bundle(config)
    if config.demo is not None:
        return open_demo(config)
    detected = detect(around, network=config.detect and not config.nvml_only) if config.detect else ()
    sources = _local(config, detected)
    if not config.nvml_only:
        sources += _remote(config, detected)
    if not sources:
        raise NothingFoundError(_looked_for(config, detected))
    return Session(config, sources, detected=detected)


def _bundle(config: Config) -> Session:
    from gputop.sources.bundle.source import BundleSource  # noqa: PLC0415 - decoders are not always needed

    source = BundleSource(config.bundle, parse_moment(config.at) if config.at else None)
    loaded = source.prepare()
    return Session(config, [source], mark="BUNDLE", fixed_now=loaded.at)


def open_demo(config: Config, scenario: str | None = None) -> Session:
    """Return a run on the simulated cluster, read by the clients that read a real one.

    Args:
        config: The settings.
        scenario: Name or file of the scenario; None for the settings' or the default.

    Raises:
        ConfigError: There is no such scenario, it cannot be used, or a bundle is named as well.
        SourceError: The demo does not start.
    """
    from gputop.demo.launcher import DemoError, start, without_servers  # noqa: PLC0415 - only for the demo
    from gputop.sources.nvml.source import NvmlSource  # noqa: PLC0415 - sources load with their need

    chosen: str = scenario or config.demo or "default"
    if config.bundle:
        raise ConfigError(f"{config.origin('bundle')}: {WITH_DEMO}")
    _check_scenario(chosen, config.origin("demo") if config.demo and not scenario else "demo")
    try:
        launch = without_servers if config.nvml_only else start
        demo = launch(chosen, config.demo_seed, config.demo_nodes)
    except DemoError as error:
        raise SourceError(f"demo {chosen}: {error}") from error
    try:
        node = demo.endpoints.nodes[0]
        folder = demo.host_folder(node)
        nvml = NvmlSource(
            node, [*demo.nvml_command(node), "-m", _NVML_CHILD], "the demo", folder / "proc", folder / "sys"
        )
        sources: list[Source] = [nvml] if config.nvml is not False else []
        if not config.nvml_only:
            url = Endpoint(url=demo.endpoints.prometheus, name="prometheus", found="the demo", selector=config.selector)
            sources += _prometheus([url])
    except BaseException:
        demo.close()
        raise
    return Session(config, sources, mark=f"DEMO {chosen}", demo=demo)


def _check_scenario(chosen: str, where: str) -> None:
    from gputop.demo.scenario import ScenarioError, load, names  # noqa: PLC0415 - only for the demo

    known = names()
    if chosen not in known and not chosen.endswith(".toml"):
        # A file is told by its ending.
        raise ConfigError(
            f"{where}: {clean(chosen)}: no such scenario{nearest(chosen, known)}; there are {', '.join(known)}, "
            "or the path of a .toml file"
        )
    try:
        load(chosen)
    except ScenarioError as error:
        raise ConfigError(f"{where}: {clean(str(error), 500)}") from None


def _local(config: Config, detected: tuple[Found, ...]) -> list[Source]:
    found = next((f for f in detected if f.kind == "nvml"), None)
    if config.nvml is False or (config.nvml is None and found is None and not config.nvml_only):
        return []
    from gputop.sources.nvml.source import NvmlSource  # noqa: PLC0415 - sources load with their need

    how = found.how if found else config.origin("nvml" if config.nvml else "nvml_only")
    return [NvmlSource(config.host_name or None, found=how)]


def _remote(config: Config, detected: tuple[Found, ...]) -> list[Source]:
    prometheus, exporters = list(config.prometheus), list(config.exporters)
    if not prometheus and not exporters:
        # What the user named is what is read; detection is for when nothing was named.
        for found in detected:
            chosen = {"prometheus": prometheus, "exporter": exporters}.get(found.kind)
            if chosen is not None:
                chosen.append(
                    Endpoint(url=found.target, found=found.how, selector=config.selector, cluster=config.cluster)
                )
    return [*(_prometheus(prometheus) if prometheus else []), *(_exporters(exporters) if exporters else [])]


def _prometheus(endpoints: Sequence[Endpoint]) -> list[Source]:
    from gputop.sources.prometheus.source import PrometheusSource  # noqa: PLC0415 - loads its client

    several = len(endpoints) > 1
    return [
        PrometheusSource(e, e.name or (f"prometheus {n + 1}" if several else "prometheus"))
        for n, e in enumerate(endpoints)
    ]


def _exporters(endpoints: Sequence[Endpoint]) -> list[Source]:
    from gputop.sources.exporter.source import ExporterSource  # noqa: PLC0415 - loads its client

    return [ExporterSource(e) for e in endpoints]


def _looked_for(config: Config, detected: tuple[Found, ...]) -> str:
    looked = "no sign of an NVIDIA GPU, no Prometheus and no exporter named or found on this machine"
    if not config.detect:
        looked = "no source is named and detection is off"
    unread = [f"{f.kind} ({f.how})" for f in detected if not f.read]
    return looked + (f"; found but not read by this version: {', '.join(unread)}" if unread else "")
