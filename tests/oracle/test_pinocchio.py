"""Real robots: every quantity of a model is what Pinocchio computes from the same URDF file.

Errors are relative: the largest absolute difference over the largest absolute value of the expected array. Solutions
of M q̈ = r may differ by rounding times the condition of M, which reaches 10¹² in iCub.
"""

import functools
import math
import xml.etree.ElementTree as ET
import zlib

import numpy as np
import pinocchio as pin
import pytest

from cosim.errors import InputErrors
from cosim.multibody import Model

TOLERANCE = 1e-9

# a file that cannot be read -> (number of mistakes, what the first one says); every other file must load
NOT_POSITIVE = "is not positive definite"
REFUSED = {
    "alex_description/urdf/alex_psyonic_hands.urdf": (8, "mimics joint 'index_q1', which does not exist"),
    "romeo_description/urdf/romeo.urdf": (24, "can move but has no inertia against the motion"),
    "romeo_description/urdf/romeo_laas_small.urdf": (3, NOT_POSITIVE),
    "ur_description/urdf/ur3.urdf": (1, "the robot has no <link>"),  # nothing but a name of its author
}

# Robots with mimics that move; False where Pinocchio's own reading of mimics fails because a mimic stands
# before its leader.
MIMICKING = {
    "baxter_description/urdf/baxter.urdf": True,
    "panda_description/urdf/panda.urdf": True,
    "panda_description/urdf/panda_collision.urdf": True,
    "pr2_description/urdf/pr2.urdf": True,
    "talos_data/robots/talos_full_v2.urdf": False,
    "talos_data/robots/talos_full_v2_box.urdf": False,
    "tiago_pro_description/robots/tiago_pro.urdf": True,
}

# Of a small robot every function is compiled, of a large one forward dynamics, of iCub both sweeps; the rest runs as
# plain Python.
SMALL = 8
# function -> the only large robot of which it is compiled, "" for all
LARGE = {"forward_dynamics": "", "hybrid_dynamics": "icub_description/robots/icub.urdf"}


class Reference:
    """The same robot in Pinocchio, in the coordinates of the model under test.

    `spread` is P and `offset` o in q_full = P q + o, read from the <mimic> elements of the file.
    """

    def __init__(self, path, names):
        self.model = pin.buildModelFromUrdf(str(path))
        self.data = self.model.createData()
        self.gravity = self.model.gravity.linear
        mimics = {
            joint.get("name"): mimic
            for joint in ET.parse(path).getroot().findall("joint")
            if (mimic := joint.find("mimic")) is not None
        }
        self.spread, self.offset = np.zeros((self.model.nv, len(names))), np.zeros(self.model.nv)
        self.mimics = self.model.nv - len(names)
        for name in list(self.model.names)[1:]:
            row = self.model.joints[self.model.getJointId(name)].idx_v
            leader, factor = name, 1.0
            while leader in mimics:
                mimic = mimics[leader]
                self.offset[row] += factor * float(mimic.get("offset", 0.0))
                factor *= float(mimic.get("multiplier", 1.0))
                leader = mimic.get("joint")
            self.spread[row, names.index(leader)] = factor

    def q(self, q):
        """Positions as Pinocchio has them: cos and sin of an unlimited angle."""
        full = self.spread @ q + self.offset
        parts = [np.zeros(0)]
        for joint in list(self.model.joints)[1:]:
            angle = full[joint.idx_v]
            parts.append([math.cos(angle), math.sin(angle)] if joint.nq == 2 else [angle])
        return np.concatenate(parts)

    def v(self, v):
        return self.spread @ v

    def mass(self, q):
        return self.spread.T @ pin.crba(self.model, self.data, self.q(q)) @ self.spread

    def inverse(self, q, v, qdd):
        return self.spread.T @ pin.rnea(self.model, self.data, self.q(q), self.v(v), self.v(qdd))

    def forward(self, q, v, tau):
        if self.mimics:
            return np.linalg.solve(self.mass(q), tau - self.inverse(q, v, np.zeros_like(v)))
        full = pin.aba(self.model, self.data, self.q(q), self.v(v), self.spread @ tau)
        return self.spread.T @ full

    def hybrid(self, q, v, qdd, tau, held):
        """M q̈ + bias = τ with the columns of what is held on the right side."""
        mass, bias, free = self.mass(q), self.inverse(q, v, np.zeros_like(v)), ~held
        qdd, tau = qdd.copy(), tau.copy()
        known = tau[free] - bias[free] - mass[np.ix_(free, held)] @ qdd[held]
        qdd[free] = np.linalg.solve(mass[np.ix_(free, free)], known)
        tau[held] = mass[held] @ qdd + bias[held]
        return qdd, tau

    def links(self):
        bodies = [frame.name for frame in self.model.frames if frame.type == pin.BODY]
        return [name for name in bodies if name != "universe"]

    def pose(self, q, link):
        pin.framesForwardKinematics(self.model, self.data, self.q(q))
        return self.data.oMf[self.model.getFrameId(link, pin.BODY)].homogeneous

    def jacobian(self, q, link):
        frame = self.model.getFrameId(link, pin.BODY)
        full = pin.computeFrameJacobian(self.model, self.data, self.q(q), frame, pin.LOCAL_WORLD_ALIGNED)
        return full @ self.spread


class Robot:
    """A model, its reference and states of it, seeded by the test."""

    def __init__(self, path, name):
        self.name, self.model = name, Model.from_urdf(path)
        self.reference = Reference(path, self.model.joint_names)
        self.random = np.random.default_rng()

    def function(self, name, frame=None):
        """A function of the model, compiled or plain, as the budget of time allows."""
        if self.model.nv <= SMALL or LARGE.get(name) in ("", self.name):
            return self.model.compiled(name, frame).native
        return self.model._definition(name, frame)[0]

    def states(self):
        """(q, v): within the limits, within ±1, and with angles of many turns at high speed."""
        limits, n = self.model.limits, self.model.nq
        lower, upper = np.maximum(limits.lower, -math.pi), np.minimum(limits.upper, math.pi)
        turns = np.array([1.0 if joint.kind == "prismatic" else 100.0 for joint in self.model.joints])
        uniform = self.random.uniform
        yield uniform(lower, upper), uniform(-1, 1, n)
        yield uniform(-1, 1, n), uniform(-1, 1, n)
        yield uniform(-turns, turns), uniform(-10, 10, n)

    def vector(self, size=1.0):
        return self.random.uniform(-size, size, self.model.nv)


@functools.cache
def loaded(path, name):
    return Robot(path, name)


def seeded(pair, test):
    """The robot with the states of a test, whatever ran before it."""
    pair.random = np.random.default_rng(zlib.crc32(f"{test} {pair.name}".encode()))
    return pair


@pytest.fixture
def pair(robots_folder, robot, request):
    return seeded(loaded(robots_folder / robot, robot), request.function.__name__)


def error(found, expected):
    """The largest difference relative to the largest value; 0 for empty arrays."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    scale = np.abs(expected).max(initial=0.0)
    return np.abs(found - expected).max(initial=0.0) / (scale or 1.0)


def tolerance(mass):
    """Of accelerations that belong to a mass matrix."""
    return max(TOLERANCE, np.finfo(float).eps * np.linalg.cond(mass)) if mass.size else TOLERANCE


# --- which robots ---------------------------------------------------------------------------------


def test_the_package_holds_the_robots_that_the_table_names(robots_folder):
    assert len(list(robots_folder.rglob("*.urdf"))) == 69
    assert [name for name in REFUSED if not (robots_folder / name).is_file()] == []


@pytest.mark.parametrize("name", REFUSED)
def test_an_invalid_file_is_refused_with_its_errors(robots_folder, name):
    count, what = REFUSED[name]
    with pytest.raises(InputErrors) as caught:
        Model.from_urdf(robots_folder / name)
    assert len(caught.value.errors) == count
    assert what in str(caught.value.errors[0])


def test_joints_and_limits_are_those_of_pinocchio(pair, robot):
    model, reference = pair.model, pair.reference
    assert (reference.mimics > 0) == (robot in MIMICKING)
    for k, name in enumerate(model.joint_names):
        joint = reference.model.joints[reference.model.getJointId(name)]
        assert (model.limits.lower[k], model.limits.upper[k]) == (-math.inf, math.inf) or joint.nq == 1
        if np.isfinite(model.limits.lower[k]):
            assert model.limits.lower[k] == reference.model.lowerPositionLimit[joint.idx_q]
            assert model.limits.upper[k] == reference.model.upperPositionLimit[joint.idx_q]


# --- dynamics -------------------------------------------------------------------------------------


def test_forward_dynamics(pair):
    forward = pair.function("forward_dynamics")
    for q, v in pair.states():
        tau = pair.vector(10.0)
        expected = pair.reference.forward(q, v, tau)
        assert error(forward(q, v, tau), expected) < tolerance(pair.reference.mass(q))


def test_inverse_dynamics(pair):
    inverse = pair.function("inverse_dynamics")
    for q, v in pair.states():
        qdd = pair.vector(10.0)
        assert error(inverse(q, v, qdd), pair.reference.inverse(q, v, qdd)) < TOLERANCE


def test_mass_matrix(pair):
    mass = pair.function("mass_matrix")
    for q, _ in pair.states():
        assert error(mass(q), pair.reference.mass(q)) < TOLERANCE


def test_hybrid_dynamics(pair):
    """None prescribed is forward, all prescribed inverse dynamics; what is given is passed through to the bit."""
    hybrid, reference, n = pair.function("hybrid_dynamics"), pair.reference, pair.model.nv
    none, every = np.zeros(n, bool), np.ones(n, bool)
    for held in (none, every, *(pair.random.random((3, n)) < 0.5)):
        for q, v in pair.states():
            qdd, tau = pair.vector(10.0), pair.vector(10.0)
            accelerations, efforts = hybrid(q, v, qdd, tau, held)
            expected = reference.hybrid(q, v, qdd, tau, held)
            if held is none:
                expected = reference.forward(q, v, tau), tau
            if held is every:
                expected = qdd, reference.inverse(q, v, qdd)
            allowed = tolerance(reference.mass(q)[np.ix_(~held, ~held)])
            assert error(accelerations, expected[0]) < allowed
            assert error(efforts, expected[1]) < allowed
            np.testing.assert_array_equal(accelerations[held], qdd[held])
            np.testing.assert_array_equal(efforts[~held], tau[~held])


@pytest.mark.parametrize("name", MIMICKING)
def test_mimics_are_those_of_pinocchio(robots_folder, name):
    """Pinocchio reads mimics too, and has mass matrix and inverse dynamics for them."""
    path = str(robots_folder / name)
    if not MIMICKING[name]:
        with pytest.raises(ValueError, match="parent joint of the mimic joint is not in the kinematic tree"):
            pin.buildModelFromUrdf(path, mimic=True)
        return
    pair = seeded(loaded(robots_folder / name, name), "mimics")
    reduced = pin.buildModelFromUrdf(path, mimic=True)
    data = reduced.createData()
    joints = [reduced.joints[reduced.getJointId(own)] for own in pair.model.joint_names]
    order = [joint.idx_v for joint in joints]
    mass, inverse = pair.function("mass_matrix"), pair.function("inverse_dynamics")
    for q, v in pair.states():
        qdd, full = pair.vector(10.0), np.zeros(reduced.nq)
        for joint, angle in zip(joints, q, strict=True):
            values = [math.cos(angle), math.sin(angle)] if joint.nq == 2 else [angle]
            full[joint.idx_q : joint.idx_q + joint.nq] = values
        rate, acceleration = np.zeros((2, reduced.nv))
        rate[order], acceleration[order] = v, qdd
        assert error(mass(q), pin.crba(reduced, data, full)[np.ix_(order, order)]) < TOLERANCE
        assert error(inverse(q, v, qdd), pin.rnea(reduced, data, full, rate, acceleration)[order]) < TOLERANCE


# --- energies -------------------------------------------------------------------------------------


def test_energies(pair):
    kinetic, potential = pair.function("kinetic_energy"), pair.function("potential_energy")
    reference = pair.reference
    for q, v in pair.states():
        full_q, full_v = reference.q(q), reference.v(v)
        expected = pin.computeKineticEnergy(reference.model, reference.data, full_q, full_v)
        assert error(kinetic(q, v), expected) < TOLERANCE
        expected = pin.computePotentialEnergy(reference.model, reference.data, full_q)
        assert error(potential(q), expected) < TOLERANCE


# --- frames ---------------------------------------------------------------------------------------


def test_frames(pair):
    """Poses and Jacobians of the root, of the last link and of some in between."""
    links = pair.reference.links()
    for link in dict.fromkeys([links[0], links[-1], *pair.random.choice(links, 3)]):
        pose, jacobian = pair.function("frame_pose", link), pair.function("frame_jacobian", link)
        for q, _ in pair.states():
            assert error(pose(q), pair.reference.pose(q, link)) < TOLERANCE
            assert error(jacobian(q), pair.reference.jacobian(q, link)) < TOLERANCE


# --- effort of gravity and velocities, centre of mass, momentum -------------------------------------


def test_nonlinear_effects_and_gravity(pair):
    effects, gravity, reference = pair.function("nonlinear_effects"), pair.function("gravity_effort"), pair.reference
    for q, v in pair.states():
        expected = pin.nonLinearEffects(reference.model, reference.data, reference.q(q), reference.v(v))
        assert error(effects(q, v), reference.spread.T @ expected) < TOLERANCE
        expected = pin.computeGeneralizedGravity(reference.model, reference.data, reference.q(q))
        assert error(gravity(q), reference.spread.T @ expected) < TOLERANCE


def test_centre_of_mass_and_momentum(pair):
    names = ("center_of_mass", "center_of_mass_jacobian", "centroidal_momentum", "centroidal_momentum_matrix")
    center, jacobian, momentum, matrix = map(pair.function, names)
    model, data = pair.reference.model, pair.reference.data
    for q, v in pair.states():
        full_q, full_v, spread = pair.reference.q(q), pair.reference.v(v), pair.reference.spread
        if not pair.model.nv:  # without moving bodies Pinocchio divides by 0
            assert not center(q).any() and not momentum(q, v).any()
            continue
        assert error(center(q), pin.centerOfMass(model, data, full_q)) < TOLERANCE
        assert error(jacobian(q), pin.jacobianCenterOfMass(model, data, full_q) @ spread) < TOLERANCE
        assert error(matrix(q), pin.computeCentroidalMap(model, data, full_q) @ spread) < TOLERANCE
        expected = pin.computeCentroidalMomentum(model, data, full_q, full_v).vector
        assert error(momentum(q, v), expected) < TOLERANCE
