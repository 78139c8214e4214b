"""Controlled stops: their references, what starts and ends them, in both engines, free-running and paced."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.control.bumpless_start import BumplessStart
from cosim.control.controlled_stop import MAX_OVERRUN, NEVER, REQUESTED, SETTLING, ControlledStop, update_stop
from cosim.control.limits import CODES, NOT_FINITE, STALE
from cosim.execution.native_engine import NativeEngine
from cosim.execution.scheduler import FOREVER, Scheduler, SchedulerState
from cosim.rig.run import StoppedRun
from cosim.timing.pacing import Pacing
from tests.kit.clock import FakeClock
from tests.kit.engines import python_engine
from tests.kit.rigs import rig_in

MS = 1_000_000  # ns
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
  - {name: both, type: computed_torque, kp: 400, kd: 40,
     trajectory: {type: quintic, goal: [2, -3], duration: 1, delay: 0.1}}
guard: {deceleration: 10}
schedule: {step: 5 ms, duration: 2 s}
"""
LIMIT = "joints.a.limits={upper: 0.5, effort: 500}"


@pytest.fixture
def rig_of(tmp_path):
    def load(*overrides, interpret=False, text=RIG):
        return rig_in(tmp_path, text, *overrides, interpret=interpret)

    return load


# --- the references ---------------------------------------------------------------------------------

amounts = st.floats(-100.0, 100.0)
lengths = st.floats(1e-3, 100.0)
SAMPLE = {what: np.array([9.0]) for what in ("position", "velocity", "acceleration", "effort")}


def reference(stop, t):
    return {what: float(value[0]) for what, value in stop.reference(SAMPLE, t).items()}


def stop_of(position, velocity, length, t=1.0):
    return ControlledStop(t, length, np.array([position]), np.array([velocity]))


@given(position=amounts, velocity=amounts, length=lengths)
def test_references_continue_from_where_they_were(position, velocity, length):
    """Position and velocity have no jump, and change little just after the start."""
    stop = stop_of(position, velocity, length)
    begun = reference(stop, 1.0)
    assert (begun["position"], begun["velocity"], begun["effort"]) == (position, velocity, 9.0)
    h = 1e-6 * length
    after = reference(stop, 1.0 + h)
    tolerance = 1e-9 * (abs(position) + abs(velocity) * length + 1.0)
    assert after["position"] == pytest.approx(position + h * velocity, abs=tolerance)
    assert after["velocity"] == pytest.approx(velocity, abs=1e-5 * (abs(velocity) + 1.0))


@given(position=amounts, velocity=amounts, length=lengths)
def test_references_end_at_rest_after_half_the_distance(position, velocity, length):
    stop = stop_of(position, velocity, length)
    for t in (1.0 + length * (1.0 + 1e-12) + 1e-12, 2.0 + length, 1e6):
        rest = reference(stop, t)
        assert rest["position"] == pytest.approx(position + 0.5 * velocity * length, rel=1e-9, abs=1e-9)
        assert rest["velocity"] == pytest.approx(0.0, abs=1e-6)
        assert rest["acceleration"] == 0.0 or t < 1.0 + length + 1e-9
        assert rest["effort"] == pytest.approx(0.0, abs=1e-6)


@given(position=amounts, velocity=amounts, length=lengths, fraction=st.floats(0.01, 0.98))
def test_velocity_and_acceleration_are_the_derivatives_of_the_position(position, velocity, length, fraction):
    stop, h = stop_of(position, velocity, length, t=0.0), 1e-3 * length
    before, now, after = (reference(stop, fraction * length + k * h) for k in (-1, 0, 1))
    scale = abs(velocity) + 1e-6 * (1.0 + abs(position) / h)
    assert (after["position"] - before["position"]) / (2 * h) == pytest.approx(now["velocity"], abs=1e-6 * scale)
    assert now["acceleration"] == pytest.approx(-velocity / length)


def test_a_trajectory_is_unchanged_before_the_stop():
    assert reference(stop_of(1.0, 2.0, 0.5), 0.999) == dict.fromkeys(SAMPLE, 9.0)
    none = ControlledStop.of(ControlledStop.inactive(1))
    assert reference(none, 1e9) == dict.fromkeys(SAMPLE, 9.0) and not none.finished(1e9)


def test_it_has_finished_when_all_joints_have_settled():
    stop = stop_of(0.0, 1.0, 0.5)
    assert not stop.finished(1.5 + SETTLING - 1e-9) and stop.finished(1.5 + SETTLING + 1e-9)


# --- start and end ----------------------------------------------------------------

NONE = ControlledStop.of(ControlledStop.inactive(2))


@pytest.fixture(autouse=True)
def distance(monkeypatch):
    """Joints of this module may travel far while they decelerate."""
    monkeypatch.setattr("cosim.control.controlled_stop.MAX_OVERRUN", 10.0)


def tick(codes=(0, 0), fault=None, requested=0.0, stop=NONE, reason=0.0, t=3.0, velocity=(0.0, -5.0)):
    """(stop, reason, first codes, fault) after a tick at t."""
    codes = np.array(codes, dtype=float)
    fault = codes.max() if fault is None else fault
    flat, *rest = update_stop(
        stop, t, np.array([1.0, 2.0]), np.array(velocity), codes, fault, requested, reason, np.zeros(2), 10.0, 1e-3
    )
    return ControlledStop.of(flat), *rest


@pytest.mark.parametrize(("speed", "controlled"), [(1.3, True), (-1.3, True), (1.5, False), (-1.5, False)])
def test_a_position_limit_starts_it_only_within_the_greatest_overrun(monkeypatch, speed, controlled):
    """v²/2a is 0.0845 and 0.1125, the greatest overrun 0.1."""
    monkeypatch.setattr("cosim.control.controlled_stop.MAX_OVERRUN", MAX_OVERRUN)
    _, reason, _, fault = tick((0, CODES["position"]), velocity=(0.0, speed))
    assert (reason, fault) == ((CODES["position"], 0.0) if controlled else (0.0, CODES["position"]))


@pytest.mark.parametrize("codes", [0, CODES["effort"]])
def test_a_stop_that_would_take_too_long_is_immediate(codes):
    for speed, fault in ((29.0, 0.0), (31.0, max(codes, 0.5))):
        assert tick((0, codes), requested=1.0, velocity=(0.0, speed))[3] == fault


CONTROLLED = [CODES[key] for key in ("effort", "rate", "power", "temperature", "position")]
IMMEDIATE = (CODES["tracking"], CODES["velocity"], STALE, NOT_FINITE)


@pytest.mark.parametrize("codes", CONTROLLED)
def test_a_limit_of_stop_category_1_starts_it(codes):
    stop, reason, first, fault = tick((0, codes))
    assert (stop.t, stop.duration, reason, fault) == (3.0, 0.5, codes, 0.0)
    assert (stop.position.tolist(), stop.velocity.tolist()) == ([1.0, 2.0], [0.0, -5.0])
    assert first.tolist() == [0.0, codes]


@pytest.mark.parametrize("codes", IMMEDIATE)
@pytest.mark.parametrize("other", [0, CODES["position"]])
def test_a_limit_of_stop_category_0_stops_immediately_beside_any_other(codes, other):
    assert tick((other, codes))[-1] == codes
    going = tick((0, CODES["effort"]))[0]
    assert tick((codes, other), stop=going, reason=CODES["effort"], t=3.1)[-1] == codes


def test_a_fault_of_the_plant_stops_immediately():
    plant_fault = NOT_FINITE + 1.0
    assert tick(fault=plant_fault)[-1] == plant_fault
    assert tick((0, CODES["position"]), fault=plant_fault)[-1] == plant_fault


def test_nothing_starts_without_a_reason():
    stop, reason, first, fault = tick()
    assert (stop.t, reason, first.tolist(), fault) == (NEVER, 0.0, [0.0, 0.0], 0.0)


def test_a_later_fault_code_does_not_restart_it():
    """The first reason is kept."""
    begun, reason, *_ = tick((CODES["rate"], 0))
    later, same, _, fault = tick((0, CODES["position"]), requested=1.0, stop=begun, reason=reason, t=3.2)
    assert (later.t, later.duration, same, fault) == (3.0, 0.5, CODES["rate"], 0.0)
    rested = tick(requested=1.0, stop=later, reason=same, t=3.5 + SETTLING + 1e-9)
    assert rested[-1] == CODES["rate"]


def test_it_can_be_requested():
    begun, reason, _, fault = tick(requested=1.0)
    assert (begun.t, reason, fault) == (3.0, REQUESTED, 0.0)
    assert tick(stop=begun, reason=reason, t=3.59)[-1] == 0.0
    assert tick(stop=begun, reason=reason, t=3.61)[-1] == REQUESTED


def test_a_stop_at_rest_takes_one_step():
    assert tick(requested=1.0, velocity=(0.0, 0.0))[0].duration == 1e-3


# --- in a rig ---------------------------------------------------------------------------------------


def python(rig):
    return python_engine(rig)


ENGINES = ("machine code", "Python")


def engine_of(rig_of, kind, *overrides, change=None):
    """The engine of a kind, armed; change: of the simulation, before anything is made of it."""
    rig = rig_of(*overrides, interpret=kind == "interpreted")
    if change is not None:
        change(rig.tick_model)
    engine = NativeEngine(rig.tick_model) if kind == "machine code" else python(rig)
    engine.open()
    engine.arm()
    return engine


def motion(engine, rows):
    """(position, velocity) (k, 2) as measured in each tick."""
    parts = [engine.tick_model.row.unpack(row)["measured"] for row in rows]
    return np.array([part["position"] for part in parts]), np.array([part["velocity"] for part in parts])


@pytest.mark.parametrize("kind", ENGINES)
def test_a_position_limit_stops_all_joints(rig_of, kind):
    engine = engine_of(rig_of, kind, LIMIT)
    rows, fault = engine.run(400)
    position, velocity = motion(engine, rows)
    trip = int(np.flatnonzero(position[:, 0] > 0.5)[0])
    speed = np.abs(velocity[trip])
    rest = trip + speed.max() / 10.0 * RATE
    assert len(rows) == pytest.approx(rest + RATE * SETTLING, abs=3)
    assert fault == (
        f"stopped at tick {len(rows) - 1} (t = {(len(rows) - 1) / RATE:.6g} s): joint 'a' left its limits -inf to"
        f" 0.5 m at t = {trip / RATE:.6g} s, followed by a controlled stop of all joints; change the trajectory or"
        " joints.a.limits"
    )
    assert np.abs(velocity[-1]).max() < 0.005 * speed.max()
    slow = np.diff(velocity[trip + 1 : int(rest) - 2], axis=0) * RATE  # the faster one by the deceleration itself
    assert np.abs(slow).mean(axis=0) == pytest.approx(10.0 * speed / speed.max(), rel=0.03)
    way = position[-1] - position[trip]
    assert way == pytest.approx(0.5 * velocity[trip] * speed.max() / 10.0, rel=0.02)


@pytest.mark.parametrize("kind", ["machine code", "interpreted"])
def test_all_engines_stop_in_the_same_way(rig_of, kind):
    rows, fault = engine_of(rig_of, kind, LIMIT).run(400)
    same, told = engine_of(rig_of, "Python", LIMIT).run(400)
    np.testing.assert_allclose(rows, same, rtol=1e-9, atol=1e-11)
    assert fault == told


@pytest.mark.parametrize("kind", ENGINES)
def test_a_velocity_limit_stops_immediately(rig_of, kind):
    engine = engine_of(rig_of, kind, "joints.b.limits={velocity: 3, effort: 500}")
    rows, fault = engine.run(400)
    _, velocity = motion(engine, rows)
    fast = int(np.flatnonzero(np.abs(velocity[:, 1]) > 3.0)[0])
    assert len(rows) == fast + 1
    assert fault.startswith(f"stopped at tick {fast} (t = {fast / RATE:.6g} s): joint 'b' moves at -3.")
    assert engine.view("request").any() == (kind == "machine code")  # whose motors are switched off by the scheduler


@pytest.mark.parametrize("kind", ENGINES)
def test_an_immediate_stop_ends_a_controlled_one(rig_of, kind):
    def stale(tick_model):  # as if there was a real motor
        tick_model.guard = dataclasses.replace(tick_model.guard, stale=np.array([0.005, np.inf]))

    engine = engine_of(rig_of, kind, LIMIT, change=stale)
    rows, fault = engine.run(400)
    trip = int(np.flatnonzero(motion(engine, rows)[0][:, 0] > 0.5)[0])
    engine = engine_of(rig_of, kind, LIMIT, change=stale)
    assert engine.run(trip + 20)[1] == ""
    engine.view("age")[0] = 0.012
    rows, fault = engine.run(400)
    assert len(rows) == 1
    assert fault == (
        f"stopped at tick {trip + 20} (t = {(trip + 20) / RATE:.6g} s): joint 'a' has sent no feedback for 12 ms, more"
        " than the 5 ms of guard.stale; check its cable and its bus"
    )


@pytest.mark.parametrize("kind", ENGINES)
def test_without_a_deceleration_every_limit_stops_immediately(rig_of, kind):
    engine = engine_of(rig_of, kind, LIMIT, "guard.deceleration=")
    rows, fault = engine.run(400)
    assert len(rows) == np.flatnonzero(motion(engine, rows)[0][:, 0] > 0.5)[0] + 1
    assert "joint 'a' is at 0.5" in fault


@pytest.mark.parametrize("kind", ENGINES)
def test_a_snapshot_during_a_stop_continues_bit_for_bit(rig_of, kind):
    engine = engine_of(rig_of, kind, LIMIT)
    rows, _ = engine.run(400)
    trip = int(np.flatnonzero(motion(engine, rows)[0][:, 0] > 0.5)[0])
    engine = engine_of(rig_of, kind, LIMIT)
    engine.run(trip + 20)
    kept = engine.snapshot()
    rest, fault = engine.run(400)
    engine.restore(kept)
    engine.arm()
    again, told = engine.run(400)
    assert np.array_equal(again, rest) and told == fault and "controlled stop" in fault
    np.testing.assert_array_equal(rest, rows[trip + 20 :])


# --- requested of the scheduler -------------------------------------------------------------------------------


@pytest.fixture
def scheduler_of(rig_of):
    """scheduler_of(kind, paced, *overrides) -> (scheduler, its clock)."""
    made = []

    def make(kind, paced, *overrides):
        rig = rig_of(*overrides, interpret=kind == "interpreted")
        clock = FakeClock(reading=1000)
        engine = NativeEngine(rig.tick_model) if kind == "machine code" else python(rig)
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


@pytest.mark.parametrize("paced", [False, True], ids=["free-running", "paced"])
@pytest.mark.parametrize("kind", ENGINES)
def test_stopping_a_run_is_a_controlled_stop(scheduler_of, kind, paced):
    scheduler, clock = scheduler_of(kind, paced)
    engine = scheduler.engine
    begin(scheduler, clock, paced, FOREVER)
    scheduler.controlled_stop()
    assert (scheduler.state, scheduler.fault) == (SchedulerState.STOPPED, "")
    numbers, rows = read(scheduler)
    assert np.array_equal(numbers, np.arange(numbers[0], engine.number))
    _, velocity = motion(engine, rows)
    stop = BumplessStart.of(engine.view("bumpless_start"), 2).stop
    begun = round(float(stop.t) * RATE)
    assert numbers[-1] == pytest.approx(begun + RATE * (float(stop.duration) + SETTLING), abs=2)
    assert begun in ((120, 121) if paced else (96,))
    moving = np.abs(velocity[begun - numbers[0]]).max()
    assert moving > 3.0 and np.abs(velocity[-1]).max() < 0.005 * moving
    assert engine.view("request").tolist() == [0.0, 0.0]


@pytest.mark.parametrize("paced", [False, True], ids=["free-running", "paced"])
@pytest.mark.parametrize("kind", ENGINES)
def test_a_rig_can_be_armed_again_after_a_stop(scheduler_of, kind, paced):
    """The stop is cleared: references lead to the trajectory and follow it to its end."""
    scheduler, clock = scheduler_of(kind, paced)
    begin(scheduler, clock, paced, FOREVER)
    scheduler.controlled_stop()
    read(scheduler)
    scheduler.arm()
    engine = scheduler.engine
    assert [float(engine.view("controlled_stop", name)) for name in ("requested", "reason")] == [0.0, 0.0]
    assert float(BumplessStart.of(engine.view("bumpless_start"), 2).stop.t) == NEVER
    scheduler.start(500)
    numbers, rows = read(scheduler)
    assert len(numbers) == 500 and (scheduler.state, scheduler.fault) == (SchedulerState.STOPPED, "")
    assert motion(engine, rows)[0][-1] == pytest.approx([2.0, -3.0], abs=1e-3)


@pytest.mark.parametrize("paced", [False, True], ids=["free-running", "paced"])
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


@pytest.mark.parametrize("paced", [False, True], ids=["free-running", "paced"])
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


def interrupt(fraction):
    raise KeyboardInterrupt


@pytest.mark.parametrize("interpret", [False, True], ids=["machine code", "Python"])
def test_an_interrupted_run_is_a_controlled_stop(rig_of, interpret):
    """A periodic trajectory, so that the first block ends in motion."""
    motion = "controllers.both.trajectory={type: sine, amplitude: 0.5, frequency: 2}"
    rig = rig_of(motion, interpret=interpret)
    with pytest.raises(StoppedRun) as stopped:
        rig.run(progress=interrupt)
    run = stopped.value.run
    assert run.fault.startswith("interrupted after tick ")
    moving = np.abs(run["b/velocity"])
    assert moving.max() > 1.0 and moving[-1] < 0.02 * moving.max()
    assert len(run.t) > RATE * SETTLING


# `float` keeps it in Python
BROKEN = """
import numpy as np
from cosim.types import COMMAND, FEEDBACK, joint_signals, params

@params
class Params:
    pass

class Broken:
    def __init__(self, params, context):
        self.params, self.inputs, self.outputs = params, joint_signals(FEEDBACK, 2), joint_signals(COMMAND, 2)

    def initial(self):
        return {}

    def update(self, t, p, x, u):
        if float(t) > 0.0975:
            raise KeyboardInterrupt
        rest = np.zeros(2)
        return {}, {"position": rest, "velocity": rest, "effort": rest + 5.0, "kp": rest, "kd": rest}

def load(params, context):
    return Broken(params, context)
"""


def test_an_interrupt_within_a_tick_leaves_the_motors_off(rig_of, tmp_path):
    """The Python engine has stopped its drivers by then."""
    (tmp_path / "broken.py").write_text(BROKEN)
    with pytest.raises(StoppedRun) as stopped:
        rig_of("controllers=[{type: broken.py}]").run()
    assert stopped.value.run.fault == "interrupted after tick 19"
    assert len(stopped.value.run.t) == 20
