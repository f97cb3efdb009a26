"""The one state of the program: facts of all sources joined into nodes, GPUs and workloads.

Only `Fleet.apply` writes it; everything else reads immutable views.
"""

from gputop.fleet.changes import Changes
from gputop.fleet.fleet import Fleet
from gputop.fleet.history import Series
from gputop.fleet.state import GpuState, NodeState, View, WorkloadState, XidRecord

__all__ = ["Changes", "Fleet", "GpuState", "NodeState", "Series", "View", "WorkloadState", "XidRecord"]
