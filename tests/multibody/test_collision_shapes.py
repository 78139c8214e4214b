"""Collision shapes of URDF and SDF files: sizes, places and friction, and what of them is not taken."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from cosim.mechanics.multibody.contact.shapes import BallShape, BoxShape, CapsuleShape, CylinderShape, HalfSpace
from cosim.mechanics.multibody.description.collisions import counted, primitive
from cosim.mechanics.multibody.description.sdf.reader import SdfReader
from cosim.mechanics.multibody.description.urdf import parse_robot

GEOMETRY = "<collision>{}<geometry>{}</geometry>{}</collision>"


def urdf(shape, origin="", beside="", of_link="", more=""):
    text = f'<robot name="r">\n<link name="a">{GEOMETRY.format(origin, shape, beside)}{of_link}</link>{more}</robot>'
    robot = parse_robot(text, "r.urdf")
    (found,) = robot.collisions
    assert robot.mechanism.warnings == () and robot.mechanism.notes == ()
    return found


OF_URDF = {
    '<sphere radius="0.1"/>': BallShape(0.1),
    '<box size="0.1 0.2 0.3"/>': BoxShape((0.1, 0.2, 0.3)),
    '<cylinder radius="0.1" length="0.2"/>': CylinderShape(0.1, 0.2),
    '<capsule radius="0.1" length="0.2"/>': CapsuleShape(0.1, 0.2),
    '<drake:capsule radius="0.1" length="0.2"/>': CapsuleShape(0.1, 0.2),
    '<mesh filename="a.stl"/>': None,
    '<drake:ellipsoid a="1" b="2" c="3"/>': None,
}


@pytest.mark.parametrize("shape", OF_URDF)
def test_shapes_of_urdf(shape):
    found = urdf(shape, '<origin xyz="1 2 3" rpy="0 0 1.5"/>')
    assert (found.shape, found.link, found.lost) == (OF_URDF[shape], "a", ())
    assert found.kind == shape.strip("</>").split()[0].removeprefix("drake:")
    assert found.pose.position.tolist() == [1, 2, 3] and found.pose.rotation[0, 0] == pytest.approx(math.cos(1.5))
    assert str(found.place) == "r.urdf:2 link 'a'"


@pytest.mark.parametrize(
    "shape",
    [
        '<sphere radius="big"/>',
        "<sphere/>",
        '<sphere radius="-1"/>',
        '<sphere radius="nan"/>',
        '<box size="1 2"/>',
        '<box size="1 2 0"/>',
        '<cylinder radius="1"/>',
        '<sphere radius="1"/></geometry></collision><collision><geometry>',
    ],
)
def test_a_shape_that_cannot_be_read_is_no_error_of_the_file(shape):
    text = f'<robot name="r"><link name="a">{GEOMETRY.format("", shape, "")}</link></robot>'
    found = parse_robot(text).collisions[-1]
    assert found.shape is None and (found.lost or found.kind == "shape without geometry")


def test_a_pose_that_cannot_be_read_leaves_no_shape():
    found = urdf('<sphere radius="1"/>', '<origin xyz="1 2"/>')
    assert found.shape is None and "xyz" in found.lost[0]


FRICTIONS = {
    "of Gazebo": (
        {"more": '<gazebo reference="a"><mu1>0.8</mu1><mu2 value="0.8"/></gazebo>'},
        (0.8, 0.8),
        (),
    ),
    "of Gazebo, along two directions": (
        {"more": '<gazebo reference="a"><mu1>0.8</mu1><mu2>0.5</mu2></gazebo>'},
        (0.8, 0.8),
        ("its friction of 0.8 and 0.5 along two directions is 0.8 along all",),
    ),
    "of Bullet": ({"of_link": '<contact><lateral_friction value="0.3"/></contact>'}, (0.3, 0.3), ()),
    "of Drake": (
        {
            "beside": "<drake:proximity_properties><drake:mu_dynamic value='0.4'/><drake:mu_static value='0.6'/>"
            "</drake:proximity_properties>",
            "of_link": '<contact><lateral_friction value="0.3"/></contact>',
        },
        (0.6, 0.4),
        (),
    ),
}


@pytest.mark.parametrize("case", FRICTIONS)
def test_friction_of_urdf(case):
    given, expected, lost = FRICTIONS[case]
    found = urdf('<sphere radius="0.1"/>', **given)
    assert (found.friction.static, found.friction.sliding, found.lost) == (*expected, lost)


def test_a_shape_without_friction():
    assert urdf('<sphere radius="0.1"/>').friction is None


# --- SDF ---

INERTIAL = "<inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>"


def sdf(collision, world=""):
    """The collision shapes of a link that stands at (1, 0, 0) of its model, beside these in the world."""
    link = f'<link name="a"><pose>1 0 0 0 0 0</pose>{INERTIAL}<collision name="c">{collision}</collision></link>'
    frame = '<frame name="f"><pose>0 0 5 0 0 0</pose></frame>'
    model = f'<model name="m">{frame}{link}<joint name="j" type="revolute"><parent>world</parent><child>a</child>'
    model += "<axis><xyz>0 0 1</xyz></axis></joint></model>"
    text = f'<sdf version="1.11"><world name="w">{world}{model}</world></sdf>'
    return SdfReader(Path("r.sdf"), (), text.encode()).read(None).collisions


def geometry(shape, pose="", surface=""):
    return f"{pose}<geometry>{shape}</geometry>{surface}"


OF_SDF = {
    "<sphere><radius>0.1</radius></sphere>": BallShape(0.1),
    "<box><size>0.1 0.2 0.3</size></box>": BoxShape((0.1, 0.2, 0.3)),
    "<cylinder><radius>0.1</radius><length>0.2</length></cylinder>": CylinderShape(0.1, 0.2),
    "<capsule><radius>0.1</radius><length>0.2</length></capsule>": CapsuleShape(0.1, 0.2),
    "<mesh><uri>a.stl</uri></mesh>": None,
    "<plane><normal>0 0 1</normal></plane>": None,  # of a link that moves
}


@pytest.mark.parametrize("shape", OF_SDF)
def test_shapes_of_sdf(shape):
    (found,) = sdf(geometry(shape, "<pose>0 0 2 0 0 0</pose>"))
    assert (found.shape, found.link, found.pose.position.tolist()) == (OF_SDF[shape], "a", [0, 0, 2])


def test_a_pose_of_sdf_relative_to_another_frame():
    shape = "<sphere><radius>0.1</radius></sphere>"
    (found,) = sdf(geometry(shape, '<pose relative_to="f">0 1 0 0 0 0</pose>'))
    assert found.pose.position.tolist() == [-1, 1, 5]
    (lost,) = sdf(geometry(shape, '<pose relative_to="none">0 1 0 0 0 0</pose>'))
    assert lost.shape is None and "none" in lost.lost[0]


@pytest.mark.parametrize("shape", ["<sphere/>", "<sphere><radius>x</radius></sphere>", "<box><size>1 1 0</size></box>"])
def test_a_shape_of_sdf_that_cannot_be_read_is_no_error_of_the_file(shape):
    (found,) = sdf(geometry(shape))
    assert found.shape is None and found.lost


def test_friction_of_sdf():
    ode = "<ode><mu>0.8</mu><mu2>0.6</mu2></ode>"
    spinning = "<torsional><coefficient>0.5</coefficient><patch_radius>0.04</patch_radius></torsional>"
    surface = f"<surface><friction>{ode}{spinning}</friction></surface>"
    (found,) = sdf(geometry("<sphere><radius>0.1</radius></sphere>", surface=surface))
    assert found.friction.numbers == pytest.approx((0.8, 0.8, 3 * math.pi / 16 * 0.5 * 0.04, 0))
    assert found.lost == ("its friction of 0.8 and 0.6 along two directions is 0.8 along all",)
    (usual,) = sdf(geometry("<sphere><radius>0.1</radius></sphere>"))
    assert usual.friction.numbers == (1, 1, 0, 0) and usual.lost == ()


def test_a_plane_that_stands_is_a_shape_of_the_ground():
    plane = geometry("<plane><normal>0 1 1</normal></plane>", "<pose>0 0 1 0 0 0</pose>")
    link = f'<link name="l"><pose>0 0 2 0 0 0</pose><collision name="c">{plane}</collision></link>'
    world = f'<model name="floor"><static>true</static><pose>0 3 0 0 0 0</pose>{link}</model>'
    floor, _ = sdf(geometry("<sphere><radius>0.1</radius></sphere>"), world)
    assert (floor.link, floor.shape, floor.pose.position.tolist()) == ("world", HalfSpace(), [0, 3, 3])
    assert floor.pose.rotation[:, 2] == pytest.approx([0, math.sqrt(0.5), math.sqrt(0.5)])
    assert floor.pose.rotation.T @ floor.pose.rotation == pytest.approx(np.eye(3))
    assert np.linalg.det(floor.pose.rotation) == pytest.approx(1)


def test_shapes_are_counted_in_words():
    shapes = [urdf(shape) for shape in (*OF_URDF, *OF_URDF)]
    assert counted(shapes) == "2 spheres, 2 boxes, 2 cylinders, 4 capsules, 2 meshes, 2 ellipsoids"
    assert primitive("cone", (1, 1)) is None
