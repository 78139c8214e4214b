"""URDF files are read exactly, and every error is reported with its line and fix."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cosim.core.errors import InputError, InputErrors
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.topology import depth_first
from cosim.mechanics.multibody.description.urdf import parse_urdf, read_urdf
from tests.kit.refusals import raised
from tests.kit.samples import FOLDER


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
    return str(raised(InputErrors, parse_urdf, text, "r.urdf")).splitlines()


AXIS = '<axis xyz="0 0 1"/>'
LIMIT = '<limit lower="-1" upper="2" velocity="3" effort="4"/>'


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


BAD = inertial("0.001", ("1e-8", "1e-8", "1e-8"), "4e-8")
FAR = '<origin xyz="0.1 0.2 0" rpy="0 0 1"/>'
PARTS = link("world"), link("a", inertial()), link("antenna", BAD), joint("j", "world", "a")
WHOLE = '<limit upper="1" velocity="1" effort="1"/>'
REMARKS = {  # all on line 4
    "a long axis": two_links('<axis xyz="0 0 2"/>' + LIMIT),
    "no limit": two_links(AXIS),
    "a limit without a range": two_links(AXIS + '<limit velocity="1" effort="1"/>'),
    "half a range": two_links(AXIS + WHOLE),
    "an unknown attribute": two_links(AXIS + '<dynamics dampin="1"/>', "continuous"),
    "no axis": two_links("", "continuous"),
    "an unknown element": robot("", "", link("a", "<inertail/>")),
    "moments that no body has": robot("", "", link("a", inertial("1", ("1", "1", "3")))),
    "rounding of an eigenvalue": robot("", "", link("a", inertial("1", ("1", "1", "-1e-9")))),
    "an inertia without mass": robot("", "", link("a", inertial("0"))),
    "an impossible part of a possible body": robot(*PARTS, joint("mount", "a", "antenna", FAR, "fixed")),
}


@pytest.mark.parametrize("case", REMARKS)
def test_remarks_on_line_4(case, said):
    (note,) = parse_urdf(REMARKS[case], "r.urdf").notes
    assert note.startswith("r.urdf:4 ")
    said(note)


WARNED = {  # what is in the joint on line 4
    "two axes": AXIS + '<axis xyz="1 0 0"/>' + LIMIT,
    "two limits": AXIS + LIMIT + '<limit lower="0" upper="9" velocity="9" effort="9"/>',
    "limits the wrong way round": AXIS + '<limit lower="2" upper="1" velocity="3" effort="1"/>',
}


@pytest.mark.parametrize("case", WARNED)
def test_what_other_readers_take_with_a_warning(case, said):
    mechanism = parse_urdf(two_links(WARNED[case]), "r.urdf")
    (warning,) = mechanism.warnings
    assert warning.startswith("r.urdf:4 joint 'j': ")
    said(warning)
    (found,) = mechanism.joints
    assert (found.axis.tolist(), found.max_velocity, found.lower < found.upper) == ([0, 0, 1], 3, True)


BLANKS = ["\n", " \n\t", "\ufeff\n", "\n\ufeff", "\r\n"]


@pytest.mark.parametrize("blanks", BLANKS)
@pytest.mark.parametrize("as_bytes", [False, True])
def test_blanks_before_the_declaration_are_left_out(as_bytes, blanks):
    """Lines are still those of the file."""
    text = f'{blanks}<?xml version="1.0"?>\n' + two_links('<axis xyz="0 0 0"/>', "continuous")
    line = 5 + blanks.count("\n")
    assert messages(text.encode() if as_bytes else text)[0].startswith(f"r.urdf:{line} joint 'j': the axis is zero")
    plain = text.replace("0 0 0", "0 0 1")
    (note,) = parse_urdf(plain.encode() if as_bytes else plain, "r.urdf").notes
    assert note.startswith("r.urdf:1: something blank before")


@pytest.mark.parametrize("moments", [("-1e-14", "1", "1"), ("-1e-20", "0", "1e-20"), ("0", "1", "1"), ("0", "0", "0")])
def test_inertias_that_need_no_remark(moments):
    """Rounding of an eigenvalue, a computed zero, a thin rod, a point, whose mass is kept."""
    mechanism = parse_urdf(robot(link("a", inertial("2", moments))))
    assert mechanism.notes == () and mechanism.links[0].inertial.mass == 2
    assert mechanism.links[0].inertial.inertia.any() == any(map(float, moments))


@pytest.mark.parametrize("inside", ["", inertial("0", ("0", "0", "0"))])
def test_no_inertial_or_one_of_zeros_is_massless(inside):
    assert parse_urdf(robot(link("a", inside))).links[0].inertial is None


def test_an_axis_is_made_unit_and_rounded_ones_need_no_remark():
    mechanism = parse_urdf(two_links('<axis xyz="0.173651 0 0.984807"/>', "continuous"))
    assert np.linalg.norm(mechanism.joints[0].axis) == pytest.approx(1, abs=1e-15)
    assert mechanism.notes == ()


def test_a_robot_without_a_name_is_called_robot():
    mechanism = parse_urdf('<robot><link name="a"/></robot>')
    assert (mechanism.name, mechanism.notes) == ("robot", ("<string>:1: <robot> has no name; called 'robot'",))


def test_a_locked_range_stands_and_a_continuous_joint_has_no_range():
    locked = parse_urdf(two_links(AXIS + '<limit lower="1" upper="1" velocity="1" effort="1"/>')).joints[0]
    assert (locked.lower, locked.upper) == (1, 1)
    mechanism = parse_urdf(two_links(AXIS + LIMIT, "continuous"))
    (wheel,) = mechanism.joints
    assert (wheel.lower, wheel.upper, wheel.max_velocity) == (-math.inf, math.inf, 3)
    assert "'j': the range -1 to 2 of a continuous joint is left out" in mechanism.warnings[0]


FILES = {
    "nothing": "",
    "a tag that does not match": '<robot name="r">\n<link name="a">\n</robot>',
    "an unknown encoding": b'<?xml version="1.0" encoding="klingon"?><robot/>',
    "half a character": "\ud800",
    "another element": "<html/>",
    "SDF": "<sdf/>",
    "MJCF": "<mujoco/>",
    "no link": robot(),
    "an unknown macro": robot("<xacro:arm/>"),
}
JOINTS = {  # what is in the joint on line 4, and its kind
    "an unknown kind": (AXIS, "ball"),
    "no kind": (AXIS, ""),
    "an axis without numbers": ("<axis/>", "continuous"),
    "an axis of zeros": ('<axis xyz="0 0 0"/>', "continuous"),
    "an axis of two numbers": ('<axis xyz="0 1"/>', "continuous"),
    "an axis with a word": ('<axis xyz="0 1 one"/>', "continuous"),
    "an origin that is no number": (AXIS + '<origin xyz="0 nan 0"/>', "fixed"),
    "an infinite origin": (AXIS + '<origin rpy="0 0 inf"/>', "fixed"),
    "an empty origin": (AXIS + '<origin xyz=""/>', "fixed"),
    "a limit without effort": (AXIS + '<limit velocity="1"/>', "continuous"),
    "a negative velocity": (AXIS + '<limit velocity="-1" effort="1"/>', "continuous"),
    "a negative effort": (AXIS + '<limit velocity="1" effort="-2.5"/>', "continuous"),
    "a negative damping": (AXIS + '<dynamics damping="-1"/>', "continuous"),
    "a friction with an underscore": (AXIS + '<dynamics friction="1_0"/>', "continuous"),
    "a mimic of nothing": (AXIS + '<mimic joint="k"/>', "continuous"),
    "a mimic of itself": (AXIS + '<mimic joint="j"/>', "continuous"),
    "a mimic without a leader": (AXIS + "<mimic/>", "continuous"),
}
MASS, MOMENTS = '<mass value="1"/>', 'ixx="1" iyy="1" izz="1" ixy="0" ixz="0"'
LINKS = {  # what is in the link on line 2
    "a negative mass": inertial("-1"),
    "a mass in words": inertial("heavy"),
    "no mass": f'<inertial><inertia {MOMENTS} iyz="0"/></inertial>',
    "no inertia": f"<inertial>{MASS}</inertial>",
    "five moments": f"<inertial>{MASS}<inertia {MOMENTS}/></inertial>",
    "an inertia that is not positive": inertial("1", ("1", "1", "1"), "2"),
}
THREE = tuple(map(link, "abc"))
SWAPPED = joint("k", "antenna", "a", "", "fixed"), joint("mount", "a", "antenna", "", "fixed")
TREES = {
    "a link without a name": ("<link/>", link("a")),
    "a joint without a name": (*THREE[:2], '<joint type="fixed"><parent link="a"/><child link="b"/></joint>'),
    "a link twice": (link("a"), link("a")),
    "an unknown parent": (link("base"), link("arm"), joint("j", "bsae", "arm")),
    "an unknown child": (link("base"), joint("j", "base", "hand")),
    "no parent": (link("a"), '<joint name="j" type="fixed"><child link="a"/></joint>'),
    "two parents": (*THREE, joint("i", "a", "b"), joint("j", "a", "c"), joint("k", "b", "c")),
    "a mimic of several coordinates": (
        *THREE,
        joint("j", "a", "b", AXIS),
        joint("k", "b", "c", AXIS + '<mimic joint="j"/>', "planar"),
    ),
    "an impossible part that moves": (*PARTS, joint("mount", "a", "antenna")),
    "a body of impossible parts": (link("world"), PARTS[2], joint("mount", "world", "antenna", "", "fixed")),
    "an impossible part in a loop": (*PARTS[1:3], *SWAPPED),
    "several, in the order of their lines": (
        joint("j", "a", "z"),
        link("a", inertial("-1")),
        joint("k", "a", "b", '<axis xyz="0 0 0"/><dynamics damping="x"/>'),
        link("b", "<inertial/>"),
    ),
}
MISTAKES = FILES | {case: two_links(*given) for case, given in JOINTS.items()}
MISTAKES |= {case: robot(link("a", inside)) for case, inside in LINKS.items()}
MISTAKES |= {case: robot(*lines) for case, lines in TREES.items()}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(case, said):
    lines = messages(MISTAKES[case])
    if case in JOINTS:
        assert lines[0].startswith("r.urdf:4 joint 'j': ")
    if case in LINKS:
        assert lines[0].startswith("r.urdf:2 link 'a': ")
    places = [int(line.split(":")[1].split()[0]) for line in lines]
    assert places == sorted(places) and (len(lines) == 1 or case in TREES)
    said([lines[0].partition(" at position")[0], *lines[1:]])


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(InputError, match=r"none\.urdf: no such file$"):
        read_urdf(tmp_path / "none.urdf")
    with pytest.raises(InputError, match=r": cannot be read: it is a folder; give a file$"):
        read_urdf(tmp_path)


# --- the file of the UR5 beside the Denavit-Hartenberg table of its maker ---

UR5 = FOLDER / "robots" / "ur5.urdf"
DH = [  # a, d, alpha of joints 1 to 6
    (0, 0.089159, math.pi / 2),
    (-0.425, 0, 0),
    (-0.39225, 0, 0),
    (0, 0.10915, math.pi / 2),
    (0, 0.09465, -math.pi / 2),
    (0, 0.0823, 0),
]
MASS_CENTRES = [  # of links 1 to 6 in their DH frames
    (0, -0.02561, 0.00193),
    (0.2125, 0, 0.11336),
    (0.15, 0, 0.0265),
    (0, -0.0018, 0.01634),
    (0, 0.0018, 0.01634),
    (0, 0, -0.001159),
]


def homogeneous(rotation, position):
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, position
    return matrix


def dh_frames(q):
    """Frames 1 to 6 in frame 0: products of Rz(q) Tz(d) Tx(a) Rx(alpha)."""
    frames, frame = [], np.eye(4)
    for angle, (a, d, alpha) in zip(q, DH, strict=True):
        about_z, about_x = Rotation.from_rotvec([0, 0, angle]), Rotation.from_rotvec([alpha, 0, 0])
        frame = frame @ homogeneous(about_z.as_matrix(), (0, 0, d)) @ homogeneous(about_x.as_matrix(), (a, 0, 0))
        frames.append(frame)
    return frames


@pytest.mark.parametrize("q", [(0, 0, 0, 0, 0, 0), (0.3, -1.2, 2.1, -0.7, 1.9, -2.8)])
def test_ur5_frames_and_mass_centres_are_those_of_the_dh_table(q):
    model, expected = Model.from_urdf(UR5), dh_frames(q)
    np.testing.assert_allclose(model.frame_pose(q, "tool0"), expected[-1], atol=1e-14)
    moving = [part for part in model.mechanism.links if part.inertial is not None]
    for part, dh_frame, centre in zip(moving, expected, MASS_CENTRES, strict=True):
        frame = model.frame_pose(q, part.name)
        np.testing.assert_allclose(frame[:3, :3], dh_frame[:3, :3], atol=1e-14)
        np.testing.assert_allclose(frame @ [*part.inertial.com, 1], dh_frame @ [*centre, 1], atol=1e-14)


def test_ur5_has_the_makers_names_masses_and_limits():
    mechanism = read_urdf(UR5).mechanism
    moving = [part for part in mechanism.joints if part.kind != "fixed"]
    names = "shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3"
    assert [part.name for part in moving] == [f"{name}_joint" for name in names]
    assert [part.max_effort for part in moving] == [150, 150, 150, 28, 28, 28]
    assert [part.upper / math.pi for part in moving] == [2, 2, 1, 2, 2, 2]
    assert [part.lower for part in moving] == [-part.upper for part in moving]
    assert {part.max_velocity for part in moving} == {math.pi}
    masses = [part.inertial.mass for part in mechanism.links if part.inertial]
    assert masses == [3.7, 8.393, 2.33, 1.219, 1.219, 0.1879]
    assert mechanism.notes == ()
