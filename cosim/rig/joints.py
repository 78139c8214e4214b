"""The joints of a rig: actuator, encoder, limits and initial state of each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from cosim.errors import Place, did_you_mean
from cosim.multibody.description import Joint
from cosim.rig.plugins import ACTUATOR, TRAJECTORY, Kind, Plugin, Reading, read_plugin
from cosim.rig.schema import read_fields
from cosim.types import param, params


@params
class EncoderSpec:
    counts: int | None = param(min=1, default=None, doc="per turn or metre; default: no rounding")
    noise: float = param(unit="joint position", min=0, default=0.0, doc="standard deviation of the position")
    delay: Literal[0, 1] = param(default=0, doc="ticks by which the measurement is late")


@params
class _Initial:
    position: float = param(unit="joint position", default=0.0)
    velocity: float = param(unit="joint velocity", default=0.0)


@params
class _Limits:
    lower: float | None = param(unit="joint position", default=None)
    upper: float | None = param(unit="joint position", default=None)
    velocity: float | None = param(unit="joint velocity", above=0, default=None)
    effort: float | None = param(unit="joint effort", above=0, default=None)


@params
class _JointFile:
    actuator: dict | None = param(default=None)
    encoder: EncoderSpec | None = param(default=None)
    initial: _Initial = param(default=_Initial())
    limits: _Limits = param(default=_Limits())
    prescribed: dict | None = param(default=None)
    driver: str = param(default="sim")


@dataclass(frozen=True)
class JointSpec:
    """A joint that moves on its own. The limits are those the guard holds, infinite where there is none."""

    actuator: Plugin | None
    encoder: EncoderSpec | None
    initial_position: float
    initial_velocity: float
    lower: float
    upper: float
    velocity: float
    effort: float
    prescribed: Plugin | None
    driver: str


@dataclass(frozen=True)
class Entry:
    """The settings of one joint, those for all joints merged in, and the places they come from."""

    data: dict[str, Any]
    reading: Reading


def read_entries(data: dict[str, Any], joints: Mapping[str, Joint] | None, reading: Reading) -> dict[str, Entry]:
    """The settings of each joint that moves on its own; those of unknown joints too, for their mistakes.

    joints: all of the mechanism, in model order; None when it could not be read.
    """
    defaults = reading.mapping(data.get("all"), ("joints", "all"))
    named = {name: reading.mapping(own, ("joints", name)) for name, own in data.items() if name != "all"}
    if joints is None:
        return {name: _entry(name, own, defaults, reading) for name, own in named.items()}
    free = [name for name, joint in joints.items() if not bound_reason(joint)]
    unknown = [name for name in named if name not in joints]
    for name in unknown:
        reading.fail(("joints", name), f"unknown joint '{name}'{did_you_mean(name, free)}")
    for name in named:
        if name in joints and name not in free:
            for key in named[name]:
                what = f"joint '{name}' {bound_reason(joints[name])}; it takes no '{key}' of its own"
                reading.fail(("joints", name, key), what)
    return {name: _entry(name, named.get(name, {}), defaults, reading) for name in [*free, *unknown]}


def _entry(name: str, own: dict[str, Any], defaults: dict[str, Any], reading: Reading) -> Entry:
    inherited = {key: value for key, value in defaults.items() if key not in own}
    if own.get("prescribed") is not None:
        inherited.pop("actuator", None)  # meant for the joints that have one

    def place(path: tuple) -> Place:
        return reading.place(("joints", "all", *path[2:]) if path[2:3] and path[2] in inherited else path)

    return Entry({**inherited, **own}, replace(reading, place=place))


def read_joint(name: str, entry: Entry, joints: Mapping[str, Joint] | None, commanded: bool) -> JointSpec:
    """The joint as its entry says; a commanded one without an actuator gets an ideal one."""
    at, reading = ("joints", name), entry.reading
    joint = (joints or {}).get(name)
    kinds = kinds_of((name,), joints)
    values = read_fields(_JointFile, entry.data, reading.place, at, reading.errors, joints=kinds)

    def plugin(kind: Kind, key: str, section: Mapping[str, Any] | None) -> Plugin | None:
        return None if section is None else read_plugin(kind, section, (*at, key), reading, kinds)

    if entry.data.get("actuator") is not None and entry.data.get("prescribed") is not None:
        what = f"joint '{name}' is prescribed, its effort is computed; take out 'actuator' or 'prescribed'"
        reading.fail((*at, "actuator"), what)
    if entry.data.get("prescribed") is not None and "velocity" in (entry.data.get("initial") or ()):
        reading.fail((*at, "initial", "velocity"), f"joint '{name}' is prescribed; its trajectory gives the velocity")
    actuator = values.get("actuator")
    if commanded and actuator is None:
        actuator = {"type": "ideal"}
    limits = _limits(values.get("limits") or _Limits(), joint)
    initial = values.get("initial")
    _check_limits(limits, initial.position if initial else None, joint, at, reading)
    return JointSpec(
        actuator=plugin(ACTUATOR, "actuator", actuator),
        encoder=values.get("encoder"),
        initial_position=initial.position if initial else math.nan,
        initial_velocity=initial.velocity if initial else math.nan,
        **limits,
        prescribed=plugin(TRAJECTORY, "prescribed", values.get("prescribed")),
        driver=values.get("driver", ""),
    )


def _limits(written: _Limits, joint: Joint | None) -> dict[str, float]:
    """The rig's limits, else the mechanism's."""
    inherited = {
        "lower": joint.lower if joint else -math.inf,
        "upper": joint.upper if joint else math.inf,
        "velocity": joint.max_velocity if joint else math.inf,
        "effort": joint.max_effort if joint else math.inf,
    }
    given = {key: getattr(written, key) for key in inherited}
    return {key: inherited[key] if value is None else value for key, value in given.items()}


def _check_limits(
    limits: Mapping[str, float], position: float | None, joint: Joint | None, at: tuple, reading: Reading
) -> None:
    """The initial position must lie within the limits of the guard and within those of the mechanism."""
    unit = "" if joint is None else " m" if joint.kind == "prismatic" else " rad"
    lower, upper = limits["lower"], limits["upper"]
    if lower > upper:
        what = f"lower {lower:.6g}{unit} of joint '{at[1]}' is above its upper {upper:.6g}{unit}"
        return reading.fail((*at, "limits"), what)
    if joint is not None:
        lower, upper = max(lower, joint.lower), min(upper, joint.upper)
    if position is not None and not lower <= position <= upper:
        what = f"{position:.6g}{unit} is outside the limits of joint '{at[1]}'"
        mend = f"give one from {lower:.6g} to {upper:.6g}{unit}"
        reading.fail((*at, "initial", "position"), f"{what}; {mend}")


def bound_reason(joint: Joint) -> str:
    """Why a joint does not move on its own, empty if it does."""
    if joint.kind == "fixed":
        return "is fixed"
    return f"follows '{joint.mimic.joint}'" if joint.mimic is not None else ""


def kinds_of(names: Iterable[str], joints: Mapping[str, Joint] | None) -> dict[str, str | None]:
    """Name -> kind of the joint, None when the joint is not known: the `joints` of `cosim.rig.schema.read`."""
    return {name: joints[name].kind if joints and name in joints else None for name in names}
