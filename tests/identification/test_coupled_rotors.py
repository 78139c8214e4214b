"""The inertia, damping and friction of a rotor that turns with two joints of a wrist, from a recording of an arm."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from cosim import load_rig
from cosim.apps.identification.equation_error import EquationError
from cosim.apps.identification.identification import identify
from cosim.mechanics.multibody.friction import FRICTION_SPEED
from tests.identification.conftest import MOTOR

NUMBERS = {"inertia": 0.2, "damping": 1.5, "friction": 2.0}
JOINTS = [f"joint_{k}" for k in range(1, 7)]
SPEEDS = [0.31, 0.43, 0.57, 0.71, 0.53, 0.67]  # Hz
AXES = [[0, 0, 1], [0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0]]
MASSES, LENGTHS = [4, 3, 2, 1, 0.5, 0.3], [0, 0.1, 0.4, 0.3, 0.1, 0.1]  # kg, m


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    bodies = [
        {"name": f"link_{k + 1}", "joint": joint, "axis": AXES[k], "origin": {"xyz": [LENGTHS[k], 0, 0]},
         "mass": MASSES[k], "com": [0.1, 0, 0.02], "inertia": [0.01 * MASSES[k]] * 3}
        for k, joint in enumerate(JOINTS)
    ]  # fmt: skip
    for k, body in enumerate(bodies[1:]):
        body["parent"] = f"link_{k + 1}"
    rotor = {"turns": {"joint_5": 1, "joint_6": 1}, "inertia": 0.05, "damping": 0.5, "friction": 1.0}
    trajectory = {"type": "sine", "amplitude": 0.6, "frequency": SPEEDS, "ramp": 1}
    rig = {
        "name": "wrist",
        "mechanism": {"bodies": bodies, "rotors": {"wrist_motor": rotor}},
        "joints": {"all": {"actuator": MOTOR}},
        "controllers": [{"type": "feedforward_pd", "kp": 400, "kd": 20, "trajectory": trajectory}],
        "schedule": {"step": "1 ms", "integrator": "rk4", "substeps": 2, "duration": 12},
    }
    path = tmp_path_factory.mktemp("wrist") / "wrist.yaml"
    path.write_text(yaml.safe_dump(rig))
    return path


@pytest.fixture(scope="module")
def recording(arm):
    truth = [f"mechanism.rotors.wrist_motor.{name}={value}" for name, value in NUMBERS.items()]
    load_rig(arm, truth).run(record=arm.parent / "truth.mcap")
    return arm.parent / "truth.mcap"


def test_numbers_of_a_rotor_are_found_within_their_intervals(arm, recording):
    found = identify(load_rig(arm), recording, ["mechanism.wrist_motor.*"])
    assert found.method == "equation-error"
    numbers = {number.name: number for number in found.numbers}
    assert set(numbers) == {f"mechanism.wrist_motor.{name}" for name in NUMBERS}
    for name, value in NUMBERS.items():
        number = numbers[f"mechanism.wrist_motor.{name}"]
        assert number.state == "found"
        assert abs(number.value - value) <= 3.0 * number.interval, number
        assert number.interval < 0.05 * value
    for check in found.checks:
        if check.joint in JOINTS[4:]:
            assert check.after < 0.1 * check.before


def test_the_equation_error_has_the_numbers_of_the_rotor(arm):
    """Along the joints 5 and 6 alone: Δe = −(J q̈ + b q̇ + F s(q̇)), q the sum of both, per unit of the signal."""
    names = tuple(f"mechanism.wrist_motor.{name}" for name in NUMBERS)
    error = EquationError(load_rig(arm), names, "effort")
    rng = np.random.default_rng(0)
    q, v, a, drive = rng.uniform(-1.0, 1.0, (4, 6))
    none = np.zeros(len(names))
    rate = v[4] + v[5]
    parts = [a[4] + a[5], rate, rate / np.hypot(rate, FRICTION_SPEED)]
    for k, part in enumerate(parts):
        change = error.of_sample(none + np.eye(3)[k], q, v, a, drive, none[:0]) - error.of_sample(
            none, q, v, a, drive, none[:0]
        )
        np.testing.assert_allclose(np.asarray(change, dtype=float), [0, 0, 0, 0, part, part], rtol=1e-9, atol=1e-12)
