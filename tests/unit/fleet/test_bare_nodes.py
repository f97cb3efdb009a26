"""A name is not a node: what stood under an exporter's address until it told its host's name."""

import pytest

from gputop.fleet import Fleet
from gputop.model.facts import DeviceCount, Fact, NodeFact, NodeTrouble, PciGpu, Roster
from gputop.model.identity import NodeRef
from tests.cases.metrics_rig import Rig, T
from tests.unit.fleet.build import EXPORTER, NVML, PROMETHEUS, gpu, nodes, roster, tell

ADDRESS = NodeRef("10.0.0.7")
SILENT = "its exporter at 10.0.0.7:9400 fails"


def _silent(fleet: Fleet, source: tuple[str, int] = PROMETHEUS, at: float = 10.0) -> None:
    facts = (Roster(ADDRESS, (), silent=SILENT), NodeTrouble(ADDRESS, "exporter_silent", SILENT))
    tell(fleet, source, at, *facts)


def _speaks(fleet: Fleet, source: tuple[str, int] = PROMETHEUS, at: float = 20.0) -> None:
    tell(fleet, source, at, gpu("gpu-a", 0), roster("gpu-a", 0), NodeTrouble(ADDRESS, "exporter_silent", ""))


def test_an_address_that_was_silent_from_the_start_goes_when_its_host_is_named() -> None:
    fleet = Fleet()
    _silent(fleet)
    assert [n.key.host for n in nodes(fleet)] == ["10.0.0.7"]
    fleet.take_changes()
    _speaks(fleet)
    assert [n.key.host for n in nodes(fleet)] == ["gpu-a"]
    assert fleet.take_changes().rows
    _silent(fleet, at=30.0)
    assert [n.key.host for n in nodes(fleet)] == ["10.0.0.7", "gpu-a"], "another exporter may come there"


@pytest.mark.parametrize(
    "own",
    [
        DeviceCount(ADDRESS, "nvidia.com/gpu", 8.0, 8.0),
        NodeFact(ADDRESS, pci=(PciGpu("00000000:01:00.0"),)),
        NodeTrouble(ADDRESS, "clock_skew", "its clock is behind"),
    ],
    ids=["devices", "pci", "trouble"],
)
def test_a_node_of_which_anything_else_is_told_stays(own: Fact) -> None:
    fleet = Fleet()
    _silent(fleet)
    tell(fleet, NVML, 11.0, own)
    _speaks(fleet)
    assert "10.0.0.7" in [n.key.host for n in nodes(fleet)]


def test_another_source_that_is_still_silent_of_it_keeps_it() -> None:
    fleet = Fleet()
    _silent(fleet)
    _silent(fleet, EXPORTER)
    _speaks(fleet)
    assert "10.0.0.7" in [n.key.host for n in nodes(fleet)]


def test_an_exporter_behind_prometheus_that_starts_silent_is_one_node_in_the_end() -> None:
    rig = Rig()
    up = 'up{instance="10.4.2.31:9400",job="dcgm-exporter"}'
    rig.feed(f"{up} 0", T)
    assert [k.host for k in rig.view.nodes] == ["10.4.2.31"]
    told = 'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a0",Hostname="tern-07",instance="10.4.2.31:9400"} 41'
    rig.feed(f"{up} 1\n{told}", T + 15)
    assert [k.host for k in rig.view.nodes] == ["tern-07"]
    rig.feed(f"{up} 0", T + 30)
    assert [k.host for k in rig.view.nodes] == ["tern-07"], "its address is known by now"


def test_a_silent_target_that_is_not_scraped_any_more_is_no_node() -> None:
    rig = Rig()
    rig.feed('up{instance="10.4.2.31:9400",job="dcgm-exporter"} 0', T)
    rig.feed('DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a0",Hostname="tern-08",instance="10.4.2.32:9400"} 41', T + 15)
    assert [k.host for k in rig.view.nodes] == ["tern-08"]
