"""PCIe and NVLink of a GPU: what they run at, and whether that is less than they could."""

from msgspec import Struct

from gputop.fleet import GpuState
from gputop.panes.format import last


class PcieLink(Struct, frozen=True, gc=False):
    """A PCIe link.

    Attributes:
        generation: Generation now.
        width: Lanes now.
        most: (generation, lanes) that board and slot could do together, None when not told.
    """

    generation: float
    width: float
    most: tuple[float, float] | None

    @property
    def is_below(self) -> bool:
        """Whether it runs at less than it could, for whatever reason."""
        return self.most is not None and (self.generation < self.most[0] or self.width < self.most[1])

    @property
    def speed(self) -> float:
        """What to compare links by: lanes times the rate of the generation, which doubles with each."""
        return self.width * 2.0**self.generation

    @property
    def words(self) -> str:
        """Generation and lanes, as "5x16"."""
        return f"{self.generation:.0f}x{self.width:.0f}"

    @property
    def most_words(self) -> str:
        """What it could do, "" when not told."""
        return f"{self.most[0]:.0f}x{self.most[1]:.0f}" if self.most is not None else ""


def pcie_link(gpu: GpuState) -> PcieLink | None:
    """Return the PCIe link of a GPU as last told, None when it is not."""
    generation, width, most_generation, most_width = (
        last(gpu.readings.get(q)) for q in ("pcie_generation", "pcie_width", "pcie_generation_max", "pcie_width_max")
    )
    if generation is None or width is None:
        return None
    if most_generation is None and most_width is None:
        return PcieLink(generation, width, None)
    most = (generation if most_generation is None else most_generation, width if most_width is None else most_width)
    return PcieLink(generation, width, most)


def nvlinks(gpu: GpuState) -> tuple[float, float] | None:
    """Return (links that are up, links), None when either is not told."""
    active, of = last(gpu.readings.get("nvlink_links_active")), last(gpu.readings.get("nvlink_links"))
    return (active, of) if active is not None and of is not None else None
