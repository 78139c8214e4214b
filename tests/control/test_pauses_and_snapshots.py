"""Pauses, single steps and snapshots: a run that continues gives the same values bit for bit."""

from __future__ import annotations

import time

import numpy as np
import pytest

from cosim.errors import RunError
from cosim.execution.scheduler import SchedulerState
from tests.control.stateful_rig import (
    ARM,
    ENGINES,
    STATEFUL,
    engine_of,
    numbers_of,
    read_blocks,
    rows_of,
    started,
)
from tests.kit.levels import one_of_each

# --- pauses -----------------------------------------------------------------------------------------


@one_of_each
@pytest.mark.parametrize("pacing", [{}, {"rate": 10.0}], ids=["fast", "real-time"])
@pytest.mark.parametrize("kind", ENGINES)
def test_a_run_with_pauses_and_single_steps_equals_the_run_without_bit_for_bit(rig_of, scheduler_of, kind, pacing):
    rig = rig_of(STATEFUL)
    scheduler = started(scheduler_of(rig, kind, **pacing))
    blocks = read_blocks(scheduler, 40)
    scheduler.pause()
    assert scheduler.state is SchedulerState.PAUSED
    blocks += read_blocks(scheduler)  # what was done before the pause
    for ticks in (1, 1, 7):
        first = scheduler.engine.number
        scheduler.step(ticks)
        stepped = read_blocks(scheduler)
        assert numbers_of(stepped) == list(range(first, first + ticks)) and scheduler.state is SchedulerState.PAUSED
        blocks += stepped
    scheduler.resume()
    blocks += read_blocks(scheduler, 40)
    scheduler.pause()
    scheduler.resume()
    blocks += read_blocks(scheduler, 40)
    scheduler.stop()
    blocks += read_blocks(scheduler)
    numbers = numbers_of(blocks)
    assert numbers == list(range(scheduler.engine.number)) and len(numbers) > 120
    engine = engine_of(rig, kind)
    engine.open()
    engine.arm()
    np.testing.assert_array_equal(rows_of(blocks), engine.run(len(numbers))[0])


@pytest.mark.parametrize("pacing", [{}, {"rate": 10.0}], ids=["fast", "real-time"])
def test_the_ticks_of_a_run_are_counted_over_its_pauses(rig_of, scheduler_of, pacing):
    scheduler = started(scheduler_of(rig_of(ARM), "machine code", **pacing), 3000)
    blocks = read_blocks(scheduler, 1)
    scheduler.pause()
    scheduler.step(10)
    scheduler.resume()
    blocks += read_blocks(scheduler)
    assert numbers_of(blocks) == list(range(3000)) and scheduler.state is SchedulerState.STOPPED


@pytest.mark.parametrize("kind", ENGINES)
def test_a_pause_does_not_count_as_time_of_the_rig(rig_of, scheduler_of, kind):
    scheduler = started(scheduler_of(rig_of(ARM), kind, rate=2.0))
    read_blocks(scheduler, 20)
    for between in (lambda: time.sleep(0.02), lambda: scheduler.step(50)):
        scheduler.pause()
        between()
        scheduler.resume()
        read_blocks(scheduler, 20 + 50)
    scheduler.stop()
    read_blocks(scheduler)
    timing = scheduler.timing
    assert abs(timing.drift_ns) <= 1 and len(timing.numbers) == scheduler.engine.number - 50
    grid = timing.numbers * 500_000 + timing.stamps[0, 0]
    given_up = timing.stamps[:, 0] - grid
    assert (np.diff(given_up) >= 0).all() and given_up[-1] == timing.slip_ns


def test_stepping_ends_with_the_run(rig_of, scheduler_of):
    scheduler = started(scheduler_of(rig_of(ARM), "machine code"), 40)
    blocks = read_blocks(scheduler, 1)  # 32
    scheduler.pause()
    scheduler.step(100)
    assert numbers_of(blocks + read_blocks(scheduler)) == list(range(40)) and scheduler.state is SchedulerState.STOPPED


def test_a_run_that_ends_before_its_pause_is_not_paused(rig_of, scheduler_of):
    scheduler = started(scheduler_of(rig_of(ARM), "machine code", rate=10.0), 5)
    while scheduler.engine.number < 5:
        time.sleep(1e-3)
    scheduler.mode.future.result()
    scheduler.pause()
    assert scheduler.state is SchedulerState.STOPPED and numbers_of(read_blocks(scheduler)) == list(range(5))


@pytest.mark.parametrize("pacing", [{}, {"rate": 10.0}], ids=["fast", "real-time"])
def test_real_motors_are_not_left_without_commands(rig_of, scheduler_of, pacing):
    scheduler = started(scheduler_of(rig_of(ARM), "Python", hardware=True, **pacing))
    read_blocks(scheduler, 1)
    with pytest.raises(RunError) as caught:
        scheduler.pause()
    assert str(caught.value) == "a rig with real motors cannot be paused; stop it and arm it again"
    assert scheduler.state is SchedulerState.RUNNING
    scheduler.stop()
    snapshot = scheduler.snapshot()
    with pytest.raises(RunError) as caught:
        scheduler.restore(snapshot)
    assert str(caught.value) == "a rig with real motors cannot return to an earlier state; arm it again instead"


# --- snapshots --------------------------------------------------------------------------------------


@one_of_each
@pytest.mark.parametrize("order", [[], ["schedule.order=[write, read, controllers, guard, step, publish]"]])
@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("ticks", [7, 17, 45])
def test_a_run_continues_from_a_snapshot_bit_for_bit_any_number_of_times(rig_of, scheduler_of, kind, ticks, order):
    """Before anything has happened; latched; latched and with a fallback at work."""
    rig = rig_of(STATEFUL, *order)
    scheduler = started(scheduler_of(rig, kind))
    scheduler.pause()
    scheduler.step(ticks)
    read_blocks(scheduler)
    snapshot = scheduler.snapshot()
    fallen = scheduler.engine.view("fallback_active", "second")[0]
    assert (snapshot.number, fallen) == (ticks, float(ticks > 20))
    found = []
    for _ in range(2):
        scheduler.step(60)
        found.append(read_blocks(scheduler))
        scheduler.engine.view("plant")[:] = np.nan
        scheduler.restore(snapshot)
    other = started(scheduler_of(rig, kind))
    other.pause()
    other.step(3)
    read_blocks(other)
    other.restore(snapshot)
    other.step(60)
    found.append(read_blocks(other))
    engine = engine_of(rig, kind)
    engine.open()
    engine.arm()
    expected = engine.run(ticks + 60)[0][ticks:]
    for blocks in found:
        assert numbers_of(blocks) == list(range(ticks, ticks + 60))
        np.testing.assert_array_equal(rows_of(blocks), expected)


def test_a_snapshot_of_one_engine_continues_in_the_other(rig_of, scheduler_of):
    rig, found = rig_of(STATEFUL), []
    for kinds in (("machine code", "Python"), ("machine code", "machine code")):
        first, second = (started(scheduler_of(rig, kind)) for kind in kinds)
        for scheduler in (first, second):
            scheduler.pause()
        first.step(30)
        second.restore(first.snapshot())
        second.step(60)
        found.append(rows_of(read_blocks(second)))
    np.testing.assert_allclose(found[1], found[0], atol=1e-12)


def test_a_snapshot_of_a_fault_is_one_of_what_led_to_it(rig_of, scheduler_of):
    rig = rig_of(ARM, "joints.a.limits={upper: 0.3}")
    scheduler = started(scheduler_of(rig, "machine code"))
    read_blocks(scheduler)
    assert scheduler.state is SchedulerState.FAULT
    before = scheduler.snapshot()
    scheduler.restore(before)
    np.testing.assert_array_equal(scheduler.engine.memory, before.memory)
    assert scheduler.state is SchedulerState.FAULT
