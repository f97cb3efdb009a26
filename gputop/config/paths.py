"""Where files of the user lie, after the XDG base directory specification 0.8."""

import os
import tempfile
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
    specification and ignored. Without XDG_RUNTIME_DIR, as under sudo or cron, the runtime folder carries
    the user's number.
    """
    home = Path(env.get("HOME") or "/")
    config = env.get("GPUTOP_CONFIG_DIR")
    runtime = _absolute(env.get("XDG_RUNTIME_DIR"))
    return Paths(
        config=Path(config) if config else (_absolute(env.get("XDG_CONFIG_HOME")) or home / ".config") / _NAME,
        state=(_absolute(env.get("XDG_STATE_HOME")) or home / ".local" / "state") / _NAME,
        runtime=runtime / _NAME if runtime else Path(tempfile.gettempdir()) / f"{_NAME}-{os.getuid()}",
    )


def _absolute(text: str | None) -> Path | None:
    path = Path(text) if text else None
    return path if path is not None and path.is_absolute() else None
