"""Exact derivatives of the dynamics against central differences and against Pinocchio."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from benchmarks.peers import Pinocchio
from cosim import Rig, load_rig
from cosim.core.errors import CompileError, InputError
from cosim.mechanics.multibody import Model, derivatives
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Pose
from tests.kit.messages import Said
from tests.kit.refusals import raised
from tests.kit.samples import FOLDER
from tests.oracle.conftest import ROBOTS

UR5 = FOLDER / "robots" / "ur5.urdf"
PEER_UR5 = "ur_description/urdf/ur5_robot.urdf"
MECHANISMS = ("arm_on_moving_base", "floating_chain", "four_bar", "flyball_governor", "solar_array_free", "car_axis")


@cache
def model_of(name: str) -> Model:
    """Its functions are compiled once for all tests."""
    if name == "ur5":
        return Model.from_urdf(UR5)
    if name.endswith(".urdf"):
        return Model.from_urdf(ROBOTS / name)
    return load_rig(FOLDER / "mechanisms" / f"{name}.yaml").tick_model.plant.model


def peer_of(name: str) -> tuple[Model, Pinocchio]:
    import pinocchio

    model = model_of(name)
    return model, Pinocchio(pinocchio, pinocchio.buildModelFromUrdf(str(ROBOTS / name)), model)


@pytest.mark.parametrize("name", [PEER_UR5, "solo_description/robots/solo12.urdf"])
def test_derivatives_are_those_of_pinocchio(name: str) -> None:
    import pinocchio

    model, peer = peer_of(name)
    q, v, tau = np.random.default_rng(1).uniform(-0.5, 0.5, (3, model.nv))
    P = peer.spread
    pinocchio.computeABADerivatives(peer.model, peer.data, *peer.full(q, v, tau))
    pinocchio.computeRNEADerivatives(peer.model, peer.data, *peer.full(q, v, tau))
    upper = np.triu(peer.data.M)
    mass = upper + np.triu(upper, 1).T
    forward = peer.data.ddq_dq, peer.data.ddq_dv, peer.data.Minv
    inverse = peer.data.dtau_dq, peer.data.dtau_dv, mass
    for function, matrices in (
        (model.forward_dynamics_derivatives, forward),
        (model.inverse_dynamics_derivatives, inverse),
    ):
        for ours, theirs in zip(function(q, v, tau), [P.T @ matrix @ P for matrix in matrices], strict=True):
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


def assert_differences(derivatives, evaluate, model: Model, arguments) -> None:
    """Of a function of (q, v, x): derivatives by each of them are central differences."""
    value = evaluate(*arguments)
    for k, ours in enumerate(derivatives):
        assert ours.shape == (len(value), model.nv)
        theirs = by_difference(evaluate, model, arguments, k)
        scale = max(1.0, np.abs(theirs).max(initial=0.0))
        np.testing.assert_allclose(ours, theirs, atol=2e-6 * scale + 5e-9 * np.abs(value).max(initial=0.0))


@pytest.mark.parametrize("name", ["ur5", *MECHANISMS])
def test_derivatives_are_central_differences(name: str) -> None:
    """Of both dynamics, and of the hybrid ones with two choices of what is prescribed."""
    model = model_of(name)
    q, v, qdd, tau, t = state_of(model)
    for function in ("forward_dynamics", "inverse_dynamics"):
        found = getattr(model, f"{function}_derivatives")(q, v, tau, *t)
        assert_differences(found, lambda *x, f=function: getattr(model, f)(*x, *t), model, (q, v, tau))
    for first in (0, 1):
        prescribed = np.zeros(model.nv, dtype=bool)
        prescribed[first::3] = not model.constraint_rows or model.nv > 6  # else the mechanism would be locked

        def unknown(q, v, x, prescribed=prescribed):
            found = model.hybrid_dynamics(q, v, x, x, prescribed, *t)
            return np.where(prescribed, found[1], found[0])

        found = model.hybrid_dynamics_derivatives(q, v, qdd, tau, prescribed, *t)
        assert_differences(found, unknown, model, (q, v, np.where(prescribed, qdd, tau)))


@pytest.mark.parametrize("name", ["four_bar", "flyball_governor", "car_axis"])
def test_derivatives_of_reactions_are_central_differences(name: str) -> None:
    model = model_of(name)
    q, v, tau, _, t = state_of(model)
    found = model.reactions_derivatives(q, v, tau, *t)
    assert_differences(found, lambda *x: model.reactions(*x, *t), model, (q, v, tau))


@pytest.mark.parametrize("name", ["ur5", *MECHANISMS])
def test_the_dynamics_by_the_inertial_parameters(name: str) -> None:
    """The inverse one is linear in them; derivatives of accelerations are central differences."""
    model = model_of(name)
    q, v, x, _, t = state_of(model)
    with_inertias, pi = model.equations.with_inertias, model.inertial_parameters.ravel()
    regressor = model.inverse_dynamics_regressor(q, v, x, *t)
    assert regressor.shape == (model.nv, pi.size)
    massless = with_inertias(np.zeros(pi.size)).inverse_dynamics(q, v, x, *t)
    expected, size = model.inverse_dynamics(q, v, x, *t), max(1.0, np.abs(regressor).max())
    np.testing.assert_allclose(regressor @ pi + massless, expected, atol=1e-11 * size)
    found, value = model.forward_dynamics_regressor(q, v, x, *t), model.forward_dynamics(q, v, x, *t)
    scale = max(1.0, np.abs(found).max())
    for k in np.random.default_rng(0).permutation(pi.size)[:8]:
        step = 1e-5 * max(abs(pi[k]), 1e-3) * np.eye(pi.size)[k]
        low, high = (with_inertias(pi + side * step).forward_dynamics(q, v, x, *t) for side in (-1, 1))
        rounding = 1e-12 * np.abs(value).max() / step[k]
        np.testing.assert_allclose(found[:, k], (high - low) / (2 * step[k]), atol=1e-6 * scale + rounding)


def test_the_regressor_is_that_of_pinocchio() -> None:
    """Of the whole arm, and of each link."""
    import pinocchio

    model, peer = peer_of(PEER_UR5)
    q, v, qdd = np.random.default_rng(1).uniform(-0.5, 0.5, (3, model.nv))
    theirs = pinocchio.computeJointTorqueRegressor(peer.model, peer.data, *peer.full(q, v, qdd))
    order = [0, 1, 2, 3, 4, 6, 9, 5, 7, 8]  # theirs: m, m c, Ixx, Ixy, Iyy, Ixz, Iyz, Izz
    blocks = [theirs[:, 10 * k : 10 * k + 10][:, order] for k in range(model.nv)]
    np.testing.assert_allclose(model.inverse_dynamics_regressor(q, v, qdd), np.hstack(blocks), atol=1e-10)
    for joint, expected in zip(model.joints, blocks, strict=True):
        np.testing.assert_allclose(model.link_regressor(q, v, qdd, joint.child), expected, atol=1e-10)
    own = np.concatenate([body.toDynamicParameters()[order] for body in peer.model.inertias[1:]])
    np.testing.assert_allclose(model.inertial_parameters.ravel(), own, atol=1e-12)


@pytest.mark.parametrize("link", ["forearm_link", "tool0"])
def test_the_effort_of_a_load_is_linear_in_its_parameters(link: str) -> None:
    """Against a mechanism with the load fixed to it; the frame of a tool is fixed to its link, and turned."""
    model = model_of("ur5")
    mass, com, about_com = 2.5, np.array([0.1, -0.2, 0.3]), np.diag([0.2, 0.3, 0.25])
    about_com[0, 1] = about_com[1, 0] = 0.04
    about = about_com + mass * (com @ com * np.eye(3) - np.outer(com, com))
    parameters = np.array([mass, *(mass * com), *(about[k] for k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))])
    weld, load = Joint("weld", "fixed", link, "load", Pose.identity()), Link("load", Inertial(mass, com, about_com))
    m = model.mechanism
    loaded = Model(replace(m, links=(*m.links, load), joints=(*m.joints, weld)))
    q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, model.nv))
    expected = loaded.inverse_dynamics(q, v, a) - model.inverse_dynamics(q, v, a)
    found = model.link_regressor(q, v, a, link) @ parameters
    np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("link", ["base_link", "tool1"])
def test_links_that_do_not_move_or_exist_are_refused(link: str, said: Said) -> None:
    said(raised(InputError, model_of("ur5").link_regressor, *np.zeros((3, 6)), link))


def test_derivatives_in_closed_form_with_mimic_joints() -> None:
    """Panda has coupled fingers that slide."""
    model = model_of("panda_description/urdf/panda.urdf")
    assert model.code._derivatives._closed_form and not model.equations.v_map.trivial
    q, v, x, _, _ = state_of(model)
    for function in ("forward_dynamics", "inverse_dynamics"):
        found = getattr(model, f"{function}_derivatives")(q, v, x)
        assert_differences(found, getattr(model, function), model, (q, v, x))


def test_closed_form_and_sweep_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a chain of rotational, linear and screw joints."""
    kinds = ["revolute", "prismatic", "screw", "revolute", "prismatic", "screw", "revolute"]
    bodies = [
        {"name": f"b{k}", "type": kind, "axis": [[1, 0, 0], [0, 1, 0], [1, 2, 2]][k % 3], "mass": 1.0 + k,
         "origin": {"xyz": [0.1, 0.2, -0.3], "rpy": [0.1 * k, 0.2, 0.3]}, "com": [0.1, -0.2, 0.05 * k],
         "inertia": [0.3, 0.4, 0.5, 0.01, 0.02, 0.03], **({"pitch": 0.1} if kind == "screw" else {})}
        for k, kind in enumerate(kinds)
    ]  # fmt: skip
    data = {"mechanism": {"bodies": bodies}, "schedule": {"duration": 1}}
    state = np.random.default_rng(5).normal(size=(3, 7))
    closed = Rig.from_dict(data).tick_model.plant.model
    assert closed.code._derivatives._closed_form
    monkeypatch.setattr(derivatives, "CLOSED_FORM_FROM", 99)
    swept = Rig.from_dict(data).tick_model.plant.model
    for function in ("forward_dynamics_derivatives", "inverse_dynamics_derivatives"):
        for ours, theirs in zip(getattr(closed, function)(*state), getattr(swept, function)(*state), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-11 * np.abs(theirs).max())


def test_batches_and_given_arrays() -> None:
    model, rng = model_of("ur5"), np.random.default_rng(2)
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
