"""Actuators: efforts and rates computed by hand; the rest of the contract is in test_contract.py."""

import math
from typing import Any

import numpy as np
import pytest

from cosim.core.errors import InputError, SourceLocation
from cosim.core.units import TURN
from cosim.mechanics.bondgraph.components.dc_motor import CREEP_SPEED, gear_friction
from cosim.plugins.actuators import dc_motor, ideal
from cosim.rig.reading.schema import Reading, read
from tests.actuators import dc_motor_by_hand

MOTOR = {"resistance": 0.5, "inductance": 2e-3, "torque_constant": 0.04, "rotor_inertia": 3e-5, "ratio": 50.0}
LOSSY = {**MOTOR, "viscous": 0.7, "coulomb": 1.5, "efficiency": 0.8}
ELASTIC = {"stiffness": 900.0, "damping": 1.2}
MOTORS = {
    "motor": MOTOR,
    "motor on a voltage": {**MOTOR, "drive": "voltage"},
    "motor with limits": {**MOTOR, "voltage_limit": 5.0, "current_limit": 3.0},
    "lossy gear": LOSSY,
    "elastic gear": {**MOTOR, **ELASTIC},
    "elastic and lossy gear": {**LOSSY, **ELASTIC, "drive": "voltage"},
}
CURRENT, TWIST, SPEED = (f"motor.{state}" for state in ("winding.flow", "spring.displacement", "inertia.flow"))
INDEPENDENT = {"request", "position", "velocity"}


def motor(**keys: Any) -> Any:
    return dc_motor.load(dc_motor.Params(**{**MOTOR, **keys}))


def flow(
    actuator: Any, state: dict[str, float], request: float = 0.0, position: float = 0.0, velocity: float = 0.0
) -> Any:
    x = {name: np.array(value) for name, value in state.items()}
    return actuator.flow(0.0, actuator.params, x, {"request": request, "position": position, "velocity": velocity})


def states(actuator: Any, count: int = 40) -> Any:
    """Random states and inputs of an actuator, in all quadrants."""
    rng = np.random.default_rng(1)
    sizes = {CURRENT: 8.0, TWIST: 0.5, SPEED: 4.0, "request": 15.0, "position": 0.5, "velocity": 4.0}
    for _ in range(count):
        draw = {name: rng.uniform(-size, size) for name, size in sizes.items()}
        yield {name: draw[name] for name in actuator.initial(0.0, 0.0)}, {name: draw[name] for name in INDEPENDENT}


def test_an_ideal_actuator_has_no_inertia_and_a_limit_that_is_not_negative() -> None:
    assert ideal.load(ideal.Params()).reflected_inertia == 0.0
    errors: list[InputError] = []
    reading = Reading(lambda path: SourceLocation("arm.yaml", 3, "max_effort"), errors)
    assert read(ideal.Params, {"max_effort": 0.0}, (), reading) == ideal.Params(max_effort=0.0)
    assert read(ideal.Params, {"max_effort": -0.5}, (), reading) is None
    assert [str(error) for error in errors] == ["arm.yaml:3 max_effort: must be at least 0, is -0.5"]


# --- ideal ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "request_", "effort"), [(math.inf, 1e6, 1e6), (5.0, 4.0, 4.0), (5.0, 9.0, 5.0), (5.0, -9.0, -5.0)]
)
def test_an_ideal_actuator_gives_the_request_up_to_its_limit(limit: float, request_: float, effort: float) -> None:
    dx, y = flow(ideal.load(ideal.Params(max_effort=limit)), {}, request_, velocity=2.0)
    assert dx == {}
    assert (y["effort"], y["power"], y["loss"], y["stored"]) == (effort, 2.0 * effort, 0.0, 0.0)


# --- DC motor -------------------------------------------------------------------------------------


def test_a_rotor_moves_with_the_joint_of_a_rigid_gear_and_by_itself_behind_an_elastic_one() -> None:
    assert motor().reflected_inertia == pytest.approx(3e-5 * 50.0**2, rel=1e-15)
    assert motor().positions == () and set(motor().initial(1.0, 2.0)) == {CURRENT}
    elastic = motor(**ELASTIC)
    assert elastic.reflected_inertia == 0.0
    assert elastic.positions == (TWIST,)
    initial = {name: value.item() for name, value in elastic.initial(1.0, 2.0).items()}
    assert initial == {CURRENT: 0.0, TWIST: 0.0, SPEED: 2.0}


@pytest.mark.parametrize("name", MOTORS)
def test_the_graph_of_a_motor_has_the_equations_written_by_hand(name: str) -> None:
    by_name = {CURRENT: "current", TWIST: "twist", SPEED: "speed"}
    found = motor(**MOTORS[name])
    for state, inputs in states(found):
        dx, y = flow(found, state, **inputs)
        rates, outputs = dc_motor_by_hand.flow(found.params, {by_name[key]: x for key, x in state.items()}, inputs)
        assert {by_name[key]: value for key, value in dx.items()} == pytest.approx(rates, rel=1e-12, abs=1e-12)
        p = found.params
        at_shaft = p.torque_constant * state[CURRENT] - p.rotor_inertia * p.ratio * rates.get("speed", 0.0)
        outputs |= {"motor_torque": at_shaft, "gear_torque": outputs["effort"]}
        assert y == pytest.approx(outputs, rel=1e-12, abs=1e-12)


def test_the_voltage_of_a_voltage_drive_gives_the_effort_at_standstill() -> None:
    drive = motor(drive="voltage")
    current = 3.0 / (0.04 * 50.0)
    dx, y = flow(drive, {CURRENT: current}, request=3.0)
    assert y["effort"] == pytest.approx(3.0) and y["voltage"] == pytest.approx(0.5 * current)
    assert dx[CURRENT] == pytest.approx(0.0, abs=1e-9)
    dx, y = flow(drive, {CURRENT: current}, request=3.0, velocity=2.0)
    assert dx[CURRENT] == pytest.approx(-0.04 * 50.0 * 2.0 / 2e-3)  # the back-EMF brakes


@pytest.mark.parametrize("speed", [0.0, 3.0, -7.0])
def test_a_current_drive_follows_its_target_with_its_bandwidth_at_any_speed(speed: float) -> None:
    drive = motor(bandwidth=80.0)
    target = 3.0 / (0.04 * 50.0)
    dx, _ = flow(drive, {CURRENT: target}, request=3.0, velocity=speed)
    assert dx[CURRENT] == pytest.approx(0.0, abs=1e-9)
    dx, _ = flow(drive, {CURRENT: 0.4}, request=3.0, velocity=speed)
    assert dx[CURRENT] == pytest.approx((0.5 / 2e-3 + TURN * 80.0) * (target - 0.4))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_limits_hold_current_and_voltage(sign: float) -> None:
    drive = motor(current_limit=2.0, voltage_limit=12.0)
    dx, y = flow(drive, {CURRENT: sign * 2.0}, request=sign * 1e9)
    assert dx[CURRENT] == pytest.approx(0.0, abs=1e-9) and y["voltage"] == pytest.approx(sign * 1.0)
    _, y = flow(drive, {CURRENT: -sign * 8.0}, request=sign * 1e9)
    assert y["voltage"] == sign * 12.0
    # beyond the no-load speed the voltage left cannot drive any current
    dx, _ = flow(drive, {CURRENT: 0.0}, request=sign * 1e9, velocity=sign * 12.0 / (0.04 * 50.0))
    assert dx[CURRENT] == pytest.approx(0.0, abs=1e-9)


def test_an_elastic_gear_gives_the_torque_of_its_twist_and_twist_rate() -> None:
    elastic = motor(**ELASTIC, viscous=0.7)
    dx, y = flow(elastic, {CURRENT: 1.5, TWIST: 0.01, SPEED: 2.0}, position=0.2, velocity=1.5)
    effort = 900.0 * 0.01 + 1.2 * 0.5
    assert y["effort"] == pytest.approx(effort)
    assert dx[TWIST] == 0.5
    assert dx[SPEED] == pytest.approx((50.0 * 0.04 * 1.5 - 0.7 * 2.0 - effort) / (3e-5 * 2500.0))
    assert y["loss"] == pytest.approx(0.5 * 1.5**2 + 0.7 * 2.0**2 + 1.2 * 0.5**2)


# --- gear friction ----------------------------------------------------------------------------------

FAST = 1e6  # so fast that the sign of the speed is not rounded off


@pytest.mark.parametrize(("speed", "sign"), [(FAST, 1.0), (-FAST, -1.0)])
def test_mesh_losses_follow_the_efficiency_in_both_directions(speed: float, sign: float) -> None:
    driving = gear_friction(sign * 10.0, speed, 0.0, 0.0, 0.8)
    assert sign * 10.0 - driving == pytest.approx(sign * 8.0)  # 8 of 10 arrive at the joint
    driven = gear_friction(-sign * 8.0, speed, 0.0, 0.0, 0.8)
    assert -sign * 8.0 - driven == pytest.approx(-sign * 10.0)  # the load gives 10, 8 arrive at the motor


def test_parts_of_friction_add_up() -> None:
    """Coulomb friction is smoothed below a hundredth of a radian per second, odd in the speed, and 0 at standstill."""
    speed, load = 0.3, 5.0
    smooth = speed / math.hypot(speed, CREEP_SPEED)
    expected = 0.7 * speed + (1.5 + 0.2 * 5.0) * smooth
    assert gear_friction(load, speed, 0.7, 1.5, 0.8) == pytest.approx(expected)
    assert gear_friction(load, speed, 0.7, 0.0, 1.0) == pytest.approx(0.7 * speed)
    assert gear_friction(load, speed, 0.0, 0.0, 1.0) == 0.0
    assert gear_friction(0.0, 0.01, 0.0, 3.0, 1.0) == pytest.approx(3.0 / math.sqrt(2.0))
    assert gear_friction(0.0, -0.0075, 0.0, 3.0, 1.0) == pytest.approx(-3.0 * 0.6)
    assert gear_friction(load, 0.0, 0.7, 1.5, 0.8) == 0.0
    assert gear_friction(0.0, -0.02, 0.7, 1.5, 0.8) == -gear_friction(0.0, 0.02, 0.7, 1.5, 0.8)
