"""What there is to read on this machine, and how that is known.

Nothing here waits: the only addresses asked are on the loopback, each for at most half a second. What this
version cannot read yet is found and named all the same.
"""

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from gputop.model.endpoint import split_credentials
from gputop.model.text import clean

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
_BUILD_INFO: Final = f"{_LOCAL_PROMETHEUS}/api/v1/status/buildinfo"
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
    """Return the beginning of what a loopback address answers; empty when it does not answer with success.

    Redirects are not followed and proxies not used: a look at the own machine must not leave it.
    """
    import http.client  # noqa: PLC0415 - a screen that asks no server is not to wait for it

    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_PROBE_S)
    try:
        connection.request("GET", parts.path)
        answer = connection.getresponse()
        return answer.read(_PROBE_BYTES) if answer.status == http.HTTPStatus.OK else b""
    except (OSError, http.client.HTTPException, ValueError):
        return b""
    finally:
        connection.close()


def answers(probe: Callable[[str], bytes], urls: tuple[str, ...]) -> dict[str, bytes]:
    """Ask several addresses at once and return what each said within half a second, empty for the late ones.

    A socket's timeout begins anew with each byte, so a server that drips would hold the start for minutes;
    threads that nobody waits for do not.
    """
    said: dict[str, bytes] = {}

    def ask(url: str) -> None:
        said[url] = probe(url)

    threads = [threading.Thread(target=ask, args=(url,), name=f"probe {url}", daemon=True) for url in urls]
    for thread in threads:
        thread.start()
    ends = time.monotonic() + _PROBE_S
    for thread in threads:
        thread.join(max(0.0, ends - time.monotonic()))
    return {url: said.get(url, b"") for url in urls}


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
        try:
            return (self.root / path.lstrip("/")).exists()
        except OSError:
            # A folder that we may not enter, as HOME of another user under sudo.
            return False

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
    named = (f"{folder}/libnvidia-ml.so.1" for folder in around.env.get("LD_LIBRARY_PATH", "").split(":") if folder)
    for library in (*_LIBRARIES, *named):
        if around.has(library):
            return Found("nvml", "libnvidia-ml.so.1", f"{clean(library)} is installed")
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
        network: Look for servers too: loopback addresses, and the one that PROMETHEUS_URL names.
    """
    found = [detect_nvml(around), *(_by_network(around) if network else ()), _kubernetes(around)]
    nomad = around.env.get("NOMAD_ADDR")
    if nomad:
        found.append(Found("nomad", _bare(nomad)[0], "NOMAD_ADDR", read=False))
    return tuple(f for f in found if f is not None)


def _bare(url: str) -> tuple[str, bool]:
    """Return an address of a variable without credentials, "" if it is none, and whether it had some."""
    try:
        bare, user, password = split_credentials(url)
    except ValueError:
        return "", False
    return clean(bare).strip(), bool(user or password)


def _by_network(around: Surroundings) -> list[Found]:
    found: list[Found] = []
    named, had_credentials = _bare(around.env.get("PROMETHEUS_URL", ""))
    use_named = named.startswith(("http://", "https://"))
    asked = (*(() if use_named else (_BUILD_INFO,)), *(url for url, _ in _LOCAL_EXPORTERS))
    said = answers(around.probe, asked)
    if use_named:
        how = "PROMETHEUS_URL"
        if had_credentials:
            how += ", without the credentials in it: those are read from GPUTOP_PROMETHEUS_URL alone"
        found.append(Found("prometheus", named.rstrip("/"), how))
    elif _is_prometheus(said[_BUILD_INFO]):
        found.append(Found("prometheus", _LOCAL_PROMETHEUS, f"{_LOCAL_PROMETHEUS} answers as Prometheus"))
    found += [
        Found("exporter", url, f"{url} answers with {mark.decode()}…")
        for url, mark in _LOCAL_EXPORTERS
        if mark in said[url]
    ]
    return found


def _is_prometheus(body: bytes) -> bool:
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    data = answer.get("data") if isinstance(answer, dict) and answer.get("status") == "success" else None
    return isinstance(data, dict) and "version" in data


def _kubernetes(around: Surroundings) -> Found | None:
    named = around.env.get("KUBECONFIG")
    if named:
        return Found("kubernetes", clean(named), "KUBECONFIG", read=False)
    home = around.env.get("HOME", "/").lstrip("/")
    if around.has(f"{home}/.kube/config"):
        return Found("kubernetes", "~/.kube/config", "the file is there", read=False)
    if around.has("/var/run/secrets/kubernetes.io/serviceaccount/token"):
        return Found("kubernetes", "in-cluster", "a service account is mounted", read=False)
    return None
