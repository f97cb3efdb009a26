"""A node's charts over minutes and hours, and the heat map of what the pane below it shows."""

import asyncio
import time
from collections.abc import Sequence

import pytest

from gputop.fleet import Series
from gputop.model.facts import Fact, GpuFact, NodeFact, Roster
from gputop.model.identity import GpuKey, GpuRef, NodeRef
from gputop.sources.base import SourceError
from tests.e2e.rig import Told, app, shows, until


def _fleet(*hosts: str) -> tuple[Fact, ...]:
    facts: list[Fact] = []
    for number, host in enumerate(hosts):
        refs = tuple(
            GpuRef(host, uuid=f"GPU-{number:04d}000{i}-0000-0000-0000-000000000000", index=i) for i in range(2)
        )
        facts += [NodeFact(NodeRef(host), {"driver_version": "570.86.15"}), Roster(NodeRef(host), refs)]
        for i, ref in enumerate(refs):
            values = {"utilization": 20.0 + 60.0 * i, "memory_used_mib": 10240.0, "memory_total_mib": 81920.0}
            facts.append(GpuFact(ref, {**values, "power_w": 300.0, "power_limit_w": 700.0, "temperature_c": 50.0 + i}))
    return tuple(facts)


@pytest.mark.parametrize("unicode", [True, False])
async def test_details_of_a_node_draw_its_boards_together(unicode: bool) -> None:
    async with app(Told(*_fleet("gpu-a", "gpu-b")), unicode=unicode).run_test(size=(80, 24)) as pilot:
        await shows(pilot, "gpu-a", "gpu-b")
        await pilot.press("d")
        heat = "hottest 51°C" if unicode else "hottest 51C"
        screen = await shows(pilot, "[minutes]", "mean util 50%", "VRAM 20G", "power 600W", heat)
        assert "160" in screen
        assert unicode or screen.isascii()


async def test_hours_of_a_node_without_a_prometheus_say_so_and_keep_the_minutes() -> None:
    async with app(Told(*_fleet("gpu-a", "gpu-b"))).run_test(size=(80, 24)) as pilot:
        await shows(pilot, "gpu-a", "gpu-b")
        await pilot.press("d", "s")
        screen = await shows(pilot, "1 h: no Prometheus is configured")
        assert "mean util 50%" in screen


async def test_hours_of_a_node_are_asked_for_each_of_its_boards(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[GpuKey] = []

    async def range_series(key: GpuKey, quantities: Sequence[str], hours: float) -> dict[str, Series]:
        await asyncio.sleep(0)
        asked.append(key)
        assert hours == 1.0
        return {q: Series(time.time(), 15.0, (100.0, 40.0)) for q in quantities if q != "power_w"}

    watch = app(Told(*_fleet("gpu-a", "gpu-b")))
    monkeypatch.setattr(watch.session, "range_series", range_series)
    async with watch.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "gpu-a", "gpu-b")
        await pilot.press("d", "s")
        await shows(pilot, "from Prometheus", "mean util 40% (40 to 100)", "hottest 40°C", "power ?")
    assert {key.host for key in asked} == {"gpu-a"}
    assert len(asked) == len(set(asked)) == 2


async def test_a_prometheus_that_fails_for_a_board_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    async def range_series(key: GpuKey, quantities: Sequence[str], hours: float) -> dict[str, Series]:
        del key, quantities, hours
        raise SourceError("refused\x1b[31m")

    watch = app(Told(*_fleet("gpu-a", "gpu-b")))
    monkeypatch.setattr(watch.session, "range_series", range_series)
    async with watch.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "gpu-a", "gpu-b")
        await pilot.press("d", "s")
        screen = await shows(pilot, "1 h: refused", "mean util 50%")
        assert "\x1b" not in screen


async def test_the_heat_map_keeps_the_filter_of_the_fleet() -> None:
    async with app(Told(*_fleet("gpu-a", "gpu-b", "lab-c"))).run_test(size=(120, 30)) as pilot:
        await shows(pilot, "gpu-a", "lab-c")
        await pilot.press("slash", *"node:gpu", "enter", "m")
        screen = await shows(pilot, "Utilisation", "/node:gpu", "gpu-a", "gpu-b")
        assert "lab-c" not in screen
        await pilot.press("escape", "escape", "m")
        await until(pilot, lambda s: "Utilisation" in s and "lab-c" in s and "/node" not in s, "the whole fleet")


async def test_the_heat_map_follows_values_that_a_filter_looks_at() -> None:
    source = Told(*_fleet("gpu-a", "gpu-b"))
    async with app(source, pane="gpus").run_test(size=(120, 30)) as pilot:
        await shows(pilot, "gpu-a", "80%")
        await pilot.press("slash", *"util>90", "enter", "m")
        await shows(pilot, "Utilisation", "no GPU matches /util>90")
        (busy, *_) = [f for f in _fleet("gpu-a", "gpu-b") if isinstance(f, GpuFact)]
        source.queue.put_nowait((GpuFact(busy.ref, {"utilization": 95.0}),))
        screen = await shows(pilot, "gpu-a", "95%")
        assert "gpu-b" not in screen


async def test_the_heat_map_keeps_the_node_of_the_gpus() -> None:
    async with app(Told(*_fleet("gpu-a", "gpu-b"))).run_test(size=(120, 30)) as pilot:
        await shows(pilot, "gpu-a", "gpu-b")
        await pilot.press("down", "enter")
        await shows(pilot, "node gpu-b")
        await pilot.press("m")
        screen = await shows(pilot, "Utilisation", "node gpu-b")
        assert "gpu-a" not in screen


async def test_the_filter_of_the_sources_is_no_filter_of_gpus() -> None:
    async with app(Told(*_fleet("gpu-a", "gpu-b"))).run_test(size=(120, 30)) as pilot:
        await shows(pilot, "gpu-a")
        await pilot.press("5", "slash", *"nvml", "enter", "m")
        screen = await shows(pilot, "Utilisation", "gpu-a", "gpu-b")
        assert "/nvml" not in screen
