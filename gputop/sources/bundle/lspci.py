"""`lspci` in its usual forms: -nn, -D, -k, -v, -vv, -n, -mm and -vmm, whole or filtered by grep.

Tells the NVIDIA display controllers of a machine and which kernel driver holds each, the one thing that
nvidia-smi cannot tell when the driver is not loaded.
"""

import re
import shlex
from typing import Final

from msgspec import structs

from gputop.model.facts import PciGpu
from gputop.model.identity import normal_bus_id
from gputop.model.text import clean
from gputop.sources.bundle.kinds import Kind
from gputop.sources.bundle.page import Page, Trouble

_SLOT: Final = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
DEVICE: Final = re.compile(
    rf"^\s*({_SLOT})\s+(?:"
    r"(?P<numeric>[0-9a-f]{4}): (?P<ids>[0-9a-f]{4}:[0-9a-f]{4}).*"
    r"|(?P<plain>[A-Z0-9][A-Za-z0-9 /.,()-]*?)(?: \[(?P<code>[0-9a-f]{4})\])?: (?P<rest>.+)"
    r"|(?P<quoted>\".*))$"
)
"""The line that begins a device."""

_VERBOSE_SLOT: Final = re.compile(rf"^(?:Slot|Device):[ \t]+({_SLOT})$", re.MULTILINE)
_VERBOSE_FIELD: Final = re.compile(r"^(Class|Vendor|Device|Driver):\s+(.*)$")
_DRIVER: Final = re.compile(r"^\s+Kernel driver in use:\s*(\S+)\s*$")
_MODULES: Final = re.compile(r"^\s+Kernel modules:")
_IDS: Final = re.compile(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]")
_CODE: Final = re.compile(r"\[([0-9a-f]{4})\]")
# A device that has fallen off the bus answers every read with ones.
_ALL_ONES: Final = re.compile(r"\(rev ff\)|\s-rff\b")
_REVISION: Final = re.compile(r"\s*\((?:rev|prog-if) [^)]*\)")
_NVIDIA: Final = "10de"
# Class 03 of the PCI database: VGA (00), XGA (01), 3D (02), other display (80).
_DISPLAY: Final = ("vga compatible controller", "3d controller", "display controller", "xga")


def _is_display(class_: str) -> bool:
    code = _CODE.search(class_)
    if code or re.fullmatch(r"[0-9a-f]{4}", class_):
        return (code.group(1) if code else class_).startswith("03")
    return class_.lower().startswith(_DISPLAY)


def _gpu(slot: str, class_: str, text: str, ids: tuple[str, str]) -> PciGpu | None:
    """Return the GPU that one device line tells, or None for another device."""
    vendor, device = ids
    is_nvidia = vendor == _NVIDIA if vendor else text.lower().startswith("nvidia")
    if not is_nvidia or not _is_display(class_):
        return None
    name = _REVISION.sub("", _IDS.sub("", text)).strip()
    name = re.sub(r"^NVIDIA Corporation\s*", "", name)
    nameless = re.fullmatch(r"Device(?: ([0-9a-f]{4}))?", name)
    return PciGpu(
        bus_id=normal_bus_id(slot),
        device_id=device or ((nameless.group(1) or "") if nameless else ""),
        name="" if nameless else clean(name),
    )


def _parts(match: re.Match[str]) -> tuple[str, str, tuple[str, str]]:
    """Return class, description and (vendor id, device id) of a device line."""
    if match.group("numeric"):
        vendor, device = match.group("ids").split(":")
        return match.group("numeric"), "", (vendor, device)
    if match.group("quoted"):
        try:
            fields = shlex.split(match.group("quoted"))
        except ValueError:
            return "", "", ("", "")
        fields = [field for field in fields if not re.match(r"^-[rp]", field)] + ["", "", ""]
        found = [_CODE.search(field) for field in fields[1:3]]
        vendor, device = (m.group(1) if m else "" for m in found)
        text = " ".join(re.sub(r"\s*\[[0-9a-f]{4}\]$", "", field) for field in fields[1:3])
        return fields[0], text, (vendor, device)
    code = match.group("code")
    class_ = match.group("plain") + (f" [{code}]" if code else "")
    ids = _IDS.search(match.group("rest"))
    return class_, match.group("rest"), (ids.group(1), ids.group(2)) if ids else ("", "")


def _verbose(text: str) -> list[str]:
    """Rewrite records of `lspci -vmm` as lines of `lspci -mm`, with the driver line kept."""
    lines: list[str] = []
    # A record goes from one slot to the next; blank lines between are lost or doubled in pastes.
    parts = _VERBOSE_SLOT.split(text)
    for slot, rest in zip(parts[1::2], parts[2::2], strict=True):
        fields: dict[str, str] = {}
        for line in rest.splitlines():
            field = _VERBOSE_FIELD.match(line)
            if field:
                fields[field.group(1)] = field.group(2).strip().replace('"', "")
        if "Class" in fields and "Device" in fields:
            lines.append(f'{slot} "{fields["Class"]}" "{fields.get("Vendor", "")}" "{fields["Device"]}"')
            if "Driver" in fields:
                lines.append(f"\tKernel driver in use: {fields['Driver']}")
    return lines


def read_lspci(text: str) -> Page:
    """Return the NVIDIA GPUs that `lspci` shows, each with its driver where the output tells one.

    A device without a driver line has no driver if the output tells drivers at all (-k, -v) and goes on
    after the place where the line would stand. In an output that grep left only lines with "nvidia" of, a
    missing line says nothing: it may have named vfio-pci.
    """
    whole = text if text.endswith("\n") else text.rpartition("\n")[0] + "\n"
    lines = [line for line in (*whole.splitlines(), *_verbose(whole)) if line.strip()]
    # Prompts and remarks of the shell around it are no lines of lspci.
    own = [line for line in lines if DEVICE.match(line) or line[0] in " \t"]
    filtered = all("nvidia" in line.lower() for line in own)
    gpus: list[PciGpu] = []
    # For each GPU, whether the output goes on behind its driver line.
    passed: list[bool] = []
    gone: list[str] = []
    open_ = False
    for line in lines:
        match = DEVICE.match(line)
        if match:
            if open_:
                passed[-1] = True
            gpu = _gpu(match.group(1), *_parts(match))
            open_ = gpu is not None
            if gpu is not None:
                gpus.append(gpu)
                gone.extend([gpu.bus_id] if _ALL_ONES.search(line) else [])
                passed.append(False)
            continue
        driver = _DRIVER.match(line)
        if driver and open_:
            gpus[-1] = structs.replace(gpus[-1], driver=clean(driver.group(1)))
        elif open_ and _MODULES.match(line):
            passed[-1] = True
    if not filtered and any(_DRIVER.match(line) or _MODULES.match(line) for line in lines):
        gpus = [
            structs.replace(gpu, driver="") if gpu.driver is None and ended else gpu
            for gpu, ended in zip(gpus, passed, strict=True)
        ]
    devices = sum(1 for line in lines if DEVICE.match(line))
    off_bus = f"fallen off the PCI bus (lspci shows rev ff): {', '.join(gone)}"
    return Page(
        kind=Kind.LSPCI,
        what=f"lspci, {devices} devices",
        troubles=(Trouble("gpu_off_bus", off_bus, "critical"),) if gone else (),
        pci=tuple(gpus),
        notes=() if text.endswith("\n") else ("the last line has no end and is left out",),
    )
