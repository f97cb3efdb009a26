"""The node around the GPUs: the PCI bus, memory, versions, and GPUs that live in system memory."""

from pathlib import Path

import pytest

from gputop.model.reading import Absent, Value
from gputop.sources.nvml import errors, host
from gputop.sources.nvml.detect import signs
from gputop.sources.nvml.pci import PciBus
from gputop.sources.nvml.unified import as_unified, is_unified
from tests.unit.nvml.rig import pci_device

Roots = tuple[Path, Path]


def test_the_bus_shows_gpus_by_vendor_and_class(roots: Roots) -> None:
    proc, sys = roots
    pci_device(sys, "0000:2c:00.0")
    pci_device(sys, "000f:01:00.0", driver="vfio-pci", kind="0x030000")
    pci_device(sys, "0000:1b:00.0", driver="", status="suspended", device="0x2684")
    pci_device(sys, "0000:1b:00.1", kind="0x040300", driver="snd_hda_intel")
    pci_device(sys, "0000:03:00.0", vendor="0x1a03", kind="0x030000")
    gpus = PciBus(sys, proc, ()).gpus()
    assert gpus is not None
    assert [(gpu.bus_id, gpu.driver, gpu.asleep, gpu.device_id) for gpu in gpus] == [
        ("00000000:1b:00.0", "", True, "2684"),
        ("00000000:2c:00.0", "nvidia", False, "2330"),
        ("0000000f:01:00.0", "vfio-pci", False, "2330"),
    ]


def test_a_card_that_goes_and_one_that_comes(roots: Roots) -> None:
    proc, sys = roots
    pci_device(sys, "0000:2c:00.0")
    bus = PciBus(sys, proc, ())
    assert len(bus.gpus() or ()) == 1
    folder = sys / "bus" / "pci" / "devices" / "0000:2c:00.0"
    folder.rename(folder.with_name("0000:3d:00.0"))
    assert [gpu.bus_id for gpu in bus.gpus() or ()] == ["00000000:3d:00.0"]


def test_no_bus_is_not_an_empty_bus(roots: Roots, tmp_path: Path) -> None:
    assert PciBus(tmp_path / "nowhere", roots[0], ()).gpus() is None
    assert PciBus(roots[1], roots[0], ()).gpus() == ()


def test_names_come_from_the_driver_or_the_database(roots: Roots, tmp_path: Path) -> None:
    proc, sys = roots
    pci_device(sys, "0000:2c:00.0")
    pci_device(sys, "0000:3d:00.0", driver="nouveau", device="0x2684")
    folder = proc / "driver" / "nvidia" / "gpus" / "0000:2c:00.0"
    folder.mkdir(parents=True)
    (folder / "information").write_text("Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 42\n")
    database = tmp_path / "pci.ids"
    database.write_text("# comment\n\n1002  Other\n\t2684  Wrong\n10de  NVIDIA\n\t2684  AD102 [GeForce RTX 4090]\n")
    names = [gpu.name for gpu in PciBus(sys, proc, (str(database),)).gpus() or ()]
    assert names == ["NVIDIA H100 80GB HBM3", "AD102 [GeForce RTX 4090]"]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\n",
            "535.54.03",
        ),
        (
            (
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (x)\n"
                "GCC version:  gcc version 11.4.0\n"
            ),
            "570.86.15",
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.82  Release Build\n", "580.82"),
        ("something else\n", ""),
    ],
)
def test_the_kernel_module_tells_its_version(roots: Roots, text: str, version: str) -> None:
    folder = roots[0] / "driver" / "nvidia"
    folder.mkdir(parents=True)
    (folder / "version").write_text(text)
    assert host.kernel_driver_version(roots[0]) == version


def test_used_system_memory_is_counted_by_what_is_available(tmp_path: Path) -> None:
    """Case 6: a page cache of 60 GiB is not use."""
    used = []
    for free, available in ((103.25, 115.85), (41.52, 115.65)):
        gib = 1024 * 1024
        (tmp_path / "meminfo").write_text(
            f"MemTotal:       127600748 kB\nMemFree:  {int(free * gib)} kB\nMemAvailable:   {int(available * gib)} kB\n"
        )
        readings = host.system_memory(tmp_path)
        total, left = readings["system_memory_total_mib"], readings["system_memory_available_mib"]
        assert isinstance(total, float)
        assert isinstance(left, float)
        used.append((total - left) / 1024.0)
    assert used[1] - used[0] == pytest.approx(0.2, abs=0.01)


def test_memory_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    assert isinstance(host.system_memory(tmp_path)["system_memory_total_mib"], Absent)


@pytest.mark.parametrize(
    ("code", "word", "says", "denied"),
    [
        (errors.LIB_RM_VERSION_MISMATCH, "driver_mismatch", ("550.1", "535.2", "reboot"), False),
        (errors.LIBRARY_NOT_FOUND, "no_library", ("libnvidia-ml.so.1", "535.2"), False),
        (errors.DRIVER_NOT_LOADED, "driver_not_loaded", ("modprobe nvidia",), False),
        (errors.NO_PERMISSION, "no_permission", ("/dev/nvidiactl",), True),
        (errors.GPU_NOT_FOUND, "no_gpu", ("lists no GPU",), False),
        (999, "nvml_error", ("UNKNOWN", "999"), False),
        (4711, "nvml_error", ("4711",), False),
    ],
)
def test_each_failed_init_has_its_own_words(code: int, word: str, says: tuple[str, ...], denied: bool) -> None:
    refusal = host.explain_init_failure(code, "550.1", "535.2", None)
    assert refusal.code == word
    assert refusal.denied is denied
    for part in says:
        assert part in refusal.text


def memory(total: float, used: float, free: float, reserved: float | Absent = 0.0) -> dict[str, Value]:
    return {
        "memory_total_mib": total,
        "memory_used_mib": used,
        "memory_free_mib": free,
        "memory_reserved_mib": reserved,
    }


_NOT_SUPPORTED = Absent("n/a", "not_supported", "x")


@pytest.mark.parametrize(
    ("capability", "values", "system_mib", "unified"),
    [
        # GB10, told by its capability whatever it reports.
        ((12, 1), dict.fromkeys(memory(0, 0, 0), _NOT_SUPPORTED), 124610.0, True),
        (None, memory(0.0, 0.0, 0.0), 124610.0, True),
        # leptonai/gpud#1170: a total near the system's whose parts do not add up.
        (None, memory(122548.35, 6590.2, 7607.4), 124610.0, True),
        # A discrete GPU in a host with as much memory as it has itself.
        ((9, 0), memory(81559.0, 1000.0, 80008.0, 551.0), 81559.0, False),
        ((9, 0), memory(81559.0, 1000.0, 80008.0, 551.0), None, False),
        # A vGPU guest that refuses the question is not unified for it.
        ((8, 0), dict.fromkeys(memory(0, 0, 0), _NOT_SUPPORTED), 124610.0, False),
    ],
)
def test_system_memory_is_not_taken_for_vram(
    capability: tuple[int, int] | None, values: dict[str, Value], system_mib: float | None, unified: bool
) -> None:
    assert is_unified(capability, values, system_mib) is unified


def test_a_unified_gpu_shows_no_total_and_the_sum_of_its_processes() -> None:
    values = memory(122548.35, 6590.2, 7607.4)
    as_unified(values, 512.0)
    assert values["memory_used_mib"] == 512.0
    for quantity in ("memory_total_mib", "memory_free_mib", "memory_reserved_mib"):
        told = values[quantity]
        assert isinstance(told, Absent)
        assert told.code == "unified_memory"
    as_unified(values, None)
    assert isinstance(values["memory_used_mib"], Absent)


def test_a_machine_without_a_gpu_shows_no_sign_of_one(roots: Roots, tmp_path: Path) -> None:
    assert signs(*roots, tmp_path / "dev") == ""


@pytest.mark.parametrize("name", ["nvidiactl", "dxg"])
def test_a_device_file_is_a_sign(roots: Roots, tmp_path: Path, name: str) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / name).touch()
    assert signs(*roots, tmp_path / "dev").endswith(name)


def test_gpus_without_a_driver_are_a_sign(roots: Roots, tmp_path: Path) -> None:
    pci_device(roots[1], "0000:2c:00.0", driver="nouveau")
    assert signs(*roots, tmp_path / "dev") == "1 NVIDIA GPUs on the PCI bus"
