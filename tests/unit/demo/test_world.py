"""The world's numbers: the same for the same seed, and in agreement with each other."""

import pytest

from gputop.demo import counters, scenario
from gputop.demo.state import gpu_state
from gputop.demo.world import World

TEXT = """
title = "t"
[[nodes]]
name = "n{n}"
count = 3
{group}
[[jobs]]
name = "train"
owner_kind = "PyTorchJob"
gpus = 4
load = "train"
[[jobs]]
name = "late"
gpus = 2
start_s = 100
duration_s = 50
load = "batch"
{more}
"""


def build(group="", more="", seed=1):
    return World(scenario.parse(TEXT.replace("{group}", group).replace("{more}", more), "t"), seed)


def snapshot(world, t):
    return [
        (
            gpu.uuid,
            gpu.serial,
            gpu_state(gpu, t),
            counters.energy_mj(gpu, t),
            counters.ecc(gpu, t, aggregate=True),
        )
        for gpu in world.gpus()
    ]


def test_the_same_seed_gives_the_same_cluster_at_every_time():
    assert snapshot(build(), 12.5) == snapshot(build(), 12.5)
    assert [pod.uid for pod in build().pods()] == [pod.uid for pod in build().pods()]


def test_another_seed_and_another_time_give_other_numbers():
    first, second = snapshot(build(seed=1), 12.5), snapshot(build(seed=2), 12.5)
    assert not {one[0] for one in first} & {one[0] for one in second}
    assert first[0][2] != snapshot(build(seed=1), 13.5)[0][2]


def test_identities_are_unique_in_a_fleet():
    world = World(scenario.resized(scenario.load("fleet"), 300), 3)
    gpus = list(world.gpus())
    for member in ("uuid", "serial"):
        assert len({getattr(gpu, member) for gpu in gpus}) == len(gpus)
    assert len({node.instance for node in world.nodes}) == 300
    for node in world.nodes:
        assert len({gpu.bus_id for gpu in node.gpus}) == 8
        pids = [process.pid for gpu in node.gpus for load in gpu.loads for process in load.processes]
        assert len(set(pids)) == len(pids)


@pytest.mark.parametrize("fault", ["", 'kind = "power_cap"\nlimit_w = 350', 'kind = "power_brake"', 'kind = "thermal"'])
def test_energy_is_the_integral_of_power(fault):
    gpu = next(build(more=f'[[faults]]\nnode = "n1"\n{fault}' if fault else "").gpus())
    steps = [t / 2 for t in range(600, 1800)]
    drawn = sum(gpu_state(gpu, t).power_w for t in steps) / 2
    counted = (counters.energy_mj(gpu, 900) - counters.energy_mj(gpu, 300)) / 1000
    assert counted == pytest.approx(drawn, rel=0.05)


def test_counters_never_fall():
    world = build(
        more='[[faults]]\nkind = "thermal"\nnode = "n1"\nat_s = 20\nuntil_s = 60\n'
        '[[faults]]\nkind = "ecc"\nnode = "n1"\nat_s = 20\nuntil_s = 60\ncorrected_per_min = 9'
    )
    for gpu in world.nodes[0].gpus:
        for read in (counters.energy_mj, counters.pcie_bytes, counters.nvlink_bytes, counters.pcie_replays):
            values = [read(gpu, t) for t in range(-50, 200, 5)]
            assert values == sorted(values)
        corrected = [counters.ecc(gpu, t, aggregate=False).corrected_dram for t in range(-50, 200, 5)]
        assert corrected == sorted(corrected)
        assert corrected[-1] == 6


def test_readings_stay_within_what_the_board_can_do():
    world = World(scenario.resized(scenario.load("fleet"), 40), 5)
    for gpu in world.gpus():
        for t in (0.0, 333.3):
            state = gpu_state(gpu, t)
            assert 0 <= state.utilization <= 1
            assert 0 < state.power_w <= gpu.model.power_limit_w
            assert 20 < state.temperature_c < gpu.model.shutdown_c
            assert 0 <= state.memory_used_mib <= gpu.model.memory_mib - gpu.model.reserved_mib
            assert state.sm_clock_mhz <= gpu.model.sm_clock_max_mhz


def test_a_pod_starts_and_ends_and_its_gpu_is_free_again():
    gpu = build().nodes[0].gpus[4]
    assert [gpu_state(gpu, t).memory_used_mib > 0 for t in (99, 120, 151)] == [False, True, False]


def test_pods_that_share_a_board_never_pass_full_load():
    world = build(group="replicas = 4\ngpus = 1", more='[[jobs]]\nname = "x"\npods_per_node = 3\nload = "train"')
    gpu = next(world.gpus())
    assert sum(load.level for load in gpu.loads if load.pod.running(0)) == pytest.approx(1.0)
    # Four slices on one board: the pod of four GPUs finds one device only, and waits.
    assert {pod.quantity for pod in world.waiting} >= {4}


def test_a_pod_without_room_waits_or_is_not_made():
    job = '[[jobs]]\nname = "big"\ngpus = 8\n'
    assert len([pod for pod in build(more=job).waiting if pod.name.startswith("big")]) == 3
    assert not build(more=job + "waits = false").waiting


def test_xids_are_listed_once_each_and_the_last_is_known():
    world = build(
        more='[[faults]]\nkind = "xid"\nnode = "n1"\ngpus = [0]\nxid = 13\nat_s = 10\nevery_s = 10\n'
        '[[faults]]\nkind = "gpu_lost"\nnode = "n1"\ngpus = [0]\nat_s = 35'
    )
    gpu = world.nodes[0].gpus[0]
    assert counters.xids(gpu, 0, 40) == [(10, 13), (20, 13), (30, 13), (35, 79), (40, 13)]
    windows = [counters.xids(gpu, since, since + 7) for since in range(0, 42, 7)]
    assert [event for window in windows for event in window] == counters.xids(gpu, 0, 42)
    assert [counters.last_xid(gpu, t) for t in (9, 12, 36, 40)] == [0, 13, 79, 13]
