"""Controlled stops of a rig: by a limit, by a request, by an interrupt, in all engines."""

import dataclasses
import time
from functools import cache

import numpy as np
import pytest

from cosim.control.bumpless_start import BumplessStart
from cosim.control.controlled_stop import NEVER, SETTLING
from cosim.execution.native_engine import NativeEngine
from cosim.execution.scheduler import FOREVER, Scheduler, SchedulerState
from cosim.rig.run.run import StoppedRun
from cosim.simulation.loop.pacing import Pacing
from tests.kit.clock import FakeClock
from tests.kit.engines import armed, python_engine
from tests.kit.rigs import controller, rig_in

RATE = 200  # ticks per second
# a rail and a link without coupling
RIG = """
name: pair
mechanism:
  gravity: [0, 0, 0]
  bodies:
    - {name: a, type: prismatic, axis: [1, 0, 0], mass: 2 kg}
    - {name: b, parent: base, axis: [0, 1, 0], mass: 1 kg, inertia: [1, 1, 1]}
joints: {all: {limits: {velocity: 20, effort: 500}}}
controllers:
  - {name: both, type: feedforward_pd, kp: 400, kd: 40,
     trajectory: {type: quintic, goal: [2, -3], duration: 1, delay: 0.1}}
guard: {deceleration: 10}
schedule: {step: 5 ms, duration: 2 s}
"""
LIMIT = "joints.a.limits={upper: 0.5, effort: 500}"


@pytest.fixture(autouse=True)
def constants(monkeypatch):
    """Joints may travel far while they decelerate; a stop of a free run comes within the motion."""
    monkeypatch.setattr("cosim.control.controlled_stop.MAX_OVERRUN", 10.0)
    monkeypatch.setattr("cosim.execution.execution_mode.BLOCK_TIME", 0.0)


@pytest.fixture(scope="module")
def rig_of(tmp_path_factory):
    """Each is loaded once: rig_of(*overrides, interpret)."""

    @cache
    def load(*overrides, interpret=False):
        return rig_in(tmp_path_factory.mktemp("rig"), RIG, *overrides, interpret=interpret)

    return load


# --- in a rig ---------------------------------------------------------------------------------------

ENGINES = ("machine code", "Python")
engines = pytest.mark.parametrize("kind", ENGINES)


def of_kind(rig, kind):
    return NativeEngine(rig.tick_model) if kind == "machine code" else python_engine(rig)


def engine_of(rig_of, kind, *overrides):
    return armed(of_kind(rig_of(*overrides, interpret=kind == "interpreted"), kind))


def motion(engine, rows):
    """(position, velocity) (k, 2) as measured in each tick."""
    parts = [engine.tick_model.row.unpack(row)["measured"] for row in rows]
    return np.array([part["position"] for part in parts]), np.array([part["velocity"] for part in parts])


def exceeds(engine, rows):
    """The first tick in which joint a is outside its limit."""
    return int(np.flatnonzero(motion(engine, rows)[0][:, 0] > 0.5)[0])


@pytest.fixture
def stopped(rig_of):
    """kind -> (engine, rows, fault) of a run that a position limit stops."""

    def run(kind, *overrides):
        engine = engine_of(rig_of, kind, LIMIT, *overrides)
        return engine, *engine.run(400)

    return run


def test_a_position_limit_stops_all_joints(stopped, said):
    engine, rows, fault = stopped("machine code")
    trip = exceeds(engine, rows)
    position, velocity = motion(engine, rows)
    speed = np.abs(velocity[trip])
    rest = trip + speed.max() / 10.0 * RATE
    assert len(rows) == pytest.approx(rest + RATE * SETTLING, abs=3)
    said(fault)
    assert f"tick {len(rows) - 1} " in fault and f"at t = {trip / RATE:.6g} s, followed by a controlled stop" in fault
    assert np.abs(velocity[-1]).max() < 0.005 * speed.max()
    slow = np.diff(velocity[trip + 1 : int(rest) - 2], axis=0) * RATE  # the faster one by the deceleration itself
    assert np.abs(slow).mean(axis=0) == pytest.approx(10.0 * speed / speed.max(), rel=0.03)
    way = position[-1] - position[trip]
    assert way == pytest.approx(0.5 * velocity[trip] * speed.max() / 10.0, rel=0.02)


def test_all_engines_stop_in_the_same_way(stopped):
    _, expected, reason = stopped("Python", "guard.deceleration=40")
    for kind in ("machine code", "interpreted"):
        _, rows, fault = stopped(kind, "guard.deceleration=40")
        np.testing.assert_allclose(rows, expected, rtol=1e-9, atol=1e-11)
        assert fault == reason


@engines
def test_a_velocity_limit_stops_immediately(rig_of, kind):
    engine = engine_of(rig_of, kind, "joints.b.limits={velocity: 3, effort: 500}")
    rows, fault = engine.run(400)
    _, velocity = motion(engine, rows)
    fast = int(np.flatnonzero(np.abs(velocity[:, 1]) > 3.0)[0])
    assert len(rows) == fast + 1
    assert fault.startswith(f"stopped at tick {fast} (t = {fast / RATE:.6g} s): joint 'b' moves at -3.")
    assert engine.view("request").any() == (kind == "machine code")  # whose motors are switched off by the scheduler


@engines
def test_an_immediate_stop_ends_a_controlled_one(rig_of, kind, said):
    rig = rig_of.__wrapped__(LIMIT)  # one that no other test has
    # as if there was a real motor
    rig.tick_model.guard = dataclasses.replace(rig.tick_model.guard, stale=np.array([0.005, np.inf]))
    engine = armed(of_kind(rig, kind))
    trip = exceeds(engine, engine.run(400)[0])
    engine = armed(of_kind(rig, kind))
    assert engine.run(trip + 20)[1] == ""
    engine.view("age")[0] = 0.012
    rows, fault = engine.run(400)
    assert len(rows) == 1
    said(fault)


def test_without_a_deceleration_every_limit_stops_immediately(rig_of):
    engine = engine_of(rig_of, "machine code", LIMIT, "guard.deceleration=")
    rows, fault = engine.run(400)
    assert len(rows) == exceeds(engine, rows) + 1
    assert "joint 'a' is at 0.5" in fault


@engines
def test_a_snapshot_during_a_stop_continues_bit_for_bit(rig_of, stopped, kind):
    engine, rows, _ = stopped(kind)
    trip = exceeds(engine, rows)
    engine = engine_of(rig_of, kind, LIMIT)
    engine.run(trip + 20)
    kept = engine.snapshot()
    rest, fault = engine.run(400)
    engine.restore(kept)
    engine.arm()
    again, reason = engine.run(400)
    assert np.array_equal(again, rest) and reason == fault and "controlled stop" in fault
    np.testing.assert_array_equal(rest, rows[trip + 20 :])


# --- requested of the scheduler -------------------------------------------------------------------------------


@pytest.fixture
def scheduler_of(rig_of):
    """scheduler_of(kind, paced, *overrides) -> (scheduler, its clock)."""
    made = []

    def make(kind, paced, *overrides):
        rig, clock = rig_of(*overrides), FakeClock(reading=1000)
        engine = of_kind(rig, kind)
        made.append(Scheduler(lambda: engine, Pacing() if paced else None, rig.tasks, 0.05, "rig.yaml:1", clock))
        made[-1].prepare()
        return made[-1], clock

    yield make
    for scheduler in made:
        scheduler.close()


def read(scheduler):
    """(numbers, rows) of all ticks that are left."""
    blocks = list(iter(scheduler.read, None))
    return np.concatenate([block.numbers for block in blocks]), np.concatenate([block.rows for block in blocks])


def begin(scheduler, clock, paced, ticks):
    """Armed and running; a paced run waits in the middle of the motion until a stop is requested."""
    scheduler.arm()
    if paced:
        asked = scheduler.engine.view("controlled_stop", "requested")
        middle = len(clock.waits) + 120
        clock.block(middle, lambda: asked > 0.0)
    scheduler.start(ticks)
    if paced:
        while len(clock.waits) < middle:
            time.sleep(1e-3)
    else:
        while scheduler.engine.number < 80:
            assert scheduler.read() is not None


paces = pytest.mark.parametrize("paced", [False, True], ids=["free-running", "paced"])


@paces
@engines
def test_stopping_a_run_is_a_controlled_stop_after_which_it_can_be_armed_again(scheduler_of, kind, paced):
    scheduler, clock = scheduler_of(kind, paced)
    engine = scheduler.engine
    begin(scheduler, clock, paced, FOREVER)
    asked = engine.number
    scheduler.controlled_stop()
    assert (scheduler.state, scheduler.fault) == (SchedulerState.STOPPED, "")
    numbers, rows = read(scheduler)
    assert np.array_equal(numbers, np.arange(numbers[0], engine.number))
    _, velocity = motion(engine, rows)
    stop = BumplessStart.of(engine.view("bumpless_start"), 2).stop
    begun = round(float(stop.t) * RATE)
    assert numbers[-1] == pytest.approx(begun + RATE * (float(stop.duration) + SETTLING), abs=2)
    assert begun in ((120, 121) if paced else (asked,))
    moving = np.abs(velocity[begun - numbers[0]]).max()
    assert moving > 3.0 and np.abs(velocity[-1]).max() < 0.005 * moving
    assert engine.view("request").tolist() == [0.0, 0.0]
    # the stop is cleared: references lead to the trajectory and follow it to its end
    scheduler.arm()
    assert [float(engine.view("controlled_stop", name)) for name in ("requested", "reason")] == [0.0, 0.0]
    assert float(BumplessStart.of(engine.view("bumpless_start"), 2).stop.t) == NEVER
    scheduler.start(500)
    numbers, rows = read(scheduler)
    assert len(numbers) == 500 and (scheduler.state, scheduler.fault) == (SchedulerState.STOPPED, "")
    assert motion(engine, rows)[0][-1] == pytest.approx([2.0, -3.0], abs=1e-3)


@paces
def test_a_controlled_stop_by_a_limit_is_a_fault_until_it_is_reset(scheduler_of, paced):
    scheduler, _ = scheduler_of("Python", paced, LIMIT)
    scheduler.arm()
    scheduler.start(FOREVER)
    read(scheduler)
    assert scheduler.state is SchedulerState.FAULT and "controlled stop" in scheduler.fault
    scheduler.reset()
    scheduler.arm()
    assert float(BumplessStart.of(scheduler.engine.view("bumpless_start"), 2).stop.t) == NEVER
    scheduler.start(FOREVER)
    assert len(read(scheduler)[0]) == pytest.approx(RATE * SETTLING, abs=3)  # at rest outside its limits
    assert "at t = " in scheduler.fault and scheduler.state is SchedulerState.FAULT


@paces
def test_a_rig_without_a_deceleration_stops_immediately(scheduler_of, paced):
    scheduler, _ = scheduler_of("Python", paced, "guard.deceleration=")
    scheduler.arm()
    scheduler.start(FOREVER)
    scheduler.read()
    scheduler.controlled_stop()
    assert (scheduler.state, scheduler.fault) == (SchedulerState.STOPPED, "")


@pytest.mark.parametrize("state", ["ready", "armed", "stopped"])
def test_stopping_a_rig_that_does_not_run_has_no_effect(scheduler_of, state):
    scheduler, _ = scheduler_of("Python", False)
    if state != "ready":
        scheduler.arm()
    if state == "stopped":
        scheduler.start(1)
        read(scheduler)
    scheduler.controlled_stop()
    assert scheduler.state == ("ready" if state == "ready" else "stopped")


# --- Ctrl-C -----------------------------------------------------------------------------------------


def interrupt(status):
    raise KeyboardInterrupt


@pytest.mark.parametrize("interpret", [False, True], ids=["machine code", "Python"])
def test_an_interrupted_run_is_a_controlled_stop(rig_of, interpret, monkeypatch):
    """A periodic trajectory, so that the first block ends in motion."""
    monkeypatch.setattr("cosim.rig.run.status_reports.PERIOD", 0.0)  # a status after each block
    motion = "controllers.both.trajectory={type: sine, amplitude: 0.5, frequency: 2}"
    rig = rig_of(motion, "guard.deceleration=40", interpret=interpret)
    with pytest.raises(StoppedRun) as stopped:
        rig.run(progress=interrupt)
    run = stopped.value.run
    assert run.fault.startswith("interrupted after tick ")
    moving = np.abs(run["b/velocity"])
    assert moving.max() > 1.0 and moving[-1] < 0.02 * moving.max()
    assert len(run.t) > RATE * SETTLING


def test_an_interrupt_within_a_tick_leaves_the_motors_off(tmp_path):
    """The Python engine, in which `float` keeps the controller, has stopped its drivers by then."""
    interrupts = """
if float(t) > 0.0975:
    raise KeyboardInterrupt
effort = ops.zeros(1) + 5.0"""
    with pytest.raises(StoppedRun) as stopped:
        rig_in(tmp_path, RIG, "controllers=[{type: push.py, joints: [a]}]", push=controller(interrupts)).run()
    assert stopped.value.run.fault == "interrupted after tick 19"
    assert len(stopped.value.run.t) == 20
