"""Answers for programs: valid by their schema, true about what is not known."""

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from gputop.answers.schemas import ANSWERS, schema_text
from gputop.answers.snapshot import make
from gputop.answers.table import table_lines
from gputop.fleet import Fleet
from gputop.model.facts import (
    Batch,
    DeviceCount,
    Fact,
    GpuFact,
    HoldersFact,
    NodeCondition,
    Presence,
    ProcessesFact,
    WorkloadFact,
)
from gputop.model.identity import GpuRef, NodeRef
from gputop.model.process import GpuProcess
from gputop.model.reading import NOT_SUPPORTED, Absent, denied
from gputop.model.workload import Holder, Workload

SCHEMAS = Path(__file__).parents[3] / "docs" / "schema"
UUID = "GPU-e72b0ac6-47aa-d9df-9b50-5a5f1f925ded"


def _fleet(*facts: Fact) -> Fleet:
    fleet = Fleet()
    fleet.apply(Batch("nvml", 0, 1000.0, 5.0, facts))
    return fleet


def _gpu(presence: Presence | None = None, **readings: object) -> GpuFact:
    return GpuFact(GpuRef("h", uuid=UUID, bus_id="00000000:1b:00.0", index=0), readings, presence, "GPU is lost")  # type: ignore[arg-type]  # made of keywords


def _answer(fleet: Fleet, now: float = 1001.0) -> dict:
    return json.loads(msgspec.json.encode(make(fleet.view(), now, "")))


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_the_schema_files_are_what_the_structs_say(name: str) -> None:
    assert (SCHEMAS / f"{name}.json").read_text(encoding="utf-8") == schema_text(ANSWERS[name])


def test_the_first_key_names_the_schema_and_the_answer_fits_it() -> None:
    fleet = _fleet(
        _gpu(utilization=97.0, power_w=NOT_SUPPORTED),
        HoldersFact(GpuRef("h", uuid=UUID), (Holder("kubernetes", "ml", "train-0", how="exporter label"),)),
        DeviceCount(NodeRef("h"), "nvidia.com/gpu", 8.0, 7.0),
        NodeCondition(NodeRef("h"), cordoned=True, ready=True),
        WorkloadFact(Workload("", "kubernetes", "ml", "train-0", "u1", "h", "Running", (("nvidia.com/gpu", 8.0),))),
    )
    answer = _answer(fleet)
    assert next(iter(answer)) == "schema"
    jsonschema.validate(answer, json.loads((SCHEMAS / "gputop.snapshot.1.json").read_text(encoding="utf-8")))
    (node,) = answer["nodes"]
    assert (node["advertised"], node["healthy"], node["used"], node["free"]) == (8, 7, 8, 0)
    assert node["cordoned"] is True


def test_unknown_is_null_and_never_zero() -> None:
    (gpu,) = _answer(_fleet(_gpu(utilization=97.0, power_w=NOT_SUPPORTED)))["gpus"]
    assert gpu["utilization"] == {"value": 97.0, "state": "ok", "source": "nvml", "age_s": 1.0}
    assert (gpu["power_w"]["value"], gpu["power_w"]["state"]) == (None, "n/a")
    assert (gpu["temperature_c"]["value"], gpu["temperature_c"]["state"]) == (None, "unknown")
    assert gpu["temperature_c"]["reason"]


def test_a_stale_number_stays_with_its_age() -> None:
    (gpu,) = _answer(_fleet(_gpu(utilization=97.0)), now=1060.0)["gpus"]
    assert gpu["utilization"] == {"value": 97.0, "state": "stale", "source": "nvml", "age_s": 60.0}


def test_free_is_not_told_where_no_source_tells_of_workloads() -> None:
    (node,) = _answer(_fleet(_gpu(), DeviceCount(NodeRef("h"), "nvidia.com/gpu", 8.0, 8.0)))["nodes"]
    assert (node["healthy"], node["used"], node["free"]) == (8, None, None)


def test_finished_pods_hold_nothing_and_waiting_ones_wait() -> None:
    wants = (("nvidia.com/gpu", 8.0),)
    fleet = _fleet(
        DeviceCount(NodeRef("tern-02"), "nvidia.com/gpu", 8.0, 8.0),
        WorkloadFact(Workload("", "kubernetes", "e", "eval-1", "u1", "tern-02", "Succeeded", wants)),
        WorkloadFact(Workload("", "kubernetes", "e", "eval-2", "u2", "", "Pending", wants)),
    )
    answer = _answer(fleet)
    (node,) = answer["nodes"]
    assert (node["name"], node["used"], node["free"]) == ("tern-02", 0, 8)


def test_the_table_says_lost_in_words_and_keeps_the_last_values() -> None:
    fleet = _fleet(_gpu(utilization=96.0))
    fleet.apply(Batch("nvml", 0, 1100.0, 5.0, (_gpu(Presence.LOST),)))
    lines = "\n".join(table_lines(make(fleet.view(), 1101.0, "DEMO x")))
    assert "lost: GPU is lost" in lines
    assert "96% (101s old)" in lines
    assert "DEMO x" in lines


def _instance(n: str) -> GpuRef:
    return GpuRef("h", uuid=UUID, bus_id="00000000:1b:00.0", index=0, instance=n)


def test_a_node_of_mig_instances_alone_says_what_it_counts() -> None:
    fleet = _fleet(
        _gpu(mig_mode=1.0),
        DeviceCount(NodeRef("h"), "nvidia.com/gpu", 0.0, 0.0),
        DeviceCount(NodeRef("h"), "nvidia.com/mig-1g.10gb", 4.0, 4.0),
        DeviceCount(NodeRef("h"), "nvidia.com/mig-2g.20gb", 2.0, 1.0),
    )
    (node,) = _answer(fleet)["nodes"]
    assert (node["advertised"], node["healthy"], node["counted"]) == (6, 5, "mig_instances")
    assert len(node["devices"]) == 3


def test_a_board_in_mig_mode_says_how_many_instances_are_held() -> None:
    holder = HoldersFact(_instance("1"), (Holder("kubernetes", "ml", "train-0", uid="u"),))
    fleet = _fleet(_gpu(mig_mode=1.0), GpuFact(_instance("1"), {}), GpuFact(_instance("2"), {}), holder)
    board = _answer(fleet)["gpus"][0]
    assert (board["mig_instances"], board["mig_instances_held"], board["holders"]) == (2, 1, [])
    assert board["utilization"]["state"] == "n/a"
    lines = table_lines(make(fleet.view(), 1001.0, ""))
    assert "1 on MIG" in lines[1]


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (None, "no source lists processes"),
        (denied("no permission to list processes"), "no permission to list processes"),
        ((), ""),
    ],
    ids=["nobody", "refused", "none-runs"],
)
def test_an_empty_list_of_processes_is_told_apart_from_a_refused_one(
    told: tuple[GpuProcess, ...] | Absent | None, reason: str
) -> None:
    fleet = _fleet(_gpu(), *(() if told is None else (ProcessesFact(GpuRef("h", uuid=UUID), told),)))
    answer = _answer(fleet)
    assert answer["processes"] == []
    assert answer["gpus"][0]["processes_reason"] == reason


def test_one_pod_that_two_sources_name_is_one_holder() -> None:
    by_process = Holder("kubernetes", name="train-0", uid="u1", how="process cgroup")
    fleet = _fleet(_gpu(), HoldersFact(GpuRef("h", uuid=UUID), (by_process,)))
    label = HoldersFact(GpuRef("h", uuid=UUID), (Holder("kubernetes", "ml", "train-0", how="exporter label"),))
    fleet.apply(Batch("prometheus", 2, 1000.0, 60.0, (label,)))
    (gpu,) = _answer(fleet)["gpus"]
    assert [(h["namespace"], h["name"], h["uid"], h["source"]) for h in gpu["holders"]] == [
        ("ml", "train-0", "u1", "nvml and prometheus")
    ]
