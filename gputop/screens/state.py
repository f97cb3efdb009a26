"""What the user has set for each pane; kept while another pane is in sight."""

import time
from collections.abc import Hashable, Sequence
from typing import Final

from gputop.panes.base import Pane, PaneContext

_ORDER_SHARE: Final = 20.0
"""An order is computed anew at most this much less often than it costs, so sorting stays below 5 % of a core."""


class PaneState:
    """One pane's settings and its last order.

    Attributes:
        pane: The pane.
        filter: The filter text.
        sort: (column key, descending), None for the pane's own order.
        group: Id of the grouping.
        collapsed: Groups folded away.
        cursor: Identity the cursor was on.
    """

    def __init__(self, pane: Pane) -> None:
        self.pane = pane
        self.filter = ""
        self.sort: tuple[str, bool] | None = None
        self.group = ""
        self.collapsed: frozenset[str] = frozenset()
        self.cursor: Hashable = None
        self.order: Sequence[Hashable] = ()
        self._computed_at = 0.0
        self._cost_s = 0.0
        self._for: tuple[object, ...] = ()

    def next_group(self) -> str:
        """Choose the grouping after the present one and return its words."""
        ids = [g for g, _ in self.pane.groupings]
        self.group = ids[(ids.index(self.group) + 1) % len(ids)] if self.group in ids else ""
        self.collapsed = frozenset()
        return dict(self.pane.groupings).get(self.group, "")

    def toggle(self, group: str) -> None:
        """Fold a group away or unfold it."""
        self.collapsed ^= {group}

    def is_due(self, context: PaneContext, *, rows_changed: bool) -> bool:
        """Whether the order is to be computed anew.

        Args:
            context: What the screen is set to.
            rows_changed: Rows came or went.
        """
        rested = time.monotonic() - self._computed_at >= self._cost_s * _ORDER_SHARE
        return self._wanted(context) != self._for or (rested and bool(rows_changed or context.view.version))

    def take_order(self, context: PaneContext) -> None:
        """Compute the order; in any thread, since it is made of a view alone."""
        wanted = self._for = self._wanted(context)
        began = self._computed_at = time.monotonic()
        order = self.pane.order(context)
        if wanted == self._for:
            # Otherwise another one was asked for meanwhile.
            self.order = order
        self._cost_s = time.monotonic() - began

    @staticmethod
    def _wanted(context: PaneContext) -> tuple[object, ...]:
        return context.filter, context.sort, context.group, context.collapsed, context.node
