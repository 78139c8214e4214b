"""Assembly takes the configuration nearest to the guesses: against closed forms and scipy from many starts."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.assembly import close_loops
from cosim.mechanics.multibody.constraint_laws import gear
from cosim.mechanics.multibody.mechanism import Constraint, Inertial, Joint, Link, LoopJoint, Mechanism
from cosim.mechanics.multibody.nearest import ClosureSearch, separate_parts
from tests.multibody.random_frames import at

X, Y, Z = np.eye(3)
HALF_TURN = np.pi
ROD = Inertial(1.0, 0.1 * X, 0.1 * np.eye(3))


def linkage(joints, loops=(), constraints=()):
    """From (name, kind, parent, pose, axis) of each joint, whose child has its name."""
    made = tuple(Joint(name, kind, parent, name, pose, axis) for name, kind, parent, pose, axis in joints)
    links = Link("ground"), *(Link(joint.name, ROD) for joint in made)
    return Mechanism("linkage", "ground", links, made, loops=tuple(loops), constraints=tuple(constraints))


def pin(parent, there, child, here, kind="revolute"):
    return LoopJoint(Joint(f"{parent}-{child}", kind, parent, child, there), here)


def nearest_turn(x, guess):
    """The angles, whole turns aside, within half a turn of the guesses."""
    return guess + (x - guess + HALF_TURN) % (2 * HALF_TURN) - HALF_TURN


def distance(model, guess, q):
    return np.linalg.norm(model.equations.offset(guess, q))


# --- four-bars: both branches in closed form ------------------------------------------------------


def four_bar(lengths, constraints=()):
    crank, coupler, rocker, ground = lengths
    joints = [
        ("A", "revolute", "ground", at(), Z),
        ("B", "revolute", "A", at(crank), Z),
        ("C", "revolute", "ground", at(ground), Z),
    ]
    return linkage(joints, [pin("C", at(rocker), "B", at(coupler))], constraints)


def branches(lengths, A):
    """(angles of A, B, C of all closed configurations at the angles A (n,) of the crank that have any) (k, 3)."""
    crank, coupler, rocker, ground = lengths
    tip = crank * np.exp(1j * A)
    across = ground - tip
    cosine = (coupler**2 + abs(across) ** 2 - rocker**2) / (2 * coupler * abs(across))
    ok = abs(cosine) <= 1.0
    A, tip, across, inner = A[ok], tip[ok], across[ok], np.arccos(cosine[ok])
    found = []
    for sign in (1, -1):
        at_coupler = np.angle(across) + sign * inner
        found.append(np.stack([A, at_coupler - A, np.angle(tip + coupler * np.exp(1j * at_coupler) - ground)], 1))
    return np.concatenate(found)


def random_four_bar(random):
    """(lengths, a closed configuration)."""
    while True:
        lengths, A = random.uniform(0.2, 1.0, 4), random.uniform(-HALF_TURN, HALF_TURN)
        found = branches(lengths, np.array([A]))
        if len(found):
            return lengths, found[random.integers(2)]


def nearest_of(found, guess):
    """The smallest distance of the configurations from the guess, whole turns aside."""
    return np.linalg.norm(nearest_turn(found, guess) - guess, axis=1).min()


@pytest.mark.parametrize("seed", range(6))
def test_a_four_bar_takes_the_nearest_branch(seed):
    """The crank given, then free; guesses are off by up to 3 rad and by whole turns."""
    random = np.random.default_rng(seed)
    lengths, there = random_four_bar(random)
    model, turns = Model(four_bar(lengths)), 2 * HALF_TURN * random.integers(-2, 3, 3)
    off = there + random.uniform(-3.0, 3.0, 3) + turns
    given = np.array([there[0] + turns[0], *off[1:]])
    found = close_loops(model, given, np.array([True, False, False]))
    assert found[0] == given[0]
    assert distance(model, given, found) <= nearest_of(branches(lengths, there[:1]), given) + 1e-9
    found = close_loops(model, off, np.zeros(3, dtype=bool))
    every = branches(lengths, np.linspace(-HALF_TURN, HALF_TURN, 8001))
    assert distance(model, off, found) <= nearest_of(every, off) + 1e-7
    assert np.abs(model.equations.constraint_violation(found, np.zeros(3))[0]).max() < 1e-10


@pytest.mark.parametrize("seed", range(2))
def test_the_size_of_a_linkage_does_not_change_its_angles(seed):
    random = np.random.default_rng(50 + seed)
    lengths, there = random_four_bar(random)
    guess, free = there + random.uniform(-1.5, 1.5, 3), np.zeros(3, dtype=bool)
    small, found, large = (close_loops(Model(four_bar(s * lengths)), guess, free) for s in (1e-6, 1.0, 1e4))
    np.testing.assert_allclose([small, large], [found, found], atol=1e-6)


def test_a_search_that_went_round_takes_its_turns_back():
    lengths, there = random_four_bar(np.random.default_rng(5))
    equations = Model(four_bar(lengths)).equations
    ((rows, dofs),) = separate_parts(equations.closure.pattern, np.ones(3, dtype=bool))
    search = ClosureSearch.of(equations, equations.closure, rows, dofs, there, 0.0)
    found = search._approach(there + 2 * HALF_TURN * np.array([1.0, -2.0, 3.0]))
    np.testing.assert_allclose(found, there, atol=1e-9)


def test_gears_keep_the_turns_that_their_ratio_asks_for():
    """Of a joint in a gear not every whole turn can be taken back."""
    random = np.random.default_rng(3)
    lengths, there = random_four_bar(random)
    mechanism = four_bar(lengths)
    wheel = Joint("W", "revolute", "ground", "W", at(), Z)
    train = Constraint("train", gear(-3.0), (), ("W", "A"))
    mechanism = dataclasses.replace(
        mechanism, links=(*mechanism.links, Link("W", ROD)), joints=(*mechanism.joints, wheel), constraints=(train,)
    )
    model = Model(mechanism)
    guess = np.array([*there, -3.0 * there[0]]) + np.array([2 * HALF_TURN, 0.1, -0.1, 0.0])
    q = close_loops(model, guess, np.zeros(4, dtype=bool))
    assert q[3] == pytest.approx(-3.0 * q[0], abs=1e-9)
    every = branches(lengths, there[0] + np.linspace(-10.0, 10.0, 40001))
    turned = np.column_stack([every[:, 0], nearest_turn(every, guess[:3])[:, 1:], -3.0 * every[:, 0]])
    best = np.linalg.norm(turned - guess, axis=1).min()
    assert distance(model, guess, q) <= best + 1e-6


# --- others: scipy from many starts ---------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_slider_crank_takes_the_nearest_branch(seed):
    """Closed form again: 1 m of the slider counts as 1 rad of the crank."""
    random = np.random.default_rng(100 + seed)
    crank, rod = random.uniform(0.2, 0.4), random.uniform(0.5, 1.0)
    joints = [
        ("A", "revolute", "ground", at(), Z),
        ("B", "revolute", "A", at(crank), Z),
        ("S", "prismatic", "ground", at(), X),
    ]
    model = Model(linkage(joints, [pin("S", at(), "B", at(rod))]))
    guess = np.array([*random.uniform(-6.0, 6.0, 2), random.uniform(-1.0, 1.0)])
    A = np.linspace(-HALF_TURN, HALF_TURN, 8001)
    inner = np.arcsin(-crank * np.sin(A) / rod)
    best = np.inf
    for absolute, sign in ((inner, 1), (HALF_TURN - inner, -1)):
        turning = nearest_turn(np.stack([A, absolute - A], 1), guess[:2])
        slider = crank * np.cos(A) + sign * rod * np.cos(inner)
        best = min(best, np.linalg.norm(np.column_stack([turning, slider]) - guess, axis=1).min())
    assert distance(model, guess, close_loops(model, guess, np.zeros(3, dtype=bool))) <= best + 1e-7


def test_a_platform_on_three_legs_is_as_near_as_scipy_finds_one():
    """Universal, prismatic and spherical joints below a free plate: for a pose of the plate each leg has its angles and
    its length in closed form, on four branches."""
    random = np.random.default_rng(300)
    feet = np.array([[np.cos(a), np.sin(a), 0.0] for a in (0.0, 2.1, 4.2)])
    balls = 0.6 * feet @ Rotation.from_euler("z", 0.4).as_matrix().T
    joints, loops = [("plate", "free", "ground", at(), Z)], []
    for k in range(3):
        joints += [(f"foot{k}", "universal", "ground", at(*feet[k]), Z), (f"leg{k}", "prismatic", f"foot{k}", at(), Z)]
        loops.append(pin(f"leg{k}", at(), "plate", at(*balls[k]), "spherical"))
    mechanism = linkage(joints, loops)
    made = [dataclasses.replace(j, second_axis=X) if j.kind == "universal" else j for j in mechanism.joints]
    model = Model(dataclasses.replace(mechanism, joints=tuple(made)))
    turned = Rotation.from_rotvec(random.uniform(-0.8, 0.8, 3))
    legs = np.column_stack([random.uniform(-2.0, 2.0, (3, 2)), random.uniform(0.2, 1.2, 3)])
    guess = np.concatenate([random.uniform(-0.3, 0.3, 2), [0.8], turned.as_quat(), legs.ravel()])

    def distances(pose):
        """Squared distance of the nearest configuration with the plate at this pose."""
        total = pose @ pose
        rotation, origin = (turned * Rotation.from_rotvec(pose[3:])).as_matrix(), guess[:3] + pose[:3]
        for foot, ball, own in zip(feet, balls, legs, strict=True):
            x, y, z = origin + rotation @ ball - foot
            length, options = np.sqrt(x * x + y * y + z * z), []
            for s in (length, -length):
                for b in (np.arccos(z / s), -np.arccos(z / s)):
                    # R_z(a) R_x(b) s e_z = s (sin a sin b, −cos a sin b, cos b)
                    a = np.arctan2(x * s * np.sin(b), -y * s * np.sin(b))
                    off = np.array([*(nearest_turn(np.array([a, b]), own[:2]) - own[:2]), s - own[2]])
                    options.append(off @ off)
            total += min(options)
        return total

    best = np.inf
    for k in range(3):
        start = np.zeros(6) if k == 0 else random.uniform(-1.0, 1.0, 6)
        best = min(best, np.sqrt(minimize(distances, start, method="BFGS", options={"gtol": 1e-7}).fun))
    found = close_loops(model, guess, np.zeros(model.nv, dtype=bool))
    assert distance(model, guess, found) <= best + 1e-5


def test_loops_apart_from_each_other_are_each_nearest():
    """Six four-bars with a guess far from both branches of each."""
    random = np.random.default_rng(7)
    joints, loops, guess, best = [], [], [], 0.0
    for k in range(6):
        lengths, there = random_four_bar(random)
        bars = four_bar(lengths)
        joints += [(f"{j.name}{k}", j.kind, f"A{k}" if j.parent == "A" else "ground", j.pose, Z) for j in bars.joints]
        loops.append(pin(f"C{k}", bars.loops[0].joint.pose, f"B{k}", bars.loops[0].child_pose))
        off = there + np.array([0.0, *random.uniform(-3.0, 3.0, 2)])
        guess += off.tolist()
        best += nearest_of(branches(lengths, there[:1]), off) ** 2
    model, guess = Model(linkage(joints, loops)), np.array(guess)
    order = [model.joint_names.index(joint[0]) for joint in joints]
    q = np.empty(18)
    q[order] = guess
    kept = np.array([name[0] == "A" for name in model.dof_names])
    assert distance(model, q, close_loops(model, q, kept)) <= np.sqrt(best) + 1e-9
