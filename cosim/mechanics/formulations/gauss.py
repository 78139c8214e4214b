"""Gauss's principle of least constraint, as a problem of least squares.

Of all accelerations that the constraints allow, the actual ones make the constraint least,

    Z = ½ Σ (a − F/m)ᵀ m (a − F/m),    a = J q̈ + a′.

Forces enter by their work, Z = ½ Σ (J q̈ + a′)ᵀ m (J q̈ + a′) − (Jᵀ F + τ)ᵀ q̈ + …, so bodies may be massless. With
√m J = Q R (orthonormal columns Q, triangular R) and y = R q̈ it is a distance, which no mass matrix enters:

    Z = ½ |y − y₀|² + …,    y₀ = R⁻ᵀ (Jᵀ F + τ) − Qᵀ √m a′,

and constraints G q̈ = −γ move y₀ to the nearest point of theirs, with D = G R⁻¹ and its pseudoinverse D⁺:

    y = y₀ + D⁺ (−γ − D y₀)    (Udwadia and Kalaba's equation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.formulations import Formulation, check_state
from cosim.mechanics.formulations._closing import Orthonormal, constraint_rows, impressed, vector
from cosim.mechanics.formulations._tree_state import TreeState, central, link_with_symbols, why_not_rigid
from cosim.mechanics.multibody.equations import MechanismEquations
from cosim.mechanics.multibody.part_names import whole_of

ABOUT = "Gauss's least constraint: orthogonal factors of the weighted partial velocities, no mass matrix, O(n³)"
SOURCE = (
    "Gauss, Über ein neues allgemeines Grundgesetz der Mechanik, 1829;"
    " Udwadia and Kalaba, Analytical Dynamics: A New Approach, 1996"
)


def refusal(equations: MechanismEquations) -> str | None:
    if (why := why_not_rigid(equations)) is not None:
        return why
    if (link := link_with_symbols(equations)) is not None:
        return f"the inertia of link '{link}' is a parameter, and its square root is taken in advance"
    for joint, body in zip(equations.tree.joints, equations.tree.bodies, strict=True):
        inertia = central(body).inertia
        if np.linalg.eigvalsh(inertia)[0] < -1e-9 * np.abs(body.inertia).max():
            link = whole_of(joint.child)
            return f"the inertia of link '{link}' has a negative principal value, so it has no square root"
    return None


def load(equations: MechanismEquations) -> Formulation:
    return LeastConstraint(equations)


@dataclass(frozen=True)
class LeastConstraint:
    """The formulation as a problem of least squares in the accelerations of the joints."""

    equations: MechanismEquations

    def forward_dynamics(self, q: Numeric, v: Numeric, tau: Numeric, t: Numeric = 0.0) -> Numeric:
        """q̈ (nv,): see `Model.forward_dynamics`."""
        check_state(self.equations, q, v, tau)
        state = TreeState.of(self.equations, q, v, t)
        columns, rest = weighted(state)
        QR = Orthonormal(independent(state, columns))
        forces = impressed(state, work_of_forces(state)) + tau
        y = QR.solve_transposed(forces) - QR.along(rest)
        G, gamma = constraint_rows(state)
        D = [QR.solve_transposed(row) for row in G]  # rows of G R⁻¹
        return QR.solve(nearest(y, D, -gamma))


def weighted(state: TreeState) -> tuple[list[Numeric], Numeric]:
    """(the columns of √m J, √m a′): velocities of the centres of mass by √m, angular ones along principal axes by
    √J, rotors by the roots of their inertias."""
    columns: list[list[Numeric]] = [[] for _ in range(state.dofs)]
    rest: list[Numeric] = []
    for k, (body, here) in enumerate(zip(state.central, state.placed, strict=True)):
        mass_root, turn = np.sqrt(body.mass), inertia_root(body.inertia) @ here.rotation.T
        c, omega, (a_origin, alpha) = here.rotation @ body.com, here.angular, state.remainders[k]
        a = a_origin + ops.cross(alpha, c) + ops.cross(omega, ops.cross(omega, c))
        rest += [*(mass_root * a), *(turn @ alpha)]
        for dof, column in enumerate(columns):
            if (u := state.partial_velocities[k].get(dof)) is None:
                column += [0.0] * 6
            else:
                column += [*(mass_root * (u.linear + ops.cross(u.angular, c))), *(turn @ u.angular)]
    for dof, rotor in enumerate(state.rotors):
        rest.append(0.0)
        for other, column in enumerate(columns):
            column.append(ops.sqrt(rotor) if other == dof else 0.0)
    return [ops.array(column) for column in columns], ops.array(rest)


def inertia_root(inertia: np.ndarray) -> np.ndarray:
    """√J (3, 3): √Jᵀ √J = J."""
    values, axes = np.linalg.eigh(inertia)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * axes.T
    return np.where(np.abs(root) < 1e-15 * np.abs(root).max(initial=0.0), 0.0, root)


def work_of_forces(state: TreeState) -> Numeric:
    """Jᵀ F (n,) of applied forces and gyroscopic moments, which stay forces for bodies without inertia."""
    work: dict[int, Numeric] = {}
    for k, (body, here) in enumerate(zip(state.central, state.placed, strict=True)):
        spin = here.rotation.T @ here.angular
        force, moment = state.loads[k]
        moment = moment - here.rotation @ ops.cross(spin, body.inertia @ spin)
        c = here.rotation @ body.com
        for dof, u in state.partial_velocities[k].items():
            effort = (u.linear + ops.cross(u.angular, c)) @ force + u.angular @ moment
            work[dof] = work.get(dof, 0.0) + effort
    return vector(state.dofs, work)


def independent(state: TreeState, columns: Sequence[Numeric]) -> list[Numeric]:
    """√m J P: the columns of the independent velocities."""
    v_map = state.equations.v_map
    found: list[Numeric] = [0.0] * state.equations.nv
    for column, leader, factor in zip(columns, v_map.leader, v_map.multiplier, strict=True):
        found[leader] = found[leader] + column * factor
    return found


def nearest(y: Numeric, rows: Sequence[Numeric], values: Numeric) -> Numeric:
    """The y next to the given one with D y = values; a row that depends on others is left out."""
    QR = Orthonormal(rows, may_depend=True)  # of Dᵀ, so D y = Rᵀ Qᵀ y
    missing = [value - row @ y for row, value in zip(rows, values, strict=True)]
    for column, step in zip(QR.Q, QR.solve_transposed(missing), strict=True):
        y = y + column * step
    return y
