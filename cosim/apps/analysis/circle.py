"""Where the response of a sampled linear system takes a value, and its largest one, over all frequencies: no grid.

On the unit circle z = exp(jθ) the adjoint H~(z) = Hᵀ(1 / z) is the conjugate transpose of H(z), so that a form

    F(z) = s H~ H + p H + a H~ + c I

is a rational function. Its zeros are eigenvalues of a pencil (symplectic for s = 1, p = a = 0, c = −γ²: |H| = γ; Boyd
and Balakrishnan, Systems & Control Letters 15, 1990, and Bruinsma and Steinbuch, Systems & Control Letters 14, 1990, in
discrete time). All angles at which F can change its sign are among the angles of the eigenvalues, however far these lie
from the circle by rounding: the sign of F between two neighbours decides, and no tolerance does.

**Lifted.** A loop that is sampled N times in the period after which the rig repeats is a system whose N inputs and
outputs are its samples in that period (Bittanti and Colaneri, Periodic Systems, 2009, §6.2). A factor of its gain, the
same at each sample and complex for a phase, puts a pole on the circle where an eigenvalue of H(z) has the value that H
itself has there of a loop that repeats with each sample. H(z) of such a loop, lifted, is a normal matrix with the
eigenvalues H₁(exp(j (θ + 2π m) / N)) of the single loop H₁, its largest singular value is the largest of their sizes,
and the zeros of F are those of the eigenvalues. Where the rig varies within the period, the angles beside the poles of
the system are looked at, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from cosim.core.types import Array

HELD = 1e-8  # |z − 1| of a pole of what is held or integrated
ABOVE_HELD = 1e-3  # times the slowest other pole: the lowest angle of a system with such a pole
DECADES = 8  # below half of the rate: that angle, at most
ANGLE_ACCURACY = 1e-13  # relative, of a crossing; two candidates that are closer are one
MOST_HALVINGS = 10_000  # of the search for one crossing, which is slow beside a pole on the circle
PEAK_ACCURACY = 1e-8  # relative, of a peak
MOST_STEPS = 20  # after which the accuracy of a peak is made ten times coarser
ASIDE = 1e-9  # rad, from a pole on the circle at which a response does not exist
WIDTHS = np.tan(np.linspace(-1.5, 1.5, 16))  # beside a pole, times its distance from the circle


class CircleForm(NamedTuple):
    """s, p, a and c of F, see above: real on the circle, or imaginary."""

    square: float
    plain: float
    adjoint: float
    constant: float


class Peak(NamedTuple):
    """The largest value of a response: as reached at an angle θ, per sample, and a bound that it exceeds nowhere."""

    value: float
    bound: float
    angle: float


@dataclass(frozen=True, eq=False)
class SampledSystem:
    """A linear system H(z) = D + C (z I − A)⁻¹ B. A (n, n), B (n, p), C (p, n), D (p, p); lowest, highest: the angles
    between which it is looked at; held: whether the lowest one stands for θ = 0, at which it has a pole; lifted:
    whether its channels are the samples of one loop, see above."""

    A: Array
    B: Array
    C: Array
    D: Array
    lowest: float = 0.0
    highest: float = math.pi
    held: bool = False
    lifted: bool = False

    def at(self, angles: Array) -> Array:
        """(m, p, p) complex H at z = exp(jθ), θ (m,); beside a pole that lies there."""
        angles = np.asarray(angles, dtype=float)
        try:
            return self._at(angles)
        except np.linalg.LinAlgError:
            return self._at(np.where(angles + ASIDE < math.pi, angles + ASIDE, angles - ASIDE))

    def _at(self, angles: Array) -> Array:
        z = np.exp(1j * angles)[:, None, None]
        return self.C @ np.linalg.solve(z * np.eye(len(self.A)) - self.A, self.B[None].astype(complex)) + self.D

    def scaled(self, factor: float, constant: float = 0.0) -> SampledSystem:
        """factor H + constant I."""
        return replace(self, C=factor * self.C, D=factor * self.D + constant * np.eye(len(self.D)))

    def in_units(self, scale: Array) -> SampledSystem:
        """E H E⁻¹ with the diagonal E, scale (p,)."""
        return replace(self, B=self.B / scale, C=scale[:, None] * self.C, D=scale[:, None] * self.D / scale)

    def within(self, lowest: float, highest: float) -> SampledSystem:
        """The same system between these angles."""
        return replace(self, lowest=lowest, highest=highest, held=False)

    def loci(self, angles: Array) -> Array:
        """(m, p) eigenvalues of H at these angles (m,)."""
        responses = self.at(angles)
        return responses[:, :, 0] if len(self.D) == 1 else np.linalg.eigvals(responses)

    def values(self, form: CircleForm, angles: Array) -> Array:
        """(m, p) F of the eigenvalues, ascending; of an imaginary one, F / j."""
        h = self.loci(angles)
        found = form.square * np.abs(h) ** 2 + form.plain * h + form.adjoint * np.conj(h) + form.constant
        return np.sort(np.real(found) + np.imag(found), axis=1)  # one of them is 0

    def per_sample(self, angle: float) -> tuple[Array, Array]:
        """(the eigenvalues (p,) of H at an angle, the angle per sample (p,) at which a lifted loop has each)."""
        if len(self.D) == 1:
            return self.at(np.array([angle]))[0, 0], np.array([angle])
        values, vectors = np.linalg.eig(self.at(np.array([angle]))[0])
        angles = np.array([self.angle_per_sample(angle, vector) for vector in vectors.T])
        return np.where(angles < 0.0, np.conj(values), values), np.abs(angles)

    def angle_per_sample(self, angle: float, samples: Array) -> float:
        """−π to π: of the wave that has the largest part in these samples (p,) of a period that turns by `angle`."""
        count = len(samples)
        waves = (angle + 2.0 * math.pi * np.arange(count)) / count
        parts = np.exp(-1j * np.outer(waves, np.arange(count))) @ samples
        found = float(waves[int(np.argmax(np.abs(parts)))])
        return found if found <= math.pi * (1.0 + ANGLE_ACCURACY) else found - 2.0 * math.pi

    @property
    def real_ends(self) -> Array:
        """The ends at which z, and so H, is real."""
        low = [self.lowest] if self.held or self.lowest == 0.0 else []
        return np.array(low + ([self.highest] if self.highest == math.pi else []))

    @property
    def about_poles(self) -> Array:
        """(k,) angles beside the poles, as far from them as these are from the circle."""
        poles = np.linalg.eigvals(self.A)
        angles = np.abs(np.angle(poles))[:, None] + np.abs(1.0 - np.abs(poles))[:, None] * WIDTHS
        return angles[(angles > self.lowest) & (angles < self.highest)]

    @property
    def resonances(self) -> Array:
        """(k,) angles of the poles, the ends and the middles between them, ascending: where H has its shape."""
        angles = np.abs(np.angle(np.linalg.eigvals(self.A)))
        angles = np.unique([self.lowest, *angles[(angles > self.lowest) & (angles < self.highest)], self.highest])
        return np.union1d(angles, 0.5 * (angles[:-1] + angles[1:]))


def system_of(A: Array, B: Array, C: Array, D: Array) -> SampledSystem:
    """Without the states that no input reaches or no output shows, such as a value that is held, and balanced. What is
    held and stays is not looked at: the response begins above it."""
    A, B, C = balanced(A, B, C)
    lowest = _lowest(np.linalg.eigvals(A))
    return SampledSystem(A, B, C, D, lowest, held=lowest > 0.0)


def balanced(A: Array, B: Array, C: Array) -> tuple[Array, Array, Array]:
    """A system without the states that no input reaches or no output shows, in units of its states in which rows and
    columns are of a size."""
    from scipy.linalg import matrix_balance

    linked = A != 0.0
    kept = np.flatnonzero(_reached(linked, np.any(B != 0.0, axis=1)) & _reached(linked.T, np.any(C != 0.0, axis=0)))
    A, B, C, n = A[np.ix_(kept, kept)], B[kept], C[:, kept], len(kept)
    whole = np.zeros((n + 1, n + 1))
    whole[:n, :n], whole[:n, n], whole[n, :n] = A, np.linalg.norm(B, axis=1), np.linalg.norm(C, axis=0)
    scale = np.asarray(matrix_balance(whole, permute=False, separate=True)[1][0])
    scale, last = scale[:n], scale[n]
    return A * scale / scale[:, None], B * last / scale[:, None], C * scale / last


def _reached(linked: Array, begin: Array) -> Array:
    """(n,) the states to which a chain of links (to, from) leads from some of the first ones."""
    seen = begin
    while not np.array_equal(more := seen | np.any(linked[:, seen], axis=1), seen):
        seen = more
    return seen


def _lowest(poles: Array) -> float:
    """0, or an angle above poles z that are held."""
    distances = np.abs(poles - 1.0)
    if np.all(distances > HELD):
        return 0.0
    slowest = float(np.min(distances[distances > HELD], initial=math.pi))
    return min(ABOVE_HELD * slowest, math.pi * 10.0**-DECADES)


def candidates(system: SampledSystem, form: CircleForm) -> Array:
    """(k,) angles from the lowest to the highest one, both included: F changes its sign at no other one.

    With the states x of H and w of H~ and the input u of H:
    z x = A x + B u;  w = z (Aᵀ w + Cᵀ (s (C x + D u) + a u));  F u = 0.
    """
    from scipy.linalg import eigvals

    A, B, C, D = system.A, system.B, system.C, system.D
    (n, p), (s, plain, adjoint, constant) = B.shape, form
    identity, none = np.eye(n), np.zeros
    through = s * D + adjoint * np.eye(p)
    left = np.block(
        [
            [A, none((n, n)), B],
            [none((n, n)), identity, none((n, p))],
            [s * D.T @ C + plain * C, B.T, D.T @ through + plain * D + constant * np.eye(p)],
        ]
    )
    right = np.block(
        [
            [identity, none((n, n)), none((n, p))],
            [s * C.T @ C, A.T, C.T @ through],
            [none((p, 2 * n + p))],
        ]
    )
    alpha, beta = np.asarray(eigvals(left, right, homogeneous_eigvals=True))
    finite = (np.abs(alpha) > 0.0) & (np.abs(beta) > 0.0)
    angles = np.abs(np.angle(alpha[finite]) - np.angle(beta[finite]))
    angles = np.sort(np.minimum(angles, 2.0 * math.pi - angles))
    angles = angles[(angles > system.lowest) & (angles < system.highest)]
    angles = np.concatenate([[system.lowest], angles, [system.highest]])
    return angles[np.concatenate([[True], np.diff(angles) > ANGLE_ACCURACY * angles[1:]])]


def crossings(system: SampledSystem, form: CircleForm) -> tuple[Array, Array]:
    """(the angles (k,) at which F of a loop changes its sign, ascending; whether it is positive above each (k,))."""
    from scipy.optimize import brentq

    angles = candidates(system, form)
    if system.lifted:
        angles = np.union1d(angles, system.about_poles)
    middles = 0.5 * (angles[:-1] + angles[1:])
    positive = system.values(form, middles) > 0.0
    changes = np.argwhere(positive[:-1] != positive[1:])

    def value(angle: float, rank: int) -> float:
        return float(system.values(form, np.array([angle]))[0, rank])

    found = [
        brentq(
            value,
            middles[k],
            middles[k + 1],
            args=(rank,),
            xtol=ANGLE_ACCURACY * middles[k],
            rtol=np.float64(ANGLE_ACCURACY),
            maxiter=MOST_HALVINGS,
        )
        for k, rank in changes.tolist()
    ]
    return np.array(found), positive[changes[:, 0] + 1, changes[:, 1]]


def peak(system: SampledSystem, scale_of: Callable[[Array], Array] | None = None) -> Peak:
    """The largest singular value of H, or of E H E⁻¹ with the diagonal E = scale_of(H) (p,) that is found for each
    angle.

    The scale at one angle bounds the response about it: where it stays below the highest value so far, nothing more has
    to be looked at (Lawrence, Tits and Van Dooren, A fast algorithm for the computation of an upper bound on the
    μ-norm, Automatica 36, 2000). Without scale this is the algorithm of Bruinsma and Steinbuch.
    """
    known = system.resonances
    values = _sizes(system, known, scale_of)
    best, angle = float(values.max()), float(known[int(values.argmax())])
    begin, left, accuracy, steps = angle, [(system.lowest, system.highest)], PEAK_ACCURACY, 0
    while left:
        steps += 1
        accuracy *= 1.0 if steps % MOST_STEPS else 10.0
        here = system if scale_of is None else system.in_units(scale_of(system.at(np.array([begin]))[0]))
        level = best * (1.0 + accuracy)
        angles = candidates(here, CircleForm(1.0, 0.0, 0.0, -(level**2)))
        above = _sizes(here, 0.5 * (angles[:-1] + angles[1:])) >= level
        left = _common(left, [(float(angles[k]), float(angles[k + 1])) for k in np.flatnonzero(above)])
        if left:
            middles = np.array([0.5 * (low + high) for low, high in left])
            values = _sizes(system, middles, scale_of)
            begin = float(middles[int(values.argmax())])
            if values.max() > best:
                best, angle = float(values.max()), begin
    return Peak(best, best * (1.0 + accuracy), _of_largest(system, angle) if system.lifted else angle)


def _of_largest(system: SampledSystem, angle: float) -> float:
    """The angle per sample of the input that is enlarged most."""
    _, _, inputs = np.linalg.svd(system.at(np.array([angle]))[0])
    return abs(system.angle_per_sample(angle, np.conj(inputs[0])))


def _sizes(system: SampledSystem, angles: Array, scale_of: Callable[[Array], Array] | None = None) -> Array:
    """(m,) the largest singular value, with its scale, at these angles."""
    responses = system.at(angles)
    if scale_of is not None:
        scales = np.array([scale_of(response) for response in responses])
        responses = scales[:, :, None] * responses / scales[:, None, :]
    return np.linalg.norm(responses, 2, axis=(1, 2))


def _common(left: list[tuple[float, float]], right: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The common parts of two lists of intervals, without those of no width."""
    both = [(max(a, c), min(b, d)) for a, b in left for c, d in right]
    return [(low, high) for low, high in both if high - low > ANGLE_ACCURACY * high]
