"""Loops over bodies give what straight-line code gives, for trees of every kind, up to a thousand bodies."""

import numpy as np
import pytest

from cosim.core.compile.rolled_sweeps import MAX_CLASSES, RolledRoutine
from cosim.mechanics.multibody import Model, equations
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Mechanism, Pose
from tests.multibody.random_frames import turn


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
        pose = Pose(turn(draw), draw.normal(size=3) * 0.2)
        joints.append(Joint(f"joint{k}", kind, parent, f"body{k}", pose, axis / np.linalg.norm(axis)))
    return Mechanism("tree", "base", tuple(links), tuple(joints))


def all_different(n, seed, kinds):
    """A tree of n bodies that have no number in common: masses, centres, all six inertias, frames, axes, rotors."""
    rng = np.random.default_rng(seed)
    links, joints = [Link("base")], []
    for k in range(n):
        axes, (x, y, z) = turn(rng), rng.uniform(0.02, 0.2, 3)
        inertia = axes @ np.diag([y + z, x + z, x + y]) @ axes.T
        parent = links[rng.integers(max(0, k - 3), k + 1)].name
        links.append(Link(f"body{k}", Inertial(rng.uniform(0.5, 2.0), rng.normal(size=3) * 0.2, inertia)))
        axis, second = turn(rng)[:2]
        kind, pose = kinds[k % len(kinds)], Pose(turn(rng), rng.normal(size=3) * 0.2)
        more = {"universal": {"second_axis": second}, "screw": {"pitch": rng.uniform(0.1, 0.3)}}.get(kind, {})
        joints.append(Joint(f"joint{k}", kind, parent, f"body{k}", pose, axis, **more))
    model = Model(Mechanism("tree", "base", tuple(links), tuple(joints)), rng.uniform(-5.0, 5.0, 3))
    return model.with_rotor_inertia(rng.uniform(0.01, 0.1, model.nv))


def states(model, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, n) for n in (model.nq, model.nv, model.nv, model.nv)]


@pytest.fixture
def small_loops(monkeypatch):
    """Loops already for a few bodies, so that straight-line code can be compared with."""
    monkeypatch.setattr(equations, "ROLLED_FROM", 3)


CASES = {
    "many different bodies": {"n": 12, "seed": 3},
    "two patterns of bodies": {"n": 12, "seed": 4, "distinct": False, "prismatic": False},
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
        if case != "many different bodies" and name not in ("forward_dynamics", "hybrid_dynamics"):
            continue  # the others share their sweeps
        compiled = model.compiled(name)
        got, wanted = compiled(*arguments), getattr(model.equations, name)(*arguments)
        np.testing.assert_allclose(np.array(got), np.array(wanted), rtol=1e-9, atol=1e-9, err_msg=f"{case}: {name}")
        assert any(isinstance(r, RolledRoutine) for r in compiled.routine.callees), name


KINDS = ("revolute", "prismatic"), ("universal", "cylindrical"), ("spherical",)


@pytest.mark.parametrize("kinds", KINDS)
def test_tables_serve_bodies_that_are_all_different(kinds):
    """Against the sweeps in Python, body by body; a table with any entry of another body gives other numbers."""
    model = all_different(equations.ROLLED_FROM + 5, 8, kinds)
    assert len(model.joints) > MAX_CLASSES and model.equations.rolled
    rng = np.random.default_rng(9)
    q = model.integrate(model.neutral(), rng.uniform(-1, 1, model.nv))
    v, a, tau = rng.uniform(-1, 1, (3, model.nv))
    held = np.arange(model.nv) % 3 == 0
    for name, arguments in {
        "hybrid_dynamics": (q, v, a, tau, held),
        "inverse_dynamics": (q, v, a),
        "potential_energy": (q,),
    }.items():
        compiled = model.compiled(name)
        (routine,) = (r for r in compiled.routine.callees if isinstance(r, RolledRoutine))
        assert max(map(len, routine._sweeps.members)) > MAX_CLASSES, "the bodies share code, and so read tables"
        got, wanted = np.array(compiled(*arguments)), np.array(getattr(model.equations, name)(*arguments))
        np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-8 * np.abs(wanted).max(), err_msg=name)


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
