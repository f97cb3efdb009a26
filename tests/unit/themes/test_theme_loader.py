"""Theme files: what is accepted, what is said about what is not, and that the bundled ones hold up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from textual.color import Color

from gputop.themes.colours import contrast, luminance
from gputop.themes.loader import ThemeError, bundled_themes, fitting_theme, load_themes, parse_theme
from gputop.themes.roles import ROLES
from gputop.themes.theme import Theme, to_textual

GOOD = """
name = "mine"
[colors]
background = "#000"
foreground = "#ffffff"
primary = "#88c0d0"
[roles]
ok = "#00ff00"
bad = { color = "#ff8080", style = "bold underline", background = "#200000" }
"""

BUNDLED = {theme.name: theme for theme in bundled_themes()}


def test_five_kinds_of_theme_are_bundled():
    assert set(BUNDLED) == {"dark", "light", "ansi", "high-contrast", "colour-blind"}
    assert BUNDLED["ansi"].ansi
    assert not BUNDLED["light"].dark


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_a_bundled_theme_says_what_every_role_looks_like(name: str):
    missing = [role for role in ROLES if BUNDLED[name].roles.get(role) is None]
    assert missing == []


@pytest.mark.parametrize(
    ("name", "least"), [("dark", 4.5), ("light", 4.5), ("colour-blind", 4.5), ("high-contrast", 7.0)]
)
def test_text_can_be_read_on_every_ground(name: str, least: float):
    assert BUNDLED[name].unreadable(least) == []


def test_low_contrast_is_found():
    theme = parse_theme(GOOD.replace("#00ff00", "#303030").encode(), "f", "f")
    (problem,) = theme.unreadable()
    assert problem.startswith("ok: #303030 on #000 has contrast 1.")


def test_contrast_is_that_of_the_specification():
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert luminance("#ff0000") == pytest.approx(0.2126)


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_state_is_told_without_colour_too(name: str):
    """The cursor and what is bad stand out on a screen without colours."""
    looks = BUNDLED[name].roles
    words = {role: set((looks[role].style or "").split()) for role in ("bad", "cursor", "alert", "sorted")}
    for role, found in words.items():
        assert found | set(ROLES[role].plain_style.split()), role


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_textual_takes_every_bundled_theme(name: str):
    theme = to_textual(BUNDLED[name])
    generated = theme.to_color_system().generate()
    assert generated["primary"]
    for variable, value in theme.variables.items():
        if not variable.endswith("-style"):
            Color.parse(value)
        else:
            assert value
    assert theme.ansi == BUNDLED[name].ansi


def test_a_good_file_is_read():
    theme = parse_theme(GOOD.encode(), "mine.toml", "here")
    assert (theme.name, theme.title, theme.dark, theme.ansi) == ("mine", "mine", True, False)
    assert theme.variables() == {
        "role-ok": "#00ff00",
        "role-bad": "#ff8080",
        "role-bad-background": "#200000",
        "role-bad-style": "bold underline",
    }


BAD = [
    ("name = 1\n[colors]\nbackground='#000'\nforeground='#fff'\nprimary='#fff'", "name: 1 is not a str"),
    (GOOD.replace('"mine"', '"My Theme"'), "name: 'My Theme' is not a name of small letters"),
    (GOOD.replace('name = "mine"', ""), "name: is missing"),
    (GOOD.replace("#88c0d0", "#88c0dg"), "colors.primary: '#88c0dg' is not a colour: write #rrggbb"),
    (GOOD.replace('"#88c0d0"', "5"), "colors.primary: 5 is not a colour: write it in quotes"),
    (GOOD.replace('primary = "#88c0d0"', ""), "colors.primary: is missing"),
    (GOOD.replace("primary", "primry"), "colors.primry: is not a colour of a theme"),
    (GOOD.replace("ok =", "okay ="), "roles.okay: is not a role"),
    (GOOD.replace("#00ff00", "ansi_green"), "roles.ok: 'ansi_green' is the terminal's own"),
    (GOOD.replace("bold underline", "bold blinking"), "roles.bad.style: 'blinking' is not one of bold"),
    (GOOD.replace("style =", "styl ="), "roles.bad.styl: is not a key of a role"),
    (GOOD.replace('"bold underline"', "true"), "roles.bad.style: True is not text"),
    ("colours = 1\n" + GOOD, "colours: is not a key of a theme"),
    ("ansi = true\n" + GOOD, "roles.ok: '#00ff00' is none of the terminal's colours"),
    ("dark = 'yes'\n" + GOOD, "dark: 'yes' is not a bool"),
    ("title = 'a\\u001b[31m'\n".replace("'", '"') + GOOD, "title: holds characters that cannot be shown"),
    ("name = 'x'\ncolors = 3", "colors: 3 is not a table"),
    ("name = 'x'", "colors: is missing"),
    ("name = ", "is not TOML"),
    ("a = " + "[" * 5000, "is not TOML"),
]


@pytest.mark.parametrize(("text", "words"), BAD, ids=[words[:40] for _, words in BAD])
def test_a_bad_file_is_refused_with_file_key_and_reason(text: str, words: str):
    with pytest.raises(ThemeError) as caught:
        parse_theme(text.encode(), "bad.toml", "here")
    assert any(problem.startswith(f"bad.toml: {words}") for problem in caught.value.problems), caught.value


def test_everything_wrong_is_said_at_once():
    text = GOOD.replace("#88c0d0", "blue").replace("ok =", "okay =").replace("bold", "bolt")
    with pytest.raises(ThemeError) as caught:
        parse_theme(text.encode(), "bad.toml", "here")
    assert len(caught.value.problems) == 3


def test_a_users_file_joins_and_replaces(tmp_path: Path):
    (tmp_path / "a.toml").write_text(GOOD)
    (tmp_path / "b.toml").write_text(GOOD.replace('"mine"', '"dark"'))
    found = load_themes(tmp_path)
    assert found.problems == ()
    assert found.themes["mine"].origin == str(tmp_path / "a.toml")
    assert found.themes["dark"].colors["primary"] == "#88c0d0"
    assert found.themes["light"].origin == "bundled"


def test_a_users_bad_file_costs_only_itself(tmp_path: Path):
    (tmp_path / "a.toml").write_bytes(b"name = '\xff'")
    (tmp_path / "b.toml").write_text(GOOD)
    (tmp_path / "c.toml").write_text(GOOD.replace("#88c0d0", "red"))
    (tmp_path / "d.toml").mkdir()
    (tmp_path / "e.toml").write_text("# " + "x" * 70_000)
    (tmp_path / "notes.txt").write_text("not a theme")
    found = load_themes(tmp_path)
    assert set(found.themes) == {*BUNDLED, "mine"}
    assert len(found.problems) == 4
    for name, problem in zip("acde", found.problems, strict=True):
        assert problem.startswith(str(tmp_path / f"{name}.toml"))


def test_no_folder_is_no_problem(tmp_path: Path):
    assert load_themes(tmp_path / "none").problems == ()
    assert set(load_themes(None).themes) == set(BUNDLED)


@pytest.mark.parametrize(
    ("wanted", "colours", "no_color", "name"),
    [
        (None, "truecolor", False, "dark"),
        (None, "256", False, "dark"),
        (None, "standard", False, "ansi"),
        (None, None, False, "ansi"),
        (None, "truecolor", True, "ansi"),
        ("light", "standard", True, "light"),
    ],
)
def test_the_theme_fits_the_terminal(wanted: str | None, colours: str | None, no_color: bool, name: str):
    assert fitting_theme(wanted, colours=colours, no_color=no_color) == name


def test_an_empty_style_is_spelt_for_textual():
    theme = parse_theme(GOOD.replace("bold underline", "").encode(), "f", "f")
    assert isinstance(theme, Theme)
    assert theme.variables()["role-bad-style"] == "none"


def test_reading_themes_imports_no_textual():
    code = (
        "import sys; from gputop.themes.loader import load_themes; load_themes(None);"
        "print([name for name in sys.modules if name.split('.')[0] in ('textual', 'rich')])"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout.strip() == "[]"
