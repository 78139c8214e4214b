"""The figures of a first rig follow from the robot: starts, motions, limits, motors, step and integrator."""

import math

import numpy as np
import pytest

from cosim.apps.new.plan import SUPPLY_VOLTAGE, motor_keys, plan_rig, reflected_inertia
from cosim.core.units import DEGREE, parse_quantity
from cosim.mechanics.multibody.description.urdf import parse_urdf
from cosim.plugins.actuators import dc_motor
from tests.new.robots import ARM, LIMIT, joint, link, one_joint, robot

GRAVITY = 9.81


def plan_of(text, bandwidth=5.0, **options):
    return plan_rig(parse_urdf(text), bandwidth, **options)


def planned(kind="revolute", limit=LIMIT, inside="", **options):
    """The only joint of a robot."""
    (found,) = plan_of(one_joint(kind, limit, inside), **options).joints
    return found


@pytest.mark.parametrize(
    ("kind", "limit", "start", "goal"),
    [
        ("revolute", LIMIT, 0.0, 5 * DEGREE),
        ("continuous", "", 0.0, 5 * DEGREE),
        ("revolute", 'lower="0" upper="3" effort="50" velocity="3"', 10 * DEGREE, 15 * DEGREE),
        ("revolute", 'lower="-3" upper="-1" effort="50" velocity="3"', -67.3 * DEGREE, -72.3 * DEGREE),
        ("revolute", 'lower="-3" upper="0.01" effort="50" velocity="3"', -9.43 * DEGREE, -14.43 * DEGREE),
        # half of the velocity limit is enough
        ("revolute", 'lower="-3" upper="3" effort="50" velocity="0.1"', 0.0, 1.5 * DEGREE),
        # a tenth of the range
        ("revolute", 'lower="-0.1" upper="0.1" effort="50" velocity="3"', 0.0, 1.1 * DEGREE),
        ("prismatic", 'lower="0" upper="0.5" effort="50" velocity="1"', 0.02, 0.03),
        ("prismatic", 'lower="0" upper="0.04" effort="50" velocity="1"', 0.008, 0.012),
    ],
)
def test_joints_start_and_move_inside_their_limits(kind, limit, start, goal):
    found = planned(kind, limit)
    assert (found.start, found.goal) == pytest.approx((start, goal), abs=1e-12)
    assert not found.locked
    assert not found.replaced or kind == "continuous"


@pytest.mark.parametrize("seed", range(5))
def test_any_range_holds_the_motion_with_a_margin(seed):
    random = np.random.default_rng(seed)
    lower = random.uniform(-3, 3)
    upper = lower + 10 ** random.uniform(-5, 1)
    velocity = 10 ** random.uniform(-3, 1)
    found = planned(limit=f'lower="{lower}" upper="{upper}" effort="50" velocity="{velocity}"')
    travel = abs(found.goal - found.start)
    inside = min(upper - max(found.start, found.goal), min(found.start, found.goal) - lower)
    assert 0.0 < travel <= 0.1 * (upper - lower) * (1 + 1e-9)
    assert inside >= 0.99 * travel
    assert 1.875 * travel <= 0.5 * velocity * (1 + 1e-9)


def test_a_joint_without_range_is_locked_where_it_is():
    found = planned(limit='lower="0.5" upper="0.5" effort="50" velocity="3"')
    assert (found.locked, found.start, found.goal) == (True, 0.5, 0.5)


def test_limits_that_are_all_zero_are_no_limits():
    found = planned(limit='lower="0" upper="0" effort="0" velocity="0"')
    assert not found.locked
    assert (found.lower.value, found.upper.value) == (-math.pi, math.pi)
    assert found.lower.reason == "the file has 0 to 0 and no effort and velocity, which stands for no limits"
    assert list(found.replaced) == ["lower", "upper", "velocity", "effort"]


@pytest.mark.parametrize("effort", [None, 0, 2.5, 1e6])
def test_an_effort_limit_that_cannot_be_is_replaced(effort, said):
    """The link of 1 kg has its centre of mass 0.2 m beside the joint: it requires m g l and a little more."""
    limit = "" if effort is None else f'lower="-2" upper="2" velocity="3" effort="{effort}"'
    found = planned(limit=limit)
    required = GRAVITY * 0.2 + (0.01 + 0.04) * 5.7735 * 5 * DEGREE
    said(found.effort.reason)
    assert found.effort.value == pytest.approx(3 * required + (0.01 + 0.04) * 10.0, rel=0.05)


def test_an_effort_limit_that_suffices_stays():
    assert planned().effort.reason == "" and planned().effort.value == 50.0
    assert planned(limit='lower="-2" upper="2" effort="900" velocity="3"').effort.value == 900.0
    # a heavy robot has a large one
    heavy = one_joint(limit='lower="-2" upper="2" effort="5000" velocity="3"').replace('value="1.0"', 'value="20"')
    assert plan_of(heavy).joints[0].effort.value == 5000.0


@pytest.mark.parametrize(
    ("kind", "velocity", "value", "reason"),
    [
        ("revolute", "3", 3.0, ""),
        ("revolute", "0", math.pi, "the file has 0; a usual value"),
        ("revolute", "1000", math.pi, "the file has 5.73e+04 deg/s; a usual value"),
        ("prismatic", "1000", 0.5, "the file has 1e+06 mm/s; a usual value"),
    ],
)
def test_a_velocity_limit_that_cannot_be_is_replaced(kind, velocity, value, reason):
    found = planned(kind, f'lower="-2" upper="2" effort="50" velocity="{velocity}"')
    assert (found.velocity.value, found.velocity.reason) == (pytest.approx(value), reason)


def test_figures_of_a_robot_with_a_free_base_and_held_joints():
    joints = joint("drift", "base", "body", "floating"), joint("j", "body", "arm", limit=LIMIT)
    text = robot(link("base"), link("body"), link("arm"), *joints)
    plan = plan_of(text)
    assert plan.held == ("drift",)
    assert [found.name for found in plan.joints] == ["j"]
    assert plan_of(text, hold=False).held == ()


@pytest.mark.parametrize(("effort", "velocity"), [(150.0, 3.15), (0.3, 10.0), (1000.0, 0.05)])
def test_a_motor_reaches_its_effort_at_its_velocity(effort, velocity):
    keys = motor_keys(effort, velocity, reflected_inertia(effort, velocity))
    units = {"resistance": "ohm", "inductance": "H", "torque_constant": "N*m/A", "rotor_inertia": "kg*m^2"}
    units |= {"ratio": "1", "voltage_limit": "V", "current_limit": "A", "bandwidth": "Hz"}
    motor = dc_motor.load(dc_motor.Params(**{key: parse_quantity(text, units[key]) for key, text in keys.items()}))
    p = motor.params
    assert p.torque_constant * p.ratio * p.current_limit == pytest.approx(effort, rel=0.02)
    needed = p.resistance * p.current_limit + p.torque_constant * p.ratio * velocity
    assert needed == pytest.approx(0.9 * SUPPLY_VOLTAGE, rel=0.02)
    assert motor.reflected_inertia == pytest.approx(reflected_inertia(effort, velocity), rel=0.02)


def test_joints_with_strong_friction_have_motors():
    free, strong = planned(), planned(inside='<dynamics damping="0.1" friction="5"/>')
    assert free.rotor == 0.0
    assert strong.rotor == reflected_inertia(50.0, 3.0)
    assert planned(actuator="dc_motor").rotor == reflected_inertia(50.0, 3.0)
    assert planned(inside='<dynamics damping="0.1" friction="5"/>', actuator="ideal").rotor == 0.0


def test_the_rotor_is_large_enough_for_explicit_integration():
    fast = 'lower="-2" upper="2" effort="50" velocity="30"'
    plan = plan_of(one_joint(limit=fast, inside='<dynamics damping="0" friction="8"/>'))
    (found,) = plan.joints
    assert (plan.step, plan.integrator) == (0.25e-3, "rk4")
    assert found.rotor == pytest.approx(8.0 / 0.01 * 0.25e-3 / 1.4, rel=1e-5)
    assert found.rotor > reflected_inertia(found.effort.value, found.velocity.value)


@pytest.mark.parametrize(
    ("bandwidth", "step"), [(1.0, 1e-3), (5.0, 1e-3), (10.0, 1e-3), (11.0, 0.5e-3), (100.0, 0.0625e-3)]
)
def test_the_step_follows_from_the_bandwidth(bandwidth, step):
    plan = plan_of(ARM, bandwidth)
    assert (plan.step, plan.integrator, plan.bandwidth) == (step, "rk4", bandwidth)


@pytest.mark.parametrize(
    ("friction", "step", "integrator"),
    # slope of the friction over the inertia of 0.05 kg m², times the step, below 1.4
    [(0.0, 1e-3, "rk4"), (0.65, 1e-3, "rk4"), (0.8, 0.5e-3, "rk4"), (2.6, 0.25e-3, "rk4"), (3.0, 0.5e-3, "rosenbrock")],
)
def test_strong_friction_needs_a_smaller_step_or_an_implicit_integrator(friction, step, integrator):
    plan = plan_of(one_joint(inside=f'<dynamics damping="0" friction="{friction}"/>'), actuator="ideal")
    assert (plan.step, plan.integrator) == (step, integrator)
