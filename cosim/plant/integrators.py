"""One step of an ordinary differential equation, as pure functions of numbers or symbols.

A step is `step(system, t, x, h) -> x at t + h`; x is a flat vector (n,), t and h are in s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cosim import ops
from cosim.types import Numeric

GAMMA = 1.0 - 1.0 / np.sqrt(2.0)  # makes the Rosenbrock step L-stable


@dataclass(frozen=True)
class System:
    """ẋ = flow(t, x), and further functions that some methods need."""

    flow: Callable[[Numeric, Numeric], Numeric]
    coordinates: np.ndarray  # indices of x that are coordinates …
    rates: Callable[[Numeric, Numeric], Numeric]  # … and their rates, (t, x) -> one each
    jacobian: Callable[[Numeric, Numeric], tuple[Numeric, Numeric]]  # (t, x) -> (∂f/∂x (n, n), ∂f/∂t (n,))


def semi_implicit_euler(system: System, t: Numeric, x: Numeric, h: Numeric) -> Numeric:
    """Order 1, symplectic: velocities first, positions with the new velocities."""
    end = x + h * system.flow(t, x)
    before = x[system.coordinates]
    # old positions, new velocities
    updated = ops.with_elements(end, system.coordinates, before)
    return ops.with_elements(end, system.coordinates, before + h * system.rates(t, updated))


def rk4(system: System, t: Numeric, x: Numeric, h: Numeric) -> Numeric:
    """The classical Runge–Kutta method, order 4."""
    k1 = system.flow(t, x)
    k2 = system.flow(t + h / 2, x + (h / 2) * k1)
    k3 = system.flow(t + h / 2, x + (h / 2) * k2)
    k4 = system.flow(t + h, x + h * k3)
    return x + (h / 6) * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def rosenbrock(system: System, t: Numeric, x: Numeric, h: Numeric) -> Numeric:
    """ROS2 of Verwer, Spee, Blom and Hundsdorfer (1999): order 2, L-stable, linearly implicit.

    (I − γhJ) k1 = f(t, x) + γh f_t
    (I − γhJ) k2 = f(t + h, x + h k1) − 2 k1 − γh f_t
    x(t + h) = x + (3 k1 + k2) h/2
    """
    jacobian, by_time = system.jacobian(t, x)
    matrix = np.eye(len(x)) - (GAMMA * h) * jacobian
    shift = (GAMMA * h) * by_time
    k1 = ops.solve(matrix, system.flow(t, x) + shift)
    k2 = ops.solve(matrix, system.flow(t + h, x + h * k1) - 2.0 * k1 - shift)
    return x + (h / 2) * (3.0 * k1 + k2)


INTEGRATORS: dict[str, Callable[[System, Numeric, Numeric, float], Numeric]] = {
    "semi_implicit_euler": semi_implicit_euler,
    "rk4": rk4,
    "rosenbrock": rosenbrock,
}
