"""The filter: terms that all must hold.

* `text` — somewhere in the row, whatever the case;
* `!text` — nowhere in it;
* `key:text` — in one column (`node:a0`, `state:lost`, `holder:ml/`);
* `key>80`, `>=`, `<`, `<=`, `=` — a number of the row; a row that has no number fails.

A term with blanks stands in double quotes.
"""

import operator
import re
import shlex
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

_COMPARISON: Final = re.compile(r"([a-z_0-9]+)(>=|<=|>|<|=)(-?\d+(?:\.\d+)?)", re.IGNORECASE)
_OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
}
_SHORT: Final = {
    "util": "utilization",
    "temp": "temperature_c",
    "power": "power_w",
    "vram": "memory_used_mib",
    "mem": "memory_used_mib",
    "clk": "sm_clock_mhz",
    "xid": "last_xid",
    "host": "node",
    "pod": "holder",
}


class Term(Struct, frozen=True):
    """One condition.

    Attributes:
        inverse: It must not hold.
        key: Column or quantity, "" for the whole row.
        text: What to look for, in lower case.
        compare: Comparison of a number, None for a text.
        limit: What the number is compared with.
    """

    inverse: bool
    key: str
    text: str
    compare: str = ""
    limit: float = 0.0


class Subject(Struct, frozen=True):
    """What a row offers to a filter.

    Attributes:
        texts: Text by column, in lower case.
        number: Returns a number by quantity id, None when it has none.
    """

    texts: Mapping[str, str]
    number: Callable[[str], float | None]


@lru_cache(maxsize=64)
def parse(text: str) -> tuple[Term, ...]:
    """Return the terms of a filter.

    Raises:
        ValueError: It cannot be read; the message is for people.
    """
    try:
        words = shlex.split(text)
    except ValueError:
        raise ValueError('a quote is not closed: "') from None
    return tuple(_term(word) for word in words)


def _term(word: str) -> Term:
    inverse = word.startswith("!")
    body = word[1:] if inverse else word
    if not body:
        raise ValueError("nothing stands after !")
    comparison = _COMPARISON.fullmatch(body)
    if comparison:
        key, compare, limit = comparison.groups()
        return Term(inverse, _SHORT.get(key.lower(), key.lower()), "", compare, float(limit))
    key, colon, rest = body.partition(":")
    if colon and key.isidentifier() and rest:
        return Term(inverse, _SHORT.get(key.lower(), key.lower()), rest.lower())
    return Term(inverse, "", body.lower())


def problem_of(text: str) -> str:
    """Return why a filter cannot be read, or ""."""
    try:
        parse(text)
    except ValueError as error:
        return str(error)
    return ""


def matches(terms: tuple[Term, ...], subject: Subject) -> bool:
    """Whether all terms hold for a row."""
    return all(_holds(term, subject) for term in terms)


def _holds(term: Term, subject: Subject) -> bool:
    if term.compare:
        value = subject.number(term.key)
        # What is not known fails both ways: it is neither above 80 nor not above 80.
        return value is not None and _OPERATORS[term.compare](value, term.limit) != term.inverse
    if term.key:
        return (term.text in subject.texts.get(term.key, "")) != term.inverse
    return any(term.text in text for text in subject.texts.values()) != term.inverse
