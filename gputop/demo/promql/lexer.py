"""Cutting a query into tokens."""

import re
from typing import NamedTuple

from gputop.demo.promql.errors import QueryError

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+|\#[^\n]*)
  | (?P<duration>(?:\d+(?:ms|[smhdwy]))+)(?!\w)
  | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w:])
  | (?P<name>[a-zA-Z_:][\w:]*)
  | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`)
  | (?P<operator>=~|!~|==|!=|<=|>=|[-+*/%^=<>(){}\[\],@:])
    """,
    re.VERBOSE,
)

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}
_DURATION = re.compile(r"(\d+)(ms|[smhdwy])")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.)", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class Token(NamedTuple):
    """A token: its kind, its text, and where it begins."""

    kind: str
    text: str
    at: int


def tokens(query: str) -> list[Token]:
    """Cut a query into tokens; the last one is of kind ``end``.

    Raises:
        QueryError: A character that begins no token.
    """
    found: list[Token] = []
    place = 0
    while place < len(query):
        match = _TOKEN.match(query, place)
        if match is None or match.lastgroup is None:
            raise QueryError(f"parse error at char {place + 1}: unexpected character {query[place]!r}")
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup, match[0], place))
        place = match.end()
    found.append(Token("end", "", place))
    return found


def seconds(duration: str) -> float:
    """Return the seconds of a duration such as ``1h30m``."""
    return sum(int(count) * _UNITS[unit] for count, unit in _DURATION.findall(duration))


def unquote(text: str) -> str:
    """Return what a quoted string says; back-quoted ones have no escapes."""
    inner = text[1:-1]
    return inner if text[0] == "`" else _ESCAPE.sub(_unescape, inner)


def _unescape(match: re.Match[str]) -> str:
    body = match[1]
    if body[0] in "xuU":
        return chr(int(body[1:], 16))
    if len(body) == 3:
        return chr(int(body, 8))
    return _SIMPLE.get(body, body)
