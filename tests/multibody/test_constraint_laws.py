"""Constraint laws: rates and reactions against differences; springs between bodies."""

import dataclasses
from functools import partial

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cosim.core import ops
from cosim.mechanics.multibody import Model
from cosim.mechanics.multibody.constraint_laws import (
    WRENCH,
    ConstraintLaw,
    FrameState,
    ReactionSpec,
    coupling,
    distance,
    gear,
    knife_edge,
    loop_closure,
    point_on_curve,
    polynomial,
    relative_pose,
    rolling,
)
from cosim.mechanics.multibody.joints import GENERAL, JOINTS, kind_of
from cosim.mechanics.multibody.mechanism import (
    Constraint,
    Inertial,
    Joint,
    Link,
    Mechanism,
    Pose,
    Spring,
)
from cosim.simulation.plant.recorded_reactions import OF_A_CONSTRAINT, drift_signal
from tests.multibody.random_frames import CLOSURES, STEP, heavy, random_pose, turn


def bodies(random):
    """A floating body with a hinge and a ball joint on it."""
    kinds, parents = ("free", "revolute", "spherical", "prismatic"), ("ground", "a", "b", "a")
    tree = tuple(
        Joint(f"to_{c}", kind, parent, c, random_pose(random), turn(random)[2])
        for c, kind, parent in zip("abcd", kinds, parents, strict=True)
    )
    return (Link("ground"), *(heavy(name, random, spread=(0.05, 0.2)) for name in "abcd")), tree


EFFORT = ReactionSpec("effort", "N*m", "rad")


def _swaying(q, t):
    """A timed law of a slider and a hinge."""
    return ops.array([q[0] + ops.sin(2.0 * t) * q[1], q[0] * q[1] - t * t])


def _steered(frames, q, v, t):
    """A rate that mixes velocities of a frame, of a joint, and time."""
    return ops.array([frames[0].angular[2] * q[0] + ops.cos(t) * v[0] - frames[0].linear[0] - t])


# law, links of its frames, joints
LAWS = {
    "distance": (distance(0.7), ("b", "c"), ()),
    "distance to the ground": (distance(0.7), ("ground", "d"), ()),
    "curve": (point_on_curve([0.1, -0.4, 0.2, 0.05]), ("d", "c"), ()),
    "gear": (gear(-2.5, 0.3), (), ("to_b", "to_d")),
    "coupling": (coupling(_swaying, [EFFORT, EFFORT], True), (), ("to_b", "to_d")),
    "quaternions": (coupling(lambda q, t: ops.array([q[3] * q[0] - q[4]]), [EFFORT], False), (), ("to_c", "to_b")),
    "quaternions of two": (
        coupling(lambda q, t: ops.array([q[4] * q[0] - q[1] * q[8] + q[2]]), [EFFORT], False),
        (),
        ("to_b", "to_c", "to_a"),
    ),
    "knife": (knife_edge(), ("d", "c"), ()),
    "knife on the ground": (knife_edge(), ("ground", "b"), ()),
    "rolling": (rolling(0.3), ("ground", "c"), ()),
    "own rate": (ConstraintLaw((ReactionSpec("force", "N", "m/s"),), None, _steered, True), ("c",), ("to_b",)),
}
LAWS |= {  # c and d have five degrees of freedom against each other
    f"{name} cut": (loop_closure([EFFORT] * (6 - kind.nv), kind.closure), ("d" if kind.nv > 1 else "ground", "c"), ())
    for name, kind in CLOSURES.items()
}


def tied(name, seed, **more):
    """(model with one law, random numbers)"""
    random = np.random.default_rng(seed)
    links, tree = bodies(random)
    law, ends, names = LAWS[name]
    frames = tuple(
        (end, Pose.identity() if name == "rolling" and end == "ground" else random_pose(random)) for end in ends
    )
    mechanism = Mechanism("m", "ground", links, tree, constraints=(Constraint("tie", law, frames, names),))
    return Model(mechanism, random.uniform(-10, 10, 3), **more), random


def timed(model, t):
    return (t,) if model.equations.timed else ()


@pytest.mark.parametrize(("name", "omega"), [(name, (0.0, 3.0)[k % 2]) for k, name in enumerate(LAWS)])
def test_rows_along_a_motion(name, omega):
    """ḟ is the derivative of f, and the motion keeps f̈ + 2ω ḟ + ω² f = 0, ȧ + ω a = 0 of rows without f.

    The states satisfy no constraint: nothing here rests on f = 0.
    """
    model, random = tied(name, 7, baumgarte_rate=omega)
    equations, t = model.equations, 0.6
    holonomic = np.array(equations.constraints.holonomic)
    for _ in range(2):
        q, (v, tau) = model.random_configuration(random), random.uniform(-1, 1, (2, model.nv))
        acceleration = equations.forward_dynamics(q, v, tau, t)

        def along(s, q=q, v=v, a=acceleration):
            return equations.constraint_violation(equations.integrate(q, v * s + a * s * s / 2), v + a * s, t + s)

        (f1, rate1), (f0, rate0), (f, rate) = along(STEP), along(-STEP), along(0.0)
        assert (len(f), len(rate)) == (holonomic.sum(), len(model.constraint_rows))
        np.testing.assert_allclose((f1 - f0) / (2 * STEP), rate[holonomic], atol=1e-7 * max(1.0, np.abs(rate).max()))
        expected = -np.where(holonomic, 2.0 * omega, omega) * rate
        expected[holonomic] -= omega**2 * f
        scale = max(1.0, np.abs(acceleration).max()) ** 2
        np.testing.assert_allclose((rate1 - rate0) / (2 * STEP), expected, atol=1e-7 * scale)


@pytest.mark.parametrize("name", LAWS)
def test_reactions_act_along_the_rows(name):
    """M q̈ + h − τ = Gᵀ λ, with G from rates at unit velocities."""
    model, random = tied(name, 11)
    equations, t = model.equations, 0.4
    for _ in range(2):
        q, (v, tau) = model.random_configuration(random), random.uniform(-2, 2, (2, model.nv))
        still = equations.constraint_violation(q, np.zeros(model.nv), t)[1]
        G = np.transpose([equations.constraint_violation(q, unit, t)[1] - still for unit in np.eye(model.nv)])
        np.testing.assert_allclose(G @ v + still, equations.constraint_violation(q, v, t)[1], atol=1e-12)
        np.testing.assert_allclose(equations.constraint_jacobian(q, t), G, atol=1e-12)
        acceleration, reaction = equations.forward_dynamics(q, v, tau, t), equations.reactions(q, v, tau, t)
        bias = equations.inverse_dynamics(q, v, np.zeros(model.nv), t)
        missing = equations.mass_matrix(q, t) @ acceleration + bias - tau
        np.testing.assert_allclose(missing, G.T @ reaction, atol=1e-9 * max(1.0, np.abs(reaction).max()))


COMPILED = ["distance", "curve", "coupling", "quaternions of two", "knife", "rolling", "own rate", "screw cut"]


@pytest.mark.parametrize("name", COMPILED)
def test_machine_code_of_a_law_is_its_python(name):
    """Each row of a batch to the bit, and all as in plain Python."""
    model, random = tied(name, 13)
    q = np.array([model.random_configuration(random) for _ in range(3)])
    v, t = random.uniform(-1, 1, (3, model.nv)), timed(model, np.array([0.1, 0.2, 0.3]))
    together = model.constraint_violation(q, v, *t)
    accelerations = model.forward_dynamics(q, v, 0.0 * v, *t)
    for k in range(3):
        now = [each[k] for each in t]
        for batch, alone, plain in zip(
            together,
            model.constraint_violation(q[k], v[k], *now),
            model.equations.constraint_violation(q[k], v[k], *now),
            strict=True,
        ):
            np.testing.assert_array_equal(batch[k], alone)
            np.testing.assert_allclose(alone, plain, atol=1e-12)
        plain = model.equations.forward_dynamics(q[k], v[k], 0.0 * v[k], *now)
        np.testing.assert_allclose(accelerations[k], plain, atol=1e-9 * max(1.0, np.abs(plain).max()))


def moving_frame(random, still=False):
    rates = np.zeros((2, 3)) if still else random.uniform(-1, 1, (2, 3))
    return FrameState(turn(random), random.uniform(-1, 1, 3), *rates)


def later(frame, s):
    turned = Rotation.from_rotvec(frame.angular * s).as_matrix() @ frame.rotation
    return FrameState(turned, frame.position + frame.linear * s)


@pytest.mark.parametrize("seed", range(2))
def test_residuals_of_laws(seed):
    """Rates and residuals from geometry: a knife does not slip sideways, a disk's lowest point does not move."""
    random = np.random.default_rng(seed)
    base, edge = moving_frame(random), moving_frame(random)
    ahead, behind = (relative_pose(later(base, s), later(edge, s))[1] for s in (STEP, -STEP))
    slip = (ahead - behind) / (2 * STEP) @ (base.rotation.T @ edge.rotation[:, 1])
    np.testing.assert_allclose(knife_edge().rate([base, edge], (), (), 0.0), [slip], atol=1e-8)
    length = np.linalg.norm(edge.position - base.position)
    np.testing.assert_allclose(distance(length).residual([base, edge], (), 0.0), [0.0], atol=1e-15)
    np.testing.assert_allclose(distance(length / 3).residual([base, edge], (), 0.0), [length / 1.5])
    x, y, _ = relative_pose(base, edge)[1]
    np.testing.assert_allclose(
        point_on_curve([0.0, 2.0]).residual([base, edge], (), 0.0), [(y - 2.0 * x) / np.sqrt(5.0)]
    )

    ground, angles = moving_frame(random, still=seed == 0), np.linspace(0.0, 2.0 * np.pi, 40_001)
    rim = 0.3 * np.column_stack([np.cos(angles), np.sin(angles), 0.0 * angles]) @ edge.rotation.T
    heights = (edge.position + rim - ground.position) @ ground.rotation[:, 2]
    point = rim[heights.argmin()]
    under = ground.linear + np.cross(ground.angular, edge.position + point - ground.position)
    velocity = ground.rotation.T @ (edge.linear + np.cross(edge.angular, point) - under)
    law = rolling(0.3)
    np.testing.assert_allclose(law.residual([ground, edge], (), 0.0), [heights.min()], atol=1e-8)
    np.testing.assert_allclose(law.rate([ground, edge], (), (), 0.0), velocity[:2], atol=1e-4)


def test_polynomials_are_those_of_numpy():
    coefficients = [0.3, -1.0, 0.0, 2.5]
    for x in (-1.5, 0.0, 0.7):
        assert polynomial(coefficients)(x) == pytest.approx(np.polynomial.Polynomial(coefficients)(x), rel=1e-14)
    assert polynomial([])(3.0) == 0.0
    assert polynomial([4.0])(3.0) == 4.0


def test_rows_have_names_and_units():
    assert tied("rolling", 0)[0].constraint_rows == ("tie/force_z", "tie/force_x", "tie/force_y")
    assert [row.unit for row in gear(1.0).rows + gear(1.0, unit="m").rows] == ["N*m", "N"]


SPRINGS = (
    Spring("post", (("ground", np.array([0.5, 0.5, 2.0])), ("c", np.array([1.0, 0.0, 0.0]))), 300.0, 20.0, 0.4),
    Spring("brace", (("b", np.array([0.0, 1.0, 0.0])), ("d", np.array([0.1, 0.0, 0.2]))), 150.0, 5.0, 0.1),
)


def test_springs_act_against_their_energy():
    """What springs take in the joints does their work: v·τ = Ė of the springs + what dampers take."""
    random = np.random.default_rng(12)
    links, tree = bodies(random)
    mechanism = Mechanism("m", "ground", links, tree, springs=SPRINGS)
    sprung, free = Model(mechanism), Model(dataclasses.replace(mechanism, springs=()))
    for _ in range(2):
        q, (v, qdd) = sprung.random_configuration(random), random.uniform(-1, 1, (2, sprung.nv))
        taken = sprung.equations.inverse_dynamics(q, v, qdd) - free.equations.inverse_dynamics(q, v, qdd)
        ahead, behind = (sprung.equations.elastic_energy(sprung.equations.integrate(q, s * v)) for s in (STEP, -STEP))
        power = (ahead - behind) / (2 * STEP) + sprung.equations.damper_loss(q, v)
        assert v @ taken == pytest.approx(power, rel=1e-6)
        found = sprung.equations.forward_dynamics(q, v, taken)
        np.testing.assert_allclose(found, free.equations.forward_dynamics(q, v, 0.0 * v), rtol=1e-9, atol=1e-9)
        still = (model.equations.inverse_dynamics(q, 0.0 * v, qdd) for model in (sprung, free))
        held = taken - next(still) + next(still)
        assert v @ held == pytest.approx(sprung.equations.damper_loss(q, v), rel=1e-6)


def on_a_rail():
    rail = Joint("slide", "prismatic", "ground", "mass", Pose.identity(), np.eye(3)[0])
    mass = Link("mass", Inertial(2.0, np.zeros(3), np.eye(3)))
    spring = Spring("spring", (("ground", np.zeros(3)), ("mass", np.zeros(3))), 30.0, 4.0, 0.5)
    return Model(Mechanism("m", "ground", (Link("ground"), mass), (rail,), springs=(spring,)))


def test_a_spring_pulls_by_its_law():
    """A mass on a rail, its spring along the rail: m ẍ = −k (x − l) − d ẋ."""
    model = on_a_rail()
    for x, v in ((0.8, 0.0), (0.3, 0.7), (-0.9, -1.5)):
        stretch, rate = abs(x) - 0.5, v * np.sign(x)
        expected = -np.sign(x) * (30.0 * stretch + 4.0 * rate) / 2.0
        np.testing.assert_allclose(model.forward_dynamics([x], [v], [0.0]), [expected], rtol=1e-12)
        assert model.equations.elastic_energy(np.array([x])) == pytest.approx(15.0 * stretch**2)
        assert model.equations.damper_loss(np.array([x]), np.array([v])) == pytest.approx(4.0 * v**2)


def test_a_spring_whose_ends_coincide():
    """It has no direction there, and pulls nowhere; in Python as in machine code."""
    model = on_a_rail()
    q, v, tau = np.zeros(1), np.ones(1), np.array([3.0])
    for found in (model.forward_dynamics(q, v, tau), model.equations.forward_dynamics(q, v, tau)):
        np.testing.assert_array_equal(found, [1.5])
    assert model.equations.damper_loss(q, v) == 0.0
    assert model.equations.elastic_energy(q) == pytest.approx(15.0 * 0.25)


def _general_frames(random):
    return [FrameState(turn(random), *random.normal(size=(3, 3))) for _ in range(2)]


def _larger(frames, scale):
    """The same motion of a mechanism that is larger by a factor."""
    return [FrameState(f.rotation, scale * f.position, f.angular, scale * f.linear) for f in frames]


def _of_a_loop(kind, size):
    found = kind_of(Joint("", kind, "", "", Pose.identity(), pitch=0.3 * size))
    assert found.closure is not None
    return loop_closure([WRENCH[name] for name in found.reactions.split()], found.closure)


# law of a mechanism of a size
OF_A_SIZE = {
    **{
        kind: partial(_of_a_loop, kind)
        for kind, row in JOINTS.items()
        if kind != GENERAL and row.kind(Joint("", kind, "", "", Pose.identity(), pitch=1.0)).closure
    },
    "distance": lambda size: distance(0.7 * size),
    "curve": lambda size: point_on_curve([0.2 * size, 0.5, 0.3 / size]),
    "knife edge": lambda size: knife_edge(),
    "rolling": lambda size: rolling(0.2 * size),
}


@pytest.mark.parametrize("name", OF_A_SIZE)
def test_residuals_have_the_units_of_their_rows(name):
    """Lengths and velocities grow with the mechanism, angles do not; the violation is in m where a row is."""
    random, scale = np.random.default_rng(5), 3.0
    frames, none = _general_frames(random), np.zeros(0)
    small, large = OF_A_SIZE[name](1.0), OF_A_SIZE[name](scale)
    values = []
    for law, given in ((small, frames), (large, _larger(frames, scale))):
        parts = [] if law.residual is None else [law.residual(given, none, 0.0)]
        parts += [] if law.rate is None else [law.rate(given, none, none, 0.0)]
        values.append(np.concatenate([np.ravel(part) for part in parts]).astype(float))
    units = [row.residual_unit for row in small.rows]
    assert {*units} <= {"m", "rad", "m/s"} and np.abs(values[0]).min() > 1e-6
    np.testing.assert_allclose(
        values[1], [scale ** (unit != "rad") * x for unit, x in zip(units, values[0], strict=True)]
    )
    for signal, of in zip(OF_A_CONSTRAINT.values(), _holonomic_first(units), strict=True):
        if of:
            unit = drift_signal(signal, of).unit
            assert unit == (of[0] if {*of} == {"rad"} else "m" + "/s" * of[0].endswith("/s"))


def _holonomic_first(units):
    return [unit for unit in units if not unit.endswith("/s")], [unit for unit in units if unit.endswith("/s")]


def test_the_order_of_rows_does_not_choose_the_unit_of_their_violation():
    signal = OF_A_CONSTRAINT["violation"]
    for units in (["rad", "m"], ["m", "rad"]):
        found = drift_signal(signal, units)
        assert found.unit == "m" and found.meaning.endswith("1 rad counts as 1 m")
    assert drift_signal(signal, ["rad", "rad"]) == dataclasses.replace(signal, unit="rad")
