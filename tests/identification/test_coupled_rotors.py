"""The inertia, damping and friction of a rotor that turns with two joints of a wrist, from a recording of an arm."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from cosim import load_rig, open_recording
from cosim.apps.identification.equation_error import EquationError
from cosim.apps.identification.identification import identify
from cosim.apps.identification.variables import choose
from cosim.core.tables.options import TableOptions
from cosim.mechanics.multibody.friction import FRICTION_SPEED
from cosim.rig.reading.yaml_source import overrides_of
from tests.identification.conftest import MOTOR
from tests.identification.pendulum import write
from tests.kit.refusals import refusal

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
        change = error.of_sample(none + np.eye(3)[k], q, v, a, drive, none[:0], none[:0]) - error.of_sample(
            none, q, v, a, drive, none[:0], none[:0]
        )
        np.testing.assert_allclose(np.asarray(change, dtype=float), [0, 0, 0, 0, part, part], rtol=1e-9, atol=1e-12)


# --- logs of the motor side ---


@pytest.fixture(scope="module")
def ideal(arm):
    """The arm with ideal drives, whose efforts are at the joints."""
    return ["joints.all.actuator={type: ideal}", "controllers.0.kp=50", "controllers.0.kd=1"]


@pytest.fixture(scope="module")
def motor_side(arm, ideal):
    """A log of positions and efforts of the motors: the last one has q₅ + q₆, and works on both joints."""
    truth = [f"mechanism.rotors.wrist_motor.{name}={value}" for name, value in NUMBERS.items()]
    path = arm.parent / "ideal.mcap"
    load_rig(arm, [*ideal, *truth]).run(record=path)
    run = open_recording(path)
    columns = {"t": np.asarray(run.t)}
    for k, joint in enumerate(JOINTS):
        columns |= {f"p{k + 1}": run[f"{joint}/position"].copy(), f"e{k + 1}": run[f"{joint}/effort"].copy()}
    columns["p6"] = columns["p5"] + columns["p6"]
    columns["e5"] = columns["e5"] - columns["e6"]
    return write(arm.parent / "motors.csv", columns)


BY_ORDER = TableOptions(columns={"position": "p1..p6", "effort": "e1..e6"})


def test_a_log_of_the_motor_side_determines_the_rotor(arm, ideal, motor_side):
    rig = load_rig(arm, ideal)
    found = identify(rig, motor_side, ["mechanism.wrist_motor.*"], table=BY_ORDER, motors={"joint_6": "wrist_motor"})
    for number in found.numbers:
        assert abs(number.value - NUMBERS[number.name.rpartition(".")[2]]) <= 3.0 * number.interval + 1e-3, number
    assert found.residual(training=False).whole < 0.01
    again = load_rig(arm, [*ideal, *overrides_of(found.overlay())])
    judged = identify(again, [], check=[motor_side], table=BY_ORDER, motors={"joint_6": "wrist_motor"})
    assert judged.residual(training=False).whole < 1.5 * found.residual(training=False).whole


@pytest.mark.parametrize(
    "motors",
    [{"joint_6": "wrist"}, {"joint_4": "wrist_motor"}, {"joint_9": "wrist_motor"},
     {"joint_5": "wrist_motor", "joint_6": "wrist_motor"}],
)  # fmt: skip
def test_a_motor_of_no_rotor_is_refused(arm, ideal, motor_side, said, motors):
    said(refusal(identify, load_rig(arm, ideal), motor_side, table=BY_ORDER, motors=motors))


def test_currents_of_motors_are_no_efforts(arm, recording, said):
    said(refusal(identify, load_rig(arm), recording, motors={"joint_6": "wrist_motor"}))


def test_rotors_are_found_by_words(arm):
    titles = choose(load_rig(arm), ["friction", "rotor_inertia"]).titles
    assert {f"mechanism.wrist_motor.{name}" for name in NUMBERS} <= set(titles)
