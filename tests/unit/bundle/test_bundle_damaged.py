"""Digits that are no numbers, times that are none, and files that break off: each costs itself and is said."""

from pathlib import Path

import pytest

from gputop.sources.bundle.source import BundleSource

GPU = """<?xml version="1.0" ?>
<nvidia_smi_log><timestamp>Mon Apr 14 12:55:43 2025</timestamp><driver_version>570.86.15</driver_version>
<attached_gpus>1</attached_gpus><gpu id="00000000:04:00.0"><product_name>NVIDIA H100</product_name>
<uuid>GPU-19816bb5-5b5f-3a1b-5c48-e373a49c372b</uuid>
<utilization><gpu_util>7 %</gpu_util></utilization>
<processes><process_info><pid>{pid}</pid><type>C</type><process_name>x</process_name>
<used_memory>5 MiB</used_memory></process_info></processes></gpu></nvidia_smi_log>
"""
METRIC = 'DCGM_FI_DEV_GPU_TEMP{{gpu="2",UUID="GPU-2"}} 5 {at}\n'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.xml", GPU.format(pid="²")),
        ("a.xml", GPU.format(pid="9" * 5000)),
        ("a.xml", GPU.format(pid="٣")),
        ("a.prom", METRIC.format(at="9" * 20)),
        ("a.prom", METRIC.format(at="9" * 300)),
        ("a.prom", METRIC.format(at="-5")),
    ],
)
def test_a_row_is_there_whatever_number_is_none(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    loaded = BundleSource([str(tmp_path)], None).prepare()
    assert loaded.files == 1
    assert any(batch.facts for batch in loaded.batches)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.xml", GPU.format(pid="7")[:-60], "not whole: a.xml: line "),
        ("a.xml", GPU.format(pid="7").replace("</nvidia_smi_log>", ""), "it ends before </nvidia_smi_log>"),
        (
            "a.xml",
            GPU.format(pid="7")
            .replace(' id="00000000:04:00.0"', "")
            .replace("GPU-19816bb5-5b5f-3a1b-5c48-e373a49c372b", "N/A")
            .replace("attached_gpus>1<", "attached_gpus>2<"),
            "neither UUID nor bus id",
        ),
        ("a.prom", METRIC.format(at="") + 'DCGM_FI_DEV_POWER_USAGE{gpu="2"', "the page ends in the middle of a line"),
        ("a.prom", METRIC.format(at=""), ""),
        ("a.xml", GPU.format(pid="7"), ""),
    ],
)
def test_a_file_that_is_not_whole_is_said_where_the_source_is(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    source = BundleSource([str(tmp_path)], None)
    source.prepare()
    assert words in source.trouble()
    assert bool(source.trouble()) == bool(words)
