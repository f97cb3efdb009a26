"""Who a sample is of: GPU, host, cluster and workload from its labels.

The same label means different things by exporter version and scrape configuration (dcgm-exporter PRs #129,
#655; issues #27, #78, #85, #363, #572), so each is taken only where it can mean that.
"""

import re
from collections.abc import Mapping
from typing import Final

from gputop.model.identity import GpuRef, is_address, normal_bus_id, normal_host, normal_mig_uuid, normal_uuid
from gputop.model.text import clean
from gputop.model.workload import Holder

_NODE_LABELS: Final = ("node", "kubernetes_node", "nodename", "k8s_node", "node_name")
_HOST_LABELS: Final = ("Hostname", "hostname", "host")
_UUID_LABELS: Final = ("UUID", "uuid", "gpu_uuid", "accelerator_id")
_BUS_LABELS: Final = ("pci_bus_id", "bus_id", "pci_bus")
_INDEX_LABELS: Final = ("gpu", "index", "gpu_id", "accelerator_id")
_MODEL_LABELS: Final = ("modelName", "model_name", "name", "devicename", "card_series", "model")
_DRIVER_LABELS: Final = ("DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION", "driver_version")
_EXPORTER_POD: Final = re.compile(r"(dcgm|gpu|nvidia|nvitop|metrics)[a-z0-9-]*exporter", re.IGNORECASE)
_NOBODY: Final = frozenset({"", "localhost", "127.0.0.1", "::1"})


def first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    """Return the first of these labels that is not empty, "" if none is."""
    for name in names:
        value = labels.get(name, "")
        if value:
            return value
    return ""


def is_exporter_pod(pod: str) -> bool:
    """Whether a pod's name is an exporter's own: with `honorLabels: false` the plain label is the exporter's."""
    return bool(_EXPORTER_POD.search(pod))


def host_of(labels: Mapping[str, str], pods: Mapping[str, str], default: str) -> str:
    """Return the host of a sample.

    Args:
        labels: Its labels.
        pods: Node by name of pod, from kube_pod_info; it tells the node of an exporter whose Hostname is its
            own pod's name.
        default: Host of samples that name none.
    """
    named = first(labels, _NODE_LABELS)
    if named:
        return clean(named, 253)
    own_pod = labels.get("pod", "")
    told = first(labels, _HOST_LABELS)
    if normal_host(told) not in _NOBODY:
        if not is_exporter_pod(told) and told != own_pod:
            return clean(told, 253)
        if told in pods:
            return clean(pods[told], 253)
    if own_pod in pods and is_exporter_pod(own_pod):
        return clean(pods[own_pod], 253)
    instance = normal_host(labels.get("instance", ""))
    if instance and instance not in _NOBODY:
        return clean(instance, 253)
    return clean(told if told and told not in _NOBODY else default or instance or told, 253)


def ref_of(labels: Mapping[str, str], host: str, cluster: str) -> GpuRef:
    """Return how a sample names its GPU or MIG instance; an unnamed one has neither UUID, bus id nor index."""
    uuid_text = first(labels, _UUID_LABELS)
    mig_uuid = normal_mig_uuid(uuid_text) or normal_mig_uuid(labels.get("dra_mig_device_uuid", ""))
    index = first(labels, _INDEX_LABELS)
    device = labels.get("device", "")
    if not index.isdigit() and device.startswith("nvidia") and device[6:].isdigit():
        index = device[6:]
    return GpuRef(
        host=host,
        cluster=cluster,
        uuid=normal_uuid(uuid_text) or _bare(uuid_text),
        bus_id=normal_bus_id(first(labels, _BUS_LABELS)),
        index=int(index) if index.isdigit() else -1,
        instance=labels.get("GPU_I_ID", "") or labels.get("gpu_partition_id", "").removeprefix("0"),
        mig_uuid=mig_uuid if mig_uuid != "MIG-" else "",
    )


def _bare(text: str) -> str:
    """Return a UUID without its prefix (nvidia_gpu_exporter) as NVML writes it."""
    lowered = text.strip().lower()
    return f"GPU-{lowered}" if len(lowered) >= 8 and "-" in lowered and not lowered.startswith("mig-") else ""


def is_named(ref: GpuRef) -> bool:
    """Whether a reference names a GPU at all."""
    return bool(ref.uuid or ref.bus_id or ref.index >= 0 or ref.mig_uuid)


def model_of(labels: Mapping[str, str]) -> str:
    """Return the model, "" if no label tells."""
    return clean(first(labels, _MODEL_LABELS), 80)


def driver_of(labels: Mapping[str, str]) -> str:
    """Return the driver version, "" if no label tells."""
    return clean(first(labels, _DRIVER_LABELS), 40)


def holder_of(labels: Mapping[str, str]) -> Holder | None:
    """Return the workload that a sample is labelled with, None if it names none but perhaps the exporter.

    `exported_pod` is the workload where the scrape keeps its own labels; then the plain one is the exporter's.
    """
    if "exported_pod" in labels or "exported_namespace" in labels:
        pod, namespace, container = (labels.get(f"exported_{n}", "") for n in ("pod", "namespace", "container"))
    else:
        pod = labels.get("pod", "") or labels.get("pod_name", "")
        namespace = labels.get("namespace", "") or labels.get("pod_namespace", "") or labels.get("namespace_name", "")
        container = labels.get("container", "") or labels.get("container_name", "")
        if is_exporter_pod(pod) or is_exporter_pod(container) or "exporter" in container:
            return None
    if not pod:
        job = labels.get("hpc_job", "")
        return Holder("slurm", name=clean(job, 80), how="exporter label hpc_job") if job else None
    uid = labels.get("pod_uid", "")
    return Holder(
        "kubernetes", clean(namespace, 80), clean(pod, 253), clean(container, 80), clean(uid, 64), "exporter label"
    )


def looks_like_address(host: str) -> bool:
    """Whether a host is only an address, as when nothing but the scrape's instance told it."""
    return is_address(normal_host(host))
