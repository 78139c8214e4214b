"""Kane's equations of trees of elastic bodies, f_p + f*_p = 0, with partial velocities per kind of generalised speed.

A point of a body is at ζ = ρ + u in the frame at its hinge. The generalised speeds are the hinges' speeds and the modal
rates. Per unit of speed p the frame has the partial velocities V_p and ω_p, and in the frame the point has V_pη, which
is 0 but for the modes of the body. With the acceleration R̈ of the hinge (9, 31–35)

    −f*_p = V_p·∫R̈_m + ω_p·∫ζ × R̈_m + ∫V_pη·R̈_m,    R̈_m = R̈ + ω̇ × ζ + ω × (ω × ζ) + 2 ω × u̇ + ü,

    ∫R̈_m = m R̈ + ω̇ × m l + ω × (ω × m l) + 2 ω × m l̊ + m l̊̊,
    ∫ζ × R̈_m = m l × R̈ + J ω̇ + ω × J ω + 2 Σ D_μᵀ ω η̇_μ + ∫ζ × ü,
    ∫V_pη·R̈_m = R̈·∫V_pη + ω̇·∫ζ × V_pη + 2 ω·∫u̇ × V_pη + ∫ü·V_pη − ω·D_p ω,    D_p = ∫(ζ·V_pη) E − ζ V_pηᵀ.

f_p holds the applied forces, and for a mode −(K η + N η̇) (29) with the hardening of the link.

The integrals go over the mass points of `ModalMass`, and over its rest, where u = Σ φ_μ η_μ as in the paper and
h4 and h5 are its integrals. Beyond the paper: points recede while the body bends, so V_pη depends on the shape;
sections turn and have inertia; what hangs on an elastic body moves with its modes, so V_p and ω_p are taken at the
place of the hinge. The paper prints h3 and h5 where the moment of Coriolis forces has their transposes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.formulations import Formulation
from cosim.mechanics.formulations._closing import ByMultipliers, symmetric_matrix, vector
from cosim.mechanics.formulations._tree_state import ZERO, TreeState
from cosim.mechanics.multibody.bodies import AnyBody
from cosim.mechanics.multibody.elastic_bodies import ElasticBody, PointCurve
from cosim.mechanics.multibody.elastic_spatial import ElasticVector
from cosim.mechanics.multibody.equations import MechanismEquations

ABOUT = "Kane's equations of elastic and rigid bodies about their hinges, by integrals over the mass, O(n³)"
SOURCE = "Jin and Bauer, Kane's dynamical equations of flexible multibody systems with tree structure, 1991"


def refusal(_: MechanismEquations) -> str | None:
    return None


def load(equations: MechanismEquations) -> Formulation:
    return ByMultipliers(equations, tree_equations)


def tree_equations(state: TreeState) -> tuple[Numeric, Numeric]:
    """A (n, n) and B (n,): −f*_p without its q̈, and f_p + f*_p at q̈ = 0 without τ_p, are A q̈ and B."""
    A: dict[tuple[int, int], Numeric] = {(p, p): rotor for p, rotor in enumerate(state.rotors)}
    B: dict[int, Numeric] = {}
    for k, body in enumerate(state.bodies):
        deformed = (DeformedBody if isinstance(body, ElasticBody) else RigidBody)(state, k)
        rest = deformed.force_at_rest
        speeds = list(deformed.partial_velocities.items())
        for i, (p, u) in enumerate(speeds):
            B[p] = B.get(p, 0.0) + u.dot(rest)
            inertia_force = deformed.inertia_force(u)
            for r, other in speeds[i:]:
                place = min(p, r), max(p, r)
                A[place] = A.get(place, 0.0) + other.dot(inertia_force)
    return symmetric_matrix(state.dofs, A), vector(state.dofs, B)


@dataclass(frozen=True)
class RigidBody:
    """A body along its own axes about its hinge. Speeds, accelerations and forces on it are triples: of its frame (3,)
    and (3,), and of its modes (m,)."""

    state: TreeState
    k: int

    @property
    def modes(self) -> range:
        """Their dofs."""
        return range(0)

    @property
    def body(self) -> AnyBody:
        return self.state.bodies[self.k]

    @cached_property
    def moment(self) -> Numeric:
        """m l (3,)"""
        return self.body.moment

    @cached_property
    def inertia(self) -> Numeric:
        """J (3, 3)"""
        return self.body.inertia

    @cached_property
    def _axes(self) -> Numeric:
        return self.state.placed[self.k].rotation.T

    @cached_property
    def omega(self) -> Numeric:
        """(3,)"""
        return self._axes @ self.state.placed[self.k].angular

    @cached_property
    def partial_velocities(self) -> dict[int, ElasticVector]:
        """(V_p, ω_p, V_pη) by speed p."""
        rigid = self.state.partial_velocities[self.k].items()
        found = {p: self._of_frame(self._axes @ u.linear, self._axes @ u.angular) for p, u in rigid}
        units = zip(self.modes, np.eye(len(self.modes)), strict=True)
        return found | {p: ElasticVector(np.zeros(3), np.zeros(3), unit) for p, unit in units}

    def _of_frame(self, linear: Numeric, angular: Numeric) -> ElasticVector:
        return ElasticVector(linear, angular, np.zeros(len(self.modes)))

    def inertia_force(self, acceleration: ElasticVector) -> ElasticVector:
        """The integrals of R̈_m for R̈, ω̇ and η̈ alone."""
        linear, angular, _ = acceleration
        return self._of_frame(
            self.body.mass * linear + ops.cross(angular, self.moment),
            ops.cross(self.moment, linear) + self.inertia @ angular,
        )

    @property
    def velocity_force(self) -> ElasticVector:
        """The integrals of R̈_m for ω and η̇ alone."""
        omega = self.omega
        return self._of_frame(ops.cross(omega, ops.cross(omega, self.moment)), ops.cross(omega, self.inertia @ omega))

    @property
    def force_at_rest(self) -> ElasticVector:
        """Applied forces less the integrals of R̈_m where all q̈ are 0."""
        rest = self.state.remainders[self.k]
        frame = self._of_frame(self._axes @ rest.linear, self._axes @ rest.angular)
        applied = self._of_frame(*self.state.wrenches.get(self.k, ZERO))
        return applied - self.inertia_force(frame) - self.velocity_force


class MassPoint(NamedTuple):
    """A point of the mass; see `ModalMass`."""

    fraction: Numeric  # √kg
    place: Numeric  # ζ (3,)
    speeds: Numeric  # V_η of every mode (m, 3)
    bias: Numeric  # ü (3,) where η̈ = 0


@dataclass(frozen=True)
class DeformedBody(RigidBody):
    """An elastic body in its present shape."""

    @property
    def modes(self) -> range:
        return self.state.own_dofs[self.k]

    @property
    def eta(self) -> Numeric:
        """η (m,)"""
        return self.state.coordinates[self.k][0]

    @property
    def rate(self) -> Numeric:
        """η̇ (m,)"""
        return self.state.coordinates[self.k][1]

    # --- integrals over the mass ---

    @cached_property
    def points(self) -> list[MassPoint]:
        modal, found = self.body.modal, []
        for fraction, *path in zip(modal.fraction, modal.position, modal.linear, modal.curve, strict=True):
            curve = PointCurve(*path)
            found.append(MassPoint(fraction, *curve.place(self.eta), curve.rates(self.eta, self.rate)[1]))
        return found

    @cached_property
    def moment(self) -> Numeric:
        """m l (3,)"""
        return ops.sum(point.fraction * point.place for point in self.points)

    @cached_property
    def inertia(self) -> Numeric:
        """J (3, 3) = ∫(ζ·ζ) E − ζ ζᵀ"""
        rest = [0.5 * eta * (h5 + h5.T) for eta, h5 in zip(self.eta, self._h5, strict=True)]
        return ops.sum(rest) + ops.sum(_turning(point.place, point.place) for point in self.points)

    @cached_property
    def moment_speeds(self) -> Numeric:
        """∫V_η (m, 3)"""
        return ops.sum(point.fraction * point.speeds for point in self.points)

    @cached_property
    def spins(self) -> Numeric:
        """∫ζ × V_η (m, 3)"""
        return self._h4(self.eta) + ops.sum(_crossed(point.place, point.speeds) for point in self.points)

    @cached_property
    def coriolis_spins(self) -> Numeric:
        """∫u̇ × V_η (m, 3)"""
        moving = (_crossed(self.rate @ point.speeds, point.speeds) for point in self.points)
        return self._h4(self.rate) + ops.sum(moving)

    @cached_property
    def D(self) -> list[Numeric]:
        """∫(ζ·V_η) E − ζ V_ηᵀ (3, 3), of every mode"""
        return [
            h5 + ops.sum(_turning(point.place, point.speeds[mu]) for point in self.points)
            for mu, h5 in enumerate(self._h5)
        ]

    @cached_property
    def modal_mass(self) -> Numeric:
        """∫V_η·V_η (m, m)"""
        return self.body.modal.rest_mass + ops.sum(point.speeds @ point.speeds.T for point in self.points)

    def _h4(self, x: Numeric) -> Numeric:
        """Σ h4_kμ x_k (m, 3) of the rest, h4_kμ = ∫φ_k × φ_μ"""
        return ops.sum(h4 * x[k] for k, h4 in enumerate(np.swapaxes(self.body.modal.rest_spin, 0, 1)))

    @cached_property
    def _h5(self) -> list[Numeric]:
        """Σ h5_kμ η_k (3, 3) of the rest, of every mode μ, h5_kμ = ∫(φ_k·φ_μ) E − φ_k φ_μᵀ: half of what it makes with
        its transpose, and half of h4_kμ ×"""
        modal = self.body.modal
        both = ops.sum(each * self.eta[k] for k, each in enumerate(modal.rest_inertia))
        return [0.5 * (sum_ + ops.skew(h4)) for sum_, h4 in zip(both, self._h4(self.eta), strict=True)]

    # --- Kane's equations ---

    def inertia_force(self, acceleration: ElasticVector) -> ElasticVector:
        linear, angular, modal = acceleration
        of_modes = self.moment_speeds @ linear + self.spins @ angular + self.modal_mass @ modal
        own = ElasticVector(self.moment_speeds.T @ modal, self.spins.T @ modal, of_modes)
        return super().inertia_force(acceleration) + own

    @property
    def velocity_force(self) -> ElasticVector:
        omega, rate = self.omega, self.rate
        linear = 2.0 * ops.cross(omega, self.moment_speeds.T @ rate)
        angular = 2.0 * ops.sum(D.T @ omega * each for D, each in zip(self.D, rate, strict=True))
        modal = 2.0 * (self.coriolis_spins @ omega) - ops.array([omega @ (D @ omega) for D in self.D])
        for point in self.points:
            linear = linear + point.fraction * point.bias
            angular = angular + ops.cross(point.place, point.bias)
            modal = modal + point.speeds @ point.bias
        return super().velocity_force + ElasticVector(linear, angular, modal)


def _turning(a: Numeric, b: Numeric) -> Numeric:
    """(a·b) E − a bᵀ"""
    return (a @ b) * np.eye(3) - a[:, None] * b[None, :]


def _crossed(a: Numeric, rows: Numeric) -> Numeric:
    """a × every row (m, 3)"""
    return ops.array([ops.cross(a, row) for row in rows])
