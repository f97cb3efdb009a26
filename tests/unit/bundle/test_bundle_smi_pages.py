"""`nvidia-smi -q` in XML and text, drivers 418 to 610: boards, MIG instances, units, states, processes."""

import pytest

from gputop.model.facts import Presence
from gputop.model.quantity import QUANTITIES, Kind
from gputop.model.reading import UNKNOWN, Absent
from gputop.sources.bundle.read import read
from tests.unit.bundle.bundle_files import FILES, page, pages, shown, unit

EXPECTED = {
    ("xml-418-tesla.xml", "1", ""): {
        "memory_total_mib": 16130.0,
        "memory_used_mib": 4021.0,
        "utilization": 93.0,
        "temperature_c": 71.0,
        "memory_temperature_c": 68.0,
        "temperature_slowdown_c": 87.0,
        "temperature_shutdown_c": 90.0,
        "fan_speed_percent": "not_supported",
        # No architecture in this layout, so what the number is cannot be told by the board.
        "power_w": 247.31,
        "power_limit_w": 238.0,
        "power_limit_requested_w": 240.0,
        "power_limit_default_w": 250.0,
        "sm_clock_mhz": 1231.0,
        "memory_clock_max_mhz": 878.0,
        "pcie_width": 8.0,
        "pcie_width_max": 16.0,
        "pcie_replay_total": 4.0,
        "pcie_rx_bytes_per_s": 34_000_000.0,
        "pcie_tx_bytes_per_s": 12_000_000.0,
        "clock_event_reasons": float(0x2 | 0x4 | 0x20),
        "ecc_mode": 1.0,
        "ecc_mode_pending": 0.0,
        "ecc_volatile_dram_corrected": 7.0,
        "ecc_volatile_corrected": 10.0,
        "ecc_volatile_uncorrected": 3.0,
        "ecc_aggregate_corrected": 75.0,
        "ecc_aggregate_uncorrected": 5.0,
        "retired_pages_sbe": 2.0,
        "retired_pages_dbe": 6.0,
        "retired_pages_pending": 1.0,
        "display_attached": 1.0,
        "compute_mode": "exclusive process",
        "inforom_version": "G500.0200.00.03",
    },
    ("xml-550-mig.xml", "1", ""): {
        "utilization": "not_supported",
        "mig_mode": 1.0,
        "memory_used_mib": 20137.0,
        "memory_reserved_mib": 864.0,
        "power_w": 133.7,
        "power_meaning": "instantaneous power of the board",
    },
    ("xml-550-mig.xml", "1", "2"): {
        "memory_total_mib": 40192.0,
        "memory_used_mib": 20123.0,
        "bar1_used_mib": 2.0,
        "multiprocessors": 42.0,
        "ecc_volatile_sram_uncorrected": 1.0,
    },
    ("xml-550-mig.xml", "1", "9/1"): {"memory_used_mib": 12.0, "multiprocessors": 14.0},
    ("xml-550-mig.xml", "2", ""): {"mig_mode": 0.0, "mig_mode_pending": 1.0, "utilization": 0.0},
    ("query-470-mig.txt", "1", ""): {
        "memory_used_mib": 5134.0,
        "utilization": "not_supported",
        "pcie_rx_bytes_per_s": "not_supported",
        "clock_event_reasons": float(0x8 | 0x40),
        "row_remap_pending": "not_supported",
        "row_remap_banks_max": "not_supported",
        "ecc_volatile_uncorrected": "not_supported",
        "ecc_aggregate_corrected": 3.0,
        "ecc_aggregate_uncorrected": 1.0,
        "power_w": 288.12,
        "power_limit_w": 380.0,
        "power_limit_requested_w": 390.0,
    },
    ("query-470-mig.txt", "1", "1"): {"memory_used_mib": 11.0, "multiprocessors": 42.0},
    ("query-470-mig.txt", "1", "5"): {"memory_used_mib": 5123.0, "ecc_volatile_sram_uncorrected": 2.0},
    ("query-610-hopper.txt", "1", ""): {
        "temperature_margin_c": 21.0,
        "temperature_shutdown_margin_c": -8.0,
        "temperature_slowdown_margin_c": -2.0,
        "temperature_max_margin_c": 0.0,
        "memory_temperature_max_margin_c": 0.0,
        "power_w": 688.2,
        "power_meaning": "power of the board, averaged over one second",
        "power_average_w": 688.2,
        "power_instant_w": 699.9,
        "power_memory_w": 101.5,
        "power_module_w": "not_supported",
        # Nested one level deeper since driver 610.
        "power_limit_w": 700.0,
        "power_limit_requested_w": 690.0,
        "clock_event_reasons": float(0x4 | 0x80),
        "clock_event_power_cap_ns": 15_000.0,
        "clock_event_power_brake_ns": 3_000.0,
        "ecc_volatile_sram_uncorrected": 3.0,
        "ecc_volatile_uncorrected": 19.0,
        "ecc_volatile_corrected": 12.0,
        # A part that the board has not counts as nothing.
        "ecc_aggregate_sram_uncorrected": 6.0,
        "ecc_aggregate_uncorrected": 23.0,
        "ecc_sram_threshold_exceeded": 1.0,
        "row_remap_uncorrected": 1.0,
        "row_remap_pending": 1.0,
        "row_remap_failed": 0.0,
        "row_remap_banks_max": 3070.0,
        "display_attached": 0.0,
        "recovery_action": 0.0,
        "fabric_state": "completed, limited capacity, degraded bandwidth",
    },
    ("query-610-hopper.txt", "2", ""): {
        "memory_total_mib": 143771.0,
        "memory_used_mib": "error",
        "clock_event_reasons": "error",
        "fabric_state": "completed, failed with Unknown Error",
    },
    ("xml-570-troubled.xml", "1", ""): {"temperature_c": "error", "memory_used_mib": 70321.0},
    ("xml-570-troubled.xml", "2", ""): {"temperature_c": "lost", "memory_total_mib": "lost"},
    ("xml-570-troubled.xml", "3", ""): {"utilization": "reset_required", "temperature_c": 31.0},
    ("xml-580-unified.xml", "1", ""): {
        "memory_total_mib": "not_supported",
        "memory_used_mib": "not_supported",
        "utilization": 12.0,
        "memory_utilization": "not_supported",
        "temperature_margin_c": 41.0,
        "power_w": 9.51,
        "power_meaning": "instantaneous power of the board",
        "recovery_action": 4.0,
    },
}


@pytest.mark.parametrize("where", EXPECTED, ids="-".join)
def test_readings(where: tuple[str, str, str]) -> None:
    file, uuid_end, instance = where
    found = shown(unit(file, f"-00000000000{uuid_end}", instance))
    expected = EXPECTED[where]
    assert {quantity: found.get(quantity) for quantity in expected} == expected


@pytest.mark.parametrize(
    "name", sorted(p.name for p in FILES.glob("*.xml")) + sorted(p.name for p in FILES.glob("query*"))
)
def test_every_reading_is_a_known_quantity_of_the_right_type(name: str) -> None:
    for found in (u for p in pages(name) for u in p.units):
        for quantity, value in found.readings.items():
            is_text = QUANTITIES[quantity].kind is Kind.TEXT
            assert isinstance(value, Absent | (str if is_text else float)), quantity


def test_thresholds_that_are_margins_are_not_shown_as_temperatures() -> None:
    for file, uuid_end in (("query-610-hopper.txt", "1"), ("xml-580-unified.xml", "1")):
        assert "temperature_slowdown_c" not in unit(file, uuid_end).readings


@pytest.mark.parametrize(
    ("file", "driver", "cuda", "at"),
    [
        ("xml-418-tesla.xml", "418.67", "10.1", 1549260428.0),
        ("query-470-mig.txt", "470.82.01", "11.4", 1642129445.0),
        ("query-610-hopper.txt", "610.43.02", "13.3", 1794744794.0),
    ],
)
def test_versions_and_capture_time(file: str, driver: str, cuda: str, at: float) -> None:
    found = page(file)
    assert found.node["driver_version"] == driver
    assert found.node["cuda_version"] == cuda
    assert found.at == at


def test_every_state_of_a_gpu_is_told_apart_and_costs_only_its_own_row() -> None:
    found = page("xml-570-troubled.xml")
    assert [(u.bus_id, u.index, u.presence) for u in found.units] == [
        ("00000000:1a:00.0", 0, Presence.PRESENT),
        ("00000000:3b:00.0", 1, Presence.LOST),
        ("00000000:5d:00.0", 2, Presence.RESET_REQUIRED),
        ("00000000:9a:00.0", 3, Presence.ERROR),
        ("00000000:db:00.0", 4, Presence.RESET_REQUIRED),
    ]
    assert found.units[3].uuid == ""
    assert found.lists_all
    assert "lost" in found.units[1].presence_reason


def test_one_serial_on_two_boards_leaves_two_boards() -> None:
    boards = [u for u in page("xml-550-mig.xml").units if not u.is_instance]
    assert boards[0].readings["serial"] == boards[1].readings["serial"]
    assert [u.uuid[-1] for u in boards] == ["1", "2"]


def test_boards_without_uuid_are_told_by_bus_id_with_its_domain() -> None:
    units = page("query-d-ecc.txt").units
    assert [(u.uuid, u.bus_id) for u in units] == [("", "00000001:00:00.0"), ("", "00000002:00:00.0")]
    assert units[1].readings["ecc_aggregate_uncorrected"] == 2.0
    assert units[1].processes is None


def test_processes_stand_on_the_instance_that_runs_them() -> None:
    board, two, nine = page("xml-550-mig.xml").units[:3]
    assert board.processes == ()
    assert isinstance(two.processes, tuple)
    assert [(p.pid, p.kinds, p.memory_mib, p.command) for p in two.processes] == [(9001, "C", 20098.0, "vllm")]
    assert isinstance(nine.processes, tuple)
    (nameless,) = nine.processes
    assert nameless.kinds == "C+M"
    assert isinstance(nameless.memory_mib, Absent)
    assert isinstance(nameless.command, Absent)
    assert nameless.command.state == UNKNOWN
    text = unit("query-470-mig.txt", "1", "5")
    assert isinstance(text.processes, tuple)
    assert [(p.pid, p.memory_mib) for p in text.processes] == [(31337, 5101.0)]


def test_process_names_are_taken_as_they_are() -> None:
    processes = unit("query-610-hopper.txt", "1").processes
    assert isinstance(processes, tuple)
    assert processes[0].command == "python: a [weird] name | with : colons"
    assert processes[1].kinds == "C+G"
    xml = unit("xml-418-tesla.xml", "1").processes
    assert isinstance(xml, tuple)
    assert xml[0].command == "python train.py --lr 0.1 --if a<b && c"


def test_a_process_on_two_lists_counts_its_memory_once() -> None:
    processes = unit("xml-580-unified.xml", "1").processes
    assert isinstance(processes, tuple)
    assert [(p.pid, p.kinds, p.memory_mib) for p in processes] == [(77, "C+G", 1024.0)]


def test_a_list_that_could_not_be_read_is_not_an_empty_list() -> None:
    processes = unit("query-610-hopper.txt", "2").processes
    assert isinstance(processes, Absent)
    assert processes.state == UNKNOWN


def test_a_paste_with_remarks_and_a_warning_in_the_middle() -> None:
    found = page("query-paste.txt")
    (only,) = found.units
    assert only.readings["memory_total_mib"] == 23034.0
    assert only.readings["vgpu_licensed"] == 1.0
    assert only.readings["model"] == "NVIDIA L4"
    assert shown(only)["fan_speed_percent"] == "not_supported"
    assert [t.code for t in found.troubles] == ["inforom_corrupted"]


def test_without_indentation_only_what_needs_no_heading_is_read() -> None:
    found = page("query-flat.txt")
    assert shown(found.units[0]) == {
        "fan_speed_percent": 33.0,
        "model": "NVIDIA L4",
        "performance_state": 8.0,
    }
    assert found.units[0].uuid == "GPU-5b000005-1111-4222-8333-000000000001"
    assert any("indentation" in note for note in found.notes)


def test_outputs_of_a_loop_are_pages_of_their_own() -> None:
    first, second = pages("query-loop.txt")
    assert (first.at, second.at) == (1743711682.0, 1743711802.0)
    assert [len(first.units), len(second.units)] == [2, 1]
    assert second.units[0].readings["utilization"] == 30.0


QUERY = """Timestamp : Mon Jan  6 10:00:00 2025
Attached GPUs : {attached}
GPU 00000000:65:00.0
    GPU UUID : {first}
GPU 00000000:66:00.0
    GPU UUID : {second}
"""


def test_some_of_the_gpus_have_no_index_and_miss_nobody() -> None:
    text = QUERY.format(attached=8, first="GPU-5b-1", second="GPU-5b-2")
    (found,) = read(text.encode()).pages
    assert [u.index for u in found.units] == [-1, -1]
    assert not found.lists_all
    assert any("2 of the 8" in note for note in found.notes)


def test_one_uuid_on_two_boards_is_no_identity() -> None:
    text = QUERY.format(attached=2, first="GPU-5b-0", second="GPU-5b-0")
    (found,) = read(text.encode()).pages
    assert [(u.uuid, u.bus_id) for u in found.units] == [("", "00000000:65:00.0"), ("", "00000000:66:00.0")]
    assert any("one UUID" in note for note in found.notes)


def test_a_vgpu_uuid_is_kept() -> None:
    text = QUERY.format(
        attached=2,
        first="GPU-d136047e-60b7-a7e4-23ce-baf400000000",
        second="GPU-5b000009-1111-4222-8333-000000000002",
    )
    assert read(text.encode()).pages[0].units[0].uuid == "GPU-d136047e-60b7-a7e4-23ce-baf400000000"


XML = """<?xml version="1.0" ?>
<nvidia_smi_log>
<attached_gpus>2</attached_gpus>
<gpu id="00000000:65:00.0"><uuid>GPU-5b-1</uuid>{first}</gpu>
<gpu id="00000000:66:00.0"><uuid>GPU-5b-2</uuid><fan_speed>44 %</fan_speed></gpu>
</nvidia_smi_log>
"""


@pytest.mark.parametrize(
    "first",
    [
        "<fan_speed>33 %",
        "<fan_speed>33 %</fan_sp",
        "<fan_speed>33 %</product_name>",
        "<power><<<>>",
        "<fan_speed \x00>1 %</fan_speed>",
    ],
)
def test_broken_xml_costs_the_rest_of_one_gpu_and_names_the_line(first: str) -> None:
    (found,) = read(XML.format(first=first).encode()).pages
    assert [u.uuid for u in found.units] == ["GPU-5b-1", "GPU-5b-2"]
    assert found.units[1].readings["fan_speed_percent"] == 44.0
    assert not isinstance(found.units[0].readings.get("fan_speed_percent"), float) or "\x00" in first
    assert any("line 4" in note for note in found.notes) or "\x00" in first


@pytest.mark.parametrize("byte", [b"\x00", b"\x1b", b"\xff\xfe", b"\x8f", b"&", b"&bogus;", b"&#0;", b"&#x1b;"])
def test_bad_characters_cost_nothing_else(byte: bytes) -> None:
    first = "<product_name>NVIDIA @ L4</product_name><fan_speed>33 %</fan_speed>"
    data = XML.format(first=first).encode().replace(b"@", byte)
    (found,) = read(data).pages
    assert found.units[0].readings["fan_speed_percent"] == 33.0
    assert "L4" in str(found.units[0].readings["model"])
    assert str(found.units[0].readings["model"]).isprintable()


def test_entities_are_neither_expanded_nor_fetched() -> None:
    bomb = """<?xml version="1.0"?>
<!DOCTYPE nvidia_smi_log [
 <!ENTITY a "aaaaaaaaaa">
 <!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">
 <!ENTITY x SYSTEM "file:///etc/hostname">
]>
<nvidia_smi_log><attached_gpus>1</attached_gpus>
<gpu id="00000000:65:00.0"><uuid>GPU-5b-1</uuid><product_name>&c;&x;</product_name></gpu>
</nvidia_smi_log>
"""
    (found,) = read(bomb.encode()).pages
    assert found.units[0].readings["model"] == "&c;&x;"


def test_total_memory_of_0_is_shared_memory_not_an_empty_board() -> None:
    memory = "<fb_memory_usage><total>0 MiB</total><used>0 MiB</used><free>0 MiB</free></fb_memory_usage>"
    (found,) = read(XML.format(first=memory).encode()).pages
    assert shown(found.units[0]) == {
        "memory_total_mib": "no_memory",
        "memory_used_mib": "no_memory",
        "memory_free_mib": "no_memory",
    }


def test_an_error_amid_xml_is_told() -> None:
    text = XML.format(first="<error>Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost</error>")
    (found,) = read(text.encode()).pages
    assert ("00000000:3b:00.0", Presence.LOST) in [(u.bus_id, u.presence) for u in found.units]


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["xml-550-mig.xml", "query-470-mig.txt", "list-mig.txt"])
def test_encodings_of_redirected_output(name: str, codec: str) -> None:
    text = (FILES / name).read_text()
    assert read(text.replace("\n", "\r\n").encode(codec)).pages == pages(name)


@pytest.mark.parametrize("lead", ["    ", "\t", "> "])
def test_an_indented_paste_reads_the_same(lead: str) -> None:
    text = (FILES / "query-470-mig.txt").read_text()
    indented = "".join(lead + line for line in text.splitlines(keepends=True))
    found = read(indented.encode()).pages
    assert found == pages("query-470-mig.txt")


def test_a_paste_whose_first_lines_lost_their_indentation() -> None:
    lines = [" " * 4 + line for line in (FILES / "query-470-mig.txt").read_text().splitlines(keepends=True)]
    text = "".join(line.lstrip(" ") if number < 9 else line for number, line in enumerate(lines))
    assert read(text.encode()).pages[0].units == page("query-470-mig.txt").units
