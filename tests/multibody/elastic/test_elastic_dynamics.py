"""Sweeps over elastic trees beside Lagrange's equations of their energies and beside dense solutions."""

import casadi
import numpy as np
import pytest

from cosim import load_rig
from cosim.core import ops
from cosim.core.compile import Routine
from cosim.mechanics.formulations import load_formulation
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.assembly import close_loops, find_consistent_state
from cosim.mechanics.multibody.elastic.beam import ModeCounts
from cosim.mechanics.multibody.mechanism import Joint, Link, LoopJoint, Mechanism
from tests.kit.samples import FOLDER
from tests.multibody.elastic import beams
from tests.multibody.elastic.beams import (
    at,
    chain,
    floating_loop,
    model_of,
    moved_by,
    random_state,
    rigid,
    slopes,
    soft_link,
    spacecraft,
    turned,
    unit,
)
from tests.multibody.random_frames import error


def star():
    """An elastic link that carries one on a ball joint and a rigid one, beside a link that slides and turns."""
    links = (
        Link("base"),
        Link("trunk", elastic=soft_link()),
        Link("branch", elastic=soft_link(0.8, 0.7)),
        Link("rail", elastic=soft_link(1.2, shearing=True)),
    )
    joints = (
        Joint("root", "spherical", "base", "trunk", at(0, 0, 0, turned(1))),
        Joint("ball", "spherical", "trunk", "branch", at(1.0, 0.1, 0.0, turned(2))),
        Joint("tube", "cylindrical", "trunk", "rail", at(0.5, 0.0, 0.1, turned(3)), unit(0.3, 1, 0)),
    )
    return Mechanism("star", "base", links, joints)


TREES = {"chain": chain, "star": star, "spacecraft": spacecraft}


def close(found, expected, room=1e-10):
    assert error(found, expected, 1.0) <= room


@pytest.mark.parametrize("name", TREES)
def test_lagrange(name):
    """Quasi-velocities of rotations by Boltzmann and Hamel."""
    model = model_of(TREES[name])
    lagrange, kane = (load_formulation(other, model.equations) for other in ("lagrange", "elastic_kane"))
    q, v, tau = random_state(model)
    expected = lagrange.forward_dynamics(q, v, tau)
    close(model.equations.forward_dynamics(q, v, tau), expected)
    close(kane.forward_dynamics(q, v, tau), expected)
    close(model.equations.inverse_dynamics(q, v, expected), tau, 1e-8)
    given, prescribed = mixed(expected, tau)
    accelerations, efforts = model.equations.hybrid_dynamics(q, v, *given, prescribed)
    close(accelerations, expected, 1e-8)
    close(efforts, tau, 1e-8)


def mixed(acceleration, tau, seed=0):
    """((q̈, τ) of which one is given for each dof, whether it is q̈)."""
    prescribed = np.random.default_rng(seed).random(len(tau)) < 0.5
    return (np.where(prescribed, acceleration, 9.0), np.where(prescribed, 9.0, tau)), prescribed


def test_machine_code():
    model = model_of(chain)
    q, v, tau = random_state(model)
    acceleration = model.forward_dynamics(q, v, tau)
    close(acceleration, model.equations.forward_dynamics(q, v, tau), 1e-12)
    close(model.inverse_dynamics(q, v, acceleration), tau, 1e-8)
    given, prescribed = mixed(acceleration, tau)
    found = model.hybrid_dynamics(q, v, *given, prescribed)
    close(found[0], acceleration, 1e-8)
    close(found[1], tau, 1e-8)
    close(model.mass_matrix(q), model.equations.mass_matrix(q), 1e-12)


@pytest.mark.parametrize("name", TREES)
def test_mass_matrix_and_energy(name):
    model = model_of(TREES[name])
    q, v, _ = random_state(model)
    velocity = casadi.SX.sym("v", model.nv)
    energy = model.equations.kinetic_energy(q, ops.array(velocity.elements()))
    hessian = casadi.Function("M", [velocity], [casadi.hessian(casadi.SX(energy), velocity)[0]])(v).full()
    M = np.asarray(model.equations.mass_matrix(q), dtype=float)
    close(M, hessian)
    close(model.equations.mass_diagonal(q), np.diag(M))
    assert float(model.equations.kinetic_energy(q, v)) == pytest.approx(0.5 * v @ M @ v, rel=1e-12)
    close(model.equations.inertia_effort(q, v), M @ v)


def test_elastic_forces():
    """Work of the elastic forces is the energy that they store, and what dampers lose."""
    model = model_of(chain)
    q, v, _ = random_state(model)
    at_rest = model.equations.nonlinear_effects(q, np.zeros(model.nv)) - model.equations.gravity_effort(q)
    close(at_rest, slopes(model, model.equations.elastic_energy, q), 1e-7)
    loss = float(model.equations.damper_loss(q, v))
    assert loss > 0.05
    acceleration, step = model.equations.forward_dynamics(q, v, np.zeros(model.nv)), 1e-7

    def total(sign):
        there = moved_by(model, q, sign * step * v + 0.5 * step**2 * acceleration)
        return beams.energy(model, there, v + sign * step * acceleration)

    assert (total(1.0) - total(-1.0)) / (2.0 * step) == pytest.approx(-loss, rel=1e-3)


def dense_solution(model, q, v, tau):
    """(q̈, λ) of M q̈ + h = τ + Gᵀ λ, G q̈ + γ = 0 with γ by differences."""
    equations, n, step = model.equations, model.nv, 1e-6
    M, h = equations.mass_matrix(q), equations.nonlinear_effects(q, v)
    G = np.asarray(equations.constraint_jacobian(q), dtype=float)

    def rate(time):
        return np.asarray(equations.constraint_violation(moved_by(model, q, v * time), v)[1], dtype=float)

    gamma = (rate(step) - rate(-step)) / (2.0 * step)
    whole = np.block([[M, -G.T], [G, np.zeros((len(G), len(G)))]])
    solution = np.linalg.solve(whole, np.concatenate([tau - h, -gamma]))
    return solution[:n], solution[n:]


@pytest.mark.parametrize("elimination", ["direct", "nested"])
def test_loops(elimination):
    model = model_of(floating_loop, elimination=elimination)
    q, v, tau = random_state(model)
    acceleration, multipliers = dense_solution(model, q, v, tau)
    close(model.equations.forward_dynamics(q, v, tau), acceleration, 1e-8)
    close(model.equations.reactions(q, v, tau), multipliers, 1e-8)
    if elimination == "nested":
        close(model.forward_dynamics(q, v, tau), acceleration, 1e-8)


def test_impulses_and_projection():
    model = model_of(floating_loop)
    equations, n, random = model.equations, model.nv, np.random.default_rng(1)
    q, v, _ = random_state(model)
    held = np.arange(n) % 5 == 0
    demand, jump = random.normal(size=3), np.where(held, random.normal(size=n), 0.0)
    change, impulse, factors, _ = equations.impulse(q, demand, jump, held)
    G = np.asarray(equations.constraint_jacobian(q), dtype=float)
    close(G @ change, -demand)
    close(equations.mass_matrix(q) @ change, G.T @ factors + impulse)
    np.testing.assert_array_equal(change[held], jump[held])
    q, free = moved_by(model, model.neutral(), 0.05 * random.normal(size=n)), np.zeros(n, dtype=bool)
    for _ in range(6):
        q, v = (np.asarray(x, dtype=float) for x in equations.project_onto_constraints(q, v, free))
    residual, rate = equations.constraint_violation(q, v)
    assert np.abs(residual).max() < 1e-12 and np.abs(rate).max() < 1e-12


def four_bar(coupler):
    """In the plane, with an elastic coupler; the loop is open in the neutral position."""
    long = soft_link(coupler, modes=ModeCounts(bend_y=1, stretch=1))
    links = (Link("base"), rigid("crank", 1.0), Link("coupler", elastic=long), rigid("rocker", 1.0))
    joints = (
        Joint("crank", "revolute", "base", "crank", at(0, 0)),
        Joint("elbow", "revolute", "crank", "coupler", at(0, 0.5)),
        Joint("rocker", "revolute", "base", "rocker", at(1.0, 0)),
    )
    loops = (LoopJoint(Joint("close", "revolute", "coupler", "rocker", at(coupler)), at(0, 0.7)),)
    return Model(Mechanism("four bar", "base", links, joints, loops=loops))


def test_loops_close_without_bending():
    model, none = four_bar(1.1), np.zeros(5, dtype=bool)
    assert model.dof_names[2:4] == ("coupler.bend_y_1", "coupler.stretch_1")
    start = find_consistent_state(model, model.neutral(), np.array([1.0, 0, 0, 0, 0]), none, none)
    assert np.abs(model.constraint_violation(start.q, start.v)[0]).max() < 1e-10
    assert np.abs(start.q[[0, 1, 4]]).min() > 1e-3 and np.abs(start.v[[0, 1, 4]]).min() > 1e-3
    np.testing.assert_array_equal(start.q[2:4], 0.0)
    np.testing.assert_array_equal(start.v[2:4], 0.0)


def test_loops_that_are_too_long_close_with_bending():
    model = four_bar(1.1)
    held = np.array([True, False, False, False, True])
    q = close_loops(model, model.neutral(), held)
    np.testing.assert_array_equal(q[held], 0.0)
    assert np.abs(model.constraint_violation(q, np.zeros(5))[0]).max() < 1e-10
    assert np.abs(q[2:4]).max() > 1e-3


def test_baumgarte_stabilisation():
    """f̈ + 2ω ḟ + ω² f = 0 on the elastic loop."""
    stable, plain = model_of(floating_loop, baumgarte_rate=5.0), model_of(floating_loop)
    q, v, tau = random_state(plain)
    residual, rate = plain.equations.constraint_violation(q, v)
    G = np.asarray(plain.equations.constraint_jacobian(q), dtype=float)
    difference = stable.equations.forward_dynamics(q, v, tau) - plain.equations.forward_dynamics(q, v, tau)
    close(G @ difference, -(10.0 * np.asarray(rate) + 25.0 * np.asarray(residual)), 1e-8)


@pytest.mark.parametrize(("build", "frames"), [(chain, ("tip", "c", "d", "a")), (spacecraft, ("left", "right"))])
def test_frames(build, frames):
    model = model_of(build)
    q, v, _ = random_state(model)
    for frame in frames:
        pose, J = model.frame_pose(q, frame), model.frame_jacobian(q, frame)
        changes = slopes(model, lambda x, frame=frame: model.frame_pose(x, frame), q)
        close(J[:3], changes[:, :3, 3].T, 1e-8)
        turning = changes[:, :3, :3] @ pose[:3, :3].T
        close(J[3:], turning[:, [2, 0, 1], [1, 2, 0]].T, 1e-8)
        np.testing.assert_allclose(pose[:3, :3].T @ pose[:3, :3], np.eye(3), atol=1e-12)
        rates = slopes(model, lambda x, frame=frame: model.frame_jacobian(x, frame), q)
        close(model.frame_jacobian_rate(q, v, frame), np.einsum("k,kij->ij", v, rates), 1e-7)


@pytest.mark.parametrize("name", TREES)
def test_momentum(name):
    model = model_of(TREES[name])
    q, v, _ = random_state(model)
    mass = sum(body.mass for body in model.equations.tree.bodies)
    momentum = model.equations.centroidal_momentum(q, v)
    close(momentum, model.equations.centroidal_momentum_matrix(q) @ v)
    J = slopes(model, model.equations.center_of_mass, q).T
    close(model.equations.center_of_mass_jacobian(q), J, 1e-8)
    close(momentum[:3], mass * J @ v, 1e-8)
    close(model.equations.gravity_effort(q), -mass * model.gravity @ J, 1e-7)


def serial_arm(links, modes):
    """Revolute joints in general directions, and a load."""
    elastic = soft_link(modes=modes)
    names = ["base", *(f"l{k}" for k in range(links))]
    parts = [Link("base"), *(Link(name, elastic=elastic) for name in names[1:]), rigid("load", 1.0)]
    joints = [
        Joint(f"j{k}", "revolute", names[k], names[k + 1], at(float(k > 0), rotation=turned(k)), unit(1, 2, 3))
        for k in range(links)
    ]
    joints.append(Joint("weld", "fixed", names[-1], "load", at(1.0)))
    return Model(Mechanism("arm", "base", tuple(parts), tuple(joints)))


def operations(links, modes, function):
    equations = serial_arm(links, modes).equations
    shapes = [(equations.nq,), (equations.nv,), (equations.nv,)]
    return Routine(getattr(equations, function), shapes, function).operations


@pytest.mark.parametrize("function", ["forward_dynamics", "inverse_dynamics"])
def test_operations_are_linear_in_the_links(function):
    """Every further link costs the same; more modes cost less than in proportion."""
    counts = [operations(links, ModeCounts(bend_y=1), function) for links in (2, 3, 4)]
    assert counts[2] - counts[1] == counts[1] - counts[0]
    more = [operations(links, ModeCounts(bend_y=2), function) for links in (2, 3)]
    assert counts[1] - counts[0] < more[1] - more[0] < 1.5 * (counts[1] - counts[0])


def test_the_base_of_an_elastic_arm_carries_its_weight_and_moves_its_momentum():
    """The wrench in the first joint beside the rate of the momentum of all bodies along the motion."""
    rig = load_rig(FOLDER / "elastic" / "two_link_arm.yaml")
    model, random = rig.plant.model, np.random.default_rng(3)
    equations, step = model.equations, 1e-7  # modes accelerate fast
    q, (v, tau) = 0.1 * model.random_configuration(random), random.uniform(-1, 1, (2, model.nv))
    a = equations.forward_dynamics(q, v, tau)
    ahead, behind = (
        equations.centroidal_momentum(equations.integrate(q, v * s + a * s * s / 2), v + a * s) for s in (step, -step)
    )
    rate, center = (ahead - behind) / (2 * step), equations.center_of_mass(q)
    force = rate[:3] - sum(body.mass for body in equations.tree.bodies) * model.gravity
    moment = rate[3:] + np.cross(center, force)
    (root,) = [k for k, parent in enumerate(equations.tree.parents) if parent < 0]
    mount, found = equations.tree.bodies[root], equations.joint_wrenches(q, v, tau)[root]
    on_ground = mount.rotation @ found[:3], mount.rotation @ found[3:]
    assert error(on_ground[0], force) < 1e-7
    assert error(on_ground[1] + np.cross(mount.position, on_ground[0]), moment) < 1e-7
