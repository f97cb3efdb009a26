"""The screen as a person meets it: rows, keys, sizes, and what is said when something is wrong."""

import random

import pytest

from gputop.keymap import ACTIONS
from gputop.model.facts import Fact, GpuFact, NodeFact, Presence, ProcessesFact, Roster
from gputop.model.identity import GpuRef, NodeRef
from gputop.model.process import GpuProcess
from gputop.model.reading import NOT_SUPPORTED
from gputop.model.workload import Holder
from tests.e2e.rig import Told, app, shows, text, until

SIZES = [(200, 50), (184, 39), (156, 42), (80, 24), (60, 16), (40, 10), (20, 3), (1, 1)]


def _ref(i: int, host: str = "gpu-a03") -> GpuRef:
    return GpuRef(
        host,
        uuid=f"GPU-{host[-1]}000000{i:x}-0000-0000-0000-000000000000",
        bus_id=f"00000000:{i + 1:02x}:00.0",
        index=i,
    )


def _roster(host: str, count: int) -> Roster:
    return Roster(NodeRef(host), tuple(_ref(i, host) for i in range(count)))


def _facts(count: int = 8, host: str = "gpu-a03", lost: int = -1) -> tuple[Fact, ...]:
    facts: list[Fact] = [NodeFact(NodeRef(host), {"driver_version": "570.86.15"})]
    for i in range(count):
        readings = {
            "utilization": 97.0 - i, "memory_used_mib": 73000.0, "memory_total_mib": 81559.0, "power_w": 690.0,
            "power_limit_w": 0.0 if i == 1 else 700.0, "temperature_c": 71.0, "sm_clock_mhz": 1755.0,
            "clock_event_reasons": 4.0, "model": "NVIDIA H100 80GB HBM3",
        }  # fmt: skip
        if i == 2:
            readings["utilization"] = NOT_SUPPORTED
        presence = Presence.LOST if i == lost else Presence.PRESENT
        facts.append(GpuFact(_ref(i, host), readings, presence, "GPU is lost" if i == lost else ""))
        holder = Holder("kubernetes", "ml", f"llama-ft-{i}", how="process cgroup")
        process = GpuProcess(
            4000 + i, "C", 73000.0, 96.0, 0.0, 0.0, "ann", "python train.py --cfg [bold]x", 1.0, holder
        )
        facts.append(ProcessesFact(_ref(i, host), (process,)))
    return tuple(facts)


async def test_one_node_opens_on_its_gpus_with_processes_below() -> None:
    async with app(Told(*_facts())).run_test(size=(80, 24)) as pilot:
        screen = await shows(pilot, "97%", "ml/llama-ft-0", "4000")
        assert "n/a" in screen
        assert "570.86.15" in screen


async def test_several_nodes_open_on_the_fleet() -> None:
    facts = (*_facts(host="gpu-a03"), *_facts(host="gpu-a04"))
    async with app(Told(*facts)).run_test(size=(80, 24)) as pilot:
        screen = await shows(pilot, "gpu-a03", "gpu-a04", "2 nodes 16 GPUs")
        assert "HEALTH" in screen


async def test_a_lost_gpu_keeps_its_row_and_the_others_go_on() -> None:
    source = Told(*_facts())
    async with app(source).run_test(size=(80, 24)) as pilot:
        await shows(pilot, "97%")
        source.queue.put_nowait(_facts(lost=3))
        screen = await shows(pilot, "LOST", "last 94%")
        assert "92%" in screen


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("count", [1, 8, 16])
async def test_every_size_and_count_of_gpus_is_drawn(size: tuple[int, int], count: int) -> None:
    async with app(Told(*_facts(count))).run_test(size=size) as pilot:
        await pilot.pause()
        for key in ("1", "2", "3", "4", "5", "2", "d", "escape", "m", "escape", "question_mark", "escape"):
            await pilot.press(key)
        await pilot.resize_terminal(80, 24)
        await shows(pilot, "GPU")


async def test_every_pane_answers_to_its_number() -> None:
    async with app(Told(*_facts())).run_test(size=(120, 30)) as pilot:
        await shows(pilot, "97%")
        for key, word in (("1", "HEALTH"), ("2", "HOLDER"), ("3", "RESVD"), ("4", "REMAP"), ("5", "STATE")):
            await pilot.press(key)
            await shows(pilot, word)


async def test_a_filter_narrows_while_typing_and_escape_gives_all_back() -> None:
    async with app(Told(*_facts())).run_test(size=(120, 40)) as pilot:
        await shows(pilot, "llama-ft-0", "llama-ft-7")
        await pilot.press("slash", *"llama-ft-3")
        await until(pilot, lambda s: s.count("97%") == 0 and "94%" in s, "narrowed to GPU 3")
        await pilot.press("enter", "escape")
        await shows(pilot, "97%")


async def test_a_bad_filter_says_why_and_filters_nothing() -> None:
    async with app(Told(*_facts())).run_test(size=(120, 40)) as pilot:
        await shows(pilot, "97%")
        await pilot.press("slash", "quotation_mark", "x")
        screen = await shows(pilot, "quote")
        assert "97%" in screen


async def test_pause_holds_the_screen_and_says_so() -> None:
    source = Told(*_facts())
    async with app(source).run_test(size=(80, 24)) as pilot:
        await shows(pilot, "97%")
        await pilot.press("p")
        await shows(pilot, "PAUSED")
        source.queue.put_nowait(_facts(lost=0))
        await pilot.pause(1.2)
        assert "LOST" not in text(pilot)
        await pilot.press("p")
        await shows(pilot, "LOST")


async def test_details_show_source_age_and_how_the_holder_is_known() -> None:
    async with app(Told(*_facts())).run_test(size=(120, 50)) as pilot:
        await shows(pilot, "97%")
        await pilot.press("d")
        screen = await shows(pilot, "process cgroup", "UUID")
        assert "[bold]x" in screen
        await pilot.press("escape")
        await shows(pilot, "HOLDER")


async def test_help_names_every_key_and_escape_leaves_it() -> None:
    async with app(Told(*_facts())).run_test(size=(100, 60)) as pilot:
        await shows(pilot, "97%")
        await pilot.press("question_mark")
        await shows(pilot, "heat map", "let go of the NVML")
        await pilot.press("escape")
        await shows(pilot, "HOLDER")


async def test_the_palette_carries_out_what_was_chosen() -> None:
    async with app(Told(*_facts())).run_test(size=(100, 40)) as pilot:
        await shows(pilot, "97%")
        await pilot.press("colon", *"pane errors", "enter")
        await shows(pilot, "REMAP")


async def test_release_lets_go_and_takes_up_again() -> None:
    screen = app(Told(*_facts()))
    supervisor = screen.session.supervisor
    async with screen.run_test(size=(100, 40)) as pilot:
        await shows(pilot, "97%")
        await pilot.press("R")
        await until(pilot, lambda _: supervisor.released("nvml"), "released")
        await pilot.press("R")
        await until(pilot, lambda _: not supervisor.released("nvml"), "taken up")


async def test_ascii_draws_nothing_but_ascii() -> None:
    async with app(Told(*_facts()), unicode=False).run_test(size=(120, 30)) as pilot:
        for key in ("1", "2", "3", "4", "5", "m"):
            await pilot.press(key)
            await pilot.pause()
            odd = {c for c in text(pilot) if ord(c) > 126}
            assert not odd, f"pane {key}: {odd}"


async def test_an_unknown_theme_is_said_and_costs_nothing() -> None:
    async with app(Told(*_facts()), theme="no-such").run_test(size=(100, 30)) as pilot:
        await shows(pilot, "no theme no-such")


async def test_a_second_node_brings_its_column_without_shifting_the_others() -> None:
    source = Told(*_facts())
    async with app(source, pane="gpus").run_test(size=(120, 40)) as pilot:
        await shows(pilot, "97%")
        source.queue.put_nowait(_facts(host="gpu-a04"))
        screen = await shows(pilot, "NODE", "gpu-a04")
        heading = next(line for line in screen.splitlines() if "NODE" in line and "UTIL" in line)
        row = next(line for line in screen.splitlines() if "gpu-a03" in line and "97%" in line)
        assert heading.index("UTIL") <= row.index("97%") <= heading.index("UTIL") + 4


async def test_a_filter_narrows_the_processes_with_their_gpus() -> None:
    async with app(Told(*_facts())).run_test(size=(120, 40)) as pilot:
        await shows(pilot, "4000", "4007")
        await pilot.press("slash", *"pid:4003", "enter")
        screen = await until(pilot, lambda s: "4007" not in s, "narrowed to one process")
        assert "4003" in screen
        assert "94%" in screen


async def test_details_without_a_prometheus_say_so_and_keep_the_minutes() -> None:
    async with app(Told(*_facts())).run_test(size=(80, 24)) as pilot:
        await shows(pilot, "97%")
        await pilot.press("d")
        await shows(pilot, "[minutes]", "util 97%", "s span")
        await pilot.press("s")
        screen = await shows(pilot, "1 h: no Prometheus is configured")
        assert "util 97%" in screen
        await pilot.press("s", "s", "s")
        await shows(pilot, "[minutes]", "from memory")


async def test_details_ask_for_every_reading_and_no_longer_once_they_are_left() -> None:
    screen = app(Told(*_facts()))
    board = screen.session.board
    async with screen.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "97%")
        before = board.current
        assert before.quantities is not None
        await pilot.press("d")
        await until(pilot, lambda _: board.current.quantities is None, "everything asked for")
        assert board.current.hosts == {"gpu-a03"}
        await pilot.press("minus", "escape")
        await until(pilot, lambda _: board.current.quantities == before.quantities, "less asked for again")
        assert board.current.interval_s == 2.0
        await pilot.press("d")
        await until(pilot, lambda _: board.current.quantities is None, "everything asked for")
        await pilot.press("5")
        await shows(pilot, "STATE")
        await until(pilot, lambda _: board.current.quantities == {"utilization"}, "what the sources pane needs")


async def test_the_footer_names_only_keys_that_do_something_there() -> None:
    async with app(Told(*_facts())).run_test(size=(120, 30)) as pilot:
        await shows(pilot, "97%", "/ filter", "t group", "q quit")
        await pilot.press("d")
        screen = await shows(pilot, "s span", "y copy")
        assert "/ filter" not in screen.splitlines()[-1]
        await pilot.press("escape", "5")
        screen = await until(pilot, lambda s: "STATE" in s and "t group" not in s, "the footer of Sources")
        assert "> sort" not in screen


async def test_marks_and_cursor_stay_with_their_gpus_when_the_order_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = app(Told(*_facts()))
    copied: list[str] = []
    monkeypatch.setattr(screen, "copy_to_clipboard", copied.append)
    async with screen.run_test(size=(120, 30)) as pilot:
        await shows(pilot, "97%")
        await pilot.press("j", "space", "j", "I", "greater_than_sign")
        shown = await shows(pilot, "▸", "✓")
        rows = {line[0]: line for line in shown.splitlines() if line[:1] in {"▸", "✓"} and "llama" in line}
        assert "llama-ft-1" in rows["✓"]
        await pilot.press("y")
        await until(pilot, lambda _: bool(copied), "copied")
        assert "llama-ft-1" in copied[0]
        assert "llama-ft-2" not in copied[0]


@pytest.mark.parametrize("seed", range(4))
async def test_any_keys_at_any_size_leave_a_screen_that_goes_on(seed: int) -> None:
    chance = random.Random(seed)
    keys = [key for action in ACTIONS for key in action.keys if action.id not in {"quit", "suspend_process"}]
    keys += [*"12345", "x", "enter", "escape", "backspace"]
    source = Told(*_facts(), *_facts(2, "gpu-a04"), _roster("gpu-a03", 8), _roster("gpu-a04", 2))
    async with app(source).run_test(size=(80, 24)) as pilot:
        await shows(pilot, "gpu-a04")
        for number in range(120):
            await pilot.press(chance.choice(keys))
            if number % 10 == 0:
                await pilot.resize_terminal(chance.randint(1, 220), chance.randint(1, 60))
                await source.queue.put(_facts(chance.randint(0, 8), lost=chance.randint(-1, 7)))
        await pilot.resize_terminal(120, 40)
        for _ in range(6):
            await pilot.press("escape")
        await pilot.press("1", "escape", "escape")
        await shows(pilot, "1 Fleet", "gpu-a04", "q quit")


async def test_help_in_ascii_is_ascii() -> None:
    async with app(Told(*_facts()), unicode=False).run_test(size=(100, 60)) as pilot:
        await pilot.press("question_mark")
        screen = await shows(pilot, "next row")
        assert screen.isascii()
