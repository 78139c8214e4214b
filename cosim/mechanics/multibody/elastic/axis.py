"""The axis of an elastic link as smooth functions of the material coordinate s: for what slides along it.

A mode shape is given at places, or by finite elements whose curvature jumps between these. What slides along the axis
feels the derivatives of the shapes by s too, so they are interpolated by one Chebyshev series each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cosim.core import ops
from cosim.core.errors import InputError
from cosim.core.types import Array, Numeric
from cosim.mechanics.multibody.elastic.link import ElasticLink

DEGREES = range(16, 81, 8)  # of the series: the first one that is as near as CLOSE, or the nearest
PROBES = 201  # places at which the series are compared with the shapes
CLOSE = 1e-4  # of the largest deflection of a mode
TOLERANCE = 3e-3  # likewise, by which a series may differ at most; the 20th mode of a beam has 1e-3
ROUNDING = 1e-12  # coefficient beside the largest one


class AxisPoint(NamedTuple):
    """Of the deformed axis at one s, in the frame of the link."""

    position: Numeric  # (3,)
    tangent: Numeric  # (3,) its derivative by s


class ElasticAxis(NamedTuple):
    """The displacements of the axis of a link, x from 0 to `length` [m], as Chebyshev series of 2 s / length − 1.
    difference: the largest one to the shapes of the link, relative to the largest deflection of the mode."""

    length: float
    linear: Array  # (n, m, 3) of φ
    curve: Array  # (n, m, m, 3) of g
    difference: float

    def at(self, s: Numeric, eta: Numeric) -> AxisPoint:
        """r = (s, 0, 0) + Σ φ_μ η_μ + ½ Σ g_μν η_μ η_ν and ∂r/∂s; η (m,)."""
        T = self._polynomials(s)
        x = np.array([1.0, 0.0, 0.0])
        shown, slope = (self._displaced(T, eta, *parts) for parts in (self._values, self._slopes))
        return AxisPoint(x * s + shown, x + slope)

    def material_coordinate(self, x: Numeric, eta: Numeric) -> Numeric:
        """s of the point of the deformed axis at x along the link: s + u_x(s) = x by one step from s = x, exact to
        the third order in η, as the displacements themselves."""
        T = self._polynomials(x)
        along, slope = (self._displaced(T, eta, *parts)[0] for parts in (self._values, self._slopes))
        return x - along / (1.0 + slope)

    @property
    def _values(self) -> tuple[Array, Array]:
        return self.linear, self.curve

    @property
    def _slopes(self) -> tuple[Array, Array]:
        scale = 2.0 / self.length
        return _derivative(self.linear) * scale, _derivative(self.curve) * scale

    def _polynomials(self, s: Numeric) -> list[Numeric]:
        """T_k(2 s / length − 1)"""
        xi = s * (2.0 / self.length) - 1.0
        found: list[Numeric] = [1.0, xi]
        while len(found) < len(self.linear):
            found.append(2.0 * xi * found[-1] - found[-2])
        return found[: len(self.linear)]

    @staticmethod
    def _displaced(T: list[Numeric], eta: Numeric, linear: Array, curve: Array) -> Numeric:
        """(3,)"""
        phi, g = _sum(linear, T), _sum(curve, T)
        bend = ops.sum(g[mu] * eta[mu] for mu in range(len(eta)))
        return eta @ (phi + 0.5 * bend)


def _sum(series: Array, T: list[Numeric]) -> Numeric:
    """The values of the series, in the shape of one coefficient; zeros stay zeros."""
    flat = series.reshape(len(series), -1)
    values = [ops.sum(c * t for c, t in zip(column, T, strict=False) if c) for column in flat.T]
    return ops.array([0.0 if isinstance(value, int) else value for value in values]).reshape(series.shape[1:])


def _derivative(series: Array) -> Array:
    return np.polynomial.chebyshev.chebder(series, axis=0)


def elastic_axis(link: ElasticLink, length: float) -> ElasticAxis:
    """The axis of a link along x. Raises InputError for a link whose shapes are not known all along it, and for shapes
    that jump or have kinks, which no series follows."""
    probes = np.linspace(-1.0, 1.0, PROBES)
    exact, _ = _shapes(link, 0.5 * length * (probes + 1.0))
    sizes = np.abs(exact).max(axis=(0, 2))
    found = list[tuple[float, list[Array]]]()
    for degree in DEGREES:
        series = _series(link, length, degree)
        shown = np.moveaxis(np.polynomial.chebyshev.chebval(probes, series[0]), -1, 0)
        away = np.abs(shown - exact).max(axis=(0, 2)) / np.where(sizes > 0.0, sizes, 1.0)
        found.append((float(away.max()), series))
        if found[-1][0] < CLOSE:
            break
    difference, series = min(found, key=lambda each: each[0])
    if difference > TOLERANCE:
        what = f"its mode shapes differ by {difference:.2g} from smooth functions of x"
        raise InputError(f"{what}; nothing can slide along it: give it fewer modes, or sections without steps")
    linear, curve = map(_without_rounding, series)
    return ElasticAxis(length, linear, curve, difference)


def _series(link: ElasticLink, length: float, degree: int) -> list[Array]:
    """Of φ and of g."""
    nodes = np.polynomial.chebyshev.chebpts1(degree + 1)
    parts = _shapes(link, 0.5 * length * (nodes + 1.0))
    flat = [np.polynomial.chebyshev.chebfit(nodes, part.reshape(len(part), -1), degree) for part in parts]
    return [series.reshape(-1, *part.shape[1:]) for series, part in zip(flat, parts, strict=True)]


def _shapes(link: ElasticLink, places: Array) -> tuple[Array, Array]:
    """(φ (k, m, 3), g (k, m, m, 3))"""
    paths = [link.displacement(np.array([x, 0.0, 0.0])).path for x in places]
    return np.array([path.linear for path in paths]), np.array([path.curve for path in paths])


def _without_rounding(series: Array) -> Array:
    return np.where(np.abs(series) <= ROUNDING * np.abs(series).max(initial=0.0), 0.0, series)
