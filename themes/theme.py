"""A theme that has been checked, and what Textual makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from gputop.themes.colours import contrast
from gputop.themes.roles import CURSOR_ROLES, ROLES

if TYPE_CHECKING:
    from textual.theme import Theme as TextualTheme

BASE_COLOURS: Final = (
    "background",
    "foreground",
    "primary",
    "secondary",
    "accent",
    "success",
    "warning",
    "error",
    "surface",
    "panel",
)
"""Textual's own colours that a theme may set."""

REQUIRED_COLOURS: Final = BASE_COLOURS[:3]
"""Those that it must set; Textual derives the others."""

READABLE: Final = 4.5
"""Least contrast of text with what is behind it (WCAG 2.2, 1.4.3, level AA)."""


class RoleLook(Struct, frozen=True):
    """What a theme says of one role.

    Attributes:
        color: Its colour; None for the role's default.
        background: Its background; None for none.
        style: Its text attributes, separated by spaces; None for the role's default.
    """

    color: str | None = None
    background: str | None = None
    style: str | None = None


class Theme(Struct, frozen=True):
    """A theme.

    Attributes:
        name: What the user calls it.
        title: A few words for a list.
        origin: Where it was read: a path, or "bundled".
        dark: Whether its background is dark.
        ansi: Whether it uses the terminal's own palette.
        colors: Textual's base colours, by name.
        roles: Looks of roles, by name.
    """

    name: str
    title: str
    origin: str
    dark: bool
    ansi: bool
    colors: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, RoleLook] = field(default_factory=dict)

    def variables(self) -> dict[str, str]:
        """Return the theme variables of the roles that it sets."""
        variables: dict[str, str] = {}
        for name, look in self.roles.items():
            role = ROLES[name]
            for variable, value in (
                (role.variable, look.color),
                (role.ground_variable, look.background),
                (role.style_variable, look.style),
            ):
                if value is not None:
                    # An empty variable is an error in Textual's CSS.
                    variables[variable] = value or "none"
        return variables

    def unreadable(self, least: float = READABLE) -> list[str]:
        """List the roles whose text has too little contrast.

        Each is held against its own background, or against the screen's and the cursor lines'. Nothing
        is known of the terminal's own palette.
        """
        if self.ansi:
            return []
        screen = self.colors["background"]
        laid_under = [self.roles[name].background for name in CURSOR_ROLES if name in self.roles]
        problems: list[str] = []
        for name, look in self.roles.items():
            text = look.color or self.colors["foreground"]
            grounds = [look.background] if look.background else [screen, *filter(None, laid_under)]
            for ground in grounds:
                ratio = contrast(text, ground)
                if ratio < least:
                    problems.append(f"{name}: {text} on {ground} has contrast {ratio:.2f}, less than {least}")
        return problems


def to_textual(theme: Theme) -> TextualTheme:
    """Return the theme for ``App.register_theme``.

    Textual takes any colour there and ends the app at the next style pass if one is bad, so only a
    theme that the loader has checked may come here.
    """
    # Half of a second's import, which commands that draw nothing do not need.
    from textual.theme import Theme as TextualTheme  # noqa: PLC0415 - checking a theme needs no Textual

    colors = theme.colors
    return TextualTheme(
        name=theme.name,
        primary=colors["primary"],
        secondary=colors.get("secondary"),
        accent=colors.get("accent"),
        success=colors.get("success"),
        warning=colors.get("warning"),
        error=colors.get("error"),
        foreground=colors["foreground"],
        background=colors["background"],
        surface=colors.get("surface"),
        panel=colors.get("panel"),
        boost="ansi_default" if theme.ansi else None,
        dark=theme.dark,
        ansi=theme.ansi,
        variables={**(_ansi_ends(dark=theme.dark) if theme.ansi else {}), **theme.variables()},
    )


def _ansi_ends(*, dark: bool) -> dict[str, str]:
    """Return what Textual's own style sheet wants of an ansi theme and does not derive."""
    black, white = "ansi_black", "ansi_white"
    return {"ansi-background": black if dark else white, "ansi-foreground": white if dark else black}
