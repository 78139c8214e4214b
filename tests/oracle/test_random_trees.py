"""Random trees of all joints obey the laws of mechanics, written here a second time from geometry alone."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from cosim.compile.jit import vector_lanes
from cosim.multibody import Model
from cosim.multibody.description.diagnostics import Diagnostics
from cosim.multibody.description.topology import build_mechanism, depth_first
from cosim.multibody.equations import ROLLED_FROM
from cosim.multibody.mechanism import Inertial, Joint, Link, Mimic, Pose
from tests.kit.levels import full

MOVING = ("revolute", "continuous", "prismatic")
STEP = 1e-5  # of central differences

# Examples are the same in every run. Plain Python is fast; machine code of a tree takes a while to make.
plain = settings(max_examples=100, deadline=None, derandomize=True, database=None)
compiling = settings(plain, max_examples=25)


# --- random mechanisms ----------------------------------------------------------------------------


class Numbers:
    """Random numbers for the parts of a mechanism; special cases as often as general ones."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def vector(self, n, size=1.0):
        return self.random.uniform(-size, size, n)

    def axis(self):
        """A coordinate axis, either way, or any direction."""
        if self.random.random() < 0.5:
            return np.eye(3)[self.random.integers(3)] * self.random.choice([-1.0, 1.0])
        axis = self.random.normal(size=3)
        return axis / np.linalg.norm(axis)

    def pose(self):
        """At the parent's frame, a quarter turn away, or anywhere."""
        quarter = Rotation.from_rotvec(np.pi / 2 * self.axis()).as_matrix()
        anywhere = Rotation.from_rotvec(3.0 * self.vector(3)).as_matrix()
        rotations = [np.eye(3), np.round(quarter) if abs(quarter).max() > 1 - 1e-9 else quarter, anywhere]
        return Pose(rotations[self.random.integers(3)], self.vector(3) * self.random.integers(2))

    def inertial(self):
        """A solid body: its principal moments are sums of two second moments of its mass."""
        mass = self.random.uniform(0.2, 3.0)
        x, y, z = mass * self.random.uniform(0.01, 0.2, 3)
        turn = Rotation.from_rotvec(3.0 * self.vector(3)).as_matrix()
        return Inertial(mass, self.vector(3, 0.5), turn @ np.diag([y + z, x + z, x + y]) @ turn.T)


@st.composite
def mechanisms(draw, max_joints=8):
    """Any tree of up to `max_joints` joints, at least one of them free; links at fixed joints may be massless."""
    n = draw(st.integers(1, max_joints))
    numbers = Numbers(draw(st.integers(0, 2**32 - 1)))
    kinds = [draw(st.sampled_from((*MOVING, "fixed") if k else MOVING)) for k in range(n)]
    heavy = [kind != "fixed" or draw(st.booleans()) for kind in kinds]
    links = [Link("l0", numbers.inertial())]
    joints = []
    for k, kind in enumerate(kinds):
        parent = f"l{draw(st.integers(0, k))}"
        mimic = None
        leaders = [j.name for j in joints if j.kind != "fixed"]
        if kind != "fixed" and leaders and draw(st.integers(0, 3)) == 0:
            multiplier = draw(st.sampled_from((1.0, -1.0, 0.5, -2.5, 0.0)))
            mimic = Mimic(draw(st.sampled_from(leaders)), multiplier, float(numbers.vector(1)[0]))
        joints.append(Joint(f"j{k}", kind, parent, f"l{k + 1}", numbers.pose(), axis=numbers.axis(), mimic=mimic))
        links.append(Link(f"l{k + 1}", numbers.inertial() if heavy[k] else None))
    return build_mechanism("random", links, draw(st.permutations(joints)), Diagnostics())


@st.composite
def cases(draw, max_joints=8):
    """(model, rotors, numbers): rotors on some joints, gravity in any direction."""
    numbers = Numbers(draw(st.integers(0, 2**32 - 1)))
    model = Model(draw(mechanisms(max_joints)), gravity=numbers.vector(3, 10.0))
    rotors = numbers.random.uniform(0.0, 1.0, model.nv) * numbers.random.integers(0, 2, model.nv)
    return (model.with_rotor_inertia(rotors) if rotors.any() else model), rotors, numbers


def state(model, numbers):
    return numbers.vector(model.nq, 3.0), numbers.vector(model.nv, 2.0)


# --- mechanics from geometry ----------------------------------------------------------------------


def placed(model, q):
    """{link: (rotation, position, J)} in ground axes; J (6, nv): velocity of its origin, angular velocity."""
    index = {name: k for k, name in enumerate(model.joint_names)}
    frames = {model.mechanism.root: (np.eye(3), np.zeros(3), np.zeros((6, model.nv)))}
    for joint in depth_first(model.mechanism):
        rotation, position, jacobian = frames[joint.parent]
        origin = position + rotation @ joint.pose.position
        rotation = rotation @ joint.pose.rotation
        direction, moved, turn = rotation @ joint.axis, np.zeros(3), np.eye(3)
        if joint.kind != "fixed":
            led = joint.mimic or Mimic(joint.name)
            column = index[led.joint]
            angle = led.multiplier * q[column] + led.offset
            if joint.kind == "prismatic":
                moved = angle * direction
            else:
                turn = Rotation.from_rotvec(angle * joint.axis).as_matrix()
        step = origin + moved - position
        jacobian = jacobian.copy()
        jacobian[:3] += np.cross(jacobian[3:].T, step).T
        if joint.kind != "fixed":
            rows = slice(0, 3) if joint.kind == "prismatic" else slice(3, 6)
            jacobian[rows, column] += led.multiplier * direction
        frames[joint.child] = rotation @ turn, position + step, jacobian
    return frames


def masses(model, q):
    """(mass, centre, inertia about it, J of the centre) of every body, in ground axes."""
    for link in model.mechanism.links:
        rotation, position, jacobian = placed(model, q)[link.name]
        if link.inertial is not None:
            arm = rotation @ link.inertial.com
            jacobian = jacobian.copy()
            jacobian[:3] += np.cross(jacobian[3:].T, arm).T
            inertia = rotation @ link.inertial.inertia @ rotation.T
            yield link.inertial.mass, position + arm, inertia, jacobian


def mass_matrix(model, rotors, q):
    total = np.diag(rotors)
    for mass, _, inertia, jacobian in masses(model, q):
        linear, angular = jacobian[:3], jacobian[3:]
        total = total + mass * linear.T @ linear + angular.T @ inertia @ angular
    return total


def grounded(model):
    """The links that do not move: they count in no energy."""
    fixed = {model.mechanism.root}
    for joint in depth_first(model.mechanism):
        if joint.kind == "fixed" and joint.parent in fixed:
            fixed.add(joint.child)
    return fixed


def close(found, expected, relative=1e-11):
    """Whether the largest difference is small beside the largest value (or beside 1)."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    worst = np.abs(found - expected).max(initial=0.0)
    assert worst <= relative * max(1.0, np.abs(expected).max(initial=0.0)), worst


def condition(model, q):
    """By how much solving with M may blow up rounding."""
    return float(np.linalg.cond(model.equations.mass_matrix(q)))


# --- geometry and energy --------------------------------------------------------------------------


@plain
@given(cases())
def test_mass_matrix_is_that_of_the_bodies_and_positive_definite(case):
    model, rotors, numbers = case
    q, _ = state(model, numbers)
    mass = model.equations.mass_matrix(q)
    close(mass, mass_matrix(model, rotors, q))
    close(mass, mass.T)
    assert np.linalg.eigvalsh(mass)[0] > 0.0


@plain
@given(cases())
def test_mass_matrix_has_the_columns_of_inverse_dynamics(case):
    model, _, numbers = case
    q, _ = state(model, numbers)
    rest = np.zeros(model.nv)
    weight = model.equations.inverse_dynamics(q, rest, rest)
    columns = [model.equations.inverse_dynamics(q, rest, unit) - weight for unit in np.eye(model.nv)]
    close(np.transpose(columns), model.equations.mass_matrix(q))


@plain
@given(cases())
def test_energies_are_those_of_the_bodies(case):
    model, rotors, numbers = case
    q, v = state(model, numbers)
    close(model.equations.kinetic_energy(q, v), 0.5 * v @ mass_matrix(model, rotors, q) @ v)
    close(model.equations.kinetic_energy(q, v), 0.5 * v @ model.equations.mass_matrix(q) @ v)
    ground, frames = grounded(model), placed(model, q)
    height = 0.0
    for link in model.mechanism.links:
        if link.inertial is not None and link.name not in ground:
            rotation, position, _ = frames[link.name]
            height -= link.inertial.mass * model.gravity @ (position + rotation @ link.inertial.com)
    close(model.equations.potential_energy(q), height)


@plain
@given(cases())
def test_energy_changes_by_the_power_of_the_efforts(case):
    model, _, numbers = case
    q, v = state(model, numbers)
    tau = numbers.vector(model.nv, 10.0)
    qdd = model.equations.forward_dynamics(q, v, tau)

    def energy(t):
        there, fast = q + v * t + qdd * t * t / 2, v + qdd * t
        return model.equations.kinetic_energy(there, fast) + model.equations.potential_energy(there)

    # the step is small beside the time in which the motion changes
    step = STEP / max(1.0, math.sqrt(np.abs(qdd).max()))
    rate = (energy(step) - energy(-step)) / (2 * step)
    assert rate == pytest.approx(v @ tau, rel=1e-5, abs=1e-4)


@plain
@given(cases(), st.integers(0, 8))
def test_frames_are_where_geometry_puts_them(case, which):
    model, _, numbers = case
    q, _ = state(model, numbers)
    link = model.mechanism.links[which % len(model.mechanism.links)].name
    rotation, position, jacobian = placed(model, q)[link]
    pose = model._definition("frame_pose", link)[0](q)
    close(pose[:3], np.column_stack([rotation, position]), 1e-12)
    assert pose[3].tolist() == [0.0, 0.0, 0.0, 1.0]
    close(model._definition("frame_jacobian", link)[0](q), jacobian, 1e-12)


@plain
@given(cases(), st.integers(0, 8))
def test_jacobian_is_the_difference_quotient_of_the_pose(case, which):
    model, _, numbers = case
    q, v = state(model, numbers)
    link = model.mechanism.links[which % len(model.mechanism.links)].name
    pose = model._definition("frame_pose", link)[0]
    ahead, behind = pose(q + STEP * v), pose(q - STEP * v)
    rate = (ahead - behind) / (2 * STEP)
    spin = rate[:3, :3] @ pose(q)[:3, :3].T
    angular = [spin[2, 1], spin[0, 2], spin[1, 0]]
    expected = model._definition("frame_jacobian", link)[0](q) @ v
    np.testing.assert_allclose(np.concatenate([rate[:3, 3], angular]), expected, rtol=1e-6, atol=1e-6)


@plain
@given(cases())
def test_momentum_is_the_sum_over_the_links(case):
    """Its linear part is the mass times the velocity of the centre of mass, and its rate at rest the weight."""
    model, _, numbers = case
    q, v = state(model, numbers)
    equations, mass = model.equations, sum(body.mass for body in model.equations.tree.bodies)
    momentum, matrix = equations.centroidal_momentum(q, v), equations.centroidal_momentum_matrix(q)
    close(matrix @ v, momentum, 1e-12)
    if not mass:
        return
    ahead, behind = (equations.center_of_mass(q + sign * STEP * v) for sign in (1.0, -1.0))
    velocity = (ahead - behind) / (2 * STEP)
    np.testing.assert_allclose(equations.center_of_mass_jacobian(q) @ v, velocity, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(momentum[:3], mass * velocity, rtol=1e-6, atol=1e-6)
    # the effort of gravity is the gradient of its energy
    ahead, behind = (equations.potential_energy(q + sign * STEP * v) for sign in (1.0, -1.0))
    np.testing.assert_allclose(equations.gravity_effort(q) @ v, (ahead - behind) / (2 * STEP), rtol=1e-6, atol=1e-6)
    close(equations.mass_matrix(q) @ v + equations.nonlinear_effects(q, v), equations.inverse_dynamics(q, v, v), 1e-12)


# --- dynamics -------------------------------------------------------------------------------------


@plain
@given(cases())
def test_forward_dynamics_undoes_inverse_dynamics(case):
    model, _, numbers = case
    q, v = state(model, numbers)
    qdd, tau = numbers.vector(model.nv, 10.0), numbers.vector(model.nv, 10.0)
    room = 1e-13 * condition(model, q)
    close(model.equations.forward_dynamics(q, v, model.equations.inverse_dynamics(q, v, qdd)), qdd, room)
    close(model.equations.inverse_dynamics(q, v, model.equations.forward_dynamics(q, v, tau)), tau, room)


@plain
@given(cases(), st.lists(st.booleans(), min_size=8, max_size=8))
def test_hybrid_dynamics_solves_the_equations_of_motion(case, mask):
    """M q̈ + bias = τ holds, what was given is passed through to the bit."""
    model, _, numbers = case
    q, v = state(model, numbers)
    given_qdd, given_tau = numbers.vector(model.nv, 10.0), numbers.vector(model.nv, 10.0)
    held = np.array(mask[: model.nv])
    qdd, tau = model.equations.hybrid_dynamics(q, v, given_qdd, given_tau, held)
    np.testing.assert_array_equal(qdd[held], given_qdd[held])
    np.testing.assert_array_equal(tau[~held], given_tau[~held])
    mass = model.equations.mass_matrix(q)
    bias = model.equations.inverse_dynamics(q, v, np.zeros(model.nv))
    room = 1e-13 * condition(model, q)
    close(mass @ qdd + bias, tau, room)
    free = ~held
    known = given_tau[free] - bias[free] - mass[np.ix_(free, held)] @ given_qdd[held]
    close(qdd[free], np.linalg.solve(mass[np.ix_(free, free)], known), room)


# --- machine code ---------------------------------------------------------------------------------


def arguments(model, numbers, rows=()):
    """Named arguments of all functions, one state or `rows` of them."""
    n = model.nv
    named = {name: numbers.random.uniform(-3.0, 3.0, (*rows, n)) for name in ("q", "v", "qdd", "tau")}
    return named | {"prescribed": numbers.random.random((*rows, n)) < 0.5}


FUNCTIONS = (
    "forward_dynamics",
    "inverse_dynamics",
    "hybrid_dynamics",
    "friction_effort",
    "mass_matrix",
    "kinetic_energy",
    "potential_energy",
    "nonlinear_effects",
    "gravity_effort",
    "center_of_mass",
    "center_of_mass_jacobian",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "frame_pose",
    "frame_jacobian",
)


def evaluated(model, name):
    """(compiled function, plain function), the values of both as tuples."""
    frame = model.mechanism.links[-1].name if name.startswith("frame") else None
    compiled, plain = model.compiled(name, frame), model._definition(name, frame)[0]

    def as_tuple(function):
        def call(*arguments):
            values = function(*arguments)
            return values if isinstance(values, tuple) else (values,)

        return call

    return compiled, as_tuple(compiled), as_tuple(plain)


def check_machine_code(model, numbers, name):
    compiled, found, expected = evaluated(model, name)
    for _ in range(3):
        values = arguments(model, numbers)
        chosen = [values[port.name] for port in compiled.inputs]
        room = 1e-13 * condition(model, values["q"]) if "dynamics" in name else 1e-12
        for one, other in zip(found(*chosen), expected(*chosen), strict=True):
            close(one, other, room)


def check_batch(model, numbers, name, rows):
    compiled, found, _ = evaluated(model, name)
    values = arguments(model, numbers, (rows,))
    chosen = [values[port.name] for port in compiled.inputs]
    together = found(*chosen)
    assert [part.shape for part in together] == [(rows, *port.shape) for port in compiled.outputs]
    for row in range(rows):
        for part, alone in zip(together, found(*(value[row] for value in chosen)), strict=True):
            np.testing.assert_array_equal(part[row], alone)


@compiling
@given(cases(max_joints=5), st.sampled_from(FUNCTIONS))
def test_machine_code_is_the_python_function(case, name):
    model, _, numbers = case
    check_machine_code(model, numbers, name)


@compiling
@given(cases(max_joints=5), st.sampled_from(FUNCTIONS), st.integers(0, 3 * vector_lanes() + 1))
def test_a_batch_is_its_rows_to_the_bit(case, name, rows):
    model, _, numbers = case
    check_batch(model, numbers, name, rows)


# --- trees of many bodies, whose sweeps are loops in machine code ---------------------------------


def branched(seed, joints=70):
    """A tree of long branches with joints of all kinds, one mimic, and rotors."""
    numbers = Numbers(seed)
    kinds = numbers.random.choice([*MOVING, "fixed"], joints)
    kinds[:2], leader = "revolute", "j0"
    parts = [
        Joint(
            f"j{k}",
            str(kind),
            f"l{numbers.random.integers(max(0, k - 3), k + 1)}",
            f"l{k + 1}",
            numbers.pose(),
            axis=numbers.axis(),
            mimic=Mimic(leader, -0.5, 0.3) if k == 1 else None,
        )
        for k, kind in enumerate(kinds)
    ]
    links = [Link(f"l{k}", numbers.inertial()) for k in range(joints + 1)]
    model = Model(build_mechanism("branched", links, parts, Diagnostics()), gravity=(1.0, -2.0, -9.0))
    return model.with_rotor_inertia(numbers.random.uniform(0.0, 1.0, model.nv)), numbers


@full
@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics", "hybrid_dynamics"])
def test_many_bodies(name):
    model, numbers = branched(7)
    assert len(model.equations.sweeps.parents) >= ROLLED_FROM
    check_machine_code(model, numbers, name)
    check_batch(model, numbers, name, 2 * vector_lanes() + 1)
