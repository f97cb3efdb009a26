"""Label matchers, made into functions."""

import re
from collections.abc import Callable, Iterable

from gputop.demo.promql.errors import QueryError
from gputop.demo.promql.syntax import Matcher
from gputop.demo.series import Labels

Test = Callable[[str], bool]


def test(matcher: Matcher) -> Test:
    """Return a test of one label's value; a label that is not there has the empty value.

    Raises:
        QueryError: A regular expression that cannot be compiled.
    """
    value = matcher.value
    if matcher.operator == "=":
        return lambda found: found == value
    if matcher.operator == "!=":
        return lambda found: found != value
    alternatives = _alternatives(value)
    if alternatives is not None:
        if matcher.operator == "=~":
            return lambda found: found in alternatives
        return lambda found: found not in alternatives
    try:
        pattern = re.compile(value, re.DOTALL)
    except re.error as error:
        raise QueryError(f"error parsing regexp {value!r}: {error}") from error
    if matcher.operator == "=~":
        return lambda found: pattern.fullmatch(found) is not None
    return lambda found: pattern.fullmatch(found) is None


def _alternatives(pattern: str) -> frozenset[str] | None:
    """Return the words of a pattern that is only a list of words, which a set answers faster."""
    words = pattern.replace("\\.", "\0").replace("\\-", "-").split("|")
    if any(re.search(r"[^\w\0 :/-]", word) for word in words):
        return None
    return frozenset(word.replace("\0", ".") for word in words)


def labels_test(matchers: Iterable[Matcher]) -> Callable[[Labels], bool] | None:
    """Return a test of a label set by all matchers but the name's; None where there are no others."""
    tests = [(matcher.label, test(matcher)) for matcher in matchers if matcher.label != "__name__"]
    if not tests:
        return None

    def check(labels: Labels) -> bool:
        pairs = labels.pairs
        return all(accepts(pairs.get(label, "")) for label, accepts in tests)

    return check


def name_test(matchers: Iterable[Matcher]) -> Callable[[str], bool]:
    """Return a test of metric names."""
    tests = [test(matcher) for matcher in matchers if matcher.label == "__name__"]
    return lambda name: all(accepts(name) for accepts in tests)
