"""Outputs as they reach a ticket: behind prefixes, between other tools' lines, several in a file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gputop.fleet import Fleet
from gputop.model.facts import Presence
from gputop.sources.bundle.kinds import Kind
from gputop.sources.bundle.load import load
from gputop.sources.bundle.read import Read, read
from tests.unit.bundle.bundle_files import FILES

NAMES = (
    "list-mig.txt",
    "lspci-mm.txt",
    "lspci-nnk.txt",
    "lspci-vmmk.txt",
    "query-470-mig.txt",
    "query-610-hopper.txt",
    "query-loop.txt",
    "xml-418-tesla.xml",
    "xml-550-mig.xml",
    "xml-570-troubled.xml",
)
METRICS = (
    "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).\n"
    "# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n"
    'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-0f0f0f0f-0000-0000-0000-000000000001",pci_bus_id="00000000:3B:00.0"} 41\n'
    'DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-0f0f0f0f-0000-0000-0000-000000000001",pci_bus_id="00000000:3B:00.0"} 7\n'
)


def source(name: str) -> str:
    return METRICS if name == "page.prom" else (FILES / name).read_text(encoding="utf-8")


def each(prefix: str) -> Callable[[str], str]:
    return lambda text: "".join(prefix + line for line in text.splitlines(keepends=True))


def numbered(text: str) -> str:
    return "".join(f"{number:6d}\t{line}" for number, line in enumerate(text.splitlines(keepends=True), start=1))


def around(before: str, after: str = "") -> Callable[[str], str]:
    return lambda text: before + text.rstrip("\n") + "\n" + after


WRAPPINGS: dict[str, Callable[[str], str]] = {
    "kubectl exec": around(
        'Defaulted container "driver" out of: driver, init (init)\n', "command terminated with exit code 14\n"
    ),
    "prompts": around("[root@gpu-a03 ~]# cat it\n", "[root@gpu-a03 ~]#\n"),
    "set -x": around("+ date\nTue Jul 14 08:12:53 UTC 2026\n+ cat it\n"),
    "ansible": around("gpu-a03 | CHANGED | rc=0 >>\n"),
    "code fence": around("```\n", "```\n"),
    "ssh": around("Warning: Permanently added 'gpu-a03' (ED25519) to the list of known hosts.\r\n"),
    "kubectl logs --timestamps": each("2026-07-14T08:12:53.123456789Z "),
    "local time stamps": each("2026-07-14 08:12:53,123 "),
    "CRI log": each("2026-07-14T08:12:53.123456789+02:00 stdout F "),
    "kubectl logs --prefix": each("[pod/nvidia-driver-daemonset-abc12/driver] "),
    "prefix and time": each("[pod/nvidia-driver-daemonset-abc12/driver] 2026-07-14T08:12:53.1Z "),
    "journal": each("Jul 14 08:12:53 gpu-a03 collect[1234]: "),
    "docker compose": each("driver-1  | "),
    "quoted mail": each("> "),
    "twice quoted mail": each("> > "),
    "indented": each("      "),
    "cat -n": numbered,
    "blanks at the ends": lambda text: text.replace("\n", "  \t\n"),
    "colours": lambda text: "\x1b[0m" + text.replace("\n", "\x1b[K\n"),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "zero bytes at the end": lambda text: text + "\0" * 512,
}
ENCODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32")


def told(found: Read) -> list[object]:
    """Return everything that a file says."""
    return [
        (p.kind, p.units, p.pci, p.node, p.troubles, p.lists_all, [f for f in p.facts if not hasattr(f, "at")])
        for p in found.pages
    ]


@pytest.mark.parametrize("name", [*NAMES, "page.prom"])
@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_what_stands_around_an_output_changes_nothing(name: str, wrapping: str) -> None:
    text = source(name)
    plain = read(text.encode())
    assert plain.pages
    wrapped = read(WRAPPINGS[wrapping](text).encode())
    assert wrapped.kind is plain.kind
    assert told(wrapped) == told(plain)


@pytest.mark.parametrize("name", [*NAMES, "page.prom"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_encodings_of_other_shells(name: str, encoding: str) -> None:
    text = source(name)
    assert told(read(text.replace("\n", "\r\n").encode(encoding))) == told(read(text.encode()))


def fleet_of(path: Path) -> Fleet:
    fleet = Fleet()
    for batch in load([path]).batches:
        fleet.apply(batch)
    return fleet


def board(name: str, number: int) -> str:
    return f"GPU 0: {name} (UUID: GPU-0000000{number}-0000-0000-0000-000000000000)\n"


def test_pdsh_puts_each_line_on_its_host(tmp_path: Path) -> None:
    lines = [f"gpu-b0{n}: {board('NVIDIA H100 80GB HBM3', n)}" for n in range(1, 6)]
    (tmp_path / "all.txt").write_text("".join(lines))
    keys = fleet_of(tmp_path).view().gpus
    assert sorted((k.host, k.uuid[:12]) for k in keys) == [(f"gpu-b0{n}", f"GPU-0000000{n}") for n in range(1, 6)]


def test_pdsh_with_interleaved_hosts(tmp_path: Path) -> None:
    one = source("query-610-hopper.txt").splitlines()
    two = source("query-470-mig.txt").splitlines()
    mixed = [
        line
        for a, b in zip(one + [""] * (len(two) - len(one)), two + [""] * (len(one) - len(two)), strict=True)
        for line in (f"gpu-c1: {a}", f"gpu-c2: {b}")
    ]
    (tmp_path / "all.txt").write_text("\n".join(mixed) + "\n")
    boards = {
        h: sum(1 for k in fleet_of(tmp_path).view().gpus if k.host == h and not k.instance)
        for h in ("gpu-c1", "gpu-c2")
    }
    assert boards == {
        "gpu-c1": sum(1 for u in read(source("query-610-hopper.txt").encode()).pages[0].units if not u.is_instance),
        "gpu-c2": sum(1 for u in read(source("query-470-mig.txt").encode()).pages[0].units if not u.is_instance),
    }


def test_lines_that_only_look_like_hosts_stay_together() -> None:
    text = source("lspci-vmmk.txt")
    assert [p.own_host for p in read(text.encode()).pages] == [False]


@pytest.mark.parametrize("second", NAMES)
@pytest.mark.parametrize("first", ["xml-418-tesla.xml", "list-mig.txt", "lspci-nnk.txt", "page.prom"])
def test_several_tools_in_one_file(first: str, second: str) -> None:
    found = read((source(first) + "\n" + source(second)).encode())
    for name in (first, second):
        for page in read(source(name).encode()).pages:
            units = {(u.uuid, u.bus_id, u.instance) for p in found.pages for u in p.units}
            assert {(u.uuid, u.bus_id, u.instance) for u in page.units} <= units
            buses = {g.bus_id for p in found.pages for g in p.pci or ()}
            assert {g.bus_id for g in page.pci or ()} <= buses


def test_outputs_without_a_common_board_are_of_different_machines(tmp_path: Path) -> None:
    text = board("NVIDIA L4", 1) + board("NVIDIA L4", 2).replace("GPU 0", "GPU 1")
    report = "".join(source(name) for name in ("xml-418-tesla.xml", "query-610-hopper.txt"))
    (tmp_path / "report.txt").write_text(report)
    fleet = fleet_of(tmp_path)
    assert len({k.host for k in fleet.view().gpus}) == 2
    assert Presence.MISSING not in {g.presence for g in fleet.view().gpus.values()}
    (tmp_path / "report.txt").write_text(text)
    assert len({k.host for k in fleet_of(tmp_path).view().gpus}) == 1


def test_a_failed_nvidia_smi_above_lspci_is_told_with_it() -> None:
    text = (
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
        "NVIDIA driver is installed and running.\n\n" + source("lspci-nnk.txt")
    )
    pages = read(text.encode()).pages
    assert [t.code for p in pages for t in p.troubles] == ["driver_not_loaded"]
    assert any(p.pci for p in pages)


def test_a_remark_beside_a_filtered_lspci_makes_no_driver_none() -> None:
    filtered = (
        "3b:00.0 3D controller: NVIDIA Corporation GA100 [A100 PCIe 40GB] (rev a1)\n"
        "\tKernel driver in use: nvidia\n"
        "86:00.0 3D controller: NVIDIA Corporation GA100 [A100 PCIe 40GB] (rev a1)\n"
        "\tKernel modules: nvidiafb, nouveau, nvidia_drm, nvidia\n"
    )
    page = read(
        ("$ lspci -k | grep -i -A0 NVIDIA\n" + filtered + "command terminated with exit code 1\n").encode()
    ).pages[0]
    assert page.kind is Kind.LSPCI
    assert [g.driver for g in page.pci or ()] == ["nvidia", None]


def test_a_large_log_is_not_taken_apart() -> None:
    log = "Jul 14 08:12:53 gpu-a03 kernel: NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=x\n" * 20_000
    found = read(log.encode())
    assert (found.kind, found.pages) == (Kind.KERNEL_LOG, ())
