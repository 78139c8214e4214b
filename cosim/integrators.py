"""One step of an ordinary differential equation, as pure functions of numbers or symbols.

A step is `step(system, t, x, h) -> x at t + h`; x is a flat vector (n,), t and h are in s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim import ops

GAMMA = 1.0 - 1.0 / np.sqrt(2.0)  # makes the Rosenbrock step L-stable


@dataclass(frozen=True)
class System:
    """ẋ = flow(t, x), with what some methods need besides."""

    flow: Callable[[Any, Any], Any]
    positions: np.ndarray  # indices of x that are coordinates …
    rates: np.ndarray  # … and of the elements that are their rates
    jacobian: Callable[[Any, Any], tuple[Any, Any]]  # (t, x) -> (∂f/∂x (n, n), ∂f/∂t (n,))


def semi_implicit_euler(system: System, t: Any, x: Any, h: float) -> Any:
    """Order 1, symplectic: velocities first, positions with the new velocities."""
    end = x + h * system.flow(t, x)
    moved = list(end)
    for position, rate in zip(system.positions, system.rates, strict=True):
        moved[position] = x[position] + h * end[rate]
    return ops.array(moved)


def rk4(system: System, t: Any, x: Any, h: float) -> Any:
    """The classical Runge–Kutta method, order 4."""
    k1 = system.flow(t, x)
    k2 = system.flow(t + h / 2, x + (h / 2) * k1)
    k3 = system.flow(t + h / 2, x + (h / 2) * k2)
    k4 = system.flow(t + h, x + h * k3)
    return x + (h / 6) * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def rosenbrock(system: System, t: Any, x: Any, h: float) -> Any:
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


INTEGRATORS: dict[str, Callable[[System, Any, Any, float], Any]] = {
    "semi_implicit_euler": semi_implicit_euler,
    "rk4": rk4,
    "rosenbrock": rosenbrock,
}
