"""Equations written out by hand as the books have them, beside every formulation that can treat the mechanism."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cosim.mechanics.formulations import known_formulations, load_formulation
from cosim.mechanics.formulations.augmented_bodies import augmented_tree
from cosim.mechanics.formulations.wittenburg import structure
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.constraint_laws import knife_edge
from cosim.mechanics.multibody.mechanism import (
    Constraint,
    Inertial,
    Joint,
    Link,
    LoopJoint,
    Mechanism,
    Pose,
)
from tests.formulations.mechanisms import tree

G = 9.81
DOWN = (0.0, -G, 0.0)  # planar mechanisms move in x and y
SPATIAL = ["newton_euler", "composite_bodies", "kane", "lagrange", "gauss", "wittenburg", "dependent_coordinates"]
ROTATIONS = [*SPATIAL, "augmented_bodies"]
PLANAR = [*ROTATIONS, "planar_bodies"]


def at(x=0.0, y=0.0, z=0.0):
    return Pose(np.eye(3), np.array([x, y, z]))


def rod(name, mass, com, inertia):
    return Link(name, Inertial(mass, np.array([com, 0.0, 0.0]), np.diag([0.0, inertia, inertia])))


def two_links(l1=0.7):
    """Two rods: masses 1.3 and 0.9, centres of mass at 0.3 and 0.25, inertias about them 0.05 and 0.03."""
    links = Link("ground"), rod("upper", 1.3, 0.3, 0.05), rod("lower", 0.9, 0.25, 0.03)
    joints = (
        Joint("shoulder", "revolute", "ground", "upper", at()),
        Joint("elbow", "revolute", "upper", "lower", at(l1)),
    )
    return Mechanism("two links", "ground", links, joints)


def check(model, q, v, tau, expected, names):
    """Every formulation of the names, and the separate bodies."""
    for name in (*names, "separate_bodies"):
        found = load_formulation(name, model.equations).forward_dynamics(q, v, tau)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-11, atol=1e-11, err_msg=name)


def slope_at(f, x):
    """f′(x) by a difference of fourth order."""
    h = 1e-4
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)


def test_the_names_are_those_of_the_formulations():
    assert set(PLANAR) < set(known_formulations())


def test_a_two_link_arm():
    """Spong, Hutchinson and Vidyasagar, Robot Modeling and Control, 2006, section 7.4: planar elbow manipulator."""
    m1, m2, l1, c1, c2, i1, i2 = 1.3, 0.9, 0.7, 0.3, 0.25, 0.05, 0.03
    q, v, tau = np.array([0.4, -1.1]), np.array([0.7, -2.0]), np.array([1.5, 0.2])
    d11 = m1 * c1**2 + m2 * (l1**2 + c2**2 + 2 * l1 * c2 * np.cos(q[1])) + i1 + i2
    d12 = m2 * (c2**2 + l1 * c2 * np.cos(q[1])) + i2
    d22 = m2 * c2**2 + i2
    h = -m2 * l1 * c2 * np.sin(q[1])
    coriolis = np.array([h * v[1] * v[0] + h * (v[0] + v[1]) * v[1], -h * v[0] * v[0]])
    g2 = m2 * c2 * G * np.cos(q[0] + q[1])
    gravity = np.array([(m1 * c1 + m2 * l1) * G * np.cos(q[0]) + g2, g2])
    expected = np.linalg.solve([[d11, d12], [d12, d22]], tau - coriolis - gravity)
    check(Model(two_links(), DOWN), q, v, tau, expected, PLANAR)


def test_a_slider_crank():
    """One equation in the angle of the crank, I(θ) θ̈ + ½ I′(θ) θ̇² = τ − V′(θ), with sin ψ = −(r/L) sin θ of the rod
    and x = r cos θ + L cos ψ of the slider."""
    r, L, m1, m2, m3, i1, i2 = 0.2, 0.5, 1.0, 0.6, 2.0, 0.01, 0.02
    crank, coupler = rod("crank", m1, r / 2, i1), rod("coupler", m2, L / 2, i2)
    slider = Link("slider", Inertial(m3, np.zeros(3), np.eye(3)))
    joints = (
        Joint("main", "revolute", "ground", "crank", at()),
        Joint("pin", "revolute", "crank", "coupler", at(r)),
        Joint("guide", "prismatic", "ground", "slider", at(), np.array([1.0, 0.0, 0.0])),
    )
    loop = LoopJoint(Joint("wrist", "revolute", "coupler", "slider", at(L)), at())
    links = Link("ground"), crank, coupler, slider
    mechanism = Mechanism("slider-crank", "ground", links, joints, loops=(loop,))
    theta, rate, torque = 0.8, 3.0, 1.7

    def motion(theta):
        """ψ, x of the slider; centre of mass (x, y) of the rod; their derivatives by θ."""
        psi = np.arcsin(-r / L * np.sin(theta))
        turn = -r * np.cos(theta) / (L * np.cos(psi))
        slide = -r * np.sin(theta) - L * np.sin(psi) * turn
        centre = np.array([-r * np.sin(theta) - L / 2 * np.sin(psi) * turn, 0.5 * r * np.cos(theta)])
        return psi, r * np.cos(theta) + L * np.cos(psi), turn, slide, centre

    def inertia(theta):
        _, _, turn, slide, centre = motion(theta)
        return i1 + m1 * (r / 2) ** 2 + m2 * centre @ centre + i2 * turn**2 + m3 * slide**2

    weight = G * (m1 * r / 2 + m2 * r / 2) * np.cos(theta)
    acceleration = (torque - weight - 0.5 * slope_at(inertia, theta) * rate**2) / inertia(theta)
    psi, x, turn, slide, _ = motion(theta)
    bend, jerk = (slope_at(lambda angle, k=k: motion(angle)[k], theta) for k in (2, 3))
    rod_acceleration = turn * acceleration + bend * rate**2
    expected = [acceleration, rod_acceleration - acceleration, slide * acceleration + jerk * rate**2]
    q, v = np.array([theta, psi - theta, x]), np.array([rate, (turn - 1.0) * rate, slide * rate])
    model = Model(mechanism, DOWN, redundant=(2, 3, 4))  # out of the plane
    tau = np.array([torque, 0.0, 0.0])
    for name in (*ROTATIONS, "separate_bodies"):
        found = load_formulation(name, model.equations).forward_dynamics(q, v, tau)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-8, err_msg=name)


def test_a_heavy_top():
    """Euler's equations about a fixed point: J ω̇ + ω × J ω = m c × Qᵀ g, of a body on a ball joint."""
    about_com, m, c = np.diag([0.3, 0.25, 0.1]), 2.0, np.array([0.1, -0.05, 0.4])
    J = about_com + m * (c @ c * np.eye(3) - np.outer(c, c))
    links = Link("ground"), Link("top", Inertial(m, c, about_com))
    joint = Joint("ball", "spherical", "ground", "top", at(0.1, 0.2, 0.3))
    model = Model(Mechanism("top", "ground", links, (joint,)), (0.0, 0.0, -G))
    rotation = Rotation.from_rotvec([0.3, -0.8, 0.5])
    omega, tau = np.array([1.0, -2.0, 7.0]), np.array([0.1, 0.2, -0.3])
    weight = np.cross(m * c, rotation.as_matrix().T @ [0.0, 0.0, -G])
    expected = np.linalg.solve(J, weight + tau - np.cross(omega, J @ omega))
    check(model, rotation.as_quat(), omega, tau, expected, ROTATIONS)


def test_a_sleigh():
    """A rod on a knife edge at its centre of mass: u̇ = F/m along the edge, J φ̈ = M (Chaplygin)."""
    m, J = 2.0, 0.15
    links = Link("ground"), rod("rod", m, 0.0, J)
    edge = Constraint("edge", knife_edge(), (("ground", at()), ("rod", at())))
    joint = Joint("ice", "planar", "ground", "rod", at())
    model = Model(Mechanism("sleigh", "ground", links, (joint,), constraints=(edge,)), (0.0, 0.0, 0.0))
    phi, speed, rate, force, moment = 0.7, 1.3, -0.6, 4.0, 0.3
    along, across = np.array([np.cos(phi), np.sin(phi)]), np.array([-np.sin(phi), np.cos(phi)])
    q, v = np.array([0.1, 0.2, phi]), np.array([*(speed * along), rate])
    tau = np.array([*(force * along + 11.0 * across), moment])  # the edge takes what acts across it
    expected = [*(force / m * along + speed * rate * across), moment / J]
    check(model, q, v, tau, expected, PLANAR)


@pytest.mark.parametrize("parents", [[-1], [-1, 0, 1, 2], [-1, 0, 0, 2, -1, 4], [-1, -1, -1]])
def test_path_matrix_and_incidence_matrix_are_inverse(parents):
    found = graph_of(parents)
    np.testing.assert_array_equal(found.T @ found.S, np.eye(len(parents)))
    np.testing.assert_array_equal(found.S @ found.T, np.eye(len(parents)))
    np.testing.assert_array_equal(found.T.T @ found.S0, -np.ones(len(parents)))


def graph_of(parents):
    """The graph of a tree of ball joints; its bodies are in the order of the numbers."""
    made = tree(("spherical",) * len(parents), np.random.default_rng(0), parents)
    return structure(Model(made).equations.tree)


def test_barycentres_of_a_branched_tree():
    """Σ b_ij m_j = 0 of every body."""
    parents, random = [-1, 0, 0, 2], np.random.default_rng(0)
    mass = list(random.uniform(1, 2, 4))
    points, arms = (list(random.normal(size=(4, 3))) for _ in range(2))
    found = augmented_tree([0, 1, 2, 3], parents, graph_of(parents).T, mass, points, arms)
    for i in range(4):
        moment = sum(mass[j] * found.b[i, j] for j in range(4))
        np.testing.assert_allclose(moment, 0.0, atol=1e-12)


def test_barycentres_of_two_panels():
    """With the vectors s from the centres of mass to the hinges, the barycentre of the inner panel is at m2 s12 / M
    from its centre of mass, and of the outer one at m1 s21 / M."""
    m1, m2 = 12.0, 10.0
    com = SimpleNamespace(inner=np.array([1.0, 0.3, 0.0]), outer=np.array([0.9, 0.1, 0.0]))
    hinge = np.array([2.0, -0.2, 0.0])
    T = graph_of([-1, 0]).T
    found = augmented_tree([0, 1], [-1, 0], T, [m1, m2], [com.inner, com.outer], [np.zeros(3), hinge])
    s12, s21 = hinge - com.inner, -com.outer
    np.testing.assert_allclose(-found.b0[0] - com.inner, m2 * s12 / (m1 + m2), atol=1e-15)
    np.testing.assert_allclose(-found.b0[1] - com.outer, m1 * s21 / (m1 + m2), atol=1e-15)
