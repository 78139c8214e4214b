"""Rotors that turn with several joints, against the same rotors as bodies that a rigid constraint turns.

Such a body is on a joint of its own at the ground, about an axis through its centre of mass, so that it has its inertia
alone; a constraint holds θ = Σ cᵢ qᵢ. Its coordinate follows from the others, and so do its velocity and acceleration.
"""

from dataclasses import replace

import numpy as np
import pytest

from cosim import load_rig
from cosim.mechanics.formulations import known_formulations, load_formulation
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.assembly import find_redundant
from cosim.mechanics.multibody.constraint_laws import combination
from cosim.mechanics.multibody.derivatives import CLOSED_FORM_FROM
from cosim.mechanics.multibody.friction import FRICTION_SPEED
from cosim.mechanics.multibody.mechanism import (
    Constraint,
    CoupledRotor,
    Inertial,
    Joint,
    Link,
    LoopJoint,
    Mechanism,
    Mimic,
)
from tests.kit.samples import FOLDER
from tests.multibody.random_frames import at, close, heavy, random_pose

X, Y, Z = np.eye(3)


def chain(random, *kinds, base="ground", more=()):
    """Bodies one behind the other on joints of these kinds, j0, j1, …"""
    links, joints, parent = [Link("ground"), *(heavy(f"b{k}", random) for k in range(len(kinds)))], [], base
    for k, kind in enumerate(kinds):
        joints.append(Joint(f"j{k}", kind, parent, f"b{k}", random_pose(random), (X, Y, Z)[k % 3]))
        parent = f"b{k}"
    return Mechanism("chain", "ground", tuple(links), tuple(joints), **dict(more))


def mimics(random):
    """j3 follows j1, and both turn a rotor."""
    found = chain(random, "revolute", "revolute", "prismatic", "revolute")
    *before, last = found.joints
    return replace(found, joints=(*before, replace(last, mimic=Mimic("j1", -0.7, 0.2))))


def branches(random):
    found = chain(random, "revolute", "revolute", "revolute", "prismatic")
    joints = [replace(joint, parent="b0") if joint.name in ("j2", "j3") else joint for joint in found.joints]
    return replace(found, joints=tuple(joints))


def four_bar(random):
    """A four-bar linkage on a turning base, cut at a hinge."""
    tip = at(0.0, 0.6, 0.0)
    links = Link("ground"), *(heavy(f"b{k}", random) for k in range(4))
    joints = (
        Joint("j0", "revolute", "ground", "b0", at(0, 0, 0), X),
        Joint("j1", "revolute", "b0", "b1", at(0, 0, 0), Z),
        Joint("j2", "revolute", "b0", "b2", at(0.5, 0, 0), Z),
        Joint("j3", "revolute", "b1", "b3", tip, Z),
    )
    close_it = LoopJoint(Joint("c", "revolute", "b2", "b3", tip, Z), at(0.5, 0.0, 0.0))
    return Mechanism("four_bar", "ground", links, joints, loops=(close_it,))


TREES = {
    "arm": lambda random: chain(random, "revolute", "revolute", "revolute", "prismatic"),
    "floating": lambda random: chain(random, "free", "revolute", "spherical", "revolute", "revolute", "prismatic"),
    "mimics": mimics,
    "long": lambda random: chain(random, *["revolute"] * CLOSED_FORM_FROM),  # with derivatives in closed form
    "branches": branches,
    "four bars": four_bar,
}
ROTORS = {  # of joints with one dof each, two of them with a joint in common
    "arm": ({"j1": 1.0, "j2": 1.0}, {"j2": -3.0, "j3": 40.0}),
    "floating": ({"j1": 1.0, "j3": -2.0}, {"j3": 0.5, "j4": 1.0, "j5": 10.0}),
    "long": ({"j0": 1.0, "j4": -2.0}, {"j4": 1.0, "j6": 3.0}),
    "mimics": ({"j1": 2.0, "j3": 1.5}, {"j0": 1.0, "j2": 5.0, "j3": 1.0}),
    "branches": ({"j1": 1.0, "j2": -1.0}, {"j0": 1.0, "j3": 8.0}),
    "four bars": ({"j0": 1.0, "j1": 2.0}, {"j1": 1.0, "j2": -4.0}),
}
INERTIAS = 0.3, 2.0


def with_rotors(mechanism, rotors, inertias=INERTIAS):
    given = zip(rotors, inertias, strict=True)
    found = [CoupledRotor(f"motor{k}", tuple(turns.items()), J, 1.5, 2.0) for k, (turns, J) in enumerate(given)]
    return replace(mechanism, rotors=tuple(found))


def with_bodies(mechanism, rotors, inertias=INERTIAS):
    """The rotors as bodies, behind all others."""
    links, joints, constraints = [], [], []
    for k, (turns, J) in enumerate(zip(rotors, inertias, strict=True)):
        links.append(Link(f"rotor{k}", Inertial(1.0, np.zeros(3), J * np.eye(3))))
        joints.append(Joint(f"shaft{k}", "revolute", "ground", f"rotor{k}", at(0, 0, 0), Z))
        law = combination([1.0], list(turns.values()), [0.0, 1.0])
        constraints.append(Constraint(f"gear{k}", law, joints=(f"shaft{k}", *turns)))
    constraints = (*mechanism.constraints, *constraints)
    return replace(
        mechanism, links=(*mechanism.links, *links), joints=(*mechanism.joints, *joints), constraints=constraints
    )


class Pair:
    """The model with rotors, and the one with bodies in their place, in one state."""

    def __init__(self, name, seed=0, inertias=INERTIAS):
        self.random = np.random.default_rng(seed)
        plain, rotors = TREES[name](self.random), ROTORS[name]
        self.rotors = Model(with_rotors(plain, rotors, inertias))
        self.bodies = Model(with_bodies(plain, rotors, inertias))
        self.nv, self.count = self.rotors.nv, len(rotors)
        names = [joint.name for joint in self.rotors.equations.tree.joints]
        ends = np.cumsum([0, *(kind.nv for kind in self.rotors.equations.tree.kinds)])
        of_tree = np.zeros((self.count, ends[-1]))
        for k, turns in enumerate(rotors):
            for joint, ratio in turns.items():
                of_tree[k, ends[names.index(joint)]] = ratio
        self.turns = of_tree @ self.rotors.equations.v_map.matrix  # rotors' velocities from those of the joints
        self.q, self.v = self.state(name)
        repeated = find_redundant(self.rotors, self.q, np.zeros(self.nv, dtype=bool))
        self.rotors, self.bodies = self.rotors.without(repeated), self.bodies.without(repeated)

    def state(self, name):
        v = self.random.uniform(-1, 1, self.nv)
        if name != "four bars":
            return self.rotors.random_configuration(self.random), v
        lean, rate, base = self.random.uniform(0.2, 0.8), v[1], v[0]
        return np.array([0.4, lean, lean, -lean]), np.array([base, rate, rate, -rate])

    def whole(self, v):
        """Velocities, or what transforms as they do, of the model with bodies."""
        return np.concatenate([v, self.turns @ v])

    @property
    def all_q(self):
        """Its coordinates: only the velocities of the rotors enter, but the constraint must hold."""
        unknown = np.concatenate([self.q, np.zeros(self.count)])
        residual = self.bodies.equations.constraint_violation(unknown, self.whole(self.v))[0]
        return np.concatenate([self.q, -residual[-self.count :]])

    def compare(self, with_rotors, with_bodies, room=1e-9):
        close(with_rotors, np.asarray(with_bodies)[: self.nv], room)


def on_numbers(equations, function, *arguments):
    return np.asarray(getattr(equations, function)(*arguments), dtype=float)


@pytest.mark.parametrize("name", TREES)
def test_forward_dynamics(name):
    pair = Pair(name)
    tau = pair.random.uniform(-5, 5, pair.nv)
    padded = np.concatenate([tau, np.zeros(pair.count)])
    expected = on_numbers(pair.bodies.equations, "forward_dynamics", pair.all_q, pair.whole(pair.v), padded)
    pair.compare(pair.rotors.equations.forward_dynamics(pair.q, pair.v, tau), expected)
    pair.compare(pair.rotors.forward_dynamics(pair.q, pair.v, tau), expected)  # compiled


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("which", ["one of a rotor", "all of a rotor", "all but one"])
def test_dofs_whose_motion_is_known(name, which):
    """Accelerations of the others, and the efforts that the known ones take."""
    pair = Pair(name, 1)
    turned = np.flatnonzero(pair.turns[0])
    known = np.zeros(pair.nv, dtype=bool)
    known[{"one of a rotor": turned[:1], "all of a rotor": turned, "all but one": range(1, pair.nv)}[which]] = True
    if name == "four bars" and which != "one of a rotor":
        pytest.skip("a linkage has two dofs")
    tau, a = pair.random.uniform(-5, 5, (2, pair.nv))
    padded = np.concatenate([known, [False] * pair.count])
    expected = pair.bodies.equations.hybrid_dynamics(
        pair.all_q, pair.whole(pair.v), np.concatenate([a, np.zeros(pair.count)]),
        np.concatenate([tau, np.zeros(pair.count)]), padded,
    )  # fmt: skip
    found = pair.rotors.equations.hybrid_dynamics(pair.q, pair.v, a, tau, known)
    for mine, other in zip(found, expected, strict=True):
        pair.compare(mine, other)
    np.testing.assert_array_equal(found[1][~known], tau[~known])


@pytest.mark.parametrize("name", TREES)
def test_impulses(name):
    """Dofs that are arrested, and impulses on the others."""
    pair = Pair(name, 2)
    fixed = np.zeros(pair.nv, dtype=bool)
    fixed[np.flatnonzero(pair.turns[0])[0]] = True
    given, jump = pair.random.uniform(-1, 1, pair.nv), np.where(fixed, -pair.v, 0.0)
    none = np.zeros(pair.count)
    rows = len(pair.rotors.constraint_rows)
    mine = pair.rotors.equations.impulse(pair.q, np.zeros(rows), jump, fixed, impulses=given)
    other = pair.bodies.equations.impulse(
        pair.all_q, np.zeros(rows + pair.count), np.concatenate([jump, none]), np.concatenate([fixed, none > 0]),
        impulses=np.concatenate([given, none]),
    )  # fmt: skip
    pair.compare(mine.acceleration, other.acceleration)
    close(mine.effort[fixed], other.effort[: pair.nv][fixed])
    close(mine.multipliers, other.multipliers[:rows])


@pytest.mark.parametrize("name", TREES)
def test_inertia_and_energy(name):
    """Mᵣ = Pᵀ M P of the model with bodies, P from the velocities of the joints to all; and all that M is a part of."""
    pair = Pair(name, 3)
    P, (q, v) = np.vstack([np.eye(pair.nv), pair.turns]), (pair.q, pair.v)
    expected = P.T @ np.asarray(pair.bodies.equations.mass_matrix(pair.all_q)) @ P
    equations, a = pair.rotors.equations, pair.random.uniform(-3, 3, pair.nv)
    close(equations.mass_matrix(q), expected)
    close(equations.mass_diagonal(q), np.diag(expected))
    close(equations.inertia_effort(q, a), expected @ a)
    close(equations.inverse_dynamics(q, v, a) - equations.nonlinear_effects(q, v), expected @ a)
    close(equations.kinetic_energy(q, v), pair.bodies.equations.kinetic_energy(pair.all_q, P @ v))
    close(pair.rotors.inverse_dynamics_derivatives(q, v, a)[2], expected)
    nonlinear = P.T @ np.asarray(pair.bodies.equations.nonlinear_effects(pair.all_q, P @ v))
    close(equations.nonlinear_effects(q, v), nonlinear)


@pytest.mark.parametrize("name", TREES)
def test_derivatives(name):
    """Of q̈ by efforts and velocities, against differences of the model with bodies."""
    pair, step = Pair(name, 4), 1e-5
    tau = pair.random.uniform(-5, 5, pair.nv)

    def expected(q, v, tau):
        efforts = np.concatenate([tau, np.zeros(pair.count)])
        return pair.bodies.forward_dynamics(q, pair.whole(v), efforts)[: pair.nv]

    found, at_q = pair.rotors.forward_dynamics_derivatives(pair.q, pair.v, tau), pair.all_q
    for k, unit in enumerate(np.eye(pair.nv) * step):
        by_v = (expected(at_q, pair.v + unit, tau) - expected(at_q, pair.v - unit, tau)) / (2 * step)
        by_tau = (expected(at_q, pair.v, tau + unit) - expected(at_q, pair.v, tau - unit)) / (2 * step)
        close(found[1][:, k], by_v, 1e-6)
        close(found[2][:, k], by_tau, 1e-6)


@pytest.mark.parametrize("formulation", known_formulations())
@pytest.mark.parametrize("name", ["arm", "mimics", "four bars"])
def test_formulations(name, formulation):
    """Every formulation has the rotors, whatever its equations are."""
    pair = Pair(name, 5)
    if (why := known_formulations()[formulation].refusal(pair.rotors.equations)) is not None:
        pytest.skip(why)
    tau = pair.random.uniform(-5, 5, pair.nv)
    efforts = np.concatenate([tau, np.zeros(pair.count)])
    expected = pair.bodies.equations.forward_dynamics(pair.all_q, pair.whole(pair.v), efforts)
    found = load_formulation(formulation, pair.rotors.equations).forward_dynamics(pair.q, pair.v, tau)
    pair.compare(found, expected, 1e-8)


@pytest.mark.parametrize("name", TREES)
def test_friction(name):
    """c (b θ̇ + F s(θ̇)) on each joint."""
    pair = Pair(name, 6)
    rates = pair.turns @ pair.v
    sliding = 1.5 * rates + 2.0 * rates / np.sqrt(rates**2 + FRICTION_SPEED**2)
    close(pair.rotors.equations.friction_effort(pair.v), pair.turns.T @ sliding)


def test_no_inertia_and_a_very_large_one():
    """Without inertia a rotor does nothing; a huge one holds its combination of joints at its velocity."""
    tau = np.array([1.0, -2.0, 3.0, 0.5])
    pair = Pair("arm", 7, (0.0, 0.0))
    plain = Model(replace(pair.rotors.mechanism, rotors=()))
    expected = plain.equations.forward_dynamics(pair.q, pair.v, tau)
    close(pair.rotors.equations.forward_dynamics(pair.q, pair.v, tau), expected, 1e-14)
    pair = Pair("arm", 7, (1e9, 0.0))
    assert abs(pair.turns[0] @ pair.rotors.equations.forward_dynamics(pair.q, pair.v, tau)) < 1e-6


@pytest.mark.parametrize(
    "name", ["elastic/two_link_arm", "elastic/slider_crank", "mechanisms/four_bar", "mechanisms/arm_on_moving_base"]
)
def test_the_equations_of_motion_balance_in_samples(name):
    """Elastic links, loops, bases that move with time: M q̈ + h = τ + Gᵀ λ with M, h of the mechanism and J c cᵀ."""
    plant, random = load_rig(FOLDER / f"{name}.yaml").plant, np.random.default_rng(0)
    plain, q = plant.model, np.array(plant.start.q)
    first, second = [j.name for j, kind in zip(plain.joints, plain.kinds, strict=True) if kind.nv == 1][:2]
    rotor = CoupledRotor("motor", ((first, 1.0), (second, -1.5)), 0.3)
    model = plain._copy(plain.drive_rotors, plain._redundant, replace(plain.mechanism, rotors=(rotor,)))
    c = np.zeros(model.nv)
    c[[model.dof_index(first), model.dof_index(second)]] = 1.0, -1.5
    v, tau = random.normal(size=(2, model.nv))
    t = [0.3] * model.timed
    G = np.asarray(model.equations.constraint_jacobian(q, *t), dtype=float).reshape(-1, model.nv)
    v = v - np.linalg.pinv(G, 1e-9) @ G @ v if len(G) else v
    a = np.asarray(model.equations.forward_dynamics(q, v, tau, *t))
    reactions = np.asarray(model.equations.reactions(q, v, tau, *t))
    inertia = np.asarray(plain.equations.mass_matrix(q, *t)) + 0.3 * np.outer(c, c)
    left = inertia @ a + np.asarray(plain.equations.nonlinear_effects(q, v, *t))
    np.testing.assert_allclose(left, tau + G.T @ reactions, rtol=0, atol=1e-12 * max(1.0, np.abs(inertia @ a).max()))
