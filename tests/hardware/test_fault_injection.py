"""Injected faults: time and condition, and their effect on items of a connection."""

from typing import NamedTuple

import pytest

from cosim.execution.hardware.emulation.fault_injection import FaultyConnection, InjectedFault
from tests.hardware.emulation_helpers import spec
from tests.kit.clock import MS


def active(fault, times, value=lambda signal: 0.0):
    return [t for t in times if fault.active(t, True, value)]


def test_a_fault_at_a_time_is_active_for_its_duration():
    times = [0.0, 0.9, 1.0, 1.2, 1.4, 1.5, 9.0]
    assert active(InjectedFault(spec(at=1.0, duration=0.5)), times) == [1.0, 1.2, 1.4]
    assert active(InjectedFault(spec(at=1.0)), times) == [1.0, 1.2, 1.4, 1.5, 9.0]
    assert active(InjectedFault(spec()), times) == times


@pytest.mark.parametrize("factor", [1.0, -1.0])
def test_a_fault_on_a_condition_counts_from_when_that_first_held(factor):
    """Also when it does not hold any more."""
    fault, times = (
        InjectedFault(spec(at=0.25, duration=0.5, signal="a/position", factor=factor, bound=factor * 3.0)),
        [],
    )
    asked = []

    def value(signal):
        asked.append(signal)
        return factor * (4.0 if times[-1] == 1.0 else 3.0)

    found = []
    for t in (0.0, 0.5, 1.0, 1.125, 1.25, 1.625, 1.75, 3.0):
        times.append(t)
        if fault.active(t, True, value):
            found.append(t)
    assert found == [1.25, 1.625]
    assert asked == ["a/position"] * 3  # it is not asked for again


def test_a_condition_is_not_evaluated_before_the_run():
    fault = InjectedFault(spec(signal="a/position", bound=3.0))
    assert not fault.active(0.0, False, lambda signal: 4.0)
    assert not fault.active(1.0, True, lambda signal: 3.0)
    assert fault.active(2.0, True, lambda signal: 4.0) and fault.begun == 2.0


class Item(NamedTuple):
    id: int
    data: bytes


def through(seed=1, n=1000, inward=True, data=b"abc", **specs):
    line = FaultyConnection(seed)
    line.begin([spec(kind, **keys) for kind, keys in specs.items()])
    return line.through([Item(k, data) for k in range(n)], 0, inward), line


def test_what_gets_through():
    items, line = through()
    assert [item.id for item in items] == list(range(1000)) and not line.cut
    # what is dropped is gone and what is doubled comes twice in a row
    assert through(drop={})[0] == []
    items, _ = through(n=3, duplicate={})
    assert [item.id for item in items] == [0, 0, 1, 1, 2, 2]
    # nothing is lost where some is reordered
    items, line = through(reorder={"fraction": 0.3})
    found = [item.id for item in items] + [item.id for item in line.due(0, True)]
    assert sorted(found) == list(range(1000)) and found != sorted(found)
    assert max(abs(k - number) for k, number in enumerate(found)) == 1


@pytest.mark.parametrize("kind", ["drop", "duplicate", "corrupt"])
def test_a_fraction_of_the_items_is_affected_and_reproducible_by_the_seed(kind):
    items, _ = through(**{kind: {"fraction": 0.2}})
    same, _ = through(**{kind: {"fraction": 0.2}})
    others, _ = through(seed=2, **{kind: {"fraction": 0.2}})
    assert items == same != others
    count = {"drop": 1000 - len(items), "duplicate": len(items) - 1000}
    hit = count.get(kind, sum(item.data != b"abc" for item in items))
    assert 150 < hit < 250


@pytest.mark.parametrize("data", [b"\x00", bytes(range(64))])
def test_one_bit_of_what_is_corrupt_is_another(data):
    for item in through(n=200, data=data, corrupt={})[0]:
        assert len(item.data) == len(data)
        assert sum((x ^ y).bit_count() for x, y in zip(item.data, data, strict=True)) == 1
    line = FaultyConnection(1)
    line.begin([spec("corrupt")])
    (chunk,) = line.through([data], 0, True)  # a serial line carries bytes
    assert isinstance(chunk, bytes) and sum((x ^ y).bit_count() for x, y in zip(chunk, data, strict=True)) == 1
    assert line.through([Item(7, b"")], 0, True) == [Item(7, b"")]  # which has no bits


def test_what_is_late_comes_in_order_when_it_is_due():
    line = FaultyConnection(1)
    line.begin([spec("delay", delay=0.010)])
    for t_ns, inward in ((0, True), (1 * MS, False), (2 * MS, True)):
        assert line.through([t_ns], t_ns, inward) == []
    assert line.due(9 * MS, True) == []
    assert line.due(12 * MS, True) == [0, 2 * MS]
    assert line.due(12 * MS, True) == [] and line.due(12 * MS, False) == [1 * MS]
    line.begin([])
    assert line.through([5], 13 * MS, True) == [5]


def test_late_answers_delay_what_the_drives_send_alone():
    line = FaultyConnection(1)
    line.begin([spec("late_answers", delay=0.010)])
    assert line.through([1], 0, True) == [1]
    assert line.through([2], 0, False) == []
    assert line.due(9 * MS, False) == [] and line.due(10 * MS, True) == []
    assert line.due(10 * MS, False) == [2]
    line.begin([spec("delay", delay=0.010), spec("late_answers", delay=0.005)])
    assert line.through([3], 0, False) == line.due(14 * MS, False) == []
    assert line.due(15 * MS, False) == [3]


def test_what_is_late_still_comes_after_the_fault_has_ended():
    line = FaultyConnection(1)
    line.begin([spec("delay", delay=0.010)])
    line.through([1], 0, True)
    line.begin([])
    assert line.due(10 * MS, True) == [1]


@pytest.mark.parametrize("kind", ["bus_off", "power_loss"])
def test_no_item_passes_a_cut_connection(kind):
    items, line = through(delay={}, **{kind: {}})
    assert items == [] and line.cut
    assert line.due(10**12, True) == []
    line.begin([])
    assert not line.cut and line.through([1], 0, False) == [1]


def test_what_is_reordered_comes_behind_the_next_item_or_later():
    line = FaultyConnection(1)
    line.begin([spec("reorder")])
    assert line.through([1, 2, 3], 0, True) == [2, 1]
    assert line.due(0, False) == [] and line.due(0, True) == [3] and line.due(1, True) == []
    assert line.through([4], 2 * MS, True) == [] and line.through([5], 2 * MS, False) == []
    line.begin([])
    assert line.through([6], 3 * MS, True) == [6]
    assert line.due(3 * MS, True) == [4] and line.due(3 * MS, False) == [5]
