"""The sweeps with rows of contacts against dense matrices."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cosim import load_rig
from cosim.core.compile import ArrayPort, compile
from cosim.mechanics.multibody.contact.shapes import BallShape, BoxShape, ContactLaw, HalfSpace
from cosim.mechanics.multibody.contact_dynamics import (
    ContactDynamics,
    GivenMotionAndEffort,
    MotionState,
    contact_efforts,
)
from cosim.mechanics.multibody.mechanism import Contact, pose_of
from cosim.mechanics.multibody.model import Model

RIGS = Path(__file__).parents[2] / "rigs"
LAW = ContactLaw(0.5, 0.5)
# mechanism -> links that touch, shapes and what they touch (None: the ground)
TREES = {
    "ur5_sim": [("wrist_3_link", BallShape(0.05), None), ("forearm_link", BoxShape((0.1, 0.2, 0.3)), None)],
    "mechanisms/floating_chain": [(0, BallShape(0.1), None), (-1, BallShape(0.1), 0)],
    "mechanisms/four_bar": [(-1, BallShape(0.1), None), (0, BoxShape((0.1, 0.2, 0.3)), None)],
    "mechanisms/parallelogram": [(-1, BallShape(0.0), None)],
    "mechanisms/suspension": [(-1, BallShape(0.1), None), (0, BallShape(0.1), -1)],
    "mechanisms/slider_crank": [(-1, BoxShape((0.1, 0.2, 0.3)), None)],
    "mechanisms/coupled_wrist": [(-1, BallShape(0.1), None), (0, BoxShape((0.1, 0.2, 0.3)), None)],
    "elastic/two_link_arm": [(-1, BallShape(0.1), None)],
}


def model_of(rig):
    plant = load_rig(RIGS / f"{rig}.yaml").plant
    mechanism, start = plant.mechanism, plant.start
    moving = [joint.child for joint in mechanism.joints if joint.kind != "fixed"]
    contacts, ends = [], []
    for k, (link, shape, other) in enumerate(TREES[rig]):
        first = moving[link] if isinstance(link, int) else link
        second = mechanism.root if other is None else moving[other]
        at = pose_of((0.1, -0.2, 0.3), (0.3, 0.2, -0.4)), pose_of((0.0, 0.1, -0.5), (0.1, -0.2, 0.3))
        ends.append((first, second))
        contacts.append(Contact(f"c{k}", ((first, at[0]), (second, at[1])), (shape, HalfSpace()), LAW))
    model = Model(replace(mechanism, contacts=tuple(contacts)))
    return model.without(start.redundant, start.inexact), ends, start.q


def dense_rows(model, ends, q, points):
    """G (3 k, nv) by the Jacobians of the links."""
    rows, contacts, e = [], model.equations.constraints.contacts, model.equations
    if e.constraints.elastic:  # a shape moves with the place on the link where it is attached
        moved = [e.placements(e.q_map.positions(q), e.v_map.expand(unit), 0.0)[1] for unit in np.eye(model.nv)]
        return np.array([contacts.rates(placed, points) for placed in moved], float).T
    each = [pair for pair, contact in zip(ends, contacts.members, strict=True) for _ in range(contact.points)]
    for (first, second), point in zip(each, points, strict=True):
        jacobians = []
        for link in (first, second):
            pose, jacobian = model.frame_pose(q, link), model.frame_jacobian(q, link)
            reach = np.asarray(point.position, float) - pose[:3, 3]
            across = np.array([[0, -reach[2], reach[1]], [reach[2], 0, -reach[0]], [-reach[1], reach[0], 0]])
            jacobians.append(jacobian[:3] - across @ jacobian[3:])
        rows.append(np.asarray(point.axes, float) @ (jacobians[0] - jacobians[1]))
    return np.concatenate(rows)


def consistent_state(model, start, rng):
    """A state in which loops are closed and move without violating a constraint."""
    v = rng.normal(size=model.nv)
    if not model.constraint_rows:
        return np.asarray(model.random_configuration(rng)), v
    none = np.zeros(model.nv, dtype=bool)
    q = model.equations.integrate(start, rng.normal(size=model.nv) * 0.02)
    for _ in range(20):
        q, v = model.equations.project_onto_constraints(q, v, none)
    return np.asarray(q, float), np.asarray(v, float)


@pytest.mark.parametrize("which", ["free", "some prescribed", "all prescribed"])
@pytest.mark.parametrize("rig", TREES)
def test_the_rows_of_contacts_are_as_with_dense_matrices(rig, which):
    model, ends, start = model_of(rig)
    rng = np.random.default_rng(3)
    q, v = consistent_state(model, start, rng)
    nv, e = model.nv, model.equations
    prescribed = {"free": np.zeros(nv, bool), "all prescribed": np.ones(nv, bool)}.get(which, np.arange(nv) % 3 == 1)
    if model.constraint_rows and which != "free":
        pytest.skip("a prescribed joint of a closed loop prescribes others")
    qdd, tau = np.where(prescribed, rng.normal(size=nv), 0.0), rng.normal(size=nv)
    given = GivenMotionAndEffort(qdd, tau, prescribed)
    found = ContactDynamics.of(e, MotionState(0.0, q, v), given)
    G = dense_rows(model, ends, q, found.points)
    M = np.asarray(model.mass_matrix(q), float)
    free = np.flatnonzero(~prescribed)
    W = np.zeros((nv, nv))
    W[np.ix_(free, free)] = np.linalg.inv(M[np.ix_(free, free)])
    if model.constraint_rows:
        C = np.asarray(e.constraint_jacobian(q), float)
        W = W - W @ C.T @ np.linalg.pinv(C @ W @ C.T, rcond=1e-10) @ C @ W
    expected = G @ W @ G.T
    scale = max(np.abs(expected).max(), 1e-3)
    # of the elastic arm, whose M has a condition of 1e5, one rounding of M moves W by 1e-12
    assert np.abs(np.asarray(found.inertia, float) - expected).max() < 1e-12 * scale
    smooth = np.asarray(e.hybrid_dynamics(q, v, qdd, tau, prescribed)[0], float)
    standing = smooth - np.where(prescribed, 0.0, np.asarray(e.transport(v), float))
    change = np.asarray(found.free_change, float)
    assert np.abs(change - G @ standing).max() < 1e-12 * max(np.abs(change).max(), 1.0)
    forces = rng.normal(size=len(G))
    with_forces, effort = (np.asarray(x, float) for x in found.motion(forces)[:2])
    assert np.abs(with_forces - (smooth + W @ G.T @ forces)).max() < 1e-12 * max(np.abs(with_forces).max(), 1.0)
    needed = M @ with_forces + np.asarray(e.nonlinear_effects(q, v), float) - G.T @ forces
    if not model.constraint_rows:
        assert np.abs(effort - np.where(prescribed, needed, tau)).max() < 1e-11 * max(np.abs(needed).max(), 1.0)
    efforts = np.asarray(contact_efforts(e, q, forces), float)
    assert np.abs(efforts - G.T @ forces).max() < 1e-12 * max(np.abs(efforts).max(), 1.0)


@pytest.mark.parametrize("rig", ["ur5_sim", "mechanisms/floating_chain", "mechanisms/four_bar"])
def test_compiled_rows_equal_the_interpreted_ones(rig):
    model, _, start = model_of(rig)
    q, v = consistent_state(model, start, np.random.default_rng(4))
    k = len(model.equations.constraints.contacts.of_points)

    def fn(q, v):
        nothing = np.zeros(model.nv)
        given = GivenMotionAndEffort(nothing, nothing, np.zeros(model.nv, dtype=bool))
        found = ContactDynamics.of(model.equations, MotionState(0.0, q, v), given)
        return found.inertia.reshape(-1), found.free_change

    compiled = compile(fn, [ArrayPort("q", (model.nq,)), ArrayPort("v", (model.nv,))], "rows")
    for a, b in zip(compiled(q, v), fn(q, v), strict=True):
        b = np.asarray(b, float)
        assert np.abs(a - b).max() < 1e-12 * max(np.abs(b).max(), 1.0)
    assert len(b) == 3 * k
