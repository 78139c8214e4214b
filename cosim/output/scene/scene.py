"""The scene of a mechanism: bodies, the shapes on them, springs between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

# what a shape shows: a visual of the robot file; else a bar between joints, a joint, a joint with a drive; the box with
# the mass and inertia of the body; or what may touch
Role = Literal["visual", "link", "joint", "drive", "inertia", "contact"]
ShapeKind = Literal["box", "cylinder", "ellipsoid", "mesh"]
Color = tuple[float, float, float, float]  # red, green, blue, opacity, each from 0 to 1

# of shapes without a colour: red, green, blue, each up to 255
ROLE_COLORS: dict[Role, tuple[int, int, int]] = {
    "visual": (190, 196, 204),
    "link": (176, 184, 194),
    "joint": (120, 128, 140),
    "drive": (43, 108, 176),
    "inertia": (199, 154, 46),
    "contact": (150, 154, 160),
}
TOUCHING = (230, 126, 34)  # of what marks a contact that touches


class ScenePose(NamedTuple):
    """A frame in another: origin (3,) [m] and unit quaternion w, x, y, z."""

    position: tuple[float, float, float]
    wxyz: tuple[float, float, float, float]


class Shape(NamedTuple):
    """A solid that stands for a part of a body in the scene, with its place and color. kind: a cylinder stands along z.
    size: edges [m] of the box around it, of a mesh its scale; file: of a mesh."""

    kind: ShapeKind
    role: Role
    link: str
    pose: ScenePose  # in the body
    size: tuple[float, float, float]
    color: Color | None = None
    file: str = ""


class SceneBody(NamedTuple):
    """A rigid body: a link with all links at fixed joints. parent: number of the body it moves on."""

    name: str
    parent: int
    pose: ScenePose  # in the ground, at the start
    shapes: tuple[Shape, ...]


class SceneSpring(NamedTuple):
    """A spring between two points: body and point in it (3,) [m], twice."""

    name: str
    start: tuple[int, tuple[float, float, float]]
    end: tuple[int, tuple[float, float, float]]


@dataclass(frozen=True)
class Scene:
    """Body 0 is the ground; body k ≥ 1 is row k − 1 of `body_poses` of `Model.drawn`. coordinates: names of its
    positions, whose signals are `<coordinate>/position`. extent: length [m] of the mechanism; floor: height [m] of its
    lowest body at the start; closed: it has loops or constraints, so that positions cannot be chosen one by one; notes:
    what could not be shown, and why."""

    name: str
    bodies: tuple[SceneBody, ...]
    springs: tuple[SceneSpring, ...]
    coordinates: tuple[str, ...]
    extent: float
    floor: float
    closed: bool
    timed: bool
    notes: tuple[str, ...] = ()
    force_length: float = 0.0  # of arrows of the forces of contacts [m/N], 0 without contacts

    @property
    def shapes(self) -> Iterator[tuple[int, Shape]]:
        """(body, shape) of all shapes."""
        return ((k, shape) for k, body in enumerate(self.bodies) for shape in body.shapes)


def quaternions(rotations: np.ndarray) -> np.ndarray:
    """(…, 4) unit quaternions w, x, y, z of rotations (…, 3, 3), from the largest of their four components."""
    r = np.asarray(rotations, dtype=float)
    trace = np.trace(r, axis1=-2, axis2=-1)
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)
    # 4 times the square of each component
    squares = np.concatenate([1.0 + trace[..., None], 1.0 - trace[..., None] + 2.0 * diagonal], axis=-1)
    products = np.empty((*squares.shape, 4))
    w = [r[..., 2, 1] - r[..., 1, 2], r[..., 0, 2] - r[..., 2, 0], r[..., 1, 0] - r[..., 0, 1]]
    for i in range(3):
        products[..., 0, i + 1] = products[..., i + 1, 0] = w[i]
        for j in range(3):
            products[..., i + 1, j + 1] = r[..., i, j] + r[..., j, i]
    for i in range(4):
        products[..., i, i] = squares[..., i]
    largest = np.argmax(squares, axis=-1)
    column = np.take_along_axis(products, largest[..., None, None], axis=-2)[..., 0, :]
    return column / np.linalg.norm(column, axis=-1, keepdims=True)


def placement(rotation: np.ndarray, position: np.ndarray) -> ScenePose:
    """Of one frame: axes (3, 3) and origin (3,)."""
    x, y, z = map(float, position)
    w, i, j, k = map(float, quaternions(rotation))
    return ScenePose((x, y, z), (w, i, j, k))


def rotated(wxyz: tuple[float, float, float, float], point: np.ndarray) -> np.ndarray:
    """A point (3,) turned by a unit quaternion."""
    w, axis = wxyz[0], np.array(wxyz[1:])
    return point + 2.0 * np.cross(axis, np.cross(axis, point) + w * point)
