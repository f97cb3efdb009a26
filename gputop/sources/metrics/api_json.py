"""Saved answers of the Prometheus API to samples: vectors and matrices, one or several in a file."""

import json
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from gputop.model.text import clean
from gputop.sources.metrics.envelope import Envelope, envelope, number, series
from gputop.sources.metrics.sample import Sample, is_time


class Answers(Struct, frozen=True):
    """What a file of answers says.

    Attributes:
        samples: Every sample; its time is the answer's, which for a vector is when it was asked.
        notes: Warnings, errors and what could not be read, one sentence each.
    """

    samples: tuple[Sample, ...]
    notes: tuple[str, ...] = ()


def read_answers(text: str) -> Answers:
    """Return the samples of answers; series without a metric name, as expressions give, are passed over."""
    samples: list[Sample] = []
    notes: list[str] = []
    for body in _objects(text, notes):
        answer = envelope(body)
        if answer is None:
            notes.append("an object in it is no answer of the API")
        else:
            notes += _said(answer)
            samples += _samples(answer, notes)
    return Answers(tuple(samples), tuple(dict.fromkeys(notes)))


def _objects(text: str, notes: list[str]) -> Iterator[bytes]:
    decoder = json.JSONDecoder()
    at = 0
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if at == len(text):
            return
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            notes.append("it is cut off or damaged: what follows cannot be read")
            return
        yield text[at:end].encode()
        at = end


def _said(answer: Envelope) -> Iterator[str]:
    if answer.status != "success":
        yield clean(f"an answer is an error: {answer.error_type}: {answer.error}", 200)
    yield from (clean(f"warning: {w}", 200) for w in answer.warnings or ())
    if answer.is_partial:
        yield "the answer is partial"


def _samples(answer: Envelope, notes: list[str]) -> Iterator[Sample]:
    try:
        found, broken = series(answer.data)
    except msgspec.MsgspecError:
        if answer.status == "success":
            notes.append("an answer is neither a vector nor a matrix")
        return
    if broken:
        notes.append(f"{broken} series cannot be read")
    nameless = 0
    for one in found:
        labels = dict(one.metric)
        name = labels.pop("__name__", "")
        if not name:
            nameless += 1
            continue
        for at, value in [one.value] if one.value is not None else one.values:
            yield Sample(name, labels, number(value), at if is_time(at) else None)
    if nameless:
        notes.append(f"{nameless} series without a metric name: an expression's result says not what it is")
