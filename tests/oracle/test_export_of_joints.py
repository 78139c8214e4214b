"""Every kind of joint with everything that a joint may have: written to each format it reads back as it was, and what a
format cannot say is named. Pinocchio and MuJoCo have the same numbers in the file."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from cosim.core.errors import InputError
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.description.topology import build_mechanism
from cosim.mechanics.multibody.joints import kind_of
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, LoopJoint, Mimic, pose_of
from tests.multibody.random_frames import error
from tests.oracle.mujoco_pair import compare
from tests.oracle.pinocchio_reference import TOLERANCE, Reference, numbers
from tests.oracle.written_robot import WrittenRobot

ENDINGS = (".urdf", ".xml", ".sdf")
EXACT = 1e-12
AXIS, ACROSS = np.array([2.0, 3.0, 6.0]) / 7.0, np.array([3.0, -6.0, 2.0]) / 7.0  # orthogonal unit vectors
KINDS = {
    "revolute": {"axis": AXIS},
    "continuous": {"axis": AXIS},
    "prismatic": {"axis": AXIS},
    "screw": {"axis": AXIS, "pitch": 0.07},
    "universal": {"axis": AXIS, "second_axis": ACROSS},
    "cylindrical": {"axis": AXIS},
    "planar": {"axis": AXIS},
    "spherical": {},
    "free": {},
}
SINGLE = ("revolute", "prismatic")
RANGE = {"lower": -0.4, "upper": 1.1}
# what a joint may have -> its fields; ranges are for joints with one coordinate
LAWS = {
    "nothing": {},
    "range": RANGE,
    "lower": {"lower": -0.4},
    "upper": {"upper": 1.1},
    "most": {"max_velocity": 3.5, "max_effort": 17.0},
    "damping": {"damping": 0.3},
    "friction": {"friction": 0.2},
    "spring": {"stiffness": 40.0, "rest": 0.25},
    "rotor": {"rotor_inertia": 0.011},
    "all": {**RANGE, "max_velocity": 3.5, "max_effort": 17.0, "damping": 0.3, "friction": 0.2, "stiffness": 40.0}
    | {"rest": 0.25, "rotor_inertia": 0.011},
}
# ending -> fields that are lost, with a warning
LOST = {".urdf": {"stiffness", "rotor_inertia"}, ".xml": set(), ".sdf": set()}


def link(name, mass):
    inertia = mass * np.array([[0.03, 0.002, -0.001], [0.002, 0.04, 0.003], [-0.001, 0.003, 0.05]])
    return Link(name, Inertial(mass, np.array([0.1, -0.05, 0.2]), inertia))


def mechanism(*joints, loops=()):
    names = [joint.child for joint in joints]
    links = [Link("world"), *(link(name, 1.0 + 0.5 * k) for k, name in enumerate(names))]
    return build_mechanism("robot", links, list(joints), Diagnostics(), loops)


def joint(name, kind, parent, child, **keys):
    pose = pose_of((0.3, -0.2, 0.5), (0.4, -0.3, 0.9)) if kind != "free" else pose_of((0.0,) * 3, (0.0,) * 3)
    return Joint(name, kind, parent, child, pose, **KINDS[kind], **keys)


def keys_of(kind, law):
    """Joints of several coordinates have no limits, springs on coordinates only where these are independent."""
    left = {} if kind in SINGLE else {"rest", "max_velocity", "max_effort", *RANGE}
    return {
        key: value
        for key, value in LAWS[law].items()
        if key not in left and not (key == "stiffness" and kind in ("spherical", "free", "planar"))
    }


def chain(kind, law):
    """The joint under test between two others; a free one stands on the ground."""
    tested = joint("tested", kind, "world" if kind == "free" else "a", "b", **keys_of(kind, law))
    before = [] if kind == "free" else [joint("first", "revolute", "world", "a")]
    return mechanism(*before, tested, joint("last", "revolute", "b", "c"))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_joint_reads_back(kind, law, tmp_path):
    for ending in ENDINGS:
        before = chain(kind, law)
        tested = _named(before, "tested")
        try:
            pair = WrittenRobot.of(before, tmp_path / f"robot{ending}")
        except InputError as refused:  # URDF has no ball joints
            assert (ending, kind) == (".urdf", "spherical") and "is of type spherical" in str(refused)
            continue
        said = " ".join((*pair.text.lost, *pair.text.notes))
        lost = {key for key in LOST[ending] if getattr(tested, key)}
        if not lost and not pair.text.lost:
            random = numbers(f"{kind} {law}")
            efforts = pair.inverse_dynamics(random)
            assert error(efforts[1], efforts[0]) < EXACT
            v = random.normal(size=pair.before.nv)
            drag = pair.before.friction_effort(v)[pair.dofs[:, 0]]
            assert error(pair.after.friction_effort(pair.there(v))[pair.dofs[:, 1]], drag, 1.0) < EXACT
        assert not lost or "tested" in said
        if kind not in SINGLE:
            continue
        found = _named(pair.after.mechanism, "tested")
        for key in LAWS[law]:
            if key in lost or (key == "rest" and "stiffness" in lost):
                continue
            wanted = getattr(tested, key)
            assert getattr(found, key) == wanted or (ending == ".xml" and key == "max_velocity" and "tested" in said)


def _named(mechanism, name):
    return next(each for each in mechanism.joints if each.name == name)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "spherical"])
def test_pinocchio_reads_the_same_of_urdf(kind, law, tmp_path):
    before = chain(kind, law)
    if kind == "planar":  # about z, as Pinocchio reads it whatever its axis is
        before = replace(before, joints=tuple(replace(each, axis=np.eye(3)[2]) for each in before.joints))
    WrittenRobot.of(before, tmp_path / "robot.urdf")
    peer = pin.buildModelFromUrdf(str(tmp_path / "robot.urdf"))
    read = Model.from_urdf(tmp_path / "robot.urdf")
    random = numbers(f"{kind} {law}")
    if kind != "screw":  # its advance is a mimic, which Pinocchio's efforts do not follow in the same dofs
        q, v, qdd = read.random_configuration(random), *random.uniform(-3, 3, (2, read.nv))
        found = read.equations.inverse_dynamics(q, v, qdd)
        assert error(found, Reference(read, peer).inverse(q, v, qdd)) < TOLERANCE
    if kind in SINGLE:
        at, keys = peer.joints[peer.getJointId("tested")], LAWS[law]
        of = {"lower": peer.lowerPositionLimit[at.idx_q], "upper": peer.upperPositionLimit[at.idx_q]}
        of |= {"max_velocity": peer.velocityLimit[at.idx_v], "max_effort": peer.effortLimit[at.idx_v]}
        of |= {"damping": peer.damping[at.idx_v], "friction": peer.friction[at.idx_v]}
        assert {key: of[key] for key in keys if key in of and at.nq == 1} == {
            key: keys[key] for key in keys if key in of and at.nq == 1
        }


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", KINDS)
def test_mujoco_accelerates_alike(kind, law, tmp_path):
    """With a rotor on a free joint, of which the file's reader warns, at rest."""
    speed = 0.0 if kind == "free" and "rotor_inertia" in LAWS[law] else 2.0
    WrittenRobot.of(chain(kind, law), tmp_path / "robot.xml")
    compare(tmp_path / "robot.xml", len(kind + law), tolerance=TOLERANCE, speed=speed, states=1)


@pytest.mark.parametrize("offset", [0.0, 0.15])
@pytest.mark.parametrize("multiplier", [1.0, -0.6, 0.0])
@pytest.mark.parametrize("leader", SINGLE)
@pytest.mark.parametrize("follower", SINGLE)
def test_a_mimic_reads_back(follower, leader, multiplier, offset, tmp_path):
    """Of a joint of another branch and one of its own, which stand before and behind it in the file."""
    mimic = Mimic("tested", multiplier, offset)
    before = mechanism(
        joint("before", follower, "world", "a", mimic=mimic),
        joint("tested", leader, "world", "b"),
        joint("behind", follower, "b", "c", mimic=replace(mimic, offset=-offset)),
    )
    for ending in ENDINGS if multiplier else (".urdf", ".sdf"):  # MJCF reads a multiplier of 0 as a constraint
        pair = WrittenRobot.of(before, tmp_path / f"robot{ending}")
        assert not pair.text.lost
        for name in ("before", "behind"):
            assert _named(pair.after.mechanism, name).mimic == _named(before, name).mimic
        efforts = pair.inverse_dynamics(numbers(follower + leader))
        assert error(efforts[1], efforts[0]) < EXACT
    if multiplier:
        compare(tmp_path / "robot.xml", 1, tolerance=1e-8, states=1)


@pytest.mark.parametrize("law", [law for law in LAWS if law != "nothing"])
@pytest.mark.parametrize("kind", SINGLE)
def test_the_joint_of_a_loop_reads_back_from_sdf(kind, law, tmp_path):
    """A four-bar linkage in which the joint that closes it has the law."""
    arms = mechanism(joint("p", "revolute", "world", "a"), joint("q", "revolute", "a", "b"))
    closing = Joint("tested", kind, "world", "b", pose_of((0.0,) * 3, (0.0,) * 3), axis=AXIS, **LAWS[law])
    at_zero = arms.joints[0].pose @ arms.joints[1].pose
    before = mechanism(*arms.joints, loops=[LoopJoint(closing, at_zero.inverse(), coordinates=True)])
    pair = WrittenRobot.of(before, tmp_path / "robot.sdf")
    (found,) = pair.robot.mechanism.loops
    assert found.coordinates and (found.joint.name, found.joint.kind) == ("tested", kind)
    assert {key: getattr(found.joint, key) for key in LAWS[law]} == pytest.approx(LAWS[law], rel=1e-14)
    assert np.abs(found.child_pose.position - at_zero.inverse().position).max() < EXACT
    assert kind_of(found.joint).nv == 1


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("multiplier", [0.0032, -0.5])
def test_limits_of_followers_are_those_of_their_leader_there_and_back(multiplier, ending, tmp_path):
    """A spindle of 0 to 20 rad whose follower ends at 4 hundredths: written and read again it is as narrow, once."""
    spindle = joint("spindle", "revolute", "world", "screw", lower=0.0, upper=20.0)
    ends = sorted((0.0, 12.5 * multiplier))
    jaw = joint("jaw", "prismatic", "screw", "jaw", lower=ends[0], upper=ends[1], mimic=Mimic("spindle", multiplier))
    before = mechanism(spindle, jaw)
    pair = WrittenRobot.of(before, tmp_path / f"robot{ending}")
    for each in (before, pair.after.mechanism):
        found = _named(each, "spindle")
        assert (found.lower, found.upper) == pytest.approx((0.0, 12.5), abs=1e-12)
        assert sum("narrow" in note for note in each.notes) == (each is before)
