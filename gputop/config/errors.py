"""The error of a setting that cannot be used."""

import difflib
from collections.abc import Iterable


class ConfigError(Exception):
    """A setting cannot be used; the message names where it stands, its key and why."""


def nearest(key: str, known: Iterable[str]) -> str:
    """Return "; did you mean …?" for a misspelt key, or "" when nothing is near."""
    near = difflib.get_close_matches(key, list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""
