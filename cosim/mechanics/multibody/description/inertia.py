"""Inertias of links: a matrix from six numbers, the check that it is physically possible, and the inertia of links that
fixed joints make one rigid body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Pose

# Relative to the largest eigenvalue: a negative one below SOLVER is an error of its computation, one below ROUNDING
# comes from the digits in the file, a larger one is an error.
SOLVER = 1e-12
ROUNDING = 1e-6
TRIANGLE = 1e-3
SMALLEST_MASS = 1e-15  # kg; a smaller one above 0 is a typing error
NEGLIGIBLE_RADIUS = 1e-6  # m; an inertia below the mass times this radius squared counts as zero
IMPOSSIBLE = "the inertia is physically impossible"  # begins a note


def inertia_matrix(ixx: float, iyy: float, izz: float, ixy: float, ixz: float, iyz: float) -> np.ndarray:
    """The symmetric (3, 3) matrix of these elements."""
    return np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])


def check_inertia(mass: float, inertia: np.ndarray) -> tuple[str | None, str | None]:
    """(error, note) about the inertia (3, 3) [kg m²] about the centre of mass of a body.

    Error: an eigenvalue is negative, or the mass is next to 0. Zero eigenvalues are allowed, for points and thin rods.
    Note: the principal moments violate A + B >= C, which holds for every body since A + B - C = 2 ∫ z² dm, or an
    eigenvalue is negative within rounding.
    """
    if 0.0 < mass < SMALLEST_MASS:
        return f"the mass of {mass:.3g} kg is too close to 0; give at least {SMALLEST_MASS:g} kg", None
    smallest, middle, largest = np.linalg.eigvalsh(inertia).tolist()
    scale = max(abs(smallest), abs(largest))
    if scale <= mass * NEGLIGIBLE_RADIUS**2:
        return None, None
    if smallest < -ROUNDING * scale:
        return (
            f"the inertia is not positive definite (smallest eigenvalue {smallest:.3g} kg*m^2);"
            " check the signs and the order of its elements"
        ), None
    if smallest < -SOLVER * scale:
        return None, f"the inertia has the eigenvalue {smallest:.3g} kg*m^2, taken as rounding"
    if smallest + middle < largest * (1.0 - TRIANGLE):
        return None, (
            f"{IMPOSSIBLE}: of its principal moments {smallest:.3g},"
            f" {middle:.3g}, {largest:.3g} kg*m^2 the largest exceeds the sum of the others"
        )
    return None, None


def inertia_findings(inertial: Inertial, body: Inertial | None) -> tuple[str | None, str | None]:
    """`check_inertia` of a link; an impossible one is a note where the rigid body, with the links at its fixed joints,
    has a possible one. body: see `merged_inertials`."""
    mistake, note = check_inertia(inertial.mass, inertial.inertia)
    if mistake and body is not None and check_inertia(body.mass, body.inertia)[0] is None:
        what = mistake.partition(";")[0]
        return None, f"{what}; used as given, as its body with the links fixed to it has a possible one"
    return mistake, note


def merged_inertials(links: Sequence[Link], joints: Sequence[Joint]) -> Mapping[str, Inertial]:
    """Name of a link -> the inertial of the rigid body that it belongs to, in the frame of that body's first link.

    Without massless bodies. The tree need not be complete: a fixed loop of links is no body.
    """
    above = _fixed_above(joints)
    groups: dict[str, list[tuple[str, Inertial]]] = {}
    for link in links:
        root, pose = _first_link(link.name, above)
        if link.inertial is not None and root not in above:
            groups.setdefault(root, []).append((link.name, moved(link.inertial, pose)))
    found = {}
    for members in groups.values():
        body = summed([inertial for _, inertial in members])
        found |= {name: body for name, _ in members}
    return found


def rigid_bodies(links: Sequence[Link], joints: Sequence[Joint]) -> dict[str, str]:
    """Name of a link -> the first link of the rigid body that it belongs to. What is fixed to a link that bends, moves
    relative to it."""
    bending = {link.name for link in links if link.elastic is not None}
    above = _fixed_above([joint for joint in joints if joint.parent not in bending])
    return {link.name: _first_link(link.name, above)[0] for link in links}


def moving_parts(links: Sequence[Link], joints: Sequence[Joint]) -> dict[str, str]:
    """Name of a link -> the first link of all that moves as one with it: as `rigid_bodies`, but a link that bends moves
    by itself also where it is fixed."""
    return rigid_bodies(links, joints) | {link.name: link.name for link in links if link.elastic is not None}


def _fixed_above(joints: Sequence[Joint]) -> dict[str, Joint]:
    """Name of a link -> the fixed joint that carries it."""
    return {joint.child: joint for joint in joints if joint.kind == "fixed"}


def _first_link(link: str, above: Mapping[str, Joint]) -> tuple[str, Pose]:
    """(the first link of the rigid body of a link, the frame of the link in it)."""
    pose = Pose.identity()
    for _ in range(len(above)):
        if (joint := above.get(link)) is None:
            break
        link, pose = joint.parent, joint.pose @ pose
    return link, pose


def moved(inertial: Inertial, pose: Pose) -> Inertial:
    """An inertial in the outer frame of a pose."""
    rotation = pose.rotation
    return Inertial(inertial.mass, pose.position + rotation @ inertial.com, rotation @ inertial.inertia @ rotation.T)


def summed(parts: Sequence[Inertial]) -> Inertial:
    """The mass properties of a body of parts in one frame, about its centre of mass (parallel axis theorem)."""
    mass = sum(part.mass for part in parts)
    com = sum((part.mass * part.com for part in parts), np.zeros(3)) / mass if mass else np.zeros(3)
    inertia = np.zeros((3, 3))
    for part in parts:
        d = part.com - com
        inertia += part.inertia + part.mass * (d @ d * np.eye(3) - np.outer(d, d))
    return Inertial(mass, com, inertia)
