"""A secret that does not show itself: not in a repr, a log line, a traceback or an error text."""

from typing import Final

_HIDDEN: Final = "Secret(hidden)"


class Secret:
    """A password, token or header value.

    Args:
        value: The secret; empty means that there is none.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str = "") -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the secret, for the one place that sends it."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return _HIDDEN if self._value else "Secret(none)"

    def __reduce__(self) -> tuple[type["Secret"], tuple[()]]:
        # A pickle or a deep copy into a dump would carry it out of the process.
        return Secret, ()
