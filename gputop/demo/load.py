"""What kinds of work do to a GPU: the table of load profiles."""

import msgspec


class LoadProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of one kind of work.

    ``level`` is the mean share of the time with a kernel running, ``wobble`` how far it swings around that,
    ``period_s`` how fast. ``memory`` is the part of the GPU memory held, ``memory_busy`` the busy part of the
    memory interface at full load, ``tensor`` and ``occupancy`` the profiling ratios. Link rates are bytes
    each second at full load. ``encoder`` and ``decoder`` are shares of the video engines.
    """

    level: float
    wobble: float = 0.04
    period_s: float = 20.0
    power: float = 0.93
    memory: float = 0.8
    memory_busy: float = 0.5
    sm_active: float = 0.85
    tensor: float = 0.4
    occupancy: float = 0.35
    pcie_bytes_s: float = 1.2e9
    nvlink_bytes_s: float = 0.0
    encoder: float = 0.0
    decoder: float = 0.0
    graphics: bool = False


PROFILES: dict[str, LoadProfile] = {
    "train": LoadProfile(level=0.94, memory=0.88, memory_busy=0.62, nvlink_bytes_s=1.6e11),
    "train-single": LoadProfile(level=0.9, wobble=0.08, memory=0.72, memory_busy=0.55),
    "infer": LoadProfile(
        level=0.48,
        wobble=0.35,
        period_s=35.0,
        power=0.7,
        memory=0.91,
        memory_busy=0.7,
        tensor=0.22,
        pcie_bytes_s=4.0e8,
        nvlink_bytes_s=2.0e10,
    ),
    "batch": LoadProfile(level=0.7, wobble=0.28, period_s=60.0, power=0.8, memory=0.55, tensor=0.3),
    "notebook": LoadProfile(
        level=0.04, wobble=0.04, period_s=90.0, power=0.4, memory=0.22, tensor=0.05, pcie_bytes_s=1e7
    ),
    # Holds the GPU and its memory and never runs a kernel: the allocation that a fleet owner looks for.
    "idle": LoadProfile(level=0.0, wobble=0.0, memory=0.42, tensor=0.0, pcie_bytes_s=0.0),
    "stalled": LoadProfile(
        level=1.0,
        wobble=0.0,
        power=0.16,
        memory=0.86,
        memory_busy=0.02,
        tensor=0.0,
        sm_active=0.06,
        occupancy=0.02,
        pcie_bytes_s=1e6,
    ),
    "transcode": LoadProfile(
        level=0.24,
        wobble=0.1,
        power=0.5,
        memory=0.3,
        memory_busy=0.3,
        tensor=0.0,
        encoder=0.7,
        decoder=0.55,
        pcie_bytes_s=9e8,
    ),
    "render": LoadProfile(level=0.82, wobble=0.15, memory=0.5, tensor=0.0, graphics=True),
}
"""Load profiles by the name that a scenario's ``load`` gives."""
