"""Recorded outputs of real machines, where the checkout has them beside it: all load with the right GPUs.

The oracle is a plain reading of each file (ElementTree, or one regular expression), not the code under test.
"""

import re
import tarfile
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from gputop.model.facts import GpuFact, NodeFact, Presence, ProcessesFact
from gputop.model.identity import normal_bus_id
from gputop.model.quantity import QUANTITIES
from gputop.model.reading import Absent
from gputop.sources.bundle.kinds import Kind
from gputop.sources.bundle.load import LoadedBundle, load
from gputop.sources.bundle.page import Unit
from gputop.sources.bundle.read import read
from tests.unit.bundle.bundle_files import check_cut

PUBLIC = Path(__file__).parents[2].parent / "shared" / "fixtures" / "public"

pytestmark = pytest.mark.skipif(not PUBLIC.is_dir(), reason="no ../shared/fixtures/public beside this checkout")

FB_MEMORY = r"FB Memory Usage\n +Total +: (\d+) MiB(?:\n +Reserved +: \d+ MiB)?\n +Used +: (\d+)"


def files(folder: str, pattern: str = "*") -> list[Path]:
    return sorted((PUBLIC / folder).glob(pattern))


def ident(path: Path) -> str:
    return path.stem


def number(text: str | None) -> float | None:
    found = re.match(r"-?\d+(\.\d+)?", text or "")
    return float(found.group()) if found else None


def told(unit: Unit, quantity: str) -> float | None:
    value = unit.readings.get(quantity)
    return value if isinstance(value, float) else None


XML_PATHS = {
    "memory_total_mib": ("fb_memory_usage/total",),
    "memory_used_mib": ("fb_memory_usage/used",),
    "utilization": ("utilization/gpu_util",),
    "temperature_c": ("temperature/gpu_temp",),
    "memory_temperature_c": ("temperature/memory_temp",),
    "fan_speed_percent": ("fan_speed",),
    "sm_clock_mhz": ("clocks/sm_clock",),
    "pcie_generation": ("pci/pci_gpu_link_info/pcie_gen/current_link_gen",),
    "pcie_width": ("pci/pci_gpu_link_info/link_widths/current_link_width",),
    "pcie_replay_total": ("pci/replay_counter",),
    "ecc_aggregate_dram_uncorrected": ("ecc_errors/aggregate/dram_uncorrectable",),
    "row_remap_uncorrected": ("remapped_rows/remapped_row_unc",),
    "temperature_margin_c": ("temperature/gpu_temp_tlimit",),
    "power_w": (
        "power_readings/power_draw",
        "gpu_power_readings/power_draw",
        "gpu_power_readings/average_power_draw",
        "gpu_power_readings/instant_power_draw",
    ),
    "power_limit_w": ("power_readings/enforced_power_limit", "gpu_power_readings/current_power_limit"),
}


@pytest.mark.parametrize("path", files("nvidia-smi-xml"), ids=ident)
def test_xml(path: Path) -> None:
    root = ET.parse(path).getroot()  # noqa: S314 - our own files
    (page,) = read(path.read_bytes()).pages
    boards = [unit for unit in page.units if not unit.is_instance]
    gpus = root.findall("gpu")
    assert page.kind is Kind.SMI_XML
    assert page.node["driver_version"] == root.findtext("driver_version")
    assert len(boards) == len(gpus) == int(root.findtext("attached_gpus") or 0)
    assert page.lists_all
    assert page.at is not None
    assert page.notes == ()
    for index, (board, gpu) in enumerate(zip(boards, gpus, strict=True)):
        assert board.index == index
        assert board.uuid == gpu.findtext("uuid")
        assert board.bus_id == normal_bus_id(gpu.get("id") or "")
        assert board.presence is Presence.PRESENT
        assert board.readings["model"] == gpu.findtext("product_name")
        for quantity, paths in XML_PATHS.items():
            values = [number(gpu.findtext(where)) for where in paths]
            expected = next((value for value in values if value is not None), None)
            if QUANTITIES[quantity].zero_is_blank and expected == 0.0:
                expected = None
            assert told(board, quantity) == expected, quantity
        assert isinstance(board.processes, tuple)
        assert len(board.processes) == len(gpu.findall("processes/process_info"))


@pytest.mark.parametrize("path", files("nvidia-smi-q"), ids=ident)
def test_query_text(path: Path) -> None:
    text = path.read_text()
    (page,) = read(path.read_bytes()).pages
    parts = re.split(r"^GPU (?=0000)", text, flags=re.MULTILINE)[1:]
    assert page.kind is Kind.SMI_QUERY
    assert len(page.units) == len(parts) == int(re.findall(r"Attached GPUs +: (\d+)", text)[0])
    assert page.node["driver_version"] == re.findall(r"Driver Version +: (\S+)", text)[0]
    for unit, part in zip(page.units, parts, strict=True):
        assert unit.bus_id == normal_bus_id(part.split("\n", maxsplit=1)[0])
        assert unit.uuid == next(iter(re.findall(r"GPU UUID +: (\S+)", part)), "")
        assert unit.presence is Presence.PRESENT
        memory = re.findall(FB_MEMORY, part)
        if memory:
            read_as = told(unit, "memory_total_mib"), told(unit, "memory_used_mib")
            assert read_as == tuple(map(float, memory[0]))
        for quantity, pattern in {
            "temperature_c": r"GPU Current Temp +: (\d+) C",
            "utilization": r"Utilization\n +G[Pp][Uu] +: (\d+) %",
            "sm_clock_mhz": r"\n    Clocks\n +Graphics +: \d+ MHz\n +SM +: (\d+) MHz",
            "retired_pages_dbe": r"Double Bit ECC +: (\d+)",
            "power_limit_w": r"Power Readings\n(?:.*\n){1,4}? +Current Power Limit +: ([\d.]+) W",
        }.items():
            found = re.findall(pattern, part)
            assert told(unit, quantity) == (float(found[0]) if found else None), quantity
        if "Processes" in part:
            pids = [int(pid) for pid in re.findall(r"Process ID +: (\d+)", part)]
            assert isinstance(unit.processes, tuple)
            assert [process.pid for process in unit.processes] == pids


@pytest.mark.parametrize("path", files("nvidia-smi-misc", "*list*"), ids=ident)
def test_list(path: Path) -> None:
    text = path.read_text()
    (page,) = read(path.read_bytes()).pages
    assert page.kind is Kind.SMI_LIST
    assert [u.uuid for u in page.units if not u.is_instance] == re.findall(
        r"^GPU.*UUID: (GPU-[^)]*)", text, re.MULTILINE
    )
    instances = [u for u in page.units if u.is_instance]
    assert [u.mig_uuid for u in instances] == re.findall(r"UUID: (MIG-[^)]*)", text)
    assert [u.readings["mig_profile"] for u in instances] == re.findall(r"MIG (\d+g\.\d+gb)", text)
    assert [u.mig_index for u in instances] == list(range(len(instances)))
    assert {u.uuid for u in instances} <= {u.uuid for u in page.units if not u.is_instance}


@pytest.mark.parametrize("path", files("lspci"), ids=ident)
def test_lspci(path: Path) -> None:
    gpus = re.findall(r"^(\S+) (?:3D|VGA).*\[10de:(\w+)\]", path.read_text(), re.MULTILINE)
    (page,) = read(path.read_bytes()).pages
    assert page.pci is not None
    assert [(gpu.bus_id, gpu.device_id) for gpu in page.pci] == [(normal_bus_id(bus), id_) for bus, id_ in gpus]
    assert gpus


READ = {
    "nvidia-smi-xml": {Kind.SMI_XML},
    "nvidia-smi-q": {Kind.SMI_QUERY},
    "lspci": {Kind.LSPCI},
    "metrics": {Kind.EXPORTER, Kind.PROMETHEUS},
    "nvidia-smi-table": {Kind.SMI_TABLE},
    "nvidia-smi-csv": {Kind.SMI_CSV},
    "nvidia-smi-misc": {Kind.SMI_LIST, Kind.SMI_DMON, Kind.SMI_TOPO, Kind.SMI_NVLINK},
    "kernel-log": {Kind.KERNEL_LOG},
    "fabric-manager-log": {Kind.FABRIC_LOG},
}


@pytest.mark.parametrize("folder", READ)
def test_kinds_are_told_by_content(folder: str) -> None:
    kinds = {path.name: read(path.read_bytes()).kind for path in files(folder)}
    assert {name: kind for name, kind in kinds.items() if kind not in READ[folder]} == {}


def boards(bundle: LoadedBundle) -> set[tuple[str, str]]:
    return {
        (fact.ref.host, fact.ref.uuid or fact.ref.bus_id)
        for batch in bundle.batches
        for fact in batch.facts
        if isinstance(fact, GpuFact) and not fact.ref.is_instance
    }


def test_the_whole_folder_loads_and_tells_each_file() -> None:
    bundle = load([PUBLIC])
    words = "\n".join(finding.text for finding in bundle.findings)
    for folder in ("nvidia-smi-xml", "nvidia-smi-q", "lspci"):
        for path in files(folder):
            assert f"{folder}/{path.name}: " in words
    hosts = {host for host, _ in boards(bundle)}
    assert {"a10g", "h100-8x-570", "page-retirement-8x-535"} <= hosts
    for batch in bundle.batches:
        for fact in batch.facts:
            if isinstance(fact, GpuFact | NodeFact):
                for quantity, value in fact.readings.items():
                    assert quantity in QUANTITIES
                    assert not isinstance(value, str) or value.isprintable()
            if isinstance(fact, ProcessesFact) and not isinstance(fact.processes, Absent):
                assert len({process.pid for process in fact.processes}) == len(fact.processes)


def test_a_tar_archive_tells_the_same_as_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "public.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(PUBLIC, arcname=".")
    assert boards(load([path])) == boards(load([PUBLIC]))


SMALL = [
    p for folder in ("nvidia-smi-xml", "nvidia-smi-q", "lspci") for p in files(folder) if p.stat().st_size < 60_000
]


@pytest.mark.parametrize("path", SMALL, ids=ident)
def test_cut_files_tell_nothing_else(path: Path) -> None:
    data = path.read_bytes()
    for cut in range(0, len(data), max(1, len(data) // 23)):
        check_cut(data, cut)
