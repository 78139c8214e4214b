"""A synchronous machine by tables of its flux linkages over the currents of both axes, with cross saturation.

    u_d = R i_d + ψ̇_d − p ω ψ_q,   u_q = R i_q + ψ̇_q + p ω ψ_d,   M = 3/2 p (ψ_d i_q − ψ_q i_d)

The states are the fluxes, and the currents i = ∂H/∂ψ of one energy H(ψ_d, ψ_q): so no power is lost or won, whatever
the table is. H is a quadratic, which holds outside of the table, and a tensor product of cubic B-splines whose gradient
at the fluxes of the table fits its currents best (least squares; de Boor, A Practical Guide to Splines).

A table of measured or computed fluxes is conservative where ∂ψ_d/∂i_q = ∂ψ_q/∂i_d. What it lacks of that is measured by
the co-energy along two ways to each point, first i_d and then i_q or the other way round; it and the misfit are doubts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from cosim.core import ops
from cosim.core.types import Numeric, param, params
from cosim.core.units import show_percent

MARGIN = 0.25  # of the range of the fluxes, to either side, in which the splines fade out
MOST_INTERVALS = 12  # of the splines in each axis
RIDGE = 1e-7  # of coefficients, in the units of the residuals
DOUBTFUL = 0.01  # relative, of the co-energy and of the currents

Rows = tuple[tuple[float, ...], ...]


@params
class FluxTables:
    currents_d: tuple[float, ...] = param(unit="A", doc="of the rows, increasing")
    currents_q: tuple[float, ...] = param(unit="A", doc="of the columns, increasing; from 0 on: mirrored")
    flux_d: Rows = param(unit="V*s", doc="ψ_d, a row for each of `currents_d`")
    flux_q: Rows = param(unit="V*s", doc="ψ_q, likewise")

    def __post_init__(self) -> None:
        for name in ("currents_d", "currents_q"):
            values = getattr(self, name)
            if len(values) < 3 or any(a >= b for a, b in pairwise(values)):
                raise ValueError(f"{name} are at least 3 currents that increase; sort them")
        shape = len(self.currents_d), len(self.currents_q)
        for name in ("flux_d", "flux_q"):
            rows = getattr(self, name)
            if len(rows) != shape[0] or any(len(row) != shape[1] for row in rows):
                raise ValueError(
                    f"{name} has {shape[0]} rows of {shape[1]}, as many as there are currents; complete it"
                )
        if not self.currents_d[0] <= 0.0 <= self.currents_d[-1] or self.currents_q[0] > 0.0:
            raise ValueError("the currents of a flux table surround 0 A, or those of q begin there; extend it")
        _, _, flux_d, flux_q = self._full
        if (np.diff(flux_d, axis=0) <= 0.0).any() or (np.diff(flux_q, axis=1) <= 0.0).any():
            raise ValueError("a flux grows with the current of its own axis; look for exchanged rows and columns")

    @cached_property
    def _full(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Currents and fluxes, both sides of q."""
        i_d, i_q = np.array(self.currents_d), np.array(self.currents_q)
        flux_d, flux_q = np.array(self.flux_d), np.array(self.flux_q)
        if i_q[0] == 0.0:
            i_q = np.concatenate([-i_q[:0:-1], i_q])
            flux_d = np.hstack([flux_d[:, :0:-1], flux_d])
            flux_q = np.hstack([-flux_q[:, :0:-1], flux_q])
        return i_d, i_q, flux_d, flux_q

    @property
    def asymmetry(self) -> float:
        """Largest difference of the co-energy along both ways, relative to the co-energy of the currents alone."""
        i_d, i_q, flux_d, flux_q = self._full
        middle = int(np.argmin(np.abs(i_d))), int(np.argmin(np.abs(i_q)))
        along_d, along_q = _integrals(flux_d, i_d, middle[0]), _integrals(flux_q.T, i_q, middle[1]).T
        first_d = along_d[:, middle[1] : middle[1] + 1] + along_q
        first_q = along_q[middle[0] : middle[0] + 1] + along_d
        own = first_d - flux_d[middle] * i_d[:, None]  # without the flux of the magnets
        return float(np.abs(first_d - first_q).max() / np.abs(own).max())

    def energy(self, scale: float) -> FluxEnergy:
        """H in units of fluxes and currents that are `scale` times those of a phase."""
        i_d, i_q, flux_d, flux_q = self._full
        currents = np.stack(np.meshgrid(i_d, i_q, indexing="ij"), -1).reshape(-1, 2)
        fluxes = np.stack([flux_d, flux_q], -1).reshape(-1, 2)
        sizes = len(i_d) - 1, len(i_q) - 1
        return FluxEnergy.fitted(scale * fluxes, scale * currents, sizes)

    @property
    def doubts(self) -> list[str]:
        """What a user should know of the table."""
        found = []
        if self.asymmetry > DOUBTFUL:
            what = "the flux tables are not conservative: by two ways the co-energy differs by"
            fix = "look for errors of measurement, or exchanged axes"
            found.append(f"{what} {show_percent(self.asymmetry, 2)}; {fix}")
        misfit = self.energy(1.0).misfit
        if misfit > DOUBTFUL:
            what = "the currents of the machine differ from its flux tables by up to"
            fix = "give more currents, where they bend"
            found.append(f"{what} {show_percent(misfit, 2)} of the largest one; {fix}")
        return found


def _integrals(values: np.ndarray, x: np.ndarray, start: int) -> np.ndarray:
    """∫ of the rows over x from its element `start` on, by trapezoids."""
    steps = 0.5 * (values[1:] + values[:-1]) * np.diff(x)[:, None]
    total = np.vstack([np.zeros((1, values.shape[1])), np.cumsum(steps, axis=0)])
    return total - total[start]


@dataclass(frozen=True)
class Splines:
    """Uniform cubic B-splines of one axis: the first centre, the distance, and their number."""

    first: float
    step: float
    count: int

    @classmethod
    def over(cls, values: np.ndarray, intervals: int) -> Splines:
        margin = MARGIN * np.ptp(values)
        low, high = float(values.min() - margin), float(values.max() + margin)
        step = (high - low) / round(min(intervals, MOST_INTERVALS) * (1.0 + 2.0 * MARGIN))
        return cls(low + step, step, round((high - low) / step) - 1)  # those that are 0 with their slopes at the ends

    def at(self, x: Numeric) -> tuple[Numeric, Numeric]:
        """(values, slopes) of all (count,) at a number, or (n, count) at numbers (n,)."""
        centres = self.first + self.step * np.arange(self.count)
        if isinstance(x, np.ndarray) and x.ndim and not ops.is_symbolic(x):
            x = x[:, None]
            u = (x - centres) / self.step
        else:
            u = ops.array([(x - centre) / self.step for centre in centres])
        size = ops.abs(u)
        outer, inner = ops.maximum(2.0 - size, 0.0), ops.maximum(1.0 - size, 0.0)
        values = (outer * outer * outer - 4.0 * inner * inner * inner) / 6.0
        slopes = ops.where(u < 0.0, 0.5, -0.5) * (outer * outer - 4.0 * inner * inner) / self.step
        return values, slopes


@dataclass(frozen=True)
class FluxEnergy:
    """H [J] = Σ_k (ψ_k − ψ_k0)² / (2 L_k) + Σ c_jk B_j(ψ_d) B_k(ψ_q), 0 without currents; at_rest: the fluxes there;
    misfit: of the currents of the table, relative to their largest."""

    at_zero: tuple[float, float]
    inverse: tuple[float, float]
    splines: tuple[Splines, Splines]
    coefficients: np.ndarray
    misfit: float

    @classmethod
    def fitted(cls, fluxes: np.ndarray, currents: np.ndarray, intervals: tuple[int, int]) -> FluxEnergy:
        """fluxes, currents (n, 2)."""
        at_zero, inverse, rest = [], [], np.empty_like(currents)
        for k in range(2):
            slope, offset = np.polyfit(fluxes[:, k], currents[:, k], 1)
            inverse.append(float(slope))
            at_zero.append(float(-offset / slope))
            rest[:, k] = currents[:, k] - slope * (fluxes[:, k] - at_zero[k])
        splines = Splines.over(fluxes[:, 0], intervals[0]), Splines.over(fluxes[:, 1], intervals[1])
        (d, slope_d), (q, slope_q) = (axis.at(fluxes[:, k]) for k, axis in enumerate(splines))
        n = splines[0].count * splines[1].count
        matrix = np.vstack([np.einsum("nj,nk->njk", slope_d, q), np.einsum("nj,nk->njk", d, slope_q)]).reshape(-1, n)
        ridge = RIDGE * np.abs(matrix).max() * np.eye(n)
        target = np.concatenate([rest[:, 0], rest[:, 1], np.zeros(n)])
        found = np.linalg.lstsq(np.vstack([matrix, ridge]), target, rcond=None)[0]
        misfit = float(np.abs(matrix @ found - target[: 2 * len(rest)]).max() / np.abs(currents).max())
        zero, slopes = (at_zero[0], at_zero[1]), (inverse[0], inverse[1])
        return cls(zero, slopes, splines, found.reshape(splines[0].count, splines[1].count), misfit)

    def energy(self, flux_d: Numeric, flux_q: Numeric) -> Numeric:
        """H(ψ_d, ψ_q)"""
        return self._energy(flux_d, flux_q) - self._least

    def _energy(self, flux_d: Numeric, flux_q: Numeric) -> Numeric:
        beside = [flux - zero for flux, zero in zip((flux_d, flux_q), self.at_zero, strict=True)]
        base = 0.5 * self.inverse[0] * beside[0] * beside[0] + 0.5 * self.inverse[1] * beside[1] * beside[1]
        (d, _), (q, _) = self.splines[0].at(flux_d), self.splines[1].at(flux_q)
        return base + d @ (self.coefficients @ q)

    def currents(self, flux_d: Numeric, flux_q: Numeric) -> tuple[Numeric, Numeric]:
        """∂H/∂ψ"""
        (d, slope_d), (q, slope_q) = self.splines[0].at(flux_d), self.splines[1].at(flux_q)
        i_d = self.inverse[0] * (flux_d - self.at_zero[0]) + slope_d @ (self.coefficients @ q)
        i_q = self.inverse[1] * (flux_q - self.at_zero[1]) + d @ (self.coefficients @ slope_q)
        return i_d, i_q

    @cached_property
    def at_rest(self) -> tuple[float, float]:
        """The fluxes without currents, by Newton's method."""
        flux = np.array(self.at_zero)
        for _ in range(30):
            now = np.array(self.currents(*flux))
            step = 1e-6 * np.array([axis.step for axis in self.splines])
            slopes = [(np.array(self.currents(*(flux + move))) - now) / move.sum() for move in np.diag(step)]
            flux = flux - np.linalg.solve(np.array(slopes).T, now)
        return float(flux[0]), float(flux[1])

    @cached_property
    def _least(self) -> float:
        return float(self._energy(*self.at_rest))
