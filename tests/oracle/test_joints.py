"""Floating bases and joints of every kind: each quantity of a model is what Pinocchio computes."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from cosim.core import ops
from cosim.core.errors import InputError, InputErrors
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.topology import depth_first
from cosim.mechanics.multibody.description.urdf import parse_urdf
from cosim.mechanics.multibody.joints import GeneralMotion, joint_axes
from cosim.mechanics.multibody.mechanism import Joint, Link, Mechanism, Pose, with_floating_base
from tests.kit.refusals import raised
from tests.multibody.random_frames import error, heavy, turn
from tests.oracle.conftest import ROBOTS
from tests.oracle.pinocchio_reference import TOLERANCE, Reference, check, numbers, some_links

# Robots on legs, on wheels, of arms; some have mimics or joints that Pinocchio describes by cos and sin.
FLOATING = [
    "baxter_description/urdf/baxter.urdf",
    "double_pendulum_description/urdf/double_pendulum_continuous.urdf",
    "icub_description/robots/icub.urdf",
    "iris_description/robots/iris_simple.urdf",
    "panda_description/urdf/panda.urdf",
    "solo_description/robots/solo12.urdf",
]
COMPILED = {"iris_description/robots/iris_simple.urdf"}


@pytest.fixture(scope="module", params=FLOATING)
def case(request):
    """(reference, random numbers, name) of a robot that nothing holds."""
    path = ROBOTS / request.param
    model, reference = (
        Model.from_urdf(path, floating_base=True),
        pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer()),
    )
    return Reference(model, reference), numbers(request.param), request.param


def test_robots_that_float(case):
    reference, random, name = case
    check(reference, random, some_links(reference, random), name in COMPILED)
    model = reference.model
    assert model.joint_names[0] == "root_joint" and model.nq == model.nv + 1
    assert model.dof_names[:6] == tuple(f"root_joint.{part}" for part in ("x", "y", "z", "rx", "ry", "rz"))
    assert model.coordinate_names[:7] == tuple(f"root_joint.{part}" for part in ("x", "y", "z", "qx", "qy", "qz", "qw"))
    assert model.dof_units[:6] == ("m",) * 3 + ("rad",) * 3
    assert model.coordinate_units[:7] == ("m",) * 3 + ("1",) * 4


@pytest.mark.parametrize("size", [1e-9, 0.1, 3.0])
def test_coordinates_move_as_those_of_pinocchio(case, size):
    """The shorter way round: turns of up to 3 rad, small ones as well."""
    reference, random, _ = case
    model, peer = reference.model, reference.reference
    np.testing.assert_array_equal(reference.q(model.neutral()), _moved_by_mimics(reference, pin.neutral(peer)))
    q = np.concatenate([random.uniform(-1, 1, 3), 0.1 * random.uniform(-1, 1, model.nq - 3)])
    q[3:7] = Rotation.random(random_state=int(random.integers(1000))).as_quat()
    d = random.uniform(-1, 1, model.nv)
    d *= size / np.linalg.norm(d[3:6])
    d[6:] = size * np.sin(d[6:])  # angles of other joints stay within half a turn
    full, T, _ = reference.at(q, d)
    there = model.equations.integrate(q, d)
    assert error(reference.q(there), pin.integrate(peer, full, T @ d)) < TOLERANCE
    assert error(model.equations.difference(q, there), d) < max(TOLERANCE, 1e-15 / size)
    found = pin.difference(peer, full, reference.q(there))
    assert error(T @ model.equations.difference(q, there), found) < max(TOLERANCE, 1e-15 / size)
    assert error(model.equations.difference(there, q), -d) < max(TOLERANCE, 1e-15 / size)


def _moved_by_mimics(reference, neutral):
    """Pinocchio does not know of the offsets of mimics."""
    for joint in reference.joints:
        if joint.mimic:
            neutral[reference.reference.joints[reference.reference.getJointId(joint.name)].idx_q] = joint.mimic.offset
    return neutral


MASSLESS = """<robot name="r"><link name="base"/>
<link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint></robot>"""


def test_a_base_without_mass_cannot_float(tmp_path, said):
    (tmp_path / "r.urdf").write_text(MASSLESS)
    said(raised(InputErrors, Model.from_urdf, tmp_path / "r.urdf", floating_base=True))


@pytest.mark.parametrize(("taken", "by"), [("world", "arm"), ("root_joint", "j")])
def test_the_names_of_a_floating_base_are_taken_once(taken, by, said):
    caught = raised(InputError, with_floating_base, parse_urdf(MASSLESS.replace(f'"{by}"', f'"{taken}"')))
    assert caught.place.key in (f"link '{taken}'", f"joint '{taken}'")
    said(caught.what)


def _yaw_pitch_roll(q, t):
    """A ball joint by three angles: z, then y, then x."""
    (sz, sy, sx), (cz, cy, cx) = (
        (ops.sin(q[0]), ops.sin(q[1]), ops.sin(q[2])),
        (ops.cos(q[0]), ops.cos(q[1]), ops.cos(q[2])),
    )
    about_z = ops.array([[cz, -sz, 0.0], [sz, cz, 0.0], [0.0, 0.0, 1.0]])
    about_y = ops.array([[cy, 0.0, sy], [0.0, 1.0, 0.0], [-sy, 0.0, cy]])
    about_x = ops.array([[1.0, 0.0, 0.0], [0.0, cx, -sx], [0.0, sx, cx]])
    return about_z @ about_y @ about_x, np.zeros(3)


ANGLES = GeneralMotion(("yaw", "pitch", "roll"), ("rad",) * 3, _yaw_pitch_roll)


def _cylindrical(joint):
    both = pin.JointModelComposite(2)
    both.addJoint(pin.JointModelPrismaticUnaligned(joint.axis))
    both.addJoint(pin.JointModelRevoluteUnaligned(joint.axis))
    return both


THEIRS = {
    "revolute": lambda joint: pin.JointModelRevoluteUnaligned(joint.axis),
    "continuous": lambda joint: pin.JointModelRUBZ(),
    "prismatic": lambda joint: pin.JointModelPrismaticUnaligned(joint.axis),
    "cylindrical": _cylindrical,
    "universal": lambda joint: pin.JointModelUniversal(joint.axis, joint.second_axis),
    "screw": lambda joint: pin.JointModelHelicalUnaligned(joint.axis, joint.pitch),
    "spherical": lambda joint: pin.JointModelSpherical(),
    "planar": lambda joint: pin.JointModelPlanar(),
    "free": lambda joint: pin.JointModelFreeFlyer(),
    "general": lambda joint: pin.JointModelSphericalZYX(),
}
ALONG_Z = {"continuous", "planar"}  # Pinocchio has these along the z axis of their frame


def random_joint(k, kind, parent, random):
    """A joint between two links, along a coordinate axis or any direction."""
    axes = turn(random)
    axis, second = (axes if random.random() < 0.7 else np.eye(3)[random.permutation(3)])[:2]
    pose = Pose(turn(random), random.uniform(-1, 1, 3))
    more = {"second_axis": second} if kind == "universal" else {}
    more |= {"pitch": random.choice([-0.3, 0.05])} if kind == "screw" else {}
    more |= {"motion": ANGLES} if kind == "general" else {}
    return Joint(f"j{k}", kind, parent, f"l{k + 1}", pose, axis, **more)


def both_sides(kinds, seed):
    """(reference, random numbers) of a tree with joints of the given kinds."""
    random = np.random.default_rng(seed)
    joints = [
        random_joint(k, kind, f"l{random.integers(max(0, k - 3), k + 1)}", random) for k, kind in enumerate(kinds)
    ]
    links = [Link("l0"), *(heavy(f"l{k + 1}", random, (0.2, 3.0), 0.5, (0.01, 0.2)) for k in range(len(kinds)))]
    gravity = random.uniform(-10, 10, 3)
    mechanism = Mechanism("tree", "l0", tuple(links), tuple(joints))
    model, reference = Model(mechanism, gravity), pin.Model()
    reference.gravity.linear = gravity
    inertials = {link.name: link.inertial for link in links}
    placed = {"l0": (0, pin.SE3.Identity())}  # link -> joint that carries it, pose in that joint's frame
    for joint in depth_first(mechanism):
        carrier, offset = placed[joint.parent]
        aligned = pin.SE3(joint_axes(joint) if joint.kind in ALONG_Z else np.eye(3), np.zeros(3))
        place = offset * pin.SE3(joint.pose.rotation, joint.pose.position) * aligned
        k = reference.addJoint(carrier, THEIRS[joint.kind](joint), place, joint.name)
        placed[joint.child] = k, aligned.inverse()
        own = inertials[joint.child]
        reference.appendBodyToJoint(k, pin.Inertia(own.mass, own.com, own.inertia), aligned.inverse())
        reference.addBodyFrame(joint.child, k, aligned.inverse(), 0)
    return Reference(model, reference), random


@pytest.mark.parametrize("kind", THEIRS)
def test_each_joint_between_others(kind):
    """On itself and between two hinges, in machine code; on the ground, in Python."""
    reference, random = both_sides(["revolute", kind, kind, "prismatic"], len(kind))
    check(reference, random, ["l3", "l4"], ("forward_dynamics", "hybrid_dynamics", "mass_matrix", "frame_jacobian"))
    reference, random = both_sides([kind], 1)
    check(reference, random, ["l1"])


@pytest.mark.parametrize("seed", range(3))
def test_trees_of_all_joints(seed):
    kinds = list(np.random.default_rng(seed).permutation([*THEIRS, *THEIRS])[:9])
    reference, random = both_sides(list(map(str, kinds)), seed)
    check(reference, random, ["l4", "l9"])
