"""Floating base: without it the root link of a mechanism is the ground."""

from __future__ import annotations

from dataclasses import replace

from cosim.core.errors import InputError
from cosim.mechanics.multibody.mechanism import Joint, Link, Mechanism, Pose

GROUND_LINK = "world"
ROOT_JOINT = "root_joint"


def with_floating_base(mechanism: Mechanism) -> Mechanism:
    """The mechanism with a free root link: joint `root_joint` connects it to the ground `world`.

    Raises InputError if these names are in use.
    """
    for part in (*mechanism.links, *mechanism.joints):
        if part.name in (GROUND_LINK, ROOT_JOINT):
            what = f"the name '{part.name}' is reserved for the floating base; rename the link or joint"
            raise InputError(what, part.place)
    place = mechanism.links[0].place
    free = Joint(ROOT_JOINT, "free", GROUND_LINK, mechanism.root, Pose.identity(), place=place)
    links = (Link(GROUND_LINK, place=place), *mechanism.links)
    return replace(mechanism, root=GROUND_LINK, links=links, joints=(free, *mechanism.joints))
