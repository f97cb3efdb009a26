"""A line to type into. The caret does not blink: blinking alone writes 3 kB a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from gputop.widgets.canvas import LineCanvas
from gputop.widgets.cells import BLANK, Cell, Line, Run, fit, shown, take, text_width

if TYPE_CHECKING:
    from textual import events

_LONGEST = 4096


class Prompt(LineCanvas, can_focus=True):
    """One line of input, such as a filter or the name that a drain asks for."""

    DEFAULT_CSS = "Prompt { height: 1; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "left", "Left", show=False),
        Binding("right", "right", "Right", show=False),
        Binding("home,ctrl+a", "home", "Start", show=False),
        Binding("end,ctrl+e", "end", "End", show=False),
        Binding("backspace", "backspace", "Delete before", show=False),
        Binding("delete", "delete", "Delete after", show=False),
        Binding("ctrl+w", "delete_word", "Delete word", show=False),
        Binding("ctrl+u", "delete_all", "Delete all before", show=False),
        Binding("enter", "submit", "Take", show=False),
        Binding("escape", "cancel", "Leave", show=False),
    ]

    class Event(Message):
        """What was typed.

        Attributes:
            prompt: The sender.
            value: Its text.
        """

        def __init__(self, prompt: Prompt, value: str) -> None:
            """Remember the sender and the text."""
            super().__init__()
            self.prompt = prompt
            self.value = value

        @property
        def control(self) -> Prompt:
            """The prompt that sent it, for ``@on(..., selector)``."""
            return self.prompt

    class Changed(Event):
        """The text is another one."""

        def can_replace(self, message: Message) -> bool:
            """Let the last of a burst stand for all."""
            return isinstance(message, Prompt.Changed) and message.prompt is self.prompt

    class Submitted(Event):
        """The user pressed enter."""

    class Cancelled(Event):
        """The user pressed escape."""

    def __init__(
        self,
        label: str = "",
        *,
        value: str = "",
        hint: str = "",
        ascii_only: bool = False,
        id: str | None = None,  # noqa: A002 - Textual's own name for it
        classes: str | None = None,
    ) -> None:
        """Make a prompt.

        Args:
            label: What stands before the text, such as "/".
            value: The text to start with.
            hint: What stands there while there is no text.
            ascii_only: Draw with ASCII characters only.
            id: The widget's id, for Textual.
            classes: The widget's CSS classes, for Textual.
        """
        super().__init__(ascii_only=ascii_only, id=id, classes=classes)
        self._label = label
        self._hint = hint
        self._value = shown(value)
        self._at = len(self._value)
        self._start = 0
        self._note = BLANK

    @property
    def value(self) -> str:
        """The text."""
        return self._value

    def set_value(self, value: str) -> None:
        """Take another text and go to its end; no message is sent."""
        self._value = shown(value)[:_LONGEST]
        self._at = len(self._value)
        self.repaint()

    def set_label(self, label: str, hint: str = "") -> None:
        """Take another label and hint."""
        self._label, self._hint = label, hint
        self.repaint()

    def set_note(self, note: Cell) -> None:
        """Say something at the right end: how many rows match, what is wrong with an expression."""
        self._note = note
        self.repaint()

    # -- drawing ----------------------------------------------------------------------------------------

    def line_at(self, y: int, width: int) -> Line:
        """Return the line."""
        if y > 0 or width <= 0:
            return Line(fit(BLANK, width))
        label = fit(Cell(self._label, "prompt"), min(text_width(self._label), max(0, width - 4)))
        room = width - sum(text_width(text) for text, _ in label)
        note: tuple[Run, ...] = ()
        note_width = self._note.width
        # The text comes first; a note that would leave it less than half waits for a wider terminal.
        if 0 < note_width <= room // 2:
            note = ((" ", ""), *fit(self._note, note_width))
            room -= note_width + 1
        return Line((*label, *self._text_runs(room), *note))

    def _text_runs(self, room: int) -> tuple[Run, ...]:
        value, at = self._value, self._at
        if not value:
            hint = fit(Cell(self._hint, "dim"), max(0, room - 1), "left", self.ellipsis)
            return fit(Cell.of((" ", self._caret_role), *hint), room)
        self._start = min(self._start, at)
        # Keep the caret's own cell in sight, by whole characters.
        while self._start < at and text_width(value[self._start : at + 1] or " ") + (at == len(value)) > room:
            self._start += 1
        before = value[self._start : at]
        under = value[at : at + 1] or " "
        left = max(0, room - text_width(before) - text_width(under))
        after, _ = take(value[at + 1 :], left)
        return fit(Cell.of((before, ""), (under, self._caret_role), (after, "")), room, "left", " ")

    @property
    def _caret_role(self) -> str:
        return "caret" if self.has_focus else ""

    # -- editing ----------------------------------------------------------------------------------------

    def _edit(self, value: str, at: int) -> None:
        changed = value != self._value
        self._value, self._at = value, at
        self.repaint()
        if changed:
            self.post_message(self.Changed(self, value))

    def _insert(self, text: str) -> None:
        text = shown(text)[: _LONGEST - len(self._value)]
        if text:
            self._edit(self._value[: self._at] + text + self._value[self._at :], self._at + len(text))

    def on_key(self, event: events.Key) -> None:
        """Take what can be typed, so that it does not act as a key of the app."""
        if event.is_printable and event.character:
            event.stop()
            event.prevent_default()
            self._insert(event.character)

    def on_paste(self, event: events.Paste) -> None:
        """Take the first line of what was pasted."""
        event.stop()
        lines = event.text.splitlines()
        if lines:
            self._insert(lines[0])

    def check_consume_key(self, key: str, character: str | None) -> bool:  # noqa: ARG002 - Textual's signature
        """Tell Textual which keys are typed rather than bound."""
        return character is not None and character.isprintable()

    def action_left(self) -> None:
        """Move the caret a character to the left."""
        self._edit(self._value, max(0, self._at - 1))

    def action_right(self) -> None:
        """Move the caret a character to the right."""
        self._edit(self._value, min(len(self._value), self._at + 1))

    def action_home(self) -> None:
        """Move the caret to the start."""
        self._edit(self._value, 0)

    def action_end(self) -> None:
        """Move the caret to the end."""
        self._edit(self._value, len(self._value))

    def action_backspace(self) -> None:
        """Delete the character before the caret."""
        if self._at:
            self._edit(self._value[: self._at - 1] + self._value[self._at :], self._at - 1)

    def action_delete(self) -> None:
        """Delete the character under the caret."""
        self._edit(self._value[: self._at] + self._value[self._at + 1 :], self._at)

    def action_delete_word(self) -> None:
        """Delete the word before the caret."""
        before = self._value[: self._at].rstrip()
        kept = before[: before.rfind(" ") + 1]
        self._edit(kept + self._value[self._at :], len(kept))

    def action_delete_all(self) -> None:
        """Delete all before the caret."""
        self._edit(self._value[self._at :], 0)

    def action_submit(self) -> None:
        """Send the text."""
        self.post_message(self.Submitted(self, self._value))

    def action_cancel(self) -> None:
        """Say that the user wants to leave."""
        self.post_message(self.Cancelled(self, self._value))

    def on_focus(self) -> None:
        """Show the caret."""
        self.repaint()

    def on_blur(self) -> None:
        """Hide the caret."""
        self.repaint()
