"""Where this project's own files in the shapes of real ones lie, and short ways to read them."""

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
