"""What /proc tells of a process, and when it must not be asked."""

from pathlib import Path

import pytest

from gputop.model.reading import Absent
from gputop.sources.nvml.marker import Marker
from gputop.sources.nvml.procfs import Processes
from tests.unit.nvml.rig import add_process


def people(root: Path) -> Processes:
    return Processes(root, "node-a", Marker(None))


def test_a_name_with_parentheses_is_no_trap(roots: tuple[Path, Path]) -> None:
    add_process(roots[0], 50, started=250)
    person = people(roots[0]).look_up(50)
    assert person is not None
    assert person.command == "python train.py"
    assert isinstance(person.started_at, float)


def test_a_process_without_a_command_line_has_its_name_in_brackets(roots: tuple[Path, Path]) -> None:
    add_process(roots[0], 50, command=b"")
    person = people(roots[0]).look_up(50)
    assert person is not None
    assert person.command == "[a (odd) name]"


def test_another_pid_namespace_names_nobody(roots: tuple[Path, Path]) -> None:
    """NVML tells the host's PIDs; here they may belong to somebody else."""
    add_process(roots[0], 50)
    (roots[0] / "self" / "ns").mkdir(parents=True)
    (roots[0] / "self" / "ns" / "pid").symlink_to("pid:[4026532999]")
    person = people(roots[0]).look_up(50)
    assert person is not None
    for told in (person.user, person.command, person.started_at):
        assert isinstance(told, Absent)
        assert told.code == "pid_namespace"
    assert person.answer.holder is None
    assert "PID namespace" in person.answer.reason


def test_the_host_s_pid_namespace_is_known_by_its_number(roots: tuple[Path, Path]) -> None:
    add_process(roots[0], 50)
    (roots[0] / "self" / "ns").mkdir(parents=True)
    (roots[0] / "self" / "ns" / "pid").symlink_to("pid:[4026531836]")
    person = people(roots[0]).look_up(50)
    assert person is not None
    assert person.command == "python train.py"


def test_a_reused_pid_is_another_process(roots: tuple[Path, Path]) -> None:
    add_process(roots[0], 50, started=100)
    known = people(roots[0])
    first = known.look_up(50)
    for path in (roots[0] / "50").iterdir():
        path.unlink()
    (roots[0] / "50").rmdir()
    assert known.look_up(50) is None
    add_process(roots[0], 50, command=b"other\0", started=900)
    second = known.look_up(50)
    assert first is not None
    assert second is not None
    assert (first.command, second.command) == ("python train.py", "other")


def test_hidden_processes_are_kept_without_a_name(roots: tuple[Path, Path]) -> None:
    """With hidepid, what is not in /proc may well live."""
    (roots[0] / "1").rmdir()
    person = people(roots[0]).look_up(50)
    assert person is not None
    assert isinstance(person.command, Absent)
    assert person.command.code == "denied"


def test_an_unknown_user_is_a_number(roots: tuple[Path, Path]) -> None:
    add_process(roots[0], 50, uid=3_999_999_999)
    person = people(roots[0]).look_up(50)
    assert person is not None
    assert person.user == "3999999999"


@pytest.mark.parametrize("missing", ["status", "cmdline", "cgroup"])
def test_one_file_that_cannot_be_read_costs_only_itself(roots: tuple[Path, Path], missing: str) -> None:
    folder = add_process(roots[0], 50, environ=b"NOMAD_ALLOC_ID=0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0\0")
    (folder / missing).unlink()
    person = people(roots[0]).look_up(50)
    assert person is not None
    told = {"status": person.user, "cmdline": person.command}
    for name, value in told.items():
        assert isinstance(value, Absent) is (name == missing)
    assert person.answer.holder is not None
    assert person.answer.holder.scheduler == "nomad"
