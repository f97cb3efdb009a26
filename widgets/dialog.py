"""Dialogs over the panes: a text to read, and a list to choose from.

They cover what is behind them rather than dim it: a see-through background makes Textual draw the
screen beneath again with every line of the dialog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from gputop.widgets.cells import Cell
from gputop.widgets.columns import Column
from gputop.widgets.line_table import LineTable
from gputop.widgets.prompt import Prompt
from gputop.widgets.status_line import StatusLines
from gputop.widgets.text_view import TextView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult

    from gputop.widgets.row_order import Key

_LOW = 6
"""Below so many lines the title and the hint give way to the content."""


class MenuItem(Struct, frozen=True):
    """Something to choose.

    Attributes:
        key: What the dialog answers with.
        text: What it is called; the filter looks in it.
        note: What stands beside it, such as its key on the keyboard; the filter looks in it too.
        selected: Whether it is what is chosen at present.
    """

    key: str
    text: str
    note: str = ""
    selected: bool = False


class Dialog(ModalScreen[str | None]):
    """What both kinds of dialog share: a title, a content and a line of keys.

    It answers with the key of what was chosen, or None.
    """

    DEFAULT_CSS = """
    Dialog { background: $background; align: center middle; &:ansi { background: ansi_default; } }
    Dialog > Vertical { width: 100%; max-width: 100; height: 100%; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Close", show=False),
    ]

    def __init__(self, title: Cell, hints: Sequence[Cell], *, ascii_only: bool = False) -> None:
        """Make a dialog.

        Args:
            title: The first line.
            hints: Keys to press, for the last line.
            ascii_only: Draw with ASCII characters only.
        """
        super().__init__()
        self._title = title
        self._hints = tuple(hints)
        self.ascii_only = ascii_only

    def compose(self) -> ComposeResult:
        """Lay out title, content and hints."""
        with Vertical():
            yield StatusLines(1, ascii_only=self.ascii_only, id="dialog-title")
            yield from self.content()
            yield StatusLines(1, ascii_only=self.ascii_only, id="dialog-hints")

    def content(self) -> ComposeResult:
        """Return the widgets between title and hints."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Fill in title and hints."""
        self.query_one("#dialog-title", StatusLines).set_line(0, [self._title])
        self.query_one("#dialog-hints", StatusLines).set_line(0, self._hints)
        self._give_way(self.size.height)

    def on_resize(self, event: events.Resize) -> None:
        """Leave the room to the content where there is little."""
        self._give_way(event.size.height)

    def _give_way(self, height: int) -> None:
        for line in self.query(StatusLines):
            line.display = height >= _LOW

    def action_leave(self) -> None:
        """Close without an answer."""
        self.dismiss(None)


class TextDialog(Dialog):
    """A text to read and scroll, such as the help. Escape, q and enter close it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,enter,question_mark", "leave", "Close", show=False),
        Binding("j", "focused.cursor_down", "Down", show=False),
        Binding("k", "focused.cursor_up", "Up", show=False),
        Binding("g", "focused.top", "Start", show=False),
        Binding("G", "focused.bottom", "End", show=False),
    ]

    def __init__(self, title: str, lines: Sequence[Cell], *, wrapped: bool = True, ascii_only: bool = False) -> None:
        """Make a dialog of text.

        Args:
            title: The first line.
            lines: The text.
            wrapped: Whether a line too long goes on below; otherwise it is cut.
            ascii_only: Draw with ASCII characters only.
        """
        hints = [Cell.of(("esc", "key"), (" close", "dim")), Cell.of(("PgDn", "key"), (" more", "dim"))]
        super().__init__(Cell(title, "title"), hints, ascii_only=ascii_only)
        self._lines = tuple(lines)
        self._wrapped = wrapped

    def content(self) -> ComposeResult:
        """Return the text."""
        yield TextView(self._lines, wrapped=self._wrapped, ascii_only=self.ascii_only)

    def on_mount(self) -> None:
        """Give the text the keys."""
        self.query_one(TextView).focus()


class MenuDialog(Dialog):
    """A list to choose from; typing narrows it. Answers with the item's key."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Up", show=False, priority=True),
        Binding("down", "move(1)", "Down", show=False, priority=True),
        Binding("pageup", "page(-1)", "Page up", show=False, priority=True),
        Binding("pagedown", "page(1)", "Page down", show=False, priority=True),
    ]

    def __init__(
        self, title: str, items: Sequence[MenuItem], *, hint: str = "type to narrow", ascii_only: bool = False
    ) -> None:
        """Make a menu.

        Args:
            title: The first line.
            items: What there is to choose, each key once.
            hint: What stands where one types.
            ascii_only: Draw with ASCII characters only.
        """
        hints = [
            Cell.of(("enter", "key"), (" choose", "dim")),
            Cell.of(("esc", "key"), (" leave", "dim")),
        ]
        super().__init__(Cell(title, "title"), hints, ascii_only=ascii_only)
        self._items = {item.key: item for item in items}
        self._hint = hint

    def content(self) -> ComposeResult:
        """Return the line to type into and the list."""
        note_width = max((len(item.note) for item in self._items.values()), default=0)
        text = Column("text", "", 20, min_width=8, flex=1)
        note = Column("note", "", max(1, min(note_width, 40)), priority=1)
        yield Prompt("> ", hint=self._hint, ascii_only=self.ascii_only)
        yield LineTable((text, note), self._cells, empty="nothing matches", header=False, ascii_only=self.ascii_only)

    def _cells(self, key: Key) -> tuple[Cell, ...]:
        item = self._items[str(key)]
        return Cell(item.text, "sorted" if item.selected else ""), Cell(item.note, "dim")

    def on_mount(self) -> None:
        """Show all items, with the cursor on the present choice, and take typing."""
        table = self.query_one(LineTable)
        table.can_focus = False
        table.update(list(self._items))
        chosen = next((key for key, item in self._items.items() if item.selected), None)
        if chosen is not None:
            table.move_cursor(chosen)
        self.query_one(Prompt).focus()

    def on_prompt_changed(self, event: Prompt.Changed) -> None:
        """Narrow the list to the items that hold every word typed."""
        event.stop()
        words = event.value.casefold().split()
        self.query_one(LineTable).update(
            [
                key
                for key, item in self._items.items()
                if all(word in f"{item.text} {item.note}".casefold() for word in words)
            ]
        )

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        """Answer with the item under the cursor."""
        event.stop()
        self._choose(self.query_one(LineTable).cursor)

    def on_prompt_cancelled(self, event: Prompt.Cancelled) -> None:
        """Close without an answer."""
        event.stop()
        self.dismiss(None)

    def on_line_table_activated(self, event: LineTable.Activated) -> None:
        """Answer with the item that was clicked twice."""
        event.stop()
        self._choose(event.key)

    def _choose(self, key: Key | None) -> None:
        if key is not None:
            self.dismiss(str(key))

    def action_move(self, rows: int) -> None:
        """Move the cursor of the list."""
        table = self.query_one(LineTable)
        (table.action_cursor_down if rows > 0 else table.action_cursor_up)()

    def action_page(self, pages: int) -> None:
        """Move the cursor of the list by a screen."""
        table = self.query_one(LineTable)
        (table.action_page_down if pages > 0 else table.action_page_up)()
