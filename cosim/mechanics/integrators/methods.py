"""One step of an ordinary differential equation, as pure functions of numbers or symbols.

A step is `step(system, t, x, h) -> (x at t + h, its estimated error or None)`; x is a flat vector (n,), t and h are
in s.

Linearly implicit (Rosenbrock) methods are stable for stiff equations, with one Jacobian and no iteration per step.
Their stages have the form without products by the Jacobian J (Hairer and Wanner, Solving Ordinary Differential
Equations II, §IV.7):

    (I − γhJ) uᵢ = γh f(t + αᵢh, x + Σⱼ aᵢⱼ uⱼ) + γ Σⱼ cᵢⱼ uⱼ + γ γᵢ h² ∂f/∂t,
    x(t + h) = x + Σ mᵢ uᵢ,    estimated error Σ eᵢ uᵢ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cosim.core import ops
from cosim.core.compile.elimination import Elimination
from cosim.core.types import Numeric


@dataclass(frozen=True)
class MovingAxes:
    """Velocities in x along axes that turn with what moves."""

    velocities: np.ndarray  # indices of all velocities in x
    standing: Callable[[Numeric, Numeric], Numeric]  # (x, ẋ) -> ẋ along axes that stand still
    turned: Callable[[Numeric, Numeric], Numeric]  # (x, h) -> x along the axes after its velocities for h


@dataclass(frozen=True)
class System:
    """The equation ẋ = flow(t, x), and further functions that some methods need."""

    flow: Callable[[Numeric, Numeric], Numeric]
    coordinates: np.ndarray  # indices of x that are coordinates …
    rates: Callable[[Numeric, Numeric], Numeric]  # … and their rates, (t, x) -> one each
    jacobian: Callable[[Numeric, Numeric, Numeric], tuple[Numeric, Numeric]]  # (t, x, f) -> (∂f/∂x (n, n), ∂f/∂t (n,))
    axes: MovingAxes | None = None


Step = Callable[[System, Numeric, Numeric, Numeric], tuple[Numeric, Numeric]]


def semi_implicit_euler(system: System, t: Numeric, x: Numeric, h: Numeric) -> tuple[Numeric, None]:
    """Order 1, symplectic where no force depends on velocities: velocities first, positions with the new velocities.

    Velocities along axes that turn are along fixed axes within the step, and turned at its end. What gyroscopic forces
    do to them is taken at the middle of their change: with velocities at the start, each step would add energy.
    """
    rate = system.flow(t, x)
    if system.axes:
        change = (0.5 * h) * system.axes.standing(x, rate)[system.axes.velocities]
        middle = ops.set_at(x, system.axes.velocities, x[system.axes.velocities] + change)
        rate = system.axes.standing(middle, system.flow(t, middle))
    end = x + h * rate
    before = x[system.coordinates]
    # old positions, new velocities
    updated = ops.set_at(end, system.coordinates, before)
    end = ops.set_at(end, system.coordinates, before + h * system.rates(t, updated))
    return system.axes.turned(end, h) if system.axes else end, None


def rk4(system: System, t: Numeric, x: Numeric, h: Numeric) -> tuple[Numeric, None]:
    """The classical Runge–Kutta method, order 4."""
    k1 = system.flow(t, x)
    k2 = system.flow(t + h / 2, x + (h / 2) * k1)
    k3 = system.flow(t + h / 2, x + (h / 2) * k2)
    k4 = system.flow(t + h, x + h * k3)
    return x + (h / 6) * (k1 + 2.0 * k2 + 2.0 * k3 + k4), None


Row = tuple[float, ...]


@dataclass(frozen=True)
class Rosenbrock:
    """A Rosenbrock method by its coefficients: gamma γ, alpha αᵢ, gammas γᵢ, weights mᵢ, rows of a and c below the
    diagonal, and errors eᵢ (none: without an estimate)."""

    gamma: float
    alpha: Row
    gammas: Row
    a: tuple[Row, ...]
    c: tuple[Row, ...]
    weights: Row
    errors: Row = ()

    def step(self, system: System, t: Numeric, x: Numeric, h: Numeric) -> tuple[Numeric, Numeric]:
        """A `Step`."""
        now = system.flow(t, x)
        jacobian, by_time = system.jacobian(t, x, now)
        equations = Elimination(np.eye(len(x)) - (self.gamma * h) * jacobian)
        stages: list[Numeric] = []
        for alpha, gamma, a, c in zip(self.alpha, self.gammas, self.a, self.c, strict=True):
            rate = system.flow(t + alpha * h, x + _combined(a, stages)) if any(a) else now
            right = (self.gamma * h) * rate + _combined(tuple(self.gamma * value for value in c), stages)
            if gamma:
                right = right + (self.gamma * gamma * h * h) * by_time
            stages.append(equations.solve(right))
        return x + _combined(self.weights, stages), _combined(self.errors, stages) if self.errors else None


def _combined(factors: Row, stages: list[Numeric]) -> Numeric:
    """Σ factor · stage."""
    return ops.sum(
        stage if factor == 1.0 else factor * stage for factor, stage in zip(factors, stages, strict=False) if factor
    )


def _ros2() -> Rosenbrock:
    """ROS2 of Verwer, Spee, Blom and Hundsdorfer (SIAM J. Sci. Comput. 20, 1999): order 2, L-stable."""
    g = 1.0 - 1.0 / float(np.sqrt(2.0))  # makes it L-stable
    return Rosenbrock(
        gamma=g,
        alpha=(0.0, 1.0),
        gammas=(g, -g),
        a=((), (1.0 / g,)),
        c=((), (-2.0 / g,)),
        weights=(1.5 / g, 0.5 / g),
    )


_LAST = (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950)

# RODAS of Hairer and Wanner (§VI.4, and their program rodas.f): order 4 with an estimate of order 3, L-stable, stiffly
# accurate
RODAS4 = Rosenbrock(
    gamma=0.25,
    alpha=(0.0, 0.386, 0.21, 0.63, 1.0, 1.0),
    gammas=(0.25, -0.1043, 0.1035, -0.0362, 0.0, 0.0),
    a=(
        (),
        (1.544,),
        (0.9466785280815826, 0.2557011698983284),
        (3.314825187068521, 2.896124015972201, 0.9986419139977817),
        _LAST,
        (*_LAST, 1.0),
    ),
    c=(
        (),
        (-5.6688,),
        (-2.430093356833875, -0.2063599157091915),
        (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
        (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
        (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
    ),
    weights=(*_LAST, 1.0, 1.0),
    errors=(0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
)
ROS2 = _ros2()


@dataclass(frozen=True)
class Integrator:
    """A numerical method: its step, and how it treats errors and stiffness.

    estimate: the order of the method inside it whose difference is the estimated error, None without an estimate;
    doubles: whether that takes the same step again in halves, which is done only where steps are chosen by the error;
    implicit: whether it solves linear equations, and is stable at any step for motions that decay; multirate: whether
    drives take steps of their own (`Multirate`), which do to linear equations what `step` does; moreau: whether steps
    are those of `ContactStep`, likewise.
    """

    step: Step
    estimate: int | None = None
    implicit: bool = False
    multirate: bool = False
    moreau: bool = False

    @property
    def doubles(self) -> bool:
        return self.moreau


OF_CONTACTS = "moreau"  # the integrator of mechanisms with contacts
OF_EXACT_CONTACTS = "rk4"  # … whose instants are events
INTEGRATORS: dict[str, Integrator] = {
    "semi_implicit_euler": Integrator(semi_implicit_euler),
    "rk4": Integrator(rk4),
    "rosenbrock": Integrator(ROS2.step, implicit=True),
    "rodas4": Integrator(RODAS4.step, estimate=3, implicit=True),
    "multirate": Integrator(ROS2.step, implicit=True, multirate=True),
    OF_CONTACTS: Integrator(ROS2.step, estimate=1, implicit=True, moreau=True),
}
