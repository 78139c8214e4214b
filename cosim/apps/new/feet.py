"""The feet of a robot whose base is free: spheres at the lowest leaf links, which `cosim new` proposes as contacts."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.mechanics.multibody.contact.shapes import BallShape
from cosim.mechanics.multibody.description.collisions import CollisionShape
from cosim.mechanics.multibody.description.inertia import rigid_bodies
from cosim.mechanics.multibody.description.topology import depth_first
from cosim.mechanics.multibody.mechanism import Mechanism, Pose
from cosim.mechanics.multibody.model import Model

USUAL_RADIUS = 0.02  # m, of a foot without a sphere in the robot file
AS_LOW = 0.1  # of the height of the robot: leaf links that are at most as far above the lowest one are feet
MOST_FEET = 8


@dataclass(frozen=True)
class Foot:
    """A sphere at a point (3,) of a link [m]. given: whether the robot file has it."""

    name: str
    link: str
    radius: float
    at: tuple[float, float, float]
    given: bool


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
        link, radius, at = last[body], USUAL_RADIUS, np.zeros(3)
        spheres = [each for each in collisions if bodies.get(each.link) == body and isinstance(each.shape, BallShape)]
        if spheres:
            lowest = min(spheres, key=lambda each: float((places[each.link] @ each.pose).position[2]))
            assert isinstance(lowest.shape, BallShape)
            link, radius, at = lowest.link, float(lowest.shape.radius), lowest.pose.position
        height = float((places[link] @ Pose(np.eye(3), at)).position[2]) - radius
        name = re.sub(r"[/.]", "_", f"{link}_contact" if link in taken else link)
        x, y, z = (round(float(value), 6) + 0.0 for value in at)
        found.append((height, Foot(name, link, radius, (x, y, z), bool(spheres))))
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
    lowest = min(float((model.frame_pose(q, foot.link) @ [*foot.at, 1.0])[2]) - foot.radius for foot in feet)
    return math.ceil(-lowest * 1e4) * 1e-4  # never inside of it
