"""The section `events` of a rig: changes of its structure, and their times or conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from itertools import pairwise
from typing import Any, Literal

from cosim.core.errors import did_you_mean
from cosim.core.types import param, params
from cosim.core.units import JOINT_DIMENSIONS, quantity_unit
from cosim.rig.reading.names import Reference, Title
from cosim.rig.reading.schema import Reading, read_fields
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.dofs import Dofs
from cosim.rig.sections.joints import bound_reason
from cosim.rig.sections.mechanism import MechanismSpec
from cosim.simulation.plant.recorded_signals import OF_A_DOF, OF_A_FRAME


@params
class WhenKeys:
    signal: Reference = param(doc="of the rig, such as `<joint>/position` or `<constraint>/resultant_force`")
    above: float | None = param(default=None, doc="triggers when the signal rises above this, in its unit")
    below: float | None = param(default=None, doc="triggers when the signal falls below this, in its unit")


@params
class OverKeys:
    signal: Reference = param(doc="position or velocity of a dof, such as `<joint>/position`")
    values: tuple[float, ...] = param(
        doc="of the signal, in its unit; one for each value that depends on it, increasing"
    )


@cache
def _when_of(interface: str) -> type[WhenKeys]:
    """WhenKeys with a unit, or the unit of an interface of a dof."""

    @params
    class WhenKeysInUnit(WhenKeys):
        above: float | None = param(unit=interface, default=None)
        below: float | None = param(unit=interface, default=None)

    return WhenKeysInUnit


def over_of(interface: str) -> type[OverKeys]:
    """OverKeys with the unit of an interface of a dof."""

    @params
    class OverKeysInUnit(OverKeys):
        values: tuple[float, ...] = param(unit=interface)

    return OverKeysInUnit


# quantities of a joint that a dof records, by name
_UNITS = {what: signal.unit for what, signal in OF_A_DOF.items() if signal.unit in JOINT_DIMENSIONS}
FRAME_AXES = dict.fromkeys("xyz", "m") | dict.fromkeys(("roll", "pitch", "yaw"), "rad")  # `<frame>.<axis>/…`
INTERFACES = {what: _when_of(unit) for what, unit in _UNITS.items()}
# sections of an event with a signal: their keys, and the keys for signals of a dof
OF_A_SIGNAL: dict[str, tuple[type, Mapping[str, type]]] = {
    "when": (WhenKeys, INTERFACES),
    "over": (OverKeys, {what: over_of(unit) for what, unit in _UNITS.items()}),
}


@params
class EventKeys:
    do: Literal["latch", "unlatch", "brake", "unbrake", "release", "disable", "enable"] = param()
    of: Reference = param(doc="a joint, one of its dofs, or for `release` also a loop or constraint")
    name: Title | None = param(default=None, doc="default: `<do> <of>`")
    at: float | None = param(unit="s", min=0, default=None, doc="time of the event")
    when: dict | None = param(default=None, doc="condition of the event")
    effort: float = param(unit="joint effort", min=0, default=0.0, doc="of a brake; above 0")
    efforts: tuple[float, ...] | None = param(unit="joint effort", min=0, default=None, doc="of a brake that varies")
    times: tuple[float, ...] | None = param(unit="s", min=0, default=None, doc="of `efforts`, since the brake acts")
    over: dict | None = param(default=None, doc="signal that `efforts` depend on, in place of `times`")
    static_ratio: float = param(min=1, default=1.0, doc="of the largest effort of a sticking brake to a slipping one")


OF_A_BRAKE = ("effort", "efforts", "times", "over", "static_ratio")
MOST_EFFORTS = 100  # of a table: each is an indicator, or two; compiling grows with them


@dataclass(frozen=True)
class EventSpec:
    """An event at a time [s], or when factor · (signal − bound) rises above 0. efforts, points, static_ratio: as of
    `plant.brakes.Brake`, of a brake; over: the signal of the points, '' for the time since it acts."""

    name: str
    do: str
    dofs: tuple[str, ...]
    constraint: str | None
    efforts: tuple[float, ...]
    points: tuple[float, ...]
    over: str
    static_ratio: float
    at: float | None
    signal: str = ""
    factor: float = 0.0
    bound: float = 0.0
    key: tuple = ()


def read_events(
    items: YamlValue, dofs: Dofs | None, mechanism: MechanismSpec | None, reading: Reading
) -> tuple[EventSpec, ...]:
    """The events in their order. Signals are looked up when the rig is wired."""
    found: list[EventSpec] = []
    for k, item in enumerate(items):
        at = ("events", k)
        data = reading.mapping(item, at)
        if not isinstance(item, dict | None):
            continue
        values = read_fields(EventKeys, data, at, reading.of(_kinds(data.get("of"), dofs)))
        for key in OF_A_SIGNAL:
            if values.get(key) is not None:
                values[key] = _of_a_signal(key, values[key], (*at, key), dofs, mechanism, reading)
        if {"do", "of"} <= values.keys():
            event = _event(values, data, at, dofs, mechanism, reading)
            _check_overlap(event, found, at, reading)
            if event.name in {other.name for other in found}:
                reading.fail((*at, "name"), f"there is an event '{event.name}' already; give this one another name")
            found.append(event)
    return tuple(found)


def _kinds(of: YamlValue, dofs: Dofs | None) -> dict[str, str | None]:
    """Name -> kind of the dofs of a joint."""
    return {name: dofs.single[name].kind for name in dofs.of(of)} if dofs and isinstance(of, str) else {}


def _of_a_signal(
    key: str,
    data: dict[str, YamlValue],
    at: tuple,
    dofs: Dofs | None,
    mechanism: MechanismSpec | None,
    reading: Reading,
) -> Any:
    """The keys of a section with numbers in the unit of its signal; None after an error."""
    part, _, what = str(data.get("signal")).rpartition("/")
    frame, _, axis = part.rpartition(".")
    kinds = _kinds(part, dofs)
    plain, of_dofs = OF_A_SIGNAL[key]
    cls = of_dofs.get(what, plain) if kinds else plain
    if key == "when" and mechanism and frame in {frame.name for frame in mechanism.description.frames}:
        known = axis in FRAME_AXES and what in OF_A_FRAME
        cls = _when_of(quantity_unit(OF_A_FRAME[what].unit, FRAME_AXES[axis]) if known else "1")
    values = read_fields(cls, data, at, reading.of(kinds))
    return cls(**values) if {field.name for field in fields(cls)} <= values.keys() else None


def _event(
    values: dict[str, Any], data: dict, at: tuple, dofs: Dofs | None, mechanism: MechanismSpec | None, reading: Reading
) -> EventSpec:
    do, of, when, over = values["do"], values["of"], values.get("when"), values.get("over")
    if (data.get("at") is None) == (data.get("when") is None):
        reading.fail(at, f"give either 'at' (a time) or 'when' (a signal), to {do} '{of}'")
    efforts, points = _efforts(values, data, at, reading)
    bounds = [] if when is None else [b for b in (when.above, when.below) if b is not None]
    if when is not None and len(bounds) != 1:
        reading.fail((*at, "when"), "give 'above' or 'below', one of them")
    constraint, held = _target(do, of, at, dofs, mechanism, reading)
    rises = when is not None and when.above is not None
    return EventSpec(
        name=values.get("name") or f"{do} {of}",
        do="unlatch" if do == "release" and constraint is None else do,
        dofs=held,
        constraint=constraint,
        efforts=efforts,
        points=points,
        over=over.signal if over else "",
        static_ratio=values.get("static_ratio", 1.0),
        at=values.get("at"),
        signal=when.signal if when else "",
        factor=1.0 if rises else -1.0,
        bound=bounds[0] if len(bounds) == 1 else 0.0,
        key=at,
    )


def _efforts(
    values: dict[str, Any], data: dict, at: tuple, reading: Reading
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(efforts, their times [s] or values of a signal) of a brake."""
    do, over = values["do"], values.get("over")
    given = [key for key in OF_A_BRAKE if data.get(key) not in (None, 0)]
    if do != "brake":
        for key in given:
            reading.fail((*at, key), f"only a brake has '{key}'; take it out of {do}")
        return (), ()
    if not set(given) <= values.keys() or ("over" in given and over is None):
        return (0.0,), (0.0,)  # the error is recorded already
    if not {"efforts", "times", "over"}.intersection(given):
        if values["effort"] == 0.0:
            reading.fail(at, "a brake needs an 'effort' above 0")
        return (values["effort"],), (0.0,)
    efforts: tuple[float, ...] = values["efforts"] or ()
    points: tuple[float, ...] = (over.values if over else values["times"]) or ()
    axis = ("over", "values") if over else ("times",)
    if over and "times" in given:
        reading.fail((*at, "over"), "give 'times' or 'over', one of them")
    elif "effort" in given:
        reading.fail((*at, "effort"), f"give 'effort', or 'efforts' and '{axis[0]}'")
    elif len(efforts) != len(points) or not efforts:
        what = f"give one of '{'.'.join(axis)}' for each of 'efforts', got {len(points)} and {len(efforts)}"
        reading.fail(at, what)
    elif len(efforts) > MOST_EFFORTS:
        reading.fail((*at, "efforts"), f"{len(efforts):,} efforts are too many; keep {MOST_EFFORTS} or fewer")
    elif (not over and points[:1] != (0.0,)) or any(b <= a for a, b in pairwise(points)):
        reading.fail((*at, *axis), "must increase" if over else "must start at 0 and increase")
    elif not any(efforts):
        reading.fail((*at, "efforts"), "a brake needs an effort above 0")
    return efforts, points


def _check_overlap(event: EventSpec, others: list[EventSpec], at: tuple, reading: Reading) -> None:
    """Record a brake that shares some dofs with another one, and a release of a part of a brake."""
    for brake in (other for other in others if other.do == "brake"):
        own, held = set(event.dofs), set(brake.dofs)
        if event.do == "brake" and own & held and own != held:
            reading.fail((*at, "of"), f"shares dofs with '{brake.name}'; name the same joint or dof in both")
        if event.do == "unbrake" and own & held and not own >= held:
            reading.fail((*at, "of"), f"is a part of what '{brake.name}' holds; name the whole joint")


def _target(
    do: str, of: str, at: tuple, dofs: Dofs | None, mechanism: MechanismSpec | None, reading: Reading
) -> tuple[str | None, tuple[str, ...]]:
    """(constraint, dofs) that the event changes."""
    if dofs is None or mechanism is None:
        return None, ()
    description = mechanism.description
    ties = [loop.joint.name for loop in description.loops] + [c.name for c in description.constraints]
    if do == "release" and of in ties:
        if any(loop.coordinates and loop.joint.name == of for loop in description.loops):
            what = f"'{of}' keeps its coordinates, which cannot be released; remove their cause"
            reading.fail((*at, "of"), f"{what} (a drive, spring, damping, friction or limits)")
        return of, ()
    moving = [name for name, joint in dofs.single.items() if not bound_reason(joint)]
    held = dofs.of(of)
    if not held:
        known = [*dofs.multi_dof_joints, *moving, *(ties if do == "release" else [])]
        reading.fail((*at, "of"), f"there is no '{of}'{did_you_mean(of, known)}")
    elif not set(held) <= set(moving):
        reading.fail((*at, "of"), f"joint '{of}' {bound_reason(dofs.single[of])}; name one that moves on its own")
    return None, tuple(held)
