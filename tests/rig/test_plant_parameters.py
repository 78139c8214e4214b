"""Numbers of the mechanism and the drives as inputs of the compiled ticks: equal to rig files with those numbers."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from cosim import Rig, load_rig
from cosim.rig.parameter_table import table_of
from tests.kit.refusals import refusal
from tests.kit.samples import FOLDER

UPPER = {"name": "upper", "joint": "shoulder", "mass": 2.0, "com": [0.2, 0.01, 0], "axis": [0, 1, 0]}
FORE = {"name": "fore", "parent": "upper", "joint": "elbow", "origin": {"xyz": [0.4, 0, 0]}, "mass": 1.0}
MOTOR = {
    "type": "dc_motor",
    "resistance": 0.5,
    "inductance": 0.001,
    "torque_constant": 0.06,
    "rotor_inertia": 4e-5,
    "voltage_limit": 48,
    "current_limit": 20,
    "ratio": 80,
    "efficiency": 0.9,
    "viscous": 0.2,
    "coulomb": 0.4,
    "stiffness": 3000,
    "damping": 4,
}
ARM = {
    "name": "arm",
    "mechanism": {
        "bodies": [
            {**UPPER, "inertia": [0.01, 0.03, 0.03], "damping": 0.3, "friction": 0.1},
            {**FORE, "com": [0.15, 0, 0.02], "axis": [0, 1, 0], "inertia": [0.005, 0.02, 0.02]},
        ]
    },
    "joints": {
        "shoulder": {"actuator": MOTOR, "encoder": {"cpr": 20000, "noise": 1e-4}},
        "elbow": {"actuator": {**MOTOR, "ratio": 50}},
    },
    "controllers": [
        {
            "name": "track",
            "type": "feedforward_pd",
            "kp": 300,
            "kd": 12,
            "trajectory": {"type": "quintic", "goal": 0.6, "duration": 0.1},
        }
    ],
    "schedule": {"step": "1 ms", "substeps": 4, "duration": 0.12},
}
MOTOR_NUMBERS = {name: value for name, value in MOTOR.items() if name != "type"}
# name of the number -> (path in the rig, values of four runs)
CASES = {
    **{
        f"joints.elbow.actuator.{name}": (
            ("joints", "elbow", "actuator", name),
            np.array([0.8, 0.9, 1.0, 1.05]) * value,
        )
        for name, value in {**MOTOR_NUMBERS, "efficiency": 0.85, "ratio": 50, "bandwidth": 200.0}.items()
    },
    "joints.shoulder.encoder.noise": (("joints", "shoulder", "encoder", "noise"), np.array([1e-5, 1e-4, 2e-4, 3e-4])),
    "mechanism.upper.mass": (("mechanism", "bodies", 0, "mass"), np.array([0.5, 1.0, 2.0, 4.0])),
    "mechanism.fore.com": (
        ("mechanism", "bodies", 1, "com"),
        np.array([[0.1, 0, 0], [0.15, 0, 0.02], [0.2, 0.05, 0.01], [0.3, 0, 0]]),
    ),
    "mechanism.fore.inertia": (
        ("mechanism", "bodies", 1, "inertia"),
        np.outer([0.5, 1.0, 1.5, 2.0], [0.005, 0.02, 0.02, 0.001, 0.002, 0.0]),
    ),
    "mechanism.shoulder.damping": (("mechanism", "bodies", 0, "damping"), np.array([0.0, 0.3, 1.0, 3.0])),
    "mechanism.shoulder.friction": (("mechanism", "bodies", 0, "friction"), np.array([0.0, 0.1, 0.5, 2.0])),
}


@pytest.fixture(scope="module")
def arm():
    return Rig.from_dict(ARM)


def fresh(values):
    """The rig of a file with these numbers."""
    data = copy.deepcopy(ARM)
    for path, value in values:
        section = data
        for key in path[:-1]:
            section = section[key]
        section[path[-1]] = value
    return Rig.from_dict(data)


def assert_equal_signals(batch, k, run):
    """Run k of the batch, relative to the largest value of each signal."""
    for name in run.signals:
        scale = max(np.abs(run[name]).max(), 1e-6)
        np.testing.assert_allclose(batch[name][k] / scale, run[name] / scale, rtol=0, atol=1e-7, err_msg=name)


def assert_equal_to_files(arm, names, runs=(0, 3)):
    parameters = {name: CASES[name][1] for name in names}
    batch = arm.rollouts(parameters, keep="all", metrics=["error_rms"])
    for k in runs:
        run = fresh([(CASES[name][0], CASES[name][1][k].tolist()) for name in names]).run()
        assert_equal_signals(batch, k, run)
        for name in run.signals:
            assert abs(batch.final[name][k] - run[name][-1]) <= 1e-7 * max(np.abs(run[name]).max(), 1e-6)
        np.testing.assert_allclose(batch["error_rms"][k, 1], run.summary["joints"]["elbow"]["error_rms"], rtol=1e-6)
    changed = batch["elbow/position"][0] != batch["elbow/position"][3]
    changed |= batch["shoulder/position"][0] != batch["shoulder/position"][3]
    return changed.any()


def test_every_number_is_listed(arm):
    listed = set(table_of(arm).per_run)
    assert set(CASES) <= listed
    assert arm.numbers["mechanism.upper.mass"] == 2.0
    assert arm.numbers["mechanism.fore.com"] == [0.15, 0.0, 0.02]
    assert set(arm.numbers) == listed


DRIVE = [name for name in CASES if ".actuator." in name]


@pytest.mark.parametrize("names", [DRIVE, [name for name in CASES if name not in DRIVE]], ids=["drive", "mechanism"])
def test_numbers_together_equal_the_file(arm, names):
    assert assert_equal_to_files(arm, names, runs=(0, 2))


@pytest.mark.parametrize("name", ["joints.elbow.actuator.rotor_inertia", "mechanism.fore.com"])
def test_one_number_equals_the_file_and_counts(arm, name):
    assert assert_equal_to_files(arm, [name])


def test_gains_and_numbers_together(arm):
    mass, kp = np.array([1.0, 3.0]), np.array([100.0, 400.0])
    batch = arm.rollouts({"track.kp": kp, "mechanism.upper.mass": mass}, keep="all")
    for k in range(2):
        rig = fresh([(("mechanism", "bodies", 0, "mass"), float(mass[k]))])
        run = rig.run(parameters={"track.kp": kp[k]})
        np.testing.assert_allclose(batch["elbow/position"][k], run["elbow/position"], atol=1e-9)


def test_they_are_traced_once(arm):
    parameters = {"mechanism.upper.mass": np.array([1.0, 3.0])}
    arm.rollouts(parameters)
    model = arm.parametrised[1]
    arm.rollouts(parameters)
    assert arm.parametrised[1] is model


def test_a_lane_that_stops_has_the_reason_of_its_numbers(arm):
    rig = Rig.from_dict({**ARM, "joints": {**ARM["joints"], "all": {"limits": {"lower": -0.1, "upper": 0.7}}}})
    batch = rig.rollouts({"mechanism.upper.mass": np.array([2.0, 400.0])}, duration=1.0)
    assert batch.faults[0] == "" and "outside its limits -0.1 to 0.7 rad" in batch.faults[1]


def test_masses_of_a_closed_loop(sample):
    rig = sample("mechanisms/four_bar")
    link, masses = rig.plant.mechanism.links[-1].name, np.array([0.5, 1.5])
    batch = rig.rollouts({f"mechanism.{link}.mass": masses}, duration=0.1, keep="all")
    for k, mass in enumerate(masses):
        other = sample("mechanisms/four_bar", f"mechanism.numbers.{link}={{mass: {mass}}}")
        assert_equal_signals(batch, k, other.run(0.1))


MISTAKES = {
    "mechanism.upper.mass": [1.0, 0.0],
    "mechanism.upper.inertia": [[-1.0, 1.0, 1.0, 0.0, 0.0, 0.0]],
    "mechanism.upper.com": np.zeros((2, 2)),
    "joints.elbow.actuator.efficiency": [0.9, 1.2],
    "joints.elbow.actuator.rotor_inertia": [0.0],
    "joints.shoulder.encoder.noise": [-1.0],
    "mechanism.elbow.friction": [np.nan],
    "mechanism.upper.mas": [1.0],
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(arm, said, name):
    words = refusal(arm.rollouts, {name: MISTAKES[name]})
    assert words.startswith(f"parameter '{name}'")
    said(words)


def test_a_number_on_which_the_form_of_the_code_depends(tmp_path, said):
    (tmp_path / "spring.py").write_text(
        """
import math
from cosim.plugin import ACTUATOR_INPUTS, ACTUATOR_OUTPUTS, param, params

@params
class Params:
    size: float = param(default=1.0)

class Spring:
    inputs, outputs, reflected_inertia, positions = ACTUATOR_INPUTS, ACTUATOR_OUTPUTS, 0.0, ()

    def __init__(self, params):
        self.params = params

    def initial(self, position, velocity):
        return {}

    def flow(self, t, p, x, u):
        effort = u["request"] * (2.0 if p.size > 1.0 else 1.0)
        return {}, {"effort": effort, "power": effort * u["velocity"], "loss": 0.0, "stored": 0.0}

def load(params):
    return Spring(params)
"""
    )
    body = {"name": "bob", "joint": "pivot", "mass": 1.0, "com": [0.2, 0, 0], "inertia": [0.01, 0.02, 0.02]}
    rig = Rig.from_dict(
        {
            "name": "sprung",
            "mechanism": {"bodies": [{**body, "axis": [0, 1, 0]}]},
            "joints": {"pivot": {"actuator": {"type": "spring.py"}}},
            "schedule": {"step": "1 ms", "duration": 0.1},
        },
        tmp_path,
    )
    said(refusal(rig.rollouts, {"joints.pivot.actuator.size": [0.5, 2.0]}))


def test_numbers_of_a_sample_rig_from_a_urdf():
    rig = load_rig(FOLDER / "ur5_sim.yaml")
    names = ["mechanism.forearm_link.mass", "joints.elbow_joint.actuator.resistance"]
    values = {name: np.array([0.9, 1.0, 1.1]) * rig.numbers[name] for name in names}
    batch = rig.rollouts(values, duration=0.2, keep="all")
    assert_equal_signals(batch, 1, rig.run(0.2))


def test_metrics_are_those_of_the_numbers(arm):
    """Efforts and energies depend on the numbers themselves, not through the motion alone."""

    def kinetic(t, signals):
        return signals["energy/kinetic"]

    mass, friction = np.array([1.0, 3.0]), np.array([0.1, 2.0])
    parameters = {"mechanism.upper.mass": mass, "joints.elbow.actuator.coulomb": friction}
    batch = arm.rollouts(parameters, metrics=["effort_rms", kinetic])
    for k in range(2):
        numbers = [
            (("mechanism", "bodies", 0, "mass"), float(mass[k])),
            (("joints", "elbow", "actuator", "coulomb"), float(friction[k])),
        ]
        run = fresh(numbers).run()
        np.testing.assert_allclose(batch["effort_rms"][k, 1], run.summary["joints"]["elbow"]["effort_rms"], rtol=1e-6)
        np.testing.assert_allclose(batch["kinetic"][k], run["energy/kinetic"].sum() * 1e-3, rtol=1e-6)
