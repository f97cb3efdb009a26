"""Whose host, whose GPU, whose pod, and the real names of resources."""

import pytest

from gputop.sources.metrics.labels import Resolver, holder_of
from gputop.sources.metrics.resources import real_resource

OWN = {"pod": "dcgm-exporter-x7k2p", "container": "exporter", "namespace": "gpu-operator"}


def resolver(default: str = "") -> Resolver:
    return Resolver("", default, ("cluster",), ())


@pytest.mark.parametrize(
    ("labels", "host"),
    [
        ({"node": "n1", "Hostname": "other"}, "n1"),
        ({"kubernetes_node": "n1", "hostname": "x"}, "n1"),
        ({"Hostname": "GPU-A01.example.com."}, "gpu-a01.example.com"),
        ({"hostname": "n1"}, "n1"),
        ({"Hostname": "nvidia-dcgm-exporter-km55s", "instance": "10.0.0.5:9400"}, "10.0.0.5"),
        ({"Hostname": "localhost", "instance": "gpu-7:9400"}, "gpu-7"),
        ({"Hostname": "abc-1", "exported_pod": "x", "pod": "abc-1", "instance": "10.0.0.5:9400"}, "10.0.0.5"),
        ({"instance": "[fd00::5]:9400"}, "fd00::5"),
        ({"Hostname": "localhost", "instance": "localhost:9400"}, "fallback"),
        ({}, "fallback"),
    ],
)
def test_host_in_order(labels: dict[str, str], host: str) -> None:
    assert resolver("fallback").host(labels) == host


def test_the_node_of_the_exporters_pod_comes_before_its_address() -> None:
    r = resolver()
    labels = {**OWN, "Hostname": OWN["pod"], "instance": "10.0.0.5:9400", "UUID": "GPU-a0"}
    assert r.read(labels).host == "10.0.0.5"
    r.learn_pod({"pod": OWN["pod"], "node": "n7"})
    assert r.read(labels).host == "n7"


def test_a_site_may_name_its_own_host_label() -> None:
    r = Resolver("", "", ("cluster",), ("rack_host",))
    assert r.host({"rack_host": "r1", "node": "n1"}) == "r1"


@pytest.mark.parametrize(
    ("labels", "label"),
    [
        ({**OWN, "exported_pod": "rl-7", "exported_namespace": "lab"}, "lab/rl-7"),
        (OWN, None),
        ({"pod": "", "namespace": "", "container": ""}, None),
        ({"pod": "rl-9", "namespace": "lab", "container": "main"}, "lab/rl-9"),
        ({"pod_name": "t", "namespace_name": "lab"}, "lab/t"),
        ({"hpc_job": "4711"}, "4711"),
    ],
)
def test_holder(labels: dict[str, str], label: str | None) -> None:
    holder = holder_of(labels)
    assert (holder.label if holder else None) == label


def test_dra_and_mig_labels() -> None:
    read = resolver().read(
        {
            "UUID": "gpu-AA03",
            "GPU_I_ID": "7",
            "dra_claim_name": "claim-1",
            "dra_mig_device_uuid": "MIG-AAAA",
            "dra_mig_profile": "1g.10gb",
            "pod": "p",
            "namespace": "n",
        }
    )
    assert (read.uuid, read.instance, read.mig_uuid) == ("GPU-aa03", "7", "MIG-aaaa")
    assert ("mig_profile", "1g.10gb") in read.texts
    assert read.holder is not None
    assert "claim-1" in read.holder.how


def test_a_label_is_cleaned() -> None:
    holder = holder_of({"exported_pod": "a\x1b[31mb\n"})
    assert holder is not None
    assert holder.name == "a[31mb"


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("nvidia_com_gpu", "nvidia.com/gpu"),
        ("nvidia_com_gpu_shared", "nvidia.com/gpu.shared"),
        ("nvidia_com_mig_1g_5gb", "nvidia.com/mig-1g.5gb"),
        ("nvidia_com_mig_1g_10gb_me", "nvidia.com/mig-1g.10gb.me"),
        ("nvidia_com_mig_1c_3g_20gb", "nvidia.com/mig-1c.3g.20gb"),
        ("nvidia_com_mig_2g_10gb_shared", "nvidia.com/mig-2g.10gb.shared"),
        ("amd_com_gpu", "amd.com/gpu"),
        ("gpu_intel_com_i915", "gpu.intel.com/i915"),
        ("nvidia.com/gpu", "nvidia.com/gpu"),
        ("cpu", ""),
        ("ephemeral_storage", ""),
        ("rdma/hca", ""),
    ],
)
def test_resources(label: str, name: str) -> None:
    assert real_resource(label) == name
