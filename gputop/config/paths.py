"""Where files of the user lie, after the XDG base directory specification 0.8."""

import os
import platform
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

_NAME: Final = "gputop"


class Paths(Struct, frozen=True):
    """Folders of this user; none of them need exist.

    Attributes:
        config: Holds config.toml and themes/.
        state: Holds the log.
        runtime: Holds a file for each running screen.
    """

    config: Path
    state: Path
    runtime: Path

    @property
    def config_file(self) -> Path:
        """The configuration file."""
        return self.config / "config.toml"

    @property
    def themes(self) -> Path:
        """The user's themes."""
        return self.config / "themes"


def paths(env: Mapping[str, str]) -> Paths:
    """Return the folders that an environment names.

    GPUTOP_CONFIG_DIR names the configuration folder itself. Relative XDG paths are invalid by the
    specification and ignored.
    """
    home = Path(env.get("HOME") or "/")
    config = env.get("GPUTOP_CONFIG_DIR")
    state = (_absolute(env.get("XDG_STATE_HOME")) or home / ".local" / "state") / _NAME
    return Paths(
        config=Path(config) if config else (_absolute(env.get("XDG_CONFIG_HOME")) or home / ".config") / _NAME,
        state=state,
        runtime=_runtime(env, state),
    )


def _runtime(env: Mapping[str, str], state: Path) -> Path:
    """Return the runtime folder: XDG's, else one in the folder for temporary files that nobody else can write.

    Without XDG_RUNTIME_DIR, as under sudo or cron, the folder carries the user's number. Everyone may make
    that name first; then ours is in the state folder, by host, as a home may be shared by many.
    """
    given = _absolute(env.get("XDG_RUNTIME_DIR"))
    if given:
        return given / _NAME
    shared = (_absolute(env.get("TMPDIR")) or Path("/tmp")) / f"{_NAME}-{os.getuid()}"  # noqa: S108 - see above
    return shared if _is_ours(shared) else state / f"run-{platform.node() or 'localhost'}"


def _is_ours(folder: Path) -> bool:
    """Whether a folder is not there yet, or is a real one that only this user can write."""
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    others = stat.S_IWGRP | stat.S_IWOTH
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & others


def _absolute(text: str | None) -> Path | None:
    path = Path(text) if text else None
    return path if path is not None and path.is_absolute() else None
