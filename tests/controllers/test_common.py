"""What controllers have in common: refused drives, friction of the reference, the linear model, gains."""

import dataclasses
from dataclasses import fields
from importlib import import_module
from itertools import cycle
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from scipy.linalg import expm

from cosim.core.errors import InputError
from cosim.core.plugin_loading import CONTROLLER
from cosim.core.types import PerJoint
from cosim.core.units import JOINT_DIMENSIONS
from tests.controllers.test_contract import MODEL, N, context
from tests.controllers.test_controllers import make

LINEAR = {"largest_position_error": (0.1, 0.2)}
KEYS: dict[str, dict[str, Any]] = {
    "adaptive": {"bandwidth": (2.0, 3.0), "kd": (4.0, 5.0), "largest_viscous": (1.0, 1.0)},
    "cascade": {"position_gain": (2.0, 3.0), "velocity_gain": (4.0, 5.0), "integral_time": (9.0, 9.0)},
    "computed_torque": {"bandwidth": (2.0, 3.0), "damping": (1.0, 1.0)},
    "disturbance_observer": {"bandwidth": (2.0, 3.0), "damping": (1.0, 1.0), "observer": (9.0, 9.0)},
    "lqg": {**LINEAR, "position_noise": (1e-3, 1e-3), "effort_noise": (1.0, 1.0)},
    "lqr": LINEAR,
    "mpc": LINEAR,
}


def inputs(block: Any, **given: np.ndarray) -> dict[str, np.ndarray]:
    return {name: given.get(name, np.zeros(signal.shape)) for name, signal in block.inputs.items()}


@pytest.mark.parametrize("name", KEYS)
def test_a_drive_with_a_loop_of_its_own_is_refused(name):
    where = dataclasses.replace(context(False), drive_controlled=("a",))
    with pytest.raises(InputError) as caught:
        make(name, where, **KEYS[name])
    instead = "passthrough" if name == "cascade" else "feedforward_pd"
    what = "the drive of joint 'a' closes a loop of its own; use mode: effort of the drive, or type: "
    assert str(caught.value) == what + instead


@pytest.mark.parametrize("name", sorted(KEYS.keys() - {"cascade"}))
def test_the_friction_of_the_mechanism_is_compensated_by_default(name):
    """At the reference velocity, with the state on the reference; of `adaptive` at w, which is that velocity."""
    at = {"reference_velocity": np.array([0.5, -0.25]), "velocity": np.array([0.5, -0.25])}
    at["all_velocity"] = np.zeros(3)
    at["all_velocity"][context(False).index] = at["velocity"]
    efforts = []
    for keys in ({}, {"friction": True}, {"friction": False}):
        block = make(name, context(True), **KEYS[name], **keys)
        _, command = block.update(0.0, block.params, block.initial(), inputs(block, **at))
        efforts.append(np.asarray(command["effort"], dtype=float))
    np.testing.assert_array_equal(efforts[0], efforts[1])
    friction = MODEL.friction_effort(at["all_velocity"])[context(False).index]
    np.testing.assert_allclose(efforts[1] - efforts[2], friction, rtol=1e-9)


@pytest.mark.parametrize("name", sorted(KEYS.keys() - {"adaptive"}))
def test_the_reference_and_its_effort_are_commanded(name):
    block = make(name, context(False), **KEYS[name])
    at = {"reference_position": np.array([0.1, 0.2]), "reference_velocity": np.array([0.3, -0.4])}
    commands = []
    for effort in (0.0, 2.5):
        u = inputs(block, **at, reference_effort=np.full(N, effort))
        commands.append(block.update(0.0, block.params, block.initial(), u)[1])
    np.testing.assert_allclose(commands[1]["effort"] - commands[0]["effort"], 2.5, rtol=1e-9)
    for what in ("position", "velocity")[: 1 if name == "cascade" else 2]:  # that commands its velocity setpoint
        np.testing.assert_array_equal(commands[0][what], at[f"reference_{what}"])
    np.testing.assert_array_equal([commands[0]["kp"], commands[0]["kd"]], np.zeros((2, N)))


SPRING = """
mechanism:
  bodies: [{name: link, joint: hinge, axis: [0, 1, 0], mass: 2 kg, com: [0.5, 0, 0], inertia: [0.1, 0.1, 0.1],
     stiffness: 7, unloaded_position: 0.4, damping: 0.6, friction: 3}]
joints: {hinge: {actuator: {type: ideal}, initial: {position: 0.3}}}
controllers: [{type: lqr, largest_position_error: 1, largest_effort: 1KEYS}]
"""


@pytest.mark.parametrize(("keys", "at"), [("", 0.3), (", at: -0.7", -0.7)])
def test_the_linear_model_has_gravity_springs_and_damping_without_dry_friction(rig_of, keys, at):
    """0.6 kg m² on a hinge: 2 · 9.81 · 0.5 cos q of gravity, against +q as y points away from the lifted side."""
    rig = rig_of(SPRING.replace("KEYS", keys))
    model = rig.tick_model.loops[0].block.regulator.model
    stiffness = 7.0 + 2.0 * 9.81 * 0.5 * np.sin(at)
    flow = np.array([[0.0, 1.0, 0.0], [-stiffness / 0.6, -0.6 / 0.6, 1.0 / 0.6], [0.0, 0.0, 0.0]])
    step = expm(1e-3 * flow)
    np.testing.assert_allclose(model.a, step[:2, :2], rtol=1e-3)
    np.testing.assert_allclose(model.b[:, 0], step[:2, 2], rtol=1e-6)


# --- gains below zero ---

RIG = """\
mechanism:
  bodies: [{name: arm, joint: elbow, mass: 1 kg, inertia: [1, 1, 1]}]
controllers:
  - type: %s
"""
FOLDER = Path(import_module(CONTROLLER.package).__file__ or "").parent
TYPES = sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))


def suffix(unit: str) -> str:
    """A unit of a rotational joint as messages show it."""
    return "" if unit == "1" else f" {JOINT_DIMENSIONS.get(unit, (unit,))[0]}"


PARAMS = {name: import_module(f"{CONTROLLER.package}.{name}").Params for name in TYPES}
# of each type, keys that are required and no gains
OTHERS = {
    "task_impedance": {"frame": "arm", "stiffness": [1, 1, 1]},
    "task_admittance": {"frame": "arm", "mass": [1, 1, 1], "damping": [1, 1, 1], "stiffness": [1, 1, 1]},
}


def of_joints(name: str, key: str) -> bool:
    hint = get_type_hints(PARAMS[name], include_extras=True)[key]
    return PerJoint in (hint, *get_args(hint))


GAINS = [
    (name, field.name, "at least 0" if field.metadata["min"] == 0 else "above 0", suffix(field.metadata["unit"]))
    for name in TYPES
    for field in fields(PARAMS[name])
    if 0 in (field.metadata["min"], field.metadata["above"]) and of_joints(name, field.name)
]


def test_every_gain_has_a_bound():
    named = {(name, gain) for name, gain, *_ in GAINS}
    of_drives = {
        (name, gain) for name in ("feedforward_pd", "passthrough", "pd_gravity", "pid") for gain in ("kp", "kd")
    }
    assert named >= of_drives | {("pid", "ki"), ("computed_torque", "bandwidth"), ("computed_torque", "damping")}


# form of the value -> what is said of its place and of the number
FORMS = {"-1e-300": ("", "-1e-300"), "[-2]": ("[0]", "-2"), "{elbow: -2}": (".elbow", "-2")}


@pytest.mark.parametrize(
    ("name", "gain", "bound", "unit", "values"),
    [(*gain, values) for gain, values in zip(GAINS, cycle(FORMS), strict=False)],
)
def test_a_negative_gain_is_refused(command, tmp_path, name, gain, bound, unit, values):
    others = dict.fromkeys((key for kind, key, *_ in GAINS if kind == name and key != gain), 1) | OTHERS.get(name, {})
    lines = [f"    {key}: {value}\n" for key, value in others.items()] + [f"    {gain}: {values}\n"]
    (tmp_path / "rig.yaml").write_text(RIG % name + "".join(lines))
    (found,) = command.refuses("check", "rig.yaml")
    place, value = FORMS[values]
    line = 4 + len(lines)
    assert found == f"rig.yaml:{line} controllers[0].{gain}{place}: must be {bound}{unit}, is {value}{unit}"
