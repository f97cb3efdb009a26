"""The NVML source: starts the child, turns its frames into batches, and is never held up by it."""

import asyncio
import socket
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from gputop.model.facts import Batch, Fact, GpuFact, NodeTrouble, Presence, Roster
from gputop.model.identity import GpuRef, NodeRef
from gputop.model.status import Cost, Finding, SourceState
from gputop.sources.base import Demand, DemandBoard, SourceError
from gputop.sources.nvml import cadence
from gputop.sources.nvml.marker import NO_DEVICE, Pending
from gputop.sources.nvml.picture import Identities, Picture
from gputop.sources.nvml.protocol import (
    Costs,
    Devices,
    Host,
    NoNvml,
    Notes,
    Plan,
    Processes,
    Refresh,
    Restart,
    RoundDone,
    Sample,
    Skip,
    State,
    Up,
    XidEvent,
    up_decoder,
)
from gputop.sources.nvml.reader import Reader
from gputop.sources.nvml.spawn import ChildProcess, default_command, wait_for_end

_PROBE_AGAIN_S: Final = 30.0
_CHECK_S: Final = 0.5
_SLOW_CALL_S: Final = 1.0
"""A call that takes longer than this is named while frames stay away."""
_PATIENCE_S: Final = 2.0
_REPLACE_AFTER_S: Final = 5.0
_MOST_STUCK: Final = 3
_MOST_RESTARTS: Final = 5
_RESTARTS_WITHIN_S: Final = 60.0
_CLOSE_S: Final = 0.15

# The severity of a trouble by its code; others are warnings.
_SEVERITIES: Final = {"driver_mismatch": "critical", "asleep": "info", "no_gpu": "info", "no_library": "info"}


class NvmlSource:
    """Local GPUs.

    Args:
        host: Name of this node; the machine's own by default.
        command: Program and first arguments of the child; the child's options are added. The demo puts
            its stand-in for the library in front with it.
        found: How it was found.
        proc_root: Where procfs is mounted.
        sys_root: Where sysfs is mounted.
    """

    name = "nvml"
    kind = "nvml"

    def __init__(
        self,
        host: str | None = None,
        command: Sequence[str] | None = None,
        found: str = "",
        proc_root: str | Path = "/proc",
        sys_root: str | Path = "/sys",
    ) -> None:
        self.host = host or socket.gethostname()
        self.found = found
        self.target = f"libnvidia-ml.so.1 on {self.host}"
        self.deadline_s = _PATIENCE_S
        self._command = tuple(command) if command else default_command()
        self._options = ("--host", self.host, "--proc-root", str(proc_root), "--sys-root", str(sys_root))
        self._node = NodeRef(self.host)
        self._decoder = up_decoder()
        self._identities = Identities()
        self._demand = Demand()
        self._current: Reader | None = None
        self._stuck: list[Reader] = []
        self._news = asyncio.Event()
        self._troubles: set[str] = set()
        self._restarts: deque[float] = deque(maxlen=_MOST_RESTARTS)
        self._spent = Cost()
        self._known_refs: tuple[GpuRef, ...] = ()
        self._last_host: Host | None = None

    # What the supervisor asks.

    def trouble(self) -> str:
        """Return what does not answer, or ""."""
        readers = [*self._stuck, *([self._current] if self._current else [])]
        waits = [_words_for(pending) for reader in readers if (pending := self._overdue(reader))]
        if waits:
            return "; ".join(waits)
        reader = self._current
        if reader is None:
            return ""
        if self._late(reader):
            return f"the NVML reader has not answered for {self._silence(reader):.0f} s"
        failing = reader.picture.failing()
        if not failing:
            return ""
        ref, reason = failing[0]
        first = f"GPU {ref.index}: {reason}"
        if len(failing) == 1:
            return first
        boards = sum(1 for one in reader.picture.refs.values() if not one.is_instance)
        return f"{len(failing)} of {boards} GPUs fail, {first}"

    def versions(self) -> tuple[tuple[str, str], ...]:
        """Return the versions of driver, kernel module, CUDA driver API and library."""
        if self._current is not None and self._current.picture.host is not None:
            self._last_host = self._current.picture.host
        host = self._last_host
        if host is None:
            return ()
        names = {
            "driver_version": "driver",
            "kernel_driver_version": "kernel module",
            "cuda_version": "CUDA",
            "nvml_version": "NVML",
        }
        return tuple(
            (word, value) for quantity, word in names.items() if isinstance(value := host.readings.get(quantity), str)
        )

    def findings(self) -> tuple[Finding, ...]:
        """Return what the child may see and lacks, and GPUs that other drivers hold."""
        reader = self._current
        if reader is None:
            return ()
        held: dict[str, int] = {}
        for gpu in (reader.picture.host.pci if reader.picture.host else None) or ():
            if gpu.driver != "nvidia":
                held[gpu.driver or ""] = held.get(gpu.driver or "", 0) + 1
        others = tuple(
            Finding(f"{count} of the PCI bus's NVIDIA GPUs: " + (f"held by {driver}" if driver else "no driver"))
            for driver, count in sorted(held.items())
        )
        left = len(self._stuck)
        waiting = (
            (Finding(f"{left} NVML readers wait in the driver and end when it answers", severity="warning"),)
            if left
            else ()
        )
        return reader.notes + others + waiting

    def cost(self) -> Cost:
        """Return what all children so far have cost; the slowest calls are the present child's."""
        readers = [*self._stuck, *([self._current] if self._current else [])]
        last = self._current.costs if self._current else Costs(0.0, 0, 0.0, ())
        return Cost(
            requests=self._spent.requests + sum(reader.costs.calls for reader in readers),
            bytes_read=self._spent.bytes_read + sum(reader.process.bytes_read for reader in readers),
            cpu_s=self._spent.cpu_s + sum(reader.costs.cpu_s for reader in readers),
            last_s=last.round_s if last.calls else None,
            slowest=last.slowest,
        )

    async def aclose(self) -> None:
        """End every child, waiting no longer than a moment: one that is stuck ends when it can."""
        readers = [*self._stuck, *([self._current] if self._current else [])]
        for reader in readers:
            self._drop(reader)
        self._current = None
        self._stuck = []
        await wait_for_end([reader.process for reader in readers], _CLOSE_S)

    # The stream.

    async def batches(self, board: DemandBoard) -> AsyncIterator[Batch]:
        """Read until cancelled.

        Raises:
            SourceError: NVML cannot be used (with the reason), or the child has died.
        """
        if sys.platform != "linux":
            raise SourceError("NVML is read on Linux only", retry_s=3600.0)
        await self.aclose()
        self._demand = board.current
        watch = asyncio.create_task(self._watch(board), name="nvml demand")
        try:
            self._current = self._start(())
            while True:
                for batch in self._take_news():
                    yield batch
                if self._current is not None and self._current.process.ended:
                    # The pipe closes a little before the process can be asked how it ended.
                    await wait_for_end([self._current.process], _CLOSE_S)
                more, error = self._look_after()
                for batch in more:
                    yield batch
                if error is not None:
                    raise error
                await self._wait()
        finally:
            watch.cancel()
            await self.aclose()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._check_interval()):
                await self._news.wait()
        except TimeoutError:
            return

    def _check_interval(self) -> float:
        """Return for how long nothing needs to be looked at while no frame comes."""
        reader = self._current
        if self._stuck or reader is None or self._late(reader):
            return _CHECK_S
        return max(_CHECK_S, self._patience() - self._silence(reader) + 0.05)

    async def _watch(self, board: DemandBoard) -> None:
        """Tell the child whenever something else is wanted, or the same again at once."""
        while True:
            await board.wait(3600.0)
            reader = self._current
            if board.current != self._demand:
                self._demand = board.current
                if reader is not None:
                    reader.process.send(self._plan(reader.skip))
            elif reader is not None:
                reader.process.send(Refresh())

    def _plan(self, skip: tuple[Skip, ...]) -> Plan:
        demand = self._demand
        self.deadline_s = self._patience()
        return Plan(demand.quantities, demand.processes, demand.profiling, demand.interval_s, skip)

    def _start(self, skip: tuple[Skip, ...]) -> Reader:
        self._news.clear()
        try:
            process = ChildProcess(self._command, self._options, self._news.set)
        except OSError as error:
            raise SourceError(f"the NVML reader cannot be started: {error.strerror}") from error
        process.send(self._plan(skip))
        return Reader(process, Picture(self.name, self.host, self._identities), skip)

    def _drop(self, reader: Reader) -> None:
        spent = self._spent
        self._spent = Cost(
            requests=spent.requests + reader.costs.calls,
            bytes_read=spent.bytes_read + reader.process.bytes_read,
            cpu_s=spent.cpu_s + reader.costs.cpu_s,
        )
        reader.process.close()

    # Frames.

    def _take_news(self) -> list[Batch]:
        self._news.clear()
        batches = self._welcome_back()
        reader = self._current
        if reader is None:
            return batches
        while reader.process.bodies:
            message = self._decode(reader)
            if isinstance(message, RoundDone):
                self._end_round(reader, batches)
            elif message is not None:
                batches += self._take(reader, message)
        return batches

    def _decode(self, reader: Reader) -> Up | None:
        try:
            return self._decoder.decode(reader.process.bodies.popleft())
        except msgspec.MsgspecError as error:
            reader.process.broken = f"what the NVML reader says cannot be read: {error}"
            reader.process.ended = True
            reader.process.bodies.clear()
            return None

    def _end_round(self, reader: Reader, batches: list[Batch]) -> None:
        if batches:
            batches[-1] = msgspec.structs.replace(batches[-1], round_done=True)
        else:
            done = reader.picture.batch(time.time(), self._demand.interval_s, ())
            batches.append(msgspec.structs.replace(done, round_done=True))

    def _take(self, reader: Reader, message: Up) -> list[Batch]:  # noqa: PLR0911  (one line a message)
        picture = reader.picture
        match message:
            case Sample():
                return self._sample(reader, message)
            case Processes():
                return _some(picture.processes(message))
            case Host():
                return [picture.node(message)]
            case Devices():
                return self._devices(reader, message)
            case State():
                fact = picture.state(message)
                return [picture.batch(message.at, cadence.HOST_S, (fact,))] if fact else []
            case XidEvent():
                return _some(picture.xid(message))
            case Costs():
                reader.costs = message
            case Notes():
                reader.notes = message.findings
            case NoNvml():
                reader.refusal = message
            case Restart():
                reader.restart = message.reason
            case RoundDone():
                return []
        return []

    def _sample(self, reader: Reader, message: Sample) -> list[Batch]:
        batches = _some(reader.picture.sample(message))
        if message.group == cadence.MEDIUM:
            # Said again with its time, so that "listed" does not grow old.
            roster = reader.picture.roster(self._stuck_refs())
            batches.append(reader.picture.batch(time.time(), message.interval_s, (roster,)))
        return batches

    def _devices(self, reader: Reader, message: Devices) -> list[Batch]:
        reader.picture.devices(message)
        roster = reader.picture.roster(self._stuck_refs())
        self._known_refs = roster.gpus
        facts: list[Fact] = [roster, *self._end_troubles()]
        return [reader.picture.batch(time.time(), cadence.CADENCES[cadence.MEDIUM].at_least_s, facts)]

    def _end_troubles(self) -> list[NodeTrouble]:
        ended = [NodeTrouble(self._node, code, "") for code in sorted(self._troubles)]
        self._troubles.clear()
        return ended

    # Children that die, hang and come back.

    def _look_after(self) -> tuple[list[Batch], SourceError | None]:
        """Deal with a child that has ended or is stuck; return the error when there is no going on."""
        for reader in [reader for reader in self._stuck if reader.process.ended]:
            self._stuck.remove(reader)
            self._drop(reader)
        reader = self._current
        if reader is None or reader.process.bodies:
            return [], None
        self._end_idle(reader)
        if reader.process.ended:
            return self._ended(reader)
        return self._replace_stuck(reader), None

    def _end_idle(self, reader: Reader) -> None:
        """End a child that has fallen silent outside of any call: nothing in the driver would be cut short.

        Counted from when it was first found so: after a suspension of this process all clocks look late.
        """
        now = asyncio.get_running_loop().time()
        process = reader.process
        if process.ended or not self._late(reader) or not (process.pending() is None or process.is_stopped()):
            reader.idle_since = None
        elif reader.idle_since is None:
            reader.idle_since = now
        elif now - reader.idle_since >= _REPLACE_AFTER_S:
            how = "was stopped and" if process.is_stopped() else "was in no NVML call and"
            process.kill(f"the NVML reader {how} had not answered for {self._silence(reader):.0f} s: it was ended")

    def _ended(self, reader: Reader) -> tuple[list[Batch], SourceError | None]:
        refusal = reader.refusal
        if refusal is not None:
            state = SourceState.DENIED if refusal.denied else SourceState.DOWN
            error = SourceError(refusal.text, state, _PROBE_AGAIN_S)
            return [self._failure(reader, refusal.code, refusal.text)], error
        if not reader.restart:
            return [], SourceError(reader.process.epitaph())
        now = asyncio.get_running_loop().time()
        recent = sum(1 for at in self._restarts if now - at < _RESTARTS_WITHIN_S)
        if recent >= _MOST_RESTARTS:
            text = f"{reader.restart}, {recent} times within a minute"
            return [self._failure(reader, "restarting", text)], SourceError(text, retry_s=_PROBE_AGAIN_S)
        self._restarts.append(now)
        self._drop(reader)
        self._current = self._start(reader.skip)
        return [], None

    def _failure(self, reader: Reader, code: str, text: str) -> Batch:
        """Return word of why NVML tells nothing: a trouble of the node, and its GPUs unknown, not gone."""
        ended = [trouble for trouble in self._end_troubles() if trouble.code != code]
        self._troubles.add(code)
        trouble = NodeTrouble(self._node, code, text, _SEVERITIES.get(code, "warning"))
        roster = Roster(self._node, self._known_refs, silent=text)
        return reader.picture.batch(time.time(), cadence.HOST_S, (*ended, trouble, roster))

    def _replace_stuck(self, reader: Reader) -> list[Batch]:
        """Leave a child that is stuck on one GPU to wait there, and start another for the other GPUs."""
        pending = reader.process.pending()
        if (
            pending is None
            or pending.device == NO_DEVICE
            or pending.seconds < _REPLACE_AFTER_S
            or len(self._stuck) >= _MOST_STUCK
            or reader.process.is_stopped()
        ):
            return []
        known = (*reader.picture.refs.values(), *self._known_refs)
        ref = next(
            (ref for ref in known if ref.index == pending.device and not ref.is_instance),
            GpuRef(self.host, index=pending.device),
        )
        reader.stuck_on = ref
        self._stuck.append(reader)
        self._current = self._start(self._skips())
        since = time.strftime("%H:%M:%S", time.localtime(time.time() - pending.seconds))
        reason = f"{pending.call} has not answered since {since}"
        fact = GpuFact(ref, {}, Presence.ERROR, reason)
        return [reader.picture.batch(time.time(), cadence.HOST_S, (fact,))]

    def _skips(self) -> tuple[Skip, ...]:
        return tuple(Skip(ref.index, ref.bus_id) for reader in self._stuck if (ref := reader.stuck_on))

    def _welcome_back(self) -> list[Batch]:
        """Take a stuck child back once it has read a whole round again: it still has every GPU open."""
        batches: list[Batch] = []
        for reader in list(self._stuck):
            if self._listen(reader, batches):
                self._promote(reader, batches)
        return batches

    def _listen(self, reader: Reader, batches: list[Batch]) -> bool:
        """Take in what a stuck child says; return whether it has read a whole round.

        Its readings are left to the child that took its place, but Xids of the GPU it is stuck on reach
        nobody else: they come from a thread that is not stuck, and are what tells why.
        """
        while reader.process.bodies:
            message = self._decode(reader)
            if isinstance(message, RoundDone):
                return True
            if message is None:
                continue
            told = self._take(reader, message)
            if isinstance(message, XidEvent) and reader.stuck_on is not None:
                ref = reader.picture.refs.get(message.slot)
                if ref is not None and ref.index == reader.stuck_on.index:
                    batches += told
        return False

    def _promote(self, reader: Reader, batches: list[Batch]) -> None:
        self._stuck.remove(reader)
        if self._current is not None:
            self._drop(self._current)
        reader.stuck_on, reader.skip = None, self._skips()
        reader.process.send(self._plan(reader.skip))
        self._current = reader
        picture = reader.picture
        facts: list[Fact] = [picture.roster(self._stuck_refs())]
        facts += [state for slot in picture.refs if (state := picture.state_of(slot))]
        batches.append(picture.batch(time.time(), cadence.HOST_S, facts))

    def _stuck_refs(self) -> list[GpuRef]:
        """Return the GPUs that children are stuck on, with their instances."""
        found: list[GpuRef] = []
        for reader in self._stuck:
            stuck = reader.stuck_on
            if stuck is not None:
                own = [ref for ref in reader.picture.refs.values() if ref.index == stuck.index]
                found += own or [stuck]
        return found

    # How late it is.

    def _patience(self) -> float:
        return max(_PATIENCE_S, 2.0 * self._demand.interval_s + 1.0)

    @staticmethod
    def _silence(reader: Reader) -> float:
        return asyncio.get_running_loop().time() - reader.process.heard_at

    def _late(self, reader: Reader) -> bool:
        return self._silence(reader) > self._patience()

    def _overdue(self, reader: Reader) -> Pending | None:
        pending = None if reader.process.ended else reader.process.pending()
        return pending if pending is not None and pending.seconds >= _SLOW_CALL_S else None


def _words_for(pending: Pending) -> str:
    where = f"GPU {pending.device}: " if pending.device != NO_DEVICE else ""
    return f"{where}{pending.call} has not answered for {pending.seconds:.0f} s"


def _some(batch: Batch | None) -> list[Batch]:
    return [batch] if batch is not None else []
