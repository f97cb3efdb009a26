"""What the series that tell which GPUs there are come to."""

import pytest

from gputop.sources.metrics.sample import Sample
from gputop.sources.prometheus.doubles import look


def _series(**labels: str) -> Sample:
    return Sample("DCGM_FI_DEV_GPU_TEMP", {"instance": "10.0.0.1:9400", **labels}, 40.0, 10.0)


@pytest.mark.parametrize(
    ("series", "boards", "instances"),
    [
        ([_series(UUID="GPU-a", gpu="0"), _series(UUID="GPU-b", gpu="1")], 2, 0),
        ([_series(UUID="GPU-a", gpu="0"), _series(uuid="a", instance="10.0.0.1:9835")], 1, 0),
        ([_series(UUID="GPU-a"), _series(UUID="GPU-a", GPU_I_ID="1"), _series(UUID="GPU-a", GPU_I_ID="2")], 1, 2),
        ([_series(UUID="GPU-a", GPU_I_ID="1"), _series(UUID="GPU-b", GPU_I_ID="1")], 2, 2),
        ([_series(UUID="MIG-1", gpu="0"), _series(UUID="MIG-2", gpu="0")], 1, 2),
        ([_series(gpu="0", GPU_I_ID="")], 1, 0),
    ],
    ids=["two", "two-exporters", "board-and-instances", "instances-alone", "mig-uuids", "no-uuid"],
)
def test_a_mig_instance_is_no_gpu_of_its_own(series: list[Sample], boards: int, instances: int) -> None:
    seen = look(series)
    assert (seen.boards, seen.instances) == (boards, instances)
