"""The list `mechanism.forces` of a rig: force laws on bodies and joints, each a Python file or an entry point."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.core.types import param, params
from cosim.mechanics.multibody.joints import REVOLUTE
from cosim.mechanics.multibody.mechanism import AppliedForce
from cosim.rig.reading.names import Name, Reference
from cosim.rig.reading.schema import Reading, read
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.constraints import frames_at_points
from cosim.rig.sections.geometry import Vector
from cosim.rig.sections.loops_and_springs import Parts
from cosim.rig.sections.user_code import read_force_law


@params
class ForceKeys:
    type: str = param(doc="a path ending in `.py`, or an entry point of the group `cosim.forces`")
    name: Name = param()
    between: tuple[Reference, ...] = param(default=())
    points: tuple[Vector, ...] | None = param(unit="m", default=None)
    joints: tuple[Reference, ...] = param(default=())
    params: dict | None = param(default=None)
    known: bool = param(default=True)


def read_forces(items: Sequence[YamlValue], at: tuple, parts: Parts, reading: Reading) -> list[AppliedForce]:
    """The force laws of the list at the path `at`; errors are recorded."""
    found = (_force(data, (*at, i), parts, reading) for i, data in enumerate(items))
    return [force for force in found if force is not None]


def _force(data: YamlValue, path: tuple, parts: Parts, reading: Reading) -> AppliedForce | None:
    keys = read(ForceKeys, data, path, reading)
    if keys is None:
        return None
    frames = frames_at_points(keys.between, keys.points, path, reading)
    if frames is None:
        return None
    kinds = [parts.kind(name) or REVOLUTE for name in keys.joints]
    sizes = len(frames), sum(kind.nq for kind in kinds), sum(kind.nv for kind in kinds)
    law = read_force_law(keys.type, keys.params, path, reading, *sizes)
    if law is None:
        return None
    ends = tuple((parts.link(link), pose) for link, pose in frames)
    return AppliedForce(keys.name, law, ends, keys.joints, keys.known, reading.place(path))
