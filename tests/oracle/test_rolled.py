"""Loops over bodies give what straight-line code gives, for trees of every kind, up to a thousand bodies."""

import numpy as np
import pinocchio
import pytest

from cosim.compile.rolled_sweeps import MAX_CLASSES, RolledRoutine
from cosim.multibody import Model, equations
from cosim.multibody.mechanism import Inertial, Joint, Link, Mechanism, Pose


def rotation(rng):
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.sign(np.linalg.det(q))


def tree(n, seed, distinct=True, prismatic=True):
    """A random tree of n moving bodies; not distinct: bodies and joints repeat two patterns."""
    rng = np.random.default_rng(seed)
    links, joints = [Link("base")], []
    for k in range(n):
        draw = rng if distinct else np.random.default_rng(k % 2)
        spread = np.abs(draw.normal(size=3)) + 0.5
        inertial = Inertial(draw.uniform(0.5, 2.0), draw.normal(size=3) * 0.1, np.diag(spread) * 1e-2)
        axis = draw.normal(size=3)
        kind = "prismatic" if prismatic and k % 5 == 3 else "revolute"
        parent = links[rng.integers(max(0, k - 3), k + 1)].name
        links.append(Link(f"body{k}", inertial))
        pose = Pose(rotation(draw), draw.normal(size=3) * 0.2)
        joints.append(Joint(f"joint{k}", kind, parent, f"body{k}", pose, axis / np.linalg.norm(axis)))
    return Mechanism("tree", "base", tuple(links), tuple(joints))


def states(model, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, n) for n in (model.nq, model.nv, model.nv, model.nv)]


@pytest.fixture
def small_loops(monkeypatch):
    """Loops already for a few bodies, so that straight-line code can be compared with."""
    monkeypatch.setattr(equations, "ROLLED_FROM", 3)


CASES = {
    "many different bodies": {"n": 20, "seed": 3},
    "two patterns of bodies": {"n": 20, "seed": 4, "distinct": False, "prismatic": False},
    "patterns and sliders": {"n": 11, "seed": 5, "distinct": False},
}


@pytest.mark.parametrize("case", CASES)
def test_loops_agree_with_the_reference_in_numbers(case, small_loops):
    model = Model(tree(**CASES[case]))
    q, v, a, tau = states(model)
    held = np.arange(model.nv) % 3 == 0
    for name, arguments in {
        "forward_dynamics": (q, v, tau),
        "inverse_dynamics": (q, v, a),
        "hybrid_dynamics": (q, v, a, tau, held),
        "inertia_effort": (q, a),
        "kinetic_energy": (q, v),
        "potential_energy": (q,),
    }.items():
        compiled = model.compiled(name)
        got, wanted = compiled(*arguments), getattr(model.equations, name)(*arguments)
        np.testing.assert_allclose(np.array(got), np.array(wanted), rtol=1e-9, atol=1e-9, err_msg=f"{case}: {name}")
        assert any(isinstance(r, RolledRoutine) for r in compiled.routine.callees), name


def test_a_batch_of_loops_gives_each_row_what_a_single_call_gives(small_loops):
    model = Model(tree(12, 7))
    rng = np.random.default_rng(0)
    q, v, tau = (rng.uniform(-1, 1, (11, model.nv)) for _ in range(3))
    rows = model.forward_dynamics(q, v, tau)
    for k in range(len(q)):
        np.testing.assert_allclose(rows[k], model.forward_dynamics(q[k], v[k], tau[k]), rtol=1e-11, atol=1e-11)


def test_tables_serve_bodies_that_are_all_different():
    model = Model(tree(equations.ROLLED_FROM + 5, 8))
    assert model.nv > MAX_CLASSES
    q, v, _, tau = states(model)
    acceleration = model.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(model.inverse_dynamics(q, v, acceleration), tau, atol=1e-8)


def chain(n):
    links, joints = [Link("base")], []
    for k in range(n):
        links.append(Link(f"rod{k}", Inertial(0.5, np.array([0.05, 0.0, 0.0]), np.diag([1e-5, 4e-4, 4e-4]))))
        axis = np.array([0.0, 1.0, 0.0]) if k % 2 else np.array([0.0, 0.0, 1.0])
        pose = Pose(np.eye(3), np.array([0.1 if k else 0.0, 0.0, 0.0]))
        joints.append(Joint(f"hinge{k}", "revolute", links[-2].name, f"rod{k}", pose, axis))
    return Mechanism("chain", "base", tuple(links), tuple(joints))


def test_a_chain_of_a_thousand_bodies():
    model = Model(chain(1000))
    rng = np.random.default_rng(1)
    q, v = rng.uniform(-0.1, 0.1, 1000), rng.uniform(-0.1, 0.1, 1000)
    wanted = rng.uniform(-1, 1, 1000)
    tau = model.inverse_dynamics(q, v, wanted)
    # forward dynamics of a long chain is badly conditioned: judge it by the effort it leaves over
    left = model.inverse_dynamics(q, v, model.forward_dynamics(q, v, tau)) - tau
    assert np.abs(left).max() < 1e-9 * np.abs(tau).max()
    held = np.ones(1000, dtype=bool)
    np.testing.assert_allclose(model.hybrid_dynamics(q, v, wanted, tau, held)[1], tau, rtol=1e-9, atol=1e-9)


def test_a_chain_beyond_the_threshold_agrees_with_pinocchio():
    n = 120
    model = Model(chain(n))
    peer = pinocchio.Model()
    parent = 0
    for k in range(n):
        joint = pinocchio.JointModelRY() if k % 2 else pinocchio.JointModelRZ()
        place = pinocchio.SE3(np.eye(3), np.array([0.1 if k else 0.0, 0.0, 0.0]))
        parent = peer.addJoint(parent, joint, place, f"hinge{k}")
        body = pinocchio.Inertia(0.5, np.array([0.05, 0.0, 0.0]), np.diag([1e-5, 4e-4, 4e-4]))
        peer.appendBodyToJoint(parent, body, pinocchio.SE3.Identity())
    data = peer.createData()
    rng = np.random.default_rng(2)
    q, v, a = (rng.uniform(-0.5, 0.5, n) for _ in range(3))
    tau = pinocchio.rnea(peer, data, q, v, a)
    np.testing.assert_allclose(model.inverse_dynamics(q, v, a), tau, rtol=1e-10, atol=1e-10)
    full = np.array(pinocchio.crba(peer, data, q))
    full = np.triu(full) + np.triu(full, 1).T
    np.testing.assert_allclose(model.mass_matrix(q), full, rtol=1e-9, atol=1e-10)
    mine, theirs = model.forward_dynamics(q, v, tau), pinocchio.aba(peer, data, q, v, tau)
    np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())
