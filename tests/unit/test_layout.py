"""Guards of the layout: what is shipped, what links where, how large files are, what words load."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

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
    # A copy without build/ and *.egg-info: what an earlier build left there would be shipped again and hide
    # a package that is missing from pyproject.toml.
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPO / name, copy)
    for name in ("gputop", "widgets", "themes"):
        shutil.copytree(REPO / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(copy)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    shipped = set(zipfile.ZipFile(wheel).namelist())
    assert wheel.name.startswith("gputop_tui-")
    assert "gputop/py.typed" in shipped
    assert not set(_files()) - shipped
    assert not [n for n in shipped if n.startswith(("widgets/", "themes/", "tests/"))]


def test_the_packages_are_the_folders() -> None:
    named = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    there = {name.rpartition("/")[0].replace("/", ".") for name in _files() if name.endswith(".py")}
    assert sorted(named) == sorted(there)


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


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-run.lock"])
def test_each_pin_of_a_lock_has_hashes_and_there_is_no_address(name: str) -> None:
    text = (REPO / name).read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*--?(i|f|index-url|extra-index-url|find-links|trusted-host)\b", text, re.MULTILINE)
    blocks = re.split(r"^(?=[a-zA-Z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(blocks) > 10
    assert not [block.split()[0] for block in blocks if "==" not in block or "--hash=sha256:" not in block]


def test_the_locks_satisfy_what_the_project_asks_for() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = {
        "requirements-run.lock": project["dependencies"],
        "requirements.lock": [*project["dependencies"], *project["optional-dependencies"]["dev"]],
    }
    for name, lines in asked.items():
        pins = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", (REPO / name).read_text(encoding="utf-8"), re.MULTILINE))
        wrong = [line for line in lines if not (r := Requirement(line)).specifier.contains(pins.get(r.name, "0"))]
        assert not wrong, name


def test_every_dependency_is_explained() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    explained = (REPO / "docs" / "dependencies.md").read_text(encoding="utf-8")
    for line in project["dependencies"]:
        assert f"| {Requirement(line).name} " in explained
    for line in project["optional-dependencies"]["dev"]:
        assert Requirement(line).name in explained


def test_no_file_tells_where_it_was_made() -> None:
    # The folders of whoever builds, and the servers that packages came from, mean nothing to anyone else.
    if not (REPO / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, text=True, cwd=REPO).stdout
    paths = [REPO / name for name in listed.split("\0") if name]
    places = "|".join(re.escape(str(place)) for place in (REPO, REPO.parent / "shared"))
    told = re.compile(rf"(?<![\w./~-])(?:{places})(?![\w-])|\b(?:pypi|pythonhosted)\.(?:org|io|com)\b")
    # The links to folders are among them, and are no files.
    texts = {path: path.read_bytes().decode("utf-8", "replace") for path in paths if path.is_file()}
    assert len(texts) > 100
    assert not [f"{path.relative_to(REPO)}: {match[0]}" for path, text in texts.items() if (match := told.search(text))]


def test_a_bare_import_of_widgets_is_banned(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text('"""x."""\n\nimport widgets\n\nwidgets.x()\n', encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "check", "--config", str(REPO / "pyproject.toml"), str(bad)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "TID251" in done.stdout
