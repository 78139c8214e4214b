"""Friction that resists spinning and rolling: further disks of the same law."""

from functools import cache

import numpy as np
import pytest

from cosim.core.compile import compile
from cosim.core.compile.jit import vector_lanes
from cosim.mechanics.multibody.contact.cone import DISKS, projected
from cosim.mechanics.multibody.contact.contact_solver import ContactSolver
from tests.compile.calls import ports
from tests.multibody.contact import contact_problems
from tests.multibody.contact.contact_problems import (
    Problem,
    compiled,
    every_kind,
    friction_of,
    kinds_of,
    natural_map,
    regular,
    violation,
)

ROWS = [4, 6]
LANES = vector_lanes()
solver = cache(compiled)


def redundant(contacts, rows, rng, count):
    """Pressed contacts whose W has half the rank it could have."""
    n = rows * contacts
    pressed = np.zeros(n)
    pressed[2::rows] = 0.3
    for _ in range(count):
        J = rng.normal(size=(n, n // 2))
        W = J @ J.T
        yield Problem(W, J @ rng.normal(size=n // 2) - W @ pressed, friction_of(contacts, rows, rng), np.zeros(n))


@pytest.mark.parametrize("rows", [3, *ROWS])
def test_the_nearest_point_of_the_cone(rows):
    """It is in the cone, and what is left is in the dual one and across to it (Moreau)."""
    rng = np.random.default_rng(rows)
    disks = DISKS[rows]
    project = compile(projected, ports(x=(rows,), friction=(len(disks),)))
    assert [list(disk) for disk in disks] == contact_problems.DISKS[rows]
    for _ in range(2000):
        x, mu = rng.normal(size=rows) * 10.0 ** rng.uniform(-2, 2, rows), rng.uniform(0.0, 2.0, len(disks))
        near = project(x, mu)
        rest, size = near - x, np.abs(x).max()
        lengths = [[np.linalg.norm(v[list(disk)]) for disk in disks] for v in (near, rest)]
        assert (lengths[0] <= mu * near[2] + 1e-14 * size).all()
        assert mu @ lengths[1] <= rest[2] + 1e-13 * size
        assert abs(near @ rest) <= 1e-13 * size**2
        by_bisection = contact_problems.nearest(x, [(list(disk), m) for disk, m in zip(disks, mu, strict=True)])
        np.testing.assert_allclose(near, by_bisection, atol=1e-13 * size)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("contacts", [1, 2, 5])
def test_the_law_holds(contacts, rows):
    rng, kinds = np.random.default_rng(10 * contacts + rows), set()
    for problem in regular(contacts, rng, 200, rows):
        impulses, passes, residual, converged = solver(contacts, rows=rows)(*problem.arrays)
        assert converged == 1.0 and passes <= 60
        assert violation(problem, impulses) <= 1e-8
        assert abs(natural_map(problem, impulses) - residual) <= 1e-13
        kinds |= kinds_of(problem, impulses)
    assert contacts == 1 or kinds == every_kind(rows)


@pytest.mark.parametrize("rows", ROWS)
def test_nothing_is_missing_in_silence(rows):
    solved, rng = 0, np.random.default_rng(rows)
    for problem in redundant(4, rows, rng, 150):
        impulses, _, residual, converged = solver(4, rows=rows)(*problem.arrays)
        assert np.isfinite(impulses).all()
        assert abs(natural_map(problem, impulses) - residual) <= 1e-12
        assert converged == (residual <= 1e-10)
        solved += converged
    assert solved >= 0.9 * 150


@pytest.mark.parametrize("rows", ROWS)
def test_without_resistance_they_are_plain_contacts(rows):
    """Coefficients 0, or rows in which nothing moves."""
    rng = np.random.default_rng(rows)
    plain = [row for row in range(3 * rows) if row % rows < 3]
    for problem in regular(3, rng, 30, rows):
        friction = problem.friction * ([1.0] + [0.0] * (len(DISKS[rows]) - 1))
        found, _, _, converged = solver(3, rows=rows)(problem.W, problem.c, friction, problem.before)
        W, c = problem.W[np.ix_(plain, plain)], problem.c[plain]
        expected, _, _, _ = solver(3)(W, c, friction[:, 0], np.zeros(9))
        np.testing.assert_allclose(found[plain], expected, atol=1e-8)
        assert converged == 1.0 and (np.delete(found, plain) == 0.0).all()
        held = np.zeros((3 * rows, 3 * rows)), np.zeros(3 * rows)
        held[0][np.ix_(plain, plain)], held[1][plain] = W, c
        found, _, _, converged = solver(3, rows=rows)(*held, problem.friction, problem.before)
        expected, _, _, _ = solver(3)(W, c, problem.friction[:, 0], np.zeros(9))
        np.testing.assert_allclose(found[plain], expected, atol=1e-8)
        assert converged == 1.0


STEP, GRAVITY = 1e-3, 9.81


def ball(v, turning, friction, mass=2.0, radius=0.1):
    """One step of a ball on a floor: (v, ω) after it, from v (3,) and ω (3,)."""
    arm, axes = np.array([0.0, 0.0, -radius]), np.eye(3)
    G = np.zeros((6, 6))  # rows x, y, z of the point, and of ω about z, x, y
    G[:3, :3], G[:3, 3:] = axes, np.array([np.cross(arm, axis) for axis in axes])
    G[3, 5] = G[4, 3] = G[5, 4] = 1.0
    inverse = np.diag([1.0 / mass] * 3 + [2.5 / (mass * radius**2)] * 3)
    free = np.concatenate([v, turning])
    free[2] -= GRAVITY * STEP
    impulses, _, _, converged = solver(1, rows=6)(G @ inverse @ G.T, G @ free, np.array([friction]), np.zeros(6))
    assert converged == 1.0
    after = free + inverse @ G.T @ impulses
    return after[:3], after[3:]


@pytest.mark.parametrize(("mass", "radius"), [(2.0, 0.1), (1e-6, 1e-3), (1e6, 10.0)])
def test_a_spinning_ball_slows_down_by_the_moment_of_friction(mass, radius):
    """ω̇ = −μ_t g / (0.4 R²) about the normal, until it rests and stays so."""
    moment = 0.02 * radius
    rate = moment * GRAVITY * STEP / (0.4 * radius**2)
    first = 200.5 * rate
    v, turning = np.zeros(3), np.array([0.0, 0.0, first])
    for count in range(1, 250):
        v, turning = ball(v, turning, [0.5, moment, 0.0], mass, radius)
        np.testing.assert_allclose(turning, [0.0, 0.0, max(first - count * rate, 0.0)], atol=1e-9 * (1.0 + first))


def test_a_rolling_ball_slows_down_by_the_resistance_to_rolling():
    """It goes on rolling, with v̇ = −μ_r g R / (1.4 R²), until it rests."""
    radius, moment, v, turning = 0.1, 0.01, np.array([0.5, 0.0, 0.0]), np.array([0.0, 5.0, 0.0])
    rate = moment * GRAVITY / (1.4 * radius) * STEP
    for count in range(1, 900):
        v, turning = ball(v, turning, [0.8, 0.0, moment])
        np.testing.assert_allclose(v, [max(0.5 - count * rate, 0.0), 0.0, 0.0], atol=1e-8)
        np.testing.assert_allclose(turning, [0.0, v[0] / radius, 0.0], atol=1e-7)
    assert 900 * rate > 0.5


@pytest.mark.parametrize("rows", ROWS)
def test_lanes_and_python_agree_with_single_runs(rows):
    rng = np.random.default_rng(rows)
    problems = [*redundant(2, rows, rng, LANES), *regular(2, rng, LANES + 3, rows)]
    solve = solver(2, 60, rows=rows)
    single = [solve(*problem.arrays) for problem in problems]
    batch = [np.array(column) for column in zip(*(problem.arrays for problem in problems), strict=True)]
    for found, expected in zip(solve(*batch), zip(*single, strict=True), strict=True):
        np.testing.assert_array_equal(found, np.array(expected))
    routine = ContactSolver(2, 60, rows=rows)
    for problem, expected in list(zip(problems, single, strict=True))[-6:]:
        np.testing.assert_allclose(routine.fn(*problem.arrays)[0], expected[0], rtol=1e-8, atol=1e-8)


def test_rows_that_no_contact_has_are_refused():
    with pytest.raises(ValueError, match="a contact has 3, 4, 6 rows, got 5"):
        ContactSolver(2, rows=5)
