"""Loops, constraints and springs of a rig: what they become, and what is said of those that are wrong."""

import math
from pathlib import Path

import numpy as np
import pytest

from cosim.mechanics.multibody.constraint_laws import FrameState
from cosim.rig.sections.rig_spec import read_rig

BODIES = """\
mechanism:
  bodies:
    - {name: rod, mass: 1 kg, inertia: [1, 1, 1]}
    - {name: cart, type: prismatic, mass: 1 kg, inertia: [1, 1, 1], parent: base}
    - {name: ball, type: spherical, mass: 1 kg, inertia: [1, 1, 1], parent: base}
    - {name: tip, type: fixed, parent: rod}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(section, *entries):
    """The mechanism with these entries of a section, from line 8 on."""
    lines = "".join(f"    - {{{entry}}}\n" for entry in entries)
    Path("rig.yaml").write_text(f"{BODIES}  {section}:\n{lines}")
    return read_rig("rig.yaml").mechanism.description


def loop(keys):
    (found,) = read("loops", f"name: C, parent: rod, child: cart, {keys}").loops
    return found


def test_a_loop():
    found = loop("axis: [0, 2, 0], origin: {xyz: [10 cm, 0, 0]}, child_origin: {xyz: [0, 1, 0], rpy: [0, 0, 90 deg]}")
    joint = found.joint
    assert (joint.name, joint.kind, joint.parent, joint.child) == ("C", "revolute", "rod", "cart")
    assert joint.axis.tolist() == [0, 1, 0]
    assert joint.pose.position.tolist() == [0.1, 0, 0]
    assert found.child_pose.position.tolist() == [0, 1, 0]
    assert found.child_pose.rotation.tolist() == [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    assert found.coordinates is False
    assert str(joint.place) == "rig.yaml:8 mechanism.loops[0]"


@pytest.mark.parametrize(
    ("keys", "coordinates"),
    [
        *((key, True) for key in ("coordinates: true", "stiffness: 2", "damping: 1", "friction: 1")),
        ("limits: {effort: 3}", True),
        ("type: fixed", False),
    ],
)
def test_a_loop_with_coordinates(keys, coordinates):
    assert loop(keys).coordinates is coordinates


def test_the_figures_of_the_joint_of_a_loop():
    joint = loop("type: prismatic, stiffness: 2 N/mm, unloaded_position: 5 mm, limits: {lower: -1 cm}").joint
    assert (joint.stiffness, joint.rest, joint.lower) == (2000, 0.005, -0.01)
    (found,) = read("loops", "name: C, parent: rod, child: base").loops
    assert found.joint.child == "base"


def constraint(keys):
    (found,) = read("constraints", f"name: c, {keys}").constraints
    return found


def still(constraint, *poses):
    """Frames of the constraint at rest, when its links stand at these positions, not turned."""
    return [
        FrameState(pose.rotation, np.array(at, dtype=float) + pose.position, np.zeros(3), np.zeros(3))
        for (_, pose), at in zip(constraint.frames, poses, strict=True)
    ]


def test_a_distance():
    found = constraint("type: distance, between: [base, rod], points: [[0, 0, 0], [1, 0, 0]], length: 50 cm")
    assert [link for link, _ in found.frames] == ["base", "rod"]
    (value,) = found.law.residual(still(found, [0, 0, 0], [0, 0, 0]), (), 0.0)
    assert value == pytest.approx(0.5)
    (value,) = found.law.residual(still(found, [0, 0, 0], [-0.5, 0, 0]), (), 0.0)
    assert value == pytest.approx(0)
    assert str(found.place) == "rig.yaml:8 mechanism.constraints[0]"


def test_a_curve():
    found = constraint("type: curve, body: cart, polynomial: [1, 0, 2], origin: {xyz: [0, 3, 0]}, point: [0, 0, 5]")
    assert [link for link, _ in found.frames] == ["base", "cart"]
    (value,) = found.law.residual(still(found, [0, 0, 0], [2, 3 + 1 + 2 * 4, 0]), (), 0.0)
    assert value == pytest.approx(0)
    assert constraint("type: curve, on: rod, body: cart, polynomial: [1]").frames[0][0] == "rod"


@pytest.mark.parametrize(
    ("joints", "offset", "value", "unit"),
    [("[rod, cart]", "90 deg", math.pi / 2, "N*m"), ("[cart, rod]", "5 mm", 0.005, "N")],
)
def test_a_gear(joints, offset, value, unit):
    found = constraint(f"type: gear, joints: {joints}, ratio: 2, offset: {offset}")
    assert found.joints == tuple(joints.strip("[]").split(", "))
    assert found.law.residual((), (2 * 3 + value, 3), 0.0)[0] == pytest.approx(0)
    assert found.law.rows[0].unit == unit


def test_a_knife_edge():
    found = constraint("type: knife_edge, body: rod, normal: [0, 0, 5], point: [1, 2, 3]")
    (base, _), (link, pose) = found.frames
    assert (base, link, pose.position.tolist()) == ("base", "rod", [1, 2, 3])
    assert pose.rotation[:, 1].tolist() == [0, 0, 1]
    assert np.linalg.det(pose.rotation) == pytest.approx(1)


def test_a_rolling_disk():
    found = constraint("type: rolling, body: rod, axle: [0, 3, 4], radius: 30 cm, plane: {xyz: [0, 0, 1]}")
    (base, plane), (link, pose) = found.frames
    assert (base, link, plane.position.tolist()) == ("base", "rod", [0, 0, 1])
    np.testing.assert_allclose(pose.rotation[:, 2], [0, 0.6, 0.8])
    np.testing.assert_allclose(pose.rotation.T @ pose.rotation, np.eye(3), atol=1e-15)
    upright = constraint("type: rolling, body: rod, axle: [0, 1, 0], radius: 30 cm, plane: {xyz: [0, 0, 1]}")
    (value,) = upright.law.residual(still(upright, [0, 0, 0], [4, 5, 1.3]), (), 0.0)
    assert value == pytest.approx(0)


def test_a_gear_on_the_joint_of_a_loop():
    entries = "  loops: [{name: C, parent: rod, child: cart, coordinates: true}]\n"
    gear = "  constraints: [{name: g, type: gear, joints: [C, rod], ratio: -1}]\n"
    Path("rig.yaml").write_text(BODIES + entries + gear)
    assert read_rig("rig.yaml").mechanism.description.constraints[0].joints == ("C", "rod")


def test_a_spring():
    keys = "stiffness: 800 N/mm, damping: 4e4, unloaded_length: 50 cm, points: [[0, 0, 0], [0, 10 cm, 0]]"
    (found,) = read("springs", f"name: s, between: [base, rod], {keys}").springs
    (ground, point), (link, other) = found.ends
    assert (found.name, ground, link, point.tolist(), other.tolist()) == ("s", "base", "rod", [0, 0, 0], [0, 0.1, 0])
    assert (found.stiffness, found.damping, found.length) == (8e5, 4e4, 0.5)


def test_base_is_the_ground_of_a_urdf_whatever_it_is_called():
    mass = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    hinge = '<joint name="j" type="continuous"><parent link="root"/><child link="arm"/><axis xyz="0 0 1"/></joint>'
    Path("r.urdf").write_text(f'<robot name="r"><link name="root"/><link name="arm">{mass}</link>{hinge}</robot>')
    spring = "springs: [{name: s, between: [base, arm], stiffness: 1}]"
    Path("rig.yaml").write_text(f"mechanism: {{urdf: r.urdf, {spring}}}\n")
    assert [link for link, _ in read_rig("rig.yaml").mechanism.description.springs[0].ends] == ["root", "arm"]
    Path("rig.yaml").write_text(f"mechanism: {{urdf: r.urdf, floating_base: true, {spring}}}\n")
    assert [link for link, _ in read_rig("rig.yaml").mechanism.description.springs[0].ends] == ["world", "arm"]
