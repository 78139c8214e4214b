"""Derivatives, regressors, random configurations and inverse kinematics of mechanisms with elastic links."""

import numpy as np

from cosim import InputError
from cosim.mechanics.multibody.derivatives import DynamicsDerivatives
from cosim.mechanics.multibody.elastic.beam import ModeCounts
from tests.kit.refusals import raised
from tests.multibody.elastic.beams import chain, floating_loop, is_mode, model_of, moved_by, random_state


def differences(model, function, q, v, x, step=1e-6):
    """∂/∂q along the dofs, ∂/∂v and ∂/∂x of a function of them, (n, nv) each, by central differences."""
    units = step * np.eye(model.nv)

    def columns(at):
        return np.transpose([(at(unit) - at(-unit)) / (2.0 * step) for unit in units])

    return (
        columns(lambda d: function(moved_by(model, q, d), v, x)),
        columns(lambda d: function(q, v + d, x)),
        columns(lambda d: function(q, v, x + d)),
    )


def close(found, expected, error=1e-6):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0.0, atol=error * max(1.0, np.abs(other).max()))


FEW = ModeCounts(1, 0, 0, 1)


def test_derivatives_of_a_tree():
    model = model_of(chain, FEW)
    e, n = model.equations, model.nv
    derivatives = DynamicsDerivatives(e, model.nq, n)
    q, v, tau = random_state(model)
    v = 0.3 * v
    qdd = np.asarray(e.forward_dynamics(q, v, tau), dtype=float)
    inverse = derivatives.inverse_dynamics_derivatives(q, v, qdd)
    close(inverse, differences(model, e.inverse_dynamics, q, v, qdd))
    forward = derivatives.forward_dynamics_derivatives(q, v, tau)
    close(forward, differences(model, e.forward_dynamics, q, v, tau))
    prescribed = np.arange(n) % 3 == 0
    x = np.where(prescribed, qdd, tau)

    def unknown(q, v, x):
        accelerations, efforts = e.hybrid_dynamics(q, v, x * prescribed, x * ~prescribed, prescribed)
        return np.where(prescribed, efforts, accelerations)

    hybrid = derivatives.hybrid_dynamics_derivatives(q, v, qdd, tau, prescribed)
    close(hybrid, differences(model, unknown, q, v, x))


def test_derivatives_with_a_loop():
    model = model_of(floating_loop, FEW)
    derivatives = DynamicsDerivatives(model.equations, model.nq, model.nv)
    q, v, tau = random_state(model)
    v = 0.3 * v
    found = derivatives.forward_dynamics_derivatives(q, v, tau)
    close(found, differences(model, model.equations.forward_dynamics, q, v, tau), 1e-5)


def test_regressors():
    """Rigid bodies alone: elastic links have constants."""
    model = model_of(chain)
    e = model.equations
    q, v, qdd = random_state(model)
    parameters = model.inertial_parameters
    elastic = [joint.name.endswith("@modes") for joint in e.tree.joints]
    assert sum(elastic) == 2
    np.testing.assert_allclose(parameters[elastic, 0], [1.2 * 1.2, 0.7 * 0.8], rtol=1e-9)
    np.testing.assert_allclose(parameters[elastic, 1], [1.2 * 0.72, 0.7 * 0.32], rtol=1e-9)
    derivatives = DynamicsDerivatives(e, model.nq, model.nv)
    Y = derivatives.inverse_dynamics_regressor(q, v, qdd).reshape(model.nv, -1, 10)
    np.testing.assert_array_equal(Y[:, elastic], 0.0)
    changed = parameters * np.random.default_rng(1).uniform(0.5, 1.5, parameters.shape)
    effort = e.with_inertias(changed.ravel()).inverse_dynamics(q, v, qdd) - e.inverse_dynamics(q, v, qdd)
    expected = np.tensordot(Y, changed - parameters, 2)
    np.testing.assert_allclose(np.asarray(effort, dtype=float), expected, atol=1e-9 * np.abs(expected).max())
    assert np.abs(expected).max() > 0.1


def test_the_regressor_of_a_link(said):
    model = model_of(chain)
    q, v, qdd = random_state(model)
    said(raised(InputError, model.link_regressor, q, v, qdd, "b"))
    Y = np.asarray(model.link_regressor(q, v, qdd, "c"))
    assert Y.shape == (model.nv, 10)
    step = 0.1
    place = next(k for k, joint in enumerate(model.equations.tree.joints) if joint.child == "c")
    changed = model.inertial_parameters.copy()
    changed[place, 0] += step
    difference = model.equations.with_inertias(changed.ravel()).inverse_dynamics(q, v, qdd)
    difference = (difference - model.equations.inverse_dynamics(q, v, qdd)) / step
    np.testing.assert_allclose(Y[:, 0], np.asarray(difference, dtype=float), atol=1e-8 * np.abs(Y).max())


def test_random_configurations_bend_little():
    model = model_of(chain)
    modes = np.array([is_mode(name) for name in model.dof_names])
    states = np.array([model.random_configuration(np.random.default_rng(seed)) for seed in range(20)])
    assert 0.005 < np.abs(states[:, modes]).max() <= 0.01
    assert np.abs(states[:, ~modes]).max() > 0.5


def test_inverse_kinematics_does_not_bend():
    model = model_of(chain)
    modes = np.array([is_mode(name) for name in model.dof_names])
    goal = model.frame_pose(np.where(modes, 0.0, 0.4), "c")[:3, 3]
    found = model.inverse_kinematics("c", goal)
    assert found.reached
    np.testing.assert_array_equal(found.q[modes], 0.0)
