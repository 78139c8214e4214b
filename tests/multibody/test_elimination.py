"""How constraint rows are eliminated: which are recognised as redundant on the way, and where each is eliminated."""

import dataclasses

import numpy as np
import pytest

from cosim.core.compile import Routine
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.constrained_dynamics import GROUND
from cosim.mechanics.multibody.constraint_laws import gear
from cosim.mechanics.multibody.mechanism import Constraint, Inertial, Joint, Link, LoopJoint, Mechanism
from tests.multibody.random_frames import at

Z = np.eye(3)[2]


def wheels(inertias, ratios):
    """Wheels on the ground, each geared to the next by a ratio, the last one to the first."""
    names = [f"w{k}" for k in range(len(inertias))]
    links = (
        Link("ground"),
        *(Link(n, Inertial(1.0, np.zeros(3), i * np.eye(3))) for n, i in zip(names, inertias, strict=True)),
    )
    joints = tuple(Joint(name, "revolute", "ground", name, at(), Z) for name in names)
    pairs = zip(names, [*names[1:], names[0]], ratios, strict=True)
    gears = tuple(Constraint(f"{a}-{b}", gear(ratio), (), (a, b)) for a, b, ratio in pairs)
    return Mechanism("wheels", "ground", links, joints, constraints=gears)


@pytest.mark.parametrize(("seed", "way"), [(0, "direct"), (1, "nested"), (2, "direct"), (2, "nested")])
def test_a_ring_of_gears_has_one_redundant_row(seed, way):
    """Rows on coordinates alone: what is left of the last one is rounding, and no reaction comes of it."""
    random = np.random.default_rng(seed)
    n = 3 + seed % 3
    ratios = random.uniform(0.2, 5.0, n) * random.choice([-1.0, 1.0], n)
    ratios[-1] = 1.0 / np.prod(ratios[:-1])
    scale = 10.0 ** random.uniform(-4.0, 4.0)
    inertias, tau = scale * random.uniform(0.5, 2.0, n), scale * random.uniform(-5.0, 5.0, n)
    model = Model(wheels(inertias, ratios), elimination=way)
    zero = np.zeros(n)
    # speeds of the wheels in units of the first one's
    speeds = 1.0 / np.cumprod([1.0, *ratios[:-1]])
    expected = speeds * (speeds @ tau) / (speeds**2 @ inertias)
    found = model.forward_dynamics(zero, zero, tau)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    reactions = model.reactions(zero, zero, tau)
    assert (reactions == 0.0).sum() == 1
    assert np.abs(reactions).max() < 1e3 * np.abs(tau).max()
    G = model.constraint_jacobian(zero)
    np.testing.assert_allclose(G.T @ reactions, inertias * expected - tau, atol=1e-9 * np.abs(reactions).max())


def ladder(rungs):
    """Four-bars, each on the coupler of the one before, closed by a spherical joint in a tilted frame."""
    rod = Inertial(1.0, np.array([0.1, 0.2, 0.3]), np.diag([0.1, 0.2, 0.25]))
    links, joints, loops = [Link("ground"), Link("b0", rod)], [Joint("trunk", "free", "ground", "b0", at())], []
    for k in range(rungs):
        here, above = f"b{k}", f"b{k + 1}"
        links += [Link(f"{side}{k + 1}", rod) for side in "pqb"]
        joints += [
            Joint(f"left{k}", "revolute", here, f"p{k + 1}", at(0.0, 0.0, 0.1), Z),
            Joint(f"right{k}", "revolute", here, f"q{k + 1}", at(0.5, 0.0, 0.0), Z),
            Joint(f"top{k}", "revolute", f"p{k + 1}", above, at(0.0, 0.6, 0.1), Z),
        ]
        loops.append(LoopJoint(Joint(f"close{k}", "spherical", f"q{k + 1}", above, at(0.0, 0.6, 0.2)), at(0.5, 0, 0)))
    return Mechanism("ladder", "ground", tuple(links), tuple(joints), loops=tuple(loops))


def test_each_row_is_eliminated_at_the_body_where_its_loop_closes():
    mechanism = ladder(4)
    anchor = LoopJoint(Joint("anchor", "spherical", "ground", "b2", at()), at())
    mechanism = dataclasses.replace(mechanism, loops=(*mechanism.loops, anchor))
    names = [joint.child for joint in Model(mechanism).joints]
    for way, expected in (
        ("nested", [name for k in range(4) for name in [f"b{k}"] * 3] + ["ground"] * 3),
        ("direct", ["ground"] * 15),
    ):
        equations = Model(mechanism, elimination=way).equations
        levels = equations.constraints.levels(equations.tree, equations.v_map.rows())
        assert ["ground" if level == GROUND else names[level] for level in levels] == expected


def test_nested_elimination_costs_the_same_for_each_loop():
    """Operations grow linearly with the loops; at the ground, each loop is coupled to all others."""

    def operations(rungs, way):
        model = Model(ladder(rungs), elimination=way)
        return Routine(model.equations.forward_dynamics, [(model.nq,), (model.nv,), (model.nv,)], way).operations

    nested, direct = ([operations(rungs, way) for rungs in (1, 2, 3)] for way in ("nested", "direct"))
    first, second = np.diff(nested)
    assert second == pytest.approx(first, rel=0.02)
    assert nested[-1] < direct[-1]
    first, second = np.diff(direct)
    assert second > 1.2 * first


@pytest.mark.parametrize(("rungs", "way"), [(1, "direct"), (2, "nested")])
def test_auto_chooses_by_the_number_of_rows(rungs, way):
    """Up to three rows at the ground, more where their loops close."""
    auto, fixed = (Model(ladder(rungs), elimination=choice) for choice in ("auto", way))
    assert auto.equations.constraints.nested == fixed.equations.constraints.nested == (way == "nested")
