"""Reads theme files: those that come with gputop, then the user's, which may replace them by name.

A file is checked whole before anything is made of it, since Textual accepts any theme and ends the
program later over a bad colour. What is wrong is said with file, key and reason; the file is left out
and the program goes on.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from gputop.themes.colours import colour_problem
from gputop.themes.roles import ATTRIBUTES, ROLES
from gputop.themes.theme import BASE_COLOURS, REQUIRED_COLOURS, RoleLook, Theme

DEFAULT_THEME: Final = "dark"
PLAIN_THEME: Final = "ansi"
"""The theme for terminals of few colours and for NO_COLOR."""

_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LARGEST_FILE_BYTES: Final = 64 * 1024
_KEYS: Final[Mapping[str, type]] = {
    "name": str,
    "title": str,
    "dark": bool,
    "ansi": bool,
    "colors": dict,
    "roles": dict,
}
_LOOK_KEYS: Final = ("color", "background", "style")
_BUNDLED: Final = "bundled"


class ThemeError(Exception):
    """A theme file cannot be used.

    Attributes:
        problems: Everything that is wrong with it, each with file, key and reason.
    """

    def __init__(self, problems: list[str]) -> None:
        """Take what is wrong."""
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class Themes(Struct, frozen=True):
    """What was found.

    Attributes:
        themes: Usable themes by name.
        problems: What is wrong with the files that were left out, for the user to read.
    """

    themes: Mapping[str, Theme]
    problems: tuple[str, ...] = ()


def load_themes(user_folder: Path | None = None) -> Themes:
    """Read all themes.

    Args:
        user_folder: The user's ``themes`` folder; it need not exist.
    """
    themes = {theme.name: theme for theme in bundled_themes()}
    problems: list[str] = []
    for path in _user_files(user_folder, problems):
        try:
            theme = read_theme(path)
        except ThemeError as error:
            problems.extend(error.problems)
        else:
            themes[theme.name] = theme
    return Themes(themes, tuple(problems))


def bundled_themes() -> list[Theme]:
    """Read the themes that come with gputop, sorted by file name."""
    files = sorted(Path(__file__).parent.glob("*.toml"))
    return [parse_theme(item.read_bytes(), item.name, _BUNDLED) for item in files]


def read_theme(path: Path) -> Theme:
    """Read one theme file.

    Raises:
        ThemeError: The file cannot be read or is not a theme.
    """
    try:
        size = path.stat().st_size
        if size > _LARGEST_FILE_BYTES:
            raise ThemeError([f"{path}: has {size} bytes; a theme has at most {_LARGEST_FILE_BYTES}"])
        data = path.read_bytes()
    except OSError as error:
        raise ThemeError([f"{path}: cannot be read: {error.strerror or error}"]) from error
    return parse_theme(data, str(path), str(path))


def parse_theme(data: bytes, file: str, origin: str) -> Theme:
    """Check the content of a theme file.

    Args:
        data: The content.
        file: The file as problems name it.
        origin: Where the theme is from, for a list of themes.

    Raises:
        ThemeError: It is not a theme; everything that is wrong is in it.
    """
    try:
        table = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ThemeError([f"{file}: is not TOML: {error}"]) from error
    problems: list[str] = []
    _check_keys(table, problems)
    ansi = table.get("ansi") is True
    colors = _check_colors(table.get("colors"), problems, ansi=ansi)
    roles = _check_roles(table.get("roles"), problems, ansi=ansi)
    if problems:
        raise ThemeError([f"{file}: {problem}" for problem in problems])
    name = table["name"]
    return Theme(
        name=name,
        title=table.get("title", name),
        origin=origin,
        dark=table.get("dark", True),
        ansi=ansi,
        colors=colors,
        roles=roles,
    )


def fitting_theme(wanted: str | None, *, colours: str | None, no_color: bool) -> str:
    """Name the theme to start with.

    Args:
        wanted: The user's choice, which wins; None without one.
        colours: The terminal's colour system as Rich names it: "standard", "256", "truecolor", or None.
        no_color: Whether NO_COLOR is set.
    """
    if wanted is not None:
        return wanted
    return PLAIN_THEME if no_color or colours not in ("256", "truecolor") else DEFAULT_THEME


def _user_files(folder: Path | None, problems: list[str]) -> list[Path]:
    if folder is None:
        return []
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".toml")
    except FileNotFoundError:
        return []
    except OSError as error:
        problems.append(f"{folder}: cannot be read: {error.strerror or error}")
        return []


def _check_keys(table: Mapping[str, object], problems: list[str]) -> None:
    for key, value in table.items():
        kind = _KEYS.get(key)
        if kind is None:
            problems.append(f"{key}: is not a key of a theme; those are {', '.join(_KEYS)}")
        elif not isinstance(value, kind):
            problems.append(f"{key}: {value!r} is not a {'table' if kind is dict else kind.__name__}")
    name = table.get("name")
    if name is None:
        problems.append("name: is missing")
    elif isinstance(name, str) and not _NAME.fullmatch(name):
        problems.append(f"name: {name!r} is not a name of small letters, digits and single hyphens")
    title = table.get("title")
    if isinstance(title, str) and not title.isprintable():
        problems.append("title: holds characters that cannot be shown")
    if "colors" not in table:
        problems.append("colors: is missing")


def _check_colors(table: object, problems: list[str], *, ansi: bool) -> dict[str, str]:
    if not isinstance(table, dict):
        return {}
    colors: dict[str, str] = {}
    for key, value in table.items():
        if key not in BASE_COLOURS:
            problems.append(f"colors.{key}: is not a colour of a theme; those are {', '.join(BASE_COLOURS)}")
        elif problem := colour_problem(value, ansi=ansi):
            problems.append(f"colors.{key}: {problem}")
        else:
            colors[key] = value
    problems.extend(f"colors.{key}: is missing" for key in REQUIRED_COLOURS if key not in table)
    return colors


def _check_roles(table: object, problems: list[str], *, ansi: bool) -> dict[str, RoleLook]:
    if not isinstance(table, dict):
        return {}
    roles: dict[str, RoleLook] = {}
    for name, value in table.items():
        if name not in ROLES:
            problems.append(f"roles.{name}: is not a role; those are {', '.join(ROLES)}")
            continue
        if isinstance(value, dict):
            look = _check_look(name, value, problems, ansi=ansi)
        elif problem := colour_problem(value, ansi=ansi):
            problems.append(f"roles.{name}: {problem}")
            continue
        else:
            look = RoleLook(color=value)
        roles[name] = look
    return roles


def _check_look(name: str, table: Mapping[str, object], problems: list[str], *, ansi: bool) -> RoleLook:
    found: dict[str, str] = {}
    for key, value in table.items():
        where = f"roles.{name}.{key}"
        if key not in _LOOK_KEYS:
            problems.append(f"{where}: is not a key of a role; those are {', '.join(_LOOK_KEYS)}")
        elif key == "style":
            if not isinstance(value, str):
                problems.append(f"{where}: {value!r} is not text")
                continue
            unknown = [word for word in value.split() if word not in ATTRIBUTES]
            problems.extend(f"{where}: {word!r} is not one of {', '.join(ATTRIBUTES)}" for word in unknown)
            found[key] = value
        elif problem := colour_problem(value, ansi=ansi):
            problems.append(f"{where}: {problem}")
        elif isinstance(value, str):
            found[key] = value
    return RoleLook(found.get("color"), found.get("background"), found.get("style"))
