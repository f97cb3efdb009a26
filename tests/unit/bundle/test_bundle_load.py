"""A whole bundle: which machine each file is of, from when it is, and that nothing is dropped in silence."""

import asyncio
import math
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from gputop.model.facts import Fact, GpuFact, NodeFact, NodeTrouble, ProcessesFact, Roster
from gputop.model.identity import GpuRef
from gputop.sources.base import Demand, DemandBoard, SourceError
from gputop.sources.bundle.load import LoadedBundle, load
from gputop.sources.bundle.source import BundleSource
from tests.unit.bundle.bundle_files import FILES


def lay_out(top: Path, files: Mapping[str, str]) -> Path:
    """Copy files of this project to where a bundle would have them; a text with a line end is content."""
    for name, what in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if "\n" in what:
            path.write_text(what)
        else:
            shutil.copyfile(FILES / what, path)
    return top


def facts(bundle: LoadedBundle) -> list[Fact]:
    return [fact for batch in bundle.batches for fact in batch.facts]


def hosts(bundle: LoadedBundle) -> set[str]:
    return {fact.ref.host for fact in facts(bundle) if isinstance(fact, GpuFact | NodeFact | NodeTrouble)}


def words(bundle: LoadedBundle) -> str:
    return "\n".join(finding.text for finding in bundle.findings)


def query(uuid: str, bus: str = "65", when: str = "Mon Jan  6 10:00:00 2025") -> str:
    return f"Timestamp : {when}\nAttached GPUs : 1\nGPU 00000000:{bus}:00.0\n    GPU UUID : GPU-5d-{uuid}\n"


def lspci(*buses: str) -> str:
    return "".join(f"{bus}:00.0 3D controller [0302]: NVIDIA Corporation L4 [10de:27b8]\n" for bus in buses)


def test_a_folder_for_each_host_gives_the_names(tmp_path: Path) -> None:
    top = lay_out(
        tmp_path / "ticket",
        {
            "gpu-a03/nvidia/nvidia-smi.xml": "xml-550-mig.xml",
            "gpu-a03/lspci.txt": lspci("4e", "b7", "d8"),
            "gpu-a04/nvidia-smi-q.txt": query("4"),
            "gpu-a05/out.txt": "Failed to initialize NVML: Driver Not Loaded\n",
        },
    )
    bundle = load([top])
    assert hosts(bundle) == {"gpu-a03", "gpu-a04", "gpu-a05"}
    (trouble,) = [fact for fact in facts(bundle) if isinstance(fact, NodeTrouble)]
    assert (trouble.ref.host, trouble.code) == ("gpu-a05", "driver_not_loaded")
    assert "host by folder" in words(bundle)


def test_files_of_many_machines_in_one_folder_are_named_by_file(tmp_path: Path) -> None:
    top = lay_out(
        tmp_path / "xml",
        {
            "gpu-a03-nvidia-smi.xml": "xml-550-mig.xml",
            "gpu-a04.txt": query("4"),
            "nvidia-smi-q-gpu-a05.log": query("5"),
        },
    )
    assert hosts(load([top])) == {"gpu-a03", "gpu-a04", "gpu-a05"}


def test_outputs_of_one_machine_join_by_uuid_and_by_bus_id(tmp_path: Path) -> None:
    top = lay_out(
        tmp_path / "gpu-a07",
        {
            "nvidia-smi-q.txt": query("7"),
            "list.txt": "GPU 0: NVIDIA L4 (UUID: GPU-5d-7)\n",
            "lspci.txt": lspci("65"),
        },
    )
    bundle = load([top])
    assert hosts(bundle) == {"gpu-a07"}
    assert "host by archive or folder" in words(bundle)


def test_other_gpus_under_the_same_name_are_another_machine(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "gpu-a07", {"nvidia-smi-q.txt": query("7"), "nvidia-smi.log": query("8", "66")})
    bundle = load([top])
    assert hosts(bundle) == {"gpu-a07", "gpu-a07-2"}
    assert "other GPUs than its namesake" in words(bundle)


def test_machines_of_one_type_are_not_joined_by_their_bus_ids(tmp_path: Path) -> None:
    top = lay_out(
        tmp_path / "x",
        {"gpu-a03.txt": query("3"), "gpu-a03-lspci.txt": lspci("65"), "gpu-a04-lspci.txt": lspci("65")},
    )
    placed = {f.ref.host: f.pci for f in facts(load([top])) if isinstance(f, NodeFact)}
    assert set(placed) == {"gpu-a03", "gpu-a04"}


def test_placeholder_uuids_on_other_buses_do_not_join_machines(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "x", {"alpha.txt": query("0", "65"), "beta.txt": query("0", "66")})
    assert hosts(load([top])) == {"alpha", "beta"}


def test_several_paths_stand_side_by_side(tmp_path: Path) -> None:
    lay_out(
        tmp_path,
        {"gpu-a03/q.txt": query("3"), "gpu-a04/q.txt": query("4"), "other/gpu-a03/q.txt": query("9")},
    )
    bundle = load([tmp_path / "gpu-a03" / "q.txt", tmp_path / "gpu-a04"])
    assert hosts(bundle) == {"gpu-a03", "gpu-a04"}
    clash = load([tmp_path / "gpu-a03", tmp_path / "other" / "gpu-a03"])
    assert len(hosts(clash)) == 2


def test_a_single_file_is_named_by_itself_or_by_its_folder(tmp_path: Path) -> None:
    lay_out(tmp_path, {"gpu-a03/nvidia-smi-q.txt": query("3"), "gpu-a03/gpu-b01.txt": query("4")})
    assert hosts(load([tmp_path / "gpu-a03" / "nvidia-smi-q.txt"])) == {"gpu-a03"}
    assert hosts(load([tmp_path / "gpu-a03" / "gpu-b01.txt"])) == {"gpu-b01"}


def test_mig_devices_carry_the_names_of_both_outputs(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "gpu-a03", {"q.xml": "xml-550-mig.xml", "list.txt": "list-mig.txt"})
    refs = {f.ref for f in facts(load([top])) if isinstance(f, GpuFact) and f.ref.is_instance}
    assert {(r.instance, r.mig_uuid[-1:]) for r in refs} == {("2", "1"), ("9/1", "2")}


def test_a_list_of_another_layout_of_instances_is_not_joined(tmp_path: Path) -> None:
    lines = (FILES / "list-mig.txt").read_text().splitlines(keepends=True)
    top = lay_out(tmp_path / "gpu-a03", {"q.xml": "xml-550-mig.xml", "list.txt": "".join([*lines[:2], lines[3]])})
    refs = {f.ref for f in facts(load([top])) if isinstance(f, GpuFact) and f.ref.is_instance}
    assert {(r.instance, bool(r.mig_uuid)) for r in refs} == {("2", False), ("9/1", False), ("", True)}


def test_ages_count_from_the_newest_time_in_the_files(tmp_path: Path) -> None:
    top = lay_out(
        tmp_path / "b",
        {
            "a/q.txt": query("1"),
            "b/q.txt": query("2", when="Mon Jan  6 10:02:00 2025"),
            "b/list.txt": "list-mig.txt",
        },
    )
    bundle = load([top])
    assert bundle.at == 1736157720.0
    by_source = {batch.source: batch.at for batch in bundle.batches}
    assert by_source["bundle a/q.txt"] == 1736157600.0
    assert by_source["bundle b/q.txt"] == 1736157720.0
    assert "UTC" in bundle.findings[0].text


def test_at_overrides_and_times_after_it_are_told(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "b", {"q.txt": query("1")})
    bundle = load([top], at=1736157000.0)
    assert bundle.at == 1736157000.0
    assert "as given" in bundle.findings[0].text
    assert "1 outputs are later" in bundle.findings[0].text


def test_without_any_time_the_change_time_of_the_file_counts_and_is_told(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "b", {"list.txt": "list-mig.txt"})
    os.utime(top / "list.txt", (1_600_000_000, 1_600_000_000))
    bundle = load([top])
    assert bundle.at == 1_600_000_000.0
    assert "changed" in bundle.findings[0].text
    assert bundle.findings[0].severity == "warning"


def test_a_list_without_a_time_never_outweighs_a_state_with_one(tmp_path: Path) -> None:
    listed = "".join(f"GPU {n}: H100 (UUID: GPU-5a000005-1111-4222-8333-00000000000{n + 1})\n" for n in range(5))
    top = lay_out(tmp_path / "gpu-t07", {"q.xml": "xml-570-troubled.xml", "list.txt": listed})
    times = {batch.source: batch.at for batch in load([top]).batches}
    assert times["bundle list.txt"] < times["bundle q.xml"]


def test_an_older_capture_of_a_machine_gives_way_to_the_newer(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "gpu-l01", {"loop.txt": "query-loop.txt"})
    old, new = load([top]).batches
    assert (old.at, new.at) == (1743711682.0, 1743711802.0)
    assert old.stale_after_s < new.at - old.at
    assert new.stale_after_s == math.inf
    rosters = [f for f in (*old.facts, *new.facts) if isinstance(f, Roster)]
    assert [len(roster.gpus) for roster in rosters] == [2, 1]


def test_the_last_batch_and_only_it_ends_the_round(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "b", {"a/q.txt": query("1"), "b/q.txt": query("2")})
    assert [batch.round_done for batch in load([top]).batches] == [False, True]
    (only,) = load([lay_out(tmp_path / "c", {"x.txt": "hello\n"})]).batches
    assert only.round_done
    assert only.facts == ()


def test_batches_stay_small_enough_for_a_key_press(tmp_path: Path) -> None:
    text = "Attached GPUs : 900\n" + "".join(
        f"GPU {n:08X}:00:00.0\n    GPU UUID : GPU-5e-{n}\n    Processes : None\n" for n in range(900)
    )
    bundle = load([lay_out(tmp_path / "b", {"q.txt": text})])
    assert max(len(batch.facts) for batch in bundle.batches) <= 500
    assert sum(isinstance(f, GpuFact) for f in facts(bundle)) == 900


def test_every_file_is_told_with_what_it_was_read_as(tmp_path: Path) -> None:
    top = lay_out(
        tmp_path / "b",
        {
            "q.xml": "xml-550-mig.xml",
            "pods.json": '{"apiVersion": "v1",\n "kind": "List", "items": []}\n',
            "dmesg.txt": "[    1.234567] NVRM: loading\n",
            "note.txt": "it is slow\n",
            "table.txt": "| NVIDIA-SMI 550.54.14    Driver Version: 550.54.14 |\n",
            "cut.xml": "<?xml?>\n<nvidia_smi_log>\n<gpu id='00000000:01:00.0'>\n<uuid>GPU-5d-1</uuid>\n<fan",
        },
    )
    (top / "core").write_bytes(b"\x7fELF" + bytes(range(256)) * 20)
    (top / "empty.txt").write_bytes(b"")
    told = words(load([top]))
    for name in ("q.xml", "pods.json", "dmesg.txt", "note.txt", "table.txt", "cut.xml", "core", "empty.txt"):
        assert name in told
    assert "nvidia-smi -q -x, driver 550.90.07, 2024-06-01 10:11:12 UTC: 2 GPUs and 2 MIG devices" in told
    assert "Kubernetes objects: not read by this version" in told
    assert "line 5" in told


def test_what_cannot_be_opened_is_an_error_with_words(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"cannot open .*nothing: No such file"):
        load([tmp_path / "nothing"])


def test_nothing_readable_is_said_not_raised(tmp_path: Path) -> None:
    bundle = load([lay_out(tmp_path / "b", {"x.txt": "hello\n"})])
    assert "nothing in it" in bundle.trouble


def test_processes_keep_their_place(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "gpu-a03", {"q.xml": "xml-550-mig.xml"})
    lists = {
        f.ref.instance: f.processes for f in facts(load([top])) if isinstance(f, ProcessesFact) and f.ref.index == 0
    }
    assert {instance: len(found) for instance, found in lists.items() if isinstance(found, tuple)} == {
        "": 0,
        "2": 1,
        "9/1": 1,
    }


async def test_the_source_says_it_once_and_stays(tmp_path: Path) -> None:
    source = BundleSource([lay_out(tmp_path / "gpu-a03", {"q.xml": "xml-550-mig.xml"})])
    board = DemandBoard(Demand())
    stream = source.batches(board)
    first = await anext(stream)
    assert first.round_done
    assert first.source == "bundle q.xml"
    assert first.rank == 0
    waiting = asyncio.ensure_future(anext(stream))
    board.refresh()
    done, _ = await asyncio.wait([waiting], timeout=0.05)
    assert not done
    waiting.cancel()
    await asyncio.wait([waiting])
    assert source.versions() == (("driver", "550.90.07"),)
    assert source.trouble() == ""
    assert source.findings()[1].text.startswith("q.xml: nvidia-smi -q -x")
    assert source.cost().requests == 1
    assert source.prepare().at == first.at
    await source.aclose()


async def test_a_path_that_is_not_there_ends_in_the_sources_state(tmp_path: Path) -> None:
    source = BundleSource([tmp_path / "nothing"])
    with pytest.raises(SourceError):
        await anext(source.batches(DemandBoard(Demand())))


def test_references_are_made_of_normal_names(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "gpu-old", {"list.txt": "list-old-mig.txt"})
    refs = [f.ref for f in facts(load([top])) if isinstance(f, GpuFact)]
    assert refs[0] == GpuRef("gpu-old", uuid="GPU-5a000003-1111-4222-8333-000000000001", index=0)
    assert refs[2].instance == "5/1"
