"""Joints that start at their limits and stops, within rounding of them, and beyond."""

import math

import pytest

from cosim.control.limits import POSITION_TOLERANCE
from cosim.rig.run.run import StoppedRun
from tests.kit.refusals import refusal

FINGERS = """
mechanism:
  bodies:
    - {{name: a, joint: a, type: prismatic, axis: [1, 0, 0], mass: 1, limits: {{lower: 0, upper: 4 cm}}}}
    - {{name: b, joint: b, type: prismatic, axis: [0, 1, 0], parent: base, mass: 1}}
joints: {{a: {{initial: {{position: {position}}}}}, b: {{stops: {{upper: {stop}}}, initial: {{position: 1}}}}}}
schedule: {{duration: 20 ms}}
"""
OUTSIDE = math.nextafter(POSITION_TOLERANCE, 1.0)


def touched(run):
    """(name, time [s], energy lost [J]) of the events."""
    return [(event["name"], event["t_s"], event["energy_lost_J"]) for event in run.summary["events"]]


@pytest.mark.parametrize(
    ("position", "interpret"),
    [("0", False), ("4 cm", True), ("-1e-9", False), ("-1.5e-21", True), ("0.04000000000000001", False)],
)
def test_a_start_at_a_limit_and_at_a_stop_runs(rig_of, position, interpret):
    """One double above the upper limit of 0.04, and below a lower limit of 0."""
    run = rig_of(FINGERS.format(position=position, stop=1), interpret=interpret).run()
    assert len(run.t) == 21
    assert touched(run) == [("b at its upper stop", 0.0, 0.0)]


@pytest.mark.parametrize("stop", [math.nextafter(1.0, 0.0), 1.0 - 0.99 * POSITION_TOLERANCE, math.nextafter(1.0, 2.0)])
def test_a_start_within_rounding_of_a_stop_rests_there(rig_of, stop):
    run = rig_of(FINGERS.format(position="1 cm", stop=repr(stop))).run()
    assert run["b/position"][-1] == 1.0
    assert touched(run) == ([("b at its upper stop", 0.0, 0.0)] if stop <= 1.0 else [])


@pytest.mark.parametrize("position", [-OUTSIDE, 0.04 + 1.1 * POSITION_TOLERANCE], ids=["below", "above"])
def test_a_start_beyond_is_refused_with_all_others(rig_of, said, position):
    said(refusal(rig_of, FINGERS.format(position=position, stop=1.0 - 1.1 * POSITION_TOLERANCE)))


COARSE = """
mechanism:
  gravity: [9.81, 0, 0]
  bodies: [{name: a, joint: a, type: prismatic, axis: [1, 0, 0], mass: 1}]
joints:
  a: {encoder: {cpr: 100}, initial: {position: 5.6 cm}, limits: {lower: 4.4 cm, upper: 5.6 cm}}
schedule: {duration: 20 ms}
"""


@pytest.mark.parametrize(("start", "counts", "interpret"), [("4.4 cm", 0.04, True), ("5.6 cm", 0.06, False)])
def test_an_encoder_rounds_a_joint_that_rests_at_its_limit_beyond_it(rig_of, start, counts, interpret):
    """Of 4.4 cm and 5.6 cm it measures 4 cm and 6 cm, as far beyond the limit as half a count allows."""
    stops = f"joints.a.stops={{lower: {start}, upper: {start}}}"
    run = rig_of(COARSE, f"joints.a.initial.position={start}", stops, interpret=interpret).run()
    assert run["a/measured_position"].tolist() == [counts] * 21 and run.summary["guard"] == {}


@pytest.mark.parametrize("upper", ["5.5 cm", "5.4999 cm"])
def test_a_joint_further_beyond_its_limit_than_half_a_count_stops(rig_of, upper):
    """It falls from 5.4 cm, measured as 5 cm, beyond 5.5 cm, measured as 6 cm."""
    rig = rig_of(COARSE, "joints.a.initial.position=5.4 cm", f"joints.a.limits.upper={upper}")
    if upper == "5.5 cm":
        assert rig.run()["a/measured_position"][-1] == 0.06
        return
    with pytest.raises(StoppedRun, match=r"joint 'a' is at 0\.06 m, outside its limits 0\.044 to 0\.054999 m; change"):
        rig.run()


COMPUTED = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: crank, mass: 1 kg, com: [10 cm, 0, 0], inertia: [0, 0.01, 0.01]}
    - {name: coupler, origin: {xyz: [20 cm, 0, 0]}, mass: 2 kg, com: [25 cm, 0, 0], inertia: [0, 0.05, 0.05]}
    - {name: rocker, parent: base, origin: {xyz: [50 cm, 0, 0]}, mass: 1 kg, inertia: [0, 0.02, 0.02]}
    - {name: wheel, parent: base, mass: 1 kg, inertia: [1, 1, 1]}
  loops:
    - {name: pin, parent: rocker, child: coupler, origin: {xyz: [40 cm, 0, 0]}, child_origin: {xyz: [50 cm, 0, 0]}}
joints:
  crank: {initial: {position: 0, velocity: 2}, limits: {velocity: 1}}
  coupler: {initial: {guess: -53 deg}, limits: {lower: -54 deg, upper: -53 deg, velocity: 1}}
  rocker: {initial: {guess: -1.5 rad}, limits: {lower: -1.51, upper: -1.49}}
  wheel: {prescribed: {type: sine, amplitude: 1, frequency: 1}, limits: {velocity: 3}}
"""


def test_computed_starts_beyond_limits_are_refused_together(rig_of, said):
    said(refusal(rig_of, COMPUTED))
    assert len(rig_of(COMPUTED, "guard={actions: {position: warn, velocity: warn}}").joints) == 4
