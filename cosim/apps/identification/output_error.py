"""The output error of a rig, and the numbers with which its runs are nearest to a recording.

The error is what a recording has, less what the same run of the rig gives with other numbers. The compiled rig runs
again, with its controllers and trajectories: closed-loop output error (Landau and Karimi, Automatica 33, 1997; of
robots: Gautier, Janot and Vandanjon, IEEE Transactions on Control Systems Technology 21, 2013). Nothing is
differentiated by time, and whatever the rig simulates may have unknown numbers: loops, elastic gears, sampled drives.
The controllers keep long runs together. Derivatives are differences of runs in SIMD lanes.

The variables x minimise Σ (e / σ)² + Σ x², as in `fit`, with the errors of simulated runs. σ, the noise of each signal,
follows from the errors themselves.

Errors that are left are hardly ever independent: currents have slow parts that no number explains. Their covariance Γ,
of all signals together, follows from their spectrum S, and the covariance of x is H⁻¹ (Jᵀ Γ J + 1) H⁻¹ with H = Jᵀ J +
1, the sandwich of an estimate that does not know Γ (Hansen, Econometrica 50, 1982). The fit makes the errors small
where the numbers act; each line of the spectrum is what it would be without its part in the fit (MacKinnon and White,
Journal of Econometrics 29, 1985).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from cosim.apps.identification.fit import SETTLED_CHANGE, Fit, search
from cosim.apps.identification.identifiability import PRIOR
from cosim.apps.identification.recorded_motion import RecordedMotion, unit_of_time
from cosim.apps.identification.suspicions import of_positions, unit_of_positions
from cosim.apps.identification.variables import Variables
from cosim.core.errors import InputError, InputErrors
from cosim.core.tables.even_rows import means_between
from cosim.core.types import Array
from cosim.rig.rig import Rig

CHANGE = 1e-4  # of a variable, for derivatives
RATE = 100.0  # Hz, of the means of errors that are kept
RUNS = 64  # side by side; more take too much memory
START = 1e-3  # rad or m, by which a recording may begin elsewhere than the rig without being a run from there
ROUNDING = 1e-6  # of times, in steps of the rig
STRAYED = 0.5  # position error of another motion, as a fraction of the motion
ROUNDS = 5  # of searches, with noises estimated anew
SETTLED = 1e-2  # decrease of the sum at which a search ends
DAMPING = 1e-6  # first one: the start is near
QUIET = 1e-5  # least noise, as a fraction of the signal
SMOOTH = 0.25  # Hz, by which a spectrum is averaged in both directions …
FITTED = 0.9  # of a line at most, that the fit has taken away: nothing can be said of one that it has taken whole
LINES = 3  # … and at least so many of its lines


@dataclass
class ClosedLoop:
    """Runs of a rig along a recording of its motion; known: whether the models of its controllers have the numbers that
    are looked for too, as in a recording of a simulated rig, or keep the rig file's, as with a real machine."""

    rig: Rig
    variables: Variables
    motion: RecordedMotion
    known: bool
    _evaluated: dict[bytes, tuple[Array, Array]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Raises InputError for a recording whose even rows lie between the ticks of the rig."""
        model = self.rig.tick_model
        encoders = model.encoders.exact()  # noise and increments have no derivative, and average out
        self._runner = self.rig.with_ticks(replace(model, encoders=encoders))
        if self.motion.window:
            self.first, self.every = round((self.motion.t[0] - 0.5 * self.motion.window) / model.step), 1
        else:
            self.first, self.every = (self._ticks(t) for t in (self.motion.t[0], self.motion.step))
        self.together = max(1, int(1.0 / (RATE * self.motion.step)))

    def _ticks(self, seconds: float) -> int:
        ticks = float(seconds) / self.rig.tick_model.step
        if abs(ticks - round(ticks)) > max(ROUNDING * ticks, 1e-3):
            step = f"{self.rig.tick_model.step:.6g} s"
            what = f"begins at {self.motion.t[0]:.6g} s with rows {self.motion.step:.6g} s apart"
            raise InputError(f"{what}, which are no ticks of {step} of the rig; change schedule.step", self.motion.path)
        return round(ticks)

    @property
    def channels(self) -> list[str]:
        """Signals that are compared: positions, then what drives the joints."""
        joints = self.motion.joints
        return [*(f"{name}/position" for name in joints), *(f"{name}/{self.motion.source}" for name in joints)]

    def means(self, rows: Array) -> Array:
        """(n, …) means of `together` successive rows (k, …) each; a rest of rows is left out, and means with a gap."""
        n = len(rows) // self.together
        means = rows[: n * self.together].reshape(n, self.together, *rows.shape[1:]).mean(axis=1)
        return means[self._beside_gaps(n)]

    def count(self, rows: int) -> int:
        """Of the means of the first rows."""
        return int(self._beside_gaps(rows // self.together).sum())

    def _beside_gaps(self, n: int) -> Array:
        """bool (n,): whether none of the rows of a mean is in a gap."""
        half, t = 0.5 * self.motion.window, self.motion.t[: n * self.together]
        inside = np.zeros((n, self.together), dtype=bool)
        for begin, end in self.motion.gaps:
            inside |= ((t + half > begin) & (t - half < end)).reshape(inside.shape)
        return np.logical_not(inside.any(axis=1))

    def runs(self, x: Array, rows: int) -> Array:
        """Simulated channels (k, rows, c) with k values (k, size) of the variables, NaN after a stop."""
        values = np.array([self.variables.values(of) for of in x], dtype=float)
        delays = values[:, -1] if self.variables.delayed else np.zeros(len(x))
        parameters, first = {}, 0
        for block in self.variables.blocks:
            for name, count in zip(block.numbers, block.lengths, strict=True):
                parameters[name] = values[:, first : first + count]
                first += count
        # where nothing but the delay changes, one run is enough
        initial = {name: np.full(len(x) if parameters else 1, value) for name, value in self._starts().items()}
        motion, tick = self.motion, self.rig.tick_model.step
        edges = motion.t[0] + motion.window * (np.arange(rows + 1) - 0.5)
        last = math.ceil(edges[-1] / tick) + 1 if motion.window else self.first + self.every * (rows - 1)
        step = 1 if motion.window else math.gcd(self.first, self.every)
        batch = self._runner.rollouts(
            parameters=parameters,
            initial=initial,
            duration=last * tick,
            every=step,
            signals=self.channels,
            unknown=() if self.known else tuple(parameters),
        )
        if batch.stopped[0]:
            raise InputError(f"the rig does not follow the recording: {batch.faults[0]}", str(self.rig.spec.path))
        found = np.stack([batch[name] for name in self.channels], axis=2)
        found = found if parameters else np.repeat(found, len(x), axis=0)
        if motion.window:
            return np.stack([self._means_of_log(of, edges) for of in self._delayed(found, delays, tick)])
        return self._delayed(found[:, self.first // step :: self.every // step], delays, motion.step)

    def _means_of_log(self, found: Array, edges: Array) -> Array:
        """(rows, c) what the log would have become, had its uneven rows been those of a simulated run (ticks, c)."""
        t, ticks = self.motion.logged, self.rig.tick_model.step * np.arange(len(found))
        t = t[: np.searchsorted(t, edges[-1]) + 1]
        return means_between(edges, t, np.column_stack([np.interp(t, ticks, column) for column in found.T]))

    def _starts(self) -> dict[str, float]:
        """Initial positions that differ from the rig's."""
        if self.first:
            return {}
        starts = dict(zip(self.rig.joints, self.rig.plant.start_positions, strict=True))
        pairs = zip(self.motion.joints, self.motion.position[0], strict=True)
        return {f"{name}/position": float(q) for name, q in pairs if abs(q - starts[name]) > START}

    def _unit_of_starts(self) -> str:
        """In which other unit the recording begins where the rig does, in words with the fix; empty for none."""
        if self._starts():
            for suspicion in of_positions(self.rig, self.motion):
                if not replace(self, motion=suspicion.motion)._starts():
                    return f"begins where the rig does if {suspicion.text}; {suspicion.fix}"
        return ""

    def _delayed(self, found: Array, delays: Array, step: float) -> Array:
        """Rows `step` [s] apart; positions are recorded so much later than what drives the joints."""
        n = len(self.motion.joints)
        t = np.arange(found.shape[1]) * step
        for of, delay in zip(found, delays, strict=True):
            if delay:
                of[:, :n] = np.column_stack([np.interp(t - delay, t, column) for column in of[:, :n].T])
        return found

    def errors(self, x: Array, rows: int) -> Array:
        """(k, n, c) of k values (k, size) of the variables: means of what is simulated less what is recorded."""
        recorded = np.hstack([self.motion.position, self.motion.drive])[:rows]
        return np.array([self.means(of - recorded) for of in self.runs(x, rows)])

    def evaluate(self, x: Array, rows: int) -> tuple[Array, Array]:
        """(errors (n, c), their derivatives (n, c, size)) over the first rows; the errors are infinite for numbers that
        no rig can have, or with which it stops. Raises InputError at the numbers of the rig itself."""
        key = x.tobytes()
        if key not in self._evaluated:
            if len(self._evaluated) > 1:
                self._evaluated.pop(next(iter(self._evaluated)))
            self._evaluated[key] = self._evaluate(x, rows)
        return self._evaluated[key]

    def _evaluate(self, x: Array, rows: int) -> tuple[Array, Array]:
        size = len(x)
        changed = np.vstack([x, x + CHANGE * np.eye(size)])
        try:
            parts = [self.errors(np.vstack([x, changed[1 + a : 1 + a + RUNS]]), rows) for a in range(0, size, RUNS)]
        except (InputError, InputErrors):
            if not x.any():
                raise
            n = rows // self.together
            return np.full((n, len(self.channels)), np.inf), np.zeros((n, len(self.channels), size))
        base = parts[0][0]
        slope = np.concatenate([part[1:] - part[0] for part in parts]) / CHANGE
        return base, np.moveaxis(slope, 0, 2)

    def check(self, rows: int) -> None:
        """Raises InputError for a recording of another motion than the rig's."""
        motion, n = self.motion, len(self.motion.joints)
        if fix := unit_of_time(motion):
            raise InputError(fix, motion.path)
        try:
            simulated = self.runs(self.variables.of_rig[None], rows)[0]
        except InputError as error:
            if fix := self._unit_of_starts():
                raise InputError(fix, motion.path) from error
            raise
        errors = self.means(simulated - np.hstack([motion.position, motion.drive])[:rows])
        for name, error, recorded in zip(motion.joints, errors[:, :n].T, motion.position[:rows].T, strict=True):
            strayed, moved = float(np.sqrt(np.mean(error**2))), float(np.std(recorded))
            if strayed > STRAYED * moved + START:
                what = f"joint '{name}' of the rig moves otherwise, {strayed:.3g} rms away from the recording"
                part = replace(motion, position=motion.position[:rows])
                fix = unit_of_positions(self.rig, part, simulated[:, :n])
                fix = fix or "give the overlay of the recorded run with --overlay"
                raise InputError(f"{what}; {fix}", motion.path)


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
        if np.abs(x - before).max() < SETTLED_CHANGE:
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
    # H⁻¹ = P Pᵀ, and derivatives in the variables P⁻¹ x: a motion may show some numbers so much better than others that
    # rounding of JᵀJ exceeds the prior
    _, scales, axes = np.linalg.svd(np.concatenate([flat, math.sqrt(prior) * np.eye(size)]), full_matrices=False)
    P = axes.T / scales
    lines = np.fft.rfft(slope @ P, axis=0) / np.sqrt(len(slope))
    # both halves of the spectrum: all lines but the first, and of an even number the last, stand for two
    twice = np.full(len(lines), 2.0)
    twice[0] = 1.0
    twice[-1] = 1.0 if len(slope) % 2 == 0 else 2.0
    spectrum = smoothed_spectrum(_without_fit(errors, lines, twice), len(errors) * step)
    spread = np.einsum("f,fci,fcd,fdj->ij", twice, lines.conj(), spectrum, lines, optimize=True).real
    return P @ (spread + prior * P.T @ P) @ P.T


def _without_fit(errors: Array, lines: Array, twice: Array) -> Array:
    """(f, c) lines of the errors (n, c), each as it would be had the fit not seen it: errors are smallest where the
    numbers act most. See `covariance`."""
    found = np.fft.rfft(errors, axis=0) / np.sqrt(len(errors))
    count = found.shape[1]
    rows = np.sqrt(twice)[:, None, None] * np.concatenate([np.real(lines), np.imag(lines)], axis=1)
    fitted = rows @ rows.transpose(0, 2, 1)
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
