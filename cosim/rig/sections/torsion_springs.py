"""The list `torsion_springs` of a mechanism."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.core.types import param, params
from cosim.mechanics.multibody.mechanism import Torsion, TorsionSpring, pose_of
from cosim.rig.reading.names import Name, Reference
from cosim.rig.reading.schema import Reading, read
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.directions import NOT_TURNED, Directions, Orientation, directional
from cosim.rig.sections.geometry import ORIGIN, Vector
from cosim.rig.sections.loops_and_springs import Parts


@params
class TorsionSpringKeys:
    name: Name = param()
    between: tuple[Reference, Reference] = param()
    rpy: tuple[Vector, Vector] = param(unit="rad", default=(ORIGIN, ORIGIN))
    stiffness: Directions = param(unit="N*m/rad", min=0, default=Directions((0.0,)))
    damping: Directions = param(unit="N*m*s/rad", min=0, default=Directions((0.0,)))
    unloaded_orientation: Orientation = param(unit="rad", default=NOT_TURNED)


def read_torsion_springs(items: Sequence[YamlValue], at: tuple, parts: Parts, reading: Reading) -> list[TorsionSpring]:
    """The torsion springs of the list at the path `at`; errors are recorded."""
    springs = []
    for i, data in enumerate(items):
        keys = read(TorsionSpringKeys, data, (*at, i), reading)
        if keys is not None:
            pairs = zip(keys.between, keys.rpy, strict=True)
            first, second = ((parts.link(link), pose_of(ORIGIN, rpy)) for link, rpy in pairs)
            torsion = Torsion(directional(keys.stiffness), np.array(keys.unloaded_orientation))
            damping, place = directional(keys.damping), reading.place((*at, i))
            springs.append(TorsionSpring(keys.name, (first, second), torsion, damping, place))
    return springs
