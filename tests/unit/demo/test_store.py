"""The simulated Prometheus' samples: the scrape grid, staleness, and clocks that are off."""

import pytest

from gputop.demo import scenario
from gputop.demo.promql.evaluate import instant
from gputop.demo.promql.parser import parse
from gputop.demo.store import Store
from gputop.demo.world import World

STARTED = 1_790_000_010.0

TEXT = """
title = "t"
[[nodes]]
name = "n{n}"
count = 2
gpus = 2
[[jobs]]
name = "train"
gpus = 2
start_s = -600
"""


def build(faults=""):
    return Store(World(scenario.parse(TEXT + faults, "t"), 1), STARTED)


def ask(store, query, t):
    value = instant(parse(query), store, STARTED + t)
    assert isinstance(value, list)
    return value


def test_values_change_with_the_scrape_and_timestamp_gives_its_time():
    store = build()
    first, same, later = (
        [one.value for one in ask(store, "DCGM_FI_DEV_POWER_USAGE", t)] for t in (100.0, 103.0, 106.0)
    )
    assert first == same != later
    stamps = {one.value for one in ask(store, "timestamp(DCGM_FI_DEV_POWER_USAGE)", 103.0)}
    assert stamps == {(STARTED + 103) // 15 * 15}


@pytest.mark.parametrize("fault", ["exporter_silent", "exporter_error"])
def test_a_failed_scrape_ends_the_series_at_once_and_up_is_0(fault):
    store = build(f'[[faults]]\nkind = "{fault}"\nnode = "n1"\nat_s = 100\nuntil_s = 200')
    assert len(ask(store, "DCGM_FI_DEV_GPU_TEMP", 99)) == 4
    assert len(ask(store, "DCGM_FI_DEV_GPU_TEMP", 130)) == 2
    assert sorted(one.value for one in ask(store, 'up{job="nvidia-dcgm-exporter"}', 130)) == [0, 1]
    assert len(ask(store, "last_over_time(DCGM_FI_DEV_GPU_TEMP[5m])", 130)) == 4
    assert len(ask(store, "DCGM_FI_DEV_GPU_TEMP", 230)) == 4


def test_an_empty_exporter_is_up_without_series():
    store = build('[[faults]]\nkind = "exporter_empty"\nnode = "n1"')
    assert {one.value for one in ask(store, "up", 0)} == {1}
    assert {one.labels.pairs["Hostname"] for one in ask(store, "DCGM_FI_DEV_GPU_TEMP", 0)} == {"n2"}


@pytest.mark.parametrize(("skew", "seen"), [(-60, True), (-400, False), (3600, True)])
def test_an_exporters_wrong_clock_moves_its_samples(skew, seen):
    store = build(f'[[faults]]\nkind = "clock_skew"\nnode = "n1"\nskew_s = {skew}')
    found = {one.labels.pairs["Hostname"]: one.at for one in ask(store, "DCGM_FI_DEV_GPU_TEMP", 0)}
    assert ("n1" in found) is seen
    if seen:
        assert found["n1"] <= STARTED
        assert found["n1"] == pytest.approx(STARTED + min(skew, 0), abs=30)


def test_the_servers_wrong_clock_is_its_own():
    store = build()
    store.skew_s = 3600.0
    now = ask(store, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 3600)
    assert now[0].at == (STARTED + 3600) // 15 * 15
    store.skew_s = 0.0
    assert ask(store, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 0)[0].value == now[0].value


def test_a_rate_over_the_energy_counter_is_the_power():
    store = build()
    watts = {
        one.labels.pairs["UUID"]: one.value
        for one in ask(store, "rate(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION[5m]) / 1000", 300)
    }
    shown = {
        one.labels.pairs["UUID"]: one.value for one in ask(store, "avg_over_time(DCGM_FI_DEV_POWER_USAGE[5m])", 300)
    }
    assert watts.keys() == shown.keys()
    assert all(watts[uuid] == pytest.approx(shown[uuid], rel=0.05) for uuid in watts)


def test_allocation_joins_pods_with_their_phase():
    store = build('[[jobs]]\nname = "done"\ngpus = 2\nnodes = ["n1"]\nstart_s = -2000\nduration_s = 900')
    query = (
        "sum by (node) (max by (uid, container, node) "
        '(kube_pod_container_resource_requests{resource="nvidia_com_gpu"})'
        ' * on (uid) group_left () max by (uid) (kube_pod_status_phase{phase=~"Pending|Running"} == 1))'
    )
    assert {one.labels.pairs["node"]: one.value for one in ask(store, query, 0)} == {"n1": 2, "n2": 2}


def test_a_fleet_is_answered_whole():
    store = Store(World(scenario.load("fleet"), 1), STARTED)
    query = "max by (UUID, GPU_I_ID, Hostname, instance) (DCGM_FI_DEV_GPU_UTIL)"
    found = ask(store, query, 0)
    # One GPU is lost, and one node's exporter is silent.
    assert len(found) == 1280 * 8 - 1 - 8
    assert len({one.labels.pairs["UUID"] for one in found}) == len(found)
    assert sum(one.value > 0 for one in found) > len(found) / 2
    assert len(ask(store, 'DCGM_FI_DEV_FB_USED{Hostname=~"node-0001|node-0002"}', 0)) == 16
