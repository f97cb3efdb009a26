"""What a tool puts in front of every line of another tool's output, taken off again.

Outputs reach a ticket through `kubectl logs --prefix --timestamps`, docker and CRI logs, the journal, pdsh,
`cat -n` and e-mail quotes. A prefix is taken off only where nearly every line has one of the same kind.
"""

import re
from itertools import pairwise
from typing import Final

from msgspec import Struct

_MOST: Final = 0.9
"""Share of the lines that must have the prefix; shells add lines of their own before and after."""
_LAYERS: Final = 4
_STAMP: Final = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|[+-]\d\d:?\d\d))?"

_QUOTE: Final = re.compile(r"^(?:> ?)+")
_PREFIXES: Final = (
    _QUOTE,
    # CRI logs, docker and kubectl --timestamps.
    re.compile(rf"^{_STAMP} (?:stdout|stderr) [FP](?: |$)"),
    re.compile(rf"^\[?{_STAMP}\]?(?: |$)"),
    # The journal and syslog, in both styles of time: "Jul 14 08:12:53 host unit[12]: ".
    re.compile(r"^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [^\s:\[]+(?:\[\d+\])?:(?: |$)"),
    re.compile(rf"^{_STAMP} \S+ [^\s:\[]+(?:\[\d+\])?:(?: |$)"),
    # kubectl logs --prefix, docker compose logs.
    re.compile(r"^\[pod/[^/\]]+/[^\]]+\](?: |$)"),
    re.compile(r"^[\w.-]+ +\|(?: |$)"),
)
"""Tried in order; the one with the time and more goes before the one with the time alone."""

# The tab of an empty line is a blank at its end, which is gone.
_NUMBERED: Final = re.compile(r"^ *(\d+)(?:\t|$)")
# pdsh, dsh and clush. A key of `lspci -vmm` or of YAML looks the same, but changes from line to line.
_HOST: Final = re.compile(r"^([A-Za-z0-9][\w.-]{0,252}):(?: |$)")
_MOST_HOSTS: Final = 4096
_KEYS: Final = frozenset(
    {
        *("Slot", "Class", "Vendor", "Device", "SVendor", "SDevice", "Rev", "ProgIf", "Driver", "Module"),
        *("NUMANode", "IOMMUGroup", "PhySlot"),
    }
)


class Stripped(Struct, frozen=True):
    """The lines of one machine without their prefix; `host` is its name if the prefix told it."""

    text: str
    host: str = ""


def strip_prefixes(text: str) -> tuple[Stripped, ...]:
    """Return the text without what stands before every line, one for each host that a prefix names.

    Nothing is returned where nothing stands before every line.
    """
    before = text
    for _ in range(_LAYERS):
        shorter = _shorter(text)
        if shorter is None:
            break
        text = shorter
    hosts = _by_host(text)
    if hosts:
        return hosts
    return (Stripped(text),) if text != before else ()


def _shorter(text: str) -> str | None:
    lines = text.split("\n")
    told = [line for line in lines if line.strip()]
    if not told:
        return None
    for prefix in _PREFIXES:
        if prefix.match(told[0]) is None and prefix.match(told[len(told) // 2]) is None:
            continue
        if sum(1 for line in told if prefix.match(line)) >= _MOST * len(told):
            return "\n".join(prefix.sub("", line, count=1) for line in lines)
    numbers = [int(match.group(1)) for line in told if (match := _NUMBERED.match(line))]
    if len(numbers) >= _MOST * len(told) and all(a < b for a, b in pairwise(numbers)):
        return "\n".join(_NUMBERED.sub("", line, count=1) for line in lines)
    indent = min(len(line) - len(line.lstrip(" ")) for line in told)
    return "\n".join(line[indent:] for line in lines) if indent else None


def _by_host(text: str) -> tuple[Stripped, ...]:
    lines = text.split("\n")
    matches = [(line, _HOST.match(line)) for line in lines if line.strip()]
    by_host: dict[str, list[str]] = {}
    for line, match in matches:
        if match is not None:
            by_host.setdefault(match.group(1), []).append(line[match.end() :])
    named = sum(len(own) for own in by_host.values())
    if not named or named < _MOST * len(matches) or not by_host.keys().isdisjoint(_KEYS):
        return ()
    if len(by_host) > _MOST_HOSTS:
        return ()
    return tuple(Stripped("\n".join([*own, ""]), host) for host, own in by_host.items())
