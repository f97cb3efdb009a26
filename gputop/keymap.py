"""Every action a person can take, once: keys, words, and where it applies.

Bindings, the footer, the help and the command palette are all made from this table, so none of them can
promise what another does not know. An action that writes carries `acts`; read-only mode takes such actions
out of all four.
"""

from typing import Final

from msgspec import Struct


class KeyAction(Struct, frozen=True, gc=False):
    """One line of the table.

    Attributes:
        id: Name of the app's action: `action_<id>`.
        keys: Keys in Textual's spelling; the first is the one shown.
        shown: How the key is written for people.
        words: What it does, in a few words.
        group: Heading in the help.
        footer: Order in the footer, 0 for not there; the lowest come first and stay longest.
        word: The short word of the footer.
        panes: Ids of the panes, or "details" and "heat", it applies to; empty for all.
        acts: It changes something outside the screen's own state.
    """

    id: str
    keys: tuple[str, ...]
    shown: str
    words: str
    group: str
    footer: int = 0
    word: str = ""
    panes: frozenset[str] = frozenset()
    acts: bool = False


_MOVE: Final = "Moving"
_LOOK: Final = "Looking"
_VIEW: Final = "The view"
_DATA: Final = "The data"
_LEAVE: Final = "Help and leaving"

_GPU_TABLES: Final = frozenset({"gpus", "memory", "errors"})
_GRIDS: Final = _GPU_TABLES | {"fleet"}
_TABLES: Final = _GRIDS | {"sources"}
_HEAT: Final = frozenset({"heat"})
_DETAILS: Final = frozenset({"details"})

ACTIONS: Final = (
    KeyAction("down", ("j", "down"), "j Down", "next row", _MOVE),
    KeyAction("up", ("k", "up"), "k Up", "previous row", _MOVE),
    KeyAction("page_down", ("pagedown", "ctrl+f"), "PgDn", "next screenful", _MOVE),
    KeyAction("page_up", ("pageup", "ctrl+b"), "PgUp", "previous screenful", _MOVE),
    KeyAction("half_down", ("ctrl+d",), "^D", "half a screenful on", _MOVE),
    KeyAction("half_up", ("ctrl+u",), "^U", "half a screenful back", _MOVE),
    KeyAction("top", ("g", "home"), "g", "first row", _MOVE),
    KeyAction("bottom", ("G", "end"), "G", "last row", _MOVE),
    KeyAction("follow", ("F",), "F", "back to the row under the cursor, wherever it went", _MOVE, panes=_TABLES),
    KeyAction("next_pane", ("tab",), "Tab", "next pane", _MOVE),
    KeyAction("previous_pane", ("shift+tab",), "S-Tab", "previous pane", _MOVE),
    KeyAction(
        "open",
        ("enter", "l", "right"),
        "Enter",
        "open: GPUs of a node, details of a GPU",
        _LOOK,
        footer=3,
        word="open",
        panes=_GRIDS | _HEAT,
    ),
    KeyAction("back", ("escape", "h", "left"), "Esc", "back; clears what was typed", _LOOK, footer=11, word="back"),
    KeyAction(
        "details",
        ("d",),
        "d",
        "details with charts, sources and ages",
        _LOOK,
        footer=8,
        word="details",
        panes=_GRIDS | _HEAT,
    ),
    KeyAction("why_holder", ("w",), "w", "who holds it, and how that is known", _LOOK, panes=_GPU_TABLES),
    KeyAction("heat", ("m",), "m", "heat map: one glyph a GPU", _LOOK, footer=9, word="map", panes=_TABLES | _HEAT),
    KeyAction("span", ("s",), "s", "details: span of the charts", _LOOK, footer=3, word="span", panes=_DETAILS),
    KeyAction(
        "filter",
        ("slash",),
        "/",
        "filter: text, !text, key:value, util>80",
        _VIEW,
        footer=4,
        word="filter",
        panes=_TABLES,
    ),
    KeyAction(
        "sort_next", ("greater_than_sign",), ">", "sort by the next column", _VIEW, footer=5, word="sort", panes=_GRIDS
    ),
    KeyAction("sort_previous", ("less_than_sign",), "<", "sort by the previous column", _VIEW, panes=_GRIDS),
    KeyAction("sort_invert", ("I",), "I", "turn the order round", _VIEW, panes=_GRIDS),
    KeyAction("group", ("t",), "t", "group rows", _VIEW, footer=6, word="group", panes=_GRIDS),
    KeyAction("mark", ("space",), "Space", "mark the row", _VIEW, panes=_TABLES),
    KeyAction("clear_marks", ("U",), "U", "clear the marks", _VIEW, panes=_TABLES),
    KeyAction("theme", ("T",), "T", "choose a theme", _VIEW),
    KeyAction(
        "copy",
        ("y", "c"),
        "y",
        "copy the row, or the marked ones (OSC 52)",
        _VIEW,
        footer=10,
        word="copy",
        panes=_TABLES | _DETAILS | _HEAT,
    ),
    KeyAction("pause", ("p",), "p", "hold the screen; data goes on coming in", _DATA, footer=7, word="pause"),
    KeyAction("refresh", ("r", "f5"), "r", "read every source now", _DATA),
    KeyAction("faster", ("plus", "equals_sign"), "+", "read more often", _DATA),
    KeyAction("slower", ("minus",), "-", "read less often", _DATA),
    KeyAction("release", ("R",), "R", "let go of the NVML device handles, or take them up again", _DATA),
    KeyAction("help", ("question_mark", "f1"), "?", "this help", _LEAVE, footer=1, word="help"),
    KeyAction("palette", ("colon", "ctrl+p"), ":", "find an action by its words", _LEAVE),
    KeyAction("suspend_process", ("ctrl+z",), "^Z", "to the shell; fg comes back", _LEAVE),
    KeyAction("quit", ("q", "ctrl+c", "ctrl+q"), "q", "leave", _LEAVE, footer=2, word="quit"),
)
"""All actions but those that choose a pane by its number."""


_SPELLED: Final = {
    "question_mark": "?", "colon": ":", "slash": "/", "plus": "+", "minus": "-", "equals_sign": "=",
    "greater_than_sign": ">", "less_than_sign": "<", "space": "Space", "enter": "Enter", "escape": "Esc", "tab": "Tab",
    "shift+tab": "S-Tab", "pagedown": "PgDn", "pageup": "PgUp", "home": "Home", "end": "End", "down": "Down",
    "up": "Up", "left": "Left", "right": "Right", "f1": "F1", "f5": "F5",
}  # fmt: skip


def spelled(action: KeyAction) -> str:
    """Return all keys of an action as they are written for people."""
    return " ".join(_spell(key) for key in action.keys)


def _spell(key: str) -> str:
    if len(key) == 1:
        return key
    return _SPELLED.get(key) or key.replace("ctrl+", "^").upper()


def actions(*, read_only: bool, pane: str = "") -> tuple[KeyAction, ...]:
    """Return the actions there are, without those that act when `read_only`.

    Args:
        read_only: Nothing may be changed outside the screen.
        pane: Leave out what does nothing there; "" for all actions.
    """
    return tuple(a for a in ACTIONS if not (read_only and a.acts) and (not pane or not a.panes or pane in a.panes))


def footer(pane: str, *, read_only: bool) -> tuple[KeyAction, ...]:
    """Return the actions to name in the footer of a pane, the most needed first."""
    fitting = [a for a in actions(read_only=read_only, pane=pane) if a.footer]
    return tuple(sorted(fitting, key=lambda a: a.footer))
