"""Where files lie: XDG's rules, and a runtime folder that nobody else has laid out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gputop.config.paths import paths


def _without_xdg(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}


def test_folders_follow_xdg_and_its_rule_on_relative_paths() -> None:
    found = paths({"HOME": "/home/ann", "XDG_CONFIG_HOME": "relative", "XDG_RUNTIME_DIR": "/run/user/7"})
    assert found.config_file == Path("/home/ann/.config/gputop/config.toml")
    assert found.state == Path("/home/ann/.local/state/gputop")
    assert found.runtime == Path("/run/user/7/gputop")
    assert paths({"GPUTOP_CONFIG_DIR": "/etc/g"}).themes == Path("/etc/g/themes")


def test_without_xdg_the_runtime_folder_carries_the_users_number(tmp_path: Path) -> None:
    env = _without_xdg(tmp_path)
    expected = tmp_path / f"gputop-{os.getuid()}"
    assert paths(env).runtime == expected
    expected.mkdir(mode=0o700)
    assert paths(env).runtime == expected


@pytest.mark.parametrize("trap", ["link", "file", "writable by all"])
def test_a_runtime_folder_that_others_could_fill_is_not_used(tmp_path: Path, trap: str) -> None:
    folder = tmp_path / f"gputop-{os.getuid()}"
    if trap == "link":
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    elif trap == "file":
        folder.write_text("", encoding="utf-8")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    found = paths(_without_xdg(tmp_path)).runtime
    assert found.is_relative_to(tmp_path / "home/.local/state/gputop")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to another user")
def test_a_runtime_folder_of_another_user_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / f"gputop-{os.getuid()}"
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)
    assert paths(_without_xdg(tmp_path)).runtime != folder


def test_settings_load_no_command_line_library_no_screen_and_no_client() -> None:
    code = (
        "import sys; import gputop.config.config, gputop.config.detect, gputop.config.paths;"
        "print(sorted({'click', 'textual', 'rich', 'requests', 'pynvml', 'urllib3'} & set(sys.modules)))"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=root)
    assert done.stdout.strip() == "[]"
