"""What roles look like under themes, few colours and none."""

from __future__ import annotations

import pytest
from rich.style import Style

from gputop.themes.loader import bundled_themes
from gputop.themes.roles import ROLES
from gputop.themes.theme import to_textual
from gputop.widgets.styles import RoleStyles

GROUND = Style.parse("#d6dbe1 on #0f1419")
THEMES = {theme.name: theme for theme in bundled_themes()}


def styles(name: str, colours: str | None = "truecolor", *, no_color: bool = False) -> RoleStyles:
    return RoleStyles(to_textual(THEMES[name]).variables, GROUND, colours=colours, no_color=no_color)


def test_a_role_lies_on_the_ground_and_on_the_cursor():
    made = styles("dark")
    assert made.style("") == GROUND
    assert made.style("ok") == Style.parse("#7fd18b on #0f1419")
    assert made.style("ok", "cursor") == Style.parse("#7fd18b on #26384a")
    assert made.style("", "cursor") == Style.parse("#e6ebf0 on #26384a")
    assert made.style("bad", "cursor") == Style.parse("bold #ff8a80 on #26384a")
    assert made.style("alert", "cursor") == Style.parse("bold #0f1419 on #f0b450")
    assert made.style("ok") is made.style("ok")


def test_a_misspelt_role_is_ordinary_text():
    assert styles("dark").style("oops") == GROUND


@pytest.mark.parametrize("name", sorted(THEMES))
@pytest.mark.parametrize("colours", ["standard", None])
def test_the_cursor_is_reversed_where_colours_are_few(name: str, colours: str | None):
    made = styles(name, colours)
    assert made.style("ok", "cursor").reverse
    assert made.style("ok", "cursor").color == made.style("", "cursor").color


@pytest.mark.parametrize("name", sorted(THEMES))
@pytest.mark.parametrize("colours", ["truecolor", "standard", None])
def test_no_role_is_written_in_the_colour_it_lies_on(name: str, colours: str | None):
    # As in the app, the theme's colours are variables too, and roles fall back on them.
    variables = {**THEMES[name].colors, **to_textual(THEMES[name]).variables}
    made = RoleStyles(variables, GROUND, colours=colours, no_color=False)
    for role in ROLES:
        for base in ("", "cursor", "cursor-blur"):
            style = made.style(role, base)
            assert style.color is None or style.color.is_default or style.color != style.bgcolor, (role, base)


@pytest.mark.parametrize("name", sorted(THEMES))
def test_no_color_leaves_attributes_that_tell_states_apart(name: str):
    variables = to_textual(THEMES[name]).variables
    made = RoleStyles(variables, Style.null(), colours="truecolor", no_color=True)
    for role in ROLES:
        assert made.style(role).color is None
        assert made.style(role).bgcolor is None
    looks = {role: made.style(role) for role in ("", "bad", "warn", "cursor", "sorted", "busy", "alert")}
    assert looks["bad"] != looks[""]
    assert looks["warn"] not in (looks[""], looks["bad"])
    assert looks["cursor"].reverse
    assert looks["alert"].reverse
    assert looks["busy"] != looks[""]


def test_what_shows_on_a_blank_is_known():
    made = styles("dark")
    assert {"cursor", "cursor-blur", "alert", "caret", "match"} <= made.grounded
    assert not {"ok", "bad", "dim", ""} & made.grounded


def test_a_theme_that_knows_no_roles_still_has_colours_for_them():
    variables = {"success": "#00ff00", "error": "auto 60%", "panel": "#222222"}
    made = RoleStyles(variables, GROUND)
    assert made.style("ok") == Style.parse("#00ff00 on #0f1419")
    assert made.style("bad") == Style.parse("bold #d6dbe1 on #0f1419")
    assert made.style("", "cursor") == Style.parse("#d6dbe1 on #222222")
