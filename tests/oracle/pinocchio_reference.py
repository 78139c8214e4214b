"""The same mechanism in Pinocchio, and the comparison of every quantity of a model with it.

Errors are relative: the largest absolute difference over the largest absolute value of the expected array. Solutions
of M q̈ = r may differ by rounding times the condition of M, which reaches 10¹² in iCub.
"""

import math
import zlib

import numpy as np
import pinocchio as pin

from tests.multibody.random_frames import error

TOLERANCE = 1e-9


def numbers(name):
    """Random numbers that are the same for a name in every process."""
    return np.random.default_rng(zlib.crc32(name.encode()))


class Reference:
    """The same mechanism in Pinocchio: its full vectors are q(x), v = T x' and a = T x'' + T' x' in the vectors of
    the model under test (x, x', x'')."""

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


def tolerance(mass):
    """Of accelerations that belong to a mass matrix."""
    return max(TOLERANCE, np.finfo(float).eps * np.linalg.cond(mass)) if mass.size else TOLERANCE


def some_links(reference, random):
    """The first link, the last one, and two in between."""
    bodies = [frame.name for frame in reference.reference.frames if frame.type == pin.BODY and frame.name != "universe"]
    return dict.fromkeys([bodies[0], bodies[-1], *random.choice(bodies, 2)])


def states(model, random):
    """(q, speed): slow, fast, and at the neutral coordinates."""
    yield model.random_configuration(random), 1.0
    yield model.random_configuration(random), 10.0
    # a robot of point masses (iCub) has no regular mass matrix when its limbs are stretched
    if np.linalg.cond(model.equations.mass_matrix(model.neutral())) < 1e12:
        yield model.neutral(), 3.0


def check(reference, random, links, compiled=()):
    """All quantities of the model and its reference in some states; compiled: names of functions, or True for all."""
    model = reference.model

    def function(name, frame=None):
        as_code = compiled is True or (compiled and name in compiled)
        return model.compiled(name, frame).native if as_code else model.code.definition(name, frame)[0]

    forward, inverse, hybrid = map(function, ("forward_dynamics", "inverse_dynamics", "hybrid_dynamics"))
    for q, speed in states(model, random):
        v, qdd, tau = speed * random.uniform(-1, 1, model.nv), *random.uniform(-10, 10, (2, model.nv))
        mass = reference.mass(q)
        expected = reference.forward(q, v, tau)
        assert error(forward(q, v, tau), expected) < tolerance(mass)
        assert error(inverse(q, v, qdd), reference.inverse(q, v, qdd)) < TOLERANCE
        # none prescribed is forward, all prescribed inverse dynamics; what is given is passed through to the bit
        for held in (np.zeros(model.nv, bool), np.ones(model.nv, bool), random.random(model.nv) < 0.5):
            found, expected = hybrid(q, v, qdd, tau, held), reference.hybrid(q, v, qdd, tau, held)
            for own, theirs in zip(found, expected, strict=True):
                assert error(own, theirs) < tolerance(mass[np.ix_(~held, ~held)])
            np.testing.assert_array_equal(found[0][held], qdd[held])
            np.testing.assert_array_equal(found[1][~held], tau[~held])
        assert error(function("mass_matrix")(q), mass) < TOLERANCE
        assert error(function("kinetic_energy")(q, v), reference.kinetic(q, v)) < TOLERANCE
        assert error(function("potential_energy")(q), reference.potential(q), 1.0) < TOLERANCE
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
