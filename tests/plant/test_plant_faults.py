"""Runs that cannot continue: events without end, constraints that are violated."""

import math
import re

import numpy as np
import pytest

from cosim.execution.python_engine import PythonEngine
from cosim.rig.build.drivers import driver_groups
from cosim.rig.run import StoppedRun
from cosim.tick.virtual_plant import VirtualPlant
from tests.kit.levels import full
from tests.plant.event_runs import FOUR_BAR, PUSHED, SLIDER, EventRun, with_events

# --- runs that cannot continue -----------------------------------------------------------------------------------

CHASE = [
    "do: unlatch, of: a, name: go, when: {signal: a/acceleration, below: 0.5}",
    "do: latch, of: a, name: lock, when: {signal: a/position, above: 0.1}",
    "do: latch, of: a, name: again, when: {signal: a/acceleration, above: 1}",
]


def stopped(rig):
    with pytest.raises(StoppedRun) as caught:
        rig.run()
    return caught.value.run


@full
@pytest.mark.parametrize("interpret", [False, True])
def test_events_without_end(rig_of, interpret):
    """Below half a metre per second squared it is unlatched, above one it is latched."""
    text = SLIDER + "joints: {a: {initial: {velocity: 1}}}\n"
    text = text.replace("gravity: [2, 0, 0]", "gravity: [0, 0, 0]") + PUSHED[PUSHED.index("controllers") :]
    run = stopped(rig_of(with_events(CHASE[:1] + CHASE[2:], text), interpret=interpret))
    found = run.fault.split(": events trigger each other without end at t = ")
    assert found[1].endswith(" s: 'go' and 'again'; change their conditions so that none triggers the others again")
    tick = len(run.t) - 1
    assert found[0] == f"stopped at tick {tick} (t = {tick / 1000:.6g} s)"
    # 10 sin(π t/2)/3 is 1 m/s² then
    assert run.t[-1] == pytest.approx(math.asin(0.3) * 2 / math.pi, abs=3e-3)
    assert float(found[1].split(" s")[0]) == pytest.approx(run.t[-1], abs=1.1e-3)
    assert run["a/position"][-2] > 0.1


def test_a_body_between_two_stops_that_touch(rig_of):
    text = """
mechanism: {gravity: [0, 0, 0], bodies: [{name: a, type: prismatic, axis: [1, 0, 0], mass: 1 kg}]}
joints: {a: {initial: {velocity: 1}, stops: {lower: -1e-6, upper: 1e-6, restitution: 1}}}
schedule: {duration: 0.1}
"""
    assert stopped(rig_of(text)).fault == (
        "stopped at tick 1 (t = 0.001 s): events trigger each other without end at t = 9.9e-05 s: 'a at its lower"
        " stop' and 'a at its upper stop'; change their conditions so that none triggers the others again"
    )


def test_events_without_end_around_a_driver(rig_of):
    rig = rig_of(with_events(CHASE[:1] + CHASE[2:]))
    virtual_plant = VirtualPlant(rig.tick_model)
    ran = EventRun(
        rig, PythonEngine(rig.tick_model, virtual_plant, driver_groups((), {}, rig.joints, rig.limits, virtual_plant))
    )
    native = EventRun(rig)
    assert ran.fault == native.fault != ""
    np.testing.assert_allclose(ran.rows, native.rows)


@pytest.mark.parametrize("interpret", [False, True])
def test_prescribed_motions_that_contradict_a_loop(rig_of, interpret):
    motion = "{type: quintic, goal: 2, duration: 0.2}"
    text = FOUR_BAR.replace("position: 60 deg}", f"position: 60 deg}}, prescribed: {motion}")
    run = stopped(rig_of(with_events(["do: latch, of: B, at: 0.0005"], text, "duration: 0.4"), interpret=interpret))
    assert re.fullmatch(
        r"stopped at tick \d+ \(t = 0.0\d* s\): constraint 'pin' is violated by 0\.\d+ m: it does not fit the motion"
        r" given to 'A' and 'B'; change that or try a smaller schedule.step",
        run.fault,
    )
    assert np.isfinite(run.values).all()
    assert run["pin/violation"][:-1].max() < 1e-2 * math.sqrt(2)


def test_constraints_that_drift(rig_of):
    text = FOUR_BAR + "schedule: {duration: 4 s, step: 20 ms, integrator: semi_implicit_euler}\n"
    run = stopped(rig_of(text, "mechanism.loop_closure.drift=none"))
    assert run.fault.endswith(" m; try a smaller schedule.step, or mechanism.loop_closure.drift: projection")
