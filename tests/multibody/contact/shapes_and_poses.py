"""Shapes of every kind, poses of two of them, and their distance by other people's algorithm."""

import itertools

import coal
import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from cosim.mechanics.multibody.contact.gaps import is_possible, points
from cosim.mechanics.multibody.contact.hulls import hull_of
from cosim.mechanics.multibody.contact.point_of_contact import FAR
from cosim.mechanics.multibody.contact.shapes import (
    BallShape,
    BoxShape,
    CapsuleShape,
    CylinderShape,
    HalfSpace,
    TerrainShape,
)
from tests.multibody.random_frames import turn

X, Y = np.linspace(-0.6, 0.6, 7), np.linspace(-0.5, 0.4, 10)
HILLS = 0.12 * np.sin(5.0 * X)[:, None] * np.cos(4.0 * Y) + 0.02 * np.cos(40.0 * X)[:, None]
# faces of 3 to 12 corners, and edges of all directions
CRYSTAL = np.concatenate(
    [
        np.array(
            [[0.1 * np.cos(a), 0.08 * np.sin(a), -0.1] for a in np.linspace(0.0, 2.0 * np.pi, 12, endpoint=False)]
        ),
        [[0.1, 0.1, 0.1], [-0.1, 0.1, 0.1], [-0.1, -0.1, 0.12], [0.1, -0.1, 0.1], [0.0, 0.0, 0.2], [0.16, 0.0, 0.0]],
    ]
)


def convex(corners):
    """The shape of coal with these corners."""
    places, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    places.extend(list(corners))
    triangles.extend([coal.Triangle(*map(int, simplex)) for simplex in ConvexHull(corners).simplices])
    return coal.Convex(places, triangles)


SHAPES = {
    "ball": BallShape(0.08),
    "point": BallShape(0.0),
    "capsule": CapsuleShape(0.05, 0.4),
    "box": BoxShape((0.2, 0.3, 0.4)),
    "cylinder": CylinderShape(0.1, 0.3),
    "hull": hull_of(CRYSTAL)[0],
    "half-space": HalfSpace(),
    "terrain": TerrainShape(X, Y, HILLS),
}
PAIRS = [pair for pair in itertools.product(SHAPES, repeat=2) if is_possible(*map(SHAPES.get, pair))]
FLAT_PAIRS = [pair for pair in PAIRS if "terrain" not in pair]
ROUND = {
    "ball": 0.08,
    "point": 0.0,
    "capsule": 0.05,
    "box": 0.0,
    "cylinder": 0.0,
    "hull": 0.0,
}  # radius around the skeleton

_COAL = {
    "ball": coal.Sphere(0.08),
    "point": coal.Sphere(0.0),
    "capsule": coal.Capsule(0.05, 0.4),
    "box": coal.Box(0.2, 0.3, 0.4),
    "cylinder": coal.Cylinder(0.1, 0.3),
    "hull": convex(CRYSTAL),
    "half-space": coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0),
}


def witnesses(first, frame_first, second, frame_second):
    """The signed distance of two of the shapes and the nearest points of both, by GJK and EPA."""
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.enable_signed_distance = True
    request.gjk_tolerance, request.epa_tolerance = 1e-13, 1e-12
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    bodies = (_COAL[first], coal.Transform3s(*frame_first), _COAL[second], coal.Transform3s(*frame_second))
    distance = coal.distance(*bodies, request, result)
    return distance, result.getNearestPoint1().copy(), result.getNearestPoint2().copy()


def random_frames(random, first, second, near=0.3):
    """Of both shapes; terrain lies at the origin."""

    def frame(name):
        return (np.eye(3), np.zeros(3)) if name == "terrain" else (turn(random), random.uniform(-near, near, 3))

    return frame(first), frame(second)


def touching_frames(random, first, second, gap):
    """As `random_frames`, of shapes pushed along their nearest points until they have this gap."""
    while True:
        one, other = random_frames(random, first, second)
        distance, at_first, at_second = witnesses(first, one, second, other)
        if distance > 0.01:
            break
    towards = (at_second - at_first) / distance
    return (one[0], one[1] + (distance - gap) * towards), other


def found(first, one, second, other):
    return points(SHAPES[first], one, SHAPES[second], other)


def counted(contacts):
    return [contact for contact in contacts if contact.gap < FAR]


def least(contacts):
    return min(contacts, key=lambda contact: float(contact.gap))


def moved(frame, velocity, duration):
    """A frame (rotation, position) that has moved for a time with a velocity (linear, angular) in ground axes."""
    return Rotation.from_rotvec(velocity[3:] * duration).as_matrix() @ frame[0], frame[1] + velocity[:3] * duration
