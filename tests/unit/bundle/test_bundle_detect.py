"""What a file is, told from its content."""

import pytest

from gputop.sources.bundle.detect import detect, to_text
from gputop.sources.bundle.kinds import Kind
from gputop.sources.bundle.read import read
from tests.unit.bundle.bundle_files import FILES

BY_PREFIX = {
    "xml": Kind.SMI_XML,
    "query": Kind.SMI_QUERY,
    "list": Kind.SMI_LIST,
    "lspci": Kind.LSPCI,
}


@pytest.mark.parametrize("name", sorted(p.name for p in FILES.iterdir() if p.name.split("-")[0] in BY_PREFIX))
def test_files_of_this_project(name: str) -> None:
    text = to_text((FILES / name).read_bytes())
    assert text is not None
    assert detect(text) is BY_PREFIX[name.split("-", 1)[0]]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a"} 97\n', Kind.EXPORTER),
        ("# HELP nvidia_smi_fan fan\n# TYPE nvidia_smi_fan gauge\n", Kind.EXPORTER),
        ('x{a="b"} NaN 1700000000000\n', Kind.EXPORTER),
        ("a 1\nb 2\nc 3\nd 4\ne 5\n", Kind.EXPORTER),
        ('{"status":"success","data":{"resultType":"vector","result":[]}}', Kind.PROMETHEUS),
        ('{"status":"success","data":{"resultType":"vec', Kind.PROMETHEUS),
        ('{"status":"error","errorType":"timeout","error":"x"}', Kind.PROMETHEUS_ERROR),
        ('{"apiVersion":"v1","kind":"List","items":[]}', Kind.KUBERNETES_OBJECTS),
        ("apiVersion: v1\nkind: List\nitems: []\n", Kind.KUBERNETES_OBJECTS),
        ("NAME   STATUS   ROLES\nn1  Ready  worker\n", Kind.KUBERNETES_TABLE),
        ('[{"ID":"x","CreateIndex":7}]', Kind.NOMAD),
        ("[12345.678901] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n", Kind.KERNEL_LOG),
        ("6,1234,5678,-;NVRM: loading\n", Kind.KERNEL_LOG),
        ("| NVIDIA-SMI 550.54.14    Driver Version: 550.54.14 |\n", Kind.SMI_TABLE),
        ("index, name, utilization.gpu [%]\n0, NVIDIA L4, 5 %\n", Kind.SMI_CSV),
        ("# gpu    pwr  gtemp\n# Idx      W      C\n    0     97     38\n", Kind.SMI_DMON),
        ("        GPU0    GPU1\nGPU0     X      NV12\n", Kind.SMI_TOPO),
        (
            "GPU 0: NVIDIA L4 (UUID: GPU-5c000001-1111-4222-8333-000000000001)\n\t Link 0: 25.781 GB/s\n",
            Kind.SMI_NVLINK,
        ),
        ("GPU 00000000:65:00.0\n    Active vGPUs     : 1\n", Kind.SMI_VGPU),
        ("<!DOCTYPE html>\n<html>GPU 00000000:65:00.0\n</html>", Kind.HTML),
        ("<?xml version='1.0'?><domain/>", Kind.XML),
        ('{"hello": 1}', Kind.JSON),
        ("the box is slow\n", Kind.TEXT),
        ("load 12\n", Kind.TEXT),
        (" \n\n", Kind.EMPTY),
    ],
)
def test_kinds(text: str, kind: Kind) -> None:
    assert detect(text) is kind


def test_empty_and_binary_files() -> None:
    assert read(b"").kind is Kind.EMPTY
    assert read(b"\0" * 4096).kind is Kind.EMPTY
    assert read(b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 40).kind is Kind.BINARY


def test_colours_are_not_part_of_the_text() -> None:
    assert to_text(b"\x1b[4mGPU0\x1b[0m\tCPU\r\nx\r") == "GPU0\tCPU\nx\n"
