"""Recorded pages of real exporters, where the checkout has them beside it.

The oracle is one regular expression over each line, not the code under test.
"""

import re
from pathlib import Path

import pytest

from gputop.fleet import Fleet
from gputop.fleet.state import View
from gputop.model.facts import Batch
from gputop.model.quantity import QUANTITIES
from gputop.model.reading import Absent
from gputop.sources.metrics.decode import Decoder
from gputop.sources.metrics.text import read_text

FOLDER = Path(__file__).parents[2].parent / "shared" / "fixtures" / "public" / "metrics"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no ../shared/fixtures/public beside this checkout")

LINE = re.compile(r"^(\w+)\{(.*)\} ([-+.\deE]+)$", re.MULTILINE)
UUID = re.compile(r'(?:UUID|\buuid)="(?:GPU-)?([0-9a-f-]{36})"')
PAGES = sorted(FOLDER.glob("*.prom"))

# Metric, quantity, factor.
SAME = {
    "DCGM_FI_DEV_GPU_TEMP": ("temperature_c", 1.0),
    "DCGM_FI_DEV_POWER_USAGE": ("power_w", 1.0),
    "DCGM_FI_DEV_SM_CLOCK": ("sm_clock_mhz", 1.0),
    "DCGM_FI_DEV_FB_USED": ("memory_used_mib", 1.0),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("energy_j", 1e-3),
    "nvidia_smi_temperature_gpu": ("temperature_c", 1.0),
    "nvidia_smi_memory_total_bytes": ("memory_total_mib", 1 / 2**20),
    "nvidia_smi_clocks_current_sm_clock_hz": ("sm_clock_mhz", 1e-6),
    "nvidia_smi_utilization_gpu_ratio": ("utilization", 100.0),
    "nvidia_smi_power_draw_watts": ("power_w", 1.0),
}
BOARD = {q.id for q in QUANTITIES.values() if q.level == "board"}


def load(path: Path) -> View:
    text = read_text(path.read_text(encoding="utf-8"))
    assert not text.refusal
    decoder = Decoder(source="exporter", rank=1, default_host="here")
    fleet = Fleet()
    fleet.apply(Batch("exporter", 1, 1000.0, 60.0, tuple(decoder.decode(text.samples, 1000.0))))
    return fleet.view()


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
def test_boards_instances_and_numbers(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    lines = [(name, labels, float(value)) for name, labels, value in LINE.findall(page)]
    boards = {m.group(1) for _, labels, _ in lines if (m := UUID.search(labels))}
    instances = {
        (m.group(1), i.group(1))
        for _, labels, _ in lines
        if (m := UUID.search(labels)) and (i := re.search(r'GPU_I_ID="(\d+)"', labels))
    }
    view = load(path)
    by_key = {(k.uuid.removeprefix("GPU-"), k.instance): g for k, g in view.gpus.items()}
    assert by_key.keys() == {(b, "") for b in boards} | instances
    assert len({k.host for k in view.gpus}) == 1
    assert not any("exporter" in k.host for k in view.nodes)
    for name, labels, value in lines:
        if name not in SAME:
            continue
        quantity, factor = SAME[name]
        uuid = UUID.search(labels)
        instance = re.search(r'GPU_I_ID="(\d+)"', labels)
        assert uuid is not None
        where = instance.group(1) if instance is not None and quantity not in BOARD else ""
        reading = by_key[uuid.group(1), where].readings[quantity]
        assert reading.value == pytest.approx(value * factor)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
def test_no_marker_passes_for_a_number(path: Path) -> None:
    for gpu in load(path).gpus.values():
        for quantity, reading in gpu.readings.items():
            if isinstance(reading.value, float):
                assert QUANTITIES[quantity].low <= reading.value <= QUANTITIES[quantity].high
        memory = gpu.readings.get("memory_temperature_c")
        assert memory is None or isinstance(memory.value, Absent) or (memory.number or 0.0) > 0


def test_what_is_peculiar_to_single_pages() -> None:
    if len(PAGES) < 13:
        pytest.skip("other recorded pages than the named ones")
    by_name = {p.name: p for p in PAGES}
    sentinel = load(by_name["dcgm-2.1-sentinel.prom"])
    (gpu,) = sentinel.gpus.values()
    assert isinstance(gpu.readings["memory_temperature_c"].value, Absent)
    vgpu = load(by_name["dcgm-grid-a100-40c.prom"])
    (gpu,) = vgpu.gpus.values()
    assert gpu.readings["vgpu_licensed"].value == 1.0
    assert "power_w" not in gpu.readings
    pods = load(by_name["dcgm-h100-8x-580-pods.prom"])
    held = [h.label for g in pods.gpus.values() for claim in g.holders for h in claim.holders]
    assert held == ["inference/llm-0-vllmdecodeworker-s65j5"]
