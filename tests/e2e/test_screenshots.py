"""Pictures of each pane over the simulated cluster: drawn anew by `make screenshots`, and always drawable."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec import Struct
from rich.color import ColorSystem

from gputop.app import GputopApp
from gputop.config.config import load
from gputop.session import open_demo
from gputop.terminal import TerminalAbilities
from gputop.themes.loader import load_themes
from tests.e2e.rig import shows

FOLDER = Path(__file__).parents[2] / "screenshots"
SIZES = [(80, 24), (200, 50)]


class Shot(Struct, frozen=True):
    """A picture: the pane to begin with, the words to wait for, and what is pressed then, until which words show."""

    pane: str
    words: tuple[str, ...]
    keys: tuple[str, ...] = ()
    then: tuple[str, ...] = ()


_FLEET = ("gpu-001", " nodes ", "prometheus")
SHOTS = {
    "fleet": Shot("fleet", ("HEALTH", *_FLEET)),
    "gpus": Shot("gpus", ("HOLDER", *_FLEET)),
    "memory": Shot("memory", ("RESVD", *_FLEET)),
    "errors": Shot("errors", ("REMAP", *_FLEET)),
    "sources": Shot("sources", ("STATE", "live", "exporters")),
    "details": Shot("gpus", ("HOLDER", *_FLEET), ("d", "s"), ("Identity", "[1 h]", "-60m")),
    "node": Shot("fleet", ("HEALTH", *_FLEET), ("d", "s"), ("Node", "[1 h]", "-60m")),
    "heat": Shot("fleet", ("HEALTH", *_FLEET), ("m",), ("Utilisation",)),
    "help": Shot("fleet", ("HEALTH", *_FLEET), ("question_mark",), ("Moving",)),
}


def _write_png(svg: Path) -> None:
    """Draw the SVG with a browser, which falls back to other fonts for braille and marks as terminals do."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return
    box = re.search(r'viewBox="0 0 (\d+)(?:\.\d+)? (\d+)', svg.read_text(encoding="utf-8"))
    assert box is not None
    width, height = box.groups()
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},{height}"]
    target = svg.with_suffix(".png")
    subprocess.run(
        [chromium, *options, f"--screenshot={target}", svg.as_uri()], check=True, capture_output=True, timeout=60
    )


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("name", SHOTS)
async def test_screenshot_of_each_pane(name: str, size: tuple[int, int], tmp_path: Path) -> None:
    config = load({"pane": SHOTS[name].pane, "theme": "dark"}, {}, tmp_path / "none.toml")
    session = open_demo(config, "default")
    app = GputopApp(session, load_themes(None), TerminalAbilities("truecolor", no_color=False, unicode=True))
    # Without a terminal the console has no colours, and the cursor's line would be drawn reversed.
    app.console._color_system = ColorSystem.TRUECOLOR
    async with app.run_test(size=size) as pilot:
        await shows(pilot, "DEMO", *SHOTS[name].words)
        await pilot.press(*SHOTS[name].keys)
        await shows(pilot, *SHOTS[name].then)
        svg = app.export_screenshot(title="gputop demo", simplify=True)
    assert "gputop" in svg
    if os.environ.get("GPUTOP_WRITE_SCREENSHOTS"):
        path = FOLDER / f"{name}-{size[0]}x{size[1]}.svg"
        path.write_text(svg, encoding="utf-8")
        _write_png(path)
