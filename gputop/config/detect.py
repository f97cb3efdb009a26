"""What there is to read on this machine, and how that is known.

Nothing here waits: the only addresses asked are on the loopback, each for at most half a second. What this
version cannot read yet is found and named all the same.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

_PROBE_S: Final = 0.5
_PROBE_BYTES: Final = 65536
_NVIDIA_VENDOR: Final = "0x10de"
_DISPLAY_CLASSES: Final = ("0x0300", "0x0302")
_LIBRARIES: Final = (
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
    "/usr/lib/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
    "/run/opengl-driver/lib/libnvidia-ml.so.1",
)
_LOCAL_PROMETHEUS: Final = "http://127.0.0.1:9090"
_LOCAL_EXPORTERS: Final = (
    ("http://127.0.0.1:9400/metrics", b"DCGM_FI_"),
    ("http://127.0.0.1:9835/metrics", b"nvidia_smi_"),
)


class Found(Struct, frozen=True):
    """Something to read.

    Attributes:
        kind: "nvml", "prometheus", "exporter", "kubernetes" or "nomad".
        target: Address or file.
        how: How it was found.
        read: Whether this version reads it.
    """

    kind: str
    target: str
    how: str
    read: bool = True


def probe(url: str) -> bytes:
    """Return the beginning of what a loopback address answers; empty when it does not, in half a second."""
    # Proxies are left out: a probe of the own machine must not leave it.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_PROBE_S) as answer:
            return bytes(answer.read(_PROBE_BYTES))
    except (OSError, urllib.error.URLError, ValueError):
        return b""


class Surroundings(Struct, frozen=True):
    """Everything detection looks at, so that a test can put another machine in its place.

    Attributes:
        env: The environment.
        root: Root of the file system.
        probe: Asks a loopback address.
    """

    env: Mapping[str, str]
    root: Path = Path("/")
    probe: Callable[[str], bytes] = probe

    def has(self, path: str) -> bool:
        """Whether a file or folder is there."""
        return (self.root / path.lstrip("/")).exists()

    def text(self, path: Path) -> str:
        """Return a small file's text, or "" if it cannot be read."""
        try:
            return path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return ""


def detect_nvml(around: Surroundings) -> Found | None:
    """Return how one can tell that there is an NVIDIA GPU here, or None if nothing says so."""
    if around.has("/proc/driver/nvidia/version"):
        return Found("nvml", "libnvidia-ml.so.1", "/proc/driver/nvidia/version: the driver is loaded")
    for library in _LIBRARIES:
        if around.has(library):
            return Found("nvml", "libnvidia-ml.so.1", f"{library} is installed")
    for device in sorted((around.root / "sys/bus/pci/devices").glob("*")):
        if around.text(device / "vendor") == _NVIDIA_VENDOR:
            kind = around.text(device / "class")
            if kind.startswith(_DISPLAY_CLASSES):
                return Found("nvml", "libnvidia-ml.so.1", f"PCI device {device.name} is an NVIDIA GPU")
    return None


def detect(around: Surroundings, *, network: bool = True) -> tuple[Found, ...]:
    """Return what there is to read.

    Args:
        around: Where to look.
        network: Ask loopback addresses too.
    """
    found = [detect_nvml(around), *(_by_network(around) if network else ()), _kubernetes(around)]
    nomad = around.env.get("NOMAD_ADDR")
    if nomad:
        found.append(Found("nomad", nomad, "NOMAD_ADDR", read=False))
    return tuple(f for f in found if f is not None)


def _by_network(around: Surroundings) -> list[Found]:
    found: list[Found] = []
    named = around.env.get("PROMETHEUS_URL")
    if named and named.startswith(("http://", "https://")):
        found.append(Found("prometheus", named, "PROMETHEUS_URL"))
    elif _is_prometheus(around.probe(f"{_LOCAL_PROMETHEUS}/api/v1/status/buildinfo")):
        found.append(Found("prometheus", _LOCAL_PROMETHEUS, f"{_LOCAL_PROMETHEUS} answers as Prometheus"))
    found += [
        Found("exporter", url, f"{url} answers with {mark.decode()}…")
        for url, mark in _LOCAL_EXPORTERS
        if mark in around.probe(url)
    ]
    return found


def _is_prometheus(body: bytes) -> bool:
    try:
        answer = json.loads(body)
    except ValueError:
        return False
    return isinstance(answer, dict) and answer.get("status") == "success"


def _kubernetes(around: Surroundings) -> Found | None:
    named = around.env.get("KUBECONFIG")
    if named:
        return Found("kubernetes", named, "KUBECONFIG", read=False)
    home = around.env.get("HOME", "/").lstrip("/")
    if around.has(f"{home}/.kube/config"):
        return Found("kubernetes", "~/.kube/config", "the file is there", read=False)
    if around.has("/var/run/secrets/kubernetes.io/serviceaccount/token"):
        return Found("kubernetes", "in-cluster", "a service account is mounted", read=False)
    return None
