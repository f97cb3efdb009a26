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
from gputop.model.facts import Batch, DeviceCount, Fact, GpuFact, HoldersFact, NodeCondition, Presence, WorkloadFact
from gputop.model.identity import GpuRef, NodeRef
from gputop.model.reading import NOT_SUPPORTED
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
