"""Who holds a GPU: one workload under one name, however many sources tell it and however little."""

from gputop.fleet import Fleet
from gputop.fleet.holding import holders, process_holder
from gputop.model.facts import GpuFact, HoldersFact, ProcessesFact, WorkloadFact, WorkloadsRoster
from gputop.model.process import GpuProcess
from gputop.model.reading import NOT_ASKED
from gputop.model.workload import Holder, Workload
from tests.unit.fleet.build import EXPORTER, NVML, PROMETHEUS, gpu, ref, roster, rows, tell

UID = "5f1c2b1e-0000-4000-8000-0123456789ab"
BY_CGROUP = Holder("kubernetes", uid=UID, how="process cgroup")


def _process(holder: Holder | None, pid: int = 7) -> GpuProcess:
    no = NOT_ASKED
    return GpuProcess(pid, "C", 100.0, no, no, no, "root", "python", no, holder, "process cgroup")


def _pod(cluster: str = "", uid: str = UID, name: str = "llm-0", scheduler: str = "kubernetes") -> WorkloadFact:
    return WorkloadFact(Workload(cluster, scheduler, "research", name, uid, "h", "Running", ()))


def _runs(fleet: Fleet, holder: Holder = BY_CGROUP, at: float = 10.0) -> None:
    fact = ProcessesFact(ref("h", 0), (_process(holder),))
    tell(fleet, NVML, at, gpu("h", 0), fact, HoldersFact(ref("h", 0), (holder,)), roster("h", 0))


def _named(fleet: Fleet) -> list[str]:
    (row,) = rows(fleet)
    return [h.label for h, _ in holders(row)]


def test_a_pod_known_by_uid_gets_its_name_from_the_workload_told_before() -> None:
    fleet = Fleet()
    tell(fleet, PROMETHEUS, 9.0, _pod())
    _runs(fleet)
    assert _named(fleet) == ["research/llm-0"]


def test_a_pod_known_by_uid_gets_its_name_once_the_workload_is_told() -> None:
    fleet = Fleet()
    _runs(fleet)
    assert _named(fleet) == [f"kubernetes {UID[:13]}"]
    fleet.take_changes()
    tell(fleet, PROMETHEUS, 11.0, _pod())
    (row,) = rows(fleet)
    assert _named(fleet) == ["research/llm-0"]
    assert row.key in fleet.take_changes().gpus
    (process,) = row.processes[0].processes  # type: ignore[misc]  # they are told
    assert process.holder is not None
    assert process.holder.label == "research/llm-0"
    assert process.holder.how.startswith("process cgroup")
    assert "prometheus" in process.holder.how


def test_a_row_that_is_renamed_while_it_waits_is_still_named() -> None:
    fleet = Fleet()
    _runs(fleet)
    tell(fleet, PROMETHEUS, 11.0, GpuFact(ref("h", 0, "prod"), {}), _pod("prod"))
    (row,) = rows(fleet)
    assert row.key.cluster == "prod"
    assert _named(fleet) == ["research/llm-0"]


def test_the_uid_counts_where_the_host_name_says_another_pod() -> None:
    fleet = Fleet()
    tell(fleet, PROMETHEUS, 9.0, _pod(name="a-name-too-long-for-a-host-name"))
    _runs(fleet, Holder("kubernetes", name="a-name-too-long", uid=UID, how="process cgroup"))
    assert _named(fleet) == ["research/a-name-too-long-for-a-host-name"]


def test_the_same_id_elsewhere_is_not_joined() -> None:
    fleet = Fleet()
    tell(fleet, PROMETHEUS, 9.0, _pod("one"), _pod("two"), _pod(uid="other", scheduler="nomad"))
    _runs(fleet)
    assert _named(fleet) == [f"kubernetes {UID[:13]}"], "it may be either cluster's"
    _runs(fleet, Holder("kubernetes", uid="other"), 11.0)
    assert _named(fleet) == ["kubernetes other"], "another scheduler's id"


def test_a_workload_that_is_gone_names_nobody_any_more() -> None:
    fleet = Fleet()
    tell(fleet, PROMETHEUS, 9.0, _pod())
    tell(fleet, PROMETHEUS, 10.0, WorkloadsRoster("", frozenset()))
    _runs(fleet, at=11.0)
    assert _named(fleet) == [f"kubernetes {UID[:13]}"]


def test_a_process_without_its_namespace_is_named_by_the_exporters_label() -> None:
    fleet = Fleet()
    _runs(fleet, Holder("kubernetes", name="llm-0", uid=UID, how="process cgroup"))
    label = Holder("kubernetes", "research", "llm-0", how="exporter label")
    tell(fleet, EXPORTER, 10.0, HoldersFact(ref("h", 0), (label,)))
    (row,) = rows(fleet)
    ((holder, sources),) = holders(row)
    assert (holder.label, holder.uid, sources) == ("research/llm-0", UID, "nvml and exporter")
    found = process_holder(row, _process(Holder("kubernetes", name="llm-0", uid=UID)))
    assert found is not None
    assert found.label == "research/llm-0"
