"""What a file is, told from its content, never from its name.

Files in tickets are called "out.txt". A kind is a set of signs, looked for in the beginning of the text; the
first kind in the table whose sign is there decides, so the order goes from the unmistakable to the vague.
"""

import codecs
import json
import re
from itertools import islice
from typing import Final

import msgspec
from msgspec import Struct

from gputop.sources.bundle import lspci, smi_list
from gputop.sources.bundle.kinds import Kind
from gputop.sources.bundle.smi_error import read_errors

LOOK_AT: Final = 256 * 1024
"""How much of a text is looked at to tell its kind."""
_LOOK_FURTHER: Final = 8 * 1024 * 1024

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_TRAILING: Final = re.compile(r"[ \t]+$", re.MULTILINE)
_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def to_text(data: bytes) -> str | None:
    """Return the text of a file, or None if it is binary.

    Takes UTF-8, and UTF-16 as Windows PowerShell's redirection writes it, with or without a byte order
    mark. Invalid bytes become U+FFFD; colours and other terminal sequences and blanks at the end of a line
    are dropped; line ends become line feeds.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            text = data[len(bom) :].decode(encoding, "replace")
            break
    else:
        head = data[:4096].rstrip(b"\0")
        if head[1::2].count(0) > 0.8 * len(head[1::2]) > 0:
            text = data.decode("utf-16-le", "replace")
        elif head[::2].count(0) > 0.8 * len(head[::2]) > 0:
            text = data.decode("utf-16-be", "replace")
        elif _is_binary(head):
            return None
        else:
            text = data.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    # Text copied from a web page has no-break spaces; a file system after a crash pads with zero bytes.
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ").rstrip("\0")
    return _TRAILING.sub("", text)


def _is_binary(head: bytes) -> bool:
    # A few stray control bytes are damage in a text; many are another kind of file.
    odd = sum(1 for byte in head if byte < 9 or 13 < byte < 27 or 27 < byte < 32)
    return odd > max(4, len(head) // 20)


class _Sign(Struct, frozen=True):
    """A kind and the pattern that betrays it; `least` is how many lines have to match."""

    kind: Kind
    pattern: re.Pattern[str]
    least: int = 1


def _sign(kind: Kind, pattern: str, least: int = 1) -> _Sign:
    return _Sign(kind, re.compile(pattern, re.MULTILINE), least)


_SAMPLE: Final = r"[ \t]+(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?Inf|NaN)(?:[ \t]+-?\d+)?[ \t]*(?:#[^\n]*)?$"

_SIGNS: Final = (
    _sign(Kind.HTML, r"(?i)\A\s*(?:<!doctype html|<html[\s>])"),
    _sign(Kind.SMI_XML, r"<nvidia_smi_log[\s>]"),
    _sign(Kind.SMI_VGPU, r"^\s*(?:Active vGPUs|vGPU ID)\s+:"),
    _sign(Kind.SMI_QUERY, r"=+\s*NVSMI LOG\s*=+"),
    _sign(Kind.SMI_QUERY, r"^\s*GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\s*$"),
    _sign(Kind.SMI_QUERY, r"^\s*GPU UUID\s+:"),
    _sign(Kind.SMI_TABLE, r"^\s*\|\s*NVIDIA-SMI\s+[\d.N/A]+"),
    _sign(Kind.SMI_TABLE, r"^\s*\|[ =]*GPU\s+Name\s"),
    _sign(Kind.SMI_NVLINK, r"^\s*Link \d+: (?:[\d.]+ GB/s|<?inactive>?)"),
    _sign(Kind.SMI_LIST, smi_list.BOARD.pattern),
    _sign(Kind.SMI_LIST, smi_list.MIG.pattern),
    _sign(Kind.SMI_DMON, r"^# gpu\s+(?:pid|pwr|sm|\w+)\s"),
    _sign(Kind.SMI_TOPO, r"^\s*GPU0\s+.*\bX\b"),
    _sign(
        Kind.SMI_CSV,
        r"^(?:[\w.\[\] /%]+, )*(?:timestamp|index|name|uuid|gpu_uuid|gpu_name|pid|driver_version|count)"
        r"(?:, [\w.\[\] /%]+)+$",
    ),
    _sign(Kind.EXPORTER, r"^# (?:HELP|TYPE) [A-Za-z_:][\w:]* "),
    _sign(Kind.EXPORTER, r"^[A-Za-z_:][\w:]*\{[^\n]*\}" + _SAMPLE),
    # A word and a number may stand in any text; several such lines are a page of metrics.
    _sign(Kind.EXPORTER, r"^[A-Za-z_:][\w:]*" + _SAMPLE, 5),
    _sign(Kind.XML, r"^\s*<\?xml"),
    _sign(Kind.KERNEL_LOG, r"^(?:<\d+>)?\[\s*\d+\.\d{3,6}\]"),
    _sign(Kind.KERNEL_LOG, r"^\d+,\d+,\d+,[-c](?:,[^;]*)?;"),
    _sign(Kind.KERNEL_LOG, r"\bNVRM: |\bkernel: "),
    _sign(Kind.FABRIC_LOG, r"\[(?:INFO|ERROR|WARN)\] \[tid \d+\]|(?i:fabric ?manager) version"),
    _sign(Kind.LSPCI, lspci.DEVICE.pattern),
    _sign(Kind.LSPCI, r"^Slot:\s+(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$"),
    _sign(Kind.KUBERNETES_OBJECTS, r"^\s*(?:- )?apiVersion:\s+\S+"),
    _sign(Kind.KUBERNETES_TABLE, r"^(?:NAMESPACE\s+)?(?:NAME|LAST SEEN)\s+[A-Z]{3,}"),
    _sign(Kind.KUBERNETES_TABLE, r"^(?:Name|Capacity|Allocatable|Non-terminated Pods|Labels):\s"),
    _sign(Kind.KUBERNETES_TABLE, r"(?:nvidia\.com|feature\.node\.kubernetes\.io)/[\w.-]+[=:]"),
)


_BROKEN_JSON: Final = (
    _sign(Kind.PROMETHEUS, r"\"resultType\"\s*:"),
    _sign(Kind.KUBERNETES_OBJECTS, r"\"apiVersion\"\s*:"),
    _sign(Kind.NOMAD, r"\"(?:CreateIndex|ModifyIndex)\"\s*:"),
    _sign(Kind.JSON, r"\A\s*\[?\s*\{\s*\""),
)
"""What JSON is that cannot be read to its end."""


def _json_kind(text: str) -> Kind | None:
    """Return what JSON it is, or None if it is none."""
    try:
        value: object = msgspec.json.decode(text)
    except msgspec.DecodeError:
        # Several objects in a row, as jq prints them; the first tells the kind.
        try:
            value, _ = json.JSONDecoder().raw_decode(text.lstrip())
        except (ValueError, RecursionError):
            return next((s.kind for s in _BROKEN_JSON if s.pattern.search(text[:LOOK_AT])), None)
        # "[12.5] text" is the stamp of a log, not a list.
        if not isinstance(value, dict):
            return None
    return _object_kind(value)


_OBJECT_KEYS: Final = (
    (Kind.KUBERNETES_OBJECTS, frozenset({"apiVersion", "kind"})),
    (Kind.KUBERNETES_OBJECTS, frozenset({"nvidia.com/gpu"})),
    (Kind.KUBERNETES_OBJECTS, frozenset({"nvidia.com/gpu.product"})),
    (Kind.NOMAD, frozenset({"ID", "CreateIndex"})),
    (Kind.NOMAD, frozenset({"TaskGroups"})),
    (Kind.NOMAD, frozenset({"NodeResources"})),
)
"""Keys that tell what a JSON object is."""


def _object_kind(value: object) -> Kind:
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, dict):
        return Kind.JSON
    if first.get("status") == "error" and "errorType" in first:
        return Kind.PROMETHEUS_ERROR
    data = first.get("data")
    if first.get("status") == "success" and isinstance(data, dict) and "resultType" in data:
        return Kind.PROMETHEUS
    return next((kind for kind, keys in _OBJECT_KEYS if keys <= first.keys()), Kind.JSON)


_ALSO: Final = (
    _sign(Kind.SMI_XML, r"<nvidia_smi_log[\s>]"),
    _sign(Kind.SMI_QUERY, r"=+\s*NVSMI LOG\s*=+"),
    _sign(Kind.SMI_LIST, smi_list.BOARD.pattern),
    _sign(Kind.EXPORTER, r"^# (?:HELP|TYPE) [A-Za-z_:][\w:]* "),
    _sign(Kind.EXPORTER, r"^(?:DCGM|nvidia_smi|dcgm)_\w+\{[^\n]*\}" + _SAMPLE),
    _sign(Kind.LSPCI, lspci.DEVICE.pattern, 2),
    _sign(Kind.LSPCI, r"^Slot:[ \t]+(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$"),
)
"""Signs that stand for themselves in the midst of another kind's text."""


def others(text: str, kind: Kind) -> tuple[Kind, ...]:
    """Return what else stands in a text of a kind: reports collect the outputs of several tools in a file."""
    if kind not in MIXED:
        return ()
    looked_at = text[:_LOOK_FURTHER]
    found = [sign.kind for sign in _ALSO if sign.kind is not kind and _has(sign, looked_at)]
    return tuple(dict.fromkeys(found))


def _has(sign: _Sign, text: str) -> bool:
    return len(list(islice(sign.pattern.finditer(text), sign.least))) == sign.least


MIXED: Final = frozenset(
    {
        *(Kind.SMI_XML, Kind.SMI_QUERY, Kind.SMI_LIST, Kind.SMI_TABLE, Kind.SMI_TOPO, Kind.SMI_NVLINK, Kind.SMI_ERROR),
        *(Kind.EXPORTER, Kind.LSPCI, Kind.KERNEL_LOG, Kind.FABRIC_LOG, Kind.TEXT, Kind.SMI_DMON, Kind.SMI_CSV),
        *(Kind.KUBERNETES_TABLE, Kind.XML),
    }
)
"""Kinds of text in which another tool's output may stand, whole or line by line."""


def detect(text: str) -> Kind:
    """Return what the text of a file is."""
    if not text.strip():
        return Kind.EMPTY
    head = text[:LOOK_AT]
    if head.lstrip()[:1] in "{[":
        kind = _json_kind(text)
        if kind is not None:
            return kind
    for sign in _SIGNS:
        if _has(sign, head):
            return sign.kind
    return Kind.TEXT if read_errors(head).nothing else Kind.SMI_ERROR
