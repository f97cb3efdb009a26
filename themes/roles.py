"""The roles that text on the screen can have, and how a theme spells them.

A widget or pane names a role; a theme says what it looks like. Every role has a place in one table
here, so that a theme file can be checked against it and an unknown theme (one of Textual's own, a
user's with a role missing) still gives every role a look.

A role becomes up to three theme variables: ``role-NAME`` (its colour), ``role-NAME-background`` and
``role-NAME-style`` (text attributes).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

ATTRIBUTES: Final = ("bold", "dim", "italic", "underline", "reverse", "strike")
"""Text attributes that a role may have, in the order in which they are written."""


class Role(Struct, frozen=True):
    """What a role is for, and its look where the theme does not say.

    Attributes:
        name: The name that cells use.
        meaning: When to use it.
        fallback: The Textual theme variable that gives its colour by default.
        ground: The Textual theme variable that gives its background by default; empty for none.
        style: Its text attributes by default.
        plain_style: Its text attributes where there are no colours to tell it by.
    """

    name: str
    meaning: str
    fallback: str = "foreground"
    ground: str = ""
    style: str = ""
    plain_style: str = ""

    @property
    def variable(self) -> str:
        """The theme variable of its colour."""
        return f"role-{self.name}"

    @property
    def ground_variable(self) -> str:
        """The theme variable of its background."""
        return f"role-{self.name}-background"

    @property
    def style_variable(self) -> str:
        """The theme variable of its text attributes."""
        return f"role-{self.name}-style"


_TABLE: Final = (
    Role("dim", "labels, units, what is there but not looked for", "secondary", plain_style="dim"),
    Role("title", "headings", "primary", style="bold", plain_style="bold"),
    Role("header", "column headings", "primary", style="bold", plain_style="bold underline"),
    Role("sorted", "the heading of the column that sorts", "accent", style="bold", plain_style="bold reverse"),
    Role("group", "a group's line between rows", "primary", style="bold", plain_style="bold"),
    Role("key", "a key to press", "accent", style="bold", plain_style="bold"),
    Role("ok", "live, healthy, within its range", "success"),
    Role("warn", "degraded, near a limit", "warning", plain_style="underline"),
    Role("bad", "broken, denied, past a limit", "error", style="bold", plain_style="bold underline"),
    Role("info", "neutral news, an explanation", "primary"),
    Role("stale", "a value that was true some time ago", "secondary", style="italic", plain_style="italic"),
    Role("unknown", "nobody told us", "warning"),
    Role("na", "the device says that it has no such thing", "secondary", plain_style="dim"),
    Role("busy", "held and in use", "success", plain_style="bold"),
    Role("idle", "held and not in use", "warning"),
    Role("free", "held by nobody, usable by a new job", "primary"),
    Role("draining", "cordoned or being emptied", "accent", plain_style="underline"),
    Role("util-0", "next to no load", "secondary", plain_style="dim"),
    Role("util-1", "a low share of the range", "success"),
    Role("util-2", "a middling share of the range", "success"),
    Role("util-3", "a high share of the range", "warning"),
    Role("util-4", "the top of the range", "error", plain_style="bold"),
    Role("chart-1", "first line of a chart", "primary"),
    Role("chart-2", "second line of a chart", "warning"),
    Role("chart-3", "third line of a chart", "success"),
    Role("chart-4", "fourth line of a chart", "error"),
    Role("chart-5", "fifth line of a chart", "accent"),
    Role("chart-6", "sixth line of a chart", "secondary"),
    Role("axis", "axes, rules, borders, the track of a scroll bar", "secondary", plain_style="dim"),
    Role("mark", "marked for an action", "accent", style="bold", plain_style="bold"),
    Role("match", "what a filter matched", "accent", style="underline", plain_style="underline"),
    Role("prompt", "what asks for input", "accent", style="bold", plain_style="bold"),
    Role("alert", "a loud word: DEMO, PAUSED, read-write", "background", "warning", "bold", "bold reverse"),
    Role("cursor", "the line that keys act on", "foreground", "panel", "", "reverse"),
    Role("cursor-blur", "that line while another widget has the keys", "foreground", "surface", "", "bold"),
    Role("caret", "the cell in which typing goes on", "background", "foreground", "", "reverse"),
)

ROLES: Final[dict[str, Role]] = {role.name: role for role in _TABLE}
"""Every role by its name."""

CURSOR_ROLES: Final = ("cursor", "cursor-blur")
"""Roles laid under whole lines; other roles are read on their background too."""
