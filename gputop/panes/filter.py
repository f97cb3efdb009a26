"""The filter: terms that all must hold.

* `text` — somewhere in the row, whatever the case: a regular expression where it is one;
* `!text` — nowhere in it;
* `-f text` — its letters somewhere in the row, in this order;
* `key:text` — in one column (`node:a0`, `state:lost`, `holder:ml/`);
* `key>80`, `>=`, `<`, `<=`, `=` — a number of the row, by its short name (`util`, `temp`, `vram`) or the id of
  any quantity, in the quantity's unit; a row that has no number fails. A node has that of its highest GPU.

A term with blanks stands in double quotes.
"""

import operator
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final, Generic, TypeVar

from msgspec import Struct

from gputop.model.quantity import QUANTITIES, Kind

Row = TypeVar("Row")

_COMPARISON: Final = re.compile(r"([a-z_0-9]+)(>=|<=|>|<|=)(-?\d+(?:\.\d+)?)", re.IGNORECASE)
_OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
}
_FUZZY: Final = "-f"
_LABELS: Final = "-l"
_SHORT: Final = {
    "util": "utilization",
    "temp": "temperature_c",
    "power": "power_w",
    "vram": "memory_used_mib",
    "mem": "memory_used_mib",
    "clk": "sm_clock_mhz",
    "xid": "last_xid",
}
_SHORT_TEXTS: Final = {"host": "node", "pod": "holder", "reason": "why"}
_TEXT_KEYS: Final = frozenset(
    {
        "node",
        "cluster",
        "uuid",
        "model",
        "holder",
        "state",
        "driver",
        "health",
        "bus",
        "name",
        "why",
        "user",
        "command",
        "pid",
    }
)
"""Columns of text that some pane offers."""


class Term(Struct, frozen=True):
    """One condition.

    Attributes:
        inverse: It must not hold.
        key: Column or quantity, "" for the whole row.
        text: What to look for.
        found: Says whether it stands in a text.
        compare: Comparison of a number, None for a text.
        limit: What the number is compared with.
    """

    inverse: bool
    key: str
    text: str
    found: Callable[[str], bool]
    compare: str = ""
    limit: float = 0.0


class Searchable(Struct, Generic[Row], frozen=True):
    """What rows of a kind offer to a filter; asked only as far as a term needs.

    Attributes:
        texts: Gives the text of a row, by column; the cheap ones first.
        number: Gives the number of a row by quantity id, None when it has none.
    """

    texts: Mapping[str, Callable[[Row], str]]
    number: Callable[[Row, str], float | None]


@lru_cache(maxsize=64)
def parse(text: str) -> tuple[Term, ...]:
    """Return the terms of a filter.

    Raises:
        ValueError: It cannot be read; the message is for people.
    """
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    # A backslash belongs to the regular expression, and # begins no comment.
    lexer.escape = lexer.commenters = ""
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        raise ValueError('a quote is not closed: "') from None
    return tuple(_terms(words))


def _terms(words: list[str]) -> Iterator[Term]:
    given = iter(words)
    for word in given:
        if word == _LABELS:
            raise ValueError(f"{_LABELS}: no source tells the labels of a row")
        if word != _FUZZY:
            yield _term(word)
            continue
        letters = next(given, "")
        if not letters:
            raise ValueError(f"nothing stands after {_FUZZY}")
        yield Term(False, "", letters, _searcher(".*?".join(re.escape(letter) for letter in letters)))


def _searcher(text: str) -> Callable[[str], bool]:
    """Return what finds a text: as a regular expression, or letter by letter where it is none, as while typing."""
    try:
        pattern = re.compile(text, re.IGNORECASE)
    except re.error:
        pattern = re.compile(re.escape(text), re.IGNORECASE)
    return lambda whole: pattern.search(whole) is not None


def _never(_: str) -> bool:
    return False


def _term(word: str) -> Term:
    inverse = word.startswith("!")
    body = word[1:] if inverse else word
    if not body:
        raise ValueError("nothing stands after !")
    comparison = _COMPARISON.fullmatch(body)
    if comparison:
        key, compare, limit = comparison.groups()
        return Term(inverse, _number_key(key.lower()), "", _never, compare, float(limit))
    key, colon, rest = body.partition(":")
    if colon and rest and key.isalpha():
        return Term(inverse, _text_key(key.lower()), rest, _searcher(rest))
    return Term(inverse, "", body, _searcher(body))


def _number_key(key: str) -> str:
    quantity = QUANTITIES.get(_SHORT.get(key, key))
    if quantity is None or quantity.kind is Kind.TEXT:
        raise ValueError(f"no number is called {key}; there are {', '.join(_SHORT)} and the ids of all quantities")
    return quantity.id


def _text_key(key: str) -> str:
    found = _SHORT_TEXTS.get(key, key)
    if found not in _TEXT_KEYS:
        raise ValueError(f"no column is called {key}; there are {', '.join(sorted(_TEXT_KEYS))}")
    return found


def terms_of(text: str) -> tuple[Term, ...]:
    """Return the terms of a filter; one that cannot be read filters nothing (`problem_of` tells why)."""
    try:
        return parse(text)
    except ValueError:
        return ()


def problem_of(text: str) -> str:
    """Return why a filter cannot be read, or ""."""
    try:
        parse(text)
    except ValueError as error:
        return str(error)
    return ""


def matches(terms: tuple[Term, ...], row: Row, searchable: Searchable[Row]) -> bool:
    """Whether all terms hold for a row."""
    return all(_holds(term, row, searchable) for term in terms)


def _holds(term: Term, row: Row, searchable: Searchable[Row]) -> bool:
    if term.compare:
        value = searchable.number(row, term.key)
        # What is not known fails both ways: it is neither above 80 nor not above 80.
        return value is not None and _OPERATORS[term.compare](value, term.limit) != term.inverse
    if term.key:
        text = searchable.texts.get(term.key)
        return (text is not None and term.found(text(row))) != term.inverse
    return any(term.found(text(row)) for text in searchable.texts.values()) != term.inverse
