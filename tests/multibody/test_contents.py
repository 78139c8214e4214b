"""Every function of a model contains the same mechanism: springs in joints and between bodies, laws, elastic links,
rotors, loops. The effort of the springs in joints is computed here, from the joints alone."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from cosim.core.compile import ArrayPort, compile
from cosim.core.errors import InputErrors
from cosim.mechanics.formulations import load_formulation
from cosim.mechanics.multibody import Model
from tests.formulations.mechanisms import MECHANISMS, random_state, sprung, tree

STEP = 1e-5  # of differences
SPRUNG = {
    **MECHANISMS,
    "chain": lambda random: tree(("revolute", "prismatic") * 4, random, [-1, 0, 1, 2, 1, 4, 5, 0]),
}


@cache
def models(name: str) -> tuple[Model, Model]:
    """(with springs in joints, without), both with rotors."""
    random = np.random.default_rng(5)
    plain, gravity = SPRUNG[name](random), (1.0, -2.0, -9.0)
    with_springs, without = (Model(m, gravity) for m in (sprung(plain, random), plain))
    rotors = random.uniform(0.1, 0.5, without.nv)
    return with_springs.with_rotor_inertia(rotors), without.with_rotor_inertia(rotors)


def states(model: Model, count: int = 2):
    """(q, v, tau or accelerations, *t)"""
    random = np.random.default_rng(6)
    for _ in range(count):
        q, v, tau, t = random_state(model.equations, random)
        yield q, v, tau, *([t] if model.timed else [])


def springs_of(model: Model, q: np.ndarray) -> np.ndarray:
    """(nv,) effort that holds the springs in the joints, mimics with their leader."""
    chart = dict(zip(model.dof_names, model.chart(q), strict=True))
    effort = dict.fromkeys(model.dof_names, 0.0)
    for joint in model.equations.tree.joints:
        if joint.mimic is not None:
            leader, factor = joint.mimic.joint, joint.mimic.multiplier
            position = factor * chart[leader] + joint.mimic.offset
            effort[leader] += factor * joint.stiffness * (position - joint.rest)
        elif joint.stiffness:
            for name in (n for n in effort if n == joint.name or n.startswith(joint.name + ".")):
                effort[name] += joint.stiffness * (chart[name] - joint.rest)
    return np.array(list(effort.values()))


def close(found, expected, tolerance=1e-10):
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    assert np.abs(found - expected).max() < tolerance * max(1.0, np.abs(expected).max())


def slope(function: Callable[[float], float]) -> float:
    """The derivative at 0, by central differences of two steps (Richardson)."""
    wide, narrow = ((function(h) - function(-h)) / (2 * h) for h in (STEP, 0.5 * STEP))
    return (4.0 * narrow - wide) / 3.0


def has_springs(name: str) -> bool:
    return models(name)[0].equations.constraints.joint_springs is not None


SLOW = "every joint", "elastic loop"  # derivatives
WITH_SPRINGS = [name for name in SPRUNG if has_springs(name)]


@pytest.mark.parametrize("name", WITH_SPRINGS)
def test_forward_and_inverse_dynamics_contain_the_springs(name):
    model, plain = models(name)
    for q, v, x, *t in states(model):
        held = springs_of(model, q)
        assert np.abs(held).max() > 0.1
        close(model.forward_dynamics(q, v, x, *t), plain.forward_dynamics(q, v, x - held, *t))
        close(model.inverse_dynamics(q, v, x, *t), plain.inverse_dynamics(q, v, x, *t) + held)
        close(model.nonlinear_effects(q, v, *t), plain.nonlinear_effects(q, v, *t) + held)
        close(model.gravity_effort(q, *t), plain.gravity_effort(q, *t))
        close(model.inertia_effort(q, x), plain.inertia_effort(q, x))
        close(model.inverse_dynamics_regressor(q, v, x, *t), plain.inverse_dynamics_regressor(q, v, x, *t))
        if model.constraint_rows:
            close(model.reactions(q, v, x, *t), plain.reactions(q, v, x - held, *t))
        else:
            close(model.inverse_dynamics(q, v, model.forward_dynamics(q, v, x, *t), *t), x)


@pytest.mark.parametrize("name", WITH_SPRINGS)
def test_hybrid_dynamics_contains_the_springs(name):
    model, _ = models(name)
    for q, v, tau, *t in states(model, 1):
        a = model.forward_dynamics(q, v, tau, *t)
        prescribed = np.arange(model.nv) % 2 == 0
        # with loops the reactions may share the load otherwise, so accelerations are what is compared
        given, effort = model.hybrid_dynamics(q, v, a, tau, prescribed, *t)
        close(given, a, 1e-8)
        close(model.forward_dynamics(q, v, effort, *t), a, 1e-8)


@pytest.mark.parametrize("name", [name for name in WITH_SPRINGS if name not in SLOW])
def test_derivatives_contain_the_springs(name):
    model, _ = models(name)
    for q, v, x, *t in states(model, 1):
        for function in ("forward_dynamics", "inverse_dynamics"):
            by_position, by_velocity, _ = getattr(model, f"{function}_derivatives")(q, v, x, *t)
            f = getattr(model, function)
            pairs = [(f(model.integrate(q, d), v, x, *t), f(model.integrate(q, -d), v, x, *t)) for d in steps(model)]
            close(by_position, np.transpose([(a - b) / (2 * STEP) for a, b in pairs]), 1e-6)
            pairs = [(f(q, v + d, x, *t), f(q, v - d, x, *t)) for d in steps(model)]
            close(by_velocity, np.transpose([(a - b) / (2 * STEP) for a, b in pairs]), 1e-6)


def steps(model: Model) -> np.ndarray:
    return STEP * np.eye(model.nv)


@pytest.mark.parametrize("name", [name for name in SPRUNG if name != "every joint"])  # its base moves by itself
def test_the_mechanical_energy_changes_by_the_power_of_the_efforts(name):
    """Less what dampers take, and with the power of force laws; constraints that hold and do not move do no work."""
    model, _ = models(name)
    equations = model.equations
    for q, v, tau, *t in states(model):
        if model.constraint_rows:  # a velocity that the constraints allow
            jacobian = model.constraint_jacobian(q, *t)
            v = v - np.linalg.pinv(jacobian) @ (jacobian @ v)
        a = model.forward_dynamics(q, v, tau, *t)

        def energy(s: float, q=q, v=v, a=a, t=t) -> float:
            return model.mechanical_energy(model.integrate(q, s * v), v + s * a, *t)

        power = v @ tau - equations.damper_loss(q, v, *t) + sum(equations.force_powers(q, v, *t).values())
        close(slope(energy), power, 1e-6)


@pytest.mark.parametrize("name", WITH_SPRINGS)
def test_the_elastic_energy_is_that_of_the_springs(name):
    """Its change from the mechanism without springs in joints is the work against them."""
    model, plain = models(name)
    for q, v, _, *t in states(model, 1):

        def energy(s: float, q=q, v=v, t=t) -> float:
            at = model.integrate(q, s * v)
            return model.elastic_energy(at, *t) - plain.elastic_energy(at, *t)

        close(slope(energy), v @ springs_of(model, q), 1e-7)
        stored = model.elastic_energy(q, *t) - plain.elastic_energy(q, *t)
        close(model.potential_energy(q, *t) - plain.potential_energy(q, *t), stored)
        close(model.equations.gravity_energy(q, *t), plain.equations.gravity_energy(q, *t))


def test_springs_in_joints_that_turn_freely_are_refused(said):
    """Their positions are rotations, along which a spring would not conserve energy."""
    for kind in ("spherical", "free"):
        mechanism = tree((kind,), np.random.default_rng(0), j0={"stiffness": 2.0})
        with pytest.raises(InputErrors) as refused:
            Model(mechanism)
        said(refused.value)


@pytest.mark.parametrize(
    "parents", [[k - 1 for k in range(48)], [k - 1 if k % 2 else -1 for k in range(48)]], ids=["chain", "copies"]
)
def test_springs_of_many_bodies(parents):
    """Sweeps over them are loops in machine code; `copies`: of small trees on the ground."""
    random = np.random.default_rng(9)
    plain = tree(("revolute",) * 48, random, parents)
    model, without = Model(sprung(plain, random)), Model(plain)
    assert model.equations.rolled
    for q, v, tau in states(model, 1):
        held = springs_of(model, q)
        close(model.forward_dynamics(q, v, tau), without.forward_dynamics(q, v, tau - held))
        close(model.inverse_dynamics(q, v, tau), without.inverse_dynamics(q, v, tau) + held)
        cartesian = load_formulation("cartesian", model.equations)
        ports = [ArrayPort(name, (model.nv,)) for name in ("q", "v", "tau")]
        code = compile(cartesian.forward_dynamics, ports, "cartesian")
        close(code(q, v, tau), model.forward_dynamics(q, v, tau), 1e-7)
