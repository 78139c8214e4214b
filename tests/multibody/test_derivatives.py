"""Exact derivatives of the dynamics against central differences and against Pinocchio."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cosim import Rig, load_rig
from cosim.bench.peers import Pinocchio
from cosim.errors import CompileError
from cosim.multibody import Model, derivatives
from tests.kit.levels import full, one_of_each
from tests.kit.samples import FOLDER
from tests.oracle.conftest import ROBOTS

UR5 = FOLDER / "robots" / "ur5.urdf"
MECHANISMS = ("arm_on_moving_base", "floating_chain", "four_bar", "flyball_governor", "solar_array_free", "car_axis")


def model_of(name: str) -> Model:
    return (
        Model.from_urdf(UR5)
        if name == "ur5"
        else load_rig(FOLDER / "mechanisms" / f"{name}.yaml").tick_model.plant.model
    )


def differences(model: Model, function: str, q, v, x, t) -> list[np.ndarray]:
    """∂/∂q, ∂/∂v and ∂/∂x of a function (nv,) of (q, v, x)."""
    evaluate = getattr(model, function)
    found = []
    for k in range(3):
        columns = []
        for unit in np.eye(model.nv) * 1e-6:
            ends = []
            for d in (-unit, unit):
                moved = [q, v, x]
                moved[k] = model.integrate(q, d) if k == 0 else moved[k] + d
                ends.append(np.array(evaluate(*moved, *t)))
            columns.append((ends[1] - ends[0]) / 2e-6)
        found.append(np.column_stack(columns))
    return found


@one_of_each
@pytest.mark.parametrize("name", ["ur5", *MECHANISMS])
@pytest.mark.parametrize("function", ["forward_dynamics", "inverse_dynamics"])
def test_derivatives_are_central_differences(name: str, function: str) -> None:
    model, rng = model_of(name), np.random.default_rng(0)
    q = model.integrate(model.neutral(), 0.3 * rng.normal(size=model.nv))
    v, x = rng.normal(size=(2, model.nv))
    t = [np.array(0.2)] if model.equations.timed else []
    expected = differences(model, function, q, v, x, t)
    found = getattr(model, f"{function}_derivatives")(q, v, x, *t)
    rounding = 5e-9 * np.abs(getattr(model, function)(q, v, x, *t)).max()  # of the differences, at stiff springs
    for ours, theirs in zip(found, expected, strict=True):
        scale = max(1.0, np.abs(theirs).max())
        np.testing.assert_allclose(ours, theirs, atol=2e-6 * scale + rounding)


@pytest.mark.parametrize("name", ["ur_description/urdf/ur5_robot.urdf", "talos_data/robots/talos_reduced.urdf"])
def test_derivatives_are_those_of_pinocchio(name: str) -> None:
    import pinocchio

    path = Path(ROBOTS) / name
    model = Model.from_urdf(path)
    peer = Pinocchio(pinocchio, pinocchio.buildModelFromUrdf(str(path)), model)
    q, v, tau = np.random.default_rng(1).uniform(-0.5, 0.5, (3, model.nv))
    P = peer.spread
    pinocchio.computeABADerivatives(peer.model, peer.data, *peer.full(q, v, tau))
    expected = [P.T @ matrix @ P for matrix in (peer.data.ddq_dq, peer.data.ddq_dv, peer.data.Minv)]
    for ours, theirs in zip(model.forward_dynamics_derivatives(q, v, tau), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9 * np.abs(theirs).max())
    pinocchio.computeRNEADerivatives(peer.model, peer.data, *peer.full(q, v, tau))
    upper = np.triu(peer.data.M)
    mass = upper + np.triu(upper, 1).T
    expected = [P.T @ matrix @ P for matrix in (peer.data.dtau_dq, peer.data.dtau_dv, mass)]
    for ours, theirs in zip(model.inverse_dynamics_derivatives(q, v, tau), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9 * np.abs(theirs).max())


def state_of(model: Model, seed: int = 0):
    """(q, v, x, y, t), the last one only where the model depends on it."""
    rng = np.random.default_rng(seed)
    q = model.integrate(model.neutral(), 0.3 * rng.normal(size=model.nv))
    return q, *rng.normal(size=(3, model.nv)), [np.array(0.2)] if model.equations.timed else []


def by_difference(evaluate, model: Model, arguments, k: int) -> np.ndarray:
    """∂/∂(argument k) by central differences, the first argument along the velocities of the dofs."""
    columns = []
    for unit in np.eye(np.size(arguments[k]) if k else model.nv) * 1e-6:
        ends = []
        for d in (-unit, unit):
            moved = list(arguments)
            moved[k] = model.integrate(moved[0], d) if k == 0 else moved[k] + d
            ends.append(np.array(evaluate(*moved)))
        columns.append((ends[1] - ends[0]) / 2e-6)
    return np.column_stack(columns)


def assert_close(ours: np.ndarray, theirs: np.ndarray, value: np.ndarray) -> None:
    scale = max(1.0, np.abs(theirs).max(initial=0.0))
    np.testing.assert_allclose(ours, theirs, atol=2e-6 * scale + 5e-9 * np.abs(value).max(initial=0.0))


@one_of_each
@pytest.mark.parametrize("name", ["ur5", *MECHANISMS])
@pytest.mark.parametrize("seed", [0, 1])
def test_derivatives_of_hybrid_dynamics_are_central_differences(name: str, seed: int) -> None:
    model = model_of(name)
    q, v, qdd, tau, t = state_of(model, seed)
    prescribed = np.zeros(model.nv, dtype=bool)
    prescribed[seed::3] = not model.constraint_rows or model.nv > 6  # else the mechanism would be locked

    def unknown(q, v, x):
        found = model.hybrid_dynamics(q, v, x, x, prescribed, *t)
        return np.where(prescribed, found[1], found[0])

    given = np.where(prescribed, qdd, tau)
    found = model.hybrid_dynamics_derivatives(q, v, qdd, tau, prescribed, *t)
    for k, ours in enumerate(found):
        assert_close(ours, by_difference(unknown, model, (q, v, given), k), unknown(q, v, given))


@pytest.mark.parametrize("name", ["four_bar", "flyball_governor", "car_axis"])
def test_derivatives_of_reactions_are_central_differences(name: str) -> None:
    model = model_of(name)
    q, v, tau, _, t = state_of(model)
    found = model.reactions_derivatives(q, v, tau, *t)
    for k, ours in enumerate(found):
        assert ours.shape == (len(model.constraint_rows), model.nv)
        evaluate = lambda q, v, tau: model.reactions(q, v, tau, *t)  # noqa: E731
        assert_close(ours, by_difference(evaluate, model, (q, v, tau), k), evaluate(q, v, tau))


@pytest.mark.parametrize("name", ["ur5", *MECHANISMS])
def test_the_inverse_dynamics_is_linear_in_the_inertial_parameters(name: str) -> None:
    model = model_of(name)
    q, v, qdd, _, t = state_of(model)
    regressor = model.inverse_dynamics_regressor(q, v, qdd, *t)
    pi = model.inertial_parameters.ravel()
    assert regressor.shape == (model.nv, pi.size)
    massless = model.equations.with_inertias(np.zeros(pi.size)).inverse_dynamics(q, v, qdd, *t)
    np.testing.assert_allclose(
        regressor @ pi + massless, model.inverse_dynamics(q, v, qdd, *t), atol=1e-11 * max(1.0, np.abs(regressor).max())
    )


@pytest.mark.parametrize("name", ["ur5", *MECHANISMS])
def test_derivatives_of_accelerations_by_inertia_are_central_differences(name: str) -> None:
    model = model_of(name)
    q, v, tau, _, t = state_of(model)
    found, pi = model.forward_dynamics_regressor(q, v, tau, *t), model.inertial_parameters.ravel()
    value = model.forward_dynamics(q, v, tau, *t)
    for k, unit in enumerate(np.eye(pi.size)):
        step = 1e-5 * max(abs(pi[k]), 1e-3)
        ends = [
            model.equations.with_inertias(pi + side * step * unit).forward_dynamics(q, v, tau, *t) for side in (-1, 1)
        ]
        scale = max(1.0, np.abs(found).max())
        rounding = 1e-12 * np.abs(value).max() / step
        np.testing.assert_allclose(found[:, k], (ends[1] - ends[0]) / (2 * step), atol=1e-6 * scale + rounding)


def test_the_regressor_is_that_of_pinocchio() -> None:
    import pinocchio

    path = Path(ROBOTS) / "ur_description/urdf/ur5_robot.urdf"
    model = Model.from_urdf(path)
    peer = Pinocchio(pinocchio, pinocchio.buildModelFromUrdf(str(path)), model)
    q, v, qdd = np.random.default_rng(1).uniform(-0.5, 0.5, (3, model.nv))
    theirs = pinocchio.computeJointTorqueRegressor(peer.model, peer.data, *peer.full(q, v, qdd))
    order = [0, 1, 2, 3, 4, 6, 9, 5, 7, 8]  # theirs: m, m c, Ixx, Ixy, Iyy, Ixz, Iyz, Izz
    expected = np.hstack([theirs[:, 10 * k : 10 * k + 10][:, order] for k in range(model.nv)])
    np.testing.assert_allclose(model.inverse_dynamics_regressor(q, v, qdd), expected, atol=1e-10)
    own = np.concatenate([body.toDynamicParameters()[order] for body in peer.model.inertias[1:]])
    np.testing.assert_allclose(model.inertial_parameters.ravel(), own, atol=1e-12)


@pytest.mark.parametrize("function", ["forward_dynamics", "inverse_dynamics"])
def test_derivatives_in_closed_form_with_mimic_joints(function: str) -> None:
    """Panda has coupled fingers that slide."""
    model = Model.from_urdf(Path(ROBOTS) / "panda_description/urdf/panda.urdf")
    assert model._derivatives._closed_form and not model.equations.v_map.trivial
    q, v, x, _, _ = state_of(model)
    found = getattr(model, f"{function}_derivatives")(q, v, x)
    for ours, theirs in zip(found, differences(model, function, q, v, x, []), strict=True):
        assert_close(ours, theirs, getattr(model, function)(q, v, x))


@full
def test_closed_form_and_sweep_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a chain of rotational, linear and screw joints."""
    kinds = ["revolute", "prismatic", "screw"] * 3
    bodies = [
        {"name": f"b{k}", "type": kind, "axis": [[1, 0, 0], [0, 1, 0], [1, 2, 2]][k % 3], "mass": 1.0 + k,
         "origin": {"xyz": [0.1, 0.2, -0.3], "rpy": [0.1 * k, 0.2, 0.3]}, "com": [0.1, -0.2, 0.05 * k],
         "inertia": [0.3, 0.4, 0.5, 0.01, 0.02, 0.03], **({"pitch": 0.1} if kind == "screw" else {})}
        for k, kind in enumerate(kinds)
    ]  # fmt: skip
    data = {"mechanism": {"bodies": bodies}, "schedule": {"duration": 1}}
    state = np.random.default_rng(5).normal(size=(3, 9))
    closed = Rig.from_dict(data).tick_model.plant.model
    assert closed._derivatives._closed_form
    monkeypatch.setattr(derivatives, "CLOSED_FORM_FROM", 99)
    swept = Rig.from_dict(data).tick_model.plant.model
    for function in ("forward_dynamics_derivatives", "inverse_dynamics_derivatives"):
        for ours, theirs in zip(getattr(closed, function)(*state), getattr(swept, function)(*state), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-11 * np.abs(theirs).max())


def test_batches_and_given_arrays() -> None:
    model, rng = Model.from_urdf(UR5), np.random.default_rng(2)
    q, v, tau = rng.normal(size=(3, 5, 6))
    by_q, by_v, by_tau = model.forward_dynamics_derivatives(q, v, tau)
    assert by_q.shape == by_v.shape == by_tau.shape == (5, 6, 6)
    out = tuple(np.empty((6, 6)) for _ in range(3))
    model.forward_dynamics_derivatives(q[2], v[2], tau[2], out=out)
    np.testing.assert_allclose(out[0], by_q[2], rtol=1e-12, atol=1e-12)


def test_of_many_dofs_there_are_none() -> None:
    rod = {"axis": [0, 1, 0], "origin": {"xyz": [0, 0, -1]}, "mass": 1, "com": [0, 0, -0.5], "inertia": [0.1, 0.1, 0.1]}
    bodies = [{"name": f"rod_{k}", **rod} for k in range(65)]
    model = Rig.from_dict({"mechanism": {"bodies": bodies}, "schedule": {"duration": 1}}).tick_model.plant.model
    with pytest.raises(CompileError, match=r"^the derivatives of 65 dofs would be too long; a mechanism may have 64$"):
        model.forward_dynamics_derivatives(*np.zeros((3, 65)))
