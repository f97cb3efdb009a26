"""What a table tells its owner.

They are reached as ``LineTable.CursorMoved`` and so on; a handler by name is ``on_line_table_cursor_moved``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from gputop.widgets.line_table import LineTable
    from gputop.widgets.row_order import Group, Key


class TableMessage(Message, namespace="line_table"):
    """What all of them hold.

    Attributes:
        table: The sender.
    """

    def __init__(self, table: LineTable) -> None:
        """Remember the sender."""
        super().__init__()
        self.table = table

    @property
    def control(self) -> LineTable:
        """The table that sent it, for ``@on(..., selector)``."""
        return self.table


class CursorMoved(TableMessage, namespace="line_table"):
    """The cursor stands on another identity, by a key or because its row went away.

    Attributes:
        key: The identity; None in an empty table.
    """

    def __init__(self, table: LineTable, key: Key | None) -> None:
        """Remember the identity."""
        super().__init__(table)
        self.key = key

    def can_replace(self, message: Message) -> bool:
        """Let the last of a burst stand for all."""
        return isinstance(message, CursorMoved) and message.table is self.table


class Activated(TableMessage, namespace="line_table"):
    """The user opened a row (enter, or a second click).

    Attributes:
        key: Its identity.
    """

    def __init__(self, table: LineTable, key: Key) -> None:
        """Remember the identity."""
        super().__init__(table)
        self.key = key


class GroupToggled(TableMessage, namespace="line_table"):
    """The user asked to open or close a group; the owner answers with another order.

    Attributes:
        group: The group's key.
    """

    def __init__(self, table: LineTable, group: Group) -> None:
        """Remember the group."""
        super().__init__(table)
        self.group = group


class SortRequested(TableMessage, namespace="line_table"):
    """The user asked for another sorting; the owner answers with ``set_sort`` and another order.

    Attributes:
        column: The column's key.
        descending: From high to low.
    """

    def __init__(self, table: LineTable, column: str, *, descending: bool) -> None:
        """Remember the column and the direction."""
        super().__init__(table)
        self.column = column
        self.descending = descending


class MarksChanged(TableMessage, namespace="line_table"):
    """Rows were marked or unmarked; ``table.marks`` holds them."""
