"""Gains below zero are refused, each at its line."""

from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest

from cosim.rig.reading.plugins import CONTROLLER
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


GAINS = [
    (name, field.name, "at least 0" if field.metadata["min"] == 0 else "above 0", suffix(field.metadata["unit"]))
    for name in TYPES
    for field in fields(import_module(f"{CONTROLLER.package}.{name}").Params)
    if 0 in (field.metadata["min"], field.metadata["above"]) and str(field.type).startswith("PerJoint")
]


def test_every_gain_has_a_bound():
    named = {(name, gain) for name, gain, *_ in GAINS}
    of_drives = {
        (name, gain) for name in ("feedforward_pd", "passthrough", "pd_gravity", "pid") for gain in ("kp", "kd")
    }
    assert named >= of_drives | {("pid", "ki"), ("computed_torque", "bandwidth"), ("computed_torque", "damping")}


@pytest.mark.parametrize("values", ["-1e-300", "[-2]", "{elbow: -2}"])
@pytest.mark.parametrize(("name", "gain", "bound", "unit"), GAINS)
def test_a_negative_gain_is_refused(command, tmp_path, name, gain, bound, unit, values):
    others = [key for kind, key, *_ in GAINS if kind == name and key != gain]
    lines = [f"    {key}: 1\n" for key in others] + [f"    {gain}: {values}\n"]
    (tmp_path / "rig.yaml").write_text(RIG % name + "".join(lines))
    (found,) = command.refuses("check", "rig.yaml")
    what = {"-1e-300": ("", "-1e-300"), "[-2]": ("[0]", "-2"), "{elbow: -2}": (".elbow", "-2")}
    place, value = what[values]
    line = 4 + len(lines)
    assert found == f"rig.yaml:{line} controllers[0].{gain}{place}: must be {bound}{unit}, is {value}{unit}"
