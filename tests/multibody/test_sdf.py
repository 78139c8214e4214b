"""SDF files: frames by closed form, joints that close loops or are named against the tree, and what is said of them."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim.core.errors import InputErrors
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.assembly import find_redundant
from cosim.mechanics.multibody.description.sdf.reader import SdfReader, read_sdf
from cosim.mechanics.multibody.mechanism import pose_of
from tests.kit.refusals import raised

INERTIAL = (
    "<inertial><pose>0.1 0.02 -0.1 0.1 0.2 0.3</pose><mass>1.5</mass><inertia><ixx>0.03</ixx><iyy>0.02</iyy>"
    "<izz>0.04</izz><ixy>0.001</ixy></inertia></inertial>"
)
AXIS = "<axis><xyz>0 0 1</xyz></axis>"


def link(name, pose="", more=""):
    return f'<link name="{name}">{pose}{INERTIAL}{more}</link>'


def joint(name, kind, parent, child, more=AXIS):
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{more}</joint>'


def sdf(content, version="1.11", model='name="m"'):
    return f'<sdf version="{version}"><model {model}>{content}</model></sdf>'


def parse(text, model=None):
    return SdfReader(Path("robot.sdf"), (), text.encode()).read(model)


def model_of(text):
    robot = parse(text)
    return Model(robot.under(robot.gravity_or(None)), robot.gravity_or(None))


# --- frames ---

POSE = "0.1 -0.2 0.3 0.4 0.5 -0.6"
A, B, C = ((0.1, -0.2, 0.3, 0.4, 0.5, -0.6), (1.0, 2.0, 3.0, 0.1, 0.2, 0.3), (-0.4, 0.0, 0.7, 0.0, -1.2, 0.9))


def pose(values):
    return pose_of(values[:3], values[3:])


def text_of(values, relative_to=None, more=""):
    where = f" relative_to='{relative_to}'" if relative_to else ""
    return f"<pose{where} {more}>{' '.join(map(str, values))}</pose>"


IN_DEGREES = text_of((*B[:3], *np.degrees(B[3:]).tolist()), more="degrees='true'")
WORLD_TO_BASE = joint("w", "fixed", "world", "base")


def frame(name, pose, attached_to=""):
    where = f"attached_to='{attached_to}'" if attached_to else ""
    return f"<frame name='{name}' {where}>{pose}</frame>"


def nested(pose, more=""):
    inner = link("l", text_of(C))
    return f"<model name='n' {more}>{pose}{inner}</model>" + joint("k", "fixed", "base", "n::l")


# content -> the pose of frame 'f' in the world, whose model is at A
FRAMES = {
    "in the model": (f'<frame name="f">{text_of(B)}</frame>', pose(A) @ pose(B)),
    "in a link": (frame("f", text_of(B, "base")), pose(A) @ pose(C) @ pose(B)),
    "attached to a link": (f'<frame name="f" attached_to="base">{text_of(B)}</frame>', pose(A) @ pose(C) @ pose(B)),
    "attached, and in the model": (
        frame("f", text_of(B, "__model__"), "base"),
        pose(A) @ pose(B),
    ),
    "in a joint": (frame("f", text_of(B, "w")), pose(A) @ pose(C) @ pose(B)),
    "in another frame": (
        frame("g", text_of(B)) + frame("f", text_of(C, "g")),
        pose(A) @ pose(B) @ pose(C),
    ),
    "in a nested model": (
        nested(text_of(B)) + frame("f", "", "n::l"),
        pose(A) @ pose(B) @ pose(C),
    ),
    "of a nested model": (
        nested(text_of(B)) + frame("f", "", "n"),
        pose(A) @ pose(B),
    ),
    "a placed model": (
        nested(text_of(B), "placement_frame='l'") + frame("f", "", "n::l"),
        pose(A) @ pose(B),
    ),
    "in degrees": (
        f'<frame name="f">{IN_DEGREES}</frame>',
        pose(A) @ pose(B),
    ),
    "a quaternion": (
        '<frame name="f"><pose rotation_format="quat_xyzw">1 2 3 0 0 0.6 0.8</pose></frame>',
        pose(A) @ pose_of((1.0, 2.0, 3.0), (0.0, 0.0, 2.0 * math.atan2(0.6, 0.8))),
    ),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_is_where_its_elements_say(name):
    content, expected = FRAMES[name]
    model = model_of(sdf(text_of(A) + link("base", text_of(C)) + WORLD_TO_BASE + content))
    found = model.equations.frame_pose(model.neutral(), "f") if model.nv else _frame(model)
    assert np.abs(found[:3, 3] - expected.position).max() < 1e-14
    assert np.abs(found[:3, :3] - expected.rotation).max() < 1e-14


def _frame(model):
    """The frame of a mechanism that does not move."""
    poses = {model.mechanism.root: np.eye(4)}
    waiting = list(model.mechanism.joints)
    while waiting:
        each = waiting.pop(0)
        if each.parent not in poses:
            waiting.append(each)
            continue
        poses[each.child] = poses[each.parent] @ _matrix(each.pose)
    frame = next(frame for frame in model.mechanism.frames if frame.name == "f")
    return poses[frame.link] @ _matrix(frame.pose)


def _matrix(pose):
    found = np.eye(4)
    found[:3, :3], found[:3, 3] = pose.rotation, pose.position
    return found


# --- joints ---

TREE = {
    "revolute": AXIS.replace("0 0 1", "0.6 0 0.8"),
    "prismatic": AXIS.replace("0 0 1", "0.6 0 0.8"),
    "screw": AXIS.replace("0 0 1", "0.6 0 0.8") + "<screw_thread_pitch>0.3</screw_thread_pitch>",
    "universal": "<axis><xyz>0.6 0 0.8</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>",
    "revolute2": "<axis><xyz>0.6 0 0.8</xyz></axis><axis2><xyz>0 0 1</xyz></axis2>",
}


@pytest.mark.parametrize("kind", TREE)
def test_a_joint_named_against_the_tree_has_the_same_coordinates(kind):
    """The energy of a state is that of the joint from the other side: its motion is inverse, its coordinate the same.

    One model has the joint from a to b, of which a stands; the other one from b to a, in the same places."""
    bodies = link("a") + link("b", text_of(B)) + joint("hold", "fixed", "world", "a")
    forward = joint("j", kind, "a", "b", text_of(A) + TREE[kind])
    placed = f"<pose relative_to='b'>{' '.join(map(str, A))}</pose>"
    turned = {"axis": "axis2", "axis2": "axis"} if "axis2" in TREE[kind] else {}
    more = TREE[kind]
    if turned:  # the axis on the parent comes first
        more = more.replace("axis2", "axisX").replace("<axis>", "<axis2>").replace("</axis>", "</axis2>")
        more = more.replace("axisX", "axis")
    first, second = model_of(sdf(bodies + forward)), model_of(sdf(bodies + joint("j", kind, "b", "a", placed + more)))
    assert first.nv == second.nv
    for seed in range(3):
        q, v = np.random.default_rng(seed).normal(size=(2, first.nv))
        mirrored = -q, -v  # the motion of b against a is the inverse of that of a against b
        for energy in ("kinetic_energy", "potential_energy"):
            states = ((q, v), mirrored) if energy == "kinetic_energy" else ((q,), mirrored[:1])
            own, other = (getattr(m.equations, energy)(*s) for m, s in zip((first, second), states, strict=True))
            assert own == pytest.approx(other, rel=1e-12, abs=1e-12)


def test_loops_close_at_the_second_joint_of_a_link():
    bodies = [link("crank", "<pose>0 0 0 0 0 0</pose>"), link("bar", "<pose>0 1 0 0 0 0</pose>")]
    bodies += [link("rocker", "<pose>2 0 0 0 0 0</pose>")]
    ends = [("a", "world", "crank"), ("b", "crank", "bar"), ("c", "world", "rocker"), ("d", "rocker", "bar")]
    at = {"d": "<pose>2 0 0 0 0 0</pose>"}
    robot = parse(sdf("".join(bodies) + "".join(joint(n, "revolute", p, c, at.get(n, "") + AXIS) for n, p, c in ends)))
    (loop,) = robot.mechanism.loops
    assert (loop.joint.name, loop.joint.parent, loop.joint.child, loop.coordinates) == ("d", "rocker", "bar", False)
    model = Model(robot.mechanism)
    model = model.without(find_redundant(model, np.array([0.3, -0.3, 0.3]), np.zeros(3, dtype=bool)))
    # a parallelogram: the rocker turns as the crank, the bar does not
    q, v = np.array([0.3, -0.3, 0.3]), np.array([1.0, -1.0, 1.0])
    assert max(np.abs(part).max() for part in model.constraint_violation(q, v)) < 1e-14
    a = model.equations.forward_dynamics(q, v, np.array([2.0, 0.0, 0.0]))
    assert a[0] == pytest.approx(a[2], rel=1e-9) and a[1] == pytest.approx(-a[0], rel=1e-9)


def test_the_loop_joint_of_simbody_is_cut():
    physics = "<physics><simbody><must_be_loop_joint>true</must_be_loop_joint></simbody></physics>"
    bodies = link("a") + link("b", "<pose>1 0 0 0 0 0</pose>")
    joints = joint("p", "ball", "world", "b", physics) + joint("r", "revolute", "world", "a")
    robot = parse(sdf(bodies + joints + joint("s", "revolute", "a", "b")))
    assert [loop.joint.name for loop in robot.mechanism.loops] == ["p"]


def test_a_gearbox_is_a_mimic():
    """θ₂ = −ratio θ₁, of the angles of both links against the body between them."""
    bodies = link("case") + link("a", "<pose>1 0 0 0 0 0</pose>") + link("b", "<pose>0 1 0 0 0 0</pose>")
    axes = "<axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2>"
    box = "<gearbox_ratio>3</gearbox_ratio><gearbox_reference_body>case</gearbox_reference_body>"
    tree = joint("w", "revolute", "world", "case", AXIS.replace("0 0 1", "0 1 0")) + joint("i", "revolute", "case", "a")
    geared = model_of(
        sdf(bodies + tree + joint("o", "revolute", "case", "b") + joint("g", "gearbox", "a", "b", axes + box))
    )
    mimic = "<axis><xyz>0 0 1</xyz><mimic joint='i'><multiplier>-3</multiplier></mimic></axis>"
    mimicked = model_of(sdf(bodies + tree + joint("o", "revolute", "case", "b", mimic)))
    assert geared.constraint_rows == ("g/effort",) and mimicked.nv == 2
    q, v, tau = np.array([0.2, 0.4, -1.2]), np.array([0.5, 0.7, -2.1]), np.array([1.0, 2.0, 3.0])
    a = geared.equations.forward_dynamics(q, v, tau)
    b = mimicked.equations.forward_dynamics(q[:2], v[:2], np.array([1.0, 2.0 - 3.0 * 3.0]))
    assert np.abs(np.asarray(a)[:2] - b).max() < 1e-12


@pytest.mark.parametrize(
    "written", ["<screw_thread_pitch>0.3</screw_thread_pitch>", "<thread_pitch>-20.943951</thread_pitch>"]
)
def test_the_pitch_of_a_screw(written):
    robot = parse(sdf(link("a") + joint("s", "screw", "world", "a", AXIS + written)))
    assert robot.mechanism.joints[0].pitch == pytest.approx(0.3 / (2.0 * math.pi), rel=1e-8)


def test_axes_with_their_own_friction_are_joints_in_series():
    axes = "<axis><xyz>1 0 0</xyz>{}</axis><axis2><xyz>0 1 0</xyz></axis2>"
    damped = "<dynamics><damping>2</damping></dynamics>"
    whole, split = (
        model_of(sdf(link("a") + joint("u", "universal", "world", "a", axes.format(more)))) for more in ("", damped)
    )
    assert whole.dof_names == ("u.first", "u.second") and split.dof_names == ("u", "u_axis2")
    q, v, tau = np.array([0.4, 0.7]), np.array([1.0, -2.0]), np.array([0.3, 0.2])
    accelerations = (np.asarray(m.equations.forward_dynamics(q, v, tau)) for m in (whole, split))
    assert np.abs(np.subtract(*accelerations)).max() < 1e-12
    assert np.asarray(split.friction_effort(v)).tolist() == [2.0, 0.0]


# --- what acts beside the mechanism ---


def test_what_a_joint_has():
    limit = "<limit><lower>-1</lower><upper>inf</upper><effort>-1</effort><velocity>3</velocity></limit>"
    law = "<dynamics><damping>2</damping><friction>0.5</friction><spring_stiffness>7</spring_stiffness>"
    law += "<spring_reference>0.2</spring_reference></dynamics>"
    mimic = "<mimic joint='j'><multiplier>2</multiplier><offset>0.5</offset><reference>0.1</reference></mimic>"
    bodies = link("a") + link("b") + joint("j", "revolute", "world", "a", f"<axis><xyz>0 0 1</xyz>{limit}{law}</axis>")
    first, second = parse(
        sdf(bodies + joint("k", "revolute", "a", "b", f"<axis><xyz>0 0 1</xyz>{mimic}</axis>"))
    ).mechanism.joints
    assert (first.lower, first.upper, first.max_effort, first.max_velocity) == (-1.0, math.inf, math.inf, 3.0)
    assert (first.damping, first.friction, first.stiffness, first.rest) == (2.0, 0.5, 7.0, 0.2)
    assert (second.mimic.joint, second.mimic.multiplier, second.mimic.offset) == ("j", 2.0, pytest.approx(0.3))


@pytest.mark.parametrize(
    ("gravity", "expected"), [("<gravity>0 1 -3</gravity>", (0.0, 1.0, -3.0)), ("", (0.0, 0.0, -9.8))]
)
def test_the_gravity_of_a_world_acts(gravity, expected):
    floating = link("a", more="<gravity>0</gravity>")
    world = f'<sdf version="1.9"><world name="w">{gravity}<model name="m">{floating}</model></world></sdf>'
    robot = parse(world)
    assert robot.gravity == expected and robot.carried == {"a": 1.0}
    model = Model(robot.under(expected), expected)
    assert np.abs(model.equations.forward_dynamics(model.neutral(), np.zeros(6), np.zeros(6))).max() < 1e-12
    assert parse(sdf(link("a"))).gravity is None


def test_a_free_base_starts_where_the_file_has_it():
    robot = parse(sdf("<pose>1 2 3 0 0 0</pose>" + link("a", "<pose degrees='true'>0.5 0 0 0 0 90</pose>")))
    assert [(j.name, j.kind, j.child) for j in robot.mechanism.joints] == [("root_joint", "free", "a")]
    assert robot.start.positions["root_joint"] == pytest.approx((1.5, 2.0, 3.0, 0.0, 0.0, 0.5**0.5, 0.5**0.5))


def test_one_of_several_models_is_named():
    both = "".join(f'<model name="{name}">{link(name)}</model>' for name in ("one", "two"))
    still = '<model name="floor"><static>true</static>' + link("l") + "</model>"
    world = f'<sdf version="1.9"><world name="w">{still}{both}</world></sdf>'
    assert [each.name for each in parse(world, "two").mechanism.links] == ["world", "two"]
    assert "name one with mechanism.model" in str(raised(InputErrors, parse, world))


# --- what is said ---

OK = link("a") + joint("j", "revolute", "world", "a")
MISTAKES = {
    "no version": "<sdf><model name='m'/></sdf>",
    "an old version": sdf(OK, "1.3"),
    "no model": "<sdf version='1.9'/>",
    "no link": sdf(""),
    "static": sdf("<static>true</static>" + OK),
    "a kind of joint": sdf(link("a") + joint("j", "spherical", "world", "a")),
    "a link that is not there": sdf(link("arm") + joint("j", "revolute", "world", "arn")),
    "no child": sdf(link("a") + "<joint name='j' type='fixed'><parent>world</parent></joint>"),
    "a joint on one link": sdf(link("a") + joint("j", "revolute", "a", "a")),
    "no axis": sdf(link("a") + joint("j", "revolute", "world", "a", "")),
    "a zero axis": sdf(link("a") + joint("j", "revolute", "world", "a", AXIS.replace("1", "0"))),
    "two children": sdf(link("a") + joint("j", "revolute", "world", "a", AXIS + "<child>b</child>")),
    "digits of another script": sdf(link("a", "<pose>١ 0 0 0 0 0</pose>") + OK[OK.index("<joint") :]),
    "five numbers": sdf(link("a", "<pose>1 2 3 4 5</pose>") + OK.replace('"a"', '"b"').replace(">a<", ">b<")),
    "a frame in itself": sdf(
        OK + "<frame name='f'><pose relative_to='g'/></frame><frame name='g'><pose relative_to='f'/></frame>"
    ),
    "attached to itself": sdf(OK + "<frame name='f' attached_to='g'/><frame name='g' attached_to='f'/>"),
    "names": sdf(OK + link("a")),
    "a reserved name": sdf(OK + link("__x__")),
    "no name": sdf(OK + link("")),
    "inertia": sdf(
        "<link name='a'><inertial><inertia><ixx>-1</ixx></inertia></inertial></link>" + OK[OK.index("<joint") :]
    ),
    "a mesh": sdf(
        "<link name='a'><inertial auto='true'/><collision name='c'><geometry><mesh/></geometry></collision></link>"
    ),
    "no collision": sdf("<link name='a'><inertial auto='true'/></link>"),
    "outside": sdf(OK + "<include><uri>../../secret.sdf</uri></include>"),
    "a server": sdf(OK + "<include><uri>https://fuel.gazebosim.org/1.0/x</uri></include>"),
    "an unknown model": sdf(OK + "<include><uri>model://nobody_has_this</uri></include>"),
    "no uri": sdf(OK + "<include/>"),
    "an entity": "<!DOCTYPE sdf [<!ENTITY x SYSTEM '/etc/passwd'>]>" + sdf(OK + "<link name='&x;'/>"),
    "truth": sdf(link("a", more="<gravity>maybe</gravity>") + OK[OK.index("<joint") :]),
    "mimic": sdf(link("a") + joint("j", "revolute", "world", "a", "<axis><mimic joint='k'/></axis>")),
    "screw": sdf(link("a") + joint("j", "screw", "world", "a", AXIS + "<screw_thread_pitch>0</screw_thread_pitch>")),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refused_at_its_line(name, said):
    said(str(raised(InputErrors, parse, MISTAKES[name].replace("><", ">\n<"))))


WARNED = {
    "a plugin": OK + "<plugin name='gz::sim::systems::JointController' filename='x'/>",
    "a publisher": OK + "<plugin name='gz::sim::systems::JointStatePublisher' filename='x'/>",
    "self_collide": OK + "<self_collide>true</self_collide>",
    "kinematic": link("a", more="<kinematic>true</kinematic>") + OK[OK.index("<joint") :],
    "decay": link("a", more="<velocity_decay><linear>0.1</linear></velocity_decay>") + OK[OK.index("<joint") :],
    "added mass": OK.replace("</inertial>", "<fluid_added_mass><xx>2</xx></fluid_added_mass></inertial>"),
    "stops": link("a")
    + joint(
        "j",
        "revolute",
        "world",
        "a",
        "<axis><limit><lower>0</lower><upper>1</upper><stiffness>1e5</stiffness></limit></axis>",
    ),
    "a misspelling": OK.replace("<axis>", "<axis><dynamic><damping>3</damping></dynamic>"),
    "an old frame": OK + "<frame name='f'><pose frame='a'>0 0 0 0 0 0</pose></frame>",
    "drake": OK + "<drake:joint name='x' type='planar'/>",
    "a gearbox": OK
    + link("b")
    + joint("k", "fixed", "a", "b")
    + joint("g", "gearbox", "a", "b", "<axis/><axis2/><gearbox_reference_body>a</gearbox_reference_body>"),
}


@pytest.mark.parametrize("name", WARNED)
def test_what_is_lost_is_warned_of(name, said):
    content = sdf(WARNED[name].replace("><", ">\n<"))
    said(list(parse(content.replace("<sdf ", "<sdf xmlns:drake='x' ")).mechanism.warnings))


def test_a_newer_version_is_read_with_a_warning(said):
    said(list(parse(sdf(OK, "1.13")).mechanism.warnings))


def test_an_unbounded_tree_of_models_is_refused(tmp_path, said):
    for name in ("a", "b"):
        other = "b" if name == "a" else "a"
        (tmp_path / f"{name}.sdf").write_text(sdf(f"<include><uri>{other}.sdf</uri><name>n</name></include>{OK}"))
    said(str(raised(InputErrors, read_sdf, tmp_path / "a.sdf")))


def test_a_file_beside_the_folder_needs_its_folder_in_packages(tmp_path):
    for folder in ("robot", "parts"):
        (tmp_path / folder).mkdir()
    (tmp_path / "parts" / "hand.sdf").write_text(sdf(link("hand"), model='name="hand"'))
    robot = tmp_path / "robot" / "r.sdf"
    robot.write_text(
        sdf(OK + "<include merge='true'><uri>../parts/hand.sdf</uri></include>" + joint("k", "revolute", "a", "hand"))
    )
    assert "outside of the folder" in str(raised(InputErrors, read_sdf, robot))
    found = read_sdf(robot, packages=[tmp_path / "parts"]).mechanism
    assert [each.name for each in found.joints] == ["j", "k"]
    assert replace(found, notes=()).warnings == ()
