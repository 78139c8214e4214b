"""Kane's equations of trees of elastic bodies, f_p + f*_p = 0, with the modal integrals h1 to h6 and D_p of the paper.

A point ρ of a body is at ζ = ρ + u in the frame at its hinge, u = Σ φ_μ η_μ. The generalised speeds are those of the
hinges and the modal rates. Per unit of speed p the frame has the partial velocities V_p and ω_p, and in the frame the
point has V_pη: φ_μ for mode μ of the body, 0 for every other speed. With the acceleration R̈ of the hinge (9, 31–35)

    −f*_p = V_p·∫R̈_m + ω_p·∫ζ × R̈_m + ∫V_pη·R̈_m,    R̈_m = R̈ + ω̇ × ζ + ω × (ω × ζ) + 2 ω × u̇ + ü,

    ∫R̈_m = m R̈ + ω̇ × m l + ω × (ω × m l) + 2 ω × m l̊ + m l̊̊,
    ∫ζ × R̈_m = m l × R̈ + J ω̇ + ω × J ω + 2 Σ D_μᵀ ω η̇_μ + ∫ζ × ü,
    ∫V_pη·R̈_m = R̈·∫V_pη + ω̇·∫ζ × V_pη + 2 ω·∫u̇ × V_pη + ∫ü·V_pη − ω·D_p ω,    D_p = ∫(ζ·V_pη) E − ζ V_pηᵀ.

f_p holds the applied forces, and for a mode −(K η + N η̇) (29).

Beyond the paper: points recede while the body bends, u = Σ φ_μ η_μ + ½ Σ g_μν η_μ η_ν, and sections turn and have
inertia; energies are kept to second order in η and η̇. What hangs on an elastic body moves with its modes: V_p and ω_p
are those of the place of the hinge. The paper prints h3 and h5 where the moment of Coriolis forces has their
transposes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim import ops
from cosim.formulations import Formulation
from cosim.formulations._closing import ByMultipliers, symmetric_matrix, vector
from cosim.formulations._tree_state import ZERO, TreeState
from cosim.multibody.elastic_bodies import ElasticBody, ModalIntegrals
from cosim.multibody.elastic_spatial import ElasticVector
from cosim.multibody.equations import MechanismEquations
from cosim.multibody.spatial import SpatialVector
from cosim.types import Numeric

ABOUT = "Kane's equations of elastic and rigid bodies about their hinges, by modal integrals, O(n³)"
SOURCE = "Jin and Bauer, Kane's dynamical equations of flexible multibody systems with tree structure, 1991"

NO_MODES = ModalIntegrals(
    *(np.zeros(shape) for shape in ((0, 3), (0, 0, 3), (0, 3), (0, 0, 3), (0, 3, 3), (0, 0, 3, 3), (0, 0)))
)


def refusal(_: MechanismEquations) -> str | None:
    return None


def load(equations: MechanismEquations) -> Formulation:
    return ByMultipliers(equations, tree_equations)


def tree_equations(state: TreeState) -> tuple[Numeric, Numeric]:
    """A (n, n) and B (n,): −f*_p without its q̈, and f_p + f*_p at q̈ = 0 without τ_p, are A q̈ and B."""
    A: dict[tuple[int, int], Numeric] = {(p, p): rotor for p, rotor in enumerate(state.rotors)}
    B: dict[int, Numeric] = {}
    for k in range(len(state.bodies)):
        body = DeformedBody.of(state, k)
        rest = body.force_at_rest(state)
        speeds = list(body.partial_velocities(state).items())
        for i, (p, u) in enumerate(speeds):
            B[p] = B.get(p, 0.0) + u.dot(rest)
            inertia_force = body.inertia_force(u)
            for r, other in speeds[i:]:
                A[min(p, r), max(p, r)] = A.get((min(p, r), max(p, r)), 0.0) + other.dot(inertia_force)
    return symmetric_matrix(state.dofs, A), vector(state.dofs, B)


@dataclass(frozen=True)
class DeformedBody:
    """A body in its present shape, along its own axes about its hinge. Speeds, accelerations and forces on it are
    triples: of its frame (3,) and (3,), and of its modes (m,)."""

    k: int
    mass: Numeric
    undeformed_moment: Numeric  # ∫ρ (3,)
    undeformed_inertia: Numeric  # ∫(ρ·ρ) E − ρ ρᵀ (3, 3)
    modal: ModalIntegrals
    eta: Numeric  # η (m,)
    rate: Numeric  # η̇ (m,)
    omega: Numeric  # (3,)

    @classmethod
    def of(cls, state: TreeState, k: int) -> DeformedBody:
        body, here = state.bodies[k], state.placed[k]
        elastic = isinstance(body, ElasticBody)
        eta, rate = state.coordinates[k] if elastic else (np.zeros(0), np.zeros(0))
        modal = body.modal if elastic else NO_MODES
        return cls(k, body.mass, body.moment, body.inertia, modal, eta, rate, here.rotation.T @ here.angular)

    # --- integrals over the body ---

    @cached_property
    def moment(self) -> Numeric:
        """m l (3,)"""
        return self.undeformed_moment + 0.5 * self._along(self.modal.moment + self.moment_slopes, self.eta)

    @cached_property
    def moment_slopes(self) -> Numeric:
        """∫V_η of every mode (m, 3): ∫φ_μ + Σ ∫g_μk η_k"""
        return self.modal.moment + self._along(self.modal.moment_curve, self.eta)

    @cached_property
    def inertia(self) -> Numeric:
        """J (3, 3): with Σ h2 η, h2 = h3 + h3ᵀ, and what is quadratic in η"""
        D = [0.5 * (first + whole) for first, whole in zip(self.h3, self.D, strict=True)]
        return self.undeformed_inertia + ops.total((d + d.T) * eta for d, eta in zip(D, self.eta, strict=True))

    @cached_property
    def spins(self) -> Numeric:
        """∫ζ × V_η (m, 3): h1_μ + Σ (h4_kμ + ∫ρ × g_kμ) η_k"""
        return self.modal.spin + self._along(np.swapaxes(self.modal.spin_slope, 0, 1), self.eta)

    @cached_property
    def coriolis_spins(self) -> Numeric:
        """∫u̇ × V_η (m, 3): Σ h4_kμ η̇_k; h4 is the part of the slope that changes sign with the order of the modes"""
        slope = self.modal.spin_slope
        return self._along(0.5 * (np.swapaxes(slope, 0, 1) - slope), self.rate)

    @cached_property
    def h3(self) -> list[Numeric]:
        """∫(ρ·φ_μ) E − ρ φ_μᵀ (3, 3), of every mode: its parts are h2 / 2 and h1 × / 2"""
        return [0.5 * (h2 + ops.skew(h1)) for h1, h2 in zip(self.modal.spin, self.modal.inertia_slope, strict=True)]

    @cached_property
    def D(self) -> list[Numeric]:
        """∫(ζ·V_η) E − ζ V_ηᵀ (3, 3), of every mode: h3_μ + Σ (h5_kμ + ∫(ρ·g_kμ) E − ρ g_kμᵀ) η_k"""
        found = []
        for mu, h3 in enumerate(self.h3):
            turning = self._along(self.modal.spin_slope[mu], self.eta)
            curving = self._along(self.modal.inertia_curve[mu], self.eta)
            found.append(h3 + 0.5 * (curving + ops.skew(turning)))
        return found

    @staticmethod
    def _along(coefficients: Numeric, x: Numeric) -> Numeric:
        """Σ c_μ x_μ over the first index."""
        return np.zeros(np.shape(coefficients)[1:]) + ops.total(c * x[mu] for mu, c in enumerate(coefficients))

    # --- Kane's equations ---

    def partial_velocities(self, state: TreeState) -> dict[int, ElasticVector]:
        """(V_p, ω_p, V_pη) by speed p."""
        axes, m = state.placed[self.k].rotation.T, len(self.eta)
        rigid = state.partial_velocities[self.k].items()
        found = {p: ElasticVector(axes @ u.linear, axes @ u.angular, np.zeros(m)) for p, u in rigid}
        modes = zip(state.own_dofs[self.k], np.eye(m), strict=False)  # of a rigid body there are none
        return found | {p: ElasticVector(np.zeros(3), np.zeros(3), unit) for p, unit in modes}

    def inertia_force(self, acceleration: ElasticVector) -> ElasticVector:
        """The integrals of R̈_m for R̈, ω̇ and η̈ alone."""
        linear, angular, modal = acceleration
        return ElasticVector(
            self.mass * linear + ops.cross(angular, self.moment) + self.moment_slopes.T @ modal,
            ops.cross(self.moment, linear) + self.inertia @ angular + self.spins.T @ modal,
            self.moment_slopes @ linear + self.spins @ angular + self.modal.mass @ modal,
        )

    def velocity_force(self) -> ElasticVector:
        """The integrals of R̈_m for ω and η̇ alone."""
        omega, rate, c = self.omega, self.rate, self.moment
        l_rate = self.moment_slopes.T @ rate
        linear = ops.cross(omega, ops.cross(omega, c) + 2.0 * l_rate)
        angular = ops.cross(omega, self.inertia @ omega)
        for mu, D in enumerate(self.D):
            recession = self._along(self.modal.moment_curve[mu], rate)  # ∫g, of ü with η̈ = 0
            spin = self._along(self.modal.spin_slope[mu], rate)  # its part that is symmetric in the modes remains
            linear = linear + recession * rate[mu]
            angular = angular + (2.0 * (D.T @ omega) + spin) * rate[mu]
        modal = [
            2.0 * (omega @ spin) - omega @ (D @ omega) for spin, D in zip(self.coriolis_spins, self.D, strict=True)
        ]
        return ElasticVector(linear, angular, ops.array(modal) if modal else np.zeros(0))

    def force_at_rest(self, state: TreeState) -> ElasticVector:
        """Applied forces less the integrals of R̈_m where all q̈ are 0."""
        axes, m = state.placed[self.k].rotation.T, len(self.eta)
        rest: SpatialVector = state.remainders[self.k]
        frame = ElasticVector(axes @ rest.linear, axes @ rest.angular, np.zeros(m))
        applied = ElasticVector(*state.wrenches.get(self.k, ZERO), np.zeros(m))
        return applied - self.inertia_force(frame) - self.velocity_force()
