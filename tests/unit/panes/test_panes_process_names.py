"""The Processes pane names a workload as fully as any source does."""

import pytest

from gputop.fleet import Fleet
from gputop.model.facts import HoldersFact, ProcessesFact, WorkloadFact
from gputop.model.process import GpuProcess
from gputop.model.reading import NOT_ASKED
from gputop.model.workload import Holder, Workload
from gputop.panes.processes import ProcessesPane
from tests.unit.panes.look import NOW, NVML, PROMETHEUS, busy_node, context, ref, row, tell

HOST = "gpu-a01"
UID = "5f1c2b1e-0000-4000-8000-0123456789ab"
POD = WorkloadFact(Workload("", "kubernetes", "research", "llm-0", UID, HOST, "Running", ()))
LABEL = HoldersFact(ref(HOST, 0), (Holder("kubernetes", "research", "llm-0", how="exporter label"),))


@pytest.mark.parametrize(
    ("own", "other"),
    [
        (Holder("kubernetes", name="llm-0", uid=UID), POD),
        (Holder("kubernetes", uid=UID), POD),
        (Holder("kubernetes", name="llm-0", uid=UID), LABEL),
    ],
    ids=["uid-and-name", "uid-alone", "exporter-label"],
)
def test_a_process_shows_the_namespace_of_its_pod(own: Holder, other: WorkloadFact | HoldersFact) -> None:
    fleet, no = Fleet(), NOT_ASKED
    busy_node(fleet, HOST, 0)
    process = GpuProcess(4000, "C", 100.0, no, no, no, "root", "python", no, own, "process cgroup")
    tell(fleet, NVML, NOW, ProcessesFact(ref(HOST, 0), (process,)))
    tell(fleet, PROMETHEUS, NOW, other, stale_after_s=60.0)
    shown, found = ProcessesPane(), []
    for words in ("", "holder:research/llm", "holder:other"):
        at = context(fleet, width=120, filter=words)
        found.append([row(shown, at, key, 120) for key in shown.order(at)])
    (line,) = found[0]
    assert "research/llm-0" in line
    assert found[1:] == [[line], []]
