"""Widgets depend on Textual, Rich and the themes, and on nothing else of gputop."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "widgets"
ALLOWED = {"msgspec", "textual", "rich", "gputop.widgets", "gputop.themes", *sys.stdlib_module_names}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_a_widget_imports_only_what_it_may(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            top, _, rest = name.partition(".")
            head = f"{top}.{rest.partition('.')[0]}" if top == "gputop" else top
            assert head in ALLOWED, f"{path.name} imports {name}"
