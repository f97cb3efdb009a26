"""A process on a GPU."""

from msgspec import Struct

from gputop.model.reading import Absent
from gputop.model.workload import Holder


class GpuProcess(Struct, frozen=True, gc=False):
    """One process on one GPU or MIG instance.

    Attributes:
        pid: Process id as NVML tells it, in the host's PID namespace.
        kinds: "C" compute, "G" graphics, "M" MPS client, joined by "+" when several: "C+G".
        memory_mib: GPU memory it uses.
        sm_percent: Share of the last sample window in which it used the SMs.
        encoder_percent: The same for the video encoder.
        decoder_percent: The same for the video decoder.
        user: User name or number, or why it is not told.
        command: Command line without control characters, or why it is not told.
        started_at: Start time, seconds since the epoch.
        holder: The pod or allocation it belongs to, if its cgroup or environment tells one.
        holder_reason: How the holder is known, or why it is not.
    """

    pid: int
    kinds: str
    memory_mib: float | Absent
    sm_percent: float | Absent
    encoder_percent: float | Absent
    decoder_percent: float | Absent
    user: str | Absent
    command: str | Absent
    started_at: float | Absent
    holder: Holder | None = None
    holder_reason: str = ""
