"""Gains below zero are refused, each at its line."""

from dataclasses import fields
from importlib import import_module
from itertools import cycle
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from cosim.rig.reading.plugins import CONTROLLER
from cosim.types import PerJoint
from cosim.units import JOINT_DIMENSIONS

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
