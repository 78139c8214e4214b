"""One step of an ordinary differential equation, as pure functions of numbers or symbols.

A step is `step(system, t, x, h) -> (x at t + h, its estimated error or None)`; x is a flat vector (n,), t and h are
in s.
"""

from __future__ import annotations

from dataclasses import dataclass

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.integrators.linearly_implicit import RODAS4, ROS2
from cosim.mechanics.integrators.ode_system import Step, System


def semi_implicit_euler(system: System, t: Numeric, x: Numeric, h: Numeric) -> tuple[Numeric, None]:
    """Order 1, symplectic: velocities first, positions with the new velocities."""
    end = x + h * system.flow(t, x)
    before = x[system.coordinates]
    # old positions, new velocities
    updated = ops.set_at(end, system.coordinates, before)
    return ops.set_at(end, system.coordinates, before + h * system.rates(t, updated)), None


def rk4(system: System, t: Numeric, x: Numeric, h: Numeric) -> tuple[Numeric, None]:
    """The classical Runge–Kutta method, order 4."""
    k1 = system.flow(t, x)
    k2 = system.flow(t + h / 2, x + (h / 2) * k1)
    k3 = system.flow(t + h / 2, x + (h / 2) * k2)
    k4 = system.flow(t + h, x + h * k3)
    return x + (h / 6) * (k1 + 2.0 * k2 + 2.0 * k3 + k4), None


@dataclass(frozen=True)
class Integrator:
    """estimate: the order of the method inside it whose difference is the estimated error, None without an estimate;
    implicit: whether it solves linear equations, and is stable at any step for motions that decay; multirate: whether
    drives take steps of their own (`Multirate`), which do to linear equations what `step` does."""

    step: Step
    estimate: int | None = None
    implicit: bool = False
    multirate: bool = False


INTEGRATORS: dict[str, Integrator] = {
    "semi_implicit_euler": Integrator(semi_implicit_euler),
    "rk4": Integrator(rk4),
    "rosenbrock": Integrator(ROS2.step, implicit=True),
    "rodas4": Integrator(RODAS4.step, estimate=3, implicit=True),
    "multirate": Integrator(ROS2.step, implicit=True, multirate=True),
}
