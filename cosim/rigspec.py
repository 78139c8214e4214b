"""What a rig file says, checked: every section as a frozen dataclass, every mistake reported at once.

Times are integer nanoseconds from here on, positions and limits SI. Nothing is built yet.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from cosim.errors import InputError, InputErrors, Place, did_you_mean
from cosim.multibody.description import Joint, Mechanism
from cosim.multibody.graph import depth_first
from cosim.multibody.inline import read_bodies
from cosim.multibody.urdf import read_urdf
from cosim.plugins import ACTUATOR, CONTROLLER, TRAJECTORY, Kind, Plugin, Reading, read_plugin
from cosim.rigsections import (
    ControllerFile,
    EncoderSpec,
    Integrator,
    JointFile,
    LimitsFile,
    MechanismFile,
    RigFile,
    ScheduleFile,
    TelemetrySpec,
)
from cosim.schema import read_fields, show
from cosim.yaml_source import Source, load_yaml, override

TOLERANCE = 1e-9  # relative, of a time that should be a whole number of something
CONTROLLER_KEYS = tuple(field.name for field in fields(ControllerFile))


# --- the result ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class MechanismSpec:
    description: Mechanism
    gravity: tuple[float, float, float]  # m/s^2
    urdf: Path | None  # None: given inline


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
class ControllerSpec:
    """A controller of `joints`, called every `ticks` steps; without a trajectory the joints' initial
    positions are its reference."""

    name: str
    plugin: Plugin
    joints: tuple[str, ...]
    period_ns: int
    ticks: int
    trajectory: Plugin | None


@dataclass(frozen=True)
class ScheduleSpec:
    step_ns: int
    duration_ns: int
    integrator: Integrator
    substeps: int
    seed: int


@dataclass(frozen=True)
class RigSpec:
    """A rig file without mistakes; `joints` holds every moving joint that follows no other, in model order."""

    name: str
    path: Path
    description: str
    mechanism: MechanismSpec
    joints: dict[str, JointSpec]
    controllers: tuple[ControllerSpec, ...]
    schedule: ScheduleSpec
    telemetry: TelemetrySpec
    source: Source


# --- reading ------------------------------------------------------------------------------------


def read_rig(path: str | Path, overrides: Iterable[str] = ()) -> RigSpec:
    """The rig file at `path` with its mechanism, after overrides like `controllers.arm.kp=200`.

    Raises InputErrors with every mistake, in the order of the lines; InputError when the file is no YAML.
    """
    source = load_yaml(path)
    errors: list[InputError] = []
    for text in overrides:
        try:
            source = override(source, text)
        except InputError as error:
            errors.append(error)
    rig = _read(source, Reading(source.place, errors, Path(path).parent))
    if errors:
        raise InputErrors(_in_order(errors, source.file))
    return rig


def _in_order(errors: list[InputError], file: str) -> list[InputError]:
    """By line, then those of other files; a default for all joints that is wrong is one mistake."""

    def key(error: InputError) -> tuple[bool, int]:
        place = error.place
        here = isinstance(place, Place) and place.file == file
        return (not here, (place.line or 0) if here else 0)

    return sorted({str(error): error for error in errors}.values(), key=key)


def _read(source: Source, reading: Reading) -> RigSpec:
    """The spec; with mistakes noted in `reading` parts of it are None and it is not to be used."""
    path = Path(source.file)
    top: dict[str, Any] = read_fields(RigFile, source.data, reading.place, (), reading.errors)
    name = top.get("name") or path.stem
    mechanism: Any = _mechanism(top["mechanism"], name, reading) if "mechanism" in top else None
    joints = {joint.name: joint for joint in depth_first(mechanism.description)} if mechanism else None
    schedule = _schedule(top.get("schedule"), reading)
    entries = _entries(top.get("joints") or {}, joints, reading)
    prescribed = {name for name, entry in entries.items() if entry.data.get("prescribed") is not None}
    controllers = _controllers(top.get("controllers") or [], joints, prescribed, schedule.step_ns, reading)
    commanded = {joint for controller in controllers for joint in controller.joints}
    specs = {name: _joint(name, entry, joints, name in commanded) for name, entry in entries.items()}
    return RigSpec(
        name=name,
        path=path,
        description=top.get("description", ""),
        mechanism=mechanism,
        joints=specs,
        controllers=tuple(controllers),
        schedule=schedule,
        telemetry=top.get("telemetry", TelemetrySpec()),
        source=source,
    )


def _mechanism(data: dict[str, Any], name: str, reading: Reading) -> MechanismSpec | None:
    at = ("mechanism",)
    section = read_fields(MechanismFile, data, reading.place, at, reading.errors)
    given = [key for key in ("urdf", "bodies") if data.get(key) is not None]
    if len(given) != 1:
        both = "both 'urdf' and 'bodies' are given; keep one of them"
        return reading.fail(at, both if given else "missing key 'urdf' or 'bodies'")
    if given[0] not in section:
        return None
    urdf = None if section["urdf"] is None else reading.folder / section["urdf"]
    if urdf is not None and not urdf.is_file():
        near = sorted(file.name for file in urdf.parent.glob("*.urdf"))
        return reading.fail((*at, "urdf"), f"no such file '{section['urdf']}'{did_you_mean(urdf.name, near)}")
    try:
        description = read_urdf(urdf) if urdf else read_bodies(section["bodies"], reading.place, name)
    except InputErrors as many:
        reading.errors.extend(many.errors)
        return None
    except InputError as error:
        reading.errors.append(error)
        return None
    return MechanismSpec(description, section.get("gravity", ()), urdf)


def _schedule(data: Any, reading: Reading) -> ScheduleSpec:
    at = ("schedule",)
    values: dict[str, Any] = read_fields(ScheduleFile, data, reading.place, at, reading.errors)
    step_ns: Any = _step_ns(values["step"], reading) if "step" in values else None
    duration_ns: Any = round(values["duration"] * 1e9) if "duration" in values else None
    if step_ns and duration_ns is not None and duration_ns < step_ns:
        what = f"must be at least the step of {_time(step_ns)}, is {_time(duration_ns)}"
        reading.fail((*at, "duration"), what)
    rest = (values.get(key) for key in ("integrator", "substeps", "seed"))
    return ScheduleSpec(step_ns, duration_ns, *rest)  # type: ignore[arg-type]


def _step_ns(step: float, reading: Reading) -> int | None:
    whole = round(step * 1e9)
    if abs(step * 1e9 - whole) <= TOLERANCE * whole:
        return whole
    what = f"must be a whole number of nanoseconds, is {_time(step * 1e9)}; nearest: {_time(whole)}"
    return reading.fail(("schedule", "step"), what)


def _time(ns: float) -> str:
    unit, factor = next((u for u in (("s", 1e9), ("ms", 1e6)) if ns >= u[1]), ("us", 1e3))
    return f"{ns / factor:.10g} {unit}"


# --- joints -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Entry:
    """The settings of one joint, those for all joints merged in, and the places they come from."""

    data: dict[str, Any]
    reading: Reading


def _entries(data: dict[str, Any], joints: Mapping[str, Joint] | None, reading: Reading) -> dict[str, _Entry]:
    """The settings of each joint that moves on its own; those of unknown joints too, for their mistakes."""
    defaults = reading.mapping(data.get("all"), ("joints", "all"))
    named = {name: reading.mapping(own, ("joints", name)) for name, own in data.items() if name != "all"}
    if joints is None:
        return {name: _entry(name, own, defaults, reading) for name, own in named.items()}
    free = [name for name, joint in joints.items() if not _bound(joint)]
    unknown = [name for name in named if name not in joints]
    for name in unknown:
        reading.fail(("joints", name), f"unknown joint '{name}'{did_you_mean(name, free)}")
    for name in named:
        if name in joints and name not in free:
            for key in named[name]:
                what = f"joint '{name}' {_bound(joints[name])}; it takes no '{key}' of its own"
                reading.fail(("joints", name, key), what)
    return {name: _entry(name, named.get(name, {}), defaults, reading) for name in [*free, *unknown]}


def _entry(name: str, own: dict[str, Any], defaults: dict[str, Any], reading: Reading) -> _Entry:
    inherited = {key: value for key, value in defaults.items() if key not in own}
    if own.get("prescribed") is not None:
        inherited.pop("actuator", None)  # meant for the joints that have one

    def place(path: tuple) -> Place:
        return reading.place(("joints", "all", *path[2:]) if path[2:3] and path[2] in inherited else path)

    return _Entry({**inherited, **own}, replace(reading, place=place))


def _bound(joint: Joint) -> str:
    """Why a joint does not move on its own, empty if it does."""
    if joint.kind == "fixed":
        return "is fixed"
    return f"follows '{joint.mimic.joint}'" if joint.mimic is not None else ""


def _joint(name: str, entry: _Entry, joints: Mapping[str, Joint] | None, commanded: bool) -> JointSpec:
    at, reading = ("joints", name), entry.reading
    joint = (joints or {}).get(name)
    kinds = _kinds((name,), joints)
    values = read_fields(JointFile, entry.data, reading.place, at, reading.errors, joints=kinds)

    def plugin(kind: Kind, key: str, section: Mapping[str, Any] | None) -> Plugin | None:
        return None if section is None else read_plugin(kind, section, (*at, key), reading, kinds)

    if entry.data.get("actuator") is not None and entry.data.get("prescribed") is not None:
        what = f"joint '{name}' is prescribed, its effort is computed; take out 'actuator' or 'prescribed'"
        reading.fail((*at, "actuator"), what)
    actuator = values.get("actuator")
    if commanded and actuator is None:
        actuator = {"type": "ideal"}
    limits = _limits(values.get("limits") or LimitsFile(), joint)
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


def _limits(written: LimitsFile, joint: Joint | None) -> dict[str, float]:
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
        return reading.fail((*at, "limits"), f"lower {lower:.6g}{unit} is above upper {upper:.6g}{unit}")
    if joint is not None:
        lower, upper = max(lower, joint.lower), min(upper, joint.upper)
    if position is not None and not lower <= position <= upper:
        what = f"{position:.6g}{unit} is outside the limits {lower:.6g} to {upper:.6g}{unit}"
        reading.fail((*at, "initial", "position"), f"{what}; give one inside")


# --- controllers --------------------------------------------------------------------------------


def _controllers(
    items: list[Any],
    joints: Mapping[str, Joint] | None,
    prescribed: set[str],
    step_ns: int | None,
    reading: Reading,
) -> list[ControllerSpec]:
    free = [name for name, joint in (joints or {}).items() if not _bound(joint) and name not in prescribed]
    names: dict[str, str] = {}  # controller -> its line
    taken: dict[str, str] = {}  # joint -> who commands it
    specs = []
    for i, data in enumerate(items):
        at = ("controllers", i)
        if not isinstance(data, dict):
            reading.fail(at, f"expected a mapping, got {show(data)}")
            continue
        written = {key: data[key] for key in CONTROLLER_KEYS if key in data}
        head: dict[str, Any] = read_fields(ControllerFile, written, reading.place, at, reading.errors)
        name = head.get("name") or Path(str(data.get("type"))).stem
        here = _in_line(reading.place(at))
        if name in names:
            what = f"controller '{name}' exists already{names[name]}; give this one another name"
            reading.fail((*at, "name") if "name" in data else at, what)
        names.setdefault(name, here)
        given = head.get("joints", ())
        chosen = free if given is None else given
        for k, joint in enumerate(chosen):
            if what := _obstacle(joint, joints, free, prescribed, taken):
                reading.fail(at if given is None else (*at, "joints", k), what)
            taken.setdefault(joint, f"controller '{name}'{here}")
        known = "joints" in head and (given is not None or joints is not None)
        if known and not chosen:
            reading.fail(at if given is None else (*at, "joints"), "there is no joint to command")
        group = _kinds(chosen, joints) if known else None
        n = len(chosen) if known else None
        plugin: Any = read_plugin(CONTROLLER, data, at, reading, group, n, CONTROLLER_KEYS)
        trajectory = head.get("trajectory")
        if trajectory is not None:
            trajectory = read_plugin(TRAJECTORY, trajectory, (*at, "trajectory"), reading, group, n)
        ticks = _ticks(head.get("period"), step_ns, at, reading)
        specs.append(ControllerSpec(name, plugin, tuple(chosen), ticks * (step_ns or 0), ticks, trajectory))
    return specs


def _obstacle(
    name: str,
    joints: Mapping[str, Joint] | None,
    free: Iterable[str],
    prescribed: Container[str],
    taken: Mapping[str, str],
) -> str:
    """Why the joint cannot be commanded, empty if it can."""
    if joints is not None and name not in joints:
        return f"unknown joint '{name}'{did_you_mean(name, free)}"
    if joints is not None and (bound := _bound(joints[name])):
        return f"joint '{name}' {bound}; it cannot be commanded"
    if name in prescribed:
        return f"joint '{name}' is prescribed; it cannot be commanded"
    return f"joint '{name}' is already commanded by {taken[name]}" if name in taken else ""


def _kinds(names: Iterable[str], joints: Mapping[str, Joint] | None) -> dict[str, str | None]:
    return {name: joints[name].kind if joints and name in joints else None for name in names}


def _ticks(period: float | None, step_ns: int | None, at: tuple, reading: Reading) -> int:
    """How many steps the period has; 1 when it is not given, or cannot be judged."""
    if period is None or step_ns is None:
        return 1
    ratio = period * 1e9 / step_ns
    ticks = round(ratio)
    if abs(ratio - ticks) > TOLERANCE * ticks:
        near = sorted({max(math.floor(ratio), 1), max(math.ceil(ratio), 1)})
        nearest = " or ".join(_time(k * step_ns) for k in near)
        what = f"{_time(period * 1e9)} is no whole multiple of the step of {_time(step_ns)}; nearest: {nearest}"
        reading.fail((*at, "period"), what)
    return ticks


def _in_line(place: Place) -> str:
    return f" (line {place.line})" if place.line is not None else ""
