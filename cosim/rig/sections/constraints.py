"""The lists `mechanism.constraints` and `mechanism.forces` of a rig: constraints, one class of keys and one function
per type, and force laws on bodies and joints, each a Python file or an entry point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

from cosim.core.errors import InputError
from cosim.core.plugin_loading import CONSTRAINT, entry_names, unknown
from cosim.core.types import param, params
from cosim.mechanics.multibody import constraint_laws
from cosim.mechanics.multibody.beam_guide import beam_guide
from cosim.mechanics.multibody.elastic.axis import elastic_axis
from cosim.mechanics.multibody.elastic.link import ElasticLink
from cosim.mechanics.multibody.joints import REVOLUTE
from cosim.mechanics.multibody.mechanism import AppliedForce, Constraint, Pose
from cosim.rig.reading.names import Name, Reference
from cosim.rig.reading.schema import Reading, read, show
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.geometry import ORIGIN, Direction, NotZero, Origin, Vector, along, at_point
from cosim.rig.sections.joint_definition import representative_kind
from cosim.rig.sections.loops_and_springs import Parts
from cosim.rig.sections.user_code import read_force_law, read_law


def _coefficients(values: tuple[float, ...]) -> tuple[float, ...]:
    if not values:
        raise ValueError("expected at least one number, got none")
    return values


def _rod(length: float) -> float:
    if length <= 0.0:
        raise ValueError(f"must be above 0 m, is {length:.12g} m; {constraint_laws.INSTEAD_OF_NO_DISTANCE}")
    return length


@params
class DistanceKeys:
    name: Name = param()
    between: tuple[Reference, Reference] = param()
    length: Annotated[float, _rod] = param(unit="m")
    points: tuple[Vector, Vector] = param(unit="m", default=(ORIGIN, ORIGIN))


@params
class CurveKeys:
    name: Name = param()
    body: Reference = param()
    polynomial: Annotated[tuple[float, ...], _coefficients] = param()
    on: Reference | None = param(default=None)
    origin: Origin = param(default=Origin())
    point: Vector = param(unit="m", default=ORIGIN)


@params
class GearKeys:
    name: Name = param()
    joints: tuple[Reference, Reference] = param()
    ratio: NotZero = param()
    offset: float = param(unit="joint position", default=0.0)


@params
class KnifeEdgeKeys:
    name: Name = param()
    body: Reference = param()
    normal: Direction = param()
    on: Reference | None = param(default=None)
    point: Vector = param(unit="m", default=ORIGIN)


@params
class RollingKeys:
    name: Name = param()
    body: Reference = param()
    axle: Direction = param()
    radius: float = param(unit="m", above=0)
    on: Reference | None = param(default=None)
    plane: Origin = param(default=Origin())
    point: Vector = param(unit="m", default=ORIGIN)


@params
class BeamGuideKeys:
    name: Name = param()
    beam: Reference = param()
    along: bool = param(default=False)
    on: Reference | None = param(default=None)
    origin: Origin = param(default=Origin())


@params
class UserConstraintKeys:
    name: Name = param()
    between: tuple[Reference, ...] = param(default=())
    points: tuple[Vector, ...] | None = param(unit="m", default=None)
    joints: tuple[Reference, ...] = param(default=())
    params: dict | None = param(default=None)


class ConstraintParts(NamedTuple):
    """The law of a constraint, its frames (link as in the file, frame in it) and its joints."""

    law: constraint_laws.ConstraintLaw
    frames: tuple[tuple[str | None, Pose], ...] = ()
    joints: tuple[str, ...] = ()
    beam: str = ""


def _distance(keys: DistanceKeys, parts: Parts) -> ConstraintParts:
    return ConstraintParts(
        constraint_laws.distance(keys.length), tuple(zip(keys.between, map(at_point, keys.points), strict=True))
    )


def _curve(keys: CurveKeys, parts: Parts) -> ConstraintParts:
    law = constraint_laws.point_on_curve(keys.polynomial)
    return ConstraintParts(law, ((keys.on, keys.origin.pose), (keys.body, at_point(keys.point))))


def _gear(keys: GearKeys, parts: Parts) -> ConstraintParts:
    (unit,) = parts.units(keys.joints[0]) or ("rad",)
    return ConstraintParts(constraint_laws.gear(keys.ratio, keys.offset, unit), joints=keys.joints)


def _knife_edge(keys: KnifeEdgeKeys, parts: Parts) -> ConstraintParts:
    frames = ((keys.on, Pose.identity()), (keys.body, along(1, keys.normal, keys.point)))
    return ConstraintParts(constraint_laws.knife_edge(), frames)


def _rolling(keys: RollingKeys, parts: Parts) -> ConstraintParts:
    frames = ((keys.on, keys.plane.pose), (keys.body, along(2, keys.axle, keys.point)))
    return ConstraintParts(constraint_laws.rolling(keys.radius), frames)


def _beam_guide(keys: BeamGuideKeys, parts: Parts) -> ConstraintParts:
    """Raises InputError for a link that is no elastic link with an axis."""
    link = parts.links.get(keys.beam)
    elastic = None if link is None else link.elastic
    if link is None or not isinstance(elastic, ElasticLink) or not elastic.length:
        able = [
            name
            for name, other in parts.links.items()
            if isinstance(other.elastic, ElasticLink) and other.elastic.length
        ]
        what = f"'{keys.beam}' is no elastic beam or link of mode shapes along x"
        raise InputError(f"{what}; known: {', '.join(able) or 'none'}")
    law = beam_guide(elastic_axis(elastic, elastic.length), keys.along)
    frames = (keys.beam, link.elastic_frame), (keys.on, keys.origin.pose)
    return ConstraintParts(law, frames, beam=keys.beam)


# type -> its keys, its parts
LAWS: dict[str, tuple[type, Callable[[Any, Parts], ConstraintParts]]] = {
    "distance": (DistanceKeys, _distance),
    "curve": (CurveKeys, _curve),
    "gear": (GearKeys, _gear),
    "knife_edge": (KnifeEdgeKeys, _knife_edge),
    "rolling": (RollingKeys, _rolling),
    "beam_guide": (BeamGuideKeys, _beam_guide),
}


def read_constraints(items: Sequence[YamlValue], at: tuple, parts: Parts, reading: Reading) -> list[Constraint]:
    """The constraints of the list at the path `at`; errors are recorded."""
    found = (_constraint(data, (*at, i), parts, reading) for i, data in enumerate(items))
    return [constraint for constraint in found if constraint is not None]


def _constraint(data: YamlValue, path: tuple, parts: Parts, reading: Reading) -> Constraint | None:
    if not isinstance(data, dict):
        return reading.fail(path, f"expected a mapping, got {show(data)}")
    written, known = data.get("type"), [*LAWS, *entry_names(CONSTRAINT)]
    if not isinstance(written, str):
        wrong = f"expected text, got {show(written)}" if "type" in data else "missing key 'type'"
        at = (*path, "type") if "type" in data else path
        return reading.fail(at, f"{wrong}; known: {', '.join(known)}")
    if not written.endswith(".py") and written not in known:
        return reading.fail((*path, "type"), unknown(CONSTRAINT, written, LAWS))
    cls, make = LAWS.get(written, (UserConstraintKeys, None))
    named = data.get("joints")
    leader = named[0] if isinstance(named, list) and named else None
    keys: Any = read(cls, data, path, reading.of({"": representative_kind(parts.units(leader))}), besides=("type",))
    if keys is None or not _joints_fit(written, getattr(keys, "joints", ()), path, parts, reading):
        return None
    try:
        made = _user_constraint(written, keys, path, parts, reading) if make is None else make(keys, parts)
    except InputError as error:
        return reading.fail(path, error.what)
    if made is None:
        return None
    frames = tuple((parts.link(link), pose) for link, pose in made.frames)
    return Constraint(keys.name, made.law, frames, made.joints, reading.place(path), beam=made.beam)


def _joints_fit(written: str, names: Sequence[str], path: tuple, parts: Parts, reading: Reading) -> bool:
    """Whether the joints of a gear have one coordinate each; unknown joints are reported with the topology."""
    before = len(reading.errors)
    for k, name in enumerate(names):
        units = parts.units(name)
        if written == "gear" and units and len(units) > 1:
            what = f"joint '{name}' has {len(units)} coordinates; a gear takes joints with one"
            reading.fail((*path, "joints", k), what)
    return len(reading.errors) == before


def _user_constraint(
    file: str, keys: UserConstraintKeys, path: tuple, parts: Parts, reading: Reading
) -> ConstraintParts | None:
    frames = frames_at_points(keys.between, keys.points, path, reading)
    if frames is None:
        return None
    kinds = [parts.kind(name) or REVOLUTE for name in keys.joints]
    law = read_law(file, keys.params, path, reading, len(frames), sum(k.nq for k in kinds), sum(k.nv for k in kinds))
    if law is None:
        return None
    return ConstraintParts(law, frames, keys.joints)


def frames_at_points(
    between: Sequence[str], points: Sequence[Vector] | None, path: tuple, reading: Reading
) -> tuple[tuple[str, Pose], ...] | None:
    """One frame per link, at its point or its origin; None after an error."""
    count = len(between)
    points = (ORIGIN,) * count if points is None else points
    if len(points) != count:
        words = "point" if count == 1 else "points"
        return reading.fail((*path, "points"), f"expected {count} {words} (one per link), got {len(points)}")
    return tuple(zip(between, map(at_point, points), strict=True))


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
