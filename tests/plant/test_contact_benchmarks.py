"""The tests of SimBenchmark (Hwangbo, Lee and Hutter, IEEE RA-L 3(2), 2018) that are about single bodies, against what
is known of them; of robots see tests/oracle/test_contact_benchmarks_of_robots.py."""

from itertools import combinations

import numpy as np
import pytest

from tests.kit.contact_rigs import body, solved_runs

G = 9.81

PUSH = """
import numpy as np
from cosim.plugin import ForceLaw, param, params

@params
class Params:
    x: float = param(unit="N", doc="force")
    y: float = param(unit="N", doc="force")

def load(params):
    force = np.array([params.x, params.y, 0.0])
    return ForceLaw(wrenches=lambda frames, q, v, t: [force])
"""


run = solved_runs(1e-9)


# --- rolling ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stiffness", "atol"), [("rigid", 1e-9), ("1e6", 2e-4)])
def test_a_plate_is_pushed_under_balls(run, tmp_path, stiffness, atol):
    """n balls roll on a plate that slides: M a = F − μ (M + n m) g − n m a / 3.5; the balls have a / 3.5."""
    M, m, n, radius, thick = 10.0, 1.0, 9, 0.5, 1.0
    force, direction = 90.0, np.array([0.5, np.sqrt(0.75)])
    (tmp_path / "push.py").write_text(PUSH)
    x, y = force * direction
    pushed = f"  forces:\n    - {{name: push, type: push.py, between: [box], params: {{x: {x} N, y: {y} N}}}}\n"
    sides = [M / 12 * (20.0**2 + thick**2)] * 2 + [M / 6 * 20.0**2]
    bodies = [body("box", M, sides, [0.0, 0.0, thick / 2])]
    corners = [[a, b, -thick / 2] for a in (-10, 10) for b in (-10, 10)]
    contacts = [
        f"name: corner_{k}, link: box, point: {corner}, with: ground, friction: 0.4, stiffness: {stiffness}"
        for k, corner in enumerate(corners)
    ]
    for k in range(n):
        at = [2.0 * (k // 3) - 2.0, 2.0 * (k % 3) - 2.0, thick + radius]
        bodies.append(body(f"ball_{k}", m, [0.4 * m * radius**2] * 3, at))
        top = f"{{link: box, plane: {{xyz: [0, 0, {thick / 2}]}}}}"
        law = f"friction: 0.8, stiffness: {stiffness}"
        contacts.append(f"name: rolls_{k}, link: ball_{k}, sphere: {radius}, with: {top}, {law}")
    found = run(bodies, contacts, 4.0, mechanism=pushed)
    acceleration = (force - 0.4 * (M + n * m) * G) / (M + n * m / 3.5)
    for name, share in [("box", 1.0), *((f"ball_{k}", 1 / 3.5) for k in range(n))]:
        for axis, part in zip("xy", direction, strict=True):
            way = found[f"{name}.{axis}/position"] - found[f"{name}.{axis}/position"][0]
            exact = 0.5 * share * acceleration * part * found.t**2
            np.testing.assert_allclose(way, exact, rtol=0, atol=atol)


# --- bouncing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1e-3, 1e-4])
def test_a_ball_without_loss_bounces_as_high_as_before(run, step):
    law = "sphere: 0.1, friction: 0, restitution: 1, stiffness: rigid"
    ball = body("ball", 10.0, [0.04] * 3, [0.0, 0.0, 5.0])
    found = run([ball], [f"name: c, link: ball, {law}, with: ground"], 20.0, step)
    energy = found["energy/kinetic"] + found["energy/potential"]
    assert found["c/touches"][-1] == 10.0
    np.testing.assert_allclose(energy, energy[0], rtol=1e-5)


# --- balls --------------------------------------------------------------------------------------------------

COUNT, RADIUS, HEAVY = 2, 0.1, 10.0


def heap(restitution, height):
    """(bodies, contacts) of balls in a cube, each a little off its place; every pair may touch. They have 36 points:
    the 216 balls of the original have more than are simulated."""
    random = np.random.default_rng(42)
    grid = np.stack(np.meshgrid(*[np.arange(COUNT)] * 3), axis=-1).reshape(-1, 3)
    places = 0.21 * grid + random.uniform(0.0, 1e-3, grid.shape) + [0.0, 0.0, height]
    law = f"sphere: {RADIUS}, friction: 0, restitution: {restitution}, stiffness: rigid"
    contacts = [f"name: g{k}, link: b{k}, {law}, with: ground" for k in range(len(grid))]
    contacts += [
        f"name: c{i}_{j}, link: b{i}, {law}, with: {{link: b{j}, sphere: {RADIUS}}}"
        for i, j in combinations(range(len(grid)), 2)
    ]
    return [body(f"b{k}", HEAVY, [0.04] * 3, place) for k, place in enumerate(places)], contacts


def assert_nothing_pushes_sideways(found):
    """The centre of mass of all stays where it is: balls and ground have no friction."""
    for axis in "xy":
        middle = np.mean([found[f"b{k}.{axis}/position"] for k in range(COUNT**3)], axis=0)
        assert np.ptp(middle) < 1e-11


def of_gaps(found):
    return np.array([found[name] for name in found.signals if name.endswith("/gap")])


def test_a_heap_of_balls_falls_apart(run):
    found = run(*heap(0, 0.101), 2.0)
    assert_nothing_pushes_sideways(found)
    assert of_gaps(found).min() > -2e-3  # within the way of a step
    assert np.abs(np.minimum(of_gaps(found)[:, -1], 0.0)).max() < 1e-9
    heights = [found[f"b{k}.z/position"][-1] for k in range(COUNT**3)]
    np.testing.assert_allclose(heights, RADIUS, atol=1e-9)  # all are on the ground
    energy = found["energy/kinetic"] + found["energy/potential"] + found["energy/contacts"]
    np.testing.assert_allclose(energy, energy[0], rtol=1e-10)


@pytest.mark.parametrize("step", [1e-3, 2.5e-4])
def test_balls_without_loss_keep_their_energy(run, step):
    """In many impacts at once and after each other, several within a step."""
    found = run(*heap(1, 1.101), 3.0, step)
    assert_nothing_pushes_sideways(found)
    energy = found["energy/kinetic"] + found["energy/potential"]
    assert sum(found[name][-1] for name in found.signals if name.endswith("/touches")) > 40
    np.testing.assert_allclose(energy, energy[0], rtol=1e-4)
