"""From the bytes of one file to pages: the one place that knows which reader belongs to which kind."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from gputop.sources.bundle.detect import detect, to_text
from gputop.sources.bundle.kinds import Kind
from gputop.sources.bundle.lspci import read_lspci
from gputop.sources.bundle.metrics_page import read_exporter, read_prometheus
from gputop.sources.bundle.page import Page
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


def read(data: bytes) -> Read:
    """Tell what a file is and read it."""
    if not data.strip(b"\0 \t\r\n"):
        return Read(Kind.EMPTY)
    text = to_text(data)
    if text is None:
        return Read(Kind.BINARY)
    kind = detect(text)
    reader = _READERS.get(kind)
    return Read(kind, reader(text), is_read=True) if reader is not None else Read(kind)
