"""Where this project's own files in the shapes of real ones lie, and short ways to read them."""

from functools import cache
from pathlib import Path

from gputop.model.reading import Absent
from gputop.sources.bundle.page import Page, Unit
from gputop.sources.bundle.read import read

FILES = Path(__file__).parents[2] / "fixtures" / "bundle"


def pages(name: str) -> tuple[Page, ...]:
    """Return what a file says."""
    return read((FILES / name).read_bytes()).pages


def page(name: str) -> Page:
    """Return the only page of a file."""
    (only,) = pages(name)
    return only


def unit(name: str, uuid_end: str, instance: str = "") -> Unit:
    """Return the GPU or MIG instance whose UUID ends so."""
    (only,) = [u for u in page(name).units if u.uuid.endswith(uuid_end) and u.instance == instance]
    return only


def shown(found: Unit) -> dict[str, object]:
    """Return the readings with the code in the place of an absent value."""
    return {q: v.code if isinstance(v, Absent) else v for q, v in found.readings.items()}


def numbers(page: Page) -> dict[tuple[str, str, str, str], object]:
    """Return everything a page says of its GPUs by (bus id or UUID, instance, MIG UUID, quantity)."""
    told: dict[tuple[str, str, str, str], object] = {}
    for u in page.units:
        at = (u.bus_id or u.uuid, u.instance, u.mig_uuid)
        told |= {(*at, q): v for q, v in u.readings.items() if not isinstance(v, Absent)}
        if isinstance(u.processes, tuple):
            told |= {(*at, f"pid {p.pid}"): True for p in u.processes}
            told |= {
                (*at, f"memory of {p.pid}"): p.memory_mib for p in u.processes if not isinstance(p.memory_mib, Absent)
            }
        if u.uuid:
            told[*at, "uuid"] = u.uuid
    told |= {("", "", "", q): v for q, v in page.node.items() if not isinstance(v, Absent)}
    for gpu in page.pci or ():
        told[gpu.bus_id, "", "", "device"] = (gpu.device_id, gpu.name)
        if gpu.driver is not None:
            told[gpu.bus_id, "", "", "driver"] = gpu.driver
    return told


@cache
def _whole(data: bytes) -> tuple[Page, ...]:
    return read(data).pages


def check_cut(data: bytes, cut: int) -> None:
    """Check that a file cut at a byte tells nothing that the whole file does not tell."""
    whole = _whole(data)
    part = read(data[:cut]).pages
    assert len(part) <= len(whole)
    for short, full in zip(part, whole, strict=False):
        told = numbers(full)
        for where, value in numbers(short).items():
            # A state that gathers several lines may lack the last of them.
            if where[-1] == "fabric_state":
                assert str(told[where]).startswith(str(value))
                continue
            assert told.get(where) == value, f"cut at {cut}: {where} is {value!r}, not {told.get(where)!r}"
