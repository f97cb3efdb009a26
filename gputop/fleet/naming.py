"""The full name of a workload that a source knows by its id alone.

A process tells its pod's UID by its cgroup and at most the pod's name by its host name, never the namespace;
under `hostNetwork` not even the name. A scheduler that lists the same UID has both.
"""

import msgspec

from gputop.fleet.workloads import Workloads
from gputop.model.identity import GpuKey
from gputop.model.process import GpuProcess
from gputop.model.reading import Absent
from gputop.model.workload import Holder


class Naming:
    """Joins holders to workloads by id, and remembers those whose workload is not told yet.

    Args:
        workloads: The table of workloads.
    """

    def __init__(self, workloads: Workloads) -> None:
        self._workloads = workloads
        self._waiting: dict[str, set[GpuKey]] = {}

    def holder(self, holder: Holder, gpu: GpuKey) -> Holder:
        """Return a holder with its workload's namespace and name, as it is where no workload has its id.

        The reason of the holder is kept, and that of the join put behind it.
        """
        if not holder.uid or (holder.namespace and holder.name):
            return holder
        state = self._workloads.by_uid(holder.uid, gpu.cluster)
        if state is None or state.workload.scheduler != holder.scheduler:
            self._waiting.setdefault(holder.uid, set()).add(gpu)
            return holder
        told = state.workload
        how = f"{holder.how}; named by its id in {state.origin.source}".removeprefix("; ")
        return msgspec.structs.replace(
            holder, namespace=told.namespace or holder.namespace, name=told.name or holder.name, how=how
        )

    def holders(self, holders: tuple[Holder, ...], gpu: GpuKey) -> tuple[Holder, ...]:
        """Return holders under their full names; the same object where none has another one."""
        named = tuple([self.holder(h, gpu) for h in holders])
        return holders if named == holders else named

    def processes(self, processes: tuple[GpuProcess, ...] | Absent, gpu: GpuKey) -> tuple[GpuProcess, ...] | Absent:
        """Return processes with their holders under their full names."""
        if isinstance(processes, Absent):
            return processes
        return tuple([self._process(p, gpu) for p in processes])

    def _process(self, process: GpuProcess, gpu: GpuKey) -> GpuProcess:
        if process.holder is None:
            return process
        named = self.holder(process.holder, gpu)
        return process if named is process.holder else msgspec.structs.replace(process, holder=named)

    def take_waiting(self, uid: str) -> frozenset[GpuKey]:
        """Return the GPUs that a workload without its name was told on, and wait for it no more."""
        return frozenset(self._waiting.pop(uid, ()))

    def move(self, old: GpuKey, new: GpuKey | None) -> None:
        """Let the row `new` wait for `old`; None for a row that is gone."""
        for uid in [uid for uid, gpus in self._waiting.items() if old in gpus]:
            gpus = self._waiting[uid]
            gpus.discard(old)
            if new is not None:
                gpus.add(new)
            if not gpus:
                del self._waiting[uid]
