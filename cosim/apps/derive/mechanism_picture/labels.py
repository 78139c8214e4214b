"""The axes of the ground, and names of joints and frames beside them, away from bodies and from each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from cosim.apps.derive.mechanism_picture.pen import AXES, Pen
from cosim.apps.derive.mechanism_picture.sketch import GROUND
from cosim.apps.derive.mechanism_picture.stage import PosedSketch

TRIAD = 0.36  # length of the axes of the ground, in
CHARACTER, LINE = 0.058, 0.12  # width and height of a character of a label, in
ANGLES = np.linspace(0.5 * np.pi, 2.5 * np.pi, 16, endpoint=False)
SIDES = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
TOUCHING = 4.0  # cost of a label on another one
SLIDER = 0.13  # in, that the name of a joint at a slider is farther away
NEAR = 1e-3  # in, of what is at one place
VERTICAL = np.array([[0.0, -1.0], [0.0, 1.0]])  # where the ground of a joint is


def draw_labels(stage: PosedSketch, pen: Pen, clearance: float) -> None:
    """In the last posture. clearance: between a joint and its name, in."""
    taken: list[tuple[np.ndarray, np.ndarray]] = []  # middles and half sizes
    sliders = [stage.joint_at(-1, joint) for joint in stage.sketch.joints if joint.kind == "prismatic"]
    for name, at, toward in _labelled(stage):
        sliding = any(np.linalg.norm(at - slider) < NEAR for slider in sliders)
        away = clearance + SLIDER * sliding
        half = 0.5 * np.array([CHARACTER * len(name), LINE])
        places = [at + side * away + np.clip(side * 1.6, -1.0, 1.0) * half for side in SIDES]
        costs = [
            max((float(side @ v) for v in toward), default=0.0)
            + TOUCHING * sum(bool(np.all(np.abs(place - other) < half + size)) for other, size in taken)
            for side, place in zip(SIDES, places, strict=True)
        ]
        place = places[int(np.argmin(np.round(costs, 6)))]
        taken.append((place, half))
        pen.text(place, name, above=14.0)
        pen.axes.update_datalim([place - half, place + half])


def draw_triad(stage: PosedSketch, pen: Pen, at: np.ndarray) -> None:
    """The axes of the ground that are seen, from a place (2,)."""
    for axis, name, color in zip(np.eye(3), "xyz", AXES, strict=True):
        ahead = stage.view.flat(axis)
        if np.linalg.norm(ahead) > 0.2:
            pen.arrow(at, at + TRIAD * ahead, color)
            pen.text(at + ahead * (TRIAD + 0.09), name, color)
            pen.axes.update_datalim([at, at + ahead * (TRIAD + 0.15)])


def _labelled(stage: PosedSketch) -> Iterator[tuple[str, np.ndarray, list[np.ndarray]]]:
    """(name, place (2,), unit vectors (2,) towards what is there, also earlier postures) of joints and frames."""
    last = len(stage.poses) - 1
    for joint in stage.sketch.joints:
        if joint.placed:
            at = stage.joint_at(last, joint)
            grounded = GROUND in (joint.parent, joint.child)
            before = [stage.joint_at(k, joint) for k in stage.postures[:-1]]
            yield joint.name, at, [*_bodies_at(stage, last, at), *VERTICAL[: 2 * grounded], *_directions(at, before)]
    for name, body, pose in stage.sketch.frames:
        at = stage.at(last, body, pose.position)
        axes = [stage.direction(last, body, axis) for axis in pose.rotation.T]
        before = [stage.at(k, body, pose.position) for k in stage.postures[:-1]]
        yield name, at, [*_bodies_at(stage, last, at), *axes, *_directions(at, before)]


def _bodies_at(stage: PosedSketch, k: int, at: np.ndarray) -> list[np.ndarray]:
    """Directions from a place to the other points of the bodies that have a point there."""
    found = []
    for body in stage.bodies():
        points = stage.at(k, body.number, body.points)
        if (np.linalg.norm(points - at, axis=1) < NEAR).any():
            found += _directions(at, points)
    for piece in (piece for bent in stage.sketch.bent for piece in stage.pieces(k, bent)):
        if (np.linalg.norm(piece - at, axis=1) < NEAR).any():
            found += _directions(at, piece)
    return found


def _directions(at: np.ndarray, points: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Unit vectors from a place to points (2,), without those that lie there."""
    away = [point - at for point in points]
    return [v / np.linalg.norm(v) for v in away if np.linalg.norm(v) > NEAR]
