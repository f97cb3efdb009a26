"""The Textual app: wiring of session, screens, keys and the one timer; nothing else."""

import asyncio
import contextlib
import math
import sys
import time
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from msgspec import structs
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.worker import Worker

from gputop import collector
from gputop.fleet import Changes, View
from gputop.keymap import actions
from gputop.model.demand import Demand
from gputop.pace import Pace
from gputop.panes.node_summary import SMALL_FLEET, SUMMARIES
from gputop.panes.registry import PANES
from gputop.presence_file import PresenceFile
from gputop.screens.base import WatchScreen
from gputop.screens.footer import Footer
from gputop.screens.main import MainScreen
from gputop.session import Session
from gputop.terminal import TerminalAbilities, end_by_force, is_lost, on_ending_signals, on_release_signals
from gputop.themes.loader import Themes, fitting_theme
from gputop.themes.theme import to_textual
from gputop.threads import in_thread
from gputop.widgets import left_crop

_INTERVALS_S: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0)
_TTY_CHECK_S: Final = 2.0
_EXPIRE_EVERY_S: Final = 600.0
_KEEP_S: Final = 24 * 3600.0
_HANGUP: Final = 129
_FIRST_ROUND_S: Final = 120.0
_COUNT_EVERY_S: Final = 5.0
_SWITCH_S: Final = 0.001


class GputopApp(App[None]):
    """The screen.

    Args:
        session: What is read; started and ended by the app.
        themes: Themes to choose from.
        terminal: What the terminal can show.
        presence: Tells `gputop release` of this process; None in tests.
    """

    ENABLE_COMMAND_PALETTE = False
    animation_level = "none"
    CSS = "Screen { layers: base; overflow: hidden hidden; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(",".join(a.keys), f"registry('{a.id}')", a.words, show=False, priority="ctrl+c" in a.keys)
            for a in actions(read_only=False)
        ),
        *(Binding(str(n + 1), f"pane({n})", show=False) for n in range(len(PANES))),
    ]

    def __init__(
        self,
        session: Session,
        themes: Themes,
        terminal: TerminalAbilities,
        presence: PresenceFile | None = None,
    ) -> None:
        super().__init__(ansi_color=None)
        self.session = session
        self.title = "gputop"
        self._themes = themes
        self._terminal = terminal
        self._presence = presence
        self._frozen: tuple[View, float] | None = None
        self._drawing: Worker[None] | None = None
        self._draw_again = False
        self._count_at = 0.0
        self._pending = Changes(rows=True)
        self._checked_tty_at = self._expired_at = time.monotonic()
        config = session.config
        self.interval_s: float = config.interval
        self.ascii_only: bool = config.ascii or not terminal.unicode
        self.read_only: bool = config.read_only

        for theme in themes.themes.values():
            self.register_theme(to_textual(theme))
        known = config.theme if config.theme in themes.themes else None
        self.theme = fitting_theme(known, colours=terminal.colours, no_color=terminal.no_color)

    def get_default_screen(self) -> Screen[Any]:
        """Return the screen below all others.

        Pushed over Textual's own it would be laid out and drawn a second time before anything is seen.
        """
        return MainScreen(self.session.config.pane)

    def on_mount(self) -> None:
        """Start the sources after the first frame."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ValueError, RuntimeError):
            # Signal handlers belong to the main thread; a test's app may live in another.
            if not self.is_headless:
                on_ending_signals(loop, self._leave)
            on_release_signals(loop, self._release_on_signal)
        if self._presence is not None:
            self._presence.write()
        self.call_after_refresh(self._start)
        self._timer = self.set_interval(min(1.0, self.interval_s), self.tick)

    async def _start(self) -> None:
        collector.settle()
        await self.session.start()
        self.run_worker(self._settle_fleet(), group="settle")
        problems = list(self._themes.problems)
        wanted = self.session.config.theme
        if wanted and wanted not in self._themes.themes:
            problems.insert(0, f"no theme {wanted}: there are {', '.join(sorted(self._themes.themes))}")
        if problems:
            self.say(problems[0], "warn")

    async def _settle_fleet(self) -> None:
        await self.session.first_round(_FIRST_ROUND_S)
        collector.settle()

    async def on_unmount(self) -> None:
        """End the sources without waiting for them."""
        if self._presence is not None:
            self._presence.remove()
        await self.session.aclose()

    # -- what screens ask -------------------------------------------------------------------------------

    @property
    def paused(self) -> bool:
        """Whether the screen is held."""
        return self._frozen is not None

    def shown_view(self) -> View:
        """Return the fleet as shown: as it is, or as it was when the screen was held."""
        return self._frozen[0] if self._frozen else self.session.fleet.view()

    def shown_now(self) -> float:
        """Return the time that ages count to."""
        return self._frozen[1] if self._frozen else self.session.now()

    def take_changes(self) -> Changes:
        """Return what changed since a screen last asked."""
        if self._frozen is None:
            return self.session.fleet.take_changes()
        return Changes()

    def post_demand(self, demand: Demand) -> None:
        """Tell the sources what is looked at."""
        self.session.board.post(structs.replace(demand, interval_s=self.interval_s))

    def say(self, words: str, role: str = "info") -> None:
        """Show what an action came to, in the footer of the screen in sight."""
        for footer in self.screen.query(Footer):
            footer.say(words, role)

    # -- the timer --------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Bring the screen in sight up to date, and see that the terminal is still there."""
        now = time.monotonic()
        if now - self._checked_tty_at >= _TTY_CHECK_S:
            self._checked_tty_at = now
            if not self.is_headless and is_lost():
                end_by_force(_HANGUP)
                self._leave(_HANGUP)
                return
        if now - self._expired_at >= _EXPIRE_EVERY_S:
            self._expired_at = now
            self.session.fleet.expire(self.session.now(), _KEEP_S)
        if isinstance(self.screen, WatchScreen):
            self.draw(self.screen)
        if now >= self._count_at and len(self.shown_view().nodes) > SMALL_FLEET:
            self._count_at = math.inf
            self.run_worker(self._count_nodes(), group="counting")

    def draw(self, screen: WatchScreen) -> None:
        """Bring a screen up to date: at once, or between other things where the fleet is large."""
        if len(self.shown_view().nodes) <= SMALL_FLEET:
            screen.tick()
        elif self._drawing is None or self._drawing.is_finished:
            # Not here, where keys would wait until it is through.
            self._drawing = self.run_worker(self._draw(screen), group="drawing")
        else:
            self._draw_again = True

    async def _draw(self, screen: WatchScreen) -> None:
        pace = Pace()
        self._draw_again = True
        while self._draw_again:
            self._draw_again = False
            for work in screen.steps():
                if work is not None:
                    await in_thread(work, "order")
                await pace.rest()
                if screen is not self.screen:
                    return

    async def _count_nodes(self) -> None:
        """Sum up the nodes that looks at the fleet left for later."""
        pace = Pace()
        known = SUMMARIES.all(self.shown_view(), self.shown_now())
        # A round of a source comes in several parts, and not each is worth summing up all nodes.
        rest_s = 0.0 if known.missing else _COUNT_EVERY_S
        for key in known.due:
            view = self.shown_view()
            if key in view.nodes:
                SUMMARIES.of(view, key, self.shown_now())
            await pace.rest()
        self._count_at = time.monotonic() + rest_s

    def _leave(self, code: int) -> None:
        self.exit(return_code=code)

    # -- actions ----------------------------------------------------------------------------------------

    def action_registry(self, action: str) -> None:
        """Carry out an action of the registry: by the screen in sight, else by the app."""
        if isinstance(self.screen, WatchScreen) and self.screen.do(action):
            return
        handler = getattr(self, f"do_{action}", None)
        if handler is not None and (isinstance(self.screen, WatchScreen) or action == "quit"):
            handler()

    def action_pane(self, number: int) -> None:
        """Show a pane by its number."""
        while not isinstance(self.screen, MainScreen) and isinstance(self.screen, WatchScreen):
            self.pop_screen()
        if isinstance(self.screen, MainScreen):
            self.screen.go_to(number)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Return none: the palette is made from the registry."""
        del screen
        return ()

    def do_quit(self) -> None:
        """Leave."""
        self.exit(return_code=0)

    def do_pause(self) -> None:
        """Hold the screen, or let it go on."""
        self._frozen = None if self._frozen else (self.session.fleet.view(), self.session.now())
        self.tick()

    def do_refresh(self) -> None:
        """Read every source now."""
        self.session.board.refresh()
        self.say("reading every source now")

    def do_faster(self) -> None:
        """Read more often."""
        self._set_interval(max((i for i in _INTERVALS_S if i < self.interval_s), default=self.interval_s))

    def do_slower(self) -> None:
        """Read less often."""
        self._set_interval(min((i for i in _INTERVALS_S if i > self.interval_s), default=self.interval_s))

    def _set_interval(self, seconds: float) -> None:
        self.interval_s = seconds
        self.session.board.post(structs.replace(self.session.board.current, interval_s=seconds))
        self._timer.stop()
        self._timer = self.set_interval(min(1.0, seconds), self.tick)
        self.say(f"every {seconds:g} s")

    def do_release(self) -> None:
        """Let go of the NVML device handles, or take them up again."""
        self.run_worker(self._toggle_release(), exclusive=True, group="release")

    async def _toggle_release(self) -> None:
        supervisor = self.session.supervisor
        if supervisor.released("nvml"):
            supervisor.resume("nvml")
            self.say("NVML is taken up again")
        else:
            await supervisor.release("nvml")
            self.say("NVML released: gputop holds no device; R takes it up again", "warn")
        self.tick()

    def _release_on_signal(self, *, release: bool) -> None:
        if self.session.supervisor.released("nvml") != release:
            self.do_release()

    def do_help(self) -> None:
        """Show all keys."""
        from gputop.panes.help import help_lines  # noqa: PLC0415 - the first frame does without
        from gputop.widgets.dialog import TextDialog  # noqa: PLC0415 - see above

        self.push_screen(TextDialog("Keys", help_lines(read_only=self.read_only), ascii_only=self.ascii_only))

    def do_palette(self) -> None:
        """Choose an action by its words."""
        from gputop.widgets.dialog import MenuDialog, MenuItem  # noqa: PLC0415 - the first frame does without

        items = [MenuItem(f"pane {n}", f"pane: {p.title}", str(n + 1)) for n, p in enumerate(PANES)]
        items += [MenuItem(a.id, a.words, a.shown) for a in actions(read_only=self.read_only)]
        self.push_screen(MenuDialog("Actions", items, ascii_only=self.ascii_only), self._chose)

    def _chose(self, chosen: str | None) -> None:
        if chosen is None:
            return
        pane, _, number = chosen.partition(" ")
        if pane == "pane":
            self.action_pane(int(number))
        else:
            self.action_registry(chosen)

    def do_theme(self) -> None:
        """Choose a theme."""
        from gputop.widgets.dialog import MenuDialog, MenuItem  # noqa: PLC0415 - the first frame does without

        items = [
            MenuItem(name, theme.title, name, name == self.theme) for name, theme in sorted(self._themes.themes.items())
        ]
        self.push_screen(MenuDialog("Theme", items, ascii_only=self.ascii_only), self._chose_theme)

    def _chose_theme(self, name: str | None) -> None:
        if name is not None:
            self.theme = name

    def do_suspend_process(self) -> None:
        """Go to the shell; the shell's fg comes back."""
        self.action_suspend_process()


def run(app: GputopApp, *, mouse: bool) -> int:
    """Run the screen until it is left; return the exit code."""
    left_crop.install()
    # Decoding in threads else keeps the screen from its turn for 5 ms, several times for one key.
    sys.setswitchinterval(_SWITCH_S)
    app.run(mouse=mouse)
    return app.return_code or 0
