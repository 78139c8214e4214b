"""Lagrange's equations of a mechanism from its energies alone: a reference that shares no code with the product."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp


class Lagrange:
    """M(q, t) q̈ + h(q, q̇, t) = Qᵀ + τ of n coordinates.

    `energies(q, v, t)` returns (T, V), `force(q, v, t)` the other generalised forces, both of casadi symbols.
    Derivatives are casadi's; kinematics are the caller's own.
    """

    def __init__(self, n: int, energies: Callable, force: Callable | None = None) -> None:
        self.n = n
        q, v, t = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("t")
        kinetic, potential = energies(q, v, t)
        momentum = ca.gradient(kinetic, v)
        mass = ca.jacobian(momentum, v)
        rest = ca.mtimes(ca.jacobian(momentum, q), v) + ca.jacobian(momentum, t) - ca.gradient(kinetic - potential, q)
        if force is not None:
            rest -= ca.vertcat(*force(q, v, t))
        self._both = ca.Function("equations", [q, v, t], [mass, rest])
        self._energies = ca.Function("energies", [q, v, t], [kinetic, potential])

    def equations(self, q, v, t=0.0) -> tuple[np.ndarray, np.ndarray]:
        mass, rest = self._both(q, v, t)
        return np.array(mass), np.array(rest).ravel()

    def mass(self, q, t=0.0) -> np.ndarray:
        return self.equations(q, np.zeros(self.n), t)[0]

    def energies(self, q, v, t=0.0) -> tuple[float, float]:
        return tuple(float(e) for e in self._energies(q, v, t))

    def effort(self, q, v, a, t=0.0) -> np.ndarray:
        """τ that gives the accelerations."""
        mass, rest = self.equations(q, v, t)
        return mass @ a + rest

    def struck(self, q, v, held: Sequence[int]) -> tuple[np.ndarray, float]:
        """(velocities, energy lost) after dofs are arrested; held: all that stand still from then on."""
        mass, free = self.mass(q), [k for k in range(self.n) if k not in held]
        after = np.zeros(self.n)
        after[free] = np.linalg.solve(mass[np.ix_(free, free)], (mass @ v)[free])
        return after, 0.5 * (v @ mass @ v - after @ mass @ after)

    def solve(self, times, q, v, held: Sequence[int] = (), events=None):
        """scipy's solution from (q, v) at times[0]; dofs `held` stand still."""
        free = [k for k in range(self.n) if k not in held]

        def flow(t, y):
            mass, rest = self.equations(y[: self.n], y[self.n :], t)
            a = np.zeros(self.n)
            a[free] = np.linalg.solve(mass[np.ix_(free, free)], -rest[free])
            return np.concatenate([y[self.n :], a])

        start, span = np.concatenate([q, v]), (times[0], times[-1])
        return solve_ivp(flow, span, start, "DOP853", times, rtol=1e-11, atol=1e-11, events=events)
