"""The graph of a mechanism: numbering, incidence and path matrices, loops, mobility."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.mechanics.multibody.constraint_laws import distance
from cosim.mechanics.multibody.description.structure import mobility, structure_of
from cosim.mechanics.multibody.mechanism import (
    Constraint,
    Joint,
    Link,
    LoopJoint,
    Mechanism,
    Mimic,
    Pose,
)

HERE = Pose.identity()
TIPPED = Pose(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]), np.zeros(3))  # z to −y


def joint(name, parent, child, kind="revolute", **more):
    return Joint(name, kind, parent, child, more.pop("pose", HERE), **more)


def cut(name, parent, child, kind="revolute", pose=HERE):
    return LoopJoint(joint(name, parent, child, kind, pose=pose), HERE)


def mechanism(joints, loops=(), constraints=()):
    links = tuple(Link(name) for name in ("base", *(j.child for j in joints)))
    return Mechanism("m", "base", links, tuple(joints), loops=tuple(loops), constraints=tuple(constraints))


def tree(parents):
    """Body k hangs on body parents[k − 1] < k, named b0 (base), b1, …"""
    names = ["base", *(f"b{k}" for k in range(1, len(parents) + 1))]
    return [joint(f"j{k}", names[p], names[k]) for k, p in enumerate(parents, 1)]


FOUR_BAR = mechanism(
    [joint("A", "base", "crank"), joint("B", "crank", "rod"), joint("D", "base", "rocker")], [cut("C", "rod", "rocker")]
)
trees = st.integers(1, 30).flatmap(lambda n: st.tuples(*(st.integers(0, k) for k in range(n))))


def test_the_four_bar_by_hand():
    s = structure_of(FOUR_BAR)
    assert s.bodies == ("base", "crank", "rod", "rocker")
    assert [(e.number, e.joint.name, e.start, e.end) for e in s.edges] == [
        (1, "A", 0, 1), (2, "B", 1, 2), (3, "D", 0, 3), (4, "C", 2, 3),
    ]  # fmt: skip
    assert (s.size, s.depths) == (3, (0, 1, 2, 1))
    assert s.S0.tolist() == [1, 0, 1]
    assert s.S.tolist() == [[-1, 1, 0], [0, -1, 0], [0, 0, -1]]
    assert s.S_cut.tolist() == [[0], [1], [-1]]
    assert s.T.tolist() == [[-1, -1, 0], [0, -1, 0], [0, 0, -1]]
    (loop,) = s.loops
    assert (loop.cut.joint.name, loop.bodies) == ("C", (0, 1, 2, 3))
    assert [e.joint.name for e in loop.edges] == ["A", "B", "C", "D"]
    assert loop.signs == (1, 1, 1, -1)


def test_a_loop_begins_where_its_branches_part():
    s = structure_of(mechanism(tree([0, 1, 2, 2, 4]), [cut("up", "b5", "b1"), cut("across", "b3", "b5")]))
    names = [[s.bodies[b] for b in loop.bodies] for loop in s.loops]
    edges = [[(e.joint.name, sign) for e, sign in zip(loop.edges, loop.signs, strict=True)] for loop in s.loops]
    assert names == [["b1", "b2", "b4", "b5"], ["b2", "b3", "b5", "b4"]]
    assert edges[0] == [("j2", 1), ("j4", 1), ("j5", 1), ("up", 1)]
    assert edges[1] == [("j3", 1), ("across", 1), ("j5", -1), ("j4", -1)]


def test_subtrees_have_consecutive_numbers_whatever_the_order_in_the_file():
    joints = tree([0, 0, 1, 2, 1])
    s = structure_of(mechanism(joints[::-1]))
    assert s.bodies == ("base", "b2", "b4", "b1", "b5", "b3")
    assert [s.bodies[e.start] for e in s.tree] == ["base", "b2", "base", "b1", "b1"]


def test_fixed_joints_are_edges():
    s = structure_of(mechanism([joint("a", "base", "x"), joint("weld", "x", "y", "fixed")]))
    assert s.bodies == ("base", "x", "y") and s.T.tolist() == [[-1, -1], [0, -1]]


def test_a_root_alone():
    s = structure_of(mechanism([]))
    assert (s.bodies, s.edges, s.loops, s.S.shape, s.T.shape) == (("base",), (), (), (0, 0), (0, 0))


def identities(s):
    """What holds of every tree."""
    paths, incidence, unit = s.T.astype(float), s.S.astype(float), np.eye(s.size)  # products of floats are faster
    assert np.array_equal(paths @ incidence, unit) and np.array_equal(incidence @ paths, unit)
    assert np.array_equal(s.T.T @ s.S0, -np.ones(s.size, int))
    assert all(edge.start < edge.end == edge.number for edge in s.tree)


@settings(max_examples=40)
@given(trees, st.randoms(use_true_random=False))
def test_path_and_incidence_matrices_are_inverse(parents, random):
    joints = tree(parents)
    random.shuffle(joints)
    identities(structure_of(mechanism(joints)))


@pytest.mark.parametrize("parents", [range(1000), [0] * 1000])
def test_a_thousand_bodies_in_a_chain_and_in_a_star(parents):
    s = structure_of(mechanism(tree(parents), [cut("last", "b1000", "base")]))
    path = np.zeros(1000, int)
    path[[*range(1000)] if parents[-1] else [-1]] = -1
    assert s.size == 1000 and s.depths[-1] == -path.sum()
    assert np.array_equal(s.T[:, -1], path)
    assert len(s.loops[0].edges) == 1 + s.depths[-1]
    identities(s)


@settings(max_examples=40)
@given(trees, st.data())
def test_loops_are_closed_independent_and_as_many_as_edges_less_bodies(parents, data):
    ends = st.tuples(st.integers(0, len(parents)), st.integers(0, len(parents))).filter(lambda pair: pair[0] != pair[1])
    names = ["base", *(f"b{k}" for k in range(1, len(parents) + 1))]
    pairs = data.draw(st.lists(ends, max_size=6))
    cuts = [cut(f"c{k}", names[one], names[other]) for k, (one, other) in enumerate(pairs)]
    s = structure_of(mechanism(tree(parents), cuts))
    assert len(s.loops) == len(s.edges) - s.size
    assert not np.any(s.incidence @ s.loop_matrix)
    assert np.array_equal(s.loop_matrix[: s.size], -s.T @ s.S_cut)
    assert np.array_equal(s.loop_matrix[s.size :], np.eye(len(cuts), dtype=int))
    for loop in s.loops:
        around = [*loop.bodies, loop.bodies[0]]
        walked = [
            (e.start, e.end) if sign > 0 else (e.end, e.start) for e, sign in zip(loop.edges, loop.signs, strict=True)
        ]
        assert walked == list(pairwise(around))
        assert loop.bodies[0] == min(loop.bodies) and len(set(loop.bodies)) == len(loop.bodies)


TIPPED_BACK = Pose(TIPPED.rotation.T, np.zeros(3))
Y = np.array([0.0, 1.0, 0.0])  # of a body tipped by TIPPED the z axis of base
CHAIN = tree([0, 1, 2])
SPATIAL = [joint("A", "base", "x"), joint("S", "x", "y", "spherical"), joint("P", "base", "z", "prismatic")]
MIMIC = [*tree([0, 1]), joint("j3", "b1", "b3", mimic=Mimic("j2"))]
# mechanism, freedom of its tree, rows of each loop, rows of constraints, what is left
MOBILITY = {
    "a four-bar in its plane": (FOUR_BAR, 3, (2,), 0, 1),
    "a slider-crank in its plane": (mechanism(CHAIN, [cut("slide", "base", "b3", "prismatic", TIPPED)]), 3, (2,), 0, 1),
    "a slide along the axes": (mechanism(CHAIN, [cut("slide", "base", "b3", "prismatic")]), 3, (5,), 0, -2),
    "an axis out of line": (
        mechanism([*FOUR_BAR.joints[:2], joint("D", "base", "rocker", pose=TIPPED)], FOUR_BAR.loops),
        *(3, (5,), 0, -2),
    ),
    "axes as seen through the frames of all bodies before": (
        mechanism(
            [
                joint("A", "base", "crank", pose=TIPPED, axis=Y),
                joint("B", "crank", "rod", pose=TIPPED_BACK),
                joint("D", "base", "rocker"),
            ],
            FOUR_BAR.loops,
        ),
        *(3, (2,), 0, 1),
    ),
    "spatial joints": (mechanism(SPATIAL, [cut("U", "y", "z", "universal")]), 5, (4,), 0, 1),
    "a mimic without freedom and the row of a constraint": (
        mechanism(MIMIC, (), [Constraint("rod", distance(1.0), (("b2", HERE), ("base", HERE)))]),
        *(2, (), 1, 1),
    ),
}


@pytest.mark.parametrize("case", MOBILITY)
def test_mobility(case):
    counted, *expected = MOBILITY[case]
    found = mobility(counted, structure_of(counted))
    assert [found.tree, found.closure_rows, found.constraints, found.estimate] == expected
