"""Pauses, single steps and snapshots: a run that continues gives the same values bit for bit."""

import time

import numpy as np
import pytest

from cosim.core.errors import RunError
from cosim.execution.scheduler import SchedulerState
from tests.control.stateful_rig import ARM, ENGINES, STATEFUL, engine_of, numbers_of, read_blocks, rows_of, started
from tests.kit.engines import armed
from tests.kit.refusals import raised

paces = pytest.mark.parametrize("pacing", [{}, {"rate": 10.0}], ids=["fast", "real-time"])
engines = pytest.mark.parametrize("kind", ENGINES)

# --- pauses -----------------------------------------------------------------------------------------


@paces
@engines
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
    np.testing.assert_array_equal(rows_of(blocks), armed(engine_of(rig, kind)).run(len(numbers))[0])


@paces
def test_the_ticks_of_a_run_are_counted_over_its_pauses(rig_of, scheduler_of, pacing):
    scheduler = started(scheduler_of(rig_of(ARM), "machine code", **pacing), 3000)
    blocks = read_blocks(scheduler, 1)
    scheduler.pause()
    scheduler.step(10)
    scheduler.resume()
    blocks += read_blocks(scheduler)
    assert numbers_of(blocks) == list(range(3000)) and scheduler.state is SchedulerState.STOPPED


@engines
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


@paces
def test_real_motors_are_not_left_without_commands(rig_of, scheduler_of, pacing, said):
    scheduler = started(scheduler_of(rig_of(ARM), "Python", hardware=True, **pacing))
    read_blocks(scheduler, 1)
    said(raised(RunError, scheduler.pause))
    assert scheduler.state is SchedulerState.RUNNING
    scheduler.stop()
    snapshot = scheduler.snapshot()
    said(raised(RunError, scheduler.restore, snapshot))


# --- snapshots --------------------------------------------------------------------------------------


WRITE_FIRST = "schedule.order=[write, read, controllers, guard, step, publish]"
MOMENTS = (7, 17, 45)  # before anything has happened; latched; latched and with a fallback at work


def paused(scheduler):
    scheduler.pause()
    return scheduler


@pytest.mark.parametrize(("kind", "order"), [("machine code", ()), ("Python", ()), ("Python", (WRITE_FIRST,))])
def test_a_run_continues_from_a_snapshot_bit_for_bit_any_number_of_times(rig_of, scheduler_of, kind, order):
    rig = rig_of(STATEFUL, *order)
    scheduler, other = (paused(started(scheduler_of(rig, kind))) for _ in range(2))
    snapshots = []
    for ticks in MOMENTS:
        scheduler.step(ticks - scheduler.engine.number)
        read_blocks(scheduler)
        snapshots.append(scheduler.snapshot())
        fallen = scheduler.engine.view("fallback_active", "second")[0]
        assert (snapshots[-1].number, fallen) == (ticks, float(ticks > 20))
    other.step(3)
    read_blocks(other)
    expected = armed(engine_of(rig, kind)).run(MOMENTS[-1] + 60)[0]
    for snapshot in snapshots:
        for one in (scheduler, scheduler, other):
            one.engine.view("plant")[:] = np.nan
            one.restore(snapshot)
            one.step(60)
            blocks = read_blocks(one)
            assert numbers_of(blocks) == list(range(snapshot.number, snapshot.number + 60))
            np.testing.assert_array_equal(rows_of(blocks), expected[snapshot.number :][:60])


def test_a_snapshot_of_one_engine_continues_in_the_other(rig_of, scheduler_of):
    rig, found = rig_of(STATEFUL), []
    for kinds in (("machine code", "Python"), ("machine code", "machine code")):
        first, second = (paused(started(scheduler_of(rig, kind))) for kind in kinds)
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
