"""Copies of a tree on the ground are evaluated together, with the results of straight-line code."""

import numpy as np
import pytest

from cosim.core.compile.alike import Mapped
from cosim.mechanics.multibody import Model, equations
from cosim.mechanics.multibody.copies import Forest
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Mechanism, Pose

RNG = np.random.default_rng(3)
FUNCTIONS = {
    "forward_dynamics": "qvv",
    "inverse_dynamics": "qvv",
    "gravity_effort": "q",
    "kinetic_energy": "qv",
    "potential_energy": "q",
}
# joints of a tree by parent in it, −1: the ground
ARM = (("revolute", -1), ("revolute", 0), ("prismatic", 1))
FORK = (("revolute", -1), ("revolute", 0), ("spherical", 0))


@pytest.fixture(autouse=True)
def machine_code(monkeypatch):
    """The environment has no say in these tests."""
    monkeypatch.delenv("COSIM_INTERPRET", raising=False)


def body():
    a = RNG.uniform(-0.2, 0.2, (3, 3))
    return Inertial(RNG.uniform(0.5, 2.0), RNG.uniform(-0.1, 0.1, 3), a @ a.T + np.eye(3) * 0.1)


def forest(shapes, equal=False):
    """A mechanism of trees side by side; equal: all with the same numbers."""
    links, joints, inertials = [Link("ground")], [], [body() for _ in range(4)]
    for n, shape in enumerate(shapes):
        for k, (kind, parent) in enumerate(shape):
            links.append(Link(f"t{n}_{k}", inertials[k] if equal else body()))
            above = "ground" if parent < 0 else f"t{n}_{parent}"
            place = Pose(np.eye(3), np.array([0.3 * (k + 1), 0.0, 0.1]) if equal else RNG.uniform(-0.5, 0.5, 3))
            joints.append(Joint(f"j{n}_{k}", kind, above, f"t{n}_{k}", place, rotor_inertia=0.01 * (1 + k)))
    return Model(Mechanism("forest", "ground", tuple(links), tuple(joints)))


def state(model, k=None):
    lead = () if k is None else (k,)
    q = np.stack([model.integrate(model.neutral(), x) for x in RNG.uniform(-1.0, 1.0, (k or 1, model.nv))])
    return q.reshape(*lead, model.nq), *RNG.uniform(-1.0, 1.0, (2, *lead, model.nv))


@pytest.mark.parametrize(
    ("shapes", "equal"), [([ARM] * 17, True), ([ARM, FORK] * 9, False)], ids=["one class", "two classes"]
)
def test_copies_give_the_results_of_straight_line_code(shapes, equal, monkeypatch):
    model = forest(shapes, equal)
    assert model.equations.copies is not None
    assert [len(alike) for alike in model.equations.copies.classes] == [len(shapes) // len({*shapes})] * len({*shapes})
    q, v, u = state(model, 9)
    for name, arguments in FUNCTIONS.items():
        given = [{"q": q, "v": v}[a] for a in arguments]
        given = [*given[:2], u] if arguments == "qvv" else given
        rows = np.array([getattr(model, name)(*(x[k] for x in given)) for k in range(9)])
        assert any(isinstance(callee, Mapped) for callee in model.compiled(name).routine.callees)
        assert getattr(model, name)(*given).tobytes() == rows.tobytes()  # a batch has the bits of single states
        expected = np.array([getattr(model.equations, name)(*(x[k] for x in given)) for k in range(9)])
        np.testing.assert_allclose(rows, expected, rtol=1e-10, atol=1e-10)


def test_hybrid_dynamics_with_prescribed_joints_that_differ_between_copies():
    model = forest([ARM] * 20)
    q, v, u = state(model)
    prescribed = RNG.uniform(size=model.nv) > 0.5
    found = model.hybrid_dynamics(q, v, u, -u, prescribed)
    expected = model.equations.hybrid_dynamics(q, v, u, -u, prescribed)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("shapes", "why"),
    [
        ([ARM] * 15, "few bodies"),
        ([ARM] * 17 + [FORK], "a tree without copies"),
        ([(("revolute", -1), *(("revolute", k) for k in range(50)))] * 4, "large trees"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_other_trees_have_no_copies(shapes, why):
    assert forest(shapes).equations.copies is None, why


def test_code_of_many_copies_is_as_long_as_that_of_few():
    def length(n):
        routine = forest([ARM] * n, equal=True).compiled("forward_dynamics").routine
        return sum(item.definition(1).count("\n") for item in (routine, *routine.callees))

    assert length(20) == length(60)


def test_trees_of_bodies_that_are_parents_of_each_other_only():
    trees = Forest(forest([ARM, FORK, ARM]).equations.sweeps)
    assert [(t.start, t.stop) for t in trees.trees] == [(0, 3), (3, 6), (6, 9)]
    assert [[t.start for t in alike] for alike in trees.classes] == [[0, 6], [3]]
    assert equations.ROLLED_FROM == 48
