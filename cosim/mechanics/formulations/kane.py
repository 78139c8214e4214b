"""Kane's equations: generalised active and inertia forces along the partial velocities, f_r + f*_r = 0.

With the partial velocities v_r of the centre of mass and ω_r of the axes of every body, in ground axes,

    f_r = Σ (v_r · F + ω_r · T) + τ_r,    f*_r = −Σ (v_r · m a + ω_r · (J α + ω × J ω)),
    a = Σ v_s q̈_s + a′,    α = Σ ω_s q̈_s + α′.

The generalised speeds are the velocities v of the joints. Constraints follow Wang and Huston: f + f* + Gᵀ λ = 0.
"""

from __future__ import annotations

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.formulations import Formulation
from cosim.mechanics.formulations._closing import ByMultipliers, symmetric_matrix, vector
from cosim.mechanics.formulations._tree_state import TreeState, why_not_rigid
from cosim.mechanics.multibody.equations import MechanismEquations

ABOUT = "Kane's equations: partial velocities of every body, f + f* = 0, O(n³)"
SOURCE = (
    "Kane and Levinson, Dynamics: Theory and Applications, 1985;"
    " Wang and Huston, Kane's equations with undetermined multipliers, 1987"
)


def refusal(equations: MechanismEquations) -> str | None:
    return why_not_rigid(equations)


def load(equations: MechanismEquations) -> Formulation:
    return ByMultipliers(equations, tree_equations)


def tree_equations(state: TreeState) -> tuple[Numeric, Numeric]:
    """A (n, n) and B (n,): −f*_r without its q̈, and f_r without τ_r, are A q̈ and B."""
    A: dict[tuple[int, int], Numeric] = {(r, r): rotor for r, rotor in enumerate(state.rotors)}
    B: dict[int, Numeric] = {}
    for k, (body, here) in enumerate(zip(state.central, state.placed, strict=True)):
        c, J = here.rotation @ body.com, here.rotation @ body.inertia @ here.rotation.T
        omega, (a_origin, alpha) = here.angular, state.remainders[k]
        a = a_origin + ops.cross(alpha, c) + ops.cross(omega, ops.cross(omega, c))
        F, T = state.loads[k]
        F = F - body.mass * a
        T = T - J @ alpha - ops.cross(omega, J @ omega)
        speeds = [(r, u.linear + ops.cross(u.angular, c), u.angular) for r, u in state.partial_velocities[k].items()]
        for i, (r, v_r, omega_r) in enumerate(speeds):
            B[r] = B.get(r, 0.0) + v_r @ F + omega_r @ T
            momentum, spin = body.mass * v_r, J @ omega_r
            for s, v_s, omega_s in speeds[i:]:
                A[r, s] = A.get((r, s), 0.0) + v_s @ momentum + omega_s @ spin
    return symmetric_matrix(state.dofs, A), vector(state.dofs, B)
