"""The decoder's memory and its rules for what several series say of one GPU."""

import pytest

from gputop.model.facts import GpuFact, HoldersFact, Presence, Roster, XidFact, XidKind
from gputop.model.quantity import QUANTITIES
from gputop.sources.metrics.api_json import read_answers
from gputop.sources.metrics.decode import Decoder
from gputop.sources.metrics.lacking import generation, lacking
from gputop.sources.metrics.names import METRICS, names_wanted, rule_of
from gputop.sources.metrics.sample import Sample
from tests.cases.metrics_rig import Rig, T, shown

XIDS = "nvidia_smi_xid_errors_total"
UUID = "aaaaaaaa-0000-0000-0000-000000000001"


def test_every_name_has_a_known_quantity_and_a_plausible_factor() -> None:
    assert all(not r.quantity or r.quantity in QUANTITIES for r in METRICS.values())
    assert all(r.scale > 0 for r in METRICS.values())


def test_names_for_some_quantities_bring_what_they_are_derived_from() -> None:
    names = {r.name for r in names_wanted({"memory_total_mib"})}
    assert {"DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED"} <= names
    assert {"up", "DCGM_FI_DEV_XID_ERRORS"} <= names
    assert "DCGM_FI_DEV_GPU_TEMP" not in names
    assert not any(name.startswith("kube_") for name in names)


def test_a_prefix_of_a_site_is_known_for_amd_alone() -> None:
    rule = rule_of("site_gpu_used_vram")
    assert rule is not None
    assert rule.quantity == "memory_used_mib"
    assert rule_of("site_DCGM_FI_DEV_GPU_TEMP") is None
    assert rule_of("node_cpu_seconds_total") is None


def test_nvlink_throughput_is_in_the_unit_of_its_generation() -> None:
    name = "DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL"
    old, new = Rig(), Rig()
    old.feed(f'{name}{{gpu="0",UUID="GPU-a0"}} 41200')
    new.feed(f'DCGM_FI_DEV_FB_USED_BYTES{{gpu="0",UUID="GPU-a0"}} 5\n{name}{{gpu="0",UUID="GPU-a0"}} 41200000000')
    for rig in (old, new):
        assert shown(rig.gpu("GPU-a0"), "nvlink_throughput_bytes_per_s") == 41.2e9


def test_percent_under_a_ratios_name_is_remembered_while_idle() -> None:
    rig = Rig()
    line = 'DCGM_FI_DEV_GPU_UTIL_RATIO{{gpu="0",UUID="GPU-a0",instance="{i}:9400"}} {v}'
    rig.feed(line.format(i="a", v=64))
    rig.feed(line.format(i="a", v=1), T + 30)
    assert shown(rig.gpu("GPU-a0"), "utilization") == 1.0


def test_nvlink_errors_told_link_by_link_are_added_up() -> None:
    rig = Rig()
    line = 'DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL{{gpu_uuid="GPU-a0",nvlink="{n}",nvswitch="1"}} {v}'
    rig.feed("\n".join(line.format(n=n, v=n) for n in range(5)))
    assert shown(rig.gpu("GPU-a0"), "nvlink_replay_errors") == 10.0


def test_rows_of_switches_and_cpus_are_no_gpus() -> None:
    rig = Rig()
    rig.feed(
        'DCGM_FI_DEV_NVSWITCH_TEMPERATURE_CURRENT{nvswitch="0",Hostname="n1"} 50\n'
        'DCGM_FI_DEV_CPU_UTIL_TOTAL{cpu="0",cpucore="3",Hostname="n1"} 3\n'
        'DCGM_FI_DEV_GPU_TEMP{cpu="0",Hostname="n1"} 3'
    )
    assert not rig.view.gpus


def test_two_exporters_of_one_host_are_one_gpu_with_the_newer_value() -> None:
    rig = Rig()
    rig.feed(
        'DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a0",Hostname="n1",instance="a:9400"} 100\n'
        'DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a0",Hostname="n1",instance="b:9400"} 90',
        times=(T - 10, T),
    )
    assert len(rig.view.gpus) == 1
    assert shown(rig.gpu("GPU-a0"), "power_w") == 90.0


def test_values_of_other_scrapes_keep_their_own_age() -> None:
    rig = Rig()
    rig.feed(
        'DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a0"} 100\nDCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a0"} 40',
        times=(T - 200, T),
    )
    readings = rig.gpu("GPU-a0").readings
    assert (readings["power_w"].origin.at, readings["temperature_c"].origin.at) == (T - 200, T)


def test_a_partial_answer_lists_nothing_as_missing() -> None:
    rig = Rig()
    line = 'DCGM_FI_DEV_GPU_TEMP{{gpu="{i}",UUID="GPU-a{i}",Hostname="n1"}} 40'
    rig.feed("\n".join(line.format(i=i) for i in range(2)))
    rig.feed(line.format(i=0), T + 30, complete=False)
    assert {g.presence for g in rig.view.gpus.values()} == {Presence.PRESENT}


def test_without_all_labels_no_workload_is_taken_back() -> None:
    decoder = Decoder(source="p", rank=2)
    samples = [Sample("DCGM_FI_DEV_GPU_TEMP", {"UUID": "GPU-a0", "Hostname": "n1"}, 40.0)]
    facts = decoder.decode(samples, T, all_labels=False)
    assert any(isinstance(f, GpuFact) for f in facts)
    assert not any(isinstance(f, HoldersFact) for f in facts)


def test_silence_speaks_of_hosts_told_before() -> None:
    decoder = Decoder(source="p", rank=2)
    assert decoder.silence("gone", T) == []
    decoder.decode([Sample("DCGM_FI_DEV_GPU_TEMP", {"UUID": "GPU-a0", "Hostname": "n1"}, 40.0)], T)
    rosters = [f for f in decoder.silence("no \x1banswer", T + 5) if isinstance(f, Roster)]
    assert [(r.ref.host, r.silent, r.at) for r in rosters] == [("n1", "no answer", T + 5)]


def _xids(rig: Rig) -> list[tuple[int, XidKind, int, float]]:
    return [(x.xid, x.kind, x.count, x.first_seen) for x in rig.gpu(f"GPU-{UUID}").xids]


def test_a_counter_of_xids_tells_events_after_the_first_look() -> None:
    rig = Rig()
    rig.feed(f'{XIDS}{{uuid="{UUID}",xid="31"}} 4')
    rig.feed(f'{XIDS}{{uuid="{UUID}",xid="31"}} 4', T + 30)
    assert _xids(rig) == [(31, XidKind.LAST, 1, T)]
    rig.feed(f'{XIDS}{{uuid="{UUID}",xid="31"}} 6\n{XIDS}{{uuid="{UUID}",xid="79"}} 1', T + 60)
    assert _xids(rig)[1:] == [(31, XidKind.EVENT, 2, T + 60), (79, XidKind.EVENT, 1, T + 60)]


def test_a_counter_with_the_time_of_its_last_event_is_an_event_of_that_time() -> None:
    rig = Rig()
    when = f'nvidia_smi_xid_last_timestamp_seconds{{uuid="{UUID}",xid="79"}} {T - 500}'
    rig.feed(f'{XIDS}{{uuid="{UUID}",xid="79"}} 1\n{when}')
    assert _xids(rig) == [(79, XidKind.EVENT, 1, T - 500)]


def test_an_xid_that_is_none_makes_no_record() -> None:
    facts = Decoder(source="p", rank=2).decode(
        [
            Sample("DCGM_FI_DEV_XID_ERRORS", {"UUID": "GPU-a0", "Hostname": "n"}, 0.0),
            Sample(
                "DCGM_EXP_XID_ERRORS_COUNT", {"UUID": "GPU-a0", "Hostname": "n", "window_size_in_ms": "300000"}, 0.0
            ),
        ],
        T,
    )
    assert not any(isinstance(f, XidFact) for f in facts)


def test_a_collection_that_failed_is_told_and_ends() -> None:
    rig = Rig()
    gpu = f'nvidia_smi_temperature_gpu{{uuid="{UUID}"}} 40\n'
    rig.feed(gpu + "nvidia_smi_last_collect_success 0")
    assert [t.fact.code for t in rig.node("tern-04").troubles] == ["exporter_stale"]
    rig.feed(gpu + "nvidia_smi_last_collect_success 1", T + 30)
    assert rig.node("tern-04").troubles == ()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("DCGM_FI_DEV_FB_USED_BYTES", "4.7"),
        ("DCGM_FI_DEV_GPU_TEMP_CELSIUS", "4.6"),
        ("DCGM_FI_DEV_GPU_TEMP", "before"),
        ("dcgm_gpu_temp", "1.x"),
    ],
)
def test_generation(name: str, words: str) -> None:
    assert words in generation({name})


def test_lacking_lines_go_when_the_metric_is_there() -> None:
    names = {"DCGM_FI_DEV_GPU_TEMP"}
    assert any("FB_RESERVED" in f.advice for f in lacking(names))
    assert not any("FB_RESERVED" in f.advice for f in lacking({*names, "DCGM_FI_DEV_FB_CAPACITY_BYTES"}))
    assert lacking({"nvidia_smi_gpu_info"}) == ()


VECTOR = (
    '{"status":"success","data":{"resultType":"vector","result":['
    '{"metric":{"__name__":"DCGM_FI_DEV_GPU_UTIL","UUID":"GPU-a0"},"value":[1790000000.5,"NaN"]},'
    '{"metric":{},"value":[1790000000.5,"3"]}]},"warnings":["partial \\u001b[31mdata"]}'
)


def test_answers_of_the_api() -> None:
    answers = read_answers(VECTOR)
    (sample,) = answers.samples
    assert (sample.name, sample.labels, sample.at) == ("DCGM_FI_DEV_GPU_UTIL", {"UUID": "GPU-a0"}, 1790000000.5)
    assert sample.value != sample.value
    assert any("warning: partial" in n and "\x1b" not in n for n in answers.notes)
    assert any("without a metric name" in n for n in answers.notes)


def test_a_matrix_and_several_answers_in_a_row() -> None:
    matrix = (
        '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"up"},'
        '"values":[[1,"0"],[2,"1"]]}]}}'
    )
    answers = read_answers(f"{matrix}\n{VECTOR}\n{matrix[:60]}")
    assert [(s.name, s.at) for s in answers.samples][:2] == [("up", 1.0), ("up", 2.0)]
    assert len(answers.samples) == 3
    assert any("cut off" in n for n in answers.notes)


def test_frozen_values_stay_frozen_in_rounds_without_the_counter() -> None:
    rig = Rig()
    energy = 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-a0",Hostname="n1"} 771233002'
    power = 'DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a0",Hostname="n1"} 233'
    for step in range(50):
        rig.feed(energy if step % 2 else power, T + 30 * step)
    assert [t.fact.code for t in rig.node("n1").troubles] == ["frozen"]
    rig.feed(energy.replace("002", "999"), T + 1500)
    assert rig.node("n1").troubles == ()


def test_a_host_that_was_given_back_is_forgotten() -> None:
    decoder = Decoder(source="p", rank=2)
    here = [Sample("DCGM_FI_DEV_GPU_TEMP", {"UUID": "GPU-a0", "Hostname": "n1"}, 40.0)]
    left = [Sample("DCGM_FI_DEV_GPU_TEMP", {"UUID": "GPU-b0", "Hostname": "n2"}, 40.0)]

    def rosters(at: float) -> dict[str, bool]:
        return {f.ref.host: bool(f.silent) for f in decoder.decode(left, at) if isinstance(f, Roster)}

    decoder.decode([*here, *left], T)
    assert rosters(T + 30) == {"n2": False, "n1": True}
    assert rosters(T + 3600) == {"n2": False, "n1": True}
    assert rosters(T + 3700) == {"n2": False}
    assert rosters(T + 3730) == {"n2": False}
