"""Lagrange's equations from the energies of the mechanism, by exact differentiation.

With the kinetic energy T(q, v, t), the potential V(q, t) of gravity and springs, the dissipation D(q, v) of dampers
and the rates ḟ(q, v, t) of the constraints, for coordinates whose rates are the velocities,

    d/dt ∂T/∂v − ∂T/∂q = −∂V/∂q − ∂D/∂v + Q + τ + (∂ḟ/∂v)ᵀ λ,    d/dt ḟ = 0.

Velocities of rotations and rigid motions along moving axes are quasi-velocities, q̇ = N(q) v. With the momenta
p = ∂T/∂v the equations of Boltzmann and Hamel have Nᵀ ∂/∂q in place of ∂/∂q, and the momenta rotate with the axes,

    d/dt p_ω → ṗ_ω + ω × p_ω + v × p_v,    d/dt p_v → ṗ_v + ω × p_v.

The momentum of a rotor is along its dof and does not rotate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cosim.core import ops
from cosim.core.compile.trace import Shape, column
from cosim.core.types import Numeric
from cosim.mechanics.formulations import Formulation, check_state
from cosim.mechanics.formulations._closing import Rows, with_multipliers
from cosim.mechanics.formulations._tree_state import TreeState, link_with_symbols
from cosim.mechanics.multibody.constrained_dynamics import ConstraintRow
from cosim.mechanics.multibody.coordinates import MOTION, ROTATION, Space
from cosim.mechanics.multibody.differentiate import Derived, along
from cosim.mechanics.multibody.equations import MechanismEquations

ABOUT = "Lagrange's equations: exact derivatives of the energies, quasi-velocities by Boltzmann and Hamel"
SOURCE = "Lagrange, Mécanique analytique, 1788; Hamel, Die Lagrange-Eulerschen Gleichungen der Mechanik, 1904"

# space of coordinates with quasi-velocities -> (v, p) -> the rate of the momenta because the axes rotate
MOMENTUM_TRANSPORT: dict[Space, Callable[[Numeric, Numeric], Numeric]] = {
    ROTATION: lambda v, p: ops.cross(v, p),
    MOTION: lambda v, p: ops.concatenate([ops.cross(v[3:], p[:3]), ops.cross(v[3:], p[3:]) + ops.cross(v[:3], p[:3])]),
}


def refusal(equations: MechanismEquations) -> str | None:
    if (link := link_with_symbols(equations)) is not None:
        return f"the inertia of link '{link}' is a parameter, and the energies are differentiated in advance"
    return None


def load(equations: MechanismEquations) -> Formulation:
    return Lagrange(equations)


class Lagrange:
    """The derivatives are taken once, with the first accelerations."""

    def __init__(self, equations: MechanismEquations) -> None:
        self.equations = equations
        self._derived: Derived | None = None

    def forward_dynamics(self, q: Numeric, v: Numeric, tau: Numeric, t: Numeric = 0.0) -> Numeric:
        """q̈ (nv,): see `Model.forward_dynamics`."""
        check_state(self.equations, q, v, tau)
        mass, right, G, gamma = self.matrices(q, v, t)
        return with_multipliers(mass, right + tau, Rows(G, gamma))

    def matrices(self, q: Numeric, v: Numeric, t: Numeric = 0.0) -> list[Numeric]:
        """A (nv, nv), B (nv,), G (m, nv), γ (m,) of A q̈ = B + τ + Gᵀ λ, G q̈ = −γ."""
        if self._derived is None:
            self._derived = Derived("lagrange", [(self.equations.nq,), (self.equations.nv,), ()], self._make)
        return self._derived(q, v, t)

    def _make(self, columns: list[Any], arrays: list[Numeric]) -> list[tuple[Any, Shape]]:
        import casadi

        equations, nv = self.equations, self.equations.nv
        (q, v, t), (by_q, by_v, _) = arrays, columns
        changes = [(by_q, column(equations.rate(q, v))), (columns[2], casadi.DM(1.0))]

        kinetic, dissipation = casadi.SX(column(equations.kinetic_energy(q, v, t))), self._dissipation(q, v, t)
        potential = equations.gravity_energy(q, t) + self._stored_energy(q, t)
        p = casadi.gradient(kinetic, by_v)
        mass = casadi.jacobian(p, by_v)
        slope = _array(casadi.gradient(kinetic - casadi.SX(column(potential)), by_q))
        damping = _array(casadi.gradient(casadi.SX(column(dissipation)), by_v))
        rotating = _array(p) - self._momentum_of_rotors(v)
        right = self._along_dofs(q, slope) - damping - _array(along(p, changes)) - self._transport(v, rotating)
        right = right + self._work_of_laws(by_v, q, v, t)

        residual, rate = equations.constraint_violation(q, v, t)
        solved = equations.constraints.solved
        rates = column(rate)
        bends = [ConstraintRow({}, {}, bend) for bend in _array(along(rates, changes))]
        stable = equations.constraints.stabilised(bends, residual, rate)
        gamma = ops.array([stable[r].bias for r in solved])
        G = casadi.jacobian(rates, by_v)[solved, :]
        m = len(solved)
        return [(mass, (nv, nv)), (column(right), (nv,)), (G, (m, nv)), (column(gamma), (m,))]

    def _stored_energy(self, q: Numeric, t: Numeric) -> Numeric:
        """Of all springs and of elastic links."""
        state = TreeState.of(self.equations, q, ops.zeros(self.equations.nv), t)
        return self.equations.constraints.stored_energy(state.placed, state.q)

    def _dissipation(self, q: Numeric, v: Numeric, t: Numeric) -> Numeric:
        """D, half of the power that the dampers between bodies and in elastic links take."""
        return 0.5 * self.equations.damper_loss(q, v, t)

    def _along_dofs(self, q: Numeric, slope: Numeric) -> Numeric:
        """Nᵀ ∂/∂q: the derivatives (nv,) along the velocities."""
        parts, start = [], 0
        for kind in self.equations.kinds:
            q_k, slope_k = q[start : start + kind.nq], slope[start : start + kind.nq]
            units = [[float(i == k) for i in range(kind.nv)] for k in range(kind.nv)]
            parts += [ops.array(kind.space.rate(q_k, ops.array(unit))) @ slope_k for unit in units]
            start += kind.nq
        return ops.array(parts)

    def _momentum_of_rotors(self, v: Numeric) -> Numeric:
        """(nv,)"""
        v_map = self.equations.v_map
        inertias = ops.concatenate([ops.zeros(0), *(body.rotor for body in self.equations.tree.bodies)])
        return v_map.project(inertias * v_map.expand(v))

    def _transport(self, v: Numeric, p: Numeric) -> Numeric:
        parts, start = [], 0
        for kind in self.equations.kinds:
            place = slice(start, start := start + kind.nv)
            transport = MOMENTUM_TRANSPORT.get(kind.space)
            parts.append(ops.zeros(kind.nv) if transport is None else transport(v[place], p[place]))
        return ops.concatenate(parts)

    def _work_of_laws(self, by_v: Any, q: Numeric, v: Numeric, t: Numeric) -> Numeric:
        """Q (nv,) of force laws: the derivatives of the velocities of what they act on, times the forces."""
        import casadi

        equations, laws = self.equations, self.equations.constraints.laws
        effort: Numeric = ops.zeros(equations.nv)
        if not laws:
            return effort
        state = TreeState.of(equations, q, v, t)
        for law in laws:
            wrenches, on_dofs, _ = law.forces(state.placed, state.q, state.v, t)
            pairs = [(state.v[dof], value) for dof, value in zip(law.dofs, on_dofs, strict=True)]
            for body, wrench in wrenches:
                here = state.placed[body]
                pairs += zip(here.linear, here.rotation @ wrench.linear, strict=True)
                pairs += zip(here.angular, here.rotation @ wrench.angular, strict=True)
            velocities, forces = (column(ops.array(list(x))) for x in zip(*pairs, strict=True))
            effort = effort + _array(casadi.mtimes(casadi.jacobian(velocities, by_v).T, forces))
        return effort


def _array(value: Any) -> Numeric:
    """A casadi column as an array of symbols, its zeros as numbers."""
    elements = [float(e) if e.is_constant() else e for e in value.elements()]
    return ops.array(elements) if elements else ops.zeros(0)
