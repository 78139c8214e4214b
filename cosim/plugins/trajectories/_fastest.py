"""The fastest motion along a given path of the joints within their limits of velocity, acceleration and effort.

The efforts come from the inverse dynamics along the path, friction included. They are affine in u = s̈ and, but for
friction and dampers, in x = ṡ²: what they lack is added as a constant at the x of the solution before, until it no
longer changes. Limits hold at the grid points exactly; between them they may be exceeded by the curvature over a piece,
so the motion is measured on a finer grid, and the limits are reduced by the excess.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.core.compile import ArrayPort, compile
from cosim.core.errors import InputError
from cosim.core.types import Array, Limits, MechanismModel, Numeric, Trajectory, TrajectoryContext
from cosim.plugins.trajectories._piecewise import PiecewisePolynomial

GRID = 1000  # pieces of the path, about
LEAST_PIECES = 20  # between two knots of a path with few of them
FINER = 8  # samples of a piece when its excess is measured
VELOCITY_FRACTION = 0.95  # of the limits of the joints, at which their guard stops a run: feedback needs the rest
EXCESS = 1e-6  # of a limit that counts as rounding
MAX_SOLUTIONS = 60
ZERO_COEFFICIENT = 1e-12  # of u that counts as 0, of rows whose limits are of the order of 1


@dataclass(frozen=True, eq=False)
class PathTrajectory:
    """q(s(t)). timing: a trajectory whose one position is s."""

    path: PiecewisePolynomial
    timing: Trajectory

    @property
    def end(self) -> float:
        return self.timing.end

    def sample(self, t: Numeric) -> dict[str, Numeric]:
        timing = self.timing.sample(t)
        s, rate, bend = (timing[key][0] for key in ("position", "velocity", "acceleration"))
        position, by_s, twice_by_s = self.path(s)
        return {
            "position": position,
            "velocity": by_s * rate,
            "acceleration": twice_by_s * rate**2 + by_s * bend,
            "effort": np.zeros(self.path.n),
        }


def fastest_along(
    path: PiecewisePolynomial,
    limits: MotionLimits,
    context: TrajectoryContext,
    joints: tuple[str, ...],
    delay: float,
) -> PathTrajectory:
    """The motion from rest to rest, which begins after a delay [s]. Raises InputError for limits that do not allow or
    do not bound it."""
    motion = PathDynamics(context, path)
    limits.check_bounded(motion, joints)
    try:
        times, x, u = fastest_motion(motion, limits)
    except Unreachable as error:
        raise InputError(motion.why_unreachable(limits, error.index, joints)) from None
    coefficients = np.array([0.5 * u, np.sqrt(x[:-1]), motion.s[:-1]])[:, :, None]
    return PathTrajectory(path, PiecewisePolynomial.of(delay + times, coefficients, "timing"))


@dataclass(frozen=True)
class MotionLimits:
    """Of n joints; infinite where there are none. key: of the acceleration in the rig."""

    velocity: Array
    acceleration: Array
    effort: Array
    key: str

    @classmethod
    def of(
        cls,
        own: Limits,
        velocity: Sequence[float] | None,
        acceleration: Sequence[float] | None,
        effort_fraction: float,
        key: str = "max_acceleration",
    ) -> MotionLimits:
        """own: of the joints; velocity, acceleration: (n,) further limits; None: a fraction of the joints' velocity
        limit, and no limit of acceleration."""
        slower = VELOCITY_FRACTION * own.velocity if velocity is None else np.minimum(own.velocity, velocity)
        none = np.full(len(own.velocity), np.inf)
        return cls(slower, none if acceleration is None else np.array(acceleration), effort_fraction * own.effort, key)

    def check_bounded(self, motion: PathDynamics, joints: tuple[str, ...]) -> None:
        """Raises InputError if a joint may accelerate without a limit."""
        moving = np.abs(motion.by_s).max(axis=0) > 0.0
        for k in np.flatnonzero(moving & np.isinf(self.acceleration) & np.isinf(self.effort)):
            what = f"joint '{joints[k]}' has no limit of effort or acceleration"
            raise InputError(f"{what}; set joints.{joints[k]}.limits.effort or {self.key}")


class PathDynamics:
    """The n joints along their path, on a grid of s (N + 1,) that holds the points of the path."""

    def __init__(self, context: TrajectoryContext, path: PiecewisePolynomial) -> None:
        """Raises InputError for closed loops and mechanisms that depend on time."""
        model = context.model
        if model.constraint_rows or model.timed:
            what = "time_optimal takes mechanisms without closed loops and without parts that depend on time"
            raise InputError(f"{what}; give the joints another trajectory")
        self.index, self.path, self._nv = context.index, path, model.nv
        self._start = np.asarray(model.chart(context.position))
        self._required = _required_effort(model)
        knots = path.row_at.begins[1:]
        least = min(LEAST_PIECES, np.ceil(GRID / (len(knots) - 1)))
        pieces = np.maximum(least, np.ceil(GRID * np.diff(knots) / knots[-1])).astype(int)
        parts = [np.linspace(a, b, n + 1)[:-1] for a, b, n in zip(knots, knots[1:], pieces, strict=False)]
        self.s = np.concatenate([*parts, knots[-1:]])
        self.along = _, self.by_s, self.twice_by_s = path.many(self.s)
        still = np.zeros_like(self.by_s)
        at_rest, moving = self._rows(self.along[0], still, still), (self.along[0], self.by_s, self.twice_by_s)
        self.by_u = (self._rows(self.along[0], still, self.by_s) - at_rest)[:, self.index]
        friction = self._rows(self.along[0], self.by_s, still) - self._rows(self.along[0], -self.by_s, still)
        self.by_x = (self._rows(*moving) - at_rest - 0.5 * friction)[:, self.index]

    def _rows(self, position: Array, velocity: Array, acceleration: Array) -> Array:
        """(k, nv) the required effort of the whole mechanism, whose other joints stay where they start."""
        whole = [np.tile(self._start, (len(position), 1)), *np.zeros((2, len(position), self._nv))]
        for values, of_joints in zip(whole, (position, velocity, acceleration), strict=True):
            values[:, self.index] = of_joints
        return self._required(*whole)

    def effort(self, along: tuple[Array, Array, Array], x: Array, u: Array) -> Array:
        """(k, n) that the motion requires where the path is as `along`, with friction and springs."""
        position, by_s, twice = along
        velocity, acceleration = by_s * np.sqrt(x)[:, None], twice * x[:, None] + by_s * u[:, None]
        return self._rows(position, velocity, acceleration)[:, self.index]

    def limits(self, limits: MotionLimits, x: Array, reduced: float) -> PathLimits:
        """The rows of the limits times (1 - reduced), with the friction that there is at x (N + 1,)."""
        constant = self.effort(self.along, x, np.zeros(len(x))) - self.by_x * x[:, None]
        rows = []
        for limit, a, b, c in (
            (limits.effort, self.by_u, self.by_x, constant),
            (limits.acceleration, self.by_s, self.twice_by_s, np.zeros_like(self.by_s)),
        ):
            bounded = np.isfinite(limit)
            size = (1.0 - reduced) * limit[bounded]
            for sign in (1.0, -1.0):
                signed = [sign * values[:, bounded] / size for values in (a, b, c)]
                rows.append((signed[0], signed[1], 1.0 - signed[2]))
        a, b, h = (np.concatenate([row[k] for row in rows], axis=1) for k in range(3))
        with np.errstate(divide="ignore"):
            fastest = ((1.0 - reduced) * limits.velocity / np.abs(self.by_s)).min(axis=1)
        return PathLimits(self.s, a, b, h, fastest**2)

    def excess(self, limits: MotionLimits, x: Array, u: Array) -> float:
        """The largest part of a limit by which the motion exceeds it, on a finer grid."""
        fractions = (np.arange(FINER + 1) / FINER)[None, :]
        s = (self.s[:-1, None] + np.diff(self.s)[:, None] * fractions).ravel()
        finer = np.maximum(x[:-1, None] + 2.0 * (u * np.diff(self.s))[:, None] * fractions, 0.0).ravel()
        along, by_u = self.path.many(s), np.repeat(u, FINER + 1)
        _, by_s, twice = along
        found = {
            "effort": self.effort(along, finer, by_u),
            "acceleration": twice * finer[:, None] + by_s * by_u[:, None],
            "velocity": by_s * np.sqrt(finer)[:, None],
        }
        return max(float((np.abs(values) / getattr(limits, name)).max()) for name, values in found.items()) - 1.0

    def why_unreachable(self, limits: MotionLimits, index: int, joints: tuple[str, ...]) -> str:
        place = f"{100.0 * self.s[index] / self.s[-1]:.0f} % of the path"
        required = self.effort(self.along, *np.zeros((2, len(self.s))))
        worst = int(np.argmax(np.abs(required[index]) / limits.effort))
        effort, limit, name = abs(required[index, worst]), limits.effort[worst], joints[worst]
        if effort > limit:
            what = f"at {place} joint '{name}' requires an effort of {effort:.4g} at rest, above {limit:.4g}"
            return f"{what}; raise joints.{name}.limits.effort or change the points"
        return f"no motion within the limits passes {place}; raise the limits of effort or acceleration"


def _required_effort(model: MechanismModel) -> Callable[..., Array]:
    """(positions, velocities, accelerations) (k, nv) -> effort (k, nv), in machine code."""
    equations = model.equations

    def required(chart: Numeric, v: Numeric, a: Numeric) -> Numeric:
        q = equations.coordinates(chart)
        return equations.inverse_dynamics(q, v, a) + equations.friction_effort(v)

    return compile(required, [ArrayPort(name, (model.nv,)) for name in ("q", "v", "a")], "required_effort")


def fastest_motion(motion: PathDynamics, limits: MotionLimits) -> tuple[Array, Array, Array]:
    """(times (N + 1,), x (N + 1,), u (N,)). Raises Unreachable."""
    x, u, reduced = np.zeros(len(motion.s)), np.zeros(len(motion.s) - 1), 0.0
    for _ in range(MAX_SOLUTIONS):
        before = x
        x, u = motion.limits(limits, x, reduced).fastest()
        if np.abs(x - before).max() > 1e-9 * x.max():
            continue
        excess = motion.excess(limits, x, u)
        if excess <= EXCESS:
            break
        reduced += 1.1 * excess
    pieces = 2.0 * np.diff(motion.s) / (np.sqrt(x[:-1]) + np.sqrt(x[1:]))
    return np.concatenate(([0.0], np.cumsum(pieces))), x, u


@dataclass(frozen=True)
class PathLimits:
    """The limits of a motion along a path, by reachability on its phase plane.

    s is the place on the path, x = ṡ² and u = s̈, which is constant between two grid points, so that x is linear in s
    there. Every limit is a row a u + b x ≤ h. Backwards from rest at the end: at each grid point the interval of x from
    which some u leads to the interval of the next one. Forwards from rest at the start: the largest such u. Both are
    linear programs in two and one variables; eliminating u solves them exactly.

    Pham and Pham, A new approach to time-optimal path parameterization based on reachability analysis, IEEE T-RO 34
    (2018).

    a u + b x ≤ h of m rows at N + 1 grid points s (N + 1,), and x ≤ largest (N + 1,)."""

    s: Array
    a: Array  # (N + 1, m)
    b: Array
    h: Array
    largest: Array

    def fastest(self) -> tuple[Array, Array]:
        """x (N + 1,) at the grid points and u (N,) between them. Raises Unreachable."""
        for end in (0, len(self.s) - 1):
            if self.h[end].min(initial=0.0) < 0.0:
                raise Unreachable(end)  # not even at rest
        lower, upper = self._controllable()
        x, u = np.zeros(len(self.s)), np.zeros(len(self.s) - 1)
        for i, step in enumerate(np.diff(self.s)):
            a, b, h = self._between(i, step, lower[i + 1], upper[i + 1])
            left = h - b * x[i]
            most = np.min(left[a > ZERO_COEFFICIENT] / a[a > ZERO_COEFFICIENT], initial=np.inf)
            least = np.max(left[a < -ZERO_COEFFICIENT] / a[a < -ZERO_COEFFICIENT], initial=-np.inf)
            u[i] = most if most >= least else 0.5 * (most + least)  # apart by rounding
            x[i + 1] = np.clip(x[i] + 2.0 * step * u[i], lower[i + 1], upper[i + 1])
        return x, u

    def _controllable(self) -> tuple[Array, Array]:
        """(lower, upper) (N + 1,) of the x from which rest at the end is reached."""
        count = len(self.s)
        lower, upper = np.zeros(count), np.zeros(count)
        for i in range(count - 2, -1, -1):
            rows = self._between(i, self.s[i + 1] - self.s[i], lower[i + 1], upper[i + 1])
            lower[i], upper[i] = _range_of_x(*rows, self.largest[i])
            if not lower[i] <= upper[i]:
                raise Unreachable(i)
        return lower, upper

    def _between(self, i: int, step: float, lower: float, upper: float) -> tuple[Array, Array, Array]:
        """Rows of u and x at grid point i: the limits there and at the next one, whose x is x + 2 step u in [lower,
        upper]."""
        to_next = 2.0 * step
        a = np.concatenate([self.a[i], self.a[i + 1] + to_next * self.b[i + 1], [to_next, -to_next]])
        b = np.concatenate([self.b[i], self.b[i + 1], [1.0, -1.0]])
        h = np.concatenate([self.h[i], self.h[i + 1], [upper, -lower]])
        return a, b, h


def _range_of_x(a: Array, b: Array, h: Array, largest: float) -> tuple[float, float]:
    """The interval of x ≥ 0 for which a u exists, by Fourier and Motzkin's elimination of u."""
    above, below, flat = a > ZERO_COEFFICIENT, a < -ZERO_COEFFICIENT, np.abs(a) <= ZERO_COEFFICIENT
    slope_above, slope_below = b[above] / a[above], b[below] / a[below]
    bound_above, bound_below = h[above] / a[above], h[below] / a[below]
    slope = np.concatenate([(slope_above[:, None] - slope_below[None, :]).ravel(), b[flat]])
    bound = np.concatenate([(bound_above[:, None] - bound_below[None, :]).ravel(), h[flat]])
    rising, falling = slope > 0.0, slope < 0.0
    if (bound[~(rising | falling)] < 0.0).any():
        return np.inf, -np.inf
    upper = np.min(bound[rising] / slope[rising], initial=largest)
    lower = np.max(bound[falling] / slope[falling], initial=0.0)
    return (lower, max(upper, lower)) if upper > lower - 1e-12 * (1.0 + abs(lower)) else (lower, upper)


class Unreachable(ValueError):
    """There is no motion through the grid point at `index`."""

    def __init__(self, index: int) -> None:
        self.index = index
        super().__init__(f"no motion within the limits passes grid point {index}")
