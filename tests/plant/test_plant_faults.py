"""Runs that cannot continue: events without end, constraints that are violated."""

import math
import re

import numpy as np
import pytest

from cosim.rig.run.run import StoppedRun
from tests.kit.engines import python_engine
from tests.kit.refusals import raised
from tests.plant.event_runs import FOUR_BAR, PUSHED, SLIDER, EventRun, with_events

CHASE = [
    "do: unlatch, of: a, name: go, when: {signal: a/acceleration, below: 0.5}",
    "do: latch, of: a, name: lock, when: {signal: a/position, above: 0.1}",
    "do: latch, of: a, name: again, when: {signal: a/acceleration, above: 1}",
]


def stopped(rig):
    return raised(StoppedRun, rig.run).run


@pytest.mark.parametrize(("interpret", "step"), [(False, 1e-3), (True, 2e-2)])
def test_events_without_end(rig_of, interpret, step, said):
    """Below half a metre per second squared it is unlatched, above one it is latched."""
    text = SLIDER + "joints: {a: {initial: {velocity: 1}}}\n"
    text = text.replace("gravity: [2, 0, 0]", "gravity: [0, 0, 0]") + PUSHED[PUSHED.index("controllers") :]
    text = with_events(CHASE[:1] + CHASE[2:], text)
    run = stopped(rig_of(text, f"schedule.step={step} s", interpret=interpret))
    said(run.fault, r"(?<=tick )\d+", r"(?<=t = )[\d.]+")
    tick, at, without_end = (float(x) for x in re.findall(r"(?:tick|t =) ([\d.]+)", run.fault))
    assert tick == len(run.t) - 1 and at == pytest.approx(run.t[-1], rel=1e-5)
    # 10 sin(π t/2)/3 is 1 m/s² then
    assert run.t[-1] == pytest.approx(math.asin(0.3) * 2 / math.pi, abs=3 * step)
    assert without_end == pytest.approx(run.t[-1], abs=1.1 * step)
    assert run["a/position"][-2] > 0.1


def test_a_body_between_two_stops_that_touch(rig_of, said):
    text = """
mechanism: {gravity: [0, 0, 0], bodies: [{name: a, type: prismatic, axis: [1, 0, 0], mass: 1 kg}]}
joints: {a: {initial: {velocity: 1}, stops: {lower: -1e-6, upper: 1e-6, restitution: 1}}}
schedule: {duration: 0.1}
"""
    said(stopped(rig_of(text)).fault)


def test_events_without_end_around_a_driver(rig_of):
    rig = rig_of(with_events(CHASE[:1] + CHASE[2:]))
    ran, native = EventRun(rig, python_engine(rig)), EventRun(rig)
    assert ran.fault == native.fault != ""
    np.testing.assert_allclose(ran.rows, native.rows)


def test_prescribed_motions_that_contradict_a_loop(rig_of, said):
    motion = "{type: quintic, goal: 2, duration: 0.2}"
    text = FOUR_BAR.replace("position: 60 deg}", f"position: 60 deg}}, prescribed: {motion}")
    run = stopped(rig_of(with_events(["do: latch, of: B, at: 0.0005"], text, "duration: 0.4")))
    said(run.fault, r"(?<=tick )\d+", r"\d\.\d+")
    assert np.isfinite(run.values).all()
    assert run["pin/violation"][:-1].max() < 1e-2 * math.sqrt(2)


def test_constraints_that_drift(rig_of, said):
    text = FOUR_BAR + "schedule: {duration: 4 s, step: 20 ms, integrator: semi_implicit_euler}\n"
    run = stopped(rig_of(text, "mechanism.loop_closure.drift=none"))
    said(run.fault, r"(?<=tick )\d+", r"\d\.\d+")
