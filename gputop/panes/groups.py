"""Rows under headings, for every pane that can be grouped."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from gputop.panes.ascii import fold
from gputop.panes.base import PaneContext
from gputop.widgets.cells import Cell
from gputop.widgets.row_order import Group

Row = TypeVar("Row")


def grouped(
    rows: Iterable[Row], by: Callable[[Row], str], key: Callable[[Row], Hashable], collapsed: frozenset[str]
) -> list[Hashable]:
    """Return the keys of rows under the headings of their groups.

    Groups stand in the order of their first rows, so that what needs a look stays first; rows keep their
    order within a group, and those of a folded group are left out.

    Args:
        rows: The rows in their order.
        by: Gives the name of a row's group.
        key: Gives the identity of a row.
        collapsed: Names of the groups that are folded.
    """
    groups: dict[str, list[Hashable]] = {}
    for row in rows:
        groups.setdefault(by(row), []).append(key(row))
    order: list[Hashable] = []
    for name, keys in groups.items():
        order.append(Group(name, collapsible=True))
        if name not in collapsed:
            order += keys
    return order


def group_heading(context: PaneContext, group: Group) -> Cell:
    """Return the line that heads a group: "+" when its rows are folded away, "-" when they stand below."""
    name = str(group.id)
    sign = "+" if name in context.collapsed else "-"
    return Cell(f"{sign} {fold(name) if context.ascii_only else name}", "group")
