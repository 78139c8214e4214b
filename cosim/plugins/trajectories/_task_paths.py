"""Paths of a frame in task space, and the path of the joints that follows them.

The joints move with the least velocities that move the frame: q' = J⁺ x'. The path is integrated by the Runge–Kutta
method from point to point, and the frame brought back onto its path by Newton's method at each. The second derivatives
follow from the exact rate of the Jacobian, with what a redundant arm has in its null space,

    q'' = J⁺ (x'' − J̇ q') + (1 − J⁺ J) J̇ᵀ J⁺ᵀ q',

and polynomials of degree 5 join positions and both derivatives. Points are added until the frame is on its path between
them too.
"""

from __future__ import annotations

import itertools
from dataclasses import KW_ONLY
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from cosim.core.errors import InputError
from cosim.core.types import Array, PerJoint, Trajectory, TrajectoryContext, param, params
from cosim.mechanics.multibody.rotations import rotation_vector
from cosim.plugins.trajectories import trapezoidal
from cosim.plugins.trajectories._fastest import MotionLimits, PathTrajectory, fastest_along
from cosim.plugins.trajectories._piecewise import PiecewisePolynomial
from cosim.plugins.trajectories.quintic import Quintic

TOLERANCE = 1e-8  # m and rad between the frame and its path, at and between the points
PIECES, MOST_PIECES = 50, 6400
NEWTON_STEPS = 20
RANK = 1e-9  # singular value of the Jacobian, relative to the largest one, that counts as 0
RANDOM_PLACES = 8  # within 1 rad or m of the start, where the Jacobian has its generic rank
LARGEST_STEP = 0.5  # rad or m of a joint from point to point: more is the jump at a singularity
Vector = tuple[float, float, float]


@params
class PathTiming:
    """How fast a frame moves along its path: in a given time with the least jerk, by a trapezoid of speed, or as fast
    as the joints can."""

    _: KW_ONLY
    duration: float | None = param(unit="s", above=0, default=None, doc="time of the motion, with the least jerk")
    max_velocity: float | None = param(unit="m/s", above=0, default=None, doc="of the frame, instead of a duration")
    max_acceleration: float | None = param(unit="m/s^2", above=0, default=None, doc="of the frame along the path")
    time_optimal: bool = param(default=False, doc="as fast as the limits of the joints allow, instead of a duration")
    max_joint_velocity: PerJoint | None = param(
        unit="joint velocity", above=0, default=None, doc="of time_optimal; default: 95 % of the joints' limits"
    )
    max_joint_acceleration: PerJoint | None = param(
        unit="joint acceleration", above=0, default=None, doc="of time_optimal; default: none"
    )
    effort_fraction: float = param(
        above=0, max=1, default=1.0, doc="of time_optimal: of the effort limits, the rest is for feedback"
    )
    delay: float = param(unit="s", min=0, default=0.0, doc="delay before the motion")

    def __post_init__(self) -> None:
        speeds = (self.max_velocity is not None) + (self.max_acceleration is not None)
        given = self.duration is not None, speeds == 2, self.time_optimal
        if sum(given) != 1 or speeds == 1:
            what = "give a duration, max_velocity and max_acceleration, or time_optimal: true"
            raise ValueError(f"the speed is unclear; {what}")
        for key, unset in (("max_joint_velocity", None), ("max_joint_acceleration", None), ("effort_fraction", 1.0)):
            if not self.time_optimal and getattr(self, key) != unset:
                raise ValueError(f"{key} is a limit of time-optimal motions; use time_optimal: true, or take it out")

    def over(self, length: float) -> Trajectory:
        """The timing from 0 to 1 of a path of this length [m]. Raises InputError for a speed along no length."""
        if self.duration is not None:
            return Quintic(np.zeros(1), np.ones(1), self.delay, self.duration, False)
        if length == 0.0:
            raise InputError("the frame only turns, and max_velocity is a speed in m/s; give a duration")
        assert self.max_velocity is not None and self.max_acceleration is not None
        fractions = (self.max_velocity / length,), (self.max_acceleration / length,)
        return trapezoidal.load(trapezoidal.Params((1.0,), *fractions, self.delay), ("s",), Path(), np.zeros(1))


class TaskPath(Protocol):
    """A path of a frame over s from 0 to 1, in ground axes."""

    @property
    def name(self) -> str:
        """In messages."""
        ...

    @property
    def length(self) -> float:
        """In m."""
        ...

    @property
    def turns(self) -> bool:
        """Whether the orientation is part of the path."""
        ...

    def pose(self, s: float) -> tuple[Array, Array]:
        """Position (3,) and rotation (3, 3)."""
        ...

    def derivatives(self, s: float) -> tuple[Array, Array]:
        """(6,) each: velocity and angular velocity by s, and their derivatives by s."""
        ...


class Point(NamedTuple):
    """Of the path of the joints: positions, first and second derivative by s, (n,) each."""

    position: Array
    rate: Array
    bend: Array


def follow(context: TrajectoryContext, frame: str, path: TaskPath, timing: PathTiming) -> PathTrajectory:
    """The motion of the joints with the frame on its path. Raises InputError where it cannot be followed."""
    joint_path = Follower(context, frame, path).joint_path()
    if not timing.time_optimal:
        return PathTrajectory(joint_path, timing.over(path.length))
    own = timing.max_joint_velocity, timing.max_joint_acceleration, timing.effort_fraction, "max_joint_acceleration"
    joints = tuple(context.model.dof_names[k] for k in context.index)
    return fastest_along(joint_path, MotionLimits.of(context.limits, *own), context, joints, timing.delay)


def start_pose(context: TrajectoryContext, frame: str) -> tuple[Array, Array]:
    """Position (3,) and rotation (3, 3) of the frame where the rig starts. Raises InputError for an unknown frame and
    for mechanisms that cannot be planned for."""
    if context.model.constraint_rows or context.model.timed:
        what = "paths of a frame take mechanisms without closed loops and without parts that depend on time"
        raise InputError(f"{what}; give the joints another trajectory")
    pose = context.model.frame_pose(context.position, frame)
    return pose[:3, 3].copy(), pose[:3, :3].copy()


class Follower:
    """The joints of a controller as they follow a path of a frame; others stay where they start."""

    def __init__(self, context: TrajectoryContext, frame: str, path: TaskPath) -> None:
        self.model, self.index, self.limits = context.model, context.index, context.limits
        self.frame, self.path = frame, path
        self._chart = np.array(context.model.chart(context.position))
        self._rows = slice(0, 6 if path.turns else 3)

    def joint_path(self) -> PiecewisePolynomial:
        """q(s). Raises InputError where the path cannot be followed or leaves the limits of the joints."""
        pieces = PIECES
        while True:
            s = np.linspace(0.0, 1.0, pieces + 1)
            found = PiecewisePolynomial.of(s, _hermite(s, self._points(s)), "path")
            if pieces >= MOST_PIECES or self._deviation(found, s) <= TOLERANCE:
                break
            pieces *= 2
        self._check_limits(found, np.linspace(0.0, 1.0, 2 * pieces + 1))
        return found

    def _points(self, s: Array) -> list[Point]:
        q = self._chart[self.index]
        points = [self._point(q, 0.0)]
        for before, after in itertools.pairwise(s):
            step = self._step(q, before, after - before)
            if np.abs(step).max() > LARGEST_STEP:
                raise InputError(self._why_not(q, before, after))
            q = self._on_path(q + step, q, before, after)
            points.append(self._point(q, after))
        return points

    def _step(self, q: Array, s: float, h: float) -> Array:
        """One step of the Runge–Kutta method of order 4 along q' = J⁺ x'."""
        k1 = self._rate(q, s)
        k2 = self._rate(q + 0.5 * h * k1, s + 0.5 * h)
        k3 = self._rate(q + 0.5 * h * k2, s + 0.5 * h)
        k4 = self._rate(q + h * k3, s + h)
        return h / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)

    def _rate(self, q: Array, s: float) -> Array:
        return np.linalg.pinv(self._jacobian(q), rcond=RANK) @ self.path.derivatives(s)[0][self._rows]

    def _point(self, q: Array, s: float) -> Point:
        """Raises InputError where the frame cannot move along its path."""
        by_s, twice = (derivative[self._rows] for derivative in self.path.derivatives(s))
        J = self._jacobian(q)
        inverse = np.linalg.pinv(J, rcond=RANK)
        rate = inverse @ by_s
        if np.abs(J @ rate - by_s).max() > 1e-6 * max(np.abs(by_s).max(), 1e-9):
            raise InputError(self._why_not(q, s, s))
        v = np.zeros(self.model.nv)
        v[self.index] = rate
        J_rate = self.model.frame_jacobian_rate(self._coordinates(q), v, self.frame)[self._rows][:, self.index]
        own = J_rate.T @ (inverse.T @ rate)  # of the least velocities of a redundant arm
        return Point(q, rate, inverse @ (twice - J_rate @ rate) + own - inverse @ (J @ own))

    def _on_path(self, q: Array, q_before: Array, before: float, s: float) -> Array:
        """The positions nearest to q with the frame on its path; q_before: those at the point before. Raises InputError
        if there are none."""
        for _ in range(NEWTON_STEPS):
            error = self._error(q, s)
            if np.abs(error).max() < 1e-3 * TOLERANCE:
                return q
            step = np.linalg.pinv(self._jacobian(q), rcond=RANK) @ error
            if np.abs(step).max() > LARGEST_STEP:
                break
            q = q + step
        if np.abs(self._error(q, s)).max() < TOLERANCE:
            return q
        raise InputError(self._why_not(q_before, before, s))

    def _why_not(self, q: Array, before: float, s: float) -> str:
        """Why the path cannot be followed to s, from positions q at the point before."""
        name, frame, found = self.path.name, self.frame, self._solution(q, s)
        if few := self._too_few(q, before):
            return few
        if found.reached:
            what = (
                f"the {name} passes a singularity of '{frame}' at {100.0 * s:.3g} %, where the joints cannot follow it"
            )
            return f"{what}; choose another {name} or start"
        reached, missed = before, s
        while missed - reached > 1e-4:
            middle = 0.5 * (reached + missed)
            reached, missed = (middle, missed) if self._solution(q, middle).reached else (reached, middle)
        left, fix = f"{found.position_error:.3g} m", "shorten it"
        if self.path.turns:
            left = f"{left} and {np.degrees(found.orientation_error):.3g} deg"
            fix = f"{fix}, or use orientation: free"
        what = f"the {name} leaves the reach of '{frame}' at {100.0 * missed:.3g} %"
        return f"{what}; at {100.0 * s:.3g} % it misses the {name} by {left}; {fix}"

    def _too_few(self, q: Array, s: float) -> str:
        """Why the joints can nowhere move the frame in all directions, if the path takes one more at s; else empty."""
        rng = np.random.default_rng(0)
        J, path = self._jacobian(q), self.path
        others = [self._jacobian(q + change) for change in rng.uniform(-1.0, 1.0, (RANDOM_PLACES, len(q)))]
        wanted, moved = len(J), max(map(_rank, others))
        if moved == wanted or _rank(np.column_stack([J, path.derivatives(s)[0][self._rows]])) <= moved:
            return ""
        joints = f"{len(q)} joint{'s' * (len(q) > 1)}"
        if path.turns:
            what = f"{joints} cannot hold the orientation of '{self.frame}' along the {path.name}"
            return f"{what}: they move it in {moved} of 6 directions; use orientation: free"
        what = f"{joints} move '{self.frame}' in {moved} of 3 directions, and the {path.name} takes another one"
        return f"{what}; turn it into theirs, or give the controller more joints"

    def _solution(self, q: Array, s: float) -> Any:
        """The inverse kinematics at s, from positions q."""
        target, rotation = self.path.pose(s)
        if self.path.turns:
            pose = np.eye(4)
            pose[:3, :3], pose[:3, 3] = rotation, target
            target = pose
        start = self._coordinates(q)
        return self.model.inverse_kinematics(self.frame, target, start, dofs=self.index, tolerance=1e-6, restarts=3)

    def _deviation(self, found: PiecewisePolynomial, s: Array) -> float:
        """The largest distance of the frame from its path between the points [m or rad]."""
        between = 0.5 * (s[1:] + s[:-1])
        positions = found.many(between)[0]
        return max(float(np.abs(self._error(q, at)).max()) for q, at in zip(positions, between, strict=True))

    def _check_limits(self, found: PiecewisePolynomial, s: Array) -> None:
        """Raises InputError where a joint leaves its limits."""
        positions = found.many(s)[0]
        beyond = np.maximum(positions - self.limits.upper, self.limits.lower - positions)
        outside = np.argwhere(beyond > 1e-9)
        if len(outside):
            at, k = outside[0]
            limit = self.limits.upper[k] if positions[at, k] > self.limits.upper[k] else self.limits.lower[k]
            name, unit = (self.model.dof_names[self.index[k]], self.model.dof_units[self.index[k]])
            what = f"the {self.path.name} takes joint '{name}' beyond its limit of {limit:.4g} {unit}"
            raise InputError(f"{what} at {100.0 * s[at]:.0f} %; choose another start or shorten it")

    def _error(self, q: Array, s: float) -> Array:
        """What the frame lacks to its path, position and rotation vector."""
        pose, (position, rotation) = self.model.frame_pose(self._coordinates(q), self.frame), self.path.pose(s)
        missing = position - pose[:3, 3]
        if not self.path.turns:
            return missing
        return np.concatenate([missing, rotation_vector(rotation @ pose[:3, :3].T)])

    def _jacobian(self, q: Array) -> Array:
        return self.model.frame_jacobian(self._coordinates(q), self.frame)[self._rows][:, self.index]

    def _coordinates(self, q: Array) -> Array:
        chart = self._chart.copy()
        chart[self.index] = q
        return np.array(self.model.coordinates(chart))


def _rank(matrix: Array) -> int:
    return int(np.linalg.matrix_rank(matrix, rtol=1e-6))


def _hermite(s: Array, points: list[Point]) -> Array:
    """(6, m - 1, n) of the polynomials of degree 5 that join the points, for `PiecewisePolynomial.of`."""
    q, rate, bend = (np.array(values) for values in zip(*points, strict=True))
    h = np.diff(s)[:, None]
    distance = q[1:] - q[:-1] - h * (rate[:-1] + 0.5 * h * bend[:-1])
    change, turn = (rate[1:] - rate[:-1] - h * bend[:-1]) * h, (bend[1:] - bend[:-1]) * h**2
    return np.array(
        [
            (6.0 * distance - 3.0 * change + 0.5 * turn) / h**5,
            (-15.0 * distance + 7.0 * change - turn) / h**4,
            (10.0 * distance - 4.0 * change + 0.5 * turn) / h**3,
            0.5 * bend[:-1],
            rate[:-1],
            q[:-1],
        ]
    )
