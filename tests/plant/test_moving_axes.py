"""Velocities along axes that turn with a body: momentum, straight lines, energy and order, of every integrator."""

import numpy as np
import pytest

from cosim.core.compile import ArrayPort, compile
from cosim.core.compile.routine import Routine
from cosim.core.compile.while_loop import WhileLoop
from cosim.mechanics.integrators.methods import INTEGRATORS
from cosim.mechanics.multibody.coordinates import MOTION, ROTATION, numbers, rotation_of
from cosim.mechanics.multibody.joints import GENERAL, JOINTS, kind_of
from cosim.mechanics.multibody.mechanism import Joint, Pose
from tests.plant.test_integration import RIGS, March, order_of

MASS, INERTIA, SPIN = 2.0, np.array([0.02, 0.03, 0.04]), np.array([3.0, 20.0, 2.0])
FAST = float(np.linalg.norm(SPIN))  # rad/s
TOLERANCE = {"rodas4": ("schedule.tolerance=0.1",)}
ORDER = {"semi_implicit_euler": 1, "multirate": 2, "rosenbrock": 2, "rk4": 4, "rodas4": 4, "moreau": 2}
# error of momentum and energy over (angle per step)^order, of a body that tumbles for 10⁴ steps
CONSTANT = {
    "semi_implicit_euler": 0.5,
    "multirate": 0.5,
    "rosenbrock": 20.0,
    "rk4": 200.0,
    "rodas4": 200.0,
    "moreau": 0.5,
}


def tumbling(kind, com=(0.0, 0.0, 0.0)):
    """A body without forces, free or on a ball joint in its centre of mass."""
    straight = "b.x: {initial: {velocity: 1}}, " if kind == "free" else ""
    spins = ", ".join(f"b.r{axis}: {{initial: {{velocity: {w}}}}}" for axis, w in zip("xyz", SPIN, strict=True))
    return f"""
mechanism:
  gravity: [0, 0, 0]
  bodies: [{{name: b, type: {kind}, mass: {MASS}, com: {list(com)}, inertia: {INERTIA.tolist()}}}]
joints: {{{straight}{spins}}}
"""


def moving_kinds():
    """The kinds of joints whose velocities are along axes that turn."""
    kinds = {name: kind_of(Joint("", name, "", "", Pose.identity(), pitch=1.0)) for name in JOINTS if name != GENERAL}
    return [name for name, kind in kinds.items() if kind.space.axes]


def march(rig, h, n, stride=10):
    """(q, v) of the states after every `stride` of n steps, by machine code in one call per state."""
    model, step = rig.tick_model, rig.tick_model.integration.advance
    request = np.zeros(model.nv)
    one = Routine(lambda x: (step(0.0, x, request, h), 1.0), [(model.nx,)], "one_step")
    some = compile(lambda x: WhileLoop(one, stride)(x)[0], [ArrayPort("x", (model.nx,))], "some", interpret=False)
    x, found = model.plant.layout.pack(model.plant.initial()), []
    for _ in range(n // stride):
        x = np.array(some(x), dtype=float)
        found.append(model.plant.layout.unpack(x))
    return np.array([s["position"] for s in found]), np.array([s["velocity"] for s in found])


def ground_axes(q, vectors):
    return np.array([np.array(rotation_of(each), dtype=float) @ u for each, u in zip(q, vectors, strict=True)])


def test_velocities_that_are_no_rates_of_coordinates_have_axes_that_turn():
    """What remains constant in ground axes: v̇ = `transport`, and `turned` is what a long sum of small steps gives."""
    assert moving_kinds() == ["spherical", "free"] and numbers(2).axes is None
    rng = np.random.default_rng(0)
    for space, linear in ((ROTATION, 0), (MOTION, 3)):
        v = rng.normal(size=space.nv)
        q = space.integrate(space.neutral, rng.normal(size=space.nv))
        d = 1e-3 * v
        later = space.normalised(q + space.rate(q, d))
        before, after = rotation_of(q[linear and 3 :]), rotation_of(later[linear and 3 :])
        assert space.axes is not None
        turned = space.axes.turned(v, d)
        for part in (slice(0, 3), slice(linear, linear + 3)):
            np.testing.assert_allclose(after @ turned[part], before @ v[part], rtol=1e-14)
        np.testing.assert_allclose(space.axes.turned(turned, -d), v, rtol=1e-14)
        np.testing.assert_allclose(
            (turned - v) / 1e-3, space.axes.transport(v), atol=1e-3 * (1.0 + np.abs(v).max() ** 3)
        )


@pytest.mark.parametrize("kind", moving_kinds())
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_body_without_forces_keeps_momentum_and_energy(rig_of, integrator, kind):
    """10⁴ steps in each of which it turns by 0.02 rad; the line of the free body is straight to rounding where the
    velocity is along fixed axes within a step."""
    h, n = 1e-3, 10_000
    rig = rig_of(tumbling(kind), f"schedule.integrator={integrator}", *TOLERANCE.get(integrator, ()))
    q, v = march(rig, h, n)
    small = CONSTANT[integrator] * (h * FAST) ** ORDER[integrator]
    momentum = ground_axes(q[:, -4:], v[:, -3:] * INERTIA)
    start = SPIN * INERTIA
    assert np.abs(momentum - start).max() < small * np.linalg.norm(start)
    energy = 0.5 * (v[:, -3:] ** 2) @ INERTIA
    assert np.abs(energy / (0.5 * SPIN**2 @ INERTIA) - 1.0).max() < small
    if kind == "free":
        exact = integrator in ("semi_implicit_euler", "multirate", "moreau")
        t = h * np.arange(10, n + 1, 10)
        speed = ground_axes(q[:, -4:], v[:, :3])
        assert np.abs(speed - [1.0, 0.0, 0.0]).max() < (1e-12 if exact else small)
        assert np.abs(q[:, :3] - np.outer(t, [1.0, 0.0, 0.0])).max() < (1e-11 if exact else small * t[-1])


def test_the_energy_of_a_tumbling_body_changes_with_the_third_power_of_the_step(rig_of):
    """By less than the fourth power of the angle per step, in each step: plain Euler steps add its square."""
    text = tumbling("spherical")
    for h in (2e-3, 4e-3):
        _, v = march(rig_of(text, "schedule.integrator=semi_implicit_euler"), h, 10_000)
        energy = 0.5 * (v**2) @ INERTIA / (0.5 * SPIN**2 @ INERTIA)
        mean = np.array([part.mean() for part in np.array_split(energy, 4)])
        assert abs(mean[-1] - mean[0]) < 0.25 * 10_000 * (h * FAST) ** 4


BALL = """
mechanism:
  gravity: [0, 0, -9.81]
  bodies:
    - {name: hull, type: free, mass: 1 kg, com: [0.03, -0.05, 0.02], inertia: [0.02, 0.03, 0.01]}
    - {name: arm, parent: hull, type: spherical, mass: 0.5 kg, com: [0.1, 0, 0.1], inertia: [0.002, 0.003, 0.001]}
    - {name: wheel, parent: hull, axis: [1, 1, 0], mass: 0.3 kg, com: [0, 0, 0.1], inertia: [1e-3, 2e-3, 3e-3]}
joints:
  hull.x: {initial: {velocity: 2}}
  hull.ry: {initial: {velocity: 5}}
  hull.rz: {initial: {velocity: -3}}
  arm.rx: {initial: {velocity: 4}}
  wheel: {initial: {velocity: 12}}
"""


@pytest.mark.parametrize("text", [RIGS["quaternion"], BALL], ids=["top", "free"])
@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "multirate", "rosenbrock"])
def test_the_order_with_moving_axes_is_that_of_the_integrator(rig_of, integrator, text):
    exact = March(rig_of(text)).to(0.16, 800)
    steps = March(rig_of(text, f"schedule.integrator={integrator}"))
    nx = sum(len(steps.tick_model.plant.layout.index(part)) for part in ("position", "velocity"))
    errors = [np.abs(steps.to(0.16, n)[:nx] - exact[:nx]).max() for n in (80, 160, 320)]
    assert order_of(errors) == pytest.approx(ORDER[integrator], abs=0.25)
