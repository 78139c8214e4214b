"""Random trees of all joints: the functions of a model agree with each other, in Python, machine code and batches."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from cosim.core.compile.jit import vector_lanes
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.description.diagnostics import Diagnostics
from cosim.mechanics.multibody.description.topology import build_mechanism
from cosim.mechanics.multibody.equations import ROLLED_FROM
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Mimic, Pose
from tests.multibody.random_frames import close

MOVING = ("revolute", "continuous", "prismatic")
STEP = 1e-5  # of central differences

# Examples are the same in every run. Plain Python is fast; machine code of a tree takes a while to make.
plain = settings(max_examples=50)
compiling = settings(plain, max_examples=15)


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
    """(model, numbers): rotors on some joints, gravity in any direction."""
    numbers = Numbers(draw(st.integers(0, 2**32 - 1)))
    model = Model(draw(mechanisms(max_joints)), gravity=numbers.vector(3, 10.0))
    rotors = numbers.random.uniform(0.0, 1.0, model.nv) * numbers.random.integers(0, 2, model.nv)
    return (model.with_rotor_inertia(rotors) if rotors.any() else model), numbers


def condition(model, q):
    """By how much solving with M may blow up rounding."""
    return float(np.linalg.cond(model.equations.mass_matrix(q)))


@plain
@given(cases(), st.lists(st.booleans(), min_size=8, max_size=8))
def test_the_functions_of_a_model_agree(case, mask):
    """M of the inverse dynamics, M q̈ + bias = τ, the energy's change is the power; quantities themselves are compared
    with Pinocchio."""
    model, numbers = case
    e, still, n = model.equations, np.zeros(model.nv), model.nv
    q, v, qdd, tau = (
        numbers.vector(model.nq, 3.0),
        numbers.vector(n, 2.0),
        numbers.vector(n, 10.0),
        numbers.vector(n, 10.0),
    )
    mass, bias, room = e.mass_matrix(q), e.inverse_dynamics(q, v, still), 1e-13 * condition(model, q)
    columns = [e.inverse_dynamics(q, still, unit) - e.inverse_dynamics(q, still, still) for unit in np.eye(n)]
    close(np.reshape(columns, (n, n)).T, mass, 1e-11)
    assert np.linalg.eigvalsh(mass)[0] > 0.0
    close(e.kinetic_energy(q, v), 0.5 * v @ mass @ v, 1e-11)
    held = np.array(mask[:n])
    found = e.hybrid_dynamics(q, v, qdd, tau, held)
    np.testing.assert_array_equal(found[0][held], qdd[held])
    np.testing.assert_array_equal(found[1][~held], tau[~held])
    close(mass @ found[0] + bias, found[1], room)
    acceleration = e.forward_dynamics(q, v, tau)
    close(mass @ acceleration + bias, tau, room)

    def energy(t):
        there = q + v * t + acceleration * t * t / 2
        return e.kinetic_energy(there, v + acceleration * t) + e.potential_energy(there)

    # the step is small beside the time in which the motion changes
    step = STEP / max(1.0, math.sqrt(np.abs(acceleration).max()))
    assert (energy(step) - energy(-step)) / (2 * step) == pytest.approx(v @ tau, rel=1e-5, abs=1e-4)


def arguments(model, numbers, rows=()):
    """Named arguments of all functions, one state or `rows` of them."""
    n = model.nv
    named = {name: numbers.random.uniform(-3.0, 3.0, (*rows, n)) for name in ("q", "v", "qdd", "tau")}
    return named | {"prescribed": numbers.random.random((*rows, n)) < 0.5}


FUNCTIONS = [
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
]


def evaluated(model, name):
    """(compiled function, plain function), the values of both as tuples."""
    frame = model.mechanism.links[-1].name if name.startswith("frame") else None
    compiled, plain = model.compiled(name, frame), model.code.definition(name, frame)[0]

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
@given(cases(max_joints=5), st.sampled_from(FUNCTIONS), st.integers(0, 3 * vector_lanes() + 1))
def test_machine_code_is_the_python_function_and_a_batch_its_rows_to_the_bit(case, name, rows):
    model, numbers = case
    check_machine_code(model, numbers, name)
    check_batch(model, numbers, name, rows)


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


def test_many_bodies():
    model, numbers = branched(7)
    assert len(model.equations.sweeps.parents) >= ROLLED_FROM
    check_machine_code(model, numbers, "hybrid_dynamics")
    check_batch(model, numbers, "hybrid_dynamics", 2 * vector_lanes() + 1)
