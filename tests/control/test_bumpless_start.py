"""Arming again: references begin at the measured state and blend into the trajectory."""

import numpy as np
import pytest

from cosim.execution.scheduler import SchedulerState
from tests.control.stateful_rig import ARM, ENGINES, STATEFUL, numbers_of, read_blocks, signals_of, started

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
    """The second one fails again immediately: its time is the rig's."""
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
