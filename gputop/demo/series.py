"""Label sets and samples as the simulated exporters write them and the simulated Prometheus keeps them."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple, Protocol


class Labels:
    """An immutable label set, without the metric's name, that remembers its costly spellings.

    One GPU has one label set for all of its metrics, so what is worked out for the first metric of a scrape
    serves the others: this is what makes a fleet of 10,240 GPUs cheap to serve.
    """

    __slots__ = ("_hash", "_json", "_parts", "_text", "key", "merged", "pairs")

    def __init__(self, pairs: Mapping[str, str]) -> None:
        self.pairs: dict[str, str] = {name: pairs[name] for name in sorted(pairs) if pairs[name] != ""}
        self.key = tuple(self.pairs.items())
        self._json: str | None = None
        self._text: str | None = None
        self._parts: dict[tuple[str, ...], Labels] = {}
        self._hash = hash(self.key)
        # What a scrape target made of this label set, and which target that was.
        self.merged: tuple[object, Labels] | None = None

    def json(self, name: str) -> str:
        """Return the label set with a metric's name as a JSON object."""
        if self._json is None:
            text = json.dumps(self.pairs, separators=(",", ":"), ensure_ascii=False)
            self._json = text[1:-1]
        if not name:
            return f"{{{self._json}}}"
        return f'{{"__name__":"{name}"{"," if self._json else ""}{self._json}}}'

    def text(self) -> str:
        """Return the label set as exposition text, without braces."""
        if self._text is None:
            self._text = ",".join(f'{name}="{escape(value)}"' for name, value in self.pairs.items())
        return self._text

    def only(self, names: tuple[str, ...]) -> "Labels":
        """Return the label set reduced to these names; the same object each time."""
        found = self._parts.get(names)
        if found is None:
            found = intern({name: self.pairs[name] for name in names if name in self.pairs})
            self._parts[names] = found
        return found

    def without(self, names: Iterable[str]) -> "Labels":
        """Return the label set without these names."""
        dropped = set(names)
        return intern({name: value for name, value in self.pairs.items() if name not in dropped})

    def having(self, changes: Mapping[str, str]) -> "Labels":
        """Return the label set with these labels set; an empty value removes the label."""
        return intern({**self.pairs, **changes})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Labels) and (self is other or self.key == other.key)

    def __hash__(self) -> int:
        return self._hash


# Label sets that come out of queries are few and come back with every refresh.
_INTERNED: dict[tuple[tuple[str, str], ...], Labels] = {}
_MOST_INTERNED = 200_000


def intern(pairs: Mapping[str, str]) -> Labels:
    """Return one shared label set for these pairs."""
    made = Labels(pairs)
    if len(_INTERNED) > _MOST_INTERNED:
        _INTERNED.clear()
    return _INTERNED.setdefault(made.key, made)


class Sample(NamedTuple):
    """A value of a series; ``name`` is empty where an operation dropped it, ``at`` is in unix seconds."""

    name: str
    labels: Labels
    value: float
    at: float


Wanted = Callable[[Labels], bool]
"""Says whether a series with these labels is asked for, before its value is worked out."""


class Exposition(Protocol):
    """What a scrape target serves: named families of series at a time (seconds after the start)."""

    def names(self) -> Iterable[str]:
        """Return the metric names that it can serve."""
        ...

    def describe(self, name: str) -> tuple[str, str]:
        """Return the TYPE and HELP of a metric."""
        ...

    def series(self, name: str, t: float, wanted: Wanted | None = None) -> list[tuple[Labels, float]]:
        """Return the series of a metric at a time, without those that are not wanted."""
        ...


def escape(value: str) -> str:
    """Escape a label value for exposition text."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def number(value: float) -> str:
    """Write a value as Prometheus does: shortest digits, in full below 1e21, NaN and ±Inf in words."""
    if value != value:  # noqa: PLR0124  (NaN is the only value that is not itself)
        return "NaN"
    if value in (math.inf, -math.inf):
        return "+Inf" if value > 0 else "-Inf"
    if value == int(value) and -1e15 < value < 1e15:
        return str(int(value))
    text = repr(float(value))
    if "e" in text and 1e-6 <= abs(value) < 1e21:
        text = f"{Decimal(text):f}"
    return text


def render(exposition: Exposition, t: float, stamp_ms: int | None = None) -> str:
    """Write an exposition as Prometheus text, with explicit timestamps where ``stamp_ms`` is given."""
    lines: list[str] = []
    tail = "" if stamp_ms is None else f" {stamp_ms}"
    for name in exposition.names():
        rows = exposition.series(name, t)
        if not rows:
            continue
        kind, words = exposition.describe(name)
        lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
        lines += [
            f"{name}{{{labels.text()}}} {number(value)}{tail}" if labels.pairs else f"{name} {number(value)}{tail}"
            for labels, value in rows
        ]
    return "\n".join(lines) + "\n" if lines else ""
