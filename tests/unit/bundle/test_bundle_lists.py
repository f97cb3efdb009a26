"""`nvidia-smi -L`, `lspci` in its forms, and what nvidia-smi says when it fails."""

import pytest

from gputop.model.facts import PciGpu, Presence
from gputop.sources.bundle.kinds import Kind
from gputop.sources.bundle.read import read
from gputop.sources.bundle.smi_error import read_errors
from tests.unit.bundle.bundle_files import FILES, page

A100 = "GPU-5a000002-1111-4222-8333-000000000001"


def test_boards_and_mig_devices_are_listed_with_index_and_profile() -> None:
    found = page("list-mig.txt")
    assert [(u.uuid, u.index, u.mig_uuid, u.mig_index, u.readings.get("mig_profile")) for u in found.units] == [
        (A100, 0, "", -1, None),
        (A100, 0, "MIG-5a0000a0-1111-5222-8333-000000000001", 0, "3g.40gb"),
        (A100, 0, "MIG-5a0000a0-1111-5222-8333-000000000002", 1, "1c.1g.10gb"),
        (A100[:-1] + "2", 1, "", -1, None),
    ]
    assert found.units[0].readings["model"] == "NVIDIA A100-SXM4-80GB"
    assert found.lists_all


def test_old_mig_names_tell_the_instance() -> None:
    found = page("list-old-mig.txt")
    assert [u.instance for u in found.units] == ["", "1", "5/1"]
    assert {u.uuid for u in found.units} == {"GPU-5a000003-1111-4222-8333-000000000001"}


def test_gpus_that_cannot_be_opened_are_rows_among_the_others() -> None:
    found = page("list-lost.txt")
    assert [(u.bus_id, u.index, u.presence) for u in found.units if not u.uuid] == [
        ("00000000:02:00.0", -1, Presence.LOST),
        ("00000000:41:00.0", 3, Presence.ERROR),
    ]
    assert [u.index for u in found.units if u.uuid] == [0, 2]


def test_lists_of_several_containers_in_one_file_claim_no_index_and_no_completeness() -> None:
    text = "".join(f"GPU 0: Tesla T4 (UUID: GPU-5c00000{n}-1111-4222-8333-000000000001)\n" for n in (1, 2, 1))
    (found,) = read(text.encode()).pages
    assert [u.uuid[4:12] for u in found.units] == ["5c000001", "5c000002"]
    assert {u.index for u in found.units} == {-1}
    assert not found.lists_all


def test_a_list_that_ends_in_a_line_makes_nobody_missing() -> None:
    text = (FILES / "list-mig.txt").read_text()
    (found,) = read(text[: text.index("GPU 1") + 20].encode()).pages
    assert len(found.units) == 3
    assert not found.lists_all


H100 = ("2331", "GH100 [H100 PCIe]")


@pytest.mark.parametrize(
    ("name", "gpus"),
    [
        (
            "lspci-nnk.txt",
            [
                PciGpu("00000000:3b:00.0", *H100, driver="nvidia"),
                PciGpu("00000000:86:00.0", *H100, driver="vfio-pci"),
                PciGpu("00000000:af:00.0", "2684", "AD102 [GeForce RTX 4090]", driver=""),
            ],
        ),
        ("lspci-D-n.txt", [PciGpu("00000001:00:00.0", "20b5"), PciGpu("00000008:01:00.0", "2330")]),
        (
            "lspci-plain.txt",
            [
                PciGpu("00000000:01:00.0", "", "TU104 [GeForce RTX 2080 SUPER]"),
                PciGpu("00000000:02:00.0", "2941"),
            ],
        ),
        ("lspci-vmmk.txt", [PciGpu("00000000:3b:00.0", *H100, driver="nvidia")]),
        ("lspci-mm.txt", [PciGpu("00000000:3b:00.0", *H100)]),
        # The line that names the driver may be one of those that grep dropped.
        (
            "lspci-grep.txt",
            [PciGpu("00000000:86:00.0", *H100), PciGpu("00000000:af:00.0", *H100, driver="nvidia")],
        ),
    ],
)
def test_gpus_on_the_bus_with_the_driver_that_holds_them(name: str, gpus: list[PciGpu]) -> None:
    found = page(name)
    assert found.kind is Kind.LSPCI
    assert found.pci is not None
    assert list(found.pci) == gpus


def test_a_device_that_answers_with_ones_is_told() -> None:
    assert [t.code for t in page("lspci-D-n.txt").troubles] == ["gpu_off_bus"]
    assert page("lspci-nnk.txt").troubles == ()


def test_a_cut_output_does_not_say_that_no_driver_holds_the_last_gpu() -> None:
    text = (FILES / "lspci-nnk.txt").read_text()
    cut = text[: text.index("\tKernel driver in use: vfio-pci")]
    (found,) = read(cut.encode()).pages
    assert found.pci is not None
    assert [gpu.driver for gpu in found.pci] == ["nvidia", None]


NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the "
    "latest NVIDIA driver is installed and running.\n"
)
NO_LIBRARY = (
    "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA "
    "Display Driver is properly installed and present in your system.\n"
)
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (NO_DRIVER, "driver_not_loaded"),
        ("Failed to initialize NVML: Driver Not Loaded\n", "driver_not_loaded"),
        (MISMATCH, "driver_mismatch"),
        ("Failed to initialize NVML: RM has detected an NVML/RM version mismatch.\n", "driver_mismatch"),
        (NO_LIBRARY, "no_library"),
        ("Failed to initialize NVML: NVML Shared Library Not Found\n", "no_library"),
        ("No devices were found\n", "no_gpu"),
        ("No devices found.\n", "no_gpu"),
        ("bash: nvidia-smi: command not found\n", "no_nvidia_smi"),
        ("sh: 1: nvidia-smi: not found\n", "no_nvidia_smi"),
        ('exec: "nvidia-smi": executable file not found in $PATH: unknown\n', "no_nvidia_smi"),
        ("Failed to initialize NVML: Insufficient Permissions\n", "no_permission"),
        ("Failed to initialize NVML: GPU access blocked by the operating system\n", "no_permission"),
        ("Failed to initialize NVML: The operating system has blocked the request.\n", "no_permission"),
        ("Failed to initialize NVML: Unknown Error\n", "nvml_unknown_error"),
        ("Failed to initialize NVML: GPU is lost\n", "gpu_lost"),
        ("Failed to initialize NVML: GPU requires reset\n", "reset_required"),
        ("Failed to initialize NVML: Initialization error\n", "nvml_error"),
        ("$ nvidia-smi -q\n\nNo devices were found\n$ \n", "no_gpu"),
    ],
)
def test_a_file_that_holds_only_the_error_becomes_a_trouble_of_the_node(text: str, code: str) -> None:
    found = read(text.encode())
    assert found.kind is Kind.SMI_ERROR
    (only,) = found.pages
    assert [t.code for t in only.troubles] == [code]
    assert not only.lists_all


def test_the_library_version_beside_the_mismatch_is_kept() -> None:
    assert read_errors(MISMATCH).node == {"nvml_version": "550.54"}


@pytest.mark.parametrize(
    ("said", "bus_id", "index", "presence"),
    [
        ("GPU 0000:3B:00.0: GPU is lost.  Reboot the system", "00000000:3b:00.0", -1, Presence.LOST),
        ("GPU 0000:3B:00.0: Unknown Error", "00000000:3b:00.0", -1, Presence.ERROR),
        ("GPU0: 0000:02:00.0: Unknown Error", "00000000:02:00.0", 0, Presence.ERROR),
        ("GPU 00000008:06:00.0: Insufficient Permissions", "00000008:06:00.0", -1, Presence.DENIED),
        ("gpu 0000:02:00.0: GPU requires reset", "00000000:02:00.0", -1, Presence.RESET_REQUIRED),
        ("GPU 12: GPU is lost", "", 12, Presence.LOST),
        ("GPU2: Unknown Error", "", 2, Presence.ERROR),
        ("GPU0000:02:00.0: GPU is lost.", "00000000:02:00.0", -1, Presence.LOST),
        ("GPU 0000:01:00.0: Not Found", "00000000:01:00.0", -1, Presence.ERROR),
    ],
)
def test_the_gpu_that_cannot_be_opened_is_a_row(said: str, bus_id: str, index: int, presence: Presence) -> None:
    text = f"Unable to determine the device handle for {said}\nNo devices were found\n"
    found = read(text.encode())
    assert found.kind is Kind.SMI_ERROR
    (only,) = found.pages
    assert [(u.bus_id, u.index, u.presence) for u in only.units] == [(bus_id, index, presence)]
    assert only.troubles == ()
