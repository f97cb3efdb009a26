"""From the bytes of one file to pages: the one place that knows which reader belongs to which kind."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, structs

from gputop.sources.bundle.detect import LOOK_AT, MIXED, detect, others, to_text
from gputop.sources.bundle.kinds import Kind
from gputop.sources.bundle.lspci import read_lspci
from gputop.sources.bundle.metrics_page import read_exporter, read_prometheus
from gputop.sources.bundle.page import Page
from gputop.sources.bundle.prefix import strip_prefixes
from gputop.sources.bundle.smi_decode import decode
from gputop.sources.bundle.smi_error import read_errors
from gputop.sources.bundle.smi_list import read_list
from gputop.sources.bundle.smi_query import read_query
from gputop.sources.bundle.smi_xml import read_xml


class Read(Struct, frozen=True):
    """What one file was read as.

    Attributes:
        kind: What it is.
        pages: What it says; empty when this version does not read the kind, or nothing could be read.
        is_read: This version reads the kind.
    """

    kind: Kind
    pages: tuple[Page, ...] = ()
    is_read: bool = False


def _errors(text: str) -> tuple[Page, ...]:
    said = read_errors(text)
    words = ", ".join([trouble.code for trouble in said.troubles] + ["GPUs not opened"] * bool(said.units))
    return (
        Page(
            kind=Kind.SMI_ERROR,
            what=f"{Kind.SMI_ERROR} ({words})",
            units=said.units,
            node=said.node,
            troubles=said.troubles,
        ),
    )


_READERS: Final[dict[Kind, Callable[[str], tuple[Page, ...]]]] = {
    Kind.SMI_XML: lambda text: tuple(decode(log, Kind.SMI_XML, text) for log in read_xml(text)),
    Kind.SMI_QUERY: lambda text: tuple(decode(log, Kind.SMI_QUERY, text) for log in read_query(text)),
    Kind.SMI_LIST: lambda text: (read_list(text),),
    Kind.LSPCI: lambda text: (read_lspci(text),),
    Kind.SMI_ERROR: _errors,
    Kind.EXPORTER: read_exporter,
    Kind.PROMETHEUS: read_prometheus,
}

_WITHOUT_MESSAGES: Final = frozenset({Kind.LSPCI, Kind.EXPORTER, Kind.PROMETHEUS})
"""Kinds whose readers pass over nvidia-smi's messages beside them."""


def read(data: bytes) -> Read:
    """Tell what a file is and read it."""
    if not data.strip(b"\0 \t\r\n"):
        return Read(Kind.EMPTY)
    text = to_text(data)
    if text is None:
        return Read(Kind.BINARY)
    whole = _read(text)
    # Large logs are not taken apart for nothing: their beginning tells what stands behind a prefix.
    if whole.kind not in MIXED or not any(_is_readable(part.text) for part in strip_prefixes(text[:LOOK_AT])):
        return whole
    parts = [(part.host, _read(part.text)) for part in strip_prefixes(text)]
    told = [(host, part) for host, part in parts if part.pages]
    if not told or _said(told) <= _said([("", whole)]):
        return whole
    pages = tuple(_named(page, host) for host, part in told for page in part.pages)
    return Read(told[0][1].kind, pages, is_read=True)


def _read(text: str) -> Read:
    kind = detect(text)
    reader = _READERS.get(kind)
    pages = reader(text) if reader is not None else ()
    also = [page for other in others(text, kind) for page in _READERS[other](text) if _tells(page)]
    if also:
        kind = kind if pages else also[0].kind
        pages = (*pages, *also)
    if pages and all(page.kind in _WITHOUT_MESSAGES for page in pages) and not read_errors(text).nothing:
        pages = (*pages, *_errors(text))
    return Read(kind, pages, is_read=reader is not None or bool(also))


def _is_readable(text: str) -> bool:
    kind = detect(text)
    return kind in _READERS or bool(others(text, kind))


def _tells(page: Page) -> bool:
    return bool(page.units or page.pci or page.troubles or page.facts)


def _said(parts: Sequence[tuple[str, Read]]) -> int:
    """Return how much is said, by which one way of reading a file is better than another."""
    pages = [page for _, part in parts for page in part.pages]
    return sum(len(unit.readings) + 1 for page in pages for unit in page.units) + sum(
        len(page.pci or ()) + len(page.troubles) + len(page.facts) for page in pages
    )


def _named(page: Page, host: str) -> Page:
    """Return the page with the host that stood before its lines."""
    return page if not host or page.own_host else structs.replace(page, hosts=(host,), facts_host=host, own_host=True)
