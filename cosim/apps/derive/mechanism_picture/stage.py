"""A sketch in several postures, seen in a view, in inches of the picture.

Planar mechanisms are seen at right angles to their plane, spatial ones from above and aside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cosim.apps.derive.mechanism_picture.sketch import (
    GROUND,
    SAME_POINT,
    BentSketch,
    BodySketch,
    JointSketch,
    Sketch,
    corners,
)
from cosim.output.scene.scene import Shape

PARALLEL = 1e-6  # sine of the angle between directions that are parallel
DEEP_RATIO = 0.5  # reach at right angles to a plane over that in it, from which on a mechanism is seen as a spatial one
BENT_OUT_RATIO = 2.0  # deflection at right angles to a plane over that in it, likewise
TURN, TILT = np.radians((-58.0, 22.0))  # of the eye about the vertical, and above the horizon
LARGEST_WIDTH, LARGEST_HEIGHT = 5.4, 3.7  # of the points of all bodies, in
SMALLEST_EXTENT = 0.05  # m, extent of what is drawn


class Projection(NamedTuple):
    """The direction in which a mechanism is seen, as axes of the picture. axes (3, 3): right, up and towards the eye,
    in ground axes. planar: bodies move at right angles to the third. up (3,): against gravity, in ground axes."""

    axes: np.ndarray
    planar: bool
    up: np.ndarray

    def flat(self, points: np.ndarray) -> np.ndarray:
        """(…, 2): points (…, 3) in ground axes as they are seen."""
        return points @ self.axes[:2].T


def view_of(sketch: Sketch, poses: np.ndarray, gravity: np.ndarray) -> Projection:
    """poses: (n + 1, 3, 4) of the ground and the bodies in one posture."""
    normal = plane_normal(sketch.joints, poses)
    up = _up(gravity)
    if normal is None or sketch.wheels or _is_deep(sketch, poses, normal) or _bends_out(sketch, poses, normal):
        return Projection(_spatial_axes(up), planar=False, up=up)
    return Projection(_planar_axes(normal, up), planar=True, up=up)


def plane_normal(joints: Sequence[JointSketch], poses: np.ndarray) -> np.ndarray | None:
    """The direction (3,), of either sign, at right angles to which all bodies move; None for spatial mechanisms.

    Axes of revolute joints are parallel to it, axes of prismatic ones at right angles, in one posture and so in all.
    """
    axes = [(joint.entry.in_plane, poses[joint.parent][:, :3] @ joint.on.rotation[:, 2]) for joint in joints]
    turning = [axis for does, axis in axes if does == "turns"]
    sliding = [axis for does, axis in axes if does == "slides"]
    if not axes or len(turning) + len(sliding) < len(axes):
        return None
    normal = turning[0] if turning else _across(sliding)
    fits = all(np.linalg.norm(np.cross(normal, axis)) < PARALLEL for axis in turning)
    return normal if fits and all(abs(normal @ axis) < PARALLEL for axis in sliding) else None


def _is_deep(sketch: Sketch, poses: np.ndarray, normal: np.ndarray) -> bool:
    """Whether bodies that move in a plane reach so far at right angles to it that they would not be recognised flat."""
    places = [(body.number, point) for body in sketch.bodies for point in (*body.points, body.com)]
    places += [end for bent in sketch.bent for piece in bent.pieces for end in piece]
    points = np.array([poses[k][:, :3] @ point + poses[k][:, 3] for k, point in places]).reshape(-1, 3)
    flat = points - np.outer(points @ normal, normal)
    return len(points) > 0 and float(np.ptp(points @ normal)) > DEEP_RATIO * float(np.linalg.norm(np.ptp(flat, axis=0)))


def _bends_out(sketch: Sketch, poses: np.ndarray, normal: np.ndarray) -> bool:
    """Whether an elastic link bends at right angles to a plane far more than in it, which would not be seen flat."""
    ways = [bent.ways @ poses[bent.number][:, :3].T for bent in sketch.bent]
    out = [way @ normal for way in ways]
    within = [np.linalg.norm(way - np.outer(far, normal), axis=1) for way, far in zip(ways, out, strict=True)]
    return any(np.abs(far).max() > BENT_OUT_RATIO * near.max() for far, near in zip(out, within, strict=True))


def _across(sliding: Sequence[np.ndarray]) -> np.ndarray:
    """At right angles to two directions that are not parallel; to parallel ones horizontally."""
    for other in (*sliding[1:], np.eye(3)[2], np.eye(3)[0]):
        normal = np.cross(sliding[0], other)
        if np.linalg.norm(normal) > PARALLEL:
            return normal / np.linalg.norm(normal)
    raise AssertionError("a direction is parallel to two others")


def _up(gravity: np.ndarray) -> np.ndarray:
    size = float(np.linalg.norm(gravity))
    return -np.asarray(gravity, dtype=float) / size if size else np.eye(3)[2]


def _planar_axes(normal: np.ndarray, up: np.ndarray) -> np.ndarray:
    """Up against gravity; in a horizontal plane along y, or z. What points to x, y or z points to the right."""
    candidates = (up, np.eye(3)[1], np.eye(3)[2])
    upward = next(each for each in candidates if np.linalg.norm(np.cross(normal, each)) > 0.1)
    upward = upward - normal * (normal @ upward)
    upward /= np.linalg.norm(upward)
    right = np.cross(upward, normal)
    right *= np.sign(right[np.argmax(np.abs(right).round(9))])
    return np.array([right, upward, np.cross(right, upward)])


def _spatial_axes(up: np.ndarray) -> np.ndarray:
    ahead = np.eye(3)[0] if abs(up[0]) < 0.9 else np.eye(3)[1]
    x = ahead - up * (up @ ahead)
    x /= np.linalg.norm(x)
    y = np.cross(up, x)
    eye = np.cos(TILT) * (np.cos(TURN) * x + np.sin(TURN) * y) + np.sin(TILT) * up
    right = -np.sin(TURN) * x + np.cos(TURN) * y
    return np.array([right, np.cross(eye, right), eye])


@dataclass(frozen=True)
class PosedSketch:
    """A sketch in several postures, as one view shows it at one scale. poses: (m, n + 1, 3, 4) of the ground and the
    bodies in m postures; scale: inches per metre."""

    sketch: Sketch
    view: Projection
    poses: np.ndarray
    scale: float

    @property
    def postures(self) -> range:
        return range(len(self.poses))

    def placed(self, k: int, body: int, points: np.ndarray) -> np.ndarray:
        """(…, 3): points (…, 3) of a body in posture k, in ground axes [m]."""
        pose = self.poses[k, body]
        return points @ pose[:, :3].T + pose[:, 3]

    def at(self, k: int, body: int, points: np.ndarray) -> np.ndarray:
        """(…, 2): where they are seen, in."""
        return self.scale * self.view.flat(self.placed(k, body, points))

    def direction(self, k: int, body: int, vector: np.ndarray) -> np.ndarray:
        """The unit vector (2,) along which a direction (3,) of a body is seen; 0 of one towards the eye."""
        seen = self.view.flat(self.poses[k, body][:, :3] @ vector)
        size = float(np.linalg.norm(seen))
        return seen / size if size > 1e-9 else np.zeros(2)

    def joint_at(self, k: int, joint: JointSketch) -> np.ndarray:
        """(2,): where its child holds it, in."""
        return self.at(k, joint.child, joint.at.position)

    def bodies(self) -> Iterator[BodySketch]:
        """Those that have mass; massless ones only help to describe the motion of others."""
        return (body for body in self.sketch.bodies if body.mass)

    def pieces(self, k: int, bent: BentSketch) -> list[np.ndarray]:
        """(2, 2) each: where the ends of the pieces of an elastic link are seen in posture k, in."""
        return [np.array([self.at(k, *start), self.at(k, *end)]) for start, end in bent.pieces]

    def root(self, bent: BentSketch) -> tuple[np.ndarray, np.ndarray]:
        """(origin (3,) of the frame of an elastic link, unit vector (3,) towards its middle), in ground axes [m]."""
        at = self.placed(0, bent.number, np.zeros(3))
        ends = [self.placed(0, *end) for piece in bent.pieces for end in piece]
        toward = np.mean(ends, axis=0) - at
        return at, toward / max(float(np.linalg.norm(toward)), SAME_POINT)

    def visuals_of(self, body: int) -> list[Shape]:
        return [shape for owner, shape in self.sketch.visuals if owner == body]

    def joints_of(self, body: int) -> Iterator[JointSketch]:
        """The joints whose child it is."""
        return (joint for joint in self.sketch.joints if joint.child == body)


def stage_of(sketch: Sketch, view: Projection, poses: np.ndarray) -> PosedSketch:
    """In the scale in which the points of all postures fill the picture."""
    stage = PosedSketch(sketch, view, poses, 1.0)
    points = [stage.at(k, body, own) for k in stage.postures for body, own in _points(sketch)]
    low, high = np.vstack(points).min(axis=0), np.vstack(points).max(axis=0)
    width, height = np.maximum(high - low, SMALLEST_EXTENT)
    return PosedSketch(sketch, view, poses, float(min(LARGEST_WIDTH / width, LARGEST_HEIGHT / height)))


def _points(sketch: Sketch) -> Iterator[tuple[int, np.ndarray]]:
    for body in sketch.bodies:
        yield body.number, body.points
        if body.mass:
            yield body.number, body.com[None]
            yield from [(body.number, body.box)] * (len(body.points) < 2)
    yield from ((end.body, end.point[None]) for bent in sketch.bent for piece in bent.pieces for end in piece)
    yield from ((body, corners(shape)) for body, shape in sketch.visuals)
    for pair in (*sketch.springs, *sketch.rods):
        yield from ((end.body, end.point[None]) for end in pair)
    yield from ((joint.parent, joint.on.position[None]) for joint in sketch.joints if joint.placed)
    yield GROUND, np.zeros((0, 3))
