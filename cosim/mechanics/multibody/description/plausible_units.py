"""Numbers of a mechanism that look as if they were written in another unit than the SI.

A single number may be anything; beside the others of the same mechanism it may not. The bounds are far from what the
robots and machines of this world have, and a figure beyond one is a factor of a usual unit away from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import numpy as np

from cosim.core.types import Array
from cosim.mechanics.multibody.description.doubts import line_about, nearest_unit
from cosim.mechanics.multibody.description.plausible_joints import doubtful_drives, doubtful_hinges
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Pose

USUAL_GYRATION = 0.08  # radius of gyration of a link per size of its robot
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
    largest = LARGEST_GYRATION if frames > 0.0 or len(heavy) > 1 else LARGEST_OF_ONE
    yield from _inertias(heavy, size, mass, largest)
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


def _inertias(
    heavy: Sequence[tuple[Link, Inertial]], size: float, mass: float, largest: Mapping[float, float]
) -> Iterator[str]:
    """Radii of gyration beyond the robot, and masses beyond any metal."""
    radii = _gyrations(heavy)
    densities = {
        link.name: inertial.mass / (BALL * radii[link.name] ** 3) for link, inertial in heavy if radii[link.name]
    }
    large = [link for link, inertial in heavy if _is_large(inertial, radii[link.name], size, mass, largest)]
    if len(heavy) >= SEVERAL and median(radii.values()) > MEDIAN_GYRATION * size:
        large = [link for link, _ in heavy if radii[link.name] > MEDIAN_GYRATION * size]
    if large:
        link, ratio = large[0], median(radii[link.name] / (USUAL_GYRATION * size) for link in large)
        what = f"its radius of gyration is {radii[link.name]:.3g} m in a robot of {size:.3g} m"
        of_one = {link.name: inertial.inertia for link, inertial in heavy}
        filled_in = all(_is_filled_in(of_one[link.name]) for link in large)
        looks = "as if filled in for want of another" if filled_in else f"like {nearest_unit(INERTIAS, ratio**2)}"
        yield line_about(large, f"{what}; the inertia looks {looks}")
    extended = [(link, inertial) for link, inertial in heavy if radii[link.name] > NEGLIGIBLE * size]
    if large or len(extended) < SEVERAL:
        return
    if median(densities[link.name] for link, _ in extended) > DENSEST and mass / size**3 > DENSEST / 10.0:
        link, inertial = max(extended, key=lambda each: each[1].mass)
        what = f"with {inertial.mass:.4g} kg and its inertia it is denser than any metal, as most links are"
        yield line_about([link], f"{what}; the masses look like g")
        return
    for link, inertial in extended:
        usual = median(other.mass for each, other in heavy if each is not link)
        if densities[link.name] > DENSEST_LINK and inertial.mass > HEAVIEST * usual:
            what = f"its {inertial.mass:.4g} kg are {inertial.mass / usual:.3g} times those of most links"
            yield line_about([link], f"{what}, and with its inertia it is denser than any metal; they look like g")


def _is_large(inertial: Inertial, radius: float, size: float, mass: float, largest: Mapping[float, float]) -> bool:
    """Whether no link of this mass has this radius of gyration. size, mass: of the robot."""
    density = inertial.mass / (BALL * radius**3) if radius else math.inf
    thin = any(density < limit and radius > most * size for limit, most in largest.items())
    return thin and inertial.mass * radius**2 > NEGLIGIBLE * mass * size**2


def _is_filled_in(inertia: Array) -> bool:
    """Whether the three moments are the same power of ten, as writers put in for want of the true ones."""
    moment = float(inertia[0, 0])
    return bool(moment > 0.0 and np.array_equal(inertia, moment * np.eye(3)) and math.log10(moment).is_integer())


def _gyrations(heavy: Sequence[tuple[Link, Inertial]]) -> dict[str, float]:
    """Link -> radius of gyration about the axis of its largest moment [m]."""
    largest = np.linalg.eigvalsh(np.array([inertial.inertia for _, inertial in heavy]))[:, -1]
    masses = np.array([inertial.mass for _, inertial in heavy])
    radii = np.sqrt(np.maximum(largest, 0.0) / masses)
    return {link.name: radius for (link, _), radius in zip(heavy, radii.tolist(), strict=True)}


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
