"""MIG devices of one machine that two files name differently.

`nvidia-smi -q` gives a MIG device its GPU and compute instance ids, `nvidia-smi -L` of driver 470 and newer
its UUID and profile. Both number the devices of a board in the same order, so the numbers join them, as long
as both files list the same number of devices on that board.
"""

from collections.abc import Iterable, Sequence

from msgspec import structs

from gputop.sources.bundle.page import Page, Unit


def _by_board(pages: Iterable[Page]) -> dict[str, list[list[Unit]]]:
    boards: dict[str, list[list[Unit]]] = {}
    for page in pages:
        on_page: dict[str, list[Unit]] = {}
        for unit in page.units:
            if unit.is_instance and unit.uuid and unit.mig_index >= 0:
                on_page.setdefault(unit.uuid, []).append(unit)
        for uuid, units in on_page.items():
            boards.setdefault(uuid, []).append(units)
    return boards


def name_instances(pages: Sequence[Page]) -> tuple[Page, ...]:
    """Return the pages of one machine with each MIG device carrying all names that any of them tells."""
    names: dict[tuple[str, int, int], tuple[str, str]] = {}
    for uuid, lists in _by_board(pages).items():
        for units in lists:
            for unit in units:
                at = (uuid, len(units), unit.mig_index)
                instance, mig_uuid = names.get(at, ("", ""))
                names[at] = (instance or unit.instance, mig_uuid or unit.mig_uuid)
    return tuple(_named(page, names) for page in pages)


def _named(page: Page, names: dict[tuple[str, int, int], tuple[str, str]]) -> Page:
    counts: dict[str, int] = {}
    for unit in page.units:
        if unit.is_instance:
            counts[unit.uuid] = counts.get(unit.uuid, 0) + 1
    units: list[Unit] = []
    for unit in page.units:
        instance, mig_uuid = names.get((unit.uuid, counts.get(unit.uuid, 0), unit.mig_index), ("", ""))
        known = unit.is_instance and (instance, mig_uuid) != ("", "")
        units.append(
            structs.replace(unit, instance=unit.instance or instance, mig_uuid=unit.mig_uuid or mig_uuid)
            if known
            else unit
        )
    return structs.replace(page, units=tuple(units))
