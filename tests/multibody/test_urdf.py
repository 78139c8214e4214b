"""URDF files are read exactly, and every error is reported with its line and fix."""

import math

import numpy as np
import pytest

from cosim.errors import InputError, InputErrors
from cosim.multibody.description.topology import depth_first
from cosim.multibody.description.urdf import parse_urdf, read_urdf


def robot(*lines):
    return "\n".join(['<robot name="r">', *lines, "</robot>"])


def link(name, inside=""):
    return f'<link name="{name}">{inside}</link>'


def joint(name, parent, child, inside='<axis xyz="0 0 1"/>', kind="continuous"):
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inside}</joint>'


def inertial(mass="1", diagonal=("1", "1", "1"), off="0", origin=""):
    ixx, iyy, izz = diagonal
    moments = f'ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="{off}" ixz="0" iyz="0"'
    return f'<inertial>{origin}<mass value="{mass}"/><inertia {moments}/></inertial>'


def two_links(joint_inside, kind="revolute"):
    """A robot whose only joint 'j' stands on line 4."""
    return robot(link("a"), link("b"), joint("j", "a", "b", joint_inside, kind))


def messages(text):
    with pytest.raises(InputErrors) as caught:
        parse_urdf(text, "r.urdf")
    return str(caught.value).splitlines()


AXIS = '<axis xyz="0 0 1"/>'
LIMIT = '<limit lower="-1" upper="2" velocity="3" effort="4"/>'


# --- what is read ---------------------------------------------------------------------------------


def test_every_figure_of_a_joint_arrives():
    origin = '<origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/>'
    inside = origin + '<axis xyz="0 1 0"/><dynamics damping="0.5" friction="0.25"/>'
    mechanism = parse_urdf(two_links(inside + LIMIT, "prismatic"))
    (j,) = mechanism.joints
    assert (j.name, j.kind, j.parent, j.child) == ("j", "prismatic", "a", "b")
    assert (j.lower, j.upper, j.max_velocity, j.max_effort) == (-1, 2, 3, 4)
    assert (j.damping, j.friction, j.mimic, j.place.line) == (0.5, 0.25, None, 4)
    assert j.axis.tolist() == [0, 1, 0]
    assert j.pose.position.tolist() == [1, 2, 3]
    assert j.pose.rotation.tolist() == [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    assert (mechanism.name, mechanism.root, mechanism.notes) == ("r", "a", ())


@pytest.mark.parametrize(
    ("kind", "inside", "expected", "axis"),
    [("floating", "", "free", [0, 0, 1]), ("planar", '<axis xyz="0 1 0"/>', "planar", [0, 1, 0])],
)
def test_joints_of_several_coordinates(kind, inside, expected, axis):
    mechanism = parse_urdf(two_links(inside + '<dynamics damping="0.5"/>', kind))
    (j,) = mechanism.joints
    assert (j.kind, j.axis.tolist(), j.damping, j.lower, j.upper) == (expected, axis, 0.5, -math.inf, math.inf)
    assert mechanism.notes == ()


def test_a_joint_of_several_coordinates_does_not_mimic():
    third = joint("k", "b", "c", AXIS + '<mimic joint="j"/>', "planar")
    text = robot(link("a"), link("b"), link("c"), joint("j", "a", "b", AXIS), third)
    assert messages(text) == [
        "r.urdf:6 joint 'k': mimics joint 'j', but joint 'k' has 3 coordinates; both must have one"
    ]


def rotation(rpy):
    return parse_urdf(two_links(f'<origin rpy="{rpy}"/>{AXIS}', "continuous")).joints[0].pose.rotation


def test_roll_pitch_yaw_turn_about_fixed_axes():
    quarter = math.pi / 2
    assert rotation(f"{quarter} 0 0").tolist() == [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
    assert rotation(f"0 {quarter} 0").tolist() == [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]
    assert rotation(f"0 0 {quarter}").tolist() == [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    one_by_one = rotation("0 0 1.1") @ rotation("0 -0.7 0") @ rotation("0.3 0 0")
    np.testing.assert_allclose(rotation("0.3 -0.7 1.1"), one_by_one, atol=1e-15)


def test_the_inertial_rpy_turns_the_inertia_into_link_axes():
    # this rpy takes x to y, y to z, z to x
    origin = f'<origin xyz="1 2 3" rpy="{math.pi / 2} 0 {math.pi / 2}"/>'
    (a,) = parse_urdf(robot(link("a", inertial("2", ("1", "2", "2.5"), "0.5", origin)))).links
    assert a.inertial is not None
    assert a.inertial.inertia.tolist() == [[2.5, 0, 0], [0, 1, 0.5], [0, 0.5, 2]]
    assert (a.inertial.mass, a.inertial.com.tolist()) == (2, [1, 2, 3])


def test_what_is_left_out_has_the_defaults_of_the_format():
    mechanism = parse_urdf(two_links("", "continuous"))
    (j,) = mechanism.joints
    assert j.axis.tolist() == [1, 0, 0]
    assert (j.lower, j.upper, j.max_velocity, j.max_effort) == (-math.inf, math.inf, math.inf, math.inf)
    assert (j.damping, j.friction) == (0, 0)
    assert np.array_equal(j.pose.rotation, np.eye(3))
    assert mechanism.notes == ("<string>:4 joint 'j': a joint that moves without <axis>; taken as 1 0 0",)


@pytest.mark.parametrize("inside", ["", inertial("0", ("0", "0", "0"))])
def test_no_inertial_or_one_of_zeros_is_massless(inside):
    assert parse_urdf(robot(link("a", inside))).links[0].inertial is None


def test_a_point_mass_is_kept():
    inertial_of_point = parse_urdf(robot(link("a", inertial("2", ("0", "0", "0"))))).links[0].inertial
    assert inertial_of_point is not None
    assert inertial_of_point.mass == 2
    assert not inertial_of_point.inertia.any()


def test_elements_for_other_tools_are_left_alone():
    visual = '<visual><origin xyz="nonsense"/><geometry><mesh filename="x"/></geometry></visual><sensor/>'
    text = robot(
        link("a", visual),
        '<transmission name="t"><joint name="unknown"/></transmission><gazebo><link/></gazebo><material/>',
    )
    assert parse_urdf(text).notes == ()


def test_a_chain_deeper_than_the_stack():
    n = 3000
    links = [link(f"l{i}") for i in range(n)]
    text = robot(*links, *(joint(f"j{i}", f"l{i}", f"l{i + 1}") for i in range(n - 1)))
    assert [j.name for j in depth_first(parse_urdf(text))] == [f"j{i}" for i in range(n - 1)]


# --- remarks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (two_links('<axis xyz="0 0 2"/>' + LIMIT), "joint 'j': the axis has the length 2; normalised"),
        (two_links(AXIS), "joint 'j': a revolute joint without <limit>; taken as unlimited"),
        (
            two_links(AXIS + '<limit velocity="1" effort="1"/>'),
            "joint 'j': <limit> without any of lower and upper; taken as unlimited",
        ),
        (
            two_links(AXIS + '<limit upper="1" velocity="1" effort="1"/>'),
            "joint 'j': <limit> without both of lower and upper; the other one is 0",
        ),
        (
            two_links(AXIS + '<dynamics dampin="1"/>', "continuous"),
            "joint 'j': 'dampin' of <dynamics> is ignored; did you mean 'damping'?",
        ),
        (
            robot("", "", link("a", "<inertail/>")),
            "link 'a': <inertail> of <link> is ignored; did you mean <inertial>?",
        ),
        (
            robot("", "", link("a", inertial("1", ("1", "1", "3")))),
            "link 'a': the inertia is physically impossible: of its principal moments 1, 1, 3 kg*m^2"
            " the largest exceeds the sum of the others",
        ),
        (
            robot("", "", link("a", inertial("1", ("1", "1", "-1e-9")))),
            "link 'a': the inertia has the eigenvalue -1e-09 kg*m^2, taken as rounding",
        ),
        (
            robot("", "", link("a", inertial("0"))),
            "link 'a': an inertia without mass; used as given",
        ),
    ],
)
def test_remarks_on_line_4(text, note):
    assert parse_urdf(text, "r.urdf").notes == (f"r.urdf:4 {note}",)


@pytest.mark.parametrize(
    "text",
    [
        robot(link("a", inertial("1", ("-1e-14", "1", "1")))),
        robot(link("a", inertial("1", ("-1e-20", "0", "1e-20")))),
        robot(link("a", inertial("1", ("0", "1", "1")))),
    ],
    ids=["rounding of the eigenvalue", "a computed zero", "a thin rod"],
)
def test_inertias_that_need_no_remark(text):
    assert parse_urdf(text).notes == ()


def test_a_locked_range_stands_and_a_continuous_joint_has_no_range():
    locked = parse_urdf(two_links(AXIS + '<limit lower="1" upper="1" velocity="1" effort="1"/>')).joints[0]
    assert (locked.lower, locked.upper) == (1, 1)
    wheel = parse_urdf(two_links(AXIS + LIMIT, "continuous")).joints[0]
    assert (wheel.lower, wheel.upper, wheel.max_velocity) == (-math.inf, math.inf, 3)


def test_an_axis_is_made_unit_and_rounded_ones_need_no_remark():
    mechanism = parse_urdf(two_links('<axis xyz="0.173651 0 0.984807"/>', "continuous"))
    assert np.linalg.norm(mechanism.joints[0].axis) == pytest.approx(1, abs=1e-15)
    assert mechanism.notes == ()


def test_a_robot_without_a_name_is_called_robot():
    mechanism = parse_urdf('<robot><link name="a"/></robot>')
    assert mechanism.name == "robot"
    assert mechanism.notes == ("<string>:1: <robot> has no name; called 'robot'",)


# --- mistakes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "r.urdf:1: not well-formed XML: no element found"),
        (
            '<robot name="r">\n<link name="a">\n</robot>',
            "r.urdf:3: not well-formed XML: mismatched tag, inside <link> of line 2",
        ),
        (
            b'<?xml version="1.0" encoding="klingon"?><robot/>',
            "r.urdf:1: not readable as XML: unknown encoding: klingon",
        ),
        ("\ud800", "r.urdf:1: not readable as XML: 'utf-8' codec can't encode character '\\ud800'"),
        ("<html/>", "r.urdf:1: expected the element <robot>, got <html>"),
        (
            "<sdf/>",
            "r.urdf:1: is an SDF file, which is not supported; convert it to MJCF with sdf2mjcf of the"
            " package sdformat-mjcf",
        ),
        ("<mujoco/>", "r.urdf:1: is an MJCF file; name it under mechanism.mjcf instead of mechanism.urdf"),
        (robot(), "r.urdf:1: the robot has no <link>"),
        (robot("<xacro:arm/>"), "r.urdf:2: xacro cannot expand <xacro:arm>: unknown macro name: xacro:arm"),
    ],
)
def test_files_that_are_no_robot(text, message):
    (only,) = messages(text)
    assert only.startswith(message)


def test_an_impossible_inertia_of_a_fixed_part_is_a_note_if_its_body_is_possible():
    bad = inertial("0.001", ("1e-8", "1e-8", "1e-8"), "4e-8")
    far = '<origin xyz="0.1 0.2 0" rpy="0 0 1"/>'
    parts = link("world"), link("a", inertial()), link("antenna", bad), joint("j", "world", "a")
    mechanism = parse_urdf(robot(*parts, joint("mount", "a", "antenna", far, "fixed")), "r.urdf")
    assert mechanism.notes == (
        "r.urdf:4 link 'antenna': the inertia is not positive definite (smallest eigenvalue -3e-08 kg*m^2);"
        " used as given, because that of its body with the links fixed to it is",
    )
    assert messages(robot(*parts, joint("mount", "a", "antenna"))) == [
        "r.urdf:4 link 'antenna': the inertia is not positive definite (smallest eigenvalue -3e-08 kg*m^2);"
        " check the signs and the order of its elements"
    ]
    # a body of such parts only, and fixed links that form a loop
    assert (
        len(messages(robot(link("world"), link("antenna", bad), joint("mount", "world", "antenna", "", "fixed")))) == 1
    )
    loop = joint("k", "antenna", "a", "", "fixed"), joint("mount", "a", "antenna", "", "fixed")
    assert len(messages(robot(link("a", inertial()), link("antenna", bad), *loop))) == 2


@pytest.mark.parametrize(
    ("inside", "kind", "message"),
    [
        (
            AXIS,
            "ball",
            "joint type 'ball' is not supported (supported: revolute, continuous, prismatic, floating, planar, fixed)",
        ),
        (AXIS, "", "<joint> has no 'type'"),
        ("<axis/>", "continuous", "<axis> has no 'xyz'"),
        ('<axis xyz="0 0 0"/>', "continuous", "the axis is zero; give it a direction"),
        ('<axis xyz="0 1"/>', "continuous", "<axis> xyz: expected 3 finite numbers, got '0 1'"),
        ('<axis xyz="0 1 one"/>', "continuous", "<axis> xyz: expected 3 finite numbers, got '0 1 one'"),
        (AXIS + AXIS, "continuous", "<joint> has 2 <axis>; keep one"),
        (AXIS + '<origin xyz="0 nan 0"/>', "fixed", "<origin> xyz: expected 3 finite numbers, got '0 nan 0'"),
        (AXIS + '<origin rpy="0 0 inf"/>', "fixed", "<origin> rpy: expected 3 finite numbers, got '0 0 inf'"),
        (AXIS + '<origin xyz=""/>', "fixed", "<origin> has no 'xyz'"),
        (
            AXIS + '<limit lower="2" upper="1" velocity="1" effort="1"/>',
            "revolute",
            "<limit> lower 2 is above upper 1; swap them",
        ),
        (AXIS + '<limit velocity="1"/>', "continuous", "<limit> has no 'effort'"),
        (
            AXIS + '<limit velocity="-1" effort="1"/>',
            "continuous",
            "<limit> velocity is negative (-1); it must be 0 or more",
        ),
        (
            AXIS + '<limit velocity="1" effort="-2.5"/>',
            "continuous",
            "<limit> effort is negative (-2.5); it must be 0 or more",
        ),
        (
            AXIS + '<dynamics damping="-1"/>',
            "continuous",
            "<dynamics> damping is negative (-1); it must be 0 or more",
        ),
        (
            AXIS + '<dynamics friction="1_0"/>',
            "continuous",
            "<dynamics> friction: expected a finite number, got '1_0'",
        ),
        (AXIS + '<mimic joint="k"/>', "continuous", "mimics joint 'k', which does not exist"),
        (AXIS + '<mimic joint="j"/>', "continuous", "mimics itself; name another joint"),
        (AXIS + "<mimic/>", "continuous", "<mimic> has no 'joint'"),
    ],
)
def test_errors_in_a_joint(inside, kind, message):
    assert messages(two_links(inside, kind)) == [f"r.urdf:4 joint 'j': {message}"]


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (inertial("-1"), "<mass> value is negative (-1); it must be 0 or more"),
        (inertial("heavy"), "<mass> value: expected a finite number, got 'heavy'"),
        (
            '<inertial><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>',
            "<inertial> has no <mass>; add it",
        ),
        ('<inertial><mass value="1"/></inertial>', "<inertial> has no <inertia>; add it, 0 for a point mass"),
        (
            '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"/></inertial>',
            "<inertia> has no 'iyz'",
        ),
        (
            inertial("1", ("1", "1", "1"), "2"),
            "the inertia is not positive definite (smallest eigenvalue -1 kg*m^2);"
            " check the signs and the order of its elements",
        ),
    ],
)
def test_errors_in_a_link(inside, message):
    assert messages(robot(link("a", inside)))[0] == f"r.urdf:2 link 'a': {message}"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["<link/>", link("a")], ["r.urdf:2: a link needs a name"]),
        (
            [link("a"), link("b"), '<joint type="fixed"><parent link="a"/><child link="b"/></joint>'],
            ["r.urdf:4: a joint needs a name"],
        ),
        (
            [link("a"), link("a")],
            ["r.urdf:3 link 'a': link 'a' exists already (line 2); names must be unique"],
        ),
        (
            [link("base"), link("arm"), joint("j", "bsae", "arm")],
            ["r.urdf:4 joint 'j': parent link 'bsae' does not exist; did you mean 'base'?"],
        ),
        (
            [link("base"), joint("j", "base", "hand")],
            ["r.urdf:3 joint 'j': child link 'hand' does not exist; known: base"],
        ),
        (
            [link("a"), '<joint name="j" type="fixed"><child link="a"/></joint>'],
            ["r.urdf:3 joint 'j': <joint> has no <parent>; add it"],
        ),
        (
            [*map(link, "abc"), joint("i", "a", "b"), joint("j", "a", "c"), joint("k", "b", "c")],
            [
                "r.urdf:7 joint 'k': link 'c' is the child of joints 'j' (line 6) and 'k':"
                " a tree is needed; cut the loop at one of them"
            ],
        ),
    ],
)
def test_errors_in_the_topology(lines, expected):
    assert messages(robot(*lines)) == expected


def test_all_errors_are_reported_at_once_in_the_order_of_their_lines():
    text = robot(
        joint("j", "a", "z"),
        link("a", inertial("-1")),
        joint("k", "a", "b", '<axis xyz="0 0 0"/><dynamics damping="x"/>'),
        link("b", "<inertial/>"),
    )
    assert [line.split(" ")[0] for line in messages(text)] == [f"r.urdf:{n}" for n in (2, 3, 4, 4, 5, 5)]


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(InputError, match=r"none\.urdf: no such file$"):
        read_urdf(tmp_path / "none.urdf")
    with pytest.raises(InputError, match=r": cannot be read: it is a folder; give a file$"):
        read_urdf(tmp_path)
