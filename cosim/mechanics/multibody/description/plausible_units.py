"""Numbers of a mechanism that look as if they were written in another unit than the SI.

A single number may be anything; beside the others of the same mechanism it may not. The bounds are far from what the
robots and machines of this world have, and a figure beyond one is a factor of a usual unit away from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import numpy as np

from cosim.core.errors import plural
from cosim.core.types import Array
from cosim.core.units import TURN
from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Pose

USUAL_GYRATION = 0.08  # radius of gyration of a link per size of its robot
USUAL_CENTRE = 0.08  # distance of a centre of mass per distance between joints
LARGEST_GYRATION = 20.0  # of one link
MEDIAN_GYRATION = 5.0  # of the median of several links
FARTHEST_CENTRE = 20.0  # distance of a centre of mass per distance between joints
SEVERAL = 3  # links, from which a median counts
DENSEST = 25_000.0  # kg/m³: more than osmium
THINNEST = 1e-5  # kg/m³ of the cube around a robot
BALL = 4.0 / 3.0 * math.pi * 2.5**1.5  # volume of a ball per its radius of gyration to the third power
DEGREES = 30.0, 720.0  # sizes of angles that are written in degrees
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
    """A line for each number, or for all numbers of a kind, that looks like one of another unit."""
    poses = _at_zero(links, joints)
    heavy = [(link, link.inertial) for link in links if link.inertial is not None and link.inertial.mass > 0.0]
    yield from _angles(joints)
    frames = _size([pose.position for pose in poses.values()])
    far = [(link, inertial) for link, inertial in heavy if math.hypot(*inertial.com) > FARTHEST_CENTRE * frames > 0.0]
    if far:
        (link, _), distances = far[0], [math.hypot(*inertial.com) for _, inertial in far]
        what = f"its centre of mass is {distances[0]:.4g} m from its frame in a robot whose joints span {frames:.4g} m"
        unit = _nearest(LENGTHS, median(distances) / (USUAL_CENTRE * frames))
        yield f"{link.place}: {_named(link)}{what}; it looks like {unit}{_more(far)}"
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
    yield from _inertias(heavy, size, mass)


def _inertias(heavy: Sequence[tuple[Link, Inertial]], size: float, mass: float) -> Iterator[str]:
    """Radii of gyration beyond the robot, and masses beyond any metal."""
    radii = _gyrations(heavy)
    large = [
        (link, inertial)
        for link, inertial in heavy
        if radii[link.name] > LARGEST_GYRATION * size
        and inertial.mass * radii[link.name] ** 2 > NEGLIGIBLE * mass * size**2
    ]
    if len(heavy) >= SEVERAL and median(radii.values()) > MEDIAN_GYRATION * size:
        large = [(link, inertial) for link, inertial in heavy if radii[link.name] > MEDIAN_GYRATION * size]
    if large:
        link, ratio = large[0][0], median(radii[link.name] / (USUAL_GYRATION * size) for link, _ in large)
        what = f"its radius of gyration is {radii[link.name]:.3g} m in a robot of {size:.3g} m"
        unit = _nearest(INERTIAS, ratio**2)
        yield f"{link.place}: {_named(link)}{what}; the inertia looks like {unit}{_more(large)}"
    extended = [(link, inertial) for link, inertial in heavy if radii[link.name] > NEGLIGIBLE * size]
    if large or len(extended) < SEVERAL:
        return
    densities = [inertial.mass / (BALL * radii[link.name] ** 3) for link, inertial in extended]
    if median(densities) > DENSEST and mass / size**3 > DENSEST / 10.0:
        link, inertial = max(extended, key=lambda each: each[1].mass)
        what = f"with {inertial.mass:.4g} kg and its inertia it is denser than any metal, as most links are"
        yield f"{link.place}: {_named(link)}{what}; the masses look like g"


def _angles(joints: Sequence[Joint]) -> Iterator[str]:
    """Ranges of hinges of whole degrees."""
    for joint in joints:
        bounds = [bound for bound in (joint.lower, joint.upper) if math.isfinite(bound)]
        if joint.kind != "revolute" or not bounds:
            continue
        largest = max(map(abs, bounds))
        whole = all(bound.is_integer() for bound in bounds)
        stand_in = joint.lower == -joint.upper and math.log10(max(largest, 1.0)).is_integer()  # ±100: no range
        if whole and DEGREES[0] <= largest <= DEGREES[1] and not stand_in:
            turns = largest / TURN
            what = f"its limits of {' and '.join(f'{bound:g}' for bound in bounds)} rad are up to {turns:.3g} turns"
            key = "" if joint.name in joint.place.key else f"joint '{joint.name}': "
            yield f"{joint.place}: {key}{what}; they look like degrees"


def _named(link: Link) -> str:
    """The link, where its place does not name it."""
    return "" if f"'{link.name}'" in link.place.key else f"link '{link.name}': "


def _more(parts: Sequence[tuple[Link, Inertial]]) -> str:
    others = len(parts) - 1
    return f" (and {others} more {plural(others, 'link')})" if others else ""


def _nearest(units: Mapping[str, float], ratio: float) -> str:
    """The unit by whose factor a value is this many times a usual one; two that are about as near."""
    factors = {unit: abs(math.log10(ratio * factor)) for unit, factor in units.items()}
    first, second = sorted(units, key=lambda unit: factors[unit])[:2]
    return f"{first} or {second}" if factors[second] < 1.0 else first


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
