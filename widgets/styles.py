"""From role names to styles of the terminal, worked out once for each theme.

There are no CSS classes on cells: setting one costs a style pass over the widget, and a table has
thousands of cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.style import Style
from textual.color import Color, ColorParseError

from gputop.themes.roles import ATTRIBUTES, CURSOR_ROLES, ROLES, Role

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_FEW_COLOURS = (None, "standard", "windows")
"""What Rich calls terminals of 16 colours or fewer."""


class RoleStyles:
    """The styles of all roles under one theme.

    Attributes:
        grounded: Roles that can be seen on a space, for gputop.widgets.line_diff.
    """

    def __init__(
        self,
        variables: Mapping[str, str],
        ground: Style,
        *,
        colours: str | None = "truecolor",
        no_color: bool = False,
    ) -> None:
        """Read the roles out of a theme's variables.

        Args:
            variables: The app's ``theme_variables``.
            ground: The widget's own colours, beneath every role.
            colours: The console's colour system, as Rich names it; None for none.
            no_color: Whether the user asked for no colour (https://no-color.org).
        """
        self._ground = ground
        self._no_color = no_color
        # A background that was chosen among 16 million colours may well become that of the screen when
        # the terminal has 16, so there the cursor is told by its attributes.
        self._few = no_color or colours in _FEW_COLOURS
        self._roles = {role.name: self._role_style(role, variables) for role in ROLES.values()}
        self._roles[""] = Style.null()
        self._made: dict[tuple[str, str], Style] = {}
        self.grounded = frozenset(
            name
            for name, style in self._roles.items()
            if style.bgcolor or style.reverse or style.underline or style.strike
        )

    def _role_style(self, role: Role, variables: Mapping[str, str]) -> Style:
        words = variables.get(role.style_variable, role.style).split()
        laid_under = role.name in CURSOR_ROLES
        if self._no_color:
            # The theme's own attributes go with its colours; without those they need not tell roles apart.
            return _attributes(role.plain_style.split())
        if self._few and laid_under:
            words = [*words, *role.plain_style.split()]
        attributes = _attributes(words)
        if self._few and laid_under and attributes.reverse:
            return attributes
        colour = _colour(variables, role.variable, role.fallback)
        # A theme that gives a role its colour but no background wants none: the default one was not chosen to
        # go with that colour, and may be the very same.
        default_ground = "" if role.variable in variables else role.ground
        ground = _colour(variables, role.ground_variable, default_ground)
        return attributes + Style(
            color=colour.rich_color if colour else None, bgcolor=ground.rich_color if ground else None
        )

    def style(self, role: str, base: str = "") -> Style:
        """Return the style of a role, on a line whose base is another one.

        An unknown role is drawn as ordinary text: a name misspelt in one pane must not end the program.
        """
        key = (role, base)
        style = self._made.get(key)
        if style is None:
            style = self._made[key] = self._make(role, base)
        return style

    def _make(self, role: str, base: str) -> Style:
        own = self._roles.get(role, Style.null())
        under = self._roles.get(base, Style.null())
        attributes = [word for word in ATTRIBUTES if getattr(own, word) or getattr(under, word)]
        if under.reverse:
            # Reversing every role's own colour would make the line a patchwork; its attributes stay.
            return self._ground + _attributes(attributes)
        style = self._ground + under + own
        return style + _attributes(attributes)


def _attributes(words: Collection[str]) -> Style:
    return Style.parse(" ".join(word for word in ATTRIBUTES if word in words))


def _colour(variables: Mapping[str, str], name: str, fallback: str) -> Color | None:
    """Parse a theme variable, or the one that stands in for it; None where neither is a colour.

    Themes are checked before they are registered, but Textual's own hold values that are no colours,
    such as "auto 60%".
    """
    for variable in (name, fallback):
        value = variables.get(variable)
        if value is None:
            continue
        try:
            return Color.parse(value)
        except ColorParseError:
            continue
    return None
