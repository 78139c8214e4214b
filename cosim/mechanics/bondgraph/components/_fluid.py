"""A compressible fluid: liquid with a fraction of undissolved air.

Volume of the mixture at the gauge pressure p over its volume at ambient pressure p0 (isothermal air, liquid of constant
bulk modulus E; Gholizadeh, Burton, Schoenau, Fluid bulk modulus: comparison of low pressure models, 2012):
    r(p) = (1 − α) (1 − p / E) + α p0 / (p0 + p),      effective bulk modulus −r / r'(p) = E (1 − p / E) without air
The energy per volume at ambient pressure is the work of compression, dφ = −p dr, so φ(0) = 0:
    φ = (1 − α) p² / (2 E) + α p0 (ln(1 + p / p0) − p / (p0 + p))
Without air the pressure would fall below vacuum; a trace of it keeps p0 + p positive, and a cavity opens instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cosim.core import ops
from cosim.core.types import Numeric, param

AMBIENT = 101325.0  # Pa
TRACE = 1e-9  # of air: at ambient pressure it changes the bulk modulus of oil by 2e-5
SMALL = 1e-3  # p / p0 below which ln(1 + x) / x is a series


def bulk_modulus() -> Any:
    return param(unit="Pa", above=0, default=1.75e9, doc="of the liquid")


def air_content() -> Any:
    return param(min=0, max=0.5, default=0.0, doc="undissolved air: its fraction of the volume at ambient pressure")


def density() -> Any:
    return param(unit="kg/m^3", above=0, default=900.0, doc="of the fluid")


def viscosity() -> Any:
    return param(unit="Pa*s", above=0, default=0.04, doc="dynamic, of the fluid")


@dataclass(frozen=True)
class Fluid:
    """E [Pa] and α of the law above."""

    bulk_modulus: float
    air_content: float

    @property
    def air(self) -> Numeric:
        return ops.maximum(self.air_content, TRACE)

    def relative_volume(self, p: Numeric) -> Numeric:
        """r at the gauge pressure p [Pa]."""
        return (1.0 - self.air) * (1.0 - p / self.bulk_modulus) + self.air * AMBIENT / (AMBIENT + p)

    def pressure(self, r: Numeric) -> Numeric:
        """The gauge pressure [Pa] at the relative volume r: the positive root P = p0 + p of a P² − b P − c = 0."""
        a, c = (1.0 - self.air) / self.bulk_modulus, self.air * AMBIENT
        b = (1.0 - self.air) + a * AMBIENT - r
        half = 0.5 * (ops.abs(b) + ops.sqrt(b * b + 4.0 * a * c))  # of either sign of b without cancellation
        return ops.where(b > 0.0, half / a, c / half) - AMBIENT

    def specific_energy(self, r: Numeric) -> Numeric:
        """φ [J/m³] at the relative volume r."""
        p = self.pressure(r)
        of_air = ops.log(1.0 + p / AMBIENT) - p / (AMBIENT + p)
        return (1.0 - self.air) * p * p / (2.0 * self.bulk_modulus) + self.air * AMBIENT * of_air

    def mean_volume(self, p: Numeric) -> Numeric:
        """The mean of r between ambient pressure and p: 1/p ∫ r dp."""
        x = p / AMBIENT
        is_small = ops.abs(x) < SMALL
        series = 1.0 - x * (1.0 / 2.0 - x * (1.0 / 3.0 - x / 4.0))
        of_air = ops.where(is_small, series, ops.log(1.0 + x) / ops.where(is_small, 1.0, x))
        return (1.0 - self.air) * (1.0 - p / (2.0 * self.bulk_modulus)) + self.air * of_air

    def energy(self, volume: Numeric, chamber: Numeric) -> Numeric:
        """U [J] of a fluid that has this volume [m³] at ambient pressure, in a chamber [m³]."""
        return volume * self.specific_energy(chamber / volume)
