"""Fixtures and rules that hold for every test."""

import os
import shutil
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]

# What a developer's shell may hold and a test must not see: settings of gputop, addresses of real
# clusters, proxies between a test and its own loopback server, and switches of colour.
_FOREIGN_PREFIXES = ("GPUTOP_", "KUBE", "NOMAD_", "PROMETHEUS_", "TEXTUAL")
_FOREIGN_NAMES = (
    "ALL_PROXY",
    "CURL_CA_BUNDLE",
    "FORCE_COLOR",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_COLOR",
    "REQUESTS_CA_BUNDLE",
    "all_proxy",
    "http_proxy",
    "https_proxy",
)
# Switches of the test run itself.
_OWN_NAMES = frozenset({"GPUTOP_REQUIRE_GPU", "GPUTOP_WRITE_SCREENSHOTS"})


def _gpu_is_here() -> bool:
    return Path("/dev/nvidiactl").exists() or Path("/dev/dxg").exists()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, by name, the tests that need a GPU where there is none and nobody insisted on one."""
    if _gpu_is_here() or os.environ.get("GPUTOP_REQUIRE_GPU"):
        return
    skip = pytest.mark.skip(reason="no NVIDIA GPU here: neither /dev/nvidiactl nor /dev/dxg exists")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give each test an empty home, and none of the caller's settings; return that home."""
    for name in list(os.environ):
        if name not in _OWN_NAMES and (name in _FOREIGN_NAMES or name.startswith(_FOREIGN_PREFIXES)):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for kind in ("CONFIG", "STATE", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
    return home


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the checkout."""
    return REPO


@pytest.fixture(scope="session")
def public_fixtures() -> Path:
    """The folder of outputs that people published, which lies beside the checkout where it is at all."""
    folder = REPO.parent / "shared" / "fixtures" / "public"
    if not folder.is_dir():
        pytest.skip(f"no published outputs at ../{folder.relative_to(REPO.parent)}")
    return folder


@pytest.fixture(scope="session")
def prometheus_binary() -> str:
    """The path of a real Prometheus; missing, it fails in CI and skips elsewhere."""
    found = shutil.which("prometheus")
    if found is None:
        reason = "no prometheus binary on PATH (Debian and Ubuntu: the package `prometheus`)"
        if os.environ.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return found
