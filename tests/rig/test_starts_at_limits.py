"""Joints that start at their limits and stops, within rounding of them, and beyond."""

import math

import pytest

from cosim.control.limits import POSITION_TOLERANCE
from cosim.errors import InputErrors
from cosim.rig.run import StoppedRun
from tests.kit.levels import one_of_each

FINGERS = """
mechanism:
  bodies:
    - {{name: a, joint: a, type: prismatic, axis: [1, 0, 0], mass: 1, limits: {{lower: 0, upper: 4 cm}}}}
    - {{name: b, joint: b, type: prismatic, axis: [0, 1, 0], parent: base, mass: 1}}
joints: {{a: {{initial: {{position: {position}}}}}, b: {{stops: {{upper: {stop}}}, initial: {{position: 1}}}}}}
schedule: {{duration: 20 ms}}
"""
BEYOND = "is outside the limits of joint 'a'; give one from 0 to 0.04 m"
OUTSIDE = math.nextafter(POSITION_TOLERANCE, 1.0)


def touched(run):
    """(name, time [s], energy lost [J]) of the events."""
    return [(event["name"], event["t_s"], event["energy_lost_J"]) for event in run.summary["events"]]


@one_of_each
@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("position", ["0", "4 cm", "-1e-9", "-1.5e-21", "0.04000000000000001"])
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


@pytest.mark.parametrize("position", [-OUTSIDE, 0.04 + 1.1 * POSITION_TOLERANCE])
def test_a_start_beyond_is_refused_with_all_others(rig_of, position):
    with pytest.raises(InputErrors) as caught:
        rig_of(FINGERS.format(position=position, stop=1.0 - 1.1 * POSITION_TOLERANCE))
    found = [line.partition("rig.yaml:")[2] for line in str(caught.value).splitlines()]
    assert found == [
        f"6 joints.a.initial.position: {position:.6g} m {BEYOND}",
        "6 joints.b.stops.upper: joint 'b' starts at 1 m, beyond its upper stop at 1 m; move one of them",
    ]


COARSE = """
mechanism:
  gravity: [9.81, 0, 0]
  bodies: [{name: a, joint: a, type: prismatic, axis: [1, 0, 0], mass: 1}]
joints:
  a: {encoder: {cpr: 100}, initial: {position: 5.6 cm}, limits: {lower: 4.4 cm, upper: 5.6 cm}}
schedule: {duration: 20 ms}
"""


@one_of_each
@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize(("start", "counts"), [("4.4 cm", 0.04), ("5.6 cm", 0.06)])
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


def test_computed_starts_beyond_limits_are_refused_together(rig_of):
    with pytest.raises(InputErrors) as caught:
        rig_of(COMPUTED)
    found = [line.partition("rig.yaml:")[2] for line in str(caught.value).splitlines()]
    assert found == [
        "12 joints.crank.limits: joint 'crank' starts at 2 rad/s, above its limit of 1 rad/s;"
        " change its start or joints.crank.limits",
        "13 joints.coupler.limits: joint 'coupler' starts at -3.33333 rad/s, above its limit of 1 rad/s;"
        " change its start or joints.coupler.limits",
        "14 joints.rocker.limits: joint 'rocker' starts at -1.5708 rad, outside its limits -1.51 to -1.49 rad;"
        " change its start or joints.rocker.limits",
        "15 joints.wheel.limits: joint 'wheel' starts at 6.28319 rad/s, above its limit of 3 rad/s;"
        " change its start or joints.wheel.limits",
    ]
    warn = ["guard={actions: {position: warn, velocity: warn}}"]
    assert len(rig_of(COMPUTED, *warn).joints) == 4
