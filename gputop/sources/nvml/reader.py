"""A child of the NVML source, with what it has told and what is known of its silence."""

from gputop.model.identity import GpuRef
from gputop.model.status import Finding
from gputop.sources.nvml.picture import Picture
from gputop.sources.nvml.protocol import Costs, NoNvml, Skip
from gputop.sources.nvml.spawn import ChildProcess


class Reader:
    """One child with what it has told.

    Attributes:
        process: The child.
        picture: What its frames come to.
        skip: GPUs it was told to leave alone.
        costs: What it has cost so far.
        notes: What it remarks on itself.
        refusal: Why NVML tells it nothing, if so.
        restart: Why it asks for a fresh process, "" if it does not.
        stuck_on: The GPU on which a call of it does not return.
        idle_since: Since when it is silent outside of any call, on the loop's clock; None while it is not.
    """

    def __init__(self, process: ChildProcess, picture: Picture, skip: tuple[Skip, ...]) -> None:
        self.process = process
        self.picture = picture
        self.skip = skip
        self.costs = Costs(0.0, 0, 0.0, ())
        self.notes: tuple[Finding, ...] = ()
        self.refusal: NoNvml | None = None
        self.restart = ""
        self.stuck_on: GpuRef | None = None
        self.idle_since: float | None = None
