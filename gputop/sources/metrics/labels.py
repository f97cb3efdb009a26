"""Labels: which GPU of which host a sample is of, and who its pod labels name.

Neither `gpu`, `instance` nor the pod is an identity. A host is told by what relabelling wrote, else by the
exporter's own label unless that is the name of the exporter's pod (before NODE_NAME was used:
NVIDIA/dcgm-exporter#78) or "localhost" (a remote host engine: #572), else by the scraped address. With
`honorLabels: false` the plain pod labels are the exporter's own and the workload's are `exported_*`
(#27, #85, #363).
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from gputop.model.identity import (
    instance_of_old_mig_uuid,
    is_address,
    normal_bus_id,
    normal_host,
    normal_mig_uuid,
    normal_uuid,
)
from gputop.model.text import clean, is_whole
from gputop.model.workload import Holder

NODE_LABELS: Final = ("node", "kubernetes_node", "k8s_node", "nodename", "node_name", "exported_node")
_HOST_LABELS: Final = ("Hostname", "hostname", "exported_hostname", "host")
_UUID_LABELS: Final = ("UUID", "uuid", "gpu_uuid", "GPU_UUID", "accelerator_id")
_MIG_LABELS: Final = ("dra_mig_device_uuid", "mig_uuid", "UUID", "uuid")
_BUS_LABELS: Final = ("pci_bus_id", "pcie_bus_id", "PCIE_BUS_ID")
_INDEX_LABELS: Final = ("gpu", "index", "gpu_id", "minor_number", "accelerator_id", "device")
_MODEL_LABELS: Final = ("modelName", "model_name", "devicename", "card_model", "card_series", "name")
_DRIVER_LABELS: Final = (
    "DCGM_FI_DRIVER_VERSION",
    "DCGM_FI_SYSTEM_DRIVER_VERSION",
    "driver_version",
)
_INSTANCE_LABELS: Final = ("GPU_I_ID", "gpu_i_id", "gpu_instance_id")
_PROFILE_LABELS: Final = ("GPU_I_PROFILE", "gpu_i_profile", "dra_mig_profile", "profile")
ROW_LABELS: Final = tuple(
    dict.fromkeys(
        (
            *("instance", "cluster", *NODE_LABELS, *_HOST_LABELS, *_UUID_LABELS, *_MIG_LABELS, *_BUS_LABELS),
            *(*_INDEX_LABELS, *_INSTANCE_LABELS, *_PROFILE_LABELS, "nvlink", "gpu_partition_id"),
            *("xid", "err_code", "err_msg", "window_size_in_ms", "clock_event", "clock_type"),
            *("health_watch", "health_error_code", "pid", "process_name", "username", "command"),
        )
    )
)
"""Labels that decide where a number belongs. A server that reduces series has to keep them all: without
`nvlink` it would take the busiest link for the GPU, without `accelerator_id` one GPU for the whole node. Those
of workloads and versions are not among them: they change while the GPU stays."""
_TEXT_LABELS: Final = (
    ("serial", ("DCGM_FI_DEV_SERIAL", "DCGM_FI_DEV_BOARD_SERIAL", "serial", "serial_number")),
    ("brand", ("DCGM_FI_DEV_BRAND", "brand")),
    ("vbios_version", ("DCGM_FI_DEV_VBIOS_VERSION", "vbios_version")),
    ("inforom_version", ("DCGM_FI_DEV_INFOROM_IMAGE_VER",)),
)
_NODE_TEXT_LABELS: Final = (
    ("driver_version", _DRIVER_LABELS),
    ("cuda_version", ("DCGM_FI_CUDA_DRIVER_VERSION", "cuda_version")),
    ("nvml_version", ("DCGM_FI_NVML_VERSION",)),
)
# Pod, namespace, container: the workload's where the scrape kept the exporter's labels apart.
_EXPORTED: Final = ("exported_pod", "exported_namespace", "exported_container")
_PLAIN: Final = (
    (("pod",), ("namespace",), ("container",)),
    # dcgm-exporter 1.x, and Google's metrics.
    (("pod_name",), ("pod_namespace", "namespace_name"), ("container_name",)),
)
_EXPORTER_NAME: Final = re.compile(r"(?:^|[-_.])(?:dcgm|nvidia|gpu|amd|nvitop|metrics)[\w.-]*exporter|^exporter-")
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0", "localhost.localdomain"})
_DIGITS: Final = re.compile(r"(?:nvidia|gpu|card)?(\d{1,4})", re.IGNORECASE)
_NO_TEXT: Final = frozenset({"", "[n/a]", "n/a", "unknown", "none"})


class Labels(Struct, frozen=True, gc=False):
    """What the labels of a sample say.

    Attributes:
        host: Host, "" if none is told.
        cluster: Cluster, "" if none is told.
        uuid: Board, `normal_uuid`.
        bus_id: Board, `normal_bus_id`.
        index: Index, -1 if not told.
        instance: GPU instance id of a MIG instance.
        mig_uuid: UUID of a MIG device.
        exporter: What tells one exporter from another: the scraped address, else the host.
        holder: The workload, if they name one.
        texts: Texts of the GPU by quantity.
        node_texts: Texts of the node by quantity.
        link: NVLink of the GPU, "" for the GPU as a whole.
        partition: It is a further partition of an AMD board, which carries no board sensors.
    """

    host: str
    cluster: str
    uuid: str
    bus_id: str
    index: int
    instance: str
    mig_uuid: str
    exporter: str
    holder: Holder | None
    texts: tuple[tuple[str, str], ...]
    node_texts: tuple[tuple[str, str], ...]
    link: str
    partition: bool

    @property
    def names_gpu(self) -> bool:
        """Whether they name a GPU at all."""
        return bool(self.uuid or self.bus_id or self.index >= 0)


def first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    """Return the first label of `names` that is there and not empty, cleaned."""
    for name in names:
        value = labels.get(name, "").strip()
        if value:
            return clean(value)
    return ""


def is_exporter_name(name: str) -> bool:
    """Whether a pod, container or host name is that of a GPU exporter."""
    return bool(_EXPORTER_NAME.search(name.lower()))


def holder_of(labels: Mapping[str, str]) -> Holder | None:
    """Return the workload that labels name, or None; never the exporter's own pod."""
    claim = first(labels, ("dra_claim_name",))
    how = f"exporter label (DRA claim {claim})" if claim else "exporter label"
    uid = first(labels, ("exported_pod_uid", "pod_uid"))
    pod, namespace, container = (first(labels, (name,)) for name in _EXPORTED)
    if pod:
        return Holder("kubernetes", namespace, pod, container, uid, how)
    for names in _PLAIN:
        pod, namespace, container = (first(labels, name) for name in names)
        if pod and not is_exporter_name(pod) and not is_exporter_name(container):
            return Holder("kubernetes", namespace, pod, container, uid, how)
    job = first(labels, ("hpc_job", "job_id"))
    return Holder("slurm", "", job, "", job, how) if job else None


class Resolver:
    """Reads labels, each set of labels once.

    Args:
        cluster: Cluster where no label tells one.
        default_host: Host where no label tells one.
        cluster_labels: Labels that tell the cluster.
        host_labels: Labels that tell the host, before the usual ones.
    """

    _KEPT: Final = 200_000

    def __init__(
        self, cluster: str, default_host: str, cluster_labels: tuple[str, ...], host_labels: tuple[str, ...]
    ) -> None:
        self._cluster = cluster
        self._default_host = default_host
        self._cluster_labels = cluster_labels
        self._host_labels = (*host_labels, *NODE_LABELS)
        self._seen: dict[tuple[tuple[str, str], ...], Labels] = {}
        self._node_of_pod: dict[str, str] = {}

    def learn_pod(self, labels: Mapping[str, str]) -> None:
        """Remember on which node an exporter's pod runs (a series of kube_pod_info)."""
        pod = first(labels, ("exported_pod", "pod"))
        node = first(labels, ("exported_node", "node"))
        if pod and node and is_exporter_name(pod) and self._node_of_pod.get(pod) != node:
            self._node_of_pod[pod] = node
            self._seen.clear()

    def cluster(self, labels: Mapping[str, str]) -> str:
        """Return the cluster that labels tell, else the default."""
        return first(labels, self._cluster_labels) or self._cluster

    def host(self, labels: Mapping[str, str]) -> str:
        """Return the host that labels tell, in the order of the module's text; "" if none."""
        node = first(labels, self._host_labels)
        if node:
            return normal_host(node)
        own_pod = first(labels, ("pod",)) if "exported_pod" in labels or self._own(labels) else ""
        told = normal_host(first(labels, _HOST_LABELS))
        if told and told not in _LOCAL and told != own_pod and not is_exporter_name(told):
            return told
        node = self._node_of_pod.get(own_pod, "") or self._node_of_pod.get(told, "")
        if node:
            return normal_host(node)
        scraped = normal_host(first(labels, ("instance",)))
        if scraped and scraped not in _LOCAL:
            return scraped
        return self._default_host or (told if told not in _LOCAL else "")

    @staticmethod
    def _own(labels: Mapping[str, str]) -> bool:
        return is_exporter_name(labels.get("pod", "")) or is_exporter_name(labels.get("container", ""))

    def read(self, labels: Mapping[str, str]) -> Labels:
        """Return what a set of labels says."""
        key = tuple(labels.items())
        known = self._seen.get(key)
        if known is None:
            if len(self._seen) >= self._KEPT:
                self._seen.clear()
            known = self._seen[key] = self._read(labels)
        return known

    def _read(self, labels: Mapping[str, str]) -> Labels:
        host = self.host(labels)
        uuid = next((u for u in (normal_uuid(labels.get(n, "")) for n in _UUID_LABELS) if u), "")
        mig_uuid = next((u for u in (normal_mig_uuid(labels.get(n, "")) for n in _MIG_LABELS) if u), "")
        instance = first(labels, _INSTANCE_LABELS)
        if not instance:
            instance = next((i for i in (instance_of_old_mig_uuid(labels.get(n, "")) for n in _MIG_LABELS) if i), "")
        bus_id = next((b for b in (normal_bus_id(labels.get(n, "")) for n in _BUS_LABELS) if b), "")
        texts = [(q, t) for q, names in _TEXT_LABELS if (t := _text(labels, names))]
        model = _text(labels, _MODEL_LABELS)
        profile = first(labels, _PROFILE_LABELS)
        is_mig = bool(instance or mig_uuid)
        return Labels(
            host=host,
            cluster=self.cluster(labels),
            uuid=uuid,
            bus_id=bus_id,
            index=_index(labels),
            instance=instance,
            mig_uuid=mig_uuid,
            exporter=first(labels, ("instance",)) or host,
            holder=holder_of(labels),
            texts=(
                *texts,
                *((("model", model),) if model else ()),
                *((("mig_profile", profile),) if profile and is_mig else ()),
            ),
            node_texts=tuple((q, t) for q, names in _NODE_TEXT_LABELS if (t := _text(labels, names))),
            link=first(labels, ("nvlink",)),
            partition=first(labels, ("gpu_partition_id",)) not in {"", "0"},
        )


def _text(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    value = first(labels, names)
    # Serial numbers of boards that have none are printed as zeros.
    return "" if value.lower() in _NO_TEXT or (is_whole(value) and int(value) == 0) else value


def _index(labels: Mapping[str, str]) -> int:
    for name in _INDEX_LABELS:
        match = _DIGITS.fullmatch(labels.get(name, "").strip())
        if match is not None:
            return int(match.group(1))
    return -1


def is_local(host: str) -> bool:
    """Whether a host name means the machine that says it, so that it names nobody for others."""
    host = normal_host(host)
    return host in _LOCAL or (is_address(host) and host.startswith("127."))
