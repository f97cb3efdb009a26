"""The demo held against a real Prometheus: its exporters' text, and its answers to the same queries."""

import json
import shutil
import socket
import subprocess
import time

import pytest
import requests

from gputop.demo import scenario
from gputop.demo.prometheus import Api
from gputop.demo.promql.evaluate import instant, over_range
from gputop.demo.promql.functions import Points
from gputop.demo.promql.matching import labels_test, name_test
from gputop.demo.promql.parser import parse
from gputop.demo.series import Labels, Sample, render
from gputop.demo.store import Store
from gputop.demo.world import World

pytestmark = pytest.mark.real_prometheus

# A whole number of minutes, and queries a little after it: windows then begin and end between samples, so
# that the change of Prometheus 3 (windows without their left edge) makes no difference.
STARTED = 1_790_000_040.0
SAMPLES = 41
ASKED_AT = STARTED + 600.0 + 4.0

ALLOCATED = (
    'sum by (node) (kube_pod_container_resource_requests{resource="nvidia_com_gpu"}'
    ' * on (uid) group_left () (max by (uid) (kube_pod_status_phase{phase=~"Pending|Running"} == 1)))'
)

QUERIES = [
    "DCGM_FI_DEV_GPU_UTIL",
    'DCGM_FI_DEV_GPU_UTIL{Hostname=~"gpu-001|gpu-002",gpu!~"[0-5]"}',
    '{__name__=~"DCGM_FI_DEV_(FB_USED|GPU_TEMP)",Hostname="gpu-101"}',
    "max by (UUID, GPU_I_ID, Hostname, instance) (DCGM_FI_DEV_POWER_USAGE)",
    "sum without (gpu, UUID, pci_bus_id, device) (DCGM_FI_DEV_FB_USED)",
    "avg by (Hostname) (DCGM_FI_DEV_GPU_TEMP) > 40",
    "topk(3, sum by (Hostname) (DCGM_FI_DEV_POWER_USAGE))",
    "count by (__name__) ({__name__=~'DCGM_FI_DEV_.*'})",
    'count_values("util", DCGM_FI_DEV_GPU_UTIL)',
    "rate(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION[2m]) / 1000",
    "increase(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION[5m])",
    "delta(DCGM_FI_DEV_GPU_TEMP[3m])",
    "max_over_time(DCGM_FI_DEV_GPU_UTIL[5m]) - min_over_time(DCGM_FI_DEV_GPU_UTIL[5m])",
    "avg_over_time(DCGM_FI_DEV_POWER_USAGE[90s])",
    "count_over_time(DCGM_FI_DEV_POWER_USAGE[9m])",
    "changes(DCGM_FI_DEV_POWER_USAGE[5m])",
    "last_over_time(DCGM_FI_DEV_GPU_TEMP[1m])",
    "DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE) * 100",
    "DCGM_FI_DEV_GPU_UTIL > bool 50",
    "DCGM_FI_DEV_POWER_USAGE / on (UUID) group_left () max by (UUID) (DCGM_FI_DEV_GPU_UTIL)",
    "kube_pod_container_resource_requests * on (uid) group_left (node) kube_pod_info",
    ALLOCATED,
    "kube_node_status_capacity - ignoring () kube_node_status_allocatable != 0",
    'kube_pod_info unless on (uid) (kube_pod_container_resource_requests{resource="nvidia_com_gpu"} > 1)',
    "DCGM_FI_DEV_GPU_UTIL == 0 or DCGM_FI_DEV_GPU_UTIL > 90",
    "timestamp(DCGM_FI_DEV_GPU_TEMP)",
    "absent(nothing{a='b', c=~'d'})",
    "scalar(sum(DCGM_FI_DEV_FB_USED)) % 1000",
    "-2 ^ 2 + 7 % 4 - 1 / 0",
    "clamp(DCGM_FI_DEV_POWER_USAGE, 100, 200)",
    "round(DCGM_FI_DEV_POWER_USAGE, 0.5)",
    "stddev by (Hostname) (DCGM_FI_DEV_POWER_USAGE)",
    r'label_replace(DCGM_FI_DEV_GPU_TEMP, "short", "$1", "Hostname", "gpu-(.*)")',
    "DCGM_FI_DEV_POWER_USAGE offset 3m",
    "vector(time())",
]


class Recorded:
    """The very samples that the real server was given, for the evaluator."""

    def __init__(self) -> None:
        self.series: dict[tuple[str, Labels], Points] = {}

    def add(self, name, labels, at, value):
        self.series.setdefault((name, labels), []).append((at, value))

    def _matching(self, matchers):
        accepts, wanted = name_test(matchers), labels_test(matchers)
        for (name, labels), points in self.series.items():
            if accepts(name) and (wanted is None or wanted(labels)):
                yield name, labels, points

    def select(self, matchers, at):
        return [
            Sample(name, labels, points[place][1], points[place][0])
            for name, labels, points in self._matching(matchers)
            for place in [max((i for i, (stamp, _) in enumerate(points) if at - 300 < stamp <= at), default=-1)]
            if place >= 0
        ]

    def select_range(self, matchers, start, end):
        return [
            (name, labels, [one for one in points if start < one[0] <= end])
            for name, labels, points in self._matching(matchers)
        ]


@pytest.fixture(scope="module")
def store():
    return Store(World(scenario.resized(scenario.load("default"), 3), 11), STARTED)


@pytest.fixture(scope="module")
def recorded(store):
    found = Recorded()
    for number in range(SAMPLES):
        at = STARTED + 15.0 * number
        for target in store.targets:
            for name in target.exposition.names():
                for labels, value in target.samples(name, store.seconds(at), None):
                    found.add(name, labels, at, value)
    return found


@pytest.fixture(scope="module")
def server(recorded, prometheus_binary, tmp_path_factory):
    """A real Prometheus on the recorded samples, written as blocks by promtool."""
    folder = tmp_path_factory.mktemp("prometheus")
    text = folder / "samples.om"
    lines: list[str] = []
    names = sorted({name for name, _ in recorded.series})
    for wanted in names:
        lines.append(f"# TYPE {wanted} unknown")
        for (name, labels), points in recorded.series.items():
            if name == wanted:
                lines += [f"{name}{{{labels.text()}}} {value!r} {at}" for at, value in points]
    text.write_text("\n".join([*lines, "# EOF", ""]))
    promtool = shutil.which("promtool")
    assert promtool, "promtool comes with Prometheus"
    subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", str(text), str(folder / "data")],
        check=True,
        capture_output=True,
        timeout=120,
    )
    config = folder / "prometheus.yml"
    config.write_text("scrape_configs: []\n")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [
            prometheus_binary,
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(process, url)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=20)


def _wait_until_ready(process, url):
    deadline = time.monotonic() + 60
    while True:
        assert process.poll() is None, "prometheus ended at once"
        assert time.monotonic() < deadline, "prometheus did not become ready"
        try:
            if requests.get(f"{url}/-/ready", timeout=2).status_code == 200:
                return
        except requests.exceptions.ConnectionError:
            time.sleep(0.05)


def told(row):
    return tuple(sorted(row["metric"].items()))


def ours(sample):
    return tuple(sorted(({"__name__": sample.name} if sample.name else {}).items() | sample.labels.pairs.items()))


@pytest.mark.parametrize("query", QUERIES)
def test_the_evaluator_answers_as_prometheus_does(server, recorded, query):
    reply = requests.post(f"{server}/api/v1/query", data={"query": query, "time": ASKED_AT}, timeout=30).json()
    assert reply["status"] == "success", reply
    mine = instant(parse(query), recorded, ASKED_AT)
    result = reply["data"]["result"]
    if reply["data"]["resultType"] == "scalar":
        assert mine == pytest.approx(float(result[1]), rel=1e-9)
        return
    assert isinstance(mine, list)
    expected = {told(row): float(row["value"][1]) for row in result}
    assert expected or query.startswith("nothing")
    assert {ours(one): one.value for one in mine} == pytest.approx(expected, rel=1e-9, nan_ok=True)


@pytest.mark.parametrize("query", QUERIES[:12])
def test_range_queries_agree(server, recorded, query):
    start, end, step = ASKED_AT - 300, ASKED_AT, 60
    data = {"query": query, "start": start, "end": end, "step": step}
    reply = requests.post(f"{server}/api/v1/query_range", data=data, timeout=30).json()
    assert reply["status"] == "success", reply
    expected = {(told(row), at): float(value) for row in reply["data"]["result"] for at, value in row["values"]}
    mine = {
        (ours(Sample(name, labels, 0.0, 0.0)), at): value
        for name, labels, points in over_range(parse(query), recorded, start, end, step)
        for at, value in points
    }
    assert mine == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "query",
    [
        "sum(",
        'up{a=~"("}',
        "rate(up)",
        "1 > 2",
        "DCGM_FI_DEV_GPU_TEMP * on (Hostname) DCGM_FI_DEV_GPU_UTIL",
        "DCGM_FI_DEV_GPU_TEMP + on (gpu) kube_node_info",
        "count_values(1, up)",
        "{a=''}",
        "foo bar",
    ],
)
def test_both_refuse_the_same_queries_in_the_same_way(server, store, query):
    theirs = requests.post(f"{server}/api/v1/query", data={"query": query, "time": ASKED_AT}, timeout=30)
    mine = Api(store, lambda: ASKED_AT).answer("query", {"query": [query]})
    if theirs.status_code == 200:
        pytest.fail(f"Prometheus answers {query}: {theirs.text[:200]}")
    assert mine.status == theirs.status_code
    assert json.loads(mine.body)["errorType"] == theirs.json()["errorType"]


@pytest.mark.parametrize("name", ["default", "zoo", "mig"])
def test_promtool_finds_no_fault_with_the_text(prometheus_binary, name):
    promtool = shutil.which("promtool")
    assert promtool
    for target in Store(World(scenario.load(name), 3), STARTED).targets:
        text = render(target.exposition, 200.0)
        done = subprocess.run(
            [promtool, "check", "metrics"],
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        # Exit status 3 is advice on naming, which the real exporters do not follow either.
        assert done.returncode in {0, 3}, done.stderr[:500]
