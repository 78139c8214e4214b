"""Parameters of a controller that depend on a signal: `kp: {gains: […], over: {signal: …, values: […]}}`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, get_args

from cosim.core.errors import SourceLocation, did_you_mean
from cosim.core.types import PerJoint, hints_of, param, params
from cosim.mechanics.multibody.mechanism import Joint
from cosim.rig.reading import schema
from cosim.rig.reading.plugins import Plugin
from cosim.rig.reading.schema import Reading, read_fields
from cosim.rig.reading.yaml_source import YamlValue
from cosim.rig.sections.events import OverKeys, over_of
from cosim.rig.sections.joints import kinds_of

INTERFACES = ("position", "velocity")  # of any dof, as measured
MOST_POINTS = 100


@params
class ScheduleKeys:
    gains: list = param(doc="values of the parameter, each as the parameter itself takes it")
    over: dict = param(doc="signal on which they depend")


@dataclass(frozen=True)
class GainScheduleSpec:
    """A field whose values are `rows` at the `points` of the interface of a dof."""

    field: str
    dof: str
    interface: str
    points: tuple[float, ...]
    rows: tuple[tuple[float, ...], ...]


def is_scheduled(value: YamlValue) -> bool:
    return isinstance(value, dict) and isinstance(value.get("over"), dict)


def check_schedules(data: Mapping[str, Any], at: tuple, reading: Reading) -> bool:
    """Whether every schedule in the section of a controller has its keys; errors are recorded."""
    before = len(reading.errors)
    for key, value in data.items():
        if is_scheduled(value):
            found = read_fields(ScheduleKeys, value, (*at, key), reading)
            if "gains" in found and not found["gains"]:
                reading.fail((*at, key, "gains"), "is empty; give a value for each of 'over.values'")
    return len(reading.errors) == before


def unscheduled(data: Mapping[str, Any]) -> dict[str, Any]:
    """The section of a controller with the first value of each parameter that depends on a signal."""
    return {key: value["gains"][0] if is_scheduled(value) else value for key, value in data.items()}


def at_row(reading: Reading, at: tuple, key: str, row: int) -> Reading:
    """The reading in which the parameter `key` of the section at `at` has the location of a value of its schedule."""

    def place(path: tuple) -> SourceLocation:
        head = (*at, key)
        inside = path[: len(head)] == head
        return reading.place((*head, "gains", row, *path[len(head) :]) if inside else path)

    return replace(reading, place=place)


def read_schedules(
    data: Mapping[str, Any],
    plugin: Plugin | None,
    at: tuple,
    joints: Mapping[str, Joint] | None,
    reading: Reading,
    besides: tuple[str, ...],
) -> tuple[GainScheduleSpec, ...]:
    """The scheduled parameters of the controller at `at`; errors are recorded. plugin: read from `unscheduled` data,
    None after an error; joints: of the mechanism; reading: of the joints of the controller."""
    if plugin is None or joints is None:
        return ()
    keys = [key for key, value in data.items() if is_scheduled(value)]
    found = (_schedule(key, data, plugin, at, joints, reading, besides) for key in keys)
    return tuple(spec for spec in found if spec is not None)


def _schedule(
    key: str,
    data: Mapping[str, Any],
    plugin: Plugin,
    at: tuple,
    joints: Mapping[str, Joint],
    reading: Reading,
    besides: tuple[str, ...],
) -> GainScheduleSpec | None:
    place = (*at, key)
    if not _is_per_joint(plugin, key):
        what = "only a number per joint that can change in a run can depend on a signal"
        return reading.fail(place, f"{what}; give one value")
    over, gains = _over(data[key]["over"], (*place, "over"), joints, reading), data[key]["gains"]
    if over is None:
        return None
    dof, interface, points = over
    if len(gains) != len(points) or len(gains) < 2:
        what = f"give one of 'over.values' for each of 'gains', two or more, got {len(points)} and {len(gains)}"
        return reading.fail(place, what)
    if any(b <= a for a, b in pairwise(points)):
        return reading.fail((*place, "over", "values"), "must increase")
    if len(gains) > MOST_POINTS:
        return reading.fail((*place, "gains"), f"{len(gains)} values are too many; keep {MOST_POINTS} or fewer")
    rows = []
    for number, gain in enumerate(gains):
        section = {**unscheduled(data), key: gain}
        read = schema.read(type(plugin.params), section, at, at_row(reading, at, key, number), besides)
        if read is None:
            return None
        rows.append(getattr(read, key))
    return GainScheduleSpec(key, dof, interface, points, tuple(rows))


def _is_per_joint(plugin: Plugin, key: str) -> bool:
    """Whether a parameter has one number per joint, as an input of the machine code."""
    declared = {field.name: field for field in fields(plugin.params)}
    hint = hints_of(type(plugin.params)).get(key)
    per_joint = PerJoint in (hint, *get_args(hint))
    return per_joint and not declared[key].metadata.get("constant", False)


def _over(
    data: dict[str, YamlValue], at: tuple, joints: Mapping[str, Joint], reading: Reading
) -> tuple[str, str, tuple[float, ...]] | None:
    """(dof, interface, points) of the signal."""
    dof, _, interface = str(data.get("signal", "")).rpartition("/")
    known = dof in joints and interface in INTERFACES
    cls = over_of(f"joint {interface}") if known else OverKeys
    values = read_fields(cls, data, at, reading.of(kinds_of([dof], joints) if known else None))
    if "signal" in values and not known:
        signals = [f"{name}/{what}" for name in joints for what in INTERFACES]
        what = f"there is no measured signal '{values['signal']}'{did_you_mean(values['signal'], signals)}"
        return reading.fail((*at, "signal"), what)
    return (dof, interface, values["values"]) if {"signal", "values"} <= values.keys() else None
