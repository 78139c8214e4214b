"""The feet of a robot whose base is free: spheres or boxes at the lowest leaf links, which `cosim new` proposes as
contacts."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.mechanics.multibody.contact.shapes import BallShape, BoxShape
from cosim.mechanics.multibody.description.collisions import CollisionShape
from cosim.mechanics.multibody.description.inertia import rigid_bodies
from cosim.mechanics.multibody.description.topology import depth_first
from cosim.mechanics.multibody.mechanism import Mechanism, Pose
from cosim.mechanics.multibody.model import Model

USUAL_RADIUS = 0.02  # m, of a foot without a sphere or a box in the robot file
AS_LOW = 0.1  # of the height of the robot: leaf links that are at most as far above the lowest one are feet
MOST_FEET = 8


@dataclass(frozen=True)
class Foot:
    """A sphere, or a box along the axes of its link, with its middle at a point (3,) of the link [m]. given: whether
    the robot file has it."""

    name: str
    link: str
    shape: BallShape | BoxShape
    at: tuple[float, float, float]
    given: bool

    def height(self, link: Pose) -> float:
        """Of its lowest point, with this pose of the link [m]."""
        middle = link @ Pose(np.eye(3), np.array(self.at))
        return float(middle.position[2]) - _depth(self.shape, middle.rotation)


def _depth(shape: BallShape | BoxShape, rotation: np.ndarray) -> float:
    """How far a shape reaches below its middle [m]."""
    if isinstance(shape, BallShape):
        return float(shape.radius)
    return float(np.abs(rotation[2]) @ np.asarray(shape.size, dtype=float)) / 2.0


def _solids(collisions: Sequence[CollisionShape]) -> Iterator[tuple[str, BallShape | BoxShape, np.ndarray]]:
    """(link, shape, middle in it) of the spheres, and of the boxes along the axes of their links."""
    for each in collisions:
        if isinstance(each.shape, BallShape) or (
            isinstance(each.shape, BoxShape) and np.allclose(each.pose.rotation, np.eye(3))
        ):
            yield each.link, each.shape, each.pose.position


def _foot(link: str, shape: BallShape | BoxShape, middle: np.ndarray, taken: Container[str], given: bool) -> Foot:
    name = re.sub(r"[/.]", "_", f"{link}_contact" if link in taken else link)
    x, y, z = (round(float(value), 6) + 0.0 for value in middle)
    return Foot(name, link, shape, (x, y, z), given)


def feet_of(mechanism: Mechanism, collisions: Sequence[CollisionShape]) -> tuple[Foot, ...]:
    """With every joint at position 0; none of a robot without legs."""
    bodies = rigid_bodies(mechanism.links, mechanism.joints)
    places, order = {mechanism.root: Pose.identity()}, depth_first(mechanism)
    for joint in order:
        places[joint.child] = places[joint.parent] @ joint.pose
    moving = [joint for joint in order if joint.kind not in ("fixed", "free")]
    carriers = {bodies[joint.parent] for joint in moving}
    leaves = [body for body in dict.fromkeys(bodies[joint.child] for joint in moving) if body not in carriers]
    last = {bodies[link]: link for link in places}  # the deepest link of a body
    taken = {joint.name for joint in mechanism.joints}
    found = []
    for body in leaves:
        usual = _foot(last[body], BallShape(USUAL_RADIUS), np.zeros(3), taken, False)
        given = [_foot(*each, taken, True) for each in _solids(collisions) if bodies.get(each[0]) == body]
        foot = min(given or [usual], key=lambda each: each.height(places[each.link]))
        found.append((foot.height(places[foot.link]), foot))
    heights = [float(place.position[2]) for place in places.values()]
    least = min((height for height, _ in found), default=0.0)
    feet = tuple(foot for height, foot in found if height - least <= AS_LOW * (max(heights) - least))
    return feet if len(feet) <= MOST_FEET else ()


def standing_height(mechanism: Mechanism, feet: Sequence[Foot], positions: Mapping[str, float]) -> float:
    """Of the base [m], with the lowest foot on the ground. mechanism: with its free base at 0; positions: of joints."""
    model = Model(mechanism, (0.0, 0.0, 0.0))
    q = model.neutral()
    for joint, position in positions.items():
        q[model.coordinate_names.index(joint)] = position
    frames = [np.asarray(model.frame_pose(q, foot.link)) for foot in feet]
    poses = (Pose(frame[:3, :3], frame[:3, 3]) for frame in frames)
    lowest = min(foot.height(pose) for foot, pose in zip(feet, poses, strict=True))
    return math.ceil(-lowest * 1e4) * 1e-4  # never inside of it
