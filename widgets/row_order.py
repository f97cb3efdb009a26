"""The order of a table's rows: where each identity stands, and which may hold the cursor."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Key: TypeAlias = Hashable
"""The identity of a row: anything that can be a key of a dict."""


@dataclass(frozen=True, slots=True)
class Group:
    """The key of a line that heads the rows below it.

    Attributes:
        id: Tells groups apart; nothing else of a group counts when keys are compared.
        collapsible: Whether the cursor may stand on it and a key asks to open or close it. The owner
            answers by an order with or without the rows of the group.
    """

    id: Hashable
    collapsible: bool = field(default=False, compare=False)


class RowOrder:
    """A sequence of keys with the questions that a cursor has about it.

    The map from key to position is built only when somebody asks for a key that is not where it was:
    of 10,240 rows in an unchanged order, a refresh touches only those in sight.
    """

    def __init__(self, keys: Sequence[Key] = ()) -> None:
        """Take the order as it is; it must not be changed afterwards."""
        self.keys = keys
        self._positions: dict[Key, int] | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def position(self, key: Key, near: int = -1) -> int | None:
        """Return where a key stands; None if nowhere.

        Args:
            key: The key.
            near: A position to look at first.
        """
        keys = self.keys
        if 0 <= near < len(keys) and keys[near] == key:
            return near
        if self._positions is None:
            self._positions = {each: position for position, each in enumerate(keys)}
        return self._positions.get(key)

    def selectable(self, position: int) -> bool:
        """Whether the cursor may stand there."""
        if not 0 <= position < len(self.keys):
            return False
        key = self.keys[position]
        return not isinstance(key, Group) or key.collapsible

    def nearest_selectable(self, position: int, direction: int = 1) -> int | None:
        """Return the nearest place for the cursor, first looking in one direction, then in the other."""
        keys = self.keys
        if not keys:
            return None
        position = min(max(position, 0), len(keys) - 1)
        ways = (
            (range(position, len(keys)), range(position - 1, -1, -1))
            if direction >= 0
            else (range(position, -1, -1), range(position + 1, len(keys)))
        )
        return next((at for way in ways for at in way if self.selectable(at)), None)

    def neighbour(self, key: Key, position: int, later: RowOrder) -> int | None:
        """Find where the cursor goes when its key is not in the later order any more.

        Args:
            key: The key that went away, which stood in this order.
            position: Where it stood.
            later: The order without it.

        Returns:
            The place of the nearest row of this order that is still there, of two as near the one that
            followed; then the same position; None if there is no place at all.
        """
        keys = self.keys
        reach = max(position, len(keys) - position)
        for distance in range(1, reach + 1):
            for at in (position + distance, position - distance):
                if 0 <= at < len(keys) and keys[at] != key:
                    place = later.position(keys[at])
                    if place is not None and later.selectable(place):
                        return place
        return later.nearest_selectable(position)
