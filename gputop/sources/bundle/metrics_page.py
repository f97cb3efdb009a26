"""Exporter text and saved Prometheus answers, through the decoder that live sources use."""

import re
from collections.abc import Iterable, Sequence

from msgspec import structs

from gputop.model.facts import Fact, GpuFact, NodeFact, NodeTrouble, Roster
from gputop.model.identity import GpuRef
from gputop.model.reading import Value
from gputop.sources.bundle.kinds import Kind
from gputop.sources.bundle.page import Page, Trouble, Unit
from gputop.sources.metrics.api_json import read_answers
from gputop.sources.metrics.decode import Decoder
from gputop.sources.metrics.lacking import exporters
from gputop.sources.metrics.sample import Sample
from gputop.sources.metrics.text import read_text

_NO_HOST = "unknown-host"
_METRIC_LINE = re.compile(
    r"^(?:# (?:HELP|TYPE|UNIT) [A-Za-z_:]|# EOF$|[A-Za-z_:][\w:]*(?:\{.*\})?[ \t]+(?:[+-]?[\d.]|[+-]?Inf|NaN))",
    re.MULTILINE,
)


def read_exporter(text: str) -> tuple[Page, ...]:
    """Return a page for each host that exporter text tells of; none if no sample can be read."""
    found = read_text(_page_in(text))
    notes = [found.trouble] if found.trouble else []
    pages = _pages(Kind.EXPORTER, found.samples, notes, lists_all=not found.is_cut)
    return tuple(structs.replace(page, broken=found.trouble) for page in pages)


def _page_in(text: str) -> str:
    """Return the text without what a shell or another tool wrote before and after the page."""
    found = list(_METRIC_LINE.finditer(text))
    if not found:
        return text
    end = text.find("\n", found[-1].start()) + 1 if text.endswith("\n") else len(text)
    return text[found[0].start() : end]


def read_prometheus(text: str) -> tuple[Page, ...]:
    """Return a page for each host that answers of the Prometheus API tell of.

    A query may leave GPUs out, so what it does not list is not missing.
    """
    answers = read_answers(text)
    return _pages(Kind.PROMETHEUS, answers.samples, answers.notes, lists_all=False)


def _pages(kind: Kind, samples: Sequence[Sample], notes: Iterable[str], *, lists_all: bool) -> tuple[Page, ...]:
    if not samples:
        return ()
    times = [s.at for s in samples if s.at is not None]
    at = max(times, default=None)
    decoder = Decoder(source="bundle", rank=0, default_host=_NO_HOST)
    facts = decoder.decode(samples, at or 0.0, complete=lists_all)
    families = ", ".join(exporters(decoder.names))
    page = Page(
        kind=kind,
        what=f"{kind} ({families})" if families else f"{kind} (no GPU metrics)",
        at=at,
        lists_all=lists_all,
        notes=tuple(notes),
    )
    by_host: dict[str, list[Fact]] = {}
    others: list[Fact] = []
    hosts = {fact.ref.host for fact in facts if isinstance(fact, GpuFact)}
    for fact in facts:
        host = _host(fact)
        if host in hosts:
            by_host.setdefault(host, []).append(fact)
        elif not isinstance(fact, Roster):
            others.append(_timeless(fact))
    pages = [_page(page, host, of_host, alone=len(hosts) == 1) for host, of_host in by_host.items()]
    if others or not pages:
        pages.append(structs.replace(page, facts=tuple(others), lists_all=False))
    return tuple(pages)


def _host(fact: Fact) -> str | None:
    ref = getattr(fact, "ref", None)
    return ref.host if ref is not None else None


def _timeless(fact: Fact) -> Fact:
    """Return the fact with the page's time: a file is one moment."""
    return structs.replace(fact, at=None) if getattr(fact, "at", None) is not None else fact


def _page(page: Page, host: str, facts: Sequence[Fact], *, alone: bool) -> Page:
    readings: dict[GpuRef, dict[str, Value]] = {}
    node: dict[str, Value] = {}
    rest: list[Fact] = []
    troubles: list[Trouble] = []
    for fact in facts:
        if isinstance(fact, GpuFact):
            readings.setdefault(fact.ref, {}).update(fact.readings)
        elif isinstance(fact, NodeFact):
            node.update(fact.readings)
        elif isinstance(fact, NodeTrouble):
            troubles.append(Trouble(fact.code, fact.text, fact.severity))
        elif not isinstance(fact, Roster):
            rest.append(_timeless(fact))
    return structs.replace(
        page,
        units=tuple(_unit(ref, values) for ref, values in readings.items()),
        node=node,
        troubles=tuple(troubles),
        hosts=(host,) if alone and host != _NO_HOST else (),
        facts=tuple(rest),
        facts_host=host,
        own_host=not alone,
    )


def _unit(ref: GpuRef, readings: dict[str, Value]) -> Unit:
    return Unit(
        uuid=ref.uuid,
        bus_id=ref.bus_id,
        index=ref.index,
        instance=ref.instance,
        mig_uuid=ref.mig_uuid,
        readings=readings,
    )
