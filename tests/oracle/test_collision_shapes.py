"""Collision shapes of robot files stand where Pinocchio and MuJoCo have them, and are alike in converted files."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from cosim.mechanics.multibody.contact.shapes import (
    BallShape,
    BoxShape,
    CapsuleShape,
    CylinderShape,
    HalfSpace,
    TerrainShape,
)
from cosim.mechanics.multibody.description.collisions import counted
from cosim.mechanics.multibody.description.mjcf.reader import read_mjcf
from cosim.mechanics.multibody.description.topology import depth_first
from cosim.mechanics.multibody.description.urdf import read_urdf
from cosim.mechanics.multibody.description.usd.reader import read_usd
from cosim.mechanics.multibody.mechanism import Pose
from cosim.rig.sections.rig_spec import read_rig
from tests.kit.refusals import refusal
from tests.kit.usd_files import FOLDER
from tests.oracle.conftest import ROBOTS

EXACT = 1e-12
WITHOUT_MESHES = [
    "a1_description/urdf/a1.urdf",
    "allegro_hand_description/urdf/allegro_left_hand.urdf",
    "anymal_c_simple_description/urdf/anymal.urdf",
]


def places(mechanism):
    """Link -> its pose in the root where every joint is at 0."""
    found = {mechanism.root: Pose.identity()}
    for joint in depth_first(mechanism):
        found[joint.child] = found[joint.parent] @ joint.pose
    return found


def sizes(shape):
    return list(vars(shape).values()) if not isinstance(shape, BoxShape) else list(shape.size)


def sizes_of_pinocchio(geometry):
    match type(geometry).__name__:
        case "Sphere":
            return BallShape, [geometry.radius]
        case "Cylinder":
            return CylinderShape, [geometry.radius, 2 * geometry.halfLength]
        case "Box":
            return BoxShape, (2 * geometry.halfSide).tolist()
    raise AssertionError(type(geometry))


@pytest.mark.parametrize("name", WITHOUT_MESHES)
def test_of_urdf_as_pinocchio_has_them(name):
    file = ROBOTS / name
    model = pin.buildModelFromUrdf(str(file))
    geometry = pin.buildGeomFromUrdf(model, str(file), pin.GeometryType.COLLISION)
    data, of_geometry = model.createData(), geometry.createData()
    # every joint of these robots is at 0 in its neutral configuration, a continuous one too
    pin.updateGeometryPlacements(model, data, geometry, of_geometry, pin.neutral(model))
    robot = read_urdf(file)
    at = places(robot.mechanism)
    expected: dict[str, list] = {}
    for item, placement in zip(geometry.geometryObjects, of_geometry.oMg, strict=True):
        expected.setdefault(item.name.rpartition("_")[0], []).append((*sizes_of_pinocchio(item.geometry), placement))
    assert len(robot.collisions) == len(geometry.geometryObjects) > 10
    for shape in robot.collisions:
        cls, numbers, placement = expected[shape.link].pop(0)
        found = at[shape.link] @ shape.pose
        assert type(shape.shape) is cls and sizes(shape.shape) == pytest.approx(numbers, rel=EXACT)
        assert np.abs(found.position - placement.translation).max() < EXACT
        assert np.abs(found.rotation - placement.rotation).max() < EXACT


MJCF = """<mujoco><compiler autolimits="true"/>
<asset><hfield name="hills" nrow="3" ncol="2" size="1 2 0.5 0.1" elevation="0 1 2 3 4 5"/></asset>
<worldbody><geom name="floor" type="plane" size="5 5 .1" pos="0 0 -1" euler="0 10 0" friction="0.9 0.02 0.003"/>
  <geom type="hfield" hfield="hills" pos="3 0 0"/>
  <body name="b" pos="0.1 0.2 1" euler="10 20 30"><freejoint/>
  <geom name="hull" type="box" size=".1 .2 .3" pos="0 .1 0" euler="40 0 0" mass="3" condim="6" friction=".5 .01 1e-3"/>
    <geom type="sphere" size=".1" contype="0" conaffinity="0"/>
    <body name="leg" pos="0 0 -.2"><joint name="k" axis="0 1 0" pos="0.1 0 0"/>
      <geom type="capsule" fromto="0 0.1 0 0.2 0 -.3" size=".02" mass=".5" condim="1"/>
      <geom name="toe" type="cylinder" size=".03 .05" pos="0 0 -.3" mass=".1" solref="0.01 1" margin="0.01"/>
      <geom type="ellipsoid" size=".1 .1 .2" mass=".1"/></body></body></worldbody></mujoco>"""


def test_of_mjcf_as_mujoco_has_them(tmp_path):
    file = tmp_path / "m.xml"
    file.write_text(MJCF)
    model = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    robot = read_mjcf(file)
    at = places(robot.mechanism)
    base = robot.start.positions["joint_0"]  # a free joint begins where the file has its body
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, np.array([base[6], *base[3:6]]))
    start = Pose(turn.reshape(3, 3), np.array(base[:3]))
    geoms = [geom for geom in range(model.ngeom) if model.geom_contype[geom]]
    for geom, shape in zip(geoms, robot.collisions, strict=True):
        found = at[shape.link] @ shape.pose
        found = found if shape.link == "world" else start @ found
        assert np.abs(found.position - data.geom_xpos[geom]).max() < EXACT
        assert np.abs(found.rotation - data.geom_xmat[geom].reshape(3, 3)).max() < EXACT
    floor, hills, hull, leg, toe, round_one = robot.collisions
    assert counted(robot.collisions) == "1 plane, 1 height field, 1 box, 1 capsule, 1 cylinder, 1 ellipsoid"
    assert (floor.shape, round_one.shape) == (HalfSpace(), None)
    assert (hull.shape, toe.shape) == (BoxShape((0.2, 0.4, 0.6)), CylinderShape(0.03, 0.1))
    assert isinstance(leg.shape, CapsuleShape) and leg.shape.length == pytest.approx(np.sqrt(0.01 + 0.04 + 0.09))
    assert hull.friction.numbers == (0.5, 0.5, 0.01, 0.001) and leg.friction.numbers == (0, 0, 0, 0)
    assert floor.friction.numbers == (0.9, 0.9, 0, 0)  # with condim 3 nothing resists spinning
    assert toe.remarks == ("solref and margin of geoms are not taken: contacts have the stiffness of the rig",)
    assert hull.place.key == "geom 'hull'" and hull.place.line == 6 and leg.place.key == "body 'leg'"
    assert isinstance(hills.shape, TerrainShape)


def test_a_height_field_has_the_heights_at_which_rays_of_mujoco_hit_it(tmp_path):
    file = tmp_path / "m.xml"
    file.write_text(MJCF)
    model = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    (hills,) = (each for each in read_mjcf(file).collisions if isinstance(each.shape, TerrainShape))
    for i, x in enumerate(hills.shape.x):
        for j, y in enumerate(hills.shape.y):
            inside = np.array([x, y]) * (1 - 1e-9)  # a ray at the edge misses
            geom = np.zeros(1, dtype=np.int32)
            above = hills.pose.position + np.array([*inside, 9])
            way = mujoco.mj_ray(model, data, above, np.array([0.0, 0, -1]), None, 1, -1, geom)
            assert 9 - way == pytest.approx(hills.shape.heights[i, j], abs=1e-6)


def test_of_a_converted_file():
    pytest.importorskip("pxr", reason="the package usd-core is not installed")
    one, other = read_mjcf(FOLDER / "shapes.xml").collisions, read_usd(FOLDER / "shapes.usda").collisions
    assert len(one) == len(other) == 4
    for a, b in zip(one, other, strict=True):
        assert (a.link, a.kind, type(a.shape)) == (b.link, b.kind, type(b.shape))
        assert sizes(a.shape) == pytest.approx(sizes(b.shape), rel=1e-6)
        assert np.abs(a.pose.position - b.pose.position).max() < 1e-6
        assert abs(a.pose.rotation[:, 2] @ b.pose.rotation[:, 2]) == pytest.approx(1, abs=1e-6)


def test_of_a_stage_with_a_floor(tmp_path):
    pytest.importorskip("pxr", reason="the package usd-core is not installed")
    stage = Path(tmp_path / "floor.usda")
    stage.write_text(
        """#usda 1.0
( metersPerUnit = 0.01
  upAxis = "Z" )
def Plane "floor" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {}
def Xform "ball" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {
  double3 xformOp:translate = (0, 0, 50)
  uniform token[] xformOpOrder = ["xformOp:translate"]
  float physics:mass = 1
  float3 physics:diagonalInertia = (1, 1, 1)
  def Sphere "shape" (prepend apiSchemas = ["PhysicsCollisionAPI", "MaterialBindingAPI"]) {
    double radius = 5
    double3 xformOp:translate = (0, 0, 10)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    rel material:binding:physics = </rubber>
  }
  def Mesh "hull" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {}
}
def Material "rubber" (prepend apiSchemas = ["PhysicsMaterialAPI"]) {
  float physics:staticFriction = 0.9
  float physics:dynamicFriction = 0.7
}
"""
    )
    floor, ball, hull = read_usd(stage).collisions
    assert (floor.link, floor.shape, floor.pose.rotation.tolist()) == ("world", HalfSpace(), np.eye(3).tolist())
    assert (ball.link, ball.shape) == ("ball", BallShape(0.05))
    assert ball.pose.position == pytest.approx([0, 0, 0.1])
    assert (ball.friction.numbers, floor.friction) == ((0.9, 0.7, 0, 0), None)
    assert (hull.kind, hull.shape, hull.link) == ("mesh", None, "ball")


def rig(tmp_path, mjcf, more="", entry="links: [b, leg]"):
    (tmp_path / "m.xml").write_text(mjcf)
    text = f"mechanism:\n  mjcf: m.xml\n  contacts: [{{name: c, shapes: collision, {entry}, with: ground}}]\n{more}"
    (tmp_path / "rig.yaml").write_text(text)
    return tmp_path / "rig.yaml"


# without the height field, which would be a second ground
FLOOR = MJCF.replace('<geom type="hfield" hfield="hills" pos="3 0 0"/>', "")


def test_a_plane_that_stands_is_the_ground_of_a_rig(tmp_path):
    """Of two surfaces MuJoCo takes the larger friction; what the rig gives, wins."""
    found = read_rig(rig(tmp_path, FLOOR)).mechanism.description
    hull, leg, _ = found.contacts
    assert [each.name for each in found.contacts] == ["c/b", "c/leg", "c/leg/2"]
    assert {each.ends[1][0] for each in found.contacts} == {"world"}
    assert hull.ends[1][1].position.tolist() == [0, 0, -1] and hull.ends[1][1].rotation[0, 2] == pytest.approx(
        np.sin(np.pi / 18)
    )
    assert [each.law.static for each in found.contacts] == [0.9, 0.9, 1.0]
    assert (hull.law.torsional, hull.law.rolling, leg.law.torsional) == (0.01, 0.001, 0)
    assert any("contacts with the ground are with this plane" in note for note in found.notes)
    assert any("solref and margin of geoms are not taken" in note for note in found.notes)
    assert not any("contacts of the file are not taken" in line for line in (*found.warnings, *found.notes))
    assert any("1 ellipsoid" in line for line in found.warnings)
    of_rig = read_rig(rig(tmp_path, FLOOR, "  ground: {friction: 0.4, xyz: [0, 0, 2]}\n")).mechanism.description
    assert [each.law.static for each in of_rig.contacts] == [0.4] * 3
    assert of_rig.contacts[0].ends[1][1].position.tolist() == [0, 0, 2]


def test_two_grounds_are_no_ground(tmp_path, said):
    said(refusal(read_rig, rig(tmp_path, MJCF)))
    own = read_rig(rig(tmp_path, MJCF, "  ground: {xyz: [0, 0, 0]}\n")).mechanism.description
    assert len(own.contacts) == 3


def test_without_contacts_a_fall_is_warned_of(tmp_path):
    file = rig(tmp_path, FLOOR)
    file.write_text("mechanism:\n  mjcf: m.xml\n")
    (warning,) = read_rig(file).mechanism.warnings
    assert warning.endswith("body 'b' falls through what stands; hold its base or add mechanism.contacts")


def test_numbers_that_are_not_finite_leave_no_shape(tmp_path):
    """Of a place or a friction; one that gives the body its inertia is refused."""
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    text = (
        '<mujoco><worldbody><body name="b"><freejoint/>{}<geom type="sphere" size=".1" {}/></body></worldbody></mujoco>'
    )
    (tmp_path / "m.xml").write_text(text.format(inertial, 'pos="nan 0 0"'))
    (lost,) = read_mjcf(tmp_path / "m.xml").collisions
    assert (lost.shape, lost.lost) == (None, ("its numbers are not finite",))
    (tmp_path / "m.xml").write_text(text.format("", 'quat="1 nan 0 0"'))
    assert "iquat is not finite; give a number" in refusal(read_mjcf, tmp_path / "m.xml")
