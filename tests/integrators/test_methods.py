"""Integrators: their order on an equation with a known solution, what each is for, symbols as numbers."""

import math
from typing import Any

import numpy as np
import pytest

from cosim.core import ops
from cosim.core.compile import ArrayPort, compile
from cosim.mechanics.integrators.methods import INTEGRATORS, RODAS4, ROS2, Rosenbrock, System


def forced_pendulum() -> System:
    """q̈ = −4 sin q − 0.3 q̇ + cos 2t with the exact derivatives of that, x = (q, v)."""

    def flow(t: Any, x: Any) -> Any:
        return ops.array([x[1], -4.0 * ops.sin(x[0]) - 0.3 * x[1] + ops.cos(2.0 * t)])

    def jacobian(t: Any, x: Any, rate: Any) -> tuple[Any, Any]:
        by_state = ops.array([[0.0, 1.0], [-4.0 * ops.cos(x[0]), -0.3]])
        return by_state, ops.array([0.0, -2.0 * ops.sin(2.0 * t)])

    return System(flow, np.array([0]), speed, jacobian)


def speed(t: float, x: np.ndarray) -> np.ndarray:
    """The rate of the coordinate x[0]."""
    return x[1:2]


def linear(matrix: list[list[float]]) -> System:
    """ẋ = matrix x, x = (q, v)."""
    a = np.array(matrix)
    return System(lambda t, x: a @ x, np.array([0]), speed, lambda t, x, rate: (a, np.zeros(2)))


def step_of(name: str) -> Any:
    """(system, t, x, h) -> x at t + h."""
    return lambda *arguments: INTEGRATORS[name].step(*arguments)[0]


semi_implicit_euler, rk4 = step_of("semi_implicit_euler"), step_of("rk4")
IMPLICIT = [name for name, method in INTEGRATORS.items() if method.implicit]


def integrate(step: Any, system: System, x: np.ndarray, end: float, n: int) -> np.ndarray:
    h = end / n
    for k in range(n):
        x = step(system, k * h, x, h)
    return x


ORDERS = [("semi_implicit_euler", 1), ("rosenbrock", 2), ("rk4", 4), ("rodas4", 4)]


@pytest.mark.parametrize(("name", "order"), ORDERS)
def test_halving_the_step_divides_the_error_by_two_to_the_order(name: str, order: int) -> None:
    system, start = forced_pendulum(), np.array([1.0, 0.5])
    exact = integrate(rk4, system, start, 1.0, 1600)
    errors = [np.abs(integrate(step_of(name), system, start, 1.0, n) - exact).max() for n in (40, 80, 160)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.15)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(order, abs=0.15)


def test_semi_implicit_euler_keeps_the_energy_of_an_oscillator_bounded_for_ever() -> None:
    system, x = linear([[0.0, 1.0], [-1.0, 0.0]]), np.array([1.0, 0.0])
    energies = []
    for _ in range(3_000):
        x = semi_implicit_euler(system, 0.0, x, 0.1)
        energies.append(0.5 * (x @ x))
    assert min(energies) > 0.45 and max(energies) < 0.56
    # explicit Euler would have multiplied it by 1.01 in each step


def test_semi_implicit_euler_moves_with_the_new_velocity() -> None:
    """States that are no coordinates take plain Euler steps."""
    a = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 1.0], [0.0, 0.0, -2.0]])
    system = System(lambda t, x: a @ x, np.array([0]), speed, lambda t, x, rate: (a, np.zeros(3)))
    x = semi_implicit_euler(system, 0.0, np.array([1.0, 2.0, 3.0]), 0.1)
    np.testing.assert_allclose(x, [1.0 + 0.1 * 2.2, 2.0 + 0.1 * (-1.0 + 3.0), 3.0 - 0.1 * 6.0], rtol=1e-15)


def test_one_step_of_rk4_on_a_linear_equation_is_its_taylor_polynomial() -> None:
    a = np.array([[0.0, 1.0], [-9.0, -0.5]])
    x, h = np.array([2.0, 1.0]), 0.1
    terms = [np.linalg.matrix_power(h * a, k) / math.factorial(k) for k in range(5)]
    np.testing.assert_allclose(rk4(linear(a.tolist()), 0.0, x, h), sum(terms) @ x, rtol=1e-14)


def decay(z: float) -> System:
    """ẋ = z x"""
    none = np.array([], int)
    return System(lambda t, x: z * x, none, lambda t, x: np.zeros(0), lambda t, x, rate: (z * np.eye(1), np.zeros(1)))


def test_one_step_of_rosenbrock_on_a_linear_equation_is_its_stability_function() -> None:
    """R(z) = (1 + (1 − 2γ) z) / (1 − γ z)², which for γ = 1 − 1/√2 vanishes at infinity."""
    g = ROS2.gamma
    for z in (-0.1, 0.2, -3.0, -1e8):
        (x,) = step_of("rosenbrock")(decay(z), 0.0, np.array([1.0]), 1.0)
        expected = (1 + (1 - 2 * g) * z) / (1 - g * z) ** 2
        assert x == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_rodas4_and_its_estimate_vanish_on_infinitely_stiff_decays() -> None:
    x, error = INTEGRATORS["rodas4"].step(decay(-1e9), 0.0, np.array([1.0]), 1.0)
    assert abs(x[0]) < 1e-7 and abs(error[0]) < 1e-7
    for z in (-1e-2, -1.0, -30.0, -1e4):  # A-stable on the way there
        assert abs(step_of("rodas4")(decay(z), 0.0, np.array([1.0]), 1.0)[0]) < 1.0


def order_conditions(method: Rosenbrock, weights: tuple[float, ...]) -> dict[int, list[float]]:
    """By order, what the conditions of Rosenbrock methods lack (Hairer and Wanner II, §IV.7, table 7.1)."""
    n = len(method.alpha)
    a, c = (np.array([[*row, *[0.0] * (n - len(row))] for row in rows]) for rows in (method.a, method.c))
    gammas = np.linalg.inv(np.eye(n) / method.gamma - c)  # with γ on the diagonal
    alphas, b = a @ gammas, np.array([*weights, *[0.0] * (n - len(weights))]) @ gammas
    betas, at = alphas + gammas, alphas.sum(axis=1)
    np.testing.assert_allclose(at, method.alpha, atol=1e-13)
    np.testing.assert_allclose(gammas.sum(axis=1), method.gammas, atol=1e-13)
    by = betas.sum(axis=1)
    return {
        1: [b.sum() - 1],
        2: [b @ by - 1 / 2],
        3: [b @ at**2 - 1 / 3, b @ betas @ by - 1 / 6],
        4: [
            b @ at**3 - 1 / 4,
            b @ (at * (alphas @ by)) - 1 / 8,
            b @ betas @ at**2 - 1 / 12,
            b @ betas @ betas @ by - 1 / 24,
        ],
    }


METHODS = {
    "rosenbrock": (ROS2, ROS2.weights, 2),
    "rodas4": (RODAS4, RODAS4.weights, 4),
    "the estimate of rodas4": (RODAS4, tuple(np.subtract(RODAS4.weights, RODAS4.errors)), 3),
}


@pytest.mark.parametrize("name", METHODS)
def test_the_coefficients_fulfil_the_conditions_of_their_order_and_no_more(name: str) -> None:
    method, weights, order = METHODS[name]
    conditions = order_conditions(method, weights)
    for k in range(1, order + 1):
        np.testing.assert_allclose(conditions[k], 0.0, atol=1e-13)
    if order < 4:
        assert np.abs(conditions[order + 1]).max() > 1e-3


def test_the_estimate_of_rodas4_grows_with_the_fourth_power_of_the_step() -> None:
    system, x = forced_pendulum(), np.array([1.0, 0.5])
    errors = [np.abs(INTEGRATORS["rodas4"].step(system, 0.2, x, h)[1]).max() for h in (0.02, 0.01)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4, abs=0.2)
    exact = integrate(rk4, system, x, 0.1, 1000)
    end, error = INTEGRATORS["rodas4"].step(system, 0.0, x, 0.1)
    assert np.abs(end - exact).max() < np.abs(error).max() < 1e-4


@pytest.mark.parametrize("name", INTEGRATORS)
def test_only_implicit_methods_bear_a_stiff_spring(name: str) -> None:
    system, x = linear([[0.0, 1.0], [-1e6, -1e4]]), np.array([1.0, 0.0])
    with np.errstate(all="ignore"):
        x = integrate(step_of(name), system, x, 1.0, 100)
    assert (np.abs(x[0]) < 1e-3) == (name in IMPLICIT)


@pytest.mark.parametrize("name", INTEGRATORS)
def test_symbols_give_what_numbers_give(name: str) -> None:
    system = forced_pendulum()

    def step(t: Any, x: Any) -> Any:
        return step_of(name)(system, t, x, 0.01)

    x = np.array([0.7, -0.2])
    compiled = compile(step, [ArrayPort("t", ()), ArrayPort("x", (2,))], interpret=False)
    np.testing.assert_allclose(compiled(0.3, x), step(0.3, x), rtol=1e-14)
    np.testing.assert_array_equal(x, [0.7, -0.2])
