"""Runs of rigs with a rotor that turns with two joints, beside the same rig with a body as the rotor.

The body is on a shaft at the base, and a rigid constraint holds its angle. Cases × integrators and engines.
"""

from dataclasses import replace

import numpy as np
import pytest

from cosim import Rig
from tests.plant.event_runs import EventRun

INERTIA, TURNS = 0.2, {"b": 1.0, "c": -2.0}
ROTOR = "  rotors: {motor: {turns: {b: 1, c: -2}, inertia: 0.2 kg*m^2, damping: 0.15, friction: 0.2 N*m}}\n"
# the same with a body: b + -2 c = motor
SHAFT = "    - {name: motor, parent: base, mass: 1 kg, inertia: [0.2, 0.2, 0.2], damping: 0.15, friction: 0.2}\n"
GEAR = "{name: gear, type: turns.py, joints: [motor, b, c]}"
ROD = "{name: rod, type: distance, between: [base, c], points: [[1, 0.5, 0], [0.1, 0, 0]], length: 0.51}"
LAW = """
from cosim.plugin import ConstraintLaw, ReactionSpec, params

@params
class Params:
    pass

def load(params):
    return ConstraintLaw((ReactionSpec("moment", "N*m", "rad"),), lambda frames, q, t: [q[0] - q[1] + 2.0 * q[2]])
"""
BODIES = """
mechanism:
  gravity: [0, -9.81, 0]
  bodies:
    - {name: a, axis: [0, 1, 0], mass: 3 kg, com: [0.2, 0, 0], inertia: [0.02, 0.05, 0.04], damping: 0.5}
    - {name: b, mass: 1 kg, com: [0.2, 0.1, 0], inertia: [0.01, 0.03, 0.02], origin: {xyz: [0.4, 0, 0]}}
    - {name: c, mass: 0.5 kg, com: [0.1, 0, 0.1], inertia: [0.01, 0.02, 0.01], origin: {xyz: [0.4, 0, 0]}}
"""
REST = "{position: 0, velocity: 0}"
FALLS = "b: {initial: {position: 0.3, velocity: 0}}"
MOTOR = """{type: dc_motor, resistance: 1, inductance: 5 mH, torque_constant: 0.05, rotor_inertia: 1e-5, ratio: 50,
    viscous: 0.1, coulomb: 0.3"""
JOINTS = {  # of which each has its initial motion, so that the shaft follows from them
    "free": "a: {initial: {position: 0, velocity: 1}}, c: {initial: {position: 0, velocity: -2}}",
    "prescribed": "c: {prescribed: {type: sine, amplitude: 0.3, frequency: 1 Hz}}",
    "both prescribed": "b: {prescribed: {type: sine, amplitude: 0.2, frequency: 2 Hz}},"
    " c: {prescribed: {type: sine, amplitude: 0.3, frequency: 1 Hz}}",
    "jump of a given motion": "c: {prescribed: {type: spline, points: [0.1, 0.1], times: [0.1003, 0.2114],"
    " ends: natural, degree: 3}}",
    "brake": f"c: {{initial: {{position: 0, velocity: 2}}}}, b: {{initial: {REST}}}",
    "moving base": f"a: {{initial: {{position: 0, velocity: 0.5}}}}, b: {{initial: {REST}}}",
    "loop": f"a: {{initial: {{position: 0, velocity: 0.5}}}}, b: {{initial: {REST}}}, c: {{}}",
    "stop": "b: {initial: {position: 0.2, velocity: -0.5}, stops: {lower: 0.1, restitution: 0.5}}",
    "latched": f"c: {{latched: true, initial: {REST}}}",
    "drives": f"""a: {{actuator: {MOTOR}}}, initial: {REST}}}, b: {{actuator: {MOTOR}}}, initial: {REST}}},
    c: {{actuator: {MOTOR}, stiffness: 800, damping: 0.4}}, initial: {REST}}}""",
}
EVENTS = {
    "latched": "[{do: release, of: c, at: 0.1}]",
    "brake": "[{do: brake, of: c, at: 0.1, efforts: [20], times: [0], static_ratio: 1.5}]",
    "free": "[{do: latch, of: b, at: 0.1}, {do: release, of: b, at: 0.2}]",
}
STEP = "schedule: {step: 1 ms, duration: 0.3 s, integrator: rk4}\n"
SEEN = [f"{joint}/{what}" for joint in "abc" for what in ("position", "velocity")]

ENERGIES = [f"energy/{what}" for what in ("kinetic", "potential", "work", "dissipated")]


def rig_text(name, body=False):
    """A case with a rotor, or with a body in its place."""
    given = JOINTS[name]
    own = [joint for joint in "abc" if f"{joint}: {{" in given]
    given = ", ".join([given, *(f"{joint}: {{initial: {REST}}}" for joint in "abc" if joint not in own)])
    events = f"events: {EVENTS[name]}\n" if name in EVENTS else ""
    constraints = ", ".join([ROD] * (name == "loop") + [GEAR] * body)
    base = "  moving_base: {y: {type: sine, amplitude: 0.05, frequency: 3 Hz}}\n" * (name == "moving base")
    mechanism = f"{BODIES}{SHAFT if body else ROTOR}  constraints: [{constraints}]\n{base}"
    return f"{mechanism}joints: {{{given}}}\n{events}{STEP}"


@pytest.fixture
def runs(rig_of):
    def run(name, *overrides, body=False, **more):
        return EventRun(rig_of(rig_text(name, body), *overrides, turns=LAW, **more))

    return run


@pytest.mark.parametrize("name", JOINTS)
def test_runs_like_a_body_on_a_shaft(runs, name):
    rotor, body = runs(name), runs(name, body=True)
    for signal in SEEN:
        np.testing.assert_allclose(rotor[signal], body[signal], rtol=0, atol=1e-9, err_msg=signal)
    for signal in ENERGIES if name != "moving base" else ():  # which moves the body on the shaft, too
        np.testing.assert_allclose(rotor[signal], body[signal], rtol=0, atol=1e-8, err_msg=signal)


@pytest.mark.parametrize("name", JOINTS)
def test_engines_agree(runs, name):
    short = "schedule.duration=0.12", "schedule.step=4 ms"
    native, plain = runs(name, *short), runs(name, *short, interpret=True)
    for signal in (*SEEN, *ENERGIES):
        np.testing.assert_allclose(plain[signal], native[signal], rtol=1e-9, atol=1e-11, err_msg=signal)


# integrator -> the largest error at the end
INTEGRATORS = {"semi_implicit_euler": 5e-3, "rosenbrock": 1e-4, "rodas4": 1e-5, "multirate": 1e-5}


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("name", ["free", "prescribed", "drives", "latched"])
def test_integrators_agree(runs, name, integrator):
    exact, found = runs(name, "schedule.substeps=8"), runs(name, f"schedule.integrator={integrator}")
    for joint in "abc":
        end = found[f"{joint}/position"][-1]
        assert end == pytest.approx(exact[f"{joint}/position"][-1], abs=INTEGRATORS[integrator])


@pytest.mark.parametrize("name", ["free", "prescribed", "drives", "stop", "latched", "loop", "moving base"])
def test_energy_is_conserved(runs, name):
    """What is stored and what was dissipated is what was supplied, and what was there at the start."""
    run = runs(name, "schedule.step=0.25 ms")
    balance = run["energy/stored"] + run["energy/dissipated"] - run["energy/work"]
    np.testing.assert_allclose(balance, balance[0], rtol=0, atol=1e-6 * max(1.0, np.ptp(run["energy/kinetic"])))
    assert run["energy/dissipated"][-1] > 1e-3


def test_a_real_joint_takes_its_part_of_the_rotor(rig_of):
    """The effort that a motion of the real joint requires, and the motion of the others, without drives."""
    text = rig_text("free").replace(f"events: {EVENTS['free']}\n", "")
    plant = replace(rig_of(text, turns=LAW).plant, real=("c",))
    rng = np.random.default_rng(0)
    x = plant.initial() | dict(zip(("position", "velocity"), rng.normal(size=(2, 3)), strict=True))
    found = plant.efforts(0.0, x | {"real": np.array([2.5])}, np.zeros(3))
    q, v, a = (found[name] for name in "qva")
    required = plant.model.equations.inverse_dynamics(q, v, a) + plant.model.equations.friction_effort(v)
    np.testing.assert_allclose(found["effort"], [0.0, 0.0, required[2]], rtol=0, atol=1e-12)
    np.testing.assert_allclose(required[:2], 0.0, atol=1e-12)
    assert a[2] == 2.5


FOLLOWS = (
    "controllers=[{type: feedforward_pd, kp: 50, kd: 5,"
    " trajectory: {type: quintic, goal: [0.5, -0.4, 0.6], duration: 0.1 s}}]"
)
COMPUTED_TORQUE = (
    "controllers=[{type: computed_torque, bandwidth: 5 Hz,"
    " trajectory: {type: quintic, goal: [0.5, -0.4, 0.6], duration: 0.3 s}}]",
    *(f"joints.{joint}.actuator={{type: ideal, max_effort: 1000}}" for joint in "abc"),
)
AT_REST = tuple(f"joints.{joint}.initial={REST}" for joint in "abc")


def test_computed_torque_knows_the_rotor(rig_of):
    """The arm follows as exactly as one without the rotor; not so where the controller does not know it."""

    def error(text, **unknown) -> float:
        rig: Rig = rig_of(text, *AT_REST, *COMPUTED_TORQUE, "schedule.step=0.25 ms", turns=LAW)
        return float(rig.rollouts(unknown, metrics=["error_max"], unknown=list(unknown)).metrics["error_max"].max())

    text = rig_text("drives")
    plain = error(text.replace(ROTOR, ""))
    known, hidden = error(text), error(text, **{"mechanism.motor.inertia": [0.4]})
    assert known < 3.0 * plain + 1e-9
    assert hidden > 100.0 * known


def test_numbers_of_rotors_are_inputs_of_compiled_ticks(rig_of):
    """Each set of numbers gives what a rig with these numbers gives, to the last bit but rounding."""
    text, sets = rig_text("drives"), {"inertia": [0.05, 0.3], "damping": [0.0, 1.0], "friction": [0.5, 0.0]}
    rig = rig_of(text, turns=LAW)
    found = rig.rollouts({f"mechanism.motor.{name}": values for name, values in sets.items()}, keep="all", signals=SEEN)
    for k in range(2):
        given = [f"mechanism.rotors.motor.{name}={values[k]}" for name, values in sets.items()]
        run = EventRun(rig_of(text, *given, turns=LAW))
        for signal in SEEN:
            np.testing.assert_allclose(found[signal][k], run[signal], rtol=0, atol=1e-9, err_msg=signal)


def test_gradients_by_the_numbers_of_a_rotor(rig_of):
    names = [f"mechanism.motor.{name}" for name in ("inertia", "damping", "friction")]
    rig = rig_of(rig_text("drives"), FOLLOWS, "schedule.duration=0.1", turns=LAW)
    found = rig.gradient(["error_rms"], names)
    for name in names:
        at, step = float(rig.numbers[name]), 1e-5
        values = rig.rollouts({name: [at - step, at + step]}, metrics=["error_rms"]).metrics["error_rms"].sum(axis=1)
        assert float(found[name]) == pytest.approx((values[1] - values[0]) / (2 * step), rel=1e-4)
