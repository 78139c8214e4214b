"""Floating bases and joints of every kind: each quantity of a model is what Pinocchio computes.

Errors are relative: the largest absolute difference over the largest absolute value of the expected array.
"""

import functools
import math
import zlib

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from cosim import ops
from cosim.errors import InputError, InputErrors
from cosim.multibody import Model
from cosim.multibody.description.floating_base import with_floating_base
from cosim.multibody.description.topology import depth_first
from cosim.multibody.description.urdf import parse_urdf
from cosim.multibody.joints import GeneralMotion, joint_axes
from cosim.multibody.mechanism import Inertial, Joint, Link, Mechanism, Pose
from tests.kit.levels import few, one_of_each

TOLERANCE = 1e-9

# Robots on legs, on wheels, of arms; some have mimics or joints that Pinocchio describes by cos and sin.
FLOATING = [
    "anymal_c_simple_description/urdf/anymal.urdf",
    "baxter_description/urdf/baxter.urdf",
    "bolt_description/robots/bolt.urdf",
    "double_pendulum_description/urdf/double_pendulum_continuous.urdf",
    "hextilt_description/urdf/hextilt_flying_arm_5.urdf",
    "icub_description/robots/icub.urdf",
    "iris_description/robots/iris_simple.urdf",
    "kinova_description/robots/kinova.urdf",
    "panda_description/urdf/panda.urdf",
    "simple_humanoid_description/urdf/simple_humanoid.urdf",
    "solo_description/robots/solo12.urdf",
    "talos_data/robots/talos_full_v2.urdf",
    "talos_data/robots/talos_reduced.urdf",
]
COMPILED = {"iris_description/robots/iris_simple.urdf", "solo_description/robots/solo12.urdf"}


class Reference:
    """The same mechanism in Pinocchio: its full vectors are q(x), v = T x' and a = T x'' + T' x' in those of the
    model under test (x, x', x'')."""

    def __init__(self, model, reference):
        self.model, self.reference, self.data = model, reference, reference.createData()
        self.places, nq, nv = {}, 0, 0
        for joint, kind in zip(model.joints, model.kinds, strict=True):
            self.places[joint.name] = slice(nq, nq := nq + kind.nq), slice(nv, nv := nv + kind.nv)
        self.joints = [joint for joint in model.mechanism.joints if joint.kind != "fixed"]

    def q(self, q):
        return self.at(q, np.zeros(self.model.nv))[0]

    def at(self, q, v):
        """(q, T, T' v) in Pinocchio's order."""
        full = np.zeros(self.reference.nq)
        T, drift = np.zeros((self.reference.nv, self.model.nv)), np.zeros(self.reference.nv)
        for joint in self.joints:
            there = self.reference.joints[self.reference.getJointId(joint.name)]
            at_q = slice(there.idx_q, there.idx_q + there.nq)
            at_v = slice(there.idx_v, there.idx_v + there.nv)
            own_q, own_v = self.places[joint.mimic.joint if joint.mimic else joint.name]
            factor, offset = (joint.mimic.multiplier, joint.mimic.offset) if joint.mimic else (1.0, 0.0)
            full[at_q], turn, drift[at_v] = converted(joint, factor * q[own_q] + offset, factor * v[own_v], there.nq)
            T[at_v, own_v] = factor * turn
        return full, T, drift

    def mass(self, q):
        full, T, _ = self.at(q, np.zeros(self.model.nv))
        return T.T @ pin.crba(self.reference, self.data, full) @ T

    def inverse(self, q, v, qdd):
        full, T, drift = self.at(q, v)
        return T.T @ pin.rnea(self.reference, self.data, full, T @ v, T @ qdd + drift)

    def forward(self, q, v, tau):
        full, T, drift = self.at(q, v)
        if len(T) > len(T.T):  # mimics
            return np.linalg.solve(self.mass(q), tau - self.inverse(q, v, np.zeros_like(v)))
        efforts = np.linalg.solve(T.T, tau)
        return np.linalg.solve(T, pin.aba(self.reference, self.data, full, T @ v, efforts) - drift)

    def hybrid(self, q, v, qdd, tau, held):
        """M q̈ + bias = τ with the columns of what is held on the right side."""
        mass, bias, free = self.mass(q), self.inverse(q, v, np.zeros_like(v)), ~held
        qdd, tau = qdd.copy(), tau.copy()
        known = tau[free] - bias[free] - mass[np.ix_(free, held)] @ qdd[held]
        qdd[free] = np.linalg.solve(mass[np.ix_(free, free)], known)
        tau[held] = mass[held] @ qdd + bias[held]
        return qdd, tau

    def kinetic(self, q, v):
        full, T, _ = self.at(q, v)
        return pin.computeKineticEnergy(self.reference, self.data, full, T @ v)

    def potential(self, q):
        return pin.computePotentialEnergy(self.reference, self.data, self.q(q))

    def momentum(self, q, v):
        """(of the centre of mass the position and the Jacobian, the centroidal momentum)"""
        full, T, _ = self.at(q, v)
        center = pin.centerOfMass(self.reference, self.data, full).copy()
        jacobian = pin.jacobianCenterOfMass(self.reference, self.data, full).reshape(3, -1) @ T
        return center, jacobian, pin.computeCentroidalMomentum(self.reference, self.data, full, T @ v).vector

    def frame(self, q, link):
        """(pose, Jacobian) of a link."""
        full, T, _ = self.at(q, np.zeros(self.model.nv))
        k = self.reference.getFrameId(link, pin.BODY)
        jacobian = pin.computeFrameJacobian(self.reference, self.data, full, k, pin.LOCAL_WORLD_ALIGNED)
        pin.framesForwardKinematics(self.reference, self.data, full)
        return self.data.oMf[k].homogeneous, jacobian.reshape(6, -1) @ T


def converted(joint, q, v, nq):
    """(q, T, T' v) of one joint in Pinocchio's coordinates."""
    n = len(v)
    if joint.kind == "planar":  # x, y, cos, sin; velocity along the moving axes
        s, c = math.sin(q[2]), math.cos(q[2])
        turn = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
        change = v[2] * np.array([[-s, c, 0.0], [-c, -s, 0.0], [0.0, 0.0, 0.0]])
        return [q[0], q[1], c, s], turn, change @ v
    if len(q) == 1 and nq == 2:
        return [math.cos(q[0]), math.sin(q[0])], np.eye(1), np.zeros(1)
    return q, np.eye(n), np.zeros(n)


def error(found, expected):
    """The largest difference relative to the largest value."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    return np.abs(found - expected).max(initial=0.0) / (np.abs(expected).max(initial=0.0) or 1.0)


def states(model, random):
    """(q, speed): slow, fast, and at the neutral coordinates."""
    yield model.random_configuration(random), 1.0
    yield model.random_configuration(random), 10.0
    # a robot of point masses (iCub) has no regular mass matrix when its limbs are stretched
    if np.linalg.cond(model.equations.mass_matrix(model.neutral())) < 1e12:
        yield model.neutral(), 3.0


def check(reference, random, links, compiled=False):
    """All quantities of the model and its reference in some states."""
    model = reference.model

    def function(name, frame=None):
        return model.compiled(name, frame).native if compiled else model._definition(name, frame)[0]

    forward, inverse, hybrid = map(function, ("forward_dynamics", "inverse_dynamics", "hybrid_dynamics"))
    for q, speed in states(model, random):
        v, qdd, tau = speed * random.uniform(-1, 1, model.nv), *random.uniform(-10, 10, (2, model.nv))
        assert error(forward(q, v, tau), reference.forward(q, v, tau)) < TOLERANCE
        assert error(inverse(q, v, qdd), reference.inverse(q, v, qdd)) < TOLERANCE
        held = random.random(model.nv) < 0.5
        for found, expected in zip(hybrid(q, v, qdd, tau, held), reference.hybrid(q, v, qdd, tau, held), strict=True):
            assert error(found, expected) < TOLERANCE
        assert error(function("mass_matrix")(q), reference.mass(q)) < TOLERANCE
        assert error(function("kinetic_energy")(q, v), reference.kinetic(q, v)) < TOLERANCE
        assert abs(function("potential_energy")(q) - reference.potential(q)) < TOLERANCE * max(
            1, abs(reference.potential(q))
        )
        center, jacobian, momentum = reference.momentum(q, v)
        assert error(function("center_of_mass")(q), center) < TOLERANCE
        assert error(function("center_of_mass_jacobian")(q), jacobian) < TOLERANCE
        assert error(function("centroidal_momentum")(q, v), momentum) < TOLERANCE
        assert error(function("centroidal_momentum_matrix")(q) @ v, momentum) < TOLERANCE
        effects = reference.inverse(q, v, np.zeros(model.nv))
        assert error(function("nonlinear_effects")(q, v), effects) < TOLERANCE
        weight = reference.inverse(q, np.zeros(model.nv), np.zeros(model.nv))
        assert error(function("gravity_effort")(q), weight) < TOLERANCE
        for link in links:
            pose, jacobian = reference.frame(q, link)
            assert error(function("frame_pose", link)(q), pose) < TOLERANCE
            assert error(function("frame_jacobian", link)(q), jacobian) < TOLERANCE


# --- floating bases -------------------------------------------------------------------------------


@functools.cache
def floating(path, name):
    """(reference, random numbers) of a robot that nothing holds."""
    model = Model.from_urdf(path, floating_base=True)
    reference = Reference(model, pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer()))
    return reference, np.random.default_rng(zlib.crc32(name.encode()))


@pytest.fixture(params=FLOATING)
def case(robots_folder, request):
    return *floating(robots_folder / request.param, request.param), request.param


def test_robots_that_float(case):
    reference, random, name = case
    links = [frame.name for frame in reference.reference.frames if frame.type == pin.BODY and frame.name != "universe"]
    check(reference, random, dict.fromkeys([links[0], links[-1], *random.choice(links, 2)]), name in COMPILED)


def test_names_of_a_floating_base(case):
    model = case[0].model
    assert model.joint_names[0] == "root_joint"
    assert model.dof_names[:6] == tuple(f"root_joint.{part}" for part in ("x", "y", "z", "rx", "ry", "rz"))
    assert model.coordinate_names[:7] == tuple(f"root_joint.{part}" for part in ("x", "y", "z", "qx", "qy", "qz", "qw"))
    assert model.dof_units[:6] == ("m",) * 3 + ("rad",) * 3
    assert model.coordinate_units[:7] == ("m",) * 3 + ("1",) * 4
    assert model.nq == model.nv + 1


@pytest.mark.parametrize("size", [1e-9, 1e-3, 0.1, 3.0])
def test_coordinates_move_as_those_of_pinocchio(case, size):
    """The shorter way round: turns of up to 3 rad, small ones as well."""
    reference, random, _ = case
    model, peer = reference.model, reference.reference
    np.testing.assert_array_equal(reference.q(model.neutral()), _moved_by_mimics(reference, pin.neutral(peer)))
    q = np.concatenate([random.uniform(-1, 1, 3), *(0.1 * random.uniform(-1, 1, model.nq - 3),)])
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


def test_a_base_without_mass_cannot_float(tmp_path):
    (tmp_path / "r.urdf").write_text(MASSLESS)
    with pytest.raises(InputErrors) as caught:
        Model.from_urdf(tmp_path / "r.urdf", floating_base=True)
    assert str(caught.value) == (
        f"{tmp_path / 'r.urdf'}:1 link 'base': link 'base' can move but has no inertia against the motion;"
        " give it or its descendants mass, or make joint 'root_joint' fixed"
    )


@pytest.mark.parametrize("part", ["link", "joint"])
def test_the_names_of_a_floating_base_are_taken_once(part):
    text = MASSLESS.replace('"arm"', '"world"') if part == "link" else MASSLESS.replace('"j"', '"root_joint"')
    name = "world" if part == "link" else "root_joint"
    with pytest.raises(InputError) as caught:
        with_floating_base(parse_urdf(text))
    what = f"the name '{name}' is reserved for the floating base; rename the link or joint"
    assert caught.value.what == what
    part_of = {"link": "link 'world'", "joint": "joint 'root_joint'"}
    assert caught.value.place.key == part_of[part]


# --- trees of all joints --------------------------------------------------------------------------


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
    turn = Rotation.random(random_state=int(random.integers(2**31))).as_matrix()
    axis, second = (turn if random.random() < 0.7 else np.eye(3)[random.permutation(3)])[:2]
    pose = Pose(Rotation.random(random_state=int(random.integers(2**31))).as_matrix(), random.uniform(-1, 1, 3))
    more = {"second_axis": second} if kind == "universal" else {}
    more |= {"pitch": random.choice([-0.3, 0.05])} if kind == "screw" else {}
    more |= {"motion": ANGLES} if kind == "general" else {}
    return Joint(f"j{k}", kind, parent, f"l{k + 1}", pose, axis, **more)


def random_link(name, random):
    mass, turn = random.uniform(0.2, 3.0), Rotation.random(random_state=int(random.integers(2**31))).as_matrix()
    x, y, z = mass * random.uniform(0.01, 0.2, 3)
    return Link(name, Inertial(mass, random.uniform(-0.5, 0.5, 3), turn @ np.diag([y + z, x + z, x + y]) @ turn.T))


def both_sides(kinds, seed):
    """(reference, random numbers) of a tree with joints of the given kinds."""
    random = np.random.default_rng(seed)
    joints = [
        random_joint(k, kind, f"l{random.integers(max(0, k - 3), k + 1)}", random) for k, kind in enumerate(kinds)
    ]
    links = [Link("l0"), *(random_link(f"l{k + 1}", random) for k in range(len(kinds)))]
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


@one_of_each
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", THEIRS)
def test_each_joint_between_others(kind, compiled):
    """The joint on the ground, on itself, and between two hinges."""
    reference, random = both_sides(["revolute", kind, kind, "prismatic", "revolute"], zlib.crc32(kind.encode()))
    check(reference, random, ["l3", "l5"], compiled)
    reference, random = both_sides([kind], 1)
    check(reference, random, ["l1"])


@pytest.mark.parametrize("seed", few(range(12), 4))
def test_trees_of_all_joints(seed):
    kinds = list(np.random.default_rng(seed).permutation([*THEIRS, *THEIRS])[:9])
    reference, random = both_sides(list(map(str, kinds)), seed)
    check(reference, random, ["l4", "l9"])
