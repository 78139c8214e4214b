"""Inverse kinematics: joint positions at which a frame has a given pose.

The Levenberg–Marquardt method, which is damped least squares, on the error of position [m] and rotation vector [rad] in
ground axes (1 rad counts as 1 m). Steps end at the limits of the joints; a joint at its limit that would go on is held
for that step. Of the solutions of a redundant arm, the one nearest to a posture is approached by steps in the null
space of the Jacobian, each followed by a solution again. The method finds a local minimum: starts are repeated from
random positions within the limits until one reaches the pose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from cosim.core.errors import InputError
from cosim.core.types import Array, Limits, Numeric
from cosim.mechanics.multibody.elastic_joints import are_modes
from cosim.mechanics.multibody.joints import JointKind
from cosim.mechanics.multibody.nearest import damped_least_squares
from cosim.mechanics.multibody.rotations import rotation_vector

MAX_ITERATIONS = 200  # from one start
MAX_APPROACHES = 60  # steps towards the posture
MIN_DAMPING, FIRST_DAMPING, MAX_DAMPING = 1e-12, 1e-3, 1e9
STALLED = 1.0 - 1e-9  # ratio of the squared error after a step to the one before it, above which the search has stalled
NEAREST = 1e-6  # step along the null space [rad or m] at which the posture counts as nearest
RANK = 1e-6  # singular value of the Jacobian, relative to the largest one, that counts as 0
ORTHONORMAL = 1e-6  # error of a rotation that counts as rounding


class KinematicModel(Protocol):
    """What the search needs of a `Model`, with its names."""

    nq: int
    nv: int
    kinds: tuple[JointKind, ...]
    dof_names: tuple[str, ...]
    constraint_rows: tuple[str, ...]

    @property
    def timed(self) -> bool: ...

    @property
    def limits(self) -> Limits: ...

    def neutral(self) -> Array: ...

    def random_configuration(self, rng: np.random.Generator) -> Array: ...

    def integrate(self, q: Array, d: Array) -> Numeric: ...

    def difference(self, q0: Array, q1: Array) -> Numeric: ...

    def frame_pose(self, q: Array, frame: str) -> Numeric: ...

    def frame_jacobian(self, q: Array, frame: str) -> Numeric: ...


@dataclass(frozen=True)
class InverseKinematics:
    """The joint coordinates at which a frame has a wanted pose, with the error that is left.

    q: (nq,) coordinates, of all that were found those with the smallest error; reached: whether it is within the
    tolerance; position_error [m], orientation_error [rad]: what is left, 0 for an orientation that is free; at_limits:
    joints that are at a limit; iterations: of all starts.
    """

    frame: str
    q: Array
    reached: bool
    position_error: float
    orientation_error: float
    at_limits: tuple[str, ...]
    iterations: int

    def __str__(self) -> str:
        left = f"{self.position_error:.3g} m and {np.degrees(self.orientation_error):.3g} deg"
        if self.reached:
            return f"'{self.frame}' reaches the pose to {left}"
        held = f" with {', '.join(map(repr, self.at_limits))} at the limit" if self.at_limits else ""
        return f"'{self.frame}' does not reach the pose: it stays {left} away{held}"


class PoseSearch:
    """The search among the positions of some dofs of a tree, the others staying where they start."""

    def __init__(
        self, model: KinematicModel, frame: str, pose: ArrayLike, dofs: ArrayLike | None, tolerance: float
    ) -> None:
        """pose: (4, 4), or (3,) for a position with any orientation; dofs: their indices, default all but the
        modes of elastic links.

        Raises ValueError for a pose of another form, InputError for an unknown frame and for closed loops.
        """
        if model.constraint_rows or model.timed:
            what = "inverse kinematics takes mechanisms without closed loops, constraints and parts that depend on time"
            raise InputError(what)
        self.model, self.frame, self.tolerance = model, frame, tolerance
        self.position, self.rotation = _target(pose)
        self.dofs = np.flatnonzero(~are_modes(model.kinds)) if dofs is None else np.asarray(dofs, dtype=int)
        self.lower, self.upper, self._coordinates = _bounds(model)

    def error(self, q: Array) -> Array:
        """(6,) or (3,): what the frame at q lacks to the pose, position and rotation vector in ground axes."""
        pose = self.model.frame_pose(q, self.frame)
        missing = self.position - pose[:3, 3]
        if self.rotation is None:
            return missing
        return np.concatenate([missing, rotation_vector(self.rotation @ pose[:3, :3].T)])

    def jacobian(self, q: Array) -> Array:
        """(6 or 3, n) along the dofs of the search."""
        J = self.model.frame_jacobian(q, self.frame)
        return J[: 3 if self.rotation is None else 6, self.dofs]

    def moved(self, q: Array, step: Array) -> Array:
        """The coordinates after a step (n,) of the dofs, which ends at their limits."""
        whole = np.zeros(self.model.nv)
        whole[self.dofs] = step
        q = np.array(self.model.integrate(q, whole))
        places = self._coordinates[self.dofs]
        bounded = places >= 0
        q[places[bounded]] = np.clip(q[places[bounded]], self.lower[self.dofs][bounded], self.upper[self.dofs][bounded])
        return q

    def solve(self, q: Array) -> tuple[Array, Array, int]:
        """(coordinates, error, iterations) of the method from q."""
        damping, error = FIRST_DAMPING, self.error(q)
        for count in range(MAX_ITERATIONS):
            if self.reaches(error, 0.1):
                return q, error, count
            J = self.jacobian(q)
            J = np.where(self._blocked(q, J.T @ error), 0.0, J)
            before = error @ error
            while damping < MAX_DAMPING:
                trial = self.moved(q, damped_least_squares(J, error, damping))
                after = self.error(trial)
                if after @ after < before:
                    q, error, damping = trial, after, max(0.1 * damping, MIN_DAMPING)
                    break
                damping *= 10.0
            else:
                return q, error, count
            if error @ error > STALLED * before and not self.reaches(error, 1.0):
                return q, error, count
        return q, error, MAX_ITERATIONS

    def reaches(self, error: Array, fraction: float = 1.0) -> bool:
        """Whether an error is within this fraction of the tolerance."""
        return bool(np.linalg.norm(error[:3]) <= fraction * self.tolerance) and bool(
            np.linalg.norm(error[3:]) <= fraction * self.tolerance
        )

    def approach(self, q: Array, error: Array, posture: Array) -> tuple[Array, Array]:
        """(coordinates, error) of a solution as near to the posture (nq,) as steps in the null space lead."""
        size = 1.0
        for _ in range(MAX_APPROACHES):
            J, d = self.jacobian(q), np.asarray(self.model.difference(q, posture))[self.dofs]
            J = np.where(self._blocked(q, d), 0.0, J)
            along = d - np.linalg.pinv(J, rcond=RANK) @ (J @ d)
            along = np.where(self._blocked(q, along), 0.0, along)
            if np.abs(along).max(initial=0.0) < NEAREST or size < 1e-3:
                break
            trial, left, _ = self.solve(self.moved(q, size * along))
            nearer = np.linalg.norm(np.asarray(self.model.difference(trial, posture))[self.dofs]) < np.linalg.norm(d)
            if self.reaches(left) and nearer:
                q, error, size = trial, left, min(1.0, 2.0 * size)
            else:
                size *= 0.5
        return q, error

    def random_start(self, q: Array, rng: np.random.Generator) -> Array:
        """q with random positions of the dofs of the search."""
        step = np.zeros(self.model.nv)
        step[self.dofs] = np.asarray(self.model.difference(q, self.model.random_configuration(rng)))[self.dofs]
        return self.moved(q, step[self.dofs])

    def at_limits(self, q: Array) -> tuple[str, ...]:
        """Joints at a limit, of those that move the frame."""
        every = np.ones(len(self.dofs))
        held = (self._blocked(q, every) | self._blocked(q, -every)) & self.jacobian(q).any(axis=0)
        return tuple(self.model.dof_names[k] for k in self.dofs[held])

    def middle(self, q: Array) -> Array:
        """q with the dofs that have two limits in the middle of them."""
        q, places = q.copy(), self._coordinates
        centre = 0.5 * (self.lower + self.upper)
        chosen = np.isin(np.arange(self.model.nv), self.dofs) & (places >= 0) & np.isfinite(centre)
        q[places[chosen]] = centre[chosen]
        return q

    def _blocked(self, q: Array, direction: Array) -> Array:
        """Of each dof of the search, whether it is at its limit and the direction goes beyond."""
        places = self._coordinates[self.dofs]
        at = np.where(places >= 0, q[np.maximum(places, 0)], 0.0)
        below = (at <= self.lower[self.dofs]) & (direction < 0.0)
        return (places >= 0) & (below | ((at >= self.upper[self.dofs]) & (direction > 0.0)))


def solve_pose(
    model: KinematicModel,
    frame: str,
    pose: ArrayLike,
    q0: ArrayLike | None,
    posture: str | ArrayLike,
    dofs: ArrayLike | None,
    tolerance: float,
    restarts: int,
) -> InverseKinematics:
    """See `Model.inverse_kinematics`."""
    search = PoseSearch(model, frame, pose, dofs, tolerance)
    start = model.neutral() if q0 is None else np.array(q0, dtype=float)
    if start.shape != (model.nq,):
        raise ValueError(f"q0 must be {model.nq} coordinates, has the shape {start.shape}")
    wanted = _posture(search, posture, start)
    start, rng = search.moved(start, np.zeros(len(search.dofs))), np.random.default_rng(0)
    best, least, iterations = start, np.full(3, np.inf), 0
    for k in range(1 + restarts):
        q, error, count = search.solve(start if k == 0 else search.random_start(start, rng))
        iterations += count
        if error @ error < least @ least:
            best, least = q, error
        if search.reaches(least):
            break
    if search.reaches(least):
        best, least = search.approach(best, least, wanted)
    sizes = float(np.linalg.norm(least[:3])), float(np.linalg.norm(least[3:]))
    return InverseKinematics(frame, best, search.reaches(least), *sizes, search.at_limits(best), iterations)


def _target(pose: ArrayLike) -> tuple[Array, Array | None]:
    """Position (3,) and rotation (3, 3), None where it is free."""
    given, wanted = np.asarray(pose, dtype=float), "pose must be a homogeneous matrix (4, 4) or a position (3,)"
    if given.shape not in ((3,), (4, 4)):
        raise ValueError(f"{wanted}, got the shape {given.shape}")
    if not np.isfinite(given).all():
        raise ValueError(f"{wanted} of finite numbers")
    if given.shape == (3,):
        return given, None
    rotation = given[:3, :3]
    if np.abs(rotation @ rotation.T - np.eye(3)).max() > ORTHONORMAL or np.linalg.det(rotation) < 0.0:
        raise ValueError("pose[:3, :3] must be a rotation: orthonormal columns that form a right-handed frame")
    return given[:3, 3], rotation


def _bounds(model: KinematicModel) -> tuple[Array, Array, Array]:
    """(lower, upper, indices of coordinates, -1 where dofs have none of their own), (nv,) each."""
    places, nq = [], 0
    for kind in model.kinds:
        places += range(nq, nq + kind.nv) if kind.nq == kind.nv else [-1] * kind.nv
        nq += kind.nq
    return model.limits.lower, model.limits.upper, np.array(places, dtype=int)


def _posture(search: PoseSearch, posture: str | ArrayLike, start: Array) -> Array:
    if isinstance(posture, str):
        if posture not in ("start", "middle"):
            raise ValueError(f"posture must be 'start', 'middle' or coordinates, got '{posture}'")
        return start if posture == "start" else search.middle(start)
    given = np.asarray(posture, dtype=float)
    if given.shape != start.shape:
        raise ValueError(f"posture must be {len(start)} coordinates, has the shape {given.shape}")
    return given
