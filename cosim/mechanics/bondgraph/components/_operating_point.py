"""The currents of a synchronous machine of least amplitude for a torque, within its limits of current and voltage.

With m = M / p = i_q (ψ + Δ i_d), Δ = L_d − L_q, and the largest flux linkage λ = U / |p ω| that the voltage allows:

- Maximum torque per ampere (MTPA): Δ (i_d² − i_q²) + ψ i_d = 0, so i_d = 2 Δ i_q² / (ψ + √(ψ² + 4 Δ² i_q²)), and i_q of
  a torque is the root of Δ² i_q⁴ + ψ m i_q − m² = 0.
- Field weakening: on the voltage ellipse L_d i_d + ψ = λ cos θ, L_q i_q = λ sin θ, where the torque is
  m = λ / (L_d L_q) sin θ (ψ L_q + Δ λ cos θ).
- Maximum torque per volt (MTPV) ends it, where that torque is largest:
  cos θ = 2 Δ λ / (ψ L_q + √((ψ L_q)² + 8 (Δ λ)²)).
- The circle of the largest current I meets the ellipse at (L_d² − L_q²) i_d² + 2 ψ L_d i_d + ψ² + L_q² I² − λ² = 0.

(Morimoto, Takeda, Hirasa and Taniguchi, Expansion of operating limits for permanent magnet motor by current vector
control considering inverter capacity, IEEE Trans. Industry Applications 26(5), 1990.)
"""

from __future__ import annotations

from dataclasses import dataclass

from cosim.core import ops
from cosim.core.types import Numeric
from cosim.mechanics.bondgraph.components._current_control import left_beside

ROOT_STEPS = 6  # of Newton's method for MTPA, from above: then exact to rounding
ANGLE_STEPS = 10  # of Newton's method within a bracket, on the ellipse
LEAST = 1e-30  # of what is divided by, and of squares, whose roots have slopes
LARGEST_COSINE = 1.0 - 1e-14  # likewise


@dataclass(frozen=True)
class LinearFlux:
    """ψ_d = L_d i_d + ψ, ψ_q = L_q i_q, in units whose i_q ψ_d − i_d ψ_q is the torque over p."""

    flux: float
    inductance_d: float
    inductance_q: float

    @property
    def saliency(self) -> float:
        """Δ"""
        return self.inductance_d - self.inductance_q

    def torque(self, i_d: Numeric, i_q: Numeric) -> Numeric:
        """m"""
        return i_q * (self.flux + self.saliency * i_d)

    def d_of_q(self, i_q: Numeric) -> Numeric:
        """i_d of MTPA."""
        slope = 2.0 * self.saliency * i_q
        return slope * i_q / (self.flux + ops.sqrt(self.flux * self.flux + slope * slope))

    def of_torque(self, m: Numeric) -> tuple[Numeric, Numeric]:
        """(i_d, i_q) of MTPA of a torque of at least 0."""
        i_q = m / self.flux
        if self.saliency:
            square = self.saliency * self.saliency
            i_q = ops.minimum(i_q, ops.sqrt(m / abs(self.saliency) + LEAST))  # both are above the root
            for _ in range(ROOT_STEPS):
                cube = square * i_q * i_q * i_q
                excess = cube * i_q + self.flux * m * i_q - m * m
                i_q = i_q - excess / (4.0 * cube + self.flux * m + LEAST)
        return self.d_of_q(i_q), i_q

    def of_amplitude(self, largest: Numeric) -> tuple[Numeric, Numeric]:
        """(i_d, i_q) of MTPA of an amplitude of the current."""
        slope, square = self.saliency * largest, self.flux * self.flux
        i_d = 2.0 * slope * largest / (self.flux + ops.sqrt(square + 8.0 * slope * slope))
        return i_d, ops.sqrt(largest * largest - i_d * i_d)

    def on_ellipse(self, linkage: Numeric, cosine: Numeric, sine: Numeric) -> tuple[Numeric, Numeric]:
        """(i_d, i_q) of θ."""
        return (linkage * cosine - self.flux) / self.inductance_d, linkage * sine / self.inductance_q

    def last_cosine(self, linkage: Numeric, largest: Numeric) -> Numeric:
        """cos θ up to which the ellipse is followed: to MTPV, or to the circle of the largest current."""
        weak, field = self.saliency * linkage, self.flux * self.inductance_q
        end = 2.0 * weak / (field + ops.sqrt(field * field + 8.0 * weak * weak))
        if ops.is_infinite(largest):
            return end
        b, square = self.flux * self.inductance_d, self.inductance_q * self.inductance_q
        a = self.inductance_d * self.inductance_d - square
        c = self.flux * self.flux + square * largest * largest - linkage * linkage
        i_d = -c / (b + ops.sqrt(ops.maximum(b * b - a * c, LEAST)))
        met = (self.inductance_d * i_d + self.flux) / linkage
        return ops.clip(ops.maximum(end, met), -LARGEST_COSINE, LARGEST_COSINE)

    def angle(self, m: Numeric, linkage: Numeric, last: Numeric) -> Numeric:
        """θ between 0 and `last`, up to which the torque grows with it, of a torque of at least 0; else `last`."""
        of_field = linkage / self.inductance_d * self.flux
        of_saliency = self.saliency * linkage * linkage / (self.inductance_d * self.inductance_q)
        beyond = m > ops.sin(last) * (of_field + of_saliency * ops.cos(last))
        low, high = 0.0 * last, last
        theta = 0.5 * last
        for _ in range(ANGLE_STEPS):
            c, s = ops.cos(theta), ops.sin(theta)
            lacking = m - s * (of_field + of_saliency * c)
            slope = of_field * c + of_saliency * (2.0 * c * c - 1.0)
            low, high = ops.where(lacking > 0.0, theta, low), ops.where(lacking > 0.0, high, theta)
            step = theta + lacking / ops.where(slope > 0.0, slope, LEAST)
            within = ops.logical_and(step >= low, step <= high)
            theta = ops.where(within, step, 0.5 * (low + high))
        return ops.where(beyond, last, theta)

    def setpoints(self, m: Numeric, linkage: Numeric, largest: Numeric, circle: float = 1.0) -> tuple[Numeric, Numeric]:
        """(i_d, i_q) of a torque, or of the largest one in its direction; linkage: λ; largest: I, infinite without a
        limit; circle: as of `PhaseLimits`."""
        size = ops.abs(m)
        if not ops.is_infinite(largest):
            size = ops.minimum(size, self.torque(*self.of_amplitude(largest)))
        i_d, i_q = self.of_torque(size)
        if not ops.is_infinite(linkage):
            last = ops.acos(self.last_cosine(linkage, largest))
            theta = self.angle(size, linkage, last)
            weak_d, weak_q = self.on_ellipse(linkage, ops.cos(theta), ops.sin(theta))
            if not ops.is_infinite(largest):
                weak_d = ops.maximum(weak_d, -largest)
                weak_q = ops.minimum(weak_q, left_beside(weak_d, largest, circle, LEAST))
            psi_d, psi_q = self.inductance_d * i_d + self.flux, self.inductance_q * i_q
            weakened = psi_d * psi_d + psi_q * psi_q > linkage * linkage
            i_d, i_q = ops.where(weakened, weak_d, i_d), ops.where(weakened, weak_q, i_q)
        return i_d, ops.where(m < 0.0, -i_q, i_q)
