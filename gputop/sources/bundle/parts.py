"""Outputs of several machines in one file: told apart by their boards.

`for h in …; do ssh $h nvidia-smi -q; done > all.txt` names no host. Outputs that share no board are of
different machines; those of one machine taken in a loop share theirs.
"""

from collections.abc import Sequence

from gputop.sources.bundle.page import Page


def machines(pages: Sequence[Page]) -> tuple[int, ...]:
    """Return the number of the machine of each page, from 0 in the order of the file.

    A page without UUIDs (lspci, an error message) is of the first machine that has its bus ids, else of the
    first.
    """
    groups: list[set[str]] = []
    numbers: list[int] = []
    for page in pages:
        uuids = {unit.uuid for unit in page.units if unit.uuid}
        if not uuids:
            numbers.append(-1)
            continue
        fitting = [number for number, group in enumerate(groups) if group & uuids]
        number = fitting[0] if fitting else len(groups)
        if fitting:
            groups[number] |= uuids
        else:
            groups.append(uuids)
        numbers.append(number)
    buses = [
        {unit.bus_id for page, number in zip(pages, numbers, strict=True) if number == group for unit in page.units}
        for group in range(len(groups))
    ]
    return tuple(number if number >= 0 else _by_bus(page, buses) for page, number in zip(pages, numbers, strict=True))


def _by_bus(page: Page, buses: Sequence[set[str]]) -> int:
    own = {gpu.bus_id for gpu in page.pci or ()} | {unit.bus_id for unit in page.units}
    return next((number for number, group in enumerate(buses) if own - {""} & group), 0)
