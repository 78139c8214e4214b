"""Exact derivatives of the dynamics against central differences and against Pinocchio."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cosim import Rig, load_rig
from cosim.bench.peers import Pinocchio
from cosim.errors import CompileError
from cosim.multibody import Model
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
