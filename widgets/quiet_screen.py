"""A screen that is not written whole when the focus moves."""

from __future__ import annotations

from typing import Generic, TypeVar

from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget

Answer = TypeVar("Answer")


class QuietScreen(Screen[Answer], Generic[Answer]):
    """A screen whose widgets show by themselves whether they have the focus.

    Textual writes the whole screen twice each time the focus moves, 45 kB at 100x36: its ``focused`` is
    reactive with a repaint. The widgets of this package repaint what differs, which is a line or two.
    An app uses it through ``get_default_screen``.
    """

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
