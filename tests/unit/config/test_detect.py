"""What is found on a machine, told with how, and never by leaving it."""

import json
from pathlib import Path

from gputop.config.detect import Surroundings, detect

BUILD = json.dumps({"status": "success", "data": {"version": "2.42.0"}}).encode()


def _machine(tmp_path: Path, *files: str, env: dict | None = None, answers: dict | None = None) -> Surroundings:
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")
    return Surroundings(env or {}, tmp_path, lambda url: (answers or {}).get(url, b""))


def test_a_machine_with_nothing_has_nothing(tmp_path: Path) -> None:
    assert detect(_machine(tmp_path)) == ()


def test_a_loaded_driver_is_a_sign_of_nvml(tmp_path: Path) -> None:
    (found,) = detect(_machine(tmp_path, "proc/driver/nvidia/version"))
    assert (found.kind, found.read) == ("nvml", True)
    assert "driver is loaded" in found.how


def test_a_gpu_without_driver_is_a_sign_too(tmp_path: Path) -> None:
    device = tmp_path / "sys/bus/pci/devices/0000:1b:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x10de\n", encoding="utf-8")
    (device / "class").write_text("0x030200\n", encoding="utf-8")
    (found,) = detect(_machine(tmp_path))
    assert "0000:1b:00.0" in found.how


def test_an_nvidia_audio_device_is_no_gpu(tmp_path: Path) -> None:
    device = tmp_path / "sys/bus/pci/devices/0000:1b:00.1"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x10de\n", encoding="utf-8")
    (device / "class").write_text("0x040300\n", encoding="utf-8")
    assert detect(_machine(tmp_path)) == ()


def test_local_servers_are_told_by_what_they_answer(tmp_path: Path) -> None:
    answers = {
        "http://127.0.0.1:9090/api/v1/status/buildinfo": BUILD,
        "http://127.0.0.1:9400/metrics": b"# HELP DCGM_FI_DEV_GPU_TEMP x\n",
        "http://127.0.0.1:9835/metrics": b"<html>something else</html>",
    }
    kinds = [f.kind for f in detect(_machine(tmp_path, answers=answers))]
    assert kinds == ["prometheus", "exporter"]


def test_another_server_on_the_port_is_no_prometheus(tmp_path: Path) -> None:
    answers = {"http://127.0.0.1:9090/api/v1/status/buildinfo": b"<html>cockpit</html>"}
    assert detect(_machine(tmp_path, answers=answers)) == ()


def test_schedulers_are_found_and_said_not_to_be_read(tmp_path: Path) -> None:
    found = detect(_machine(tmp_path, env={"KUBECONFIG": "/k", "NOMAD_ADDR": "http://n:4646"}))
    assert {(f.kind, f.read) for f in found} == {("kubernetes", False), ("nomad", False)}


def test_without_network_nothing_is_asked(tmp_path: Path) -> None:
    def forbidden(url: str) -> bytes:
        raise AssertionError(url)

    assert detect(Surroundings({"PROMETHEUS_URL": "http://p"}, tmp_path, forbidden), network=False) == ()


def test_credentials_of_a_foreign_variable_are_not_shown_and_not_used(tmp_path: Path) -> None:
    env = {"PROMETHEUS_URL": "https://ann:s3cret@prom/", "NOMAD_ADDR": "https://ann:s3cret@nomad:4646"}
    found = detect(_machine(tmp_path, env=env))
    assert [f.target for f in found] == ["https://prom", "https://nomad:4646"]
    assert "GPUTOP_PROMETHEUS_URL" in found[0].how
    assert "s3cret" not in repr(found)


def test_a_variable_that_is_no_address_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    answers = {"http://127.0.0.1:9090/api/v1/status/buildinfo": BUILD}
    for url in ("prom:9090", "http://[::1", ""):
        (found,) = detect(_machine(tmp_path, env={"PROMETHEUS_URL": url}, answers=answers))
        assert found.target == "http://127.0.0.1:9090"


def test_a_library_in_an_unusual_place_is_found_by_the_loaders_variable(tmp_path: Path) -> None:
    env = {"LD_LIBRARY_PATH": ":/opt/nvidia/lib"}
    (found,) = detect(_machine(tmp_path, "opt/nvidia/lib/libnvidia-ml.so.1", env=env))
    assert found.how == "/opt/nvidia/lib/libnvidia-ml.so.1 is installed"


def test_a_folder_that_may_not_be_entered_is_as_if_it_were_empty(tmp_path: Path) -> None:
    class Closed(type(tmp_path)):
        def exists(self, **_: bool) -> bool:
            raise PermissionError(13, "Permission denied")

    assert detect(Surroundings({"HOME": "/root"}, Closed(tmp_path), lambda _: b"")) == ()
