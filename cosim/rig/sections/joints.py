"""The joints of a rig: actuator, encoder, limits and initial state of each."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

from cosim.control.cogging import Cogging
from cosim.control.plausibility import starts_outside
from cosim.core.errors import did_you_mean
from cosim.core.plugin_loading import ACTUATOR, TRAJECTORY, PluginKind
from cosim.core.types import param, params
from cosim.mechanics.multibody.coordinates import ROTATION
from cosim.mechanics.multibody.friction import JointFriction
from cosim.mechanics.multibody.joints import JointKind, unit_of
from cosim.mechanics.multibody.mechanism import Joint
from cosim.rig.reading import bond_graphs  # noqa: F401 (adds the reader of parameters that are bond graphs)
from cosim.rig.reading.plugins import Plugin, read_plugin
from cosim.rig.reading.schema import Reading, read_fields
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.guard import JointLimits
from cosim.rig.sections.orientations import OrientationKeys
from cosim.rig.sections.stops import LIMITS, StopsKeys, read_stops


@params
class EncoderSpec:
    cpr: int | None = param(min=1, default=None, doc="counts per revolution, or per metre; default: no rounding")
    noise: float = param(unit="joint position", min=0, default=0.0, doc="standard deviation of the position")
    delay: Literal[0, 1] = param(default=0, doc="ticks by which the measurement is late")


@params
class _Initial:
    position: float | None = param(unit="joint position", default=None, doc="0, or what loop closure requires")
    velocity: float | None = param(unit="joint velocity", default=None, doc="0, or what constraints require")
    guess: float = param(unit="joint position", default=0.0, doc="where to look for the position that closes loops")


@params
class _MultiDofInitial:
    position: tuple[float, ...] | None = param(default=None, doc="all coordinates, SI; a rotation as qx, qy, qz, qw")
    velocity: tuple[float, ...] | None = param(default=None, doc="of all dofs, SI")


@params
class _MultiDofJointKeys:
    initial: _MultiDofInitial = param(default=_MultiDofInitial())
    prescribed: OrientationKeys | None = param(default=None)
    latched: bool = param(default=False, doc="held still from the start, until an event unlatches it")


@params
class _JointFile:
    actuator: dict | None = param(default=None)
    encoder: EncoderSpec | None = param(default=None)
    initial: _Initial = param(default=_Initial())
    limits: JointLimits = param(default=JointLimits())
    prescribed: dict | None = param(default=None)
    latched: bool = param(default=False, doc="held still from the start, until an event unlatches it")
    stops: StopsKeys = param(default=StopsKeys())
    friction: JointFriction | None = param(default=None, doc="in place of the mechanism's, with its `damping`")
    cogging: Cogging | None = param(default=None, doc="feedforward against the cogging of a real motor")


KEYS_OF_A_JOINT = tuple(each.name for each in fields(_JointFile))


@dataclass(frozen=True)
class JointSpec:
    """A dof. limits: bounds of the guard by key, infinite where there is none; actions: by limit, where they differ
    from the rig's; initial_given: whether the rig gives its initial position and velocity, which loop closure then
    keeps.
    """

    actuator: Plugin | None
    encoder: EncoderSpec | None
    initial_position: float
    initial_velocity: float
    initial_given: tuple[bool, bool]
    limits: dict[str, float]
    actions: dict[str, str]
    prescribed: Plugin | None
    latched: bool
    stops: tuple[tuple[float, float], ...]  # (side, bound)
    restitution: float
    friction: JointFriction | None
    cogging: Cogging | None


@dataclass(frozen=True)
class MultiDofJointSpec:
    """A joint of several dofs: its initial position and velocity, None where not given, and whether it is latched."""

    position: tuple[float, ...] | None
    velocity: tuple[float, ...] | None
    latched: bool
    rotates: bool  # its coordinates hold a quaternion
    prescribed: OrientationKeys | None = None


class JointEntry(NamedTuple):
    """The settings of one joint, merged with those for all joints, and their locations. inherited: the keys that it has
    from those for all joints; replaced: keys of its own that stand in place of sections for all joints."""

    data: dict[str, YamlValue]
    reading: Reading
    inherited: frozenset[str] = frozenset()
    replaced: frozenset[str] = frozenset()


# sections that are merged with `all` key by key: path of the parent -> keys
_KEY_BY_KEY = {(): ("limits",), ("limits",): ("actions",)}


def read_entries(
    data: dict[str, YamlValue],
    joints: Mapping[str, Joint] | None,
    multi_dof_joints: Iterable[str],
    by_name: Container[str],
    reading: Reading,
    shared: Container[str] = (),
) -> dict[str, JointEntry]:
    """The settings of each dof and of unknown joints, whose errors are recorded too.

    joints: all dofs, and fixed and mimic joints, in model order; None if the mechanism could not be read.
    multi_dof_joints: joints of several dofs, which `read_multi_dof_joints` reads; by_name: their dofs, to which the
    settings for all joints do not apply; shared: dofs of drives of several joints.
    """
    defaults = reading.mapping(data.get("all"), ("joints", "all"))
    apart = {"all", *multi_dof_joints}
    if joints is None:  # then lists in the settings show which have several dofs
        apart |= {name for name, own in data.items() if _has_lists(own)}
    named = {name: reading.mapping(own, ("joints", name)) for name, own in data.items() if name not in apart}
    if joints is None:
        return {name: _entry(name, own, defaults, reading, name in shared) for name, own in named.items()}
    free = [name for name, joint in joints.items() if not bound_reason(joint)]
    unknown = [name for name in named if name not in joints]
    for name in unknown:
        reading.fail(("joints", name), f"unknown joint '{name}'{did_you_mean(name, free)}")
    for name in named:
        if name in joints and name not in free:
            for key in named[name]:
                what = f"joint '{name}' {bound_reason(joints[name])}; it takes no '{key}' of its own"
                reading.fail(("joints", name, key), what)
    if defaults and free and all(name in by_name for name in free):
        reading.fail(("joints", "all"), f"there is no joint of one dof to set; name dofs, such as {free[0]}")
    return {
        name: _entry(name, named.get(name, {}), {} if name in by_name else defaults, reading, name in shared)
        for name in [*free, *unknown]
    }


def _has_lists(own: YamlValue) -> bool:
    initial = _mapped(_mapped(own).get("initial"))
    return any(isinstance(value, list) for value in initial.values())


def _mapped(data: YamlValue) -> dict[str, Any]:
    """`data` if it is a mapping, else an empty one."""
    return data if isinstance(data, dict) else {}


def _entry(
    name: str, own: dict[str, YamlValue], defaults: dict[str, YamlValue], reading: Reading, shared: bool
) -> JointEntry:
    given = own.get("prescribed") is not None
    apart = {"actuator"} if shared or given else set()  # the default actuator is for the other joints
    if given and defaults.get("stops") == LIMITS:
        apart.add("stops")  # and these are where a joint has limits and moves freely
    defaults = {key: value for key, value in defaults.items() if key not in apart}
    return _merged(JointEntry(own, reading), defaults, name, ())


def _merged(entry: JointEntry, defaults: dict[str, YamlValue], name: str, path: tuple[str, ...]) -> JointEntry:
    """The section at `path` with defaults for missing keys; limits and their actions are merged key by key."""
    own, reading = entry.data, entry.reading
    inherited = {key: value for key, value in defaults.items() if key not in own}
    data = {**inherited, **own}
    for key in _KEY_BY_KEY.get(path, ()):
        if isinstance(own.get(key), dict) and isinstance(defaults.get(key), dict):
            inner = _merged(JointEntry(own[key], reading), defaults[key], name, (*path, key))
            data[key], reading = inner.data, inner.reading
    located = reading.inherited_at(("joints", name, *path), ("joints", "all", *path), inherited)
    return JointEntry(data, located, frozenset(inherited), frozenset(set(own) & set(defaults)))


def read_joint(name: str, entry: JointEntry, joints: Mapping[str, Joint] | None, commanded: bool) -> JointSpec:
    """The joint of an entry; a commanded joint without an actuator gets an ideal one."""
    at, reading = ("joints", name), entry.reading
    joint = (joints or {}).get(name)
    kinds = kinds_of((name,), joints)
    values = read_fields(_JointFile, entry.data, at, reading.of(kinds))

    def plugin(kind: PluginKind, key: str, section: Mapping[str, YamlValue] | None) -> Plugin | None:
        lost = f"; joints.all.{key} is not merged: repeat it, or use an anchor of YAML" if key in entry.replaced else ""
        if section is None:
            return None
        return read_plugin(kind, section, (*at, key), reading, kinds, hint=lost, all_joints=tuple(joints or ()))

    if entry.data.get("actuator") is not None and entry.data.get("prescribed") is not None:
        what = f"joint '{name}' is prescribed, its effort is computed; take out 'actuator' or 'prescribed'"
        reading.fail((*at, "actuator"), what)
    if entry.data.get("prescribed") is not None and "velocity" in _mapped(entry.data.get("initial")):
        reading.fail((*at, "initial", "velocity"), f"joint '{name}' is prescribed; its trajectory gives the velocity")
    actuator = values.get("actuator")
    if commanded and actuator is None:
        actuator = {"type": "ideal"}
    # after an error in the limits none counts as missing
    written = values.get("limits", JointLimits(velocity=1.0, effort=1.0)) or JointLimits()
    limits = written.bounds(joint)
    initial = values.get("initial") or _Initial()
    position = initial.guess if initial.position is None else initial.position
    key = "guess" if initial.position is None and initial.guess else "position"
    _check_limits(limits, position if "initial" in values else None, key, joint, at, reading)
    stops = values.get("stops") or StopsKeys()
    return JointSpec(
        actuator=plugin(ACTUATOR, "actuator", actuator),
        encoder=values.get("encoder"),
        initial_position=position,
        initial_velocity=initial.velocity or 0.0,
        initial_given=(initial.position is not None, initial.velocity is not None),
        limits=limits,
        actions=written.actions.given,
        prescribed=plugin(TRAJECTORY, "prescribed", values.get("prescribed")),
        latched=values.get("latched", False),
        stops=read_stops(stops, position, joint, "stops" in entry.inherited, at, reading),
        restitution=stops.restitution,
        friction=values.get("friction"),
        cogging=values.get("cogging"),
    )


def read_multi_dof_joints(
    data: dict[str, YamlValue], multi_dof_joints: Mapping[str, JointKind], reading: Reading
) -> dict[str, MultiDofJointSpec]:
    """The settings of joints of several dofs, each as a whole."""
    specs = {}
    for name, kind in multi_dof_joints.items():
        at = ("joints", name)
        values = read_fields(_MultiDofJointKeys, reading.mapping(data.get(name), at), at, reading)
        initial = values.get("initial") or _MultiDofInitial()
        for key, names in (("position", kind.coordinates), ("velocity", kind.dofs)):
            given = getattr(initial, key)
            if given is not None and len(given) != len(names):
                listed = ", ".join(name for name, _ in names)
                what = f"expected {len(names)} numbers ({listed}), got {len(given)}"
                reading.fail((*at, "initial", key), what)
        position = initial.position or ()
        if kind.nq != kind.nv and len(position) == kind.nq and not any(position[-4:]):
            reading.fail((*at, "initial", "position"), "the quaternion is zero; use 0, 0, 0, 1 for no rotation")
        prescribed = values.get("prescribed")
        if prescribed is not None and kind.space is not ROTATION:
            dof = kind.named(name, kind.dofs)[0]
            each = f"give each of its dofs its own, such as joints.{dof}.prescribed"
            fix = "use mechanism.moving_base" if kind.nq != kind.nv else each
            reading.fail((*at, "prescribed"), f"joint '{name}' is not spherical; {fix}")
        if prescribed is not None and initial.velocity is not None:
            reading.fail((*at, "initial", "velocity"), f"joint '{name}' is prescribed; its motion gives the velocity")
        specs[name] = MultiDofJointSpec(
            initial.position, initial.velocity, values.get("latched", False), kind.nq != kind.nv, prescribed
        )
    return specs


def _check_limits(
    limits: Mapping[str, float], position: float | None, key: str, joint: Joint | None, at: tuple, reading: Reading
) -> None:
    """Record an initial position outside the limits of the guard or of the mechanism."""
    unit = "" if joint is None else f" {unit_of(joint.kind)}"
    lower, upper = limits["lower"], limits["upper"]
    if lower > upper:
        what = f"lower {lower:.6g}{unit} of joint '{at[1]}' is above its upper {upper:.6g}{unit}"
        return reading.fail((*at, "limits"), what)
    if joint is not None:
        lower, upper = max(lower, joint.lower), min(upper, joint.upper)
    if position is not None and starts_outside(position, lower, upper):
        what = f"{position:.6g}{unit} is outside the limits of joint '{at[1]}'"
        fix = f"give one from {lower:.6g} to {upper:.6g}{unit}"
        reading.fail((*at, "initial", key), f"{what}; {fix}")


def bound_reason(joint: Joint) -> str:
    """Why a joint does not move on its own, empty if it does."""
    if joint.kind == "fixed":
        return "is fixed"
    return f"follows '{joint.mimic.joint}'" if joint.mimic is not None else ""


def kinds_of(names: Iterable[str], joints: Mapping[str, Joint] | None) -> dict[str, str | None]:
    """Name -> kind of the joint, None when the joint is not known: the `joints` of a `schema.Reading`."""
    return {name: joints[name].kind if joints and name in joints else None for name in names}
