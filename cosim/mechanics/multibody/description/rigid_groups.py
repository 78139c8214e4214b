"""Links that fixed joints make one rigid body, and its inertia."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cosim.mechanics.multibody.mechanism import Inertial, Joint, Link, Pose


def merged_inertials(links: Sequence[Link], joints: Sequence[Joint]) -> Mapping[str, Inertial]:
    """Name of a link -> the inertial of the rigid body that it belongs to, in the frame of that body's first link.

    Without massless bodies. The tree need not be complete: a fixed loop of links is no body.
    """
    above = {joint.child: joint for joint in joints if joint.kind == "fixed"}
    groups: dict[str, list[tuple[str, Inertial]]] = {}
    for link in links:
        root, pose = link.name, Pose.identity()
        for _ in range(len(links)):
            if (joint := above.get(root)) is None:
                break
            root, pose = joint.parent, joint.pose @ pose
        if link.inertial is not None and root not in above:
            groups.setdefault(root, []).append((link.name, _moved(link.inertial, pose)))
    found = {}
    for members in groups.values():
        body = _sum([inertial for _, inertial in members])
        found |= {name: body for name, _ in members}
    return found


def _moved(inertial: Inertial, pose: Pose) -> Inertial:
    """An inertial in the outer frame of a pose."""
    rotation = pose.rotation
    return Inertial(inertial.mass, pose.position + rotation @ inertial.com, rotation @ inertial.inertia @ rotation.T)


def _sum(parts: Sequence[Inertial]) -> Inertial:
    """The mass properties of a body of parts in one frame, about its centre of mass (parallel axis theorem)."""
    mass = sum(part.mass for part in parts)
    com = sum((part.mass * part.com for part in parts), np.zeros(3)) / mass if mass else np.zeros(3)
    inertia = np.zeros((3, 3))
    for part in parts:
        d = part.com - com
        inertia += part.inertia + part.mass * (d @ d * np.eye(3) - np.outer(d, d))
    return Inertial(mass, com, inertia)
