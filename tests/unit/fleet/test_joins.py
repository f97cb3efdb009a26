"""Who is the same GPU and the same node, told by several sources."""

import pytest

from gputop.fleet import Fleet
from gputop.model.facts import GpuFact, NodeFact, NodeTrouble, PciGpu, Presence
from gputop.model.identity import GpuKey, GpuRef, NodeKey, NodeRef, normal_bus_id, normal_uuid
from tests.unit.fleet.build import (
    BUSES,
    EXPORTER,
    NVML,
    PROMETHEUS,
    UUIDS,
    gpu,
    nodes,
    ref,
    roster,
    rows,
    tell,
)


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


@pytest.mark.parametrize(
    "spelling",
    [
        "00000008:06:00.0",
        "0008:06:00.0",
        "0008:06:00",
        "PCI:0008:06:00",
        "00000008:06:00.0\0\0",
        "8:6:0.0",
        " 0008:06:00.0 ",
    ],
)
def test_bus_id_spellings_are_one(spelling: str) -> None:
    assert normal_bus_id(spelling) == "00000008:06:00.0"


@pytest.mark.parametrize(
    "spelling",
    [
        "GPU-E72B0AC6-47AA-D9DF-9B50-5A5F1F925DED",
        "e72b0ac6-47aa-d9df-9b50-5a5f1f925ded",
        "gpu-e72b0ac6-47aa-d9df-9b50-5a5f1f925ded",
        "MIG-GPU-e72b0ac6-47aa-d9df-9b50-5a5f1f925ded/7/0",
    ],
)
def test_uuid_spellings_are_one(spelling: str) -> None:
    assert normal_uuid(spelling) == "GPU-e72b0ac6-47aa-d9df-9b50-5a5f1f925ded"


def test_two_sources_with_the_same_host_share_rows(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, gpu("gpu-a03", 0, utilization=97.0))
    tell(fleet, EXPORTER, 10.0, gpu("gpu-a03", 0, temperature_c=61.0))
    (row,) = rows(fleet)
    assert row.readings["utilization"].number == 97.0
    assert row.readings["temperature_c"].number == 61.0
    assert {j.source for j in row.joins} == {"nvml", "exporter"}
    assert all(j.how for j in row.joins)


def test_full_and_short_host_names_are_one_node(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, gpu("gpu-a03.example.com", 0))
    tell(fleet, EXPORTER, 10.0, gpu("GPU-A03", 1))
    (node,) = nodes(fleet)
    assert len(node.gpus) == 2
    assert {n.name for n in node.names} == {"gpu-a03.example.com", "GPU-A03"}


def test_a_short_name_that_fits_two_nodes_is_joined_to_neither(fleet: Fleet) -> None:
    tell(fleet, EXPORTER, 10.0, gpu("gpu-a03.east.example.com", 0), gpu("gpu-a03.west.example.com", 1))
    tell(fleet, PROMETHEUS, 10.0, gpu("gpu-a03", 2))
    assert len(nodes(fleet)) == 3


def test_other_host_names_are_joined_by_the_same_uuids(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, roster("ip-10-0-0-1", 0, 1), gpu("ip-10-0-0-1", 0, utilization=5.0))
    tell(fleet, PROMETHEUS, 10.0, gpu("gpu-a03", 0, temperature_c=50.0), gpu("gpu-a03", 1, temperature_c=51.0))
    (node,) = nodes(fleet)
    assert len(node.gpus) == 2
    assert any("UUID" in n.how for n in node.names if n.name == "gpu-a03")


def test_a_host_first_known_without_gpus_is_merged_when_uuids_tell(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, gpu("ip-10-0-0-1", 0, utilization=5.0))
    tell(fleet, PROMETHEUS, 10.0, NodeTrouble(NodeRef("gpu-a03"), "clock_skew", "its clock is 3 s ahead"))
    tell(fleet, PROMETHEUS, 11.0, gpu("gpu-a03", 0, temperature_c=50.0))
    (node,) = nodes(fleet)
    assert node.troubles
    assert len(rows(fleet)) == 1


def test_one_source_that_lists_a_uuid_on_two_hosts_keeps_two_rows(fleet: Fleet) -> None:
    tell(fleet, EXPORTER, 10.0, roster("vm-1", 0), roster("vm-2", 0))
    assert [n.key.host for n in nodes(fleet)] == ["vm-1", "vm-2"]
    assert len(rows(fleet)) == 2


def test_a_uuid_on_two_hosts_is_left_ambiguous_for_a_third_source(fleet: Fleet) -> None:
    tell(fleet, EXPORTER, 10.0, roster("vm-1", 0), roster("vm-2", 0))
    tell(fleet, PROMETHEUS, 10.0, gpu("elsewhere", 0, temperature_c=40.0))
    assert len(rows(fleet)) == 3
    assert "temperature_c" not in rows(fleet)[1].readings


def test_a_renamed_host_is_followed_once_the_old_name_falls_silent(fleet: Fleet) -> None:
    tell(fleet, EXPORTER, 10.0, roster("dcgm-exporter-x7k2p", 0, 1))
    tell(fleet, EXPORTER, 20.0, roster("dcgm-exporter-x7k2p", silent="target is gone"))
    tell(fleet, EXPORTER, 30.0, roster("gpu-a03", 0, 1))
    assert len(rows(fleet)) == 2
    assert {r.presence for r in rows(fleet)} == {Presence.PRESENT}
    replaced = fleet.take_changes().replaced
    assert set(replaced.values()) <= {r.key for r in rows(fleet)}


def test_new_gpus_under_an_old_host_name_are_new_rows_and_the_old_are_missing(fleet: Fleet) -> None:
    tell(fleet, EXPORTER, 10.0, roster("gpu-a03", 0, 1))
    tell(fleet, EXPORTER, 20.0, roster("gpu-a03", 4, 5))
    assert [r.presence for r in rows(fleet)] == [
        Presence.MISSING, Presence.MISSING, Presence.PRESENT, Presence.PRESENT,
    ]  # fmt: skip


def test_same_host_name_in_two_clusters_stays_two_nodes(fleet: Fleet) -> None:
    tell(fleet, PROMETHEUS, 10.0, gpu("gpu-1", 0, "east"), gpu("gpu-1", 1, "west"))
    assert [n.key for n in nodes(fleet)] == [NodeKey("east", "gpu-1"), NodeKey("west", "gpu-1")]


def test_a_local_host_takes_its_cluster_from_the_source_that_has_its_uuids(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, gpu("gpu-1", 1, utilization=1.0))
    tell(fleet, PROMETHEUS, 10.0, gpu("gpu-1", 0, "east"), gpu("gpu-1", 1, "west", temperature_c=33.0))
    assert [n.key for n in nodes(fleet)] == [NodeKey("east", "gpu-1"), NodeKey("west", "gpu-1")]
    west = fleet.view().gpus[GpuKey("west", "gpu-1", UUIDS[1])]
    assert west.readings["utilization"].number == 1.0
    assert west.readings["temperature_c"].number == 33.0


def test_cluster_known_first_takes_the_local_source_in(fleet: Fleet) -> None:
    tell(fleet, PROMETHEUS, 10.0, gpu("gpu-1", 0, "east", temperature_c=33.0))
    tell(fleet, NVML, 10.0, gpu("gpu-1", 0, utilization=1.0))
    (row,) = rows(fleet)
    assert row.key.cluster == "east"
    assert row.readings["utilization"].number == 1.0


def test_a_row_known_by_bus_id_gets_its_uuid(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, NodeFact(NodeRef("h"), pci=(PciGpu(BUSES[0], driver="nvidia"),)))
    assert rows(fleet)[0].key.uuid.startswith("pci-")
    fleet.take_changes()
    tell(fleet, NVML, 11.0, gpu("h", 0, utilization=3.0))
    (row,) = rows(fleet)
    assert row.key.uuid == UUIDS[0]
    assert row.pci is not None
    assert fleet.take_changes().replaced == {GpuKey("", "h", f"pci-{BUSES[0]}"): row.key}


def test_a_bus_id_alone_finds_the_row_on_its_host(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, gpu("h", 3))
    tell(fleet, EXPORTER, 10.0, GpuFact(GpuRef("h", bus_id=BUSES[3]), {"retired_pages_dbe": 2.0}))
    (row,) = rows(fleet)
    assert row.readings["retired_pages_dbe"].number == 2.0


def test_an_index_is_never_joined_to_a_named_gpu(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, gpu("h", 1, utilization=90.0))
    tell(fleet, EXPORTER, 10.0, GpuFact(GpuRef("h", index=1), {"utilization": 3.0}))
    assert len(rows(fleet)) == 2


def test_a_changed_index_keeps_the_row(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, gpu("h", 0), gpu("h", 1))
    key = rows(fleet)[1].key
    tell(fleet, NVML, 11.0, GpuFact(GpuRef("h", uuid=UUIDS[1], bus_id=BUSES[1], index=0), {}))
    assert fleet.view().gpus[key].index == 0


def test_pci_names_the_driver_that_holds_a_gpu(fleet: Fleet) -> None:
    devices = tuple(PciGpu(BUSES[i], driver=d) for i, d in enumerate(["vfio-pci", "nouveau", ""]))
    tell(fleet, NVML, 10.0, NodeFact(NodeRef("h"), pci=devices))
    words = [r.presence_reason for r in rows(fleet)]
    assert {r.presence for r in rows(fleet)} == {Presence.DRIVERLESS}
    assert "virtual machine" in words[0]
    assert "nouveau" in words[1]
    assert "no driver" in words[2]


def test_a_bus_listing_that_tells_no_driver_claims_none(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, NodeFact(NodeRef("h"), pci=(PciGpu(BUSES[0]),)))
    (row,) = rows(fleet)
    assert row.presence is Presence.UNKNOWN
    assert "which driver holds it is not told" in row.presence_reason


def test_mig_instances_are_joined_by_id_and_by_uuid(fleet: Fleet) -> None:
    mig = "MIG-13a6e898-1b69-33d1-4fd1-9b8ea7466ab9"
    tell(fleet, EXPORTER, 10.0, GpuFact(GpuRef("h", uuid=UUIDS[0], mig_uuid=mig), {"mig_profile": "2g.20gb"}))
    tell(
        fleet,
        PROMETHEUS,
        10.0,
        GpuFact(GpuRef("h", uuid=UUIDS[0], instance="3"), {"graphics_activity": 71.0}),
    )
    assert len(rows(fleet)) == 3
    tell(
        fleet,
        NVML,
        11.0,
        GpuFact(GpuRef("h", uuid=UUIDS[0], instance="3", mig_uuid=mig), {"memory_used_mib": 7.0}),
    )
    board, instance = rows(fleet)
    assert board.key.instance == ""
    assert instance.key.instance == "3"
    assert {"mig_profile", "graphics_activity", "memory_used_mib"} <= instance.readings.keys()


def test_instances_follow_their_board_in_order(fleet: Fleet) -> None:
    tell(
        fleet, NVML, 10.0, gpu("h", 1), gpu("h", 0),
        *(GpuFact(GpuRef("h", uuid=UUIDS[0], instance=i), {}) for i in ("11", "7", "9")),
    )  # fmt: skip
    assert [(r.key.uuid, r.key.instance) for r in rows(fleet)] == [
        (UUIDS[0], ""), (UUIDS[0], "7"), (UUIDS[0], "9"), (UUIDS[0], "11"), (UUIDS[1], ""),
    ]  # fmt: skip


def test_a_reference_without_host_finds_the_only_row_with_its_uuid(fleet: Fleet) -> None:
    tell(fleet, NVML, 10.0, gpu("h", 0))
    tell(fleet, PROMETHEUS, 10.0, GpuFact(GpuRef("", uuid=UUIDS[0]), {"nvlink_throughput_bytes_per_s": 4.0}))
    (row,) = rows(fleet)
    assert row.readings["nvlink_throughput_bytes_per_s"].number == 4.0


def test_full_reference_has_all_names() -> None:
    assert ref("h", 2) == GpuRef("h", "", UUIDS[2], BUSES[2], 2)
