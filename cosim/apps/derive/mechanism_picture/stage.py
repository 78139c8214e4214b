"""A sketch in several postures, seen in a view, in inches of the picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cosim.apps.derive.mechanism_picture.sketch import (
    GROUND,
    SAME,
    BentSketch,
    BodySketch,
    JointSketch,
    Sketch,
    corners,
)
from cosim.apps.derive.mechanism_picture.view import Projection
from cosim.output.scene.scene import Shape

WIDEST, HIGHEST = 5.4, 3.7  # of the points of all bodies, in
SMALLEST = 0.05  # m, extent of what is drawn


@dataclass(frozen=True)
class PosedSketch:
    """poses: (m, n + 1, 3, 4) of the ground and the bodies in m postures; scale: inches per metre."""

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
        return at, toward / max(float(np.linalg.norm(toward)), SAME)

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
    width, height = np.maximum(high - low, SMALLEST)
    return PosedSketch(sketch, view, poses, float(min(WIDEST / width, HIGHEST / height)))


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
