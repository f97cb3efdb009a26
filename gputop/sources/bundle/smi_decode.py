"""From the tree of one `nvidia-smi -q` output to boards, MIG instances, processes and versions."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import structs

from gputop.model.facts import Presence
from gputop.model.identity import instance_id, normal_bus_id, normal_mig_uuid, normal_uuid
from gputop.model.power import AVERAGE, INSTANTANEOUS, power_meaning
from gputop.model.reading import NA, UNKNOWN, Absent, Value
from gputop.model.sanity import judge
from gputop.model.text import clean, is_whole
from gputop.sources.bundle.kinds import Kind
from gputop.sources.bundle.page import Page, Unit
from gputop.sources.bundle.smi_error import read_errors
from gputop.sources.bundle.smi_processes import read_processes
from gputop.sources.bundle.smi_table import (
    BOARD_FIELDS,
    ECC_SUMS,
    ECC_TOTALS,
    HEAD_FIELDS,
    INSTANCE_FIELDS,
    INSTANCE_SUMS,
    REASON_PREFIXES,
    REASON_SECTIONS,
    REASONS,
    Field,
    Sum,
)
from gputop.sources.bundle.smi_tree import Log, Section
from gputop.sources.bundle.smi_values import flag, number, word, words

# Names of months by hand: strptime follows the locale, nvidia-smi does not.
_MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_STAMP: Final = re.compile(r"([A-Z][a-z]{2})\s+(\d{1,2})\s+(\d{2}):(\d{2}):(\d{2})\s+(\d{4})")
_DEVICE_ID: Final = re.compile(r"(?:0x)?([0-9A-Fa-f]{4})(?:10[Dd][Ee])?")
_COUNT: Final = number("")
_NO_MEMORY: Final = Absent(NA, "no_memory", "the device has no memory of its own: it uses the system's")
_MEMORY: Final = ("memory_total_mib", "memory_used_mib", "memory_free_mib", "memory_reserved_mib")
_PARTIAL: Final = Absent(UNKNOWN, "partial", "one of its parts could not be read")


def timestamp(text: str) -> float | None:
    """Return seconds since the epoch of nvidia-smi's time stamp ("Tue Jul 14 08:12:53 2026").

    The stamp is local time of a zone that is not told; it is taken as UTC.
    """
    match = _STAMP.search(text)
    if match is None:
        return None
    month, *numbers = match.groups()
    day, hour, minute, second, year = map(int, numbers)
    try:
        stamp = datetime(year, 1 + _MONTHS.index(month.lower()), day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return stamp.timestamp()


def _text_at(section: Section, path: str) -> str | None:
    """Return the text at `path`; where a whole section is a word such as "N/A", that word."""
    names = path.split("/")
    for depth in range(len(names), 0, -1):
        found = section.find("/".join(names[:depth]))
        if found is None:
            continue
        if depth == len(names):
            return found.value if not found.children else None
        return found.value if not found.children and found.value and word(found.value) else None
    return None


def _read(section: Section, field: Field) -> Value | None:
    """Return the value of a field, or None if the output does not have it."""
    best: Value | None = None
    for path in field.paths:
        text = _text_at(section, path)
        if text is None:
            continue
        value = field.read(field.quantity, text)
        if not isinstance(value, Absent):
            return value
        if best is None or (isinstance(best, Absent) and best.code == "deprecated"):
            best = value
    return best


def _read_all(section: Section, fields: Iterable[Field]) -> dict[str, Value]:
    readings: dict[str, Value] = {}
    for field in fields:
        value = _read(section, field)
        if value is not None:
            readings[field.quantity] = value
    if readings.get("memory_total_mib") == 0.0:
        # Boards that share the system's memory: some drivers say N/A, some say a total of 0.
        readings.update({quantity: _NO_MEMORY for quantity in _MEMORY if quantity in readings})
    return readings


def _add(quantity: str, parts: Sequence[Value]) -> Value:
    numbers = [part for part in parts if isinstance(part, float)]
    absents = [part for part in parts if isinstance(part, Absent)]
    unknown = [part for part in absents if part.state == UNKNOWN]
    if unknown:
        return unknown[0] if not numbers else _PARTIAL
    return judge(quantity, sum(numbers)) if numbers else absents[0]


def _sum(section: Section, entry: Sum) -> Value | None:
    whole = _read(section, Field(entry.quantity, _COUNT, entry.whole))
    if whole is not None or not entry.parts:
        return whole
    parts = [_read(section, Field(entry.quantity, _COUNT, (path,))) for path in entry.parts]
    told = [part for part in parts if part is not None]
    return _add(entry.quantity, told) if len(told) == len(parts) else None


def _sums(section: Section, entries: Iterable[Sum]) -> dict[str, Value]:
    readings: dict[str, Value] = {}
    for entry in entries:
        value = _sum(section, entry)
        if value is not None:
            readings[entry.quantity] = value
    return readings


def _ecc(gpu: Section) -> dict[str, Value]:
    readings = _sums(gpu, ECC_SUMS)
    for quantity, whole, parts in ECC_TOTALS:
        value = _read(gpu, Field(quantity, _COUNT, (whole,)))
        told = [readings[part] for part in parts if part in readings]
        if value is None and len(told) == len(parts):
            value = _add(quantity, told)
        if value is not None:
            readings[quantity] = value
    return readings


def _clock_event_reasons(gpu: Section) -> Value | None:
    """Return NVML's bit mask, or None when the section is missing or cut short."""
    section = next((s for s in map(gpu.find, REASON_SECTIONS) if s is not None), None)
    if section is None:
        return None
    if not section.children:
        found = word(section.value)
        return found.absent if found else None
    told: dict[int, Value] = {}
    for leaf in section.below():
        name = leaf.name
        for prefix in REASON_PREFIXES:
            name = name.removeprefix(prefix)
        for reason in REASONS:
            if name in reason.names:
                told[reason.bit] = flag("", leaf.value)
    if not told or not (section.closed or REASONS[-1].bit in told):
        return None
    unknown = [v for v in told.values() if isinstance(v, Absent) and v.state == UNKNOWN]
    if unknown:
        return unknown[0]
    if not any(isinstance(value, float) for value in told.values()):
        return next(iter(told.values()))
    return float(sum(bit for bit, value in told.items() if value == 1.0))


def _fabric(gpu: Section) -> Value | None:
    """Return the state of the NVLink fabric with what is wrong with it, in the words of the NVML source."""
    state = _read(gpu, Field("fabric_state", words, ("fabric/state",)))
    if not isinstance(state, str):
        return state
    told = state.lower()
    status = _text_at(gpu, "fabric/status") or ""
    found = word(status)
    told_status = status if found is None or found.absent.state == UNKNOWN else ""
    if told == "completed" and told_status and told_status.lower() != "success":
        told += f", failed with {clean(told_status, 60)}"
    for name, healthy in (("summary", "healthy"), ("bandwidth", "full")):
        text = _text_at(gpu, f"fabric/health/{name}") or ""
        if text and not word(text) and text.lower() != healthy:
            told += f", {clean(text, 60).lower()}" + (" bandwidth" if name == "bandwidth" else "")
    return told


def _drawn_means(gpu: Section, readings: dict[str, Value]) -> Value:
    architecture = readings.get("architecture")
    # In XML the device's and the vendor's number stand in one word: 233010DE.
    match = _DEVICE_ID.fullmatch(_text_at(gpu, "pci/pcideviceid") or _text_at(gpu, "pci/deviceid") or "")
    name = architecture.split()[0] if isinstance(architecture, str) and architecture else ""
    return power_meaning(name, int(match.group(1), 16) if match else 0)


def _power(gpu: Section, readings: dict[str, Value]) -> None:
    """Settle which number is the power, and say what it means."""
    drawn = _read(
        gpu,
        Field("power_w", number("W"), ("gpupowerreadings/powerdraw", "powerreadings/powerdraw")),
    )
    candidates: list[tuple[Value | None, Value]] = [
        (drawn, _drawn_means(gpu, readings)),
        (readings.get("power_average_w"), AVERAGE),
        (readings.get("power_instant_w"), INSTANTANEOUS),
    ]
    told = [(value, meaning) for value, meaning in candidates if value is not None]
    if not told:
        return
    value, meaning = next(((v, m) for v, m in told if isinstance(v, float)), (told[0][0], ""))
    readings["power_w"] = value
    if meaning:
        readings["power_meaning"] = meaning


_TROUBLED: Final = {
    Presence.LOST: "nvidia-smi says: GPU is lost",
    Presence.RESET_REQUIRED: "nvidia-smi says: GPU requires reset",
    Presence.DENIED: "nvidia-smi may not read it",
    Presence.ERROR: "every reading fails",
}


_SENSORS: Final = frozenset(
    {
        "fan_speed_percent",
        "memory_clock_mhz",
        "memory_used_mib",
        "pcie_generation",
        "performance_state",
        "power_w",
        "sm_clock_mhz",
        "temperature_c",
        "utilization",
    }
)


def _presence(gpu: Section, readings: dict[str, Value]) -> tuple[Presence, str]:
    """Judge how the GPU is from the words that stand where its values should.

    One "GPU is lost" or "requires reset" is the driver's word on the whole GPU. A denied or failed reading
    is a matter of that reading, unless no sensor at all could be read.
    """
    # Names of processes are not the driver's words.
    leaves = [leaf for part in gpu.children if part.name != "processes" for leaf in (part, *part.leaves())]
    found = [word(leaf.value) for leaf in leaves if leaf.value]
    presences = {entry.presence for entry in found if entry is not None and entry.presence is not None}
    for presence in (Presence.LOST, Presence.RESET_REQUIRED):
        if presence in presences:
            return presence, _TROUBLED[presence]
    reset = gpu.find("gpuresetstatus/resetrequired")
    if reset is not None and flag("", reset.value) == 1.0:
        return Presence.RESET_REQUIRED, "nvidia-smi says: Reset Required: Yes"
    sensors = [readings[quantity] for quantity in _SENSORS if quantity in readings]
    failed = [value for value in sensors if isinstance(value, Absent) and value.state == UNKNOWN]
    if failed and not any(isinstance(value, float) for value in sensors):
        denied = all(value.code == "denied" for value in failed)
        presence = Presence.DENIED if denied else Presence.ERROR
        return presence, _TROUBLED[presence]
    return Presence.PRESENT, ""


def _instances(gpu: Section, board: Unit) -> list[Unit]:
    devices = [s for s in gpu.below() if s.name == "migdevice"]
    units: list[Unit] = []
    for device in devices:
        gi, ci = (_text_at(device, name) or "" for name in ("gpuinstanceid", "computeinstanceid"))
        mig_uuid = normal_mig_uuid(
            next((t for t in (_text_at(device, n) for n in ("uuid", "miguuid", "migdeviceuuid")) if t), "")
        )
        index = _text_at(device, "index") or ""
        instance = instance_id(gi, ci) if is_whole(gi) and is_whole(ci) else ""
        if not instance and not mig_uuid:
            continue
        readings = _read_all(device, INSTANCE_FIELDS)
        readings |= _sums(device, INSTANCE_SUMS)
        profile = _text_at(device, "profile") or _text_at(device, "name")
        if profile and not word(profile):
            readings["mig_profile"] = profile.removeprefix("MIG ").strip()
        units.append(
            Unit(
                uuid=board.uuid,
                bus_id=board.bus_id,
                index=board.index,
                instance=instance,
                mig_uuid=mig_uuid,
                mig_index=int(index) if is_whole(index) else -1,
                readings=readings,
                presence=Presence.PRESENT,
            )
        )
    return units


def _units(gpu: Section, index: int, *, cut: bool) -> list[Unit]:
    """Return the board and its MIG instances."""
    readings = _read_all(gpu, BOARD_FIELDS)
    readings.update(_ecc(gpu))
    reasons = _clock_event_reasons(gpu)
    if reasons is not None:
        readings["clock_event_reasons"] = reasons
    fabric = _fabric(gpu)
    if fabric is not None:
        readings["fabric_state"] = fabric
    _power(gpu, readings)
    uuid_text = _text_at(gpu, "uuid") or _text_at(gpu, "gpuuuid") or ""
    bus_id = normal_bus_id(gpu.value) or normal_bus_id(
        _text_at(gpu, "pci/pcibusid") or _text_at(gpu, "pci/busid") or ""
    )
    presence, reason = _presence(gpu, readings)
    board = Unit(
        uuid=normal_uuid(uuid_text),
        bus_id=bus_id,
        index=index,
        readings=readings,
        presence=presence,
        presence_reason=reason,
    )
    if not board.uuid and not board.bus_id:
        return []
    return read_processes(gpu, [board, *_instances(gpu, board)], cut=cut)


def _attached(head: Section) -> int | None:
    text = _text_at(head, "attachedgpus") or ""
    return int(text) if is_whole(text) else None


def decode(log: Log, kind: Kind, text: str) -> Page:
    """Turn one output of `nvidia-smi -q` into a page.

    Args:
        log: The output as a tree.
        kind: `Kind.SMI_XML` or `Kind.SMI_QUERY`.
        text: The whole file, for the messages that nvidia-smi writes around its output.
    """
    attached = _attached(log.head)
    all_listed = attached == len(log.gpus)
    notes = [f"{log.cut}; what stands before it is read"] if log.cut else []
    if log.flat:
        notes.append("its indentation is lost, so only what needs no heading is read")
    broken = log.cut
    units: list[Unit] = []
    for position, gpu in enumerate(log.gpus):
        # With -i, or in a part of an output, the GPUs are not the first ones: a position is no index.
        made = _units(gpu, position if all_listed else -1, cut=gpu is log.gpus[-1] and bool(log.cut))
        if not made:
            nameless = f"GPU {position + 1} of the file tells neither UUID nor bus id and is left out"
            notes.append(nameless)
            broken = broken or nameless
        units.extend(made)
    units, doubled = _without_doubled_uuids(units)
    if doubled:
        notes.append("several GPUs carry one UUID (made anonymous?): they are told apart by bus id")
    if attached is not None and not all_listed:
        notes.append(f"it lists {len(log.gpus)} of the {attached} GPUs that the driver counts")
    said = read_errors(text)
    named = {unit.bus_id for unit in units}
    units.extend(unit for unit in said.units if unit.bus_id not in named)
    node = _read_all(log.head, HEAD_FIELDS)
    driver = node.get("driver_version")
    return Page(
        kind=kind,
        what=f"{kind}, driver {driver}" if isinstance(driver, str) else str(kind),
        at=timestamp(_text_at(log.head, "timestamp") or ""),
        units=tuple(units),
        node={**node, **said.node},
        troubles=said.troubles,
        lists_all=attached == len(log.gpus) and not log.cut,
        notes=tuple(notes),
        broken=broken,
    )


def _without_doubled_uuids(units: list[Unit]) -> tuple[list[Unit], bool]:
    """Take the UUID from boards that share it with another board of the same output."""
    owners: dict[str, set[str]] = {}
    for unit in units:
        if unit.uuid:
            owners.setdefault(unit.uuid, set()).add(unit.bus_id)
    doubled = {uuid for uuid, buses in owners.items() if len(buses) > 1 and all(buses)}
    if not doubled:
        return units, False
    return [structs.replace(u, uuid="") if u.uuid in doubled else u for u in units], True
