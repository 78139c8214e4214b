"""Numbers of a mechanism that look as if they were written in another unit than the SI.

A single number may be anything; beside the others of the same mechanism it may not. The bounds are far from what the
robots and machines of this world have, and a figure beyond one is a factor of a usual unit away from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from cosim.core.types import Array
from cosim.mechanics.multibody.description.doubts import line_about, nearest_unit
from cosim.mechanics.multibody.description.inertia import NEGLIGIBLE_RADIUS, merged_inertials
from cosim.mechanics.multibody.description.plausible_joints import doubtful_drives, doubtful_hinges
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Pose

USUAL_GYRATION = 0.08  # radius of gyration of a link per size of its robot
SPREAD = 1.5  # powers of ten, of the square of it among robots
USUAL_CENTRE = 0.08  # distance of a centre of mass per distance between joints
# kg/m³ -> radius of gyration, per size of the robot, of one link that would be thinner than this; air has 1.2 kg/m³
LARGEST_GYRATION = {0.01: 3.0, 0.5: 20.0}
LARGEST_OF_ONE = {0.01: 3.0}  # the same in a robot whose size is its centre of mass alone
MEDIAN_GYRATION = 5.0  # of the median of several links
FARTHEST_CENTRE = 5.0  # distance of a centre of mass per distance between joints
FARTHEST_JOINT = 15.0  # distance of a joint from its parent per sum of all that are shorter
FARTHEST_SECOND = 100.0  # the same where only one is shorter
SEVERAL = 3  # links, from which a median counts
DENSEST = 25_000.0  # kg/m³: more than osmium
DENSEST_LINK = 10.0 * DENSEST  # of one link
HEAVIEST = 30.0  # mass of that link per median of the others
THINNEST = 1e-5  # kg/m³ of the cube around a robot
BALL = 4.0 / 3.0 * math.pi * 2.5**1.5  # volume of a ball per its radius of gyration to the third power
NEGLIGIBLE = 1e-3  # of the inertia or the mass of the robot
SMALLEST_GYRATION = 1e-4  # radius of gyration per size of the robot, of a link whose mass counts
POINT = 1e-5  # radius of gyration of a point mass per size of its robot

INCH, POUND = 0.0254, 0.45359237  # m, kg
# unit -> kg m² per unit, and m per unit
INERTIAS = {
    "kg·cm²": 1e-4,
    "kg·mm²": 1e-6,
    "g·cm²": 1e-7,
    "g·mm²": 1e-9,
    "lb·in²": POUND * INCH**2,
}
LENGTHS = {"cm": 1e-2, "mm": 1e-3, "in": INCH}


def doubtful_units(links: Sequence[Link], joints: Sequence[Joint]) -> Iterator[str]:
    """A line for each kind of numbers that look like those of another unit."""
    poses = _at_zero(links, joints)
    heavy = [(link, link.inertial) for link in links if link.inertial is not None and link.inertial.mass > 0.0]
    yield from doubtful_hinges(joints)
    if away := list(_joints_far_away(joints)):
        yield from away
        return  # the size of the robot is wrong
    frames = _size([pose.position for pose in poses.values()])
    far = [(link, inertial) for link, inertial in heavy if math.hypot(*inertial.com) > FARTHEST_CENTRE * frames > 0.0]
    if far:
        distances = [math.hypot(*inertial.com) for _, inertial in far]
        what = f"its centre of mass is {distances[0]:.4g} m from its frame in a robot whose joints span {frames:.4g} m"
        unit = nearest_unit(LENGTHS, median(distances) / (USUAL_CENTRE * frames))
        yield line_about([link for link, _ in far], f"{what}; it looks like {unit}")
        return
    centres = [poses[link.name] @ Pose(np.eye(3), inertial.com) for link, inertial in heavy if link.name in poses]
    size = _size([pose.position for pose in (*poses.values(), *centres)])
    if size <= 0.0 or not heavy:
        return
    mass = sum(inertial.mass for _, inertial in heavy)
    if mass / size**3 < THINNEST:
        what = f"{mass:.4g} kg in a robot of {size:.4g} m are less than the air around it"
        yield f"{heavy[0][0].place}: {what}; its lengths look like mm"
        return
    moving = _moving(joints)
    bodies = _bodies(heavy)
    moved = [body for body in bodies if body.link.name in moving]
    limits = LARGEST_GYRATION if frames > 0.0 or len(heavy) > 1 else LARGEST_OF_ONE
    if large := _large_inertias(moved, size, mass, limits):
        what = f"its radius of gyration is {large[0].radius:.3g} m in a robot of {size:.3g} m"
        unit = nearest_unit(INERTIAS, median((body.radius / (USUAL_GYRATION * size)) ** 2 for body in large), SPREAD)
        looks = "as if filled in for want of another" if all(body.is_filled_in for body in large) else f"like {unit}"
        yield line_about([body.link for body in large], f"{what}; the inertia looks {looks}")
    else:
        small = _small_inertias(moved, size, mass)
        dense = list(_heavy_bodies(bodies, moved, size, mass)) if len(small) < SEVERAL else []
        yield from dense
        if small and not dense:
            what = f"its radius of gyration is {small[0].radius:.3g} m in a robot of {size:.3g} m"
            why = f"with {small[0].inertial.mass:.4g} kg it is denser than any metal"
            yield line_about([body.link for body in small], f"{what}, {why}; the inertia looks too small")
    yield from doubtful_drives(joints, size, mass)


def _joints_far_away(joints: Sequence[Joint]) -> Iterator[str]:
    """Joints that are farther from their parents than most others together."""
    distances = {joint.name: float(np.linalg.norm(joint.pose.position)) for joint in joints}
    order = sorted((joint for joint in joints if distances[joint.name] > 0.0), key=lambda each: distances[each.name])
    shorter = 0.0
    for count, joint in enumerate(order):
        most = FARTHEST_JOINT if count > 1 else FARTHEST_SECOND
        if count >= len(order) / 2 and distances[joint.name] > most * shorter > 0.0:
            chosen = {each.name for each in order[count:]}
            far = [each for each in joints if each.name in chosen]
            what = f"its frame is {distances[far[0].name]:.4g} m from its parent's, and {shorter:.4g} m are all shorter"
            unit = nearest_unit(LENGTHS, median(distances[each.name] for each in far) / (shorter / count))
            yield line_about(far, f"{what} distances together; it looks like {unit}")
            return
        shorter += distances[joint.name]


@dataclass(frozen=True)
class _HeavyLink:
    """The numbers of a link with mass; radius: of gyration, about the axis of its largest moment [m]."""

    link: Link
    inertial: Inertial
    radius: float

    @property
    def density(self) -> float:
        """Of a ball with this mass and inertia [kg/m³]."""
        return self.inertial.mass / (BALL * self.radius**3) if self.radius else math.inf

    @property
    def is_filled_in(self) -> bool:
        """Whether the three moments are the same power of ten, as writers put in for want of the true ones."""
        inertia = self.inertial.inertia
        moment = float(inertia[0, 0])
        return bool(moment > 0.0 and np.array_equal(inertia, moment * np.eye(3)) and math.log10(moment).is_integer())


def _bodies(heavy: Sequence[tuple[Link, Inertial]]) -> list[_HeavyLink]:
    largest = np.linalg.eigvalsh(np.array([inertial.inertia for _, inertial in heavy]))[:, -1]
    masses = np.array([inertial.mass for _, inertial in heavy])
    radii = np.sqrt(np.maximum(largest, 0.0) / masses).tolist()
    return [_HeavyLink(link, inertial, radius) for (link, inertial), radius in zip(heavy, radii, strict=True)]


def _large_inertias(
    bodies: Sequence[_HeavyLink], size: float, mass: float, limits: Mapping[float, float]
) -> list[_HeavyLink]:
    """Those whose radius of gyration is beyond the robot. size, mass: of the robot."""
    if len(bodies) >= SEVERAL and median(body.radius for body in bodies) > MEDIAN_GYRATION * size:
        return [body for body in bodies if body.radius > MEDIAN_GYRATION * size]
    thin = [
        body
        for body in bodies
        if any(body.density < density and body.radius > most * size for density, most in limits.items())
    ]
    return [body for body in thin if body.inertial.mass * body.radius**2 > NEGLIGIBLE * mass * size**2]


def _small_inertias(bodies: Sequence[_HeavyLink], size: float, mass: float) -> list[_HeavyLink]:
    """Those that are no bodies of their mass, and no point masses. size, mass: of the robot."""
    return [
        body
        for body in bodies
        if NEGLIGIBLE_RADIUS < body.radius < SMALLEST_GYRATION * size
        and body.density > DENSEST_LINK
        and body.inertial.mass > NEGLIGIBLE * mass
        and not body.is_filled_in
    ]


def note_of_point_masses(links: Sequence[Link], joints: Sequence[Joint]) -> Iterator[str]:
    """A line for all links that move and have a mass without rotational inertia, as the links fixed to them."""
    moving, bodies = _moving(joints), merged_inertials(links, joints)
    turning = {id(bodies.get(link.name)) for link in links if link.inertial is not None and _turns(link.inertial)}
    found = [
        link
        for link in links
        if link.name in moving and link.inertial is not None and link.inertial.mass > 0.0
        if id(bodies.get(link.name)) not in turning
    ]
    if found:
        yield line_about(found, "a point mass, without rotational inertia; give its inertia if it is a body")


def _turns(inertial: Inertial) -> bool:
    """Whether it has a rotational inertia of its own."""
    return float(np.abs(inertial.inertia).max()) > inertial.mass * NEGLIGIBLE_RADIUS**2


def _heavy_bodies(bodies: Sequence[_HeavyLink], moved: Sequence[_HeavyLink], size: float, mass: float) -> Iterator[str]:
    """Masses beyond any metal, of most links or of some of those that move. size, mass: of the robot."""
    extended = [body for body in bodies if body.radius > NEGLIGIBLE * size]
    densest = median(body.density for body in extended) if len(extended) >= SEVERAL else 0.0
    if densest > DENSEST and mass / size**3 > DENSEST / 10.0:
        first = max(extended, key=lambda body: body.inertial.mass)
        what = f"with {first.inertial.mass:.4g} kg and its inertia it is denser than any metal, as most links are"
        yield line_about([first.link], f"{what}; the masses look like g")
        return
    usual = sorted(body.inertial.mass for body in bodies)[(len(bodies) - 1) // 2]
    dense = [body for body in moved if body.radius > POINT * size and body.density > DENSEST_LINK]
    if found := [body for body in dense if body.inertial.mass > HEAVIEST * usual]:
        own = found[0].inertial.mass
        what = f"its {own:.4g} kg are {own / usual:.0f} times the mass of a usual link of this robot"
        fix = "with its inertia it is denser than any metal; it looks like g"
        yield line_about([body.link for body in found], f"{what}, and {fix}")


def _moving(joints: Sequence[Joint]) -> set[str]:
    """Names of the links that no fixed joints hold to the root, whose inertia has an effect."""
    above = {joint.child: joint for joint in joints}
    held: dict[str, bool] = {}
    for joint in joints:
        chain, link = [], joint.child
        while link not in held and (carrier := above.get(link)) is not None and carrier.kind == "fixed":
            held[link] = True  # for now, and for joints in a circle
            chain.append(link)
            link = carrier.parent
        if not held.get(link, link not in above):
            held.update(dict.fromkeys([*chain, link], False))
    return {link for link in above if not held[link]}


def _at_zero(links: Sequence[Link], joints: Sequence[Joint]) -> dict[str, Pose]:
    """The frame of each link of a tree at position 0."""
    below: dict[str, list[Joint]] = {}
    for joint in joints:
        below.setdefault(joint.parent, []).append(joint)
    children = {joint.child for joint in joints}
    poses = {link.name: Pose.identity() for link in links if link.name not in children}
    waiting = list(poses)
    while waiting:
        name = waiting.pop()
        for joint in below.get(name, ()):
            if joint.child not in poses:
                poses[joint.child] = poses[name] @ joint.pose
                waiting.append(joint.child)
    return poses


def _size(points: Sequence[Array]) -> float:
    """The diagonal of the box around the points [m]."""
    return 0.0 if not points else float(np.linalg.norm(np.ptp(np.array(points), axis=0)))
