"""Selectors: metric names, the user's own matchers, and label values, put together without injection."""

import re
from collections.abc import Iterable
from typing import Final

from gputop.sources.base import SourceError

_MATCHER: Final = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*("(?:[^"\\\n]|\\.)*")\s*')

_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def check_matchers(text: str) -> str:
    """Return the user's matchers in one spelling, "" for none.

    Raises:
        SourceError: It is no list of label matchers; braces around it are allowed.
    """
    body = text.strip()
    if body.startswith("{") and body.endswith("}"):
        body = body[1:-1]
    matchers: list[str] = []
    at = 0
    while at < len(body):
        match = _MATCHER.match(body, at)
        if match is None:
            raise SourceError(f'selector: not a list of label matchers such as cluster="prod-eu": {text}')
        matchers.append("".join(match.groups()))
        at = match.end()
        if at < len(body):
            if body[at] != ",":
                raise SourceError(f"selector: a comma is missing between matchers: {text}")
            at += 1
    return ",".join(matchers)


def quoted(value: str) -> str:
    """Return a label value as a PromQL string."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def label_name(name: str) -> str:
    """Return a label's name as it stands in a grouping; one that Prometheus 2 cannot spell bare is quoted."""
    return name if _NAME.fullmatch(name) else quoted(name)


def one_of(values: Iterable[str]) -> str:
    """Return a regular expression, quoted, that matches exactly these values (RE2, fully anchored)."""
    return quoted("|".join(re.escape(v).replace("\\-", "-").replace("\\ ", " ") for v in values))


def select(names: Iterable[str], *matchers: str) -> str:
    """Return a selector of series with one of these names and all matchers; empty matchers are left out."""
    chosen = list(names)
    own = ",".join(m for m in matchers if m)
    if len(chosen) == 1 and re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", chosen[0]):
        return f"{chosen[0]}{{{own}}}" if own else chosen[0]
    named = f"__name__=~{one_of(chosen)}"
    return f"{{{named},{own}}}" if own else f"{{{named}}}"
