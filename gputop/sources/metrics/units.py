"""Units that a name leaves in doubt: settled for each exporter by the numbers it sends.

What has been seen once counts for as long as the source lives: an exporter that told 83 under a name in
_RATIO tells percentages, also while its GPUs are idle.
"""

from typing import Final

from gputop.sources.metrics.rule import Doubt, MetricRule

_MOST_MB_PER_S: Final = 4e6
"""More than the NVLinks of any board carry in MB/s (about 1.8 TB/s on Blackwell, both ways)."""


class Units:
    """What is known of each exporter's units."""

    def __init__(self) -> None:
        self._percent: set[str] = set()
        self._bytes: set[str] = set()

    def learn(self, exporter: str, rule: MetricRule, value: float) -> None:
        """Look at one plausible sample before any of its answer is converted."""
        if rule.doubt is Doubt.RATIO_OR_PERCENT:
            if 1.0 < value <= 100.0:
                self._percent.add(exporter)
        elif rule.name.startswith("DCGM_FI_DEV_FB_") and rule.name.endswith("_BYTES"):
            # These came with DCGM 4.7, as did NVLink throughput in bytes.
            self._bytes.add(exporter)
        elif rule.doubt is Doubt.MEGABYTES_OR_BYTES and value > _MOST_MB_PER_S:
            self._bytes.add(exporter)

    def scale(self, exporter: str, rule: MetricRule) -> float:
        """Return the factor from the number to the quantity's unit."""
        if rule.doubt is Doubt.RATIO_OR_PERCENT:
            return 1.0 if exporter in self._percent else rule.scale
        if rule.doubt is Doubt.MEGABYTES_OR_BYTES:
            return rule.scale if exporter in self._bytes else rule.scale * 1e6
        return rule.scale
