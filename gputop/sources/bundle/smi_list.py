"""`nvidia-smi -L`: boards with index, name and UUID, and their MIG devices."""

import re
from typing import Final

from msgspec import structs

from gputop.model.facts import Presence
from gputop.model.identity import instance_of_old_mig_uuid, normal_mig_uuid, normal_uuid
from gputop.model.text import clean
from gputop.sources.bundle.kinds import Kind
from gputop.sources.bundle.page import Page, Unit
from gputop.sources.bundle.smi_error import read_errors
from gputop.sources.bundle.smi_values import word

BOARD: Final = re.compile(r"^\s*GPU (\d{1,4}):\s+(.*?)\s*\(UUID:\s*([^)]*)\)\s*$")
"""A line of a board."""

MIG: Final = re.compile(r"^\s*MIG\s+(.+?)\s+Device\s+(\d{1,3}):\s*\(UUID:\s*([^)]*)\)\s*$")
"""A line of a MIG device: profile, number on its board, UUID."""


def _board(match: re.Match[str]) -> Unit | None:
    index, name, uuid = match.groups()
    marker = word(uuid)
    unit = Unit(
        uuid=normal_uuid(uuid),
        index=int(index),
        readings={} if word(name) else {"model": clean(name)},
        presence=(marker.presence if marker else None) or Presence.PRESENT,
        presence_reason=f"nvidia-smi says: {clean(uuid)}" if marker else "",
    )
    return unit if unit.uuid or marker else None


def _instance(match: re.Match[str], board: Unit) -> Unit | None:
    profile, number, uuid = match.groups()
    mig_uuid = normal_mig_uuid(uuid)
    if not mig_uuid:
        return None
    return Unit(
        uuid=board.uuid,
        bus_id=board.bus_id,
        index=board.index,
        # Drivers before 470 write the instance ids into the UUID.
        instance=instance_of_old_mig_uuid(uuid),
        mig_uuid=mig_uuid,
        mig_index=int(number),
        readings={"mig_profile": clean(profile)},
        presence=Presence.PRESENT,
    )


def read_list(text: str) -> Page:
    """Return what `nvidia-smi -L` lists; GPUs that it could not open are rows with the reason."""
    units: list[Unit] = []
    board: Unit | None = None
    dropped = 0
    for line in text.splitlines():
        match = BOARD.match(line)
        if match:
            board = _board(match)
            unit = board
        else:
            match = MIG.match(line)
            if not match:
                continue
            unit = _instance(match, board) if board else None
        dropped += unit is None
        units.extend([unit] if unit and unit not in units else [])
    said = read_errors(text)
    boards = [unit for unit in units if not unit.is_instance]
    # Lists of several containers in one file: each counts from 0.
    several = len({unit.index for unit in boards}) < len(boards)
    if several:
        units = [structs.replace(unit, index=-1) for unit in units]
    note = f"{dropped} lines are left out: no UUID, or a MIG device without its board"
    return Page(
        kind=Kind.SMI_LIST,
        what=str(Kind.SMI_LIST),
        units=(*units, *said.units),
        node=said.node,
        troubles=said.troubles,
        # A last line without its end may hide others.
        lists_all=text.endswith("\n") and not dropped and not several,
        notes=(note,) if dropped else (),
    )
