"""Fixtures for the parts of the NVML child, run in this process over a scripted library."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gputop.sources.nvml.library import Library
from gputop.sources.nvml.marker import Marker
from tests.unit.nvml.fake import FakeLibrary, Gpu, install
from tests.unit.nvml.rig import Rig


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    """An empty procfs and sysfs with a bus that shows nothing."""
    proc, sys = tmp_path / "proc", tmp_path / "sys"
    proc.mkdir()
    (proc / "meminfo").write_text("MemTotal: 527600748 kB\nMemFree: 1 kB\nMemAvailable: 318566368 kB\n")
    (proc / "stat").write_text("cpu 1 2 3\nbtime 1700000000\n")
    (proc / "1").mkdir()
    (sys / "bus" / "pci" / "devices").mkdir(parents=True)
    return proc, sys


@pytest.fixture
def make_rig(monkeypatch: pytest.MonkeyPatch, roots: tuple[Path, Path]) -> Iterator[Callable[..., Rig]]:
    made: list[Rig] = []

    def make(gpus: list[Gpu], lacks: set[str] | None = None) -> Rig:
        library = install(FakeLibrary(gpus, lacks), monkeypatch)
        made.append(Rig(library, *roots))
        return made[-1]

    yield make
    for rig in made:
        rig.sweep.close()


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[FakeLibrary, Library]]:
    def make(gpus: list[Gpu], lacks: set[str] | None = None) -> tuple[FakeLibrary, Library]:
        return install(FakeLibrary(gpus, lacks), monkeypatch), Library(Marker(None))

    return make
