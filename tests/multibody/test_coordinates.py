"""Spaces of coordinates and the table of joints, against matrix exponentials and differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm, logm
from scipy.spatial.transform import Rotation

from cosim.core import ops
from cosim.core.compile import ArrayPort, compile
from cosim.mechanics.multibody import joints
from cosim.mechanics.multibody.coordinates import MOTION, ROTATION, SMALL_SQUARE, multiplied, numbers, rotation_of
from cosim.mechanics.multibody.joints import GeneralMotion, general, screw

SPACES = {"numbers": numbers(3), "rotation": ROTATION, "motion": MOTION}
KINDS = {
    "revolute": joints.REVOLUTE,
    "prismatic": joints.PRISMATIC,
    "cylindrical": joints.CYLINDRICAL,
    "universal": joints.UNIVERSAL,
    "spherical": joints.SPHERICAL,
    "planar": joints.PLANAR,
    "free": joints.FREE,
    "fixed": joints.FIXED,
    "screw": screw(0.3),
    "screw the other way": screw(-0.05),
}
STEP = 1e-4  # of central differences

quick = settings(max_examples=25)
seeds = st.integers(0, 2**32 - 1)
# of turns: tiny ones, those about which series take over, the largest that have one shorter way
angles = st.one_of(
    st.sampled_from(
        [0.0, 1e-300, 1e-160, 1e-9, np.sqrt(SMALL_SQUARE) * 0.999, np.sqrt(SMALL_SQUARE), np.sqrt(SMALL_SQUARE) * 1.001]
    ),
    st.floats(0.0, 3.1),
    st.floats(1e-9, 1e-3).map(lambda x: np.pi - x),
)


def coordinates(space, random, size=1.0):
    q = random.uniform(-size, size, space.nq)
    if space.nq != space.nv:
        q[-4:] = Rotation.random(random_state=int(random.integers(2**31))).as_quat()
    return q


def step_of(space, random, angle):
    """A step whose turn has an angle."""
    d = random.uniform(-1, 1, space.nv)
    axis = random.normal(size=3)
    d[-3:] = axis / np.linalg.norm(axis) * angle
    return d


def twist(d):
    """(linear, angular) as a matrix (4, 4)."""
    return np.block([[ops.skew(d[3:]), d[:3, None]], [np.zeros((1, 4))]])


def pose(q):
    """The matrix (4, 4) of coordinates of a rigid motion."""
    return np.block([[rotation_of(q[3:]), q[:3, None]], [np.zeros((1, 3)), np.ones((1, 1))]])


@pytest.mark.parametrize("name", SPACES)
@quick
@given(seeds, angles)
def test_difference_undoes_integrate(name, seed, angle):
    space, random = SPACES[name], np.random.default_rng(seed)
    q, d = coordinates(space, random), step_of(space, random, angle)
    there = space.integrate(q, d)
    np.testing.assert_allclose(space.difference(q, there), d, atol=1e-13)
    assert np.abs(space.difference(q, there)[-3:] - d[-3:]).max() < 1e-14
    np.testing.assert_allclose(space.difference(there, q), -d, atol=1e-13)


@pytest.mark.parametrize("name", SPACES)
@quick
@given(seeds, seeds)
def test_integrate_undoes_difference(name, seed, other):
    space = SPACES[name]
    q0, q1 = (coordinates(space, np.random.default_rng(s)) for s in (seed, other))
    d = space.difference(q0, q1)
    there = space.integrate(q0, d)
    if space.nq != space.nv:
        assert np.linalg.norm(d[-3:]) <= np.pi + 1e-12
        there[-4:] *= np.sign(there[-4:] @ q1[-4:])  # q and −q are one rotation
    np.testing.assert_allclose(there, q1, atol=1e-12)


@pytest.mark.parametrize("name", SPACES)
@quick
@given(seeds)
def test_rate_is_the_derivative_of_integrate(name, seed):
    space, random = SPACES[name], np.random.default_rng(seed)
    q, v = coordinates(space, random), random.uniform(-3, 3, space.nv)
    ahead, behind = space.integrate(q, STEP * v), space.integrate(q, -STEP * v)
    np.testing.assert_allclose((ahead - behind) / (2 * STEP), space.rate(q, v), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", SPACES)
def test_neutral_coordinates_are_the_identity(name):
    space, random = SPACES[name], np.random.default_rng(0)
    d = step_of(space, random, 1.3)
    np.testing.assert_array_equal(space.difference(space.neutral, space.neutral), np.zeros(space.nv))
    np.testing.assert_array_equal(space.integrate(space.neutral, np.zeros(space.nv)), space.neutral)
    np.testing.assert_allclose(space.difference(space.neutral, space.integrate(space.neutral, d)), d, atol=1e-14)


@quick
@given(seeds, angles)
def test_motions_are_exponentials(seed, angle):
    random = np.random.default_rng(seed)
    q, d = coordinates(MOTION, random), step_of(MOTION, random, angle)
    there = MOTION.integrate(q, d)
    np.testing.assert_allclose(pose(there), pose(q) @ expm(twist(d)), atol=1e-12)
    np.testing.assert_array_equal(there[3:], ROTATION.integrate(q[3:], d[3:]))
    if 1e-6 < angle < 3.0:
        between = np.real(logm(np.linalg.solve(pose(q), pose(there))))
        np.testing.assert_allclose(twist(MOTION.difference(q, there)), between, atol=1e-8)


@quick
@given(seeds)
def test_quaternions_are_rotations(seed):
    random = np.random.default_rng(seed)
    p, q = random.normal(size=(2, 4))
    size = random.uniform(0.1, 10.0)
    np.testing.assert_allclose(rotation_of(size * q), Rotation.from_quat(q).as_matrix(), atol=1e-14)
    np.testing.assert_allclose(rotation_of(multiplied(p, q)), rotation_of(p) @ rotation_of(q), atol=1e-14)
    np.testing.assert_allclose(ROTATION.normalised(size * q), q / np.linalg.norm(q), rtol=1e-14)
    np.testing.assert_allclose(MOTION.normalised(np.array([7.0, 8.0, 9.0, *q]))[:3], [7.0, 8.0, 9.0])


def test_drift_of_length_does_not_grow():
    q = np.array([0.5, 0.5, 0.5, 0.5])
    for _ in range(1000):
        q = ROTATION.integrate(q, np.array([0.01, -0.02, 0.03]))
    assert abs(np.linalg.norm(q) - 1.0) < 1e-15
    turned = Rotation.from_rotvec([10.0, -20.0, 30.0])
    np.testing.assert_allclose(rotation_of(q), (Rotation.from_quat([0.5] * 4) * turned).as_matrix(), atol=1e-12)


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("angle", [0.0, 1e-200, 5e-4, 2e-3, 1.0, 3.1])
def test_machine_code_of_a_space_is_its_python(name, angle):
    """No NaN where a turn is nothing."""
    space, random = SPACES[name], np.random.default_rng(3)
    q, d = coordinates(space, random), step_of(space, random, angle)
    there = space.integrate(q, d)
    for fn, second in ((space.integrate, d), (space.difference, there), (space.rate, d)):
        expected = fn(q, second)
        ports = [ArrayPort("a", (len(q),)), ArrayPort("b", (len(second),))]
        native = compile(fn, ports, "space", [ArrayPort("out", (len(expected),))]).native
        np.testing.assert_allclose(native(q, second), expected, rtol=1e-12, atol=1e-12)


def velocity(hinge, v):
    """(linear, angular) of the child in the joint's frame, along the child's axes."""
    linear = hinge.drift.linear + ops.sum(s.linear * v[i] for i, s in enumerate(hinge.columns))
    return linear, hinge.drift.angular + ops.sum(s.angular * v[i] for i, s in enumerate(hinge.columns))


def check_hinge(kind, q, v, t):
    """The hinge is the first and second derivative of the place."""

    def at(time):
        there = kind.space.integrate(q, v * time)
        turn, r = (np.array(part, dtype=float) for part in kind.place(there, t + time))
        linear, angular = velocity(kind.hinge(there, v, t + time), v)
        return turn, r, turn @ linear, turn @ angular

    (_, r1, slip1, spin1), (_, r0, slip0, spin0) = at(STEP), at(-STEP)
    turn, _, slip, spin = at(0.0)
    change = (at(STEP)[0] - at(-STEP)[0]) / (2 * STEP) @ turn.T
    np.testing.assert_allclose(turn @ turn.T, np.eye(3), atol=1e-14)
    np.testing.assert_allclose((r1 - r0) / (2 * STEP), slip, atol=1e-6)
    np.testing.assert_allclose(change, ops.skew(spin), atol=1e-6)
    bias = kind.hinge(q, v, t).bias
    np.testing.assert_allclose((slip1 - slip0) / (2 * STEP), turn @ bias.linear, atol=1e-6)
    np.testing.assert_allclose((spin1 - spin0) / (2 * STEP), turn @ bias.angular, atol=1e-6)


@pytest.mark.parametrize("name", KINDS)
@quick
@given(seeds)
def test_hinges_are_derivatives_of_places(name, seed):
    kind, random = KINDS[name], np.random.default_rng(seed)
    check_hinge(kind, coordinates(kind.space, random, 2.0), random.uniform(-2, 2, kind.nv), 0.0)
    assert len(kind.dofs) == len(kind.hinge(kind.space.neutral, np.zeros(kind.nv), 0.0).columns)


@pytest.mark.parametrize("name", KINDS)
def test_joints_stand_in_their_frames_at_neutral_coordinates(name):
    turn, r = KINDS[name].place(KINDS[name].space.neutral, 0.0)
    np.testing.assert_array_equal(turn, np.eye(3))
    np.testing.assert_array_equal(r, np.zeros(3))


IMITATED = [name for name, kind in KINDS.items() if kind.nq == kind.nv and name != "fixed"]


def imitation(kind, place=None, timed=False):
    names, units = zip(*kind.dofs, strict=True)
    return general(GeneralMotion(names, units, place or kind.place, timed))


@pytest.mark.parametrize("name", IMITATED)
@quick
@given(seeds)
def test_a_general_joint_is_the_one_it_imitates(name, seed):
    kind, random = KINDS[name], np.random.default_rng(seed)
    q, v = random.uniform(-3, 3, (2, kind.nv))
    own, copy = kind.hinge(q, v, 0.0), IMITATIONS[name].hinge(q, v, 0.0)
    for one, other in zip((*own.columns, own.drift, own.bias), (*copy.columns, copy.drift, copy.bias), strict=True):
        np.testing.assert_allclose(one.linear, other.linear, atol=1e-13)
        np.testing.assert_allclose(one.angular, other.angular, atol=1e-13)


IMITATIONS = {name: imitation(KINDS[name]) for name in IMITATED}


# on coordinates that time moves as well: q + ½ t²
POSED = {
    name: imitation(kind, lambda q, t, kind=kind: kind.place(q + 0.5 * t * t, t), timed=True)
    for name, kind in KINDS.items()
    if name in IMITATED
}


@pytest.mark.parametrize("name", IMITATED)
@quick
@given(seeds)
def test_a_joint_moved_by_time(name, seed):
    """Its drift is what the joint does at v = t, its bias what it does at v + t and q̈ = 1."""
    kind, random = KINDS[name], np.random.default_rng(seed)
    (q, v), t = random.uniform(-2, 2, (2, kind.nv)), random.uniform(-2, 2)
    found, own = POSED[name].hinge(q, v, t), kind.hinge(q + 0.5 * t * t, v + t, 0.0)
    check_hinge(POSED[name], q, v, t)
    for part in (0, 1):
        columns = np.transpose([s[part] for s in own.columns])
        np.testing.assert_allclose(np.transpose([s[part] for s in found.columns]), columns, atol=1e-13)
        np.testing.assert_allclose(found.drift[part], columns @ np.full(kind.nv, t), atol=1e-12)
        np.testing.assert_allclose(found.bias[part], own.bias[part] + columns @ np.ones(kind.nv), atol=1e-11)
    assert POSED[name].timed and not kind.timed
