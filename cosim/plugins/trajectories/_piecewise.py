"""Polynomials from a table, one per piece of time or of a path: what splines and planned paths consist of; and splines
through points of several joints, with continuous derivatives up to one less than their degree."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cosim.core.compile.row_lookup import RowLookup
from cosim.core.types import Array, Numeric

# degree, ends -> the derivatives that are 0 at both ends
ZERO_AT_ENDS = {
    (3, "clamped"): (1,),
    (3, "natural"): (2,),
    (5, "clamped"): (1, 2),
    (5, "natural"): (3, 4),
}


@dataclass(frozen=True, eq=False)
class PiecewisePolynomial:
    """n polynomials in the distance from the begin of their piece, constant before the first piece and after the last.

    row_at: x -> (1 + (degree + 1) n,): where the piece begins, then the coefficients of the powers degree … 0 of the n
    polynomials.
    """

    row_at: RowLookup
    n: int
    end: float

    @classmethod
    def of(cls, begins: Array, coefficients: Array, name: str) -> PiecewisePolynomial:
        """begins: (m,) of the m - 1 pieces and the end of the last; coefficients: (degree + 1, m - 1, n), as scipy's
        `PPoly` has them."""
        powers, pieces, n = coefficients.shape
        table = np.zeros((pieces + 2, 1 + powers * n))
        table[1:, 0] = begins
        table[1:-1, 1:] = coefficients.transpose(1, 0, 2).reshape(pieces, powers * n)
        first, last = _value(coefficients[:, 0], 0.0), _value(coefficients[:, -1], begins[-1] - begins[-2])
        table[0, -n:], table[-1, -n:] = first, last
        return cls(RowLookup(np.concatenate(([-math.inf], begins)), table, name), n, float(begins[-1]))

    @property
    def breaks(self) -> Array:
        """Where the pieces begin, and the end of the last one."""
        return self.row_at.begins[1:]

    def __call__(self, x: Numeric) -> tuple[Numeric, Numeric, Numeric]:
        """(value, first, second derivative), (n,) each."""
        row = self.row_at(x)
        return self._evaluated(x - row[:1], row)

    def many(self, x: Array) -> tuple[Array, Array, Array]:
        """(value, first, second derivative), (k, n) each, at numbers x (k,); at the end from the last piece."""
        begun = np.searchsorted(self.row_at.begins[:-1], x, side="right") - 1
        rows = self.row_at.rows[begun]
        value, rate, bend = self._evaluated((x - rows[:, 0])[None, :], rows.T)
        return value.T, rate.T, bend.T

    def _evaluated(self, s: Numeric, row: Numeric) -> tuple[Numeric, Numeric, Numeric]:
        """See `__call__`; s: distance from the begin of the piece."""
        n = self.n
        powers = [row[1 + k * n : 1 + (k + 1) * n] for k in range((len(row) - 1) // n)]
        value, rate, bend = powers[0], np.zeros(np.shape(powers[0])), np.zeros(np.shape(powers[0]))
        for coefficient in powers[1:]:  # Horner's scheme, of bend / 2
            bend = bend * s + rate
            rate = rate * s + value
            value = value * s + coefficient
        return value, rate, 2.0 * bend

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        """As a trajectory whose pieces are times."""
        position, velocity, acceleration = self(t)
        return {
            "position": position,
            "velocity": velocity,
            "acceleration": acceleration,
            "effort": np.zeros(self.n),
        }


def _value(coefficients: Array, s: float) -> Array:
    """(n,) of the coefficients (degree + 1, n)."""
    value = np.zeros(coefficients.shape[1])
    for coefficient in coefficients:
        value = value * s + coefficient
    return value


def spline_coefficients(x: Array, points: Array, degree: int, ends: str) -> Array:
    """(degree + 1, m - 1, n) of the spline through points (m, n) at x (m,), in the form of `PiecewisePolynomial.of`.

    Among all functions through the points with these ends, the cubic spline has the least integral of the squared
    second derivative, the quintic one of the squared jerk.
    """
    from scipy.interpolate import make_interp_spline

    zero = [(k, np.zeros(points.shape[1])) for k in ZERO_AT_ENDS[degree, ends]]
    spline = make_interp_spline(x, points, k=degree, bc_type=(zero, zero))
    return np.array([spline(x[:-1], k) / math.factorial(k) for k in range(degree, -1, -1)])


def spline_through(x: Array, points: Array, degree: int, ends: str, name: str) -> PiecewisePolynomial:
    """See `spline_coefficients`."""
    return PiecewisePolynomial.of(x, spline_coefficients(x, points, degree, ends), name)


def increasing(times: tuple[float, ...], count: int, points: str) -> None:
    """Raises ValueError unless there are `count` times above 0 that increase; points: what has the times."""
    if len(times) != count:
        raise ValueError(f"{count} {points} need {count} times, got {len(times)}")
    for before, after in zip((0.0, *times), times, strict=False):
        if after <= before:
            raise ValueError(f"times must increase from 0, but {after:g} s follows {before:g} s")
