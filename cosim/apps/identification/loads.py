"""Loads of known mass that a machine carried in a recording: `2.805 kg@tool0`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cosim.apps.identification.blocks import LINK, LoadBlock, body_scales, upper_factor_of_numbers
from cosim.core.errors import InputError, did_you_mean
from cosim.core.units import parse_quantity
from cosim.rig.rig import Rig

DENSITY = 2700.0  # kg/m³, of the ball as which a load begins: of aluminium


class Load(NamedTuple):
    """mass [kg], and the link or frame that carries it."""

    mass: float
    place: str


def load_of(text: str, where: str) -> Load:
    """Of `MASS@LINK`. Raises InputError."""
    mass, separator, place = text.partition("@")
    if not separator or not place:
        raise InputError(f"is '{text}'; give a mass and the link or frame that carries it, such as 2 kg@tool", where)
    try:
        value = parse_quantity(mass, "kg", "a mass")
    except ValueError as error:
        raise InputError(str(error), where) from None
    if not value > 0.0:
        raise InputError(f"is {value:g} kg; give a mass above 0", where)
    return Load(value, place)


def load_block(rig: Rig, load: Load) -> LoadBlock:
    """Its variables, from a ball at its place on. Raises InputError for a place that no link of the rig with mass
    carries."""
    mechanism, title = rig.plant.mechanism, f"load of {load.mass:g} kg@{load.place}"
    frames = {frame.name: frame.link for frame in mechanism.frames}
    links = {link.name: link for link in mechanism.links}
    if load.place not in {*frames, *links}:
        near = did_you_mean(load.place, [*frames, *links])
        raise InputError(f"no link or frame '{load.place}' carries the load{near}", title)
    link, rigid = frames.get(load.place, load.place), {j.child: j.parent for j in mechanism.joints if j.kind == "fixed"}
    while links[link].inertial is None and link in rigid:
        link = rigid[link]
    if links[link].inertial is None:
        raise InputError(f"'{load.place}' is on no link with mass; name one that moves", title)
    q = np.zeros(rig.plant.model.nq)
    of_link, of_place = (np.asarray(rig.plant.model.frame_pose(q, name)) for name in (link, load.place))
    com = np.linalg.solve(of_link, of_place)[:3, 3]
    radius = (0.75 * load.mass / DENSITY / math.pi) ** (1.0 / 3.0)
    moment = 0.4 * load.mass * radius**2
    numbers = np.array([load.mass, *com, moment, moment, moment, 0.0, 0.0, 0.0])
    factor = upper_factor_of_numbers(numbers)
    names = tuple(f"{title}.{what}" for what in LINK)
    return LoadBlock(title, names, numbers, numbers, body_scales(numbers), factor, f"mechanism.{link}")
