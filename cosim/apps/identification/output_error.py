"""The numbers with which the runs of a rig are nearest to a recording, by least squares of the output error.

The variables x minimise Σ (e / σ)² + Σ x², as in `fit`, with the errors of simulated runs. σ, the noise of each signal,
follows from the errors themselves.

Errors that are left are hardly ever independent: currents have slow parts that no number explains. Their covariance
Γ, of all signals together, follows from their spectrum S, and the covariance of x is H⁻¹ (Jᵀ Γ J + 1) H⁻¹ with
H = Jᵀ J + 1, the sandwich of an estimate that does not know Γ (Hansen, Econometrica 50, 1982). The fit makes the errors
small where the numbers act; each line of the spectrum is what it would be without its part in the fit (MacKinnon and
White, Journal of Econometrics 29, 1985).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.apps.identification.closed_loop import ClosedLoop
from cosim.apps.identification.fit import SAME, Fit, search
from cosim.apps.identification.identifiability import PRIOR
from cosim.core.types import Array

ROUNDS = 5  # of searches, with noises estimated anew
SETTLED = 1e-2  # decrease of the sum at which a search ends
DAMPING = 1e-6  # first one: the start is near
QUIET = 1e-5  # least noise, as a fraction of the signal
SMOOTH = 0.25  # Hz, by which a spectrum is averaged in both directions …
FITTED = 0.9  # of a line at most, that the fit has taken away: nothing can be said of one that it has taken whole
LINES = 3  # … and at least so many of its lines


@dataclass(frozen=True)
class OutputFit:
    """The fit, the errors (n, c) that are left over their noise (c,), and their derivatives (n, c, size); loose: the
    covariance (size, size) with PRIOR."""

    fit: Fit
    loose: Array
    errors: Array
    slope: Array

    @property
    def misfit(self) -> float:
        """Of the errors themselves: the sum of the logarithms of their noises."""
        return float(np.sum(np.log(self.fit.noise)))


def noise_of(loop: ClosedLoop, errors: Array) -> Array:
    """(c,) of errors (n, c)."""
    signals = np.hstack([loop.motion.position, loop.motion.drive])
    least = QUIET * np.maximum(np.sqrt(np.mean(signals**2, axis=0)), 1e-12)
    return np.maximum(np.sqrt(np.mean(errors**2, axis=0)), least)


def fit_outputs(loop: ClosedLoop, start: Array, rows: int) -> OutputFit:
    """From the variables `start` on, over the first rows of the recording."""
    x = start
    for _ in range(ROUNDS):
        noise = noise_of(loop, loop.evaluate(x, rows)[0])

        def weighted(y: Array, noise: Array = noise) -> tuple[Array, Array]:
            errors, slope = loop.evaluate(y, rows)
            stacked = (slope / noise[:, None]).reshape(-1, y.size)
            return np.concatenate([(errors / noise).ravel(), y]), np.concatenate([stacked, np.eye(y.size)])

        before, x = x, search(weighted, x, DAMPING, SETTLED)
        if np.abs(x - before).max() < SAME:
            break
    errors, slope = loop.evaluate(x, rows)
    noise = noise_of(loop, errors)
    errors, slope = errors / noise, slope / noise[:, None]
    step = loop.motion.step * loop.together
    sure, loose = (covariance(errors, slope, step, prior) for prior in (1.0, PRIOR))
    return OutputFit(Fit(x, sure, noise), loose, errors, slope)


def covariance(errors: Array, slope: Array, step: float, prior: float = 1.0) -> Array:
    """(size, size) of x, of errors (n, c) over their noise with derivatives (n, c, size), `step` [s] apart; prior: the
    factor of Σ x²."""
    size = slope.shape[2]
    flat = slope.reshape(-1, size)
    inverse = np.linalg.inv(flat.T @ flat + prior * np.eye(size))
    lines = np.fft.rfft(slope, axis=0) / np.sqrt(len(slope))
    # both halves of the spectrum: all lines but the first, and of an even number the last, stand for two
    twice = np.full(len(lines), 2.0)
    twice[0] = 1.0
    twice[-1] = 1.0 if len(slope) % 2 == 0 else 2.0
    spectrum = smoothed_spectrum(_without_fit(errors, lines, twice, inverse), len(errors) * step)
    spread = np.einsum("f,fci,fcd,fdj->ij", twice, lines.conj(), spectrum, lines, optimize=True).real
    return inverse @ (spread + prior * np.eye(size)) @ inverse


def _without_fit(errors: Array, lines: Array, twice: Array, inverse: Array) -> Array:
    """(f, c) lines of the errors (n, c), each as it would be had the fit not seen it: errors are smallest where the
    numbers act most. See `covariance`."""
    found = np.fft.rfft(errors, axis=0) / np.sqrt(len(errors))
    count = found.shape[1]
    rows = np.sqrt(twice)[:, None, None] * np.concatenate([np.real(lines), np.imag(lines)], axis=1)
    fitted = rows @ inverse @ rows.transpose(0, 2, 1)
    fitted *= np.minimum(1.0, FITTED / np.maximum(np.linalg.norm(fitted, axis=(1, 2)), FITTED))[:, None, None]
    parts = np.concatenate([found.real, found.imag], axis=1)[:, :, None]
    parts = np.linalg.solve(np.eye(2 * count) - fitted, parts)[:, :, 0]
    return parts[:, :count] + 1j * parts[:, count:]


def smoothed_spectrum(lines: Array, duration: float) -> Array:
    """(f, c, c) of lines (f, c), of a duration [s]."""
    from scipy.ndimage import uniform_filter1d

    products = lines[:, :, None] * lines[:, None, :].conj()
    width = 2 * max(LINES, round(SMOOTH * duration)) + 1
    real, imaginary = (
        uniform_filter1d(part, width, axis=0, mode="mirror") for part in (np.real(products), np.imag(products))
    )
    return real + 1j * imaginary
