"""The demo as a process: the Prometheus API, exporters' pages, HTTP faults, and its end with its parent."""

import email.utils
import subprocess
import sys
import time

import psutil
import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from gputop.demo.launcher import DemoError, DemoHandle, start


@pytest.fixture(scope="module")
def demo():
    with start("default", seed=7) as handle:
        yield handle


@pytest.fixture
def api(demo: DemoHandle):
    session = requests.Session()
    session.trust_env = False

    class Api:
        base = demo.endpoints.prometheus

        def get(self, path, **parameters):
            return session.get(f"{self.base}/api/v1/{path}", params=parameters, timeout=20)

        def post(self, path, **parameters):
            return session.post(f"{self.base}/api/v1/{path}", data=parameters, timeout=20)

        def fault(self, **fault):
            reply = session.post(demo.endpoints.fault, json=fault, timeout=5)
            reply.raise_for_status()

        def page(self, url):
            return session.get(url, timeout=20)

    yield Api()
    session.delete(demo.endpoints.fault, timeout=5).raise_for_status()
    session.close()


def test_get_and_post_answer_alike_and_gzip_when_asked(api):
    at = time.time()
    query = "max by (UUID) (DCGM_FI_DEV_GPU_TEMP)"
    first, second = api.get("query", query=query, time=at), api.post("query", query=query, time=at)
    assert first.json() == second.json()
    assert first.json()["status"] == "success"
    assert first.headers["Content-Encoding"] == "gzip"
    row = first.json()["data"]["result"][0]
    assert row["value"][0] == pytest.approx(at, abs=0.001)
    assert 20 < float(row["value"][1]) < 100


def test_two_generations_are_served_side_by_side(api):
    names = api.get("label/__name__/values").json()["data"]
    assert {
        "DCGM_FI_DEV_GPU_UTIL",
        "DCGM_FI_DEV_GPU_UTIL_RATIO",
        "nvidia_smi_utilization_gpu_ratio",
        "up",
    } <= set(names)
    hosts = api.get("label/Hostname/values").json()["data"]
    assert hosts == ["gpu-001", "gpu-002", "gpu-101", "lab-001"]
    assert api.get("label/hostname/values").json()["data"] == ["b200-001", "mig-001"]


def test_a_range_is_a_matrix_on_the_asked_grid(api):
    end = time.time() // 60 * 60
    reply = api.post(
        "query_range",
        query='DCGM_FI_DEV_POWER_USAGE{Hostname="gpu-001",gpu="0"}',
        start=end - 3600,
        end=end,
        step="1m",
    ).json()
    assert reply["data"]["resultType"] == "matrix"
    values = reply["data"]["result"][0]["values"]
    assert [at for at, _ in values] == [end - 3600 + 60 * number for number in range(61)]
    assert all(float(value) > 400 for _, value in values)


def test_series_labels_metadata_targets_and_buildinfo(api):
    series = api.post("series", **{"match[]": 'up{job="kube-state-metrics"}'}).json()["data"]
    assert series == [{"__name__": "up", "instance": "10.63.0.10:8080", "job": "kube-state-metrics"}]
    assert {"UUID", "Hostname", "hostname", "__name__"} <= set(api.get("labels").json()["data"])
    assert (
        api.get("metadata", metric="DCGM_FI_DEV_GPU_TEMP").json()["data"]["DCGM_FI_DEV_GPU_TEMP"][0]["type"] == "gauge"
    )
    targets = api.get("targets").json()["data"]["activeTargets"]
    assert {one["health"] for one in targets} == {"up"}
    assert api.get("status/buildinfo").json()["data"]["version"].startswith("3.")
    assert api.page(f"{api.base}/-/ready").status_code == 200


@pytest.mark.parametrize(
    ("path", "parameters", "status", "kind"),
    [
        ("query", {"query": "sum("}, 400, "bad_data"),
        ("query", {}, 400, "bad_data"),
        ("query", {"query": "1", "time": "yesterday"}, 400, "bad_data"),
        ("query", {"query": "DCGM_FI_DEV_GPU_TEMP * on (job) DCGM_FI_DEV_GPU_UTIL"}, 422, "execution"),
        ("query_range", {"query": "1", "start": 0, "end": 100_000, "step": 1}, 400, "bad_data"),
        ("query_range", {"query": "1", "start": 0, "end": 10, "step": 0}, 400, "bad_data"),
        ("nothing", {}, 404, "not_found"),
        ("series", {}, 400, "bad_data"),
    ],
)
def test_errors_come_in_the_envelope(api, path, parameters, status, kind):
    reply = api.post(path, **parameters)
    assert reply.status_code == status
    assert (reply.json()["status"], reply.json()["errorType"]) == ("error", kind)
    assert reply.json()["error"]


def test_a_limit_truncates_and_warns(api):
    reply = api.get("query", query="DCGM_FI_DEV_GPU_TEMP", limit=3).json()
    assert len(reply["data"]["result"]) == 3
    assert "truncated" in reply["warnings"][0]


def test_every_exporter_page_parses_and_agrees_with_the_api(api, demo):
    for name, url in demo.endpoints.exporters.items():
        text = api.page(url).text
        assert sum(len(family.samples) for family in text_string_to_metric_families(text)) > 20, name
    assert "kube_pod_info" in api.page(demo.endpoints.kube_state_metrics).text
    assert api.page(f"{api.base}/node/nowhere/metrics").status_code == 404


def test_html_with_200(api):
    api.fault(kind="html")
    reply = api.get("query", query="1")
    assert (reply.status_code, reply.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "Sign in" in reply.text


def test_an_error_status_and_an_error_in_a_200(api):
    api.fault(kind="status", status=503, error_type="unavailable", times=1)
    api.fault(kind="envelope", error_type="timeout", times=1)
    assert api.get("query", query="1").status_code == 503
    second = api.get("query", query="1")
    assert (second.status_code, second.json()["errorType"]) == (200, "timeout")
    assert api.get("query", query="1").json()["status"] == "success"


def test_a_truncated_body_breaks_the_transfer(api):
    api.fault(kind="truncated")
    with pytest.raises(requests.exceptions.RequestException):
        api.get("query", query="DCGM_FI_DEV_GPU_TEMP").json()


def test_a_hang_outlasts_the_clients_patience(api):
    api.fault(kind="hang", path="/api/v1/query", seconds=30)
    with pytest.raises(requests.exceptions.ReadTimeout):
        requests.get(f"{api.base}/api/v1/query", params={"query": "1"}, timeout=0.3)
    assert api.get("labels").status_code == 200


def test_a_slow_body_arrives_whole(api):
    api.fault(kind="slow", seconds=0.4)
    assert len(api.get("query", query="DCGM_FI_DEV_GPU_TEMP").json()["data"]["result"]) > 20


def test_a_wrong_clock_moves_the_date_and_the_answers(api):
    before = float(api.get("query", query="time()").json()["data"]["result"][1])
    api.fault(kind="clock", skew_s=3600)
    reply = api.get("query", query="time()")
    assert float(reply.json()["data"]["result"][1]) - before == pytest.approx(3600, abs=30)
    told = email.utils.parsedate_to_datetime(reply.headers["Date"]).timestamp()
    assert told - time.time() == pytest.approx(3600, abs=30)


def test_duplicate_series_and_warnings(api):
    count = len(api.get("query", query="up").json()["data"]["result"])
    api.fault(kind="duplicate", times=1)
    assert len(api.get("query", query="up").json()["data"]["result"]) == 2 * count
    api.fault(kind="warnings", text="store unreachable")
    assert api.get("query", query="up").json()["warnings"] == ["store unreachable"]


def test_an_unknown_fault_is_refused(api, demo):
    reply = requests.post(demo.endpoints.fault, json={"kind": "earthquake"}, timeout=5)
    assert reply.status_code == 400
    assert "earthquake" in reply.json()["error"]


def test_the_same_seed_is_the_same_cluster_in_another_process(api, demo):
    with start("default", seed=7, started=demo.endpoints.started) as twin:
        at = demo.endpoints.started + 20
        query = {"query": "DCGM_FI_DEV_POWER_USAGE", "time": at}
        mine = api.post("query", **query).json()
        theirs = requests.post(f"{twin.endpoints.prometheus}/api/v1/query", data=query, timeout=20).json()
    assert mine == theirs


def test_it_ends_when_closed(demo):
    handle = start("healthy-node", seed=1)
    process = psutil.Process(handle.pid)
    handle.close()
    assert not process.is_running()


def test_it_ends_when_its_parent_dies():
    code = (
        "from gputop.demo.launcher import start\nimport os\nprint(start('healthy-node').pid, flush=True)\nos._exit(1)\n"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    pid = int(child.stdout)
    try:
        psutil.Process(pid).wait(timeout=10)
    except psutil.NoSuchProcess:
        return


def test_a_broken_scenario_says_why(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text("title = 3")
    with pytest.raises(DemoError) as caught:
        start(str(path))
    assert "bad.toml" in str(caught.value)
    assert "title" in str(caught.value)
