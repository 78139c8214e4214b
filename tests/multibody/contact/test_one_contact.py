"""One contact exactly: against the law, and against slip directions found on a circle."""

import numpy as np
import pytest
from scipy.optimize import brentq

from cosim.core.compile import compile
from cosim.mechanics.multibody.contact.cone import miss, projected
from cosim.mechanics.multibody.contact.one_contact import one_contact
from tests.compile.calls import ports
from tests.multibody.contact.contact_problems import Problem, natural_map

solve = compile(one_contact, ports(matrix=(3, 3), c=(3,), friction=(), guess=()))


def cases(count, seed):
    """A from spheres to needles, c in all directions, friction from none to more than enough."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        J = rng.normal(size=(3, 6)) * 10.0 ** rng.uniform(-1.0, 1.0, (3, 1))
        yield J @ J.T, rng.normal(size=3), 0.0 if number % 10 == 0 else rng.uniform(0.0, 1.5)


def by_directions(A, c, mu):
    """All solutions, by another way: open, sticking, and sliding where the slip is opposite to a direction of
    friction, which is sought on the circle."""
    found = [np.zeros(3)] if c[2] >= 0.0 else []
    stuck = -np.linalg.solve(A, c)
    if stuck[2] >= 0.0 and np.hypot(*stuck[:2]) <= mu * stuck[2]:
        found.append(stuck)

    def along(angle):
        """(an impulse that leaves no normal velocity, its velocity, both times a factor; the factor)."""
        d = np.array([mu * np.cos(angle), mu * np.sin(angle), 1.0])
        return -c[2] * d, A @ d * -c[2] + c * (A[2] @ d), A[2] @ d

    def turn(angle):
        _, u, _ = along(angle)
        return u[0] * np.sin(angle) - u[1] * np.cos(angle)

    grid = np.linspace(0.0, 2.0 * np.pi, 721)
    values = [turn(angle) for angle in grid]
    for low, high, a, b in zip(grid[:-1], grid[1:], values[:-1], values[1:], strict=True):
        if a * b <= 0.0:
            angle = brentq(turn, low, high, xtol=1e-15, rtol=8.9e-16)
            impulse, u, factor = along(angle)
            if impulse[2] * factor > 0.0 and (u[0] * np.cos(angle) + u[1] * np.sin(angle)) * factor <= 0.0:
                found.append(impulse / factor)
    return found


def test_the_law_holds_to_rounding():
    kinds = set()
    for A, c, mu in cases(5000, 1):
        impulse = solve(A, c, mu, 0.0)
        u = A @ impulse + c
        assert natural_map(Problem(A, c, [mu], None), impulse) <= 1e-12
        kinds.add("open" if impulse[2] == 0.0 else "slides" if np.abs(u[:2]).max() > 1e-9 else "sticks")
    assert kinds == {"open", "sticks", "slides"}


def test_it_is_a_solution_found_on_the_circle_of_directions():
    for A, c, mu in cases(300, 2):
        impulse, others = solve(A, c, mu, 0.0), by_directions(A, c, mu)
        assert min(np.abs(impulse - other).max() for other in others) <= 1e-8 * max(1.0, np.abs(impulse).max())


@pytest.mark.parametrize("guess", [1e-12, 1.0, 1e12])
def test_a_guess_costs_steps_only(guess):
    for A, c, mu in cases(300, 3):
        np.testing.assert_allclose(solve(A, c, mu, guess), solve(A, c, mu, 0.0), rtol=1e-8, atol=1e-10)


def test_python_and_machine_code_agree():
    for A, c, mu in cases(60, 4):
        np.testing.assert_allclose(one_contact(A, c, mu, 0.0), solve(A, c, mu, 0.0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("held", [[0], [0, 1], [2], [0, 2], [0, 1, 2]], ids=str)
def test_directions_in_which_nothing_can_move_get_no_impulse(held):
    """As in a planar mechanism. What the free ones do is the problem without them."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        J = rng.normal(size=(3, 6))
        J[held] = 0.0
        A, c = J @ J.T, rng.normal(size=3)
        still, moving = np.where(np.isin(range(3), held), 0.0, c), c
        for given in (still, moving):
            impulse = solve(A, given, 0.5, 0.0)
            assert np.isfinite(impulse).all()
            missed = miss(impulse, A @ impulse + given, [0.5], np.diag(A))
            if 2 in held:  # nothing can be done against a normal velocity
                assert (impulse == 0.0).all() and (missed > 1e-12) == (given[2] < 0.0)
            else:
                assert missed <= 1e-12
                # friction that resists a motion which is given
                assert given is moving or (impulse[held] == 0.0).all()


def test_where_nothing_can_turn_a_rank_of_one_is_enough():
    """A point of a pendulum on a wall: A has rank 1, along a slanted direction."""
    rng = np.random.default_rng(6)
    for _ in range(200):
        J = rng.normal(size=3)
        A, c = np.outer(J, J), J * rng.normal()
        impulse = solve(A, c, 0.7, 0.0)
        assert np.isfinite(impulse).all()
        u = A @ impulse + c
        assert miss(impulse, u, [0.7], np.diag(A)) <= 1e-12


def test_the_nearest_point_of_the_cone():
    """It is in the cone, and what is left is in the polar one and across to it (Moreau)."""
    rng = np.random.default_rng(7)
    for mu in (0.0, 0.3, 1.0, 3.0):
        for x in rng.normal(size=(200, 3)):
            near = projected(x, [mu])
            rest = near - x
            assert np.hypot(*near[:2]) <= mu * near[2] + 1e-15
            assert mu * np.hypot(*rest[:2]) <= rest[2] + 1e-14
            assert abs(near @ rest) <= 1e-15 * max(1.0, x @ x)
