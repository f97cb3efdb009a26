"""The table of reads, frames, marks, and the picture the parent makes of frames."""

import os
import struct
import subprocess
import sys

import pytest

from gputop.model.facts import GpuFact, HoldersFact, Presence, ProcessesFact, Roster, XidFact
from gputop.model.process import GpuProcess
from gputop.model.quantity import QUANTITIES, Level
from gputop.model.reading import NOT_SUPPORTED, Absent
from gputop.model.workload import Holder
from gputop.sources.nvml import cadence, errors, gpm, nvlink
from gputop.sources.nvml.fields import READS
from gputop.sources.nvml.marker import MarkerPage
from gputop.sources.nvml.picture import Identities, Picture
from gputop.sources.nvml.protocol import (
    DeviceInfo,
    Devices,
    DeviceSample,
    FrameError,
    Frames,
    Plan,
    Processes,
    ProcessTable,
    Sample,
    State,
    XidEvent,
    down_decoder,
    frame,
    up_decoder,
)
from gputop.sources.nvml.ways import Call, Field

# Not NVML's to tell: the last Xid is an event there, the expected number a matter of configuration, the lower
# bound of the total is for exporters that leave out the reserved part, and judgements and windows are theirs.
_NOT_NVML = {
    *("last_xid", "gpus_expected", "memory_total_at_least_mib", "exporter_health", "clock_events_lately"),
    *("violation_power", "violation_thermal", "violation_sync_boost"),
    *("violation_board_limit", "violation_low_utilization", "violation_reliability"),
}
_ELSEWHERE = {"power_meaning", "mig_profile", "nvlink_throughput_bytes_per_s"}


def test_every_quantity_of_a_device_has_a_way() -> None:
    told = {quantity for read in READS for quantity in read.quantities}
    told |= nvlink.QUANTITIES | gpm.QUANTITIES | _ELSEWHERE | _NOT_NVML
    wanted = {q.id for q in QUANTITIES.values() if q.level is not Level.NODE}
    assert wanted - told == set()
    assert {q for read in READS for q in read.quantities} <= QUANTITIES.keys()


def test_no_reading_stands_twice_in_the_table() -> None:
    first = [read.quantities[0] for read in READS]
    assert len(first) == len(set(first))


def test_each_way_gives_what_its_line_promises() -> None:
    for read in READS:
        for way in read.ways:
            if isinstance(way, Call):
                assert {take.quantity for take in way.takes} == set(read.quantities), way.function
            else:
                assert isinstance(way, Field)
        assert 0 <= read.group < len(cadence.CADENCES)


def test_only_what_cannot_change_is_settled() -> None:
    settled = {code for code, known in errors.RETURNS.items() if known.absent is not None}
    assert {3, 13} <= settled
    assert settled.isdisjoint({4, 10, 15, 16, 17, 20, 27, 999})


def test_frames_in_pieces_of_one_byte() -> None:
    sample = Sample(
        0,
        (DeviceSample(3, 1.5, full=True, values={"power_w": 1.0, "model": "x", "ecc_mode": NOT_SUPPORTED}),),
        1.0,
    )
    data = frame(sample) + frame(Devices(()))
    frames = Frames()
    bodies = [body for index in range(len(data)) for body in frames.feed(data[index : index + 1])]
    decoder = up_decoder()
    assert [decoder.decode(body) for body in bodies] == [sample, Devices(())]


def test_a_plan_survives_the_pipe() -> None:
    plan = Plan(frozenset({"power_w", "utilization"}), processes=True, profiling=False, interval_s=0.5)
    (body,) = Frames().feed(frame(plan))
    assert down_decoder().decode(body) == plan


def test_bytes_that_are_no_frames_are_refused() -> None:
    with pytest.raises(FrameError):
        Frames().feed(b"Segmentation fault (core dumped)")
    with pytest.raises(FrameError):
        Frames().feed(struct.pack("<I", 2**31))


def test_a_mark_is_seen_from_another_process() -> None:
    page = MarkerPage()
    os.set_inheritable(page.fd, True)
    script = (
        "import sys; from gputop.sources.nvml.marker import Marker;"
        f"Marker({page.fd}).begin(3, b'nvmlDeviceGetPowerUsage');"
        "print('begun', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[page.fd]
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"begun\n"
    pending = page.pending()
    child.communicate()
    assert pending is not None
    assert (pending.device, pending.call) == (3, "nvmlDeviceGetPowerUsage")
    assert pending.seconds >= 0.0
    page.close()


UUID = "GPU-00000000-0000-0000-0000-000000000000"


def picture(identities: Identities | None = None) -> Picture:
    made = Picture("nvml", "node-a", identities or Identities())
    made.devices(Devices((DeviceInfo(0, 0, UUID, "00000000:1b:00.0"), DeviceInfo(1, 1, "", "00000000:2c:00.0"))))
    return made


def test_unchanged_readings_are_stamped_anew() -> None:
    known = picture()
    known.sample(Sample(0, (DeviceSample(0, 10.0, full=True, values={"power_w": 1.0, "utilization": 5.0}),), 1.0))
    batch = known.sample(Sample(0, (DeviceSample(0, 11.0, full=False, values={"utilization": 6.0}),), 1.0))
    assert batch is not None
    (fact,) = batch.facts
    assert isinstance(fact, GpuFact)
    assert fact.at == 11.0
    assert fact.readings == {"power_w": 1.0, "utilization": 6.0}


def test_readings_already_given_away_are_not_changed() -> None:
    known = picture()
    first = known.sample(Sample(0, (DeviceSample(0, 10.0, full=True, values={"power_w": 1.0}),), 1.0))
    known.sample(Sample(0, (DeviceSample(0, 11.0, full=False, values={"power_w": 2.0}),), 1.0))
    assert first is not None
    (fact,) = first.facts
    assert isinstance(fact, GpuFact)
    assert fact.readings == {"power_w": 1.0}


def test_a_device_that_did_not_answer_is_not_stamped() -> None:
    known = picture()
    for slot in (0, 1):
        known.sample(Sample(0, (DeviceSample(slot, 10.0, full=True, values={"power_w": 1.0}),), 1.0))
    batch = known.sample(Sample(0, (DeviceSample(0, 11.0, full=False, values={}),), 1.0))
    assert batch is not None
    assert [fact.ref.index for fact in batch.facts if isinstance(fact, GpuFact)] == [0]


def test_stale_follows_the_cadence() -> None:
    known = picture()
    fast = known.sample(Sample(0, (DeviceSample(0, 10.0, full=True, values={"power_w": 1.0}),), 1.0))
    slow = known.sample(Sample(2, (DeviceSample(0, 10.0, full=True, values={"ecc_mode": 1.0}),), 30.0))
    assert fast is not None
    assert slow is not None
    assert (fast.stale_after_s, slow.stale_after_s) == (5.0, 90.0)


def test_a_board_without_a_uuid_is_known_again_by_its_place() -> None:
    identities = Identities()
    picture(identities)
    later = Picture("nvml", "node-a", identities)
    later.devices(Devices((DeviceInfo(0, 4, "", "00000000:1b:00.0"), DeviceInfo(1, 0, "", ""))))
    assert later.refs[0].uuid == UUID
    # Its index alone does not tell.
    assert later.refs[1].uuid == ""


def test_states_and_xids_become_facts() -> None:
    known = picture()
    fact = known.state(State(1, Presence.LOST, "the GPU has fallen off the bus (GPU_IS_LOST, 15)", 5.0))
    assert fact is not None
    assert (fact.presence, fact.readings) == (Presence.LOST, {})
    assert [ref.index for ref, _ in known.failing()] == [1]
    batch = known.xid(XidEvent(0, 79, 12.0))
    assert batch is not None
    (xid,) = batch.facts
    assert isinstance(xid, XidFact)
    assert (xid.xid, xid.at, xid.ref.uuid) == (79, 12.0, UUID)


def process(pid: int, holder: Holder | None) -> GpuProcess:
    return GpuProcess(pid, "C", 1.0, 0.0, 0.0, 0.0, "root", "x", 1.0, holder)


def test_processes_name_the_holders_of_their_gpu() -> None:
    known = picture()
    pod = Holder("kubernetes", name="llama-ft-0", uid="u")
    table = (process(1, pod), process(2, pod), process(3, None))
    batch = known.processes(Processes(1.0, (ProcessTable(0, table),), 2.0))
    assert batch is not None
    assert [type(fact) for fact in batch.facts] == [ProcessesFact, HoldersFact]
    holders = batch.facts[1]
    assert isinstance(holders, HoldersFact)
    assert holders.holders == (pod,)
    again = known.processes(Processes(3.0, (ProcessTable(0, None),), 2.0))
    assert again is not None
    assert again.facts == batch.facts
    assert again.at == 3.0


def test_tables_that_cannot_be_told_name_nobody() -> None:
    known = picture()
    batch = known.processes(Processes(1.0, (ProcessTable(0, Absent("n/a", "not_supported", "x")),), 2.0))
    assert batch is not None
    assert [type(fact) for fact in batch.facts] == [ProcessesFact]


def test_the_roster_holds_what_another_child_waits_on() -> None:
    known = picture()
    other = Picture("nvml", "node-a", Identities())
    other.devices(Devices((DeviceInfo(0, 3, "", "00000000:3d:00.0"),)))
    roster = known.roster(other.refs.values())
    assert isinstance(roster, Roster)
    assert [ref.index for ref in roster.gpus] == [0, 1, 3]
