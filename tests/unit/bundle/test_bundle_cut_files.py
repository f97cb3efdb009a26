"""A file cut at any byte: never an exception, never a number that the whole file does not hold."""

import pytest

from gputop.sources.bundle.read import read
from tests.unit.bundle.bundle_files import FILES, check_cut

NAMES = sorted(path.name for path in FILES.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_made_up_from_a_cut_file(name: str) -> None:
    data = (FILES / name).read_bytes()
    # A step that is no divisor of usual line lengths meets every place in a line.
    for cut in range(0, len(data), max(1, len(data) // 101)):
        check_cut(data, cut)


@pytest.mark.parametrize("name", ["xml-550-mig.xml", "query-610-hopper.txt"])
def test_nothing_is_made_up_around_one_value(name: str) -> None:
    data = (FILES / name).read_bytes()
    at = data.index(b"20123 MiB" if name.startswith("xml") else b"120011 MiB")
    for cut in range(at - 40, at + 60):
        check_cut(data, cut)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_bytes_raise_nothing(name: str) -> None:
    data = bytearray((FILES / name).read_bytes())
    for at in range(0, len(data), max(1, len(data) // 53)):
        damaged = data.copy()
        damaged[at] = (damaged[at] * 7 + 131) % 256
        read(bytes(damaged))


def test_a_cut_file_says_where_it_breaks() -> None:
    data = (FILES / "xml-550-mig.xml").read_bytes()
    cut = data.index(b"<used>20123") + 8
    (found,) = read(data[:cut]).pages
    line = data[:cut].count(b"\n") + 1
    assert any(f"line {line}" in note for note in found.notes)
    assert not found.lists_all
    # The UUID stands behind the break: the bus id tells the board and its instance.
    assert [(u.uuid, u.bus_id, u.instance) for u in found.units] == [
        ("", "00000000:4e:00.0", ""),
        ("", "00000000:4e:00.0", "2"),
    ]
