"""Scenario files: what they may say, and how a mistake is told."""

import pytest

from gputop.demo import scenario
from gputop.demo.world import World

NODES = '[[nodes]]\nname = "n{n}"\ncount = 2\n'


@pytest.mark.parametrize("name", scenario.names())
def test_every_built_in_scenario_loads_and_builds(name):
    loaded = scenario.load(name)
    world = World(scenario.resized(loaded, min(12, len(scenario.node_names(loaded)))), 1)
    assert loaded.title
    assert loaded.description
    assert any(gpu.loads for gpu in world.gpus())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nodes"),
        ("nonsense", "not TOML"),
        ('[[nodes]]\nname = "a"\nmodel = "h900"', "nodes[0].model: 'h900'"),
        ('[[nodes]]\nname = "a"\ngpu = 8', "unknown field `gpu`"),
        ('[[nodes]]\nname = "a"\ncount = "two"', "$.nodes[0].count"),
        ('[[nodes]]\nname = "a"\ncount = 2', "needs {n}"),
        ('[[nodes]]\nname = "a{x}"', "nodes[0].name"),
        ('[[nodes]]\nname = "a"\n[[nodes]]\nname = "a"', "occurs twice"),
        ('[[nodes]]\nname = "a"\nmodel = "t4"\nmig = ["1g.10gb"]', "no MIG profile"),
        ('[[nodes]]\nname = "a"\nmig = ["4g.40gb", "4g.40gb"]', "8 slices"),
        (NODES + '[[jobs]]\nname = "j"\nload = "sleepy"', "jobs[0].load"),
        (NODES + '[[jobs]]\nname = "j"\nnodes = ["m*"]', "matches no node"),
        (NODES + '[[faults]]\nkind = "gpu_eaten"\nnode = "n1"', "gpu_eaten"),
        (NODES + '[[faults]]\nkind = "gpu_lost"\nnode = "n9"', "faults[0].node"),
        (NODES + '[[faults]]\nkind = "power_cap"\nnode = "n1"', "limit_w"),
        (NODES + '[[faults]]\nkind = "gpu_lost"\nnode = "n1"\nseconds = 3', "unknown field `seconds`"),
        (NODES + '[[faults]]\nkind = "mig_layout"\nnode = "n1"\nprofiles = ["9g"]', "faults[0].profiles"),
    ],
)
def test_a_mistake_names_the_file_and_the_key(text, said):
    with pytest.raises(scenario.ScenarioError) as caught:
        scenario.parse('title = "t"\n' + text, "mine.toml")
    assert str(caught.value).startswith("mine.toml: ")
    assert said in str(caught.value)


def test_an_unknown_name_lists_the_built_in_ones():
    with pytest.raises(scenario.ScenarioError) as caught:
        scenario.load("nowhere")
    assert "healthy-node" in str(caught.value)


def test_a_scenario_is_read_from_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('title = "mine"\n' + NODES)
    assert scenario.load(str(path)).title == "mine"


@pytest.mark.parametrize("count", [1, 3, 7, 20])
def test_resizing_gives_exactly_so_many_nodes(count):
    resized = scenario.resized(scenario.load("default"), count)
    assert len(World(resized).nodes) == count
    with pytest.raises(scenario.ScenarioError):
        scenario.resized(resized, 0)
