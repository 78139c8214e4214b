"""Friction that grows with the torques on both sides of the gears, against the published models M1 … M6 of Duclusaud,
Passault et al. (arXiv 2410.08650) written out again, against scipy, and by its energy."""

import itertools

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from cosim.core.errors import InputErrors
from cosim.mechanics.multibody.friction import OF_STATIC, JointFriction
from tests.kit.refusals import raised
from tests.kit.rigs import controller

TORQUES = (-3.0, -1.0, -0.4, 0.0, 0.4, 1.0, 3.0)
SPEEDS = (-2.0, -0.3, 0.0, 0.01, 0.3, 2.0)
STRIBECK = {"static": 0.5, "stribeck_speed": 0.4, "stribeck_exponent": 1.3}
# the published model -> the numbers of the law that it has
MODELS = {
    "m1": {},
    "m2": STRIBECK,
    "m3": {"load_friction": 0.2, "external_load_friction": 0.2},
    "m4": STRIBECK
    | {"load_friction": 0.2, "external_load_friction": 0.2}
    | {"static_load_friction": 0.3, "static_external_load_friction": 0.3},
    "m5": STRIBECK
    | {"load_friction": 0.2, "external_load_friction": 0.35}
    | {"static_load_friction": 0.3, "static_external_load_friction": 0.1},
}
MODELS["m6"] = MODELS["m5"] | {"quadratic_load_friction": 0.04, "quadratic_external_load_friction": 0.07}
BY_MODEL = pytest.mark.parametrize("model", MODELS)


def published(numbers: dict[str, float], motor: float, external: float, speed: float) -> float:
    """The friction loss of the publication, in its names; a base of 0.2."""
    of = dict.fromkeys(
        ("load_friction", "external_load_friction", *OF_STATIC), 0.0
    ) | {"static": 0.2, "stribeck_speed": 1.0, "stribeck_exponent": 2.0} | numbers  # fmt: skip
    gearbox = abs(external * of["external_load_friction"] - motor * of["load_friction"])
    gearbox_stribeck = abs(external * of["static_external_load_friction"] - motor * of["static_load_friction"])
    stribeck = np.exp(-(abs(speed / of["stribeck_speed"]) ** of["stribeck_exponent"]))
    loss = 0.2 + gearbox + stribeck * (of["static"] - 0.2 + gearbox_stribeck)
    if np.sign(external) * np.sign(motor) < 0.0:
        if abs(motor) > abs(external):
            loss += stribeck * of["quadratic_external_load_friction"] * external**2
        else:
            loss += stribeck * of["quadratic_load_friction"] * motor**2
    return loss


@BY_MODEL
def test_the_law_is_the_published_one(model):
    law = JointFriction(0.2, "stribeck", **MODELS[model])
    for motor, external, speed in itertools.product(TORQUES, TORQUES, SPEEDS):
        found = law.dry_friction(speed, law.load(motor, external))
        assert found == pytest.approx(published(MODELS[model], motor, external, speed), rel=1e-12)


@BY_MODEL
def test_it_takes_energy_in_every_direction_of_motion_and_load(model):
    """Of sliding F v; of bristles what F v is above what they store, (σ₀ z)² |v| / g."""
    sliding, sticking = (JointFriction(0.2, kind, **MODELS[model]) for kind in ("stribeck", "lugre"))
    for motor, external, speed in itertools.product(TORQUES, TORQUES, SPEEDS):
        load = sliding.load(motor, external)
        assert sliding.sliding_effort(speed, load) * speed >= 0.0
        for z in (-3e-4, 0.0, 1e-5, 3e-4):
            stored = sticking.bristle_stiffness * z * sticking.bristle_rate(speed, z, load)
            assert sticking.bristle_effort(speed, z, load) * speed - stored >= -1e-12


# a pendulum of 0.5 kg at 0.2 m whose gravity pulls with m g l sin q, and a torque of the drive
PENDULUM = """
mechanism:
  gravity: [0, 0, -9.81]
  bodies: [{name: arm, axis: [0, -1, 0], mass: 0.5 kg, com: [0, 0, -0.2], inertia: [1e-3, 1e-3, 1e-3]}]
joints: {arm: {actuator: {type: ideal}, friction: {model: stribeck, coulomb: 0.2, viscous: 0.02}}}
controllers: [{type: push.py, name: push, joints: [arm]}]
schedule: {step: 0.2 ms, duration: 1 s, integrator: rodas4}
"""
SWINGING = controller("effort = ops.array([p.size * ops.sin(2e-3 * n[0])])")
CONSTANT = controller("effort = ops.array([p.size])")


def numbers(model: str) -> list[str]:
    return [f"joints.arm.friction.{key}={value}" for key, value in MODELS[model].items()]


@BY_MODEL
@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
def test_a_pendulum_swings_as_its_equation_written_out(rig_of, model, interpret):
    duration = 0.05 if interpret else 1.5
    run = rig_of(PENDULUM, *numbers(model), interpret=interpret, push=SWINGING).run(duration)

    def rates(t, x):
        q, v = x
        motor, external = np.sin(2e-3 * np.floor(t / 0.2e-3 + 1e-6)), -0.5 * 9.81 * 0.2 * np.sin(q)
        friction = published(MODELS[model], motor, external, v) * v / np.hypot(v, 0.01) + 0.02 * v
        return [v, (motor + external - friction) / (0.5 * 0.2**2 + 1e-3)]

    found = solve_ivp(rates, (0.0, run.t[-1]), (0.0, 0.0), "Radau", run.t, rtol=1e-7, atol=1e-9, max_step=1e-3)
    np.testing.assert_allclose(run["arm/position"], found.y[0], atol=2e-4)
    assert interpret or np.ptp(run["arm/position"]) > 0.3


def test_energy_is_lost_all_the_time_and_all_of_it_is_accounted_for(rig_of):
    sticks = ["joints.arm.friction.model=lugre", "joints.arm.friction.bristle_stiffness=2e3"]
    run = rig_of(PENDULUM, *numbers("m6"), *sticks, "controllers.push.size=2", push=SWINGING).run("3 s")
    assert np.ptp(run["arm/position"]) > 0.5
    assert np.all(np.diff(run["energy/dissipated"]) > -1e-9)
    assert run.summary["energy"]["residual_relative"] < 1e-4


# --- who drives whom ---

HELD = PENDULUM.replace("model: stribeck, ", "stribeck_speed: 1, bristle_damping: 30, ").replace(
    "actuator: {type: ideal}, ", "actuator: {type: ideal}, initial: {position: 90 deg}, "
)
LOAD = 0.5 * 9.81 * 0.2  # N m, of gravity on the horizontal arm


def moved(rig_of, torque: float, **law: float) -> float:
    given = [f"joints.arm.friction.{key}={value}" for key, value in law.items()]
    run = rig_of(HELD, *given, f"controllers.push.size={torque}", push=CONSTANT).run("0.3 s")
    return float(run["arm/position"][-1] - run["arm/position"][0])


@pytest.mark.parametrize("mass", [0.5, 50.0])
def test_a_load_cannot_drive_gears_back_whose_friction_grows_as_fast(rig_of, mass):
    heavy = [f"mechanism.bodies.0.mass={mass}", "joints.arm.friction.bristle_stiffness=1e6"]
    for growth, moves in ((1.02, False), (0.5, True)):
        law = f"joints.arm.friction.external_load_friction={growth}"
        run = rig_of(HELD, *heavy, law, "controllers.push.size=0", push=CONSTANT).run("0.3 s")
        assert (abs(run["arm/position"][-1] - run["arm/position"][0]) > 0.01) == moves


@pytest.mark.parametrize(
    ("law", "least"),
    [
        # torque m with which the arm just rises: m − e = F_c + μ_e e + μ_m m + Q
        ({}, LOAD + 0.2),
        ({"load_friction": 0.2}, (LOAD + 0.2) / 0.8),
        ({"external_load_friction": 0.2}, LOAD * 1.2 + 0.2),
        ({"load_friction": 0.1, "external_load_friction": 0.3}, (LOAD * 1.3 + 0.2) / 0.9),
        ({"static_load_friction": 0.2}, (LOAD + 0.2) / 0.8),
        ({"quadratic_external_load_friction": 0.3}, LOAD + 0.2 + 0.3 * LOAD**2),
        ({"quadratic_load_friction": 0.3}, LOAD + 0.2),  # has a part only where the load drives
    ],
    ids=lambda x: "-".join(x) if isinstance(x, dict) else "",
)
def test_the_drive_lifts_with_the_least_torque_of_the_law(rig_of, law, least):
    assert abs(moved(rig_of, 0.98 * least, **law)) < 1e-3
    assert moved(rig_of, 1.02 * least, **law) > 1e-3


def test_a_torque_of_the_drive_against_the_load_squares_friction_where_the_load_drives(rig_of):
    """e − m = F_c + κ_m m², the drive too weak to hold."""
    motor = LOAD - 0.2 - 0.06
    assert moved(rig_of, motor) < -1e-3
    assert abs(moved(rig_of, motor, quadratic_load_friction=0.08 / motor**2)) < 1e-3


# --- what a joint carries ---

ARM = """
mechanism:
  gravity: [0, 0, -9.81]
  bodies:
    - {name: upper, axis: [0, -1, 0], mass: 1 kg, com: [0.1, 0, 0], inertia: [2e-3, 2e-3, 2e-3]}
    - {name: fore, parent: upper, axis: [0, -1, 0], origin: {xyz: [0.3, 0, 0]}, mass: 0.6 kg, com: [0.1, 0, 0.02],
       inertia: [1e-3, 1e-3, 1e-3], stiffness: 2}
joints:
  upper: {initial: {position: 0.4, velocity: 2}}
  fore: {initial: {position: -0.2, velocity: -3},
         friction: {model: stribeck, coulomb: 0.05, external_load_friction: 0.3}}
schedule: {step: 1 ms, duration: 50 ms, integrator: rodas4}
"""


def test_the_load_is_gravity_velocities_and_springs_without_accelerations(rig_of):
    rig = rig_of(ARM)
    run, model = rig.run(), rig.plant.model
    assert model.equations.has_springs
    for k in range(0, len(run.t), 10):
        q, v = ([run[f"{name}/{what}"][k] for name in ("upper", "fore")] for what in ("position", "velocity"))
        load = np.asarray(model.inverse_dynamics(np.array(q), np.array(v), np.zeros(2)), float)[1]
        friction = (0.05 + 0.3 * abs(load)) * v[1] / np.hypot(v[1], 0.01)
        assert -run["fore/friction_effort"][k] == pytest.approx(friction, rel=1e-9)


def test_rollouts_and_derivatives_have_all_numbers_of_the_law(rig_of):
    """Each run is that of the rig with its number, and the derivative of a metric is its difference quotient."""
    rig = rig_of(PENDULUM, *numbers("m6"), push=SWINGING)
    for key in ("coulomb", "static", "stribeck_exponent", "stribeck_speed", *MODELS["m6"]):
        name = f"joints.arm.friction.{key}"
        value = float(getattr(rig.spec.joints["arm"].friction, key))
        values = [value, value * 1.05]
        batch = rig.rollouts({name: values}, duration="0.3 s", signals=["arm/position"])
        other = rig_of(PENDULUM, *numbers("m6"), f"{name}={values[1]!r}", push=SWINGING).run("0.3 s")
        np.testing.assert_allclose(batch["arm/position"][1], other["arm/position"], atol=1e-13)
        assert np.abs(batch["arm/position"][0] - batch["arm/position"][1]).max() > 0.0


MISTAKES = {
    "static growth of smooth": ["joints.arm.friction.model=smooth", "joints.arm.friction.static_load_friction=0.1"],
    "multirate": ["schedule.integrator=multirate", "joints.arm.friction.external_load_friction=0.1"],
    "below 0": ["joints.arm.friction.external_load_friction=-0.1"],
    "exponent": ["joints.arm.friction.stribeck_exponent=0"],
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_law_that_cannot_be_is_refused(rig_of, name, said):
    said(str(raised(InputErrors, rig_of, PENDULUM, *MISTAKES[name], push=CONSTANT)))


def test_a_closed_loop_has_no_load_without_its_acceleration(sample, said):
    law = "joints.crank.friction={model: stribeck, coulomb: 0.01, external_load_friction: 0.1}"
    said(str(raised(InputErrors, sample, "mechanisms/four_bar", law)))
