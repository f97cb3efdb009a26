"""What a pane is: columns, an order of identities, and cells for one identity; all pure.

A pane is asked for its order when rows came or went or the user changed filter, sort or grouping, and for
cells only of rows in sight. It keeps no state of the fleet; what it may cache, it caches by identity
against `View.version`.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

from msgspec import Struct

from gputop.fleet import Series, View
from gputop.model.demand import Demand
from gputop.model.identity import GpuKey, NodeKey
from gputop.widgets.cells import Cell
from gputop.widgets.columns import Column


class PaneContext(Struct, frozen=True):
    """What the screen is set to.

    Attributes:
        view: The fleet.
        now: The time on screen, seconds since the epoch: the wall clock, or the bundle's.
        filter: The user's filter text, "" for none; syntax in `gputop.panes.filter`.
        sort: (column key, descending); None for the pane's own order.
        group: Id of the grouping chosen among `Pane.groupings`; "" for none.
        node: The node the GPUs pane is narrowed to; None for all.
        width: Cells across.
        ascii_only: Draw with ASCII characters only.
        series: Reads the last minutes of a GPU: (key, quantity, slots) to a `Series` or None.
        collapsed: Ids of groups whose rows are folded away.
    """

    view: View
    now: float
    filter: str = ""
    sort: tuple[str, bool] | None = None
    group: str = ""
    node: NodeKey | None = None
    width: int = 80
    ascii_only: bool = False
    series: Callable[[GpuKey, str, int], Series | None] | None = None
    collapsed: frozenset[str] = frozenset()


class Pane(Protocol):
    """One pane.

    Attributes:
        id: Stable word: "fleet", "gpus", "memory", "errors", "sources".
        title: Words for the tab.
        groupings: (id, words) of the groupings that `t` walks through; "" is always the first.
    """

    id: str
    title: str
    groupings: tuple[tuple[str, str], ...]

    def columns(self, context: PaneContext) -> tuple[Column, ...]:
        """Return all columns; those that do not fit are dropped by priority."""
        ...

    def order(self, context: PaneContext) -> Sequence[Hashable]:
        """Return identities, filtered and sorted, with `Group` headings between them when grouped."""
        ...

    def cells(self, context: PaneContext, key: Hashable) -> tuple[Cell | None, ...]:
        """Return the cells of one row, one for each of `columns`, or of a heading."""
        ...

    def empty(self, context: PaneContext) -> Cell:
        """Return what to say where there is no row, and why."""
        ...

    def demand(self, context: PaneContext) -> Demand:
        """Return what this pane needs to be read."""
        ...
