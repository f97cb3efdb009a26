"""All metric names that gputop reads, with what they mean."""

from typing import Final

from gputop.sources.metrics.dcgm import DCGM
from gputop.sources.metrics.others import OTHERS
from gputop.sources.metrics.rule import MetricRule

METRICS: Final[dict[str, MetricRule]] = {rule.name: rule for rule in (*DCGM, *OTHERS)}
"""Rule by metric name."""
