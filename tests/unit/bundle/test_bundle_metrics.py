"""Exporter text and Prometheus answers in a bundle: through the live decoder, onto the right machines."""

import json
from pathlib import Path

from gputop.fleet import Fleet
from gputop.fleet.state import View
from gputop.sources.bundle.load import LoadedBundle, load

UUID = "GPU-aaaaaaaa-0000-0000-0000-00000000000{}"
PAGE = (
    f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="{UUID.format(1)}",Hostname="nvidia-dcgm-exporter-km55s",'
    'modelName="NVIDIA L4",pod="train-0",namespace="lab",container="c"} 41\n'
    f'DCGM_FI_DEV_XID_ERRORS{{gpu="0",UUID="{UUID.format(1)}",Hostname="nvidia-dcgm-exporter-km55s",'
    'err_code="79",err_msg="GPU has fallen off the bus"} 79\n'
)


def view(bundle: LoadedBundle) -> View:
    fleet = Fleet()
    for batch in bundle.batches:
        fleet.apply(batch)
    return fleet.view()


def vector(*series: tuple[dict[str, str], str], at: float = 1790000000.0) -> str:
    result = [{"metric": labels, "value": [at, value]} for labels, value in series]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})


def told(bundle: LoadedBundle, name: str) -> str:
    return next(f.text for f in bundle.findings if f.text.startswith(name))


def test_exporter_text_with_its_pods_and_xids(tmp_path: Path) -> None:
    (tmp_path / "gpu-a07.prom").write_text(PAGE, encoding="utf-8")
    bundle = load([tmp_path])
    (gpu,) = view(bundle).gpus.values()
    # The exporter's pod is not a host; the file's name is.
    assert gpu.key.host == "gpu-a07"
    assert gpu.readings["temperature_c"].value == 41.0
    assert [h.label for claim in gpu.holders for h in claim.holders] == ["lab/train-0"]
    assert [(x.xid, x.text) for x in gpu.xids] == [(79, "GPU has fallen off the bus")]
    assert "1 GPU on gpu-a07" in told(bundle, "gpu-a07.prom")


def test_an_answer_of_many_hosts_is_put_on_each_of_them(tmp_path: Path) -> None:
    (tmp_path / "query.json").write_text(
        vector(
            *(
                (
                    {"__name__": "DCGM_FI_DEV_GPU_TEMP", "UUID": UUID.format(n), "gpu": "0", "Hostname": f"n{n}"},
                    f"4{n}",
                )
                for n in (1, 2)
            ),
            ({"__name__": "kube_node_status_capacity", "node": "n1", "resource": "nvidia_com_gpu"}, "8"),
        ),
        encoding="utf-8",
    )
    bundle = load([tmp_path])
    seen = view(bundle)
    assert {k.host: g.readings["temperature_c"].value for k, g in seen.gpus.items()} == {"n1": 41.0, "n2": 42.0}
    assert {k.host: len(n.devices) for k, n in seen.nodes.items()} == {"n1": 1, "n2": 0}
    assert bundle.at == 1790000000.0
    assert "1 GPU on n1; 1 GPU on n2" in told(bundle, "query.json")


def test_a_page_joins_the_machine_of_other_outputs_by_uuid(tmp_path: Path) -> None:
    (tmp_path / "gpu-a07-nvidia-smi-L.txt").write_text(f"GPU 0: NVIDIA L4 (UUID: {UUID.format(1)})\n", encoding="utf-8")
    (tmp_path / "metrics.txt").write_text(PAGE, encoding="utf-8")
    seen = view(load([tmp_path]))
    assert [k.host for k in seen.nodes] == ["gpu-a07"]
    assert len(seen.gpus) == 1


def test_a_damaged_page_and_a_web_page_cost_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "n1.prom").write_text(PAGE + "garbage here\n" + PAGE[:90], encoding="utf-8")
    (tmp_path / "n2.json").write_text(vector()[:-5], encoding="utf-8")
    bundle = load([tmp_path])
    assert len(view(bundle).gpus) == 1
    assert "1 line cannot be read" in told(bundle, "n1.prom")
    assert "nothing in it can be read" in told(bundle, "n2.json")
