"""A motion that determines the numbers of a rig: sums of sines inside the limits, the best of many (Swevers et al.,
IEEE Transactions on Robotics and Automation 13, 1997).

The motion begins and ends at rest at the initial positions. Its amplitude is as large as positions, velocities and the
efforts that it takes allow. The best motion has the largest determinant of its information on the variables, together
with the information of recordings that there are: then it shows what they do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cosim.apps.identification.equation_error import EquationError, check_identifiable_rig, sources_of
from cosim.apps.identification.recorded_motion import MotionSamples, keep_moving, reach_of
from cosim.apps.identification.variables import DELAY, Variables
from cosim.core.errors import InputError
from cosim.core.types import Array
from cosim.rig.rig import Rig
from cosim.rig.run.export import quoted

FREQUENCIES = np.array([0.1, 0.21, 0.33, 0.46, 0.59, 0.73])  # Hz, no multiples of each other: nothing repeats
ROWS_PER_SECOND = 50
REACH = 1.0  # rad or m: farthest from the start, whatever the limits are
FRACTION = {"position": 0.9, "velocity": 0.8, "effort": 0.7}  # of the limits that the motion takes
CANDIDATES, IMPROVEMENTS = 60, 240
NOISE = 0.01  # of the drives, as a fraction of the largest efforts
SHORTEST_MOTION = 4.0  # s
FADE = 1.0  # s, at both ends


@dataclass(frozen=True)
class KnownInformation:
    """The information of recordings on the variables: matrix (size, size), JᵀJ / σ²; noise (nv,): σ, in the unit of the
    drives, `source`; cutoff [Hz]: of the filter."""

    matrix: Array
    noise: Array
    source: str
    cutoff: float


@dataclass(frozen=True)
class ExcitingMotion:
    """t (k,) [s]; position, velocity, acceleration (k, nv); information: log₁₀ of the determinant, of the best motion
    and of the first one; narrower: of each value of the numbers (n,), how many times its interval shrinks by the
    motion."""

    joints: tuple[str, ...]
    t: Array
    position: Array
    velocity: Array
    acceleration: Array
    information: tuple[float, float]
    narrower: Array

    def table(self) -> str:
        """CSV, for the trajectory `waypoints`."""
        lines = [",".join(["t", *map(quoted, self.joints)])]
        lines += [",".join(f"{value:.9g}" for value in row) for row in np.column_stack([self.t, self.position])]
        return "\n".join(lines) + "\n"


def excite(
    rig: Rig, variables: Variables, duration: float, seed: int = 0, known: KnownInformation | None = None
) -> ExcitingMotion:
    """A motion of so many seconds; known: of recordings, which it adds to. Raises InputError for a rig whose equations
    are not known, for one that starts at a limit, and for a time that is too short."""
    check_identifiable_rig(rig, "design its motion yourself")
    if duration < SHORTEST_MOTION:
        raise InputError(f"is {duration:g} s; give at least {SHORTEST_MOTION:g} s", "--duration")
    search = _MotionSearch(rig, variables, duration, known)
    rng = np.random.default_rng(seed)
    candidates = [search.random(rng) for _ in range(CANDIDATES)]
    values = [search.information(candidate) for candidate in candidates]
    first, best = values[0], max(values)
    chosen = candidates[int(np.argmax(values))]
    for k in range(IMPROVEMENTS):
        moved = chosen + rng.normal(size=chosen.shape) * np.abs(chosen).max() * 0.5 ** (1 + 4 * k // IMPROVEMENTS)
        if (value := search.information(moved)) > best:
            chosen, best = moved, value
    motion = search.motion(chosen)
    information = best / np.log(10.0), first / np.log(10.0)
    return ExcitingMotion(rig.joints, search.t, *motion, information, search.narrower(motion))


class _MotionSearch:
    """Motions as coefficients (2, frequencies, nv) of sines and cosines."""

    def __init__(self, rig: Rig, variables: Variables, duration: float, known: KnownInformation | None) -> None:
        self.known = known
        # a variable changes by the order of itself where nothing is known of it
        self.before = np.eye(variables.size) + (known.matrix if known else 0.0)
        self.t = np.linspace(0.0, duration, round(duration * ROWS_PER_SECOND) + 1)
        self.start = np.array(rig.plant.model.equations.chart(np.asarray(rig.plant.start.q)), dtype=float)
        self.limits = rig.limits
        self.shape = (2, len(FREQUENCIES), len(rig.joints))
        lower, upper = (FRACTION["position"] * (bound - self.start) for bound in (rig.limits.lower, rig.limits.upper))
        self.lower, self.upper = np.maximum(lower, -REACH), np.minimum(upper, REACH)
        for k in np.flatnonzero((self.lower > -1e-3) | (self.upper < 1e-3)):
            what = f"joint '{rig.joints[k]}' starts at a limit; set joints.{rig.joints[k]}.initial between its limits"
            raise InputError(what, str(rig.spec.path))
        self.variables = variables
        self.equation = EquationError(rig, variables.names, sources_of(rig)[-1])
        self.recorded = EquationError(rig, variables.names, known.source) if known else self.equation
        self.numbers = np.concatenate([np.zeros(0), *(b.start for b in variables.blocks if b.title != DELAY)])
        angle = 2.0 * np.pi * np.outer(self.t, FREQUENCIES)
        fade = _fade(self.t, duration)
        self.basis = fade[:, None] * np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
        step = self.t[1]
        self.rate = np.gradient(self.basis, step, axis=0, edge_order=2)
        self.bend = np.gradient(self.rate, step, axis=0, edge_order=2)

    def random(self, rng: np.random.Generator) -> Array:
        """Slow sines are larger: fast ones are limited by the velocity."""
        return rng.normal(size=self.shape) * (FREQUENCIES[0] / FREQUENCIES)[None, :, None]

    def motion(self, coefficients: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration (k, nv), as large as the limits allow."""
        flat = coefficients.reshape(-1, self.shape[2])
        offset, velocity, acceleration = self.basis @ flat, self.rate @ flat, self.bend @ flat
        scale = np.minimum(_most(offset.max(axis=0), self.upper), _most(-offset.min(axis=0), -self.lower))
        scale = np.minimum(scale, _most(np.abs(velocity).max(axis=0), FRACTION["velocity"] * self.limits.velocity))
        least = 1.0
        for _ in range(4):  # efforts are not proportional to the amplitude
            moved = (self.start + scale * least * offset, scale * least * velocity, scale * least * acceleration)
            excess = np.max(np.abs(self._required(moved)) / (FRACTION["effort"] * self.limits.effort))
            if excess <= 1.0:
                return moved
            least *= 0.95 / excess
        return self.start + scale * least * offset, scale * least * velocity, scale * least * acceleration

    def _required(self, motion: tuple[Array, Array, Array]) -> Array:
        """(k, nv) efforts."""
        return self.equation.evaluate(self.numbers, self._samples(motion, np.zeros_like(motion[0])))[0]

    def _samples(self, motion: tuple[Array, Array, Array], drive: Array) -> MotionSamples:
        everywhere, rate = np.ones(drive.shape, dtype=bool), np.gradient(drive, self.t[1], axis=0)
        kept, nothing = np.arange(len(self.t)), np.zeros((len(self.t), self.equation.wrenches))  # in the air
        return MotionSamples(self.t, *motion, drive, rate, width=0.0, kept=kept, moving=everywhere, wrenches=nothing)

    def information(self, coefficients: Array) -> float:
        """The logarithm of the determinant of JᵀJ / σ² + 1, J by all variables, of recordings too."""
        return float(np.linalg.slogdet(self._of(self.motion(coefficients)) + self.before)[1])

    def narrower(self, motion: tuple[Array, Array, Array]) -> Array:
        """(n,) see `ExcitingMotion`."""
        by_x = self.variables.slope(np.zeros(self.variables.size))
        before, after = (
            np.einsum("ij,jk,ik->i", by_x, np.linalg.inv(of), by_x)
            for of in (self.before, self.before + self._of(motion))
        )
        return np.sqrt(before / np.maximum(after, 1e-300))

    def _of(self, motion: tuple[Array, Array, Array]) -> Array:
        """(size, size) JᵀJ / σ² of a motion."""
        required = self._required(motion)
        samples = self._samples(motion, required)
        _, by_numbers, by_delay = self.recorded.evaluate(self.numbers, samples)
        slopes = [by_numbers, by_delay[..., None]] if self.variables.delayed else [by_numbers]
        slope = np.concatenate(slopes, axis=2) @ self.variables.slope(np.zeros(self.variables.size))
        noise = self.known.noise if self.known else NOISE * np.maximum(np.abs(required).max(axis=0), 1e-9)
        moving = samples.moving
        if self.known:
            moving = keep_moving(motion[1], reach_of(self.known.cutoff, 1.0 / ROWS_PER_SECOND))
        rows = (np.where(moving[..., None], slope, 0.0) / noise[:, None])[:: ROWS_PER_SECOND // 10].reshape(
            -1, self.variables.size
        )
        return rows.T @ rows


def _fade(t: Array, duration: float) -> Array:
    """0 at both ends with two derivatives, 1 between."""
    x = np.clip(np.minimum(t, duration - t) / FADE, 0.0, 1.0)
    return x**3 * (10.0 - 15.0 * x + 6.0 * x**2)


def _most(largest: Array, bound: Array) -> Array:
    return np.where(largest > 0.0, bound / np.maximum(largest, 1e-12), np.inf)


def overlay_of(rig: Rig, table: Path, duration: float) -> dict[str, object]:
    """Keys of the rig that make its first controller follow a table."""
    loops = rig.tick_model.loops
    whole = [loop.name for loop in loops if len(loop.index) == len(rig.joints)]
    if not whole:
        what = "no controller moves all joints, which is how the motion is followed; add one"
        raise InputError(what, str(rig.spec.path))
    return {
        f"controllers.{whole[0]}.trajectory": {"type": "waypoints", "file": str(table.resolve())},
        "schedule.duration": duration,
    }
