"""Shapes of bodies without visuals: bars between joints, joints by their kind, boxes with the body's inertia."""

from __future__ import annotations

import numpy as np

from cosim.mechanics.multibody.joints import joint_axes
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Pose
from cosim.output.scene.scene import Role, Shape, ShapeKind, placement

BAR = 0.7  # diameter of a bar relative to the joint at its start
ELASTIC_BAR = 0.4  # likewise of a piece of an elastic link, slim so that its deflection is seen
DRUM = 1.25  # length of a revolute joint over its diameter
SLIDER = np.array([1.1, 1.1, 2.2])  # edges of a prismatic joint over the diameter of joints
SHORTEST = 1e-6  # m, below which two points are the same
FLATTEST = 0.02  # thinnest edge of an inertia box over its longest one, so that a thin rod is seen

# kind of joint -> shape and its edges over the diameter of joints, z along the axis; others, such as free, have none
JOINT_SHAPES: dict[str, tuple[ShapeKind, np.ndarray]] = {
    "revolute": ("cylinder", np.array([1.0, 1.0, DRUM])),
    "continuous": ("cylinder", np.array([1.0, 1.0, DRUM])),
    "screw": ("cylinder", np.array([0.8, 0.8, 2.0])),
    "cylindrical": ("cylinder", np.array([0.8, 0.8, 2.0])),
    "prismatic": ("box", SLIDER),
    "universal": ("ellipsoid", np.ones(3)),
    "spherical": ("ellipsoid", np.ones(3)),
    "planar": ("box", np.array([1.6, 1.6, 0.4])),
}


def joint_shape(joint: Joint, frame: Pose, diameter: float, actuated: bool) -> list[Shape]:
    """The joint, in the body in which its frame is `frame`."""
    if joint.kind not in JOINT_SHAPES:
        return []
    kind, edges = JOINT_SHAPES[joint.kind]
    role: Role = "drive" if actuated else "joint"
    return [_shape(kind, role, joint.child, frame.rotation @ joint_axes(joint), frame.position, edges * diameter)]


def bar(link: str, start: np.ndarray, end: np.ndarray, diameter: float) -> list[Shape]:
    """A bar between two points (3,) of a body; none where they coincide."""
    span = end - start
    length = float(np.linalg.norm(span))
    if length < SHORTEST:
        return []
    along = span / length
    across = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
    across /= np.linalg.norm(across)
    axes = np.column_stack([across, np.cross(along, across), along])
    return [_shape("cylinder", "link", link, axes, 0.5 * (start + end), np.array([diameter, diameter, length]))]


def inertia_box(link: str, inertial: Inertial) -> list[Shape]:
    """The homogeneous box with the mass, the centre of mass and the inertia; none of a point mass."""
    if inertial.mass <= 0.0:
        return []
    moments, axes = np.linalg.eigh(inertial.inertia)
    squares = 6.0 / inertial.mass * (moments.sum() - 2.0 * moments)
    edges = np.sqrt(np.maximum(squares, 0.0))
    if edges.max() < SHORTEST:
        return []
    if np.linalg.det(axes) < 0.0:
        axes = axes * [1.0, 1.0, -1.0]
    return [_shape("box", "inertia", link, axes, inertial.com, np.maximum(edges, FLATTEST * edges.max()))]


def _shape(kind: ShapeKind, role: Role, link: str, axes: np.ndarray, position: np.ndarray, edges: np.ndarray) -> Shape:
    x, y, z = map(float, edges)
    return Shape(kind, role, link, placement(axes, position), (x, y, z))
