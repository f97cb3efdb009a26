"""The kinds of file that a bundle may hold."""

from enum import StrEnum


class Kind(StrEnum):
    """What a file is, in words for people."""

    SMI_XML = "nvidia-smi -q -x"
    SMI_QUERY = "nvidia-smi -q"
    SMI_LIST = "nvidia-smi -L"
    SMI_ERROR = "an error of nvidia-smi"
    LSPCI = "lspci"
    EXPORTER = "exporter text"
    PROMETHEUS = "an answer of the Prometheus API"
    SMI_TABLE = "the table of nvidia-smi"
    SMI_CSV = "nvidia-smi --format=csv"
    SMI_DMON = "nvidia-smi dmon or pmon"
    SMI_TOPO = "nvidia-smi topo"
    SMI_NVLINK = "nvidia-smi nvlink"
    SMI_VGPU = "nvidia-smi vgpu"
    KUBERNETES_OBJECTS = "Kubernetes objects"
    KUBERNETES_TABLE = "a table or description of kubectl"
    NOMAD = "an answer of the Nomad API"
    KERNEL_LOG = "a kernel log"
    FABRIC_LOG = "a fabric manager log"
    PROMETHEUS_ERROR = "an error of the Prometheus API"
    HTML = "an HTML page"
    JSON = "JSON of another kind"
    XML = "XML of another kind"
    TEXT = "text of an unknown kind"
    BINARY = "binary data"
    EMPTY = "empty"
