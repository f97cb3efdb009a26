"""A board in MIG mode: what it has no more is "n/a", as nobody owes it."""

from gputop.fleet import Fleet, GpuState
from gputop.fleet.allocation import Allocation, count
from gputop.model.reading import NOT_SUPPORTED
from tests.unit.fleet.build import NVML, PROMETHEUS, gpu, rows, tell

RATES = ("utilization", "memory_utilization", "encoder_utilization", "decoder_utilization")


def _row(fleet: Fleet) -> GpuState:
    (row,) = rows(fleet)
    return row


def test_what_exporters_leave_out_of_a_board_in_mig_mode_is_not_a_gap() -> None:
    fleet = Fleet()
    tell(fleet, PROMETHEUS, 10.0, gpu("h", 0, mig_mode=1.0, temperature_c=40.0))
    readings = _row(fleet).readings
    assert {readings[q].state(99.0) for q in RATES} == {"n/a"}
    assert readings["utilization"].absent is not None
    assert "instances" in readings["utilization"].absent.reason


def test_a_board_that_is_not_in_mig_mode_has_a_gap() -> None:
    fleet = Fleet()
    tell(fleet, PROMETHEUS, 10.0, gpu("h", 0, mig_mode=0.0, temperature_c=40.0))
    tell(fleet, NVML, 10.0, gpu("h", 0, temperature_c=40.0))
    assert not _row(fleet).readings.keys() & set(RATES)


def test_a_number_that_is_told_stands_while_it_is_fresh() -> None:
    fleet = Fleet()
    tell(fleet, PROMETHEUS, 10.0, gpu("h", 0, utilization=30.0))
    tell(fleet, PROMETHEUS, 12.0, gpu("h", 0, mig_mode=1.0))
    assert _row(fleet).readings["utilization"].number == 30.0
    tell(fleet, PROMETHEUS, 40.0, gpu("h", 0, mig_mode=1.0))
    assert _row(fleet).readings["utilization"].state(40.0) == "n/a", "from before the mode was turned on"


def test_what_the_driver_says_of_it_stands() -> None:
    fleet = Fleet()
    tell(fleet, NVML, 10.0, gpu("h", 0, mig_mode=1.0, utilization=NOT_SUPPORTED))
    assert _row(fleet).readings["utilization"].value is NOT_SUPPORTED


def test_without_mig_mode_it_is_a_gap_again_until_it_is_told() -> None:
    fleet = Fleet()
    tell(fleet, PROMETHEUS, 10.0, gpu("h", 0, mig_mode=1.0))
    tell(fleet, PROMETHEUS, 12.0, gpu("h", 0, mig_mode=0.0))
    assert "utilization" not in _row(fleet).readings
    tell(fleet, PROMETHEUS, 14.0, gpu("h", 0, mig_mode=0.0, utilization=7.0))
    assert _row(fleet).readings["utilization"].number == 7.0


def _told(resource: str, n: float | None, free: float | None = 0.0) -> Allocation:
    used = None if n is None or free is None else n - free
    return Allocation(resource, n, n, used, free)


def test_instances_count_where_a_node_advertises_no_whole_board() -> None:
    mig = (_told("nvidia.com/mig-1g.10gb", 4.0, 3.0), _told("nvidia.com/mig-2g.20gb", 2.0, 2.0))
    counted = count((_told("nvidia.com/gpu", 0.0), *mig), 1)
    assert counted.unit == "mig_instances"
    assert counted.shown is not None
    assert (counted.shown.advertised, counted.shown.used, counted.shown.free) == (6.0, 1.0, 5.0)
    assert counted.free_boards == 0.0


def test_whole_boards_count_where_there_are_some() -> None:
    counted = count((_told("nvidia.com/gpu", 2.0, 1.0), _told("nvidia.com/mig-1g.10gb", 4.0)), 4)
    assert (counted.unit, counted.shown, counted.free_boards) == ("gpus", counted.whole, 1.0)
    assert counted.mig is not None


def test_a_node_whose_boards_all_failed_still_counts_boards() -> None:
    counted = count((_told("nvidia.com/gpu", 0.0), _told("nvidia.com/mig-1g.10gb", 0.0)), 8)
    assert (counted.unit, counted.shown) == ("gpus", counted.whole)


def test_a_part_that_nobody_tells_makes_the_sum_unknown() -> None:
    parts = (_told("nvidia.com/mig-1g.10gb", 4.0, None), _told("nvidia.com/mig-2g.20gb", 2.0, 2.0))
    shown = count(parts, 1).shown
    assert shown is not None
    assert (shown.advertised, shown.used, shown.free) == (6.0, None, None)


def test_replicas_are_shares_under_either_name() -> None:
    assert count((_told("nvidia.com/gpu", 8.0, 8.0),), 2).unit == "shares"
    renamed = count((_told("nvidia.com/gpu", 0.0), _told("nvidia.com/gpu.shared", 8.0, 7.0)), 2)
    assert (renamed.unit, renamed.free_boards) == ("shares", None)
    assert renamed.shown is not None
    assert renamed.shown.free == 7.0


def test_other_devices_are_no_gpus() -> None:
    counted = count((_told("nvidia.com/hostdev", 8.0), _told("habana.ai/gaudi", 8.0)), 2)
    assert (counted.shown, counted.unit, counted.free_boards) == (None, "", None)
