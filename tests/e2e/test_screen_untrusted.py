"""Text that others write, on every part of the screen: shown as text, never obeyed."""

import unicodedata

import pytest
from textual.pilot import Pilot

from gputop.model.facts import GpuFact, HoldersFact, NodeFact, NodeTrouble, Presence, ProcessesFact
from gputop.model.identity import GpuRef, NodeRef
from gputop.model.process import GpuProcess
from gputop.model.workload import Holder
from tests.e2e.rig import Told, app, shows, text

_ESCAPES = "\x1b]0;owned\x07\x1b[2J\x1b[31m\x9b31m\r\n\t\x00\u202e\u2066\u200b"
_MARKUP = "[bold red]x[/][link=http://evil]y[@click=app.quit]z"
HOSTILE = f"{_ESCAPES}{_MARKUP}"


_KEYS = (
    "1 2 3 4 5 1 t t t t t 2 t t t t t d escape w escape G d escape y m y d escape escape "
    "1 d y escape colon escape T escape slash x enter escape"
)
"""Every pane, every grouping, details, heat map, copies, palette, themes and a filter."""


def _facts() -> tuple[GpuFact | HoldersFact | NodeFact | NodeTrouble | ProcessesFact, ...]:
    node = NodeRef("gpu-a03")
    here = GpuRef("gpu-a03", uuid="GPU-0", bus_id="00000000:01:00.0", index=0)
    lost = GpuRef("gpu-a03", uuid="GPU-1", bus_id=f"00:02{HOSTILE}", index=1)
    holder = Holder("kubernetes", f"ns{HOSTILE}", f"pod{HOSTILE}", how=f"how{HOSTILE}")
    process = GpuProcess(41, "C", 100.0, 1.0, 0.0, 0.0, f"user{HOSTILE}", f"run{HOSTILE}", 1.0, holder)
    readings = {"utilization": 50.0, "model": f"model{HOSTILE}", "memory_used_mib": 1.0, "memory_total_mib": 2.0}
    return (
        NodeFact(node, {"driver_version": f"drv{HOSTILE}"}),
        NodeTrouble(node, "trouble", f"trouble{HOSTILE}", "warning"),
        GpuFact(here, readings),
        GpuFact(lost, {}, Presence.LOST, f"why{HOSTILE}"),
        HoldersFact(lost, (holder,)),
        ProcessesFact(here, (process,)),
    )


def _is_harmless(shown: str) -> bool:
    return all(unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Co"} for c in shown.replace("\n", ""))


def _obeys_markup(pilot: Pilot[None]) -> bool:
    """Whether something on screen became a link or a button."""
    strips = pilot.app.screen._compositor.render_strips()
    styles = [segment.style for strip in strips for segment in strip if segment.style]
    return any(style.link or "@click" in style.meta for style in styles)


@pytest.mark.parametrize("unicode", [True, False])
async def test_hostile_text_is_shown_and_does_nothing(monkeypatch: pytest.MonkeyPatch, unicode: bool) -> None:
    screen = app(Told(*_facts()), unicode=unicode)
    copied: list[str] = []
    monkeypatch.setattr(screen, "copy_to_clipboard", copied.append)
    async with screen.run_test(size=(200, 50)) as pilot:
        await shows(pilot, "50%", "[bold red]x")
        seen = ""
        for key in _KEYS.split():
            await pilot.press(key)
            await pilot.pause()
            shown = text(pilot)
            assert _is_harmless(shown), f"after {key}: {shown!r}"
            assert not _obeys_markup(pilot), f"after {key}"
            seen += shown
        for word in ("model", "pod", "user", "run", "why", "how", "trouble", "drv"):
            assert f"{word}]0;" in seen, f"{word} was never on screen"
        assert copied
