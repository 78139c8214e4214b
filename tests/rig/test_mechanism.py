"""The section `mechanism` of a rig: kinds of joints, carriers, floating bases, the way loops are closed."""

import math
from pathlib import Path

import numpy as np
import pytest

from cosim.rig.sections.joint_definition import TYPES
from cosim.rig.sections.mechanism import LoopClosureKeys
from cosim.rig.sections.rig_spec import read_rig
from tests.kit.refusals import refusal

MASS = "mass: 1 kg, inertia: [1, 1, 1]"
URDF = """\
<robot name="two">
  <link name="{root}"/>
  <link name="arm"><inertial>
    <mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
  </inertial></link>
  <joint name="hinge" type="continuous"><parent link="{root}"/><child link="arm"/><axis xyz="0 0 1"/></joint>
</robot>
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("two.urdf").write_text(URDF.format(root="body"))


def read(text):
    Path("rig.yaml").write_text(text)
    return read_rig("rig.yaml").mechanism


def body(keys):
    """A rig with one body, in line 3."""
    return f"mechanism:\n  bodies:\n    - {{name: a, {MASS}, {keys}}}\n"


def joint(keys):
    return read(body(keys)).description.joints[0]


@pytest.mark.parametrize("kind", ["cylindrical", "universal", "spherical", "planar", "free"])
def test_every_kind_is_read(kind):
    found = joint(f"type: {kind}")
    assert (found.kind, found.axis.tolist(), found.motion, found.pitch) == (kind, [0, 0, 1], None, 0)


def test_a_spring_in_a_joint():
    found = joint("stiffness: 3, unloaded_position: 90 deg")
    assert (found.stiffness, found.rest) == (3, pytest.approx(math.pi / 2))
    found = joint("type: prismatic, stiffness: 2 N/mm, unloaded_position: 5 mm")
    assert (found.stiffness, found.rest) == (2000, 0.005)


@pytest.mark.parametrize("kind", TYPES)
def test_a_joint_that_is_called_like_a_type_has_its_type_written_out(kind):
    """Without it the joint would be a hinge of this name."""
    loop = "  loops: [{{name: {}, parent: a, child: base{}}}]\n"
    for written in (body(f"joint: {kind}"), body("") + loop.format(kind, "")):
        assert f"write 'type: {kind}'" in refusal(read, written)
    assert joint(f"joint: {kind}, type: revolute").name == kind
    assert read(body("") + loop.format(kind, ", type: revolute")).description.loops[0].joint.kind == "revolute"
    assert read(body("").replace("name: a", f"name: {kind}")).description.joints[0].kind == "revolute"  # a body


def test_the_pitch_of_a_screw_is_given_per_turn():
    found = joint("type: screw, pitch: 5 mm, limits: {lower: -2 turn}, damping: 0.1 N*m*s/rad")
    assert found.pitch == pytest.approx(0.005 / (2 * math.pi), rel=1e-15)
    assert (found.lower, found.damping) == (-4 * math.pi, 0.1)


@pytest.mark.parametrize(
    ("keys", "axis", "second"),
    [
        ("", [0, 0, 1], [1, 0, 0]),
        ("axis: [3, 0, 0]", [1, 0, 0], [0, 1, 0]),
        ("axis: [0, 1, 0]", [0, 1, 0], [0, 0, 1]),
        ("axis: [0, -2, 0], second_axis: [0, 0, 4]", [0, -1, 0], [0, 0, 1]),
        ("axis: [1, 1, 0], second_axis: [1, -1, 1e-8]", [0.5**0.5, 0.5**0.5, 0], [0.5**0.5, -(0.5**0.5), 0]),
    ],
)
def test_the_second_axis_of_a_universal_joint(keys, axis, second):
    found = joint(f"type: universal{', ' if keys else ''}{keys}")
    np.testing.assert_allclose(found.axis, axis, atol=1e-8)
    np.testing.assert_allclose(found.second_axis, second, atol=1e-8)
    assert abs(found.axis @ found.second_axis) < 1e-15


def test_an_axis_is_without_effect_where_a_joint_has_none():
    mechanism = read(body("type: spherical, axis: [1, 0, 0]")).description
    assert mechanism.joints[0].axis.tolist() == [0, 0, 1]
    assert mechanism.notes == ("rig.yaml:3 mechanism.bodies[0].axis: without effect on a spherical joint",)


def test_joints_of_both_sorts_of_coordinates_take_both_units():
    assert joint("type: planar, damping: 2 N*s/m").damping == 2
    assert joint("type: cylindrical, damping: 2 N*m*s/rad").damping == 2


def test_closing():
    assert read(body("type: free")).loop_closure == LoopClosureKeys("projection", 20.0, "resolve", "auto")
    given = "  loop_closure: {drift: baumgarte, frequency: 1 kHz, redundant: refuse, elimination: nested}\n"
    assert read(body("type: free") + given).loop_closure == LoopClosureKeys("baumgarte", 1000.0, "refuse", "nested")


QUARTER = "{type: quintic, goal: 90 deg, duration: 1 s}"
SLIDE = "{type: quintic, goal: 20 cm, duration: 2 s}"


def test_a_carrier_moves_the_first_body():
    moving_base = f"  moving_base: {{y: {SLIDE}, roll: {QUARTER}, yaw: {QUARTER}}}\n"
    mechanism = read(body("type: revolute") + moving_base).description
    assert [link.name for link in mechanism.links if link.inertial is None] == ["base", "moving_base"]
    carried, hinge = mechanism.joints
    assert (carried.name, carried.kind) == ("moving_base", "general")
    assert (carried.parent, carried.child) == ("base", "moving_base")
    assert (hinge.parent, hinge.child) == ("moving_base", "a")
    motion = carried.motion
    assert (motion.names, motion.units, motion.timed) == ((), (), True)
    axes, origin = motion.place((), 0.0)
    np.testing.assert_array_equal(axes, np.eye(3))
    np.testing.assert_array_equal(origin, np.zeros(3))
    axes, origin = motion.place((), 1.0)
    # roll takes y to z, then yaw takes x to y: x -> y, y -> z, z -> x
    np.testing.assert_allclose(axes, [[0, 0, 1], [1, 0, 0], [0, 1, 0]], atol=1e-15)
    np.testing.assert_allclose(origin, [0, 0.1, 0], atol=1e-15)


def test_pitch_of_a_carrier_turns_about_y():
    carried = read(body("type: revolute") + f"  moving_base: {{pitch: {QUARTER}}}\n").description.joints[0]
    axes, _ = carried.motion.place((), 2.0)
    np.testing.assert_allclose(axes, [[0, 0, 1], [0, 1, 0], [-1, 0, 0]], atol=1e-15)


def test_a_urdf_on_a_carrier():
    mechanism = read(f"mechanism: {{urdf: two.urdf, moving_base: {{x: {SLIDE}}}}}\n").description
    assert mechanism.root == "world"
    assert [link.name for link in mechanism.links] == ["world", "moving_base", "body", "arm"]
    assert [(j.name, j.kind, j.parent, j.child) for j in mechanism.joints] == [
        ("moving_base", "general", "world", "moving_base"),
        ("root_joint", "fixed", "moving_base", "body"),
        ("hinge", "continuous", "body", "arm"),
    ]


def test_a_floating_base():
    mechanism = read("mechanism: {urdf: two.urdf, floating_base: true}\n").description
    assert mechanism.root == "world"
    assert [(j.name, j.kind, j.parent, j.child) for j in mechanism.joints] == [
        ("root_joint", "free", "world", "body"),
        ("hinge", "continuous", "body", "arm"),
    ]


def test_bases_that_are_wrong(said):
    """A trajectory that cannot be loaded; a floating and a moving base; the ground with the name of a link."""
    said(refusal(read, f"{body('type: free')}  moving_base: {{x: {{type: waypoints, file: none.csv}}}}\n"))
    said(refusal(read, f"mechanism: {{urdf: two.urdf, floating_base: true, moving_base: {{x: {SLIDE}}}}}\n"))
    Path("two.urdf").write_text(URDF.format(root="world"))
    said(refusal(read, "mechanism: {urdf: two.urdf, floating_base: true}\n"))


MACRO = """\
<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:macro name="arm">
    <link name="arm"><inertial>
      <mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
    </inertial></link>
    <joint name="hinge" type="continuous"><parent link="body"/><child link="arm"/><axis xyz="0 0 1"/></joint>
  </xacro:macro>
</robot>
"""
ROBOT = """\
<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:include filename="$(find parts)/arm.xacro"/><link name="body"/><xacro:arm/>
</robot>
"""


@pytest.mark.parametrize("named", ["bench/rig.yaml", "./bench/../bench/rig.yaml", "{}/bench/rig.yaml"])
@pytest.mark.parametrize("robot", ["robots/robot.xacro", "package://robots/robot.xacro"])
@pytest.mark.parametrize("packages", ["..", "../bench", "."])
def test_paths_are_relative_to_the_rig_and_not_to_the_working_directory(packages, robot, named, tmp_path):
    for file, text in {"bench/robots/robot.xacro": ROBOT, "bench/parts/arm.xacro": MACRO}.items():
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(text)
    Path("bench/rig.yaml").write_text(f"mechanism: {{urdf: '{robot}', packages: ['{packages}']}}\n")
    spec = read_rig(named.format(tmp_path)).mechanism
    assert [link.mass for link in spec.description.links] == [0, 2]
