"""Guards of the layout: what is shipped, what links where, how large files are, what words load."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
FOLDERS = {"gputop": REPO / "gputop", "gputop/widgets": REPO / "widgets", "gputop/themes": REPO / "themes"}
SHIPPED = {".py", ".toml", ".tcss", ".typed"}
HEAVY = ("textual", "rich", "pynvml", "requests", "kubernetes", "nomad", "prometheus_client", "prometheus_api_client")
LONGEST_FILE = 500


def _files() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for prefix, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(folder)
            if path.suffix not in SHIPPED or "__pycache__" in inside.parts:
                continue
            if prefix == "gputop" and inside.parts[0] in {"widgets", "themes"}:
                continue
            found[f"{prefix}/{inside.as_posix()}"] = path
    return found


@pytest.mark.parametrize("name", ["widgets", "themes"])
def test_links_lead_to_the_top_level_folders(name: str) -> None:
    link = REPO / "gputop" / name
    assert link.is_symlink()
    assert link.resolve() == REPO / name


def test_the_wheel_holds_every_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(REPO)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    shipped = set(zipfile.ZipFile(wheel).namelist())
    assert wheel.name.startswith("gputop_tui-")
    assert not set(_files()) - shipped
    assert not [n for n in shipped if n.startswith(("widgets/", "themes/", "tests/"))]


def test_no_file_is_too_long_to_be_read_at_once() -> None:
    long = {n: c for n, p in _files().items() if (c := len(p.read_text(encoding="utf-8").splitlines())) > LONGEST_FILE}
    assert not long


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["snapshot", "--help"]], ids=" ".join)
def test_words_load_neither_the_screen_nor_a_client(arguments: list[str]) -> None:
    code = f"""
import sys
sys.argv = ["gputop", *{arguments!r}]
from gputop.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("LOADED", *sorted(set(sys.modules) & set({HEAVY!r})))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=REPO)
    assert done.stdout.strip().splitlines()[-1] == "LOADED"


def test_the_lock_has_hashes_and_names_no_address() -> None:
    for name in ("requirements.lock", "requirements-run.lock"):
        text = (REPO / name).read_text(encoding="utf-8")
        assert "://" not in text
        pins = [block for block in text.split("\n") if "==" in block and not block.startswith((" ", "#"))]
        assert len(pins) > 10
        assert text.count("--hash=sha256:") >= len(pins)


def test_every_dependency_is_locked_and_explained() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lock = (REPO / "requirements-run.lock").read_text(encoding="utf-8")
    explained = (REPO / "docs" / "dependencies.md").read_text(encoding="utf-8")
    for line in project["dependencies"]:
        name = line.split(">")[0].split("=")[0].strip()
        assert f"\n{name}==" in "\n" + lock
        assert f"| {name}" in explained


def test_a_bare_import_of_widgets_is_banned(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text('"""x."""\n\nimport widgets\n\nwidgets.x()\n', encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "check", "--config", str(REPO / "pyproject.toml"), str(bad)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "TID251" in done.stdout
