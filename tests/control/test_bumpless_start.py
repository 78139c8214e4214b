"""Pauses, snapshots, arming again: what goes on goes on to the bit, what begins again begins where the joints are."""

from __future__ import annotations

import time

import numpy as np
import pytest

from cosim.errors import RunError
from cosim.execution.native_engine import NativeEngine
from cosim.execution.scheduler import Scheduler, SchedulerState
from cosim.timing.pacing import Pacing
from tests.kit.engines import python_engine
from tests.kit.rigs import rig_in

# every kind of state: counts, noise, delay, an elastic gear, a latch, periods and phases, a fallback
STATEFUL = """
mechanism:
  bodies:
    - {name: a, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
    - {name: b, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
    - {name: c, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}
joints:
  a:
    encoder: {cpr: 20000, noise: 0.0001, delay: 1}
    actuator: {type: dc_motor, resistance: 0.8, inductance: 1 mH, torque_constant: 0.05, rotor_inertia: 2e-5, ratio: 20,
               stiffness: 400, damping: 0.5}
  b: {encoder: {noise: 0.0001}}
controllers:
  - {name: first, type: pid, joints: [a], kp: 40, ki: 20, kd: 2, period: 3 ms, phase: 1 ms,
     trajectory: {type: sine, amplitude: 0.3, frequency: 3 Hz}}
  - {name: second, type: failing.py, joints: [b], period: 2 ms, after: 20 ms,
     fallback: {type: pid, kp: 40, ki: 10, kd: 2}}
  - {name: third, type: pd_gravity, joints: [c], kp: 20, kd: 2}
events:
  - {do: latch, of: c, at: 15 ms, name: lock}
  - {do: unlatch, of: c, at: 70 ms}
"""
FAILING = """
from cosim import ops
from cosim.types import COMMAND, joint_signals, param, params

@params
class Params:
    after: float = param(unit="s")

class Failing:
    def __init__(self, params, context):
        self.params, self.inputs, self.outputs = params, joint_signals(("position",), 1), joint_signals(COMMAND, 1)

    def initial(self):
        return {"n": ops.zeros(1)}

    def update(self, t, p, x, u):
        alive, rest = ops.where(t < p.after, 1.0, 0.0), ops.zeros(1)
        effort = alive * (2.0 - u["position"]) / alive
        return {"n": x["n"] + effort}, {"position": rest, "velocity": rest, "effort": effort, "kp": rest, "kd": rest}

def load(params, context):
    return Failing(params, context)
"""
# two actuated links whose controllers carry the weight
ARM = """
mechanism:
  bodies:
    - {name: a, axis: [0, 1, 0], mass: 2 kg, com: [0, 0, -0.4], inertia: [0.1, 0.1, 0.1]}
    - {name: b, origin: {xyz: [0, 0, -0.8]}, axis: [0, 1, 0], mass: 1 kg, com: [0, 0, -0.3], inertia: [0.1, 0.1, 0.1]}
joints: {all: {limits: {velocity: 50}}}
controllers:
  - {name: arm, type: pid, kp: [400, 150], ki: [100, 50], kd: [40, 12],
     trajectory: {type: quintic, goal: [0.6, -0.4], duration: 0.4}}
schedule: {blend: 0.2}
"""
ENGINES = ("machine code", "Python")


@pytest.fixture
def rig_of(tmp_path):
    def load(text, *overrides):
        return rig_in(tmp_path, text, *overrides, failing=FAILING)

    return load


def engine_of(rig, kind, hardware=False):
    if kind == "machine code":
        return NativeEngine(rig.tick_model)
    return python_engine(rig, hardware=hardware)


@pytest.fixture
def scheduler_of():
    """A prepared scheduler of a rig with an engine, closed at the end; in real time if keys of a `Pacing` are given."""
    made = []

    def make(rig, kind, hardware=False, **pacing):
        paced = Pacing(**pacing) if pacing else None
        made.append(Scheduler(lambda: engine_of(rig, kind, hardware), paced, rig.tasks, rig.spec.schedule.blend))
        made[-1].prepare()
        return made[-1]

    yield make
    for scheduler in made:
        scheduler.close()


def started(scheduler, ticks=10**6):
    scheduler.arm()
    scheduler.start(ticks)
    return scheduler


def read_blocks(scheduler, at_least=10**9):
    """(numbers, rows, signals) of the blocks that follow, with at least this many ticks."""
    blocks, found = [], 0
    while found < at_least and (block := scheduler.read()) is not None:
        blocks.append(block)
        found += len(block.numbers)
    return blocks


def rows_of(blocks):
    return np.concatenate([block.rows for block in blocks])


def numbers_of(blocks):
    return np.concatenate([block.numbers for block in blocks]).tolist()


def signals_of(rig, blocks):
    """Signal -> its values (k,)."""
    values = np.concatenate([rig.observe(block.bumpless_start, block.rows) for block in blocks])
    return dict(zip(rig.tick_model.signals.names, values.T, strict=True))


# --- pauses -----------------------------------------------------------------------------------------


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


# --- arming again -----------------------------------------------------------------------------------


def check_reference(rig, signals, joint, length, limit=np.inf):
    """The reference of a joint is smooth and led to the trajectory after `length` [ticks]."""
    position, velocity, acceleration = (
        signals[f"{joint}/reference_{what}"] for what in ("position", "velocity", "acceleration")
    )
    h = rig.tick_model.step
    # differences over two steps are derivatives but for h²/6 of the third one after
    for value, rate in ((position, velocity), (velocity, acceleration)):
        change = (value[2:] - value[:-2]) / (2.0 * h)
        bound = 20.0 * h * (np.abs(rate).max() + np.abs(acceleration).max()) + 1e-9
        np.testing.assert_allclose(change, rate[1:-1], atol=bound)
    jerk = np.abs(np.diff(acceleration)).max() / h
    assert jerk < 100.0 / (length * h) ** 3 * max(1.0, np.abs(position).max()) + 1e3
    assert np.abs(velocity).max() <= limit
    index = rig.joints.index(joint)
    goal = rig.tick_model.loops[0].trajectory
    for k in (length, length + 1, len(position) - 1):
        sample = goal.sample(k * h)
        np.testing.assert_allclose(position[k], sample["position"][index], atol=1e-12)
        np.testing.assert_allclose(velocity[k], sample["velocity"][index], atol=1e-12)


def begins_at_the_measured_state(signals, joint):
    for what in ("position", "velocity"):
        np.testing.assert_allclose(signals[f"{joint}/reference_{what}"][0], signals[f"{joint}/{what}"][0], atol=1e-12)


@pytest.mark.parametrize("pacing", [{}, {"rate": 10.0}], ids=["fast", "real-time"])
@pytest.mark.parametrize("kind", ENGINES)
def test_arming_again_begins_at_the_measured_state_and_blends_into_the_trajectory(rig_of, scheduler_of, kind, pacing):
    rig = rig_of(ARM)
    scheduler = started(scheduler_of(rig, kind, **pacing), 150)
    first = signals_of(rig, read_blocks(scheduler))
    assert first["a/reference_position"][0] == 0.0 and np.abs(first["a/velocity"][-1]) > 0.1
    for _ in range(3):  # as often as wanted, each time from where it is
        number = scheduler.engine.number
        blocks = read_blocks(started(scheduler, 450))
        assert numbers_of(blocks) == list(range(number, number + 450))
        signals = signals_of(rig, blocks)
        for joint in rig.joints:
            begins_at_the_measured_state(signals, joint)
            check_reference(rig, signals, joint, 200)
            # no error, no integral: nothing is asked for
            assert abs(signals[f"{joint}/command_effort"][0]) < 1e-9
            steps = np.abs(np.diff(signals[f"{joint}/command_effort"]))
            assert steps.max() < 5.0
        assert scheduler.state is SchedulerState.STOPPED


@pytest.mark.parametrize("kind", ENGINES)
def test_a_rig_that_was_pushed_away_meanwhile_returns_within_its_velocity_limit(rig_of, scheduler_of, kind):
    onward = "controllers.arm.trajectory={type: quintic, goal: [-0.5, 0.5], duration: 1}"
    rig = rig_of(ARM, "joints.all.limits.velocity=2", onward)
    scheduler = started(scheduler_of(rig, kind), 100)
    read_blocks(scheduler)
    scheduler.engine.view("plant", "position")[:] = [1.5, -2.0]
    scheduler.engine.view("plant", "velocity")[:] = 0.0
    blocks = read_blocks(started(scheduler, 6000))
    assert scheduler.state is SchedulerState.STOPPED, scheduler.fault
    signals = signals_of(rig, blocks)
    length = round(blocks[0].bumpless_start[1] / rig.tick_model.step + 0.5)
    assert 3500 < length < 5000
    for joint in rig.joints:
        begins_at_the_measured_state(signals, joint)
        check_reference(rig, signals, joint, length, limit=2.0)
        assert abs(signals[f"{joint}/command_effort"][0]) < 1e-9
        assert np.abs(signals[f"{joint}/velocity"]).max() < 2.0
        assert signals[f"{joint}/position"][-1] == pytest.approx(signals[f"{joint}/reference_position"][-1], abs=0.02)


@pytest.mark.parametrize("kind", ENGINES)
def test_after_a_fault_it_is_reset_and_armed_like_after_a_stop(rig_of, scheduler_of, kind):
    rig = rig_of(ARM, "joints.a.limits={upper: 0.3, velocity: 50}")
    scheduler = started(scheduler_of(rig, kind))
    read_blocks(scheduler)
    assert "joint 'a' is at" in scheduler.fault
    scheduler.engine.view("plant", "position")[:] = [-0.5, 0.4]
    scheduler.reset()
    signals = signals_of(rig, read_blocks(started(scheduler, 250)))
    for joint in rig.joints:
        begins_at_the_measured_state(signals, joint)
    np.testing.assert_allclose(signals["a/position"][0], -0.5, atol=1e-12)


def test_controllers_and_fallbacks_start_in_their_initial_state(rig_of, scheduler_of):
    """The second one fails again immediately: its time is that of the rig."""
    rig = rig_of(STATEFUL)
    scheduler = started(scheduler_of(rig, "machine code"), 60)
    read_blocks(scheduler)
    engine, loop = scheduler.engine, rig.tick_model.loops[0]
    assert engine.view("fallback_active", "second") == 1.0 and np.any(engine.view("controllers", "first"))
    scheduler.arm()
    assert engine.view("fallback_active", "second") == 0.0
    for loop in rig.tick_model.loops:
        np.testing.assert_array_equal(engine.view("controllers", loop.name), loop.layout.pack(loop.initial()))
        assert not np.any(engine.view("controller_commands", loop.name))
    assert not np.any(engine.view("command"))


@pytest.mark.parametrize("kind", ENGINES)
def test_encoders_at_arming_measure_the_same_as_in_the_first_tick(rig_of, scheduler_of, kind):
    rig = rig_of(STATEFUL, "events=[]")
    scheduler = started(scheduler_of(rig, kind), 60)
    read_blocks(scheduler)
    blocks = read_blocks(started(scheduler, 4))
    signals = signals_of(rig, blocks)
    for what in ("position", "velocity"):
        told = signals[f"a/reference_{what}"][0], signals[f"a/measured_{what}"][0]
        np.testing.assert_allclose(told[0], told[1], atol=1e-12)


def test_without_a_time_to_blend_in_the_first_tick_is_at_the_measured_state_and_the_next_on_the_trajectory(
    rig_of, scheduler_of
):
    rig = rig_of(ARM, "schedule.blend=0", "joints.all.limits={}")
    scheduler = started(scheduler_of(rig, "machine code"), 100)
    read_blocks(scheduler)
    signals = signals_of(rig, read_blocks(started(scheduler, 10)))
    assert scheduler.state is SchedulerState.STOPPED, scheduler.fault
    for k, joint in enumerate(rig.joints):
        begins_at_the_measured_state(signals, joint)
        for tick in range(1, 10):
            sample = rig.tick_model.loops[0].trajectory.sample(tick * rig.tick_model.step)
            np.testing.assert_allclose(signals[f"{joint}/reference_position"][tick], sample["position"][k], atol=1e-12)


def test_a_rig_that_starts_in_its_initial_state_follows_its_trajectory_from_the_beginning(rig_of, scheduler_of):
    rig = rig_of(ARM, "joints.a.initial={position: 0.7}", "controllers.arm.trajectory.start=0")
    signals = signals_of(rig, read_blocks(started(scheduler_of(rig, "machine code"), 10)))
    assert (signals["a/position"][0], signals["a/reference_position"][0]) == (0.7, 0.0)


def test_real_motors_begin_at_the_measured_state_immediately(rig_of, scheduler_of):
    rig = rig_of(ARM, "joints.a.initial={position: 0.7}", "controllers.arm.trajectory.start=0")
    signals = signals_of(rig, read_blocks(started(scheduler_of(rig, "Python", hardware=True), 10)))
    assert signals["a/reference_position"][0] == pytest.approx(0.7, abs=1e-12)
