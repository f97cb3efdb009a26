"""Spellings of cgroups, and what the environment adds."""

import pytest

from gputop.sources.nvml.holders import find

POD = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
POD_ = POD.replace("-", "_")
STATIC = "b1946ac92492d2347c6235b4d2611184"
ALLOC = "11111111-2222-3333-4444-555555555555"
CID = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "path",
    [
        f"/kubepods/burstable/pod{POD}/{CID}",
        f"/kubepods/besteffort/pod{POD}/{CID}",
        f"/kubepods/pod{POD}/{CID}",
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{POD_}.slice/cri-containerd-{CID}.scope",
        f"/kubepods.slice/kubepods-pod{POD_}.slice/crio-{CID}.scope",
        f"/kubepods.slice/kubepods-pod{POD_}.slice/crio-{CID}.scope/container",
        f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{POD_}.slice/docker-{CID}.scope",
        f"/system.slice/containerd.service/kubepods-burstable-pod{POD_}.slice:cri-containerd:{CID}",
        f"/docker/{'f' * 64}/kubelet/kubepods/burstable/pod{POD}/{CID}",
        f"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{POD_}.slice/cri-containerd-{CID}.scope",
    ],
)
def test_pods(path: str) -> None:
    answer = find(f"0::{path}\n", {}, "node-a")
    assert answer.holder is not None
    assert answer.holder.scheduler == "kubernetes"
    assert answer.holder.uid == POD
    assert answer.holder.container == CID[:12]
    assert answer.reason == "process cgroup"


def test_a_static_pod_s_uid_is_a_hash() -> None:
    answer = find(f"0::/kubepods/burstable/pod{STATIC}/{CID}\n", {}, "node-a")
    assert answer.holder is not None
    assert answer.holder.uid == STATIC


def test_lines_of_version_1_are_one_process() -> None:
    text = "\n".join(
        [
            f"12:cpuset:/kubepods/burstable/pod{POD}/{CID}",
            f"11:devices:/kubepods/burstable/pod{POD}/{CID}",
            "1:name=systemd:/",
        ]
    )
    answer = find(text, {}, "node-a")
    assert answer.holder is not None
    assert answer.holder.uid == POD


@pytest.mark.parametrize(("hostname", "name"), [("llama-ft-0", "llama-ft-0"), ("node-a", ""), ("node-a.example", "")])
def test_a_pod_is_named_by_its_host_name_unless_that_is_the_node_s(hostname: str, name: str) -> None:
    answer = find(f"0::/kubepods/pod{POD}/{CID}\n", {"HOSTNAME": hostname}, "node-a")
    assert answer.holder is not None
    assert answer.holder.name == name
    assert ("host name" in answer.reason) is bool(name)


@pytest.mark.parametrize(
    "path",
    [
        f"/nomad.slice/share.slice/{ALLOC}.train.scope",
        f"/nomad.slice/reserve.slice/{ALLOC}.train.scope",
        f"/nomad.slice/{ALLOC}.train.scope",
        f"/nomad/share/{ALLOC}.train",
        f"/nomad/{ALLOC}.train",
    ],
)
def test_nomad_tasks(path: str) -> None:
    environment = {"NOMAD_ALLOC_ID": ALLOC, "NOMAD_ALLOC_NAME": "etl.gpu[0]", "NOMAD_NAMESPACE": "ml"}
    answer = find(f"0::{path}\n", environment, "node-a")
    assert answer.holder is not None
    assert answer.holder.scheduler == "nomad"
    assert answer.holder.uid == ALLOC
    assert answer.holder.container == "train"
    assert answer.holder.label == "ml/etl.gpu[0]"


def test_a_nomad_task_in_docker_is_known_by_its_environment() -> None:
    environment = {"NOMAD_ALLOC_ID": ALLOC, "NOMAD_TASK_NAME": "train"}
    answer = find(f"0::/system.slice/docker-{CID}.scope\n", environment, "node-a")
    assert answer.holder is not None
    assert (answer.holder.scheduler, answer.holder.uid) == ("nomad", ALLOC)
    assert answer.reason == "process environment"


def test_an_allocation_id_that_is_none_is_not_believed() -> None:
    answer = find("0::/user.slice\n", {"NOMAD_ALLOC_ID": "../../x"}, "node-a")
    assert answer.holder is None


@pytest.mark.parametrize(
    ("path", "step"),
    [
        ("/slurm/uid_1000/job_77/step_0/task_0", "0"),
        ("/slurm_node1/uid_1000/job_77/step_batch", "batch"),
        ("/system.slice/slurmstepd.scope/job_77/step_extern/user/task_0", "extern"),
    ],
)
def test_slurm_jobs(path: str, step: str) -> None:
    answer = find(f"0::{path}\n", {"SLURM_JOB_ID": "77", "SLURM_JOB_NAME": "train"}, "node-a")
    assert answer.holder is not None
    assert (answer.holder.scheduler, answer.holder.uid, answer.holder.container) == ("slurm", "77", step)
    assert answer.holder.name == "train"


@pytest.mark.parametrize(
    "path",
    [
        f"/docker/{CID}",
        f"/system.slice/docker-{CID}.scope",
        f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{CID}.scope/container",
        f"/machine.slice/libpod-{CID}.scope",
    ],
)
def test_plain_containers(path: str) -> None:
    answer = find(f"0::{path}\n", {}, "node-a")
    assert answer.holder is not None
    assert (answer.holder.scheduler, answer.holder.uid) == ("container", CID)


def test_a_pod_comes_before_what_its_environment_says() -> None:
    answer = find(f"0::/kubepods/pod{POD}/{CID}\n", {"SLURM_JOB_ID": "5"}, "node-a")
    assert answer.holder is not None
    assert answer.holder.scheduler == "kubernetes"


@pytest.mark.parametrize(
    ("cgroup", "environment", "words"),
    [
        ("0::/user.slice/user-0.slice/session-1.scope\n", {}, "/user.slice/user-0.slice/session-1.scope"),
        ("0::/\n", None, "environment cannot be read"),
        (None, None, "Permission denied"),
        ("", {}, "none"),
    ],
)
def test_nobody_is_said_with_the_reason(cgroup: str | None, environment: dict[str, str] | None, words: str) -> None:
    answer = find(cgroup, environment, "node-a", "Permission denied" if cgroup is None else "")
    assert answer.holder is None
    assert words in answer.reason
