"""Torsion springs in spherical joints and between bodies: in every function and formulation, and near half a turn."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize._numdiff import approx_derivative
from scipy.spatial.transform import Rotation

from cosim.core.errors import InputErrors
from cosim.mechanics.formulations import known_formulations, load_formulation
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.coordinates import quaternion_of
from cosim.mechanics.multibody.mechanism import Torsion, TorsionSpring
from cosim.mechanics.multibody.torsion_springs import spring_moment
from tests.formulations.mechanisms import random_state, relative_error, tree
from tests.multibody.random_frames import random_pose

AGREEMENT = 1e-12


def matrix(random):
    factor = random.normal(size=(3, 3))
    return factor @ factor.T + np.eye(3)


def quaternion(random):
    return Rotation.random(random_state=random.integers(1000)).as_quat()


def model(damped=True, seed=0):
    """A floating tree with a spring of different directions in one spherical joint, of equal ones in another, and
    springs between two bodies and to the ground."""
    random = np.random.default_rng(seed)
    plain = tree(("free", "revolute", "spherical", "spherical"), random, [-1, 0, 0, 2])
    own = {"j2": Torsion(matrix(random), quaternion(random)), "j3": Torsion(3.0, quaternion(random))}
    joints = tuple(replace(joint, torsion=own.get(joint.name)) for joint in plain.joints)
    names = ("b1", "b3"), ("b0", "ground")
    ends = [tuple((name, random_pose(random)) for name in pair) for pair in names]
    springs = (
        TorsionSpring("brace", ends[0], Torsion(matrix(random), quaternion(random)), damped * matrix(random)),
        TorsionSpring("mount", ends[1], Torsion(5.0, quaternion(random)), damped * 0.3),
    )
    return Model(replace(plain, joints=joints, torsion_springs=springs), gravity=(1.0, -2.0, -9.0))


def states(equations, count=3):
    random = np.random.default_rng(5)
    return [random_state(equations, random) for _ in range(count)]


@pytest.mark.parametrize("name", sorted(set(known_formulations()) - {"planar_bodies"}))
def test_every_formulation_agrees(name):
    """Lagrange's equations know the stored energy only, so the moments are its gradient."""
    equations = model().equations
    formulation = load_formulation(name, equations)
    for state in states(equations):
        expected = equations.forward_dynamics(*state)
        assert relative_error(formulation.forward_dynamics(*state), expected) < AGREEMENT


def test_machine_code_and_inverse_dynamics_agree():
    found = model()
    for q, v, tau, _ in states(found.equations):
        a = found.forward_dynamics(q, v, tau)
        assert relative_error(a, found.equations.forward_dynamics(q, v, tau)) < AGREEMENT
        assert relative_error(found.inverse_dynamics(q, v, a), tau) < AGREEMENT


def test_derivatives():
    found = model()
    for q, v, a, _ in states(found.equations, 1):

        def efforts(step, q=q, v=v, a=a):
            return found.inverse_dynamics(found.integrate(q, step), v, a)

        expected = approx_derivative(efforts, np.zeros(found.nv), method="3-point")
        assert relative_error(found.inverse_dynamics_derivatives(q, v, a)[0], expected) < 1e-7


def test_the_moments_on_both_bodies_are_opposite():
    """A damper alone takes the power that its moment has."""
    equations = model().equations
    for q, v, _, t in states(equations):
        _, placed = equations.placements(q, v, t)
        brace = next(spring for spring in equations.constraints.springs if spring.name == "brace")
        (a, first), (b, second) = brace.wrenches(placed)
        on_a, on_b = placed[a].rotation @ first.angular, placed[b].rotation @ second.angular
        assert np.abs(on_a + on_b).max() < AGREEMENT
        still = brace._replace(torsion=Torsion(0.0))
        power = sum(placed[k].angular @ placed[k].rotation @ w.angular for k, w in still.wrenches(placed))
        assert -power == pytest.approx(still.loss(placed), rel=1e-12)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 1e-3, 0.5, 3.0, np.pi - 1e-6])
def test_the_moment_is_the_gradient_at_every_angle(angle):
    """Of the energy by scipy's rotation vectors."""
    random = np.random.default_rng(3)
    stiffness, axis = matrix(random), random.normal(size=3)
    phi = angle * axis / np.linalg.norm(axis)

    def energy(step):
        turned = (Rotation.from_rotvec(phi) * Rotation.from_rotvec(step)).as_rotvec()
        return 0.5 * turned @ stiffness @ turned

    expected = -approx_derivative(energy, np.zeros(3), method="3-point", abs_step=1e-7)
    assert np.abs(spring_moment(Torsion(stiffness), phi) - expected).max() < 1e-6
    same = spring_moment(Torsion(2.0 * np.eye(3)), phi)
    assert same == pytest.approx(spring_moment(Torsion(2.0), phi), rel=1e-14, abs=1e-16)


@pytest.mark.parametrize("angle", [0.0, 1e-8, 1.0, 2.0, 3.0, np.pi - 1e-9, np.pi])
def test_quaternions_of_rotations(angle):
    for axis in (*np.eye(3), *-np.eye(3), *np.random.default_rng(1).normal(size=(10, 3))):
        turned = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis))
        found = np.asarray(quaternion_of(turned.as_matrix()), dtype=float)
        assert 1.0 <= np.linalg.norm(found) <= 4.0 + 1e-12
        assert (Rotation.from_quat(found).inv() * turned).magnitude() < 1e-15 * 10


def test_joints_that_are_not_spherical_have_none(said):
    for kind in ("revolute", "free", "universal"):
        plain = tree((kind,), np.random.default_rng(0), j0={"torsion": Torsion(1.0)})
        with pytest.raises(InputErrors) as refused:
            Model(plain)
        said(refused.value)
