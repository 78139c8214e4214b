"""The tunable parameters of a rig's controllers by name, such as `arm.kp`: read, checked as in the file, and set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from cosim.control.control_loop import ControlLoop
from cosim.control.controller_wrappers import FilteredParameters, ScheduledParameters, at_points
from cosim.core.errors import InputError, InputErrors, SourceLocation, did_you_mean
from cosim.rig.reading import schema
from cosim.rig.reading.plugins import call_checked
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.controllers import KEYS
from cosim.rig.sections.filters import check_filters
from cosim.rig.sections.gain_schedules import unscheduled
from cosim.rig.wiring.control_loops import controller_context
from cosim.rig.wiring.wired_rig import WiredRig

ParameterValue = float | str | list[float] | tuple[float, ...] | np.ndarray


class Tunable(NamedTuple):
    """A parameter: its controller, the name of the field, and its place in the parameters of the tick model."""

    number: int  # of the controller in the file
    loop: ControlLoop
    field: str
    where: slice


def tunables_of(rig: WiredRig) -> dict[str, Tunable]:
    """Name -> the parameter."""
    found = {}
    for number, loop in enumerate(rig.tick_model.loops):
        first = loop.parameter_slice.start
        for name, place in loop.tunables.fields.items():
            where = slice(first + place.start, first + place.stop)
            found[f"{loop.name}.{name}"] = Tunable(number, loop, name, where)
    return found


def values_of(rig: WiredRig) -> dict[str, float | list[float]]:
    """Name -> the value in SI, a list where it has one per joint."""
    return values_from(rig, rig.tick_model.parameters)


def values_from(rig: WiredRig, parameters: np.ndarray) -> dict[str, float | list[float]]:
    """As `values_of`, from the parameters (np,) of the tick model."""
    return {
        name: values[0] if item.loop.tunables.is_single(item.field) else values
        for name, item in tunables_of(rig).items()
        for values in [parameters[item.where].tolist()]
    }


def set_values(rig: WiredRig, values: Mapping[str, ParameterValue]) -> None:
    """Set parameters, as numbers in SI or as text with a unit; `arm.kp/elbow` is one element of a list. Nothing
    compiled changes.

    Raises InputErrors for names that do not exist and values that the rig file could not have; then none is set.
    """
    if not isinstance(values, Mapping):
        example = next(iter(tunables_of(rig)), "arm.kp")
        what = f"expected a mapping such as {{'{example}': 3}}, got {schema.show(values)}"
        raise InputError(what, "parameters")
    new = read_values(rig, values, rig.tick_model.parameters)
    rig.cached.forget()
    for where, numbers in new.values():
        rig.tick_model.parameters[where] = numbers


def read_values(
    rig: WiredRig, values: Mapping[str, ParameterValue], present: np.ndarray
) -> dict[str, tuple[slice, list[float]]]:
    """Name -> (place in the parameters of the tick model, numbers in SI) of values that are to replace `present` ones.

    Raises InputErrors for names that do not exist and values that the rig file could not have.
    """
    errors: list[InputError] = []
    lists = _with_elements(rig, values, present, errors)
    found = {name: _read(rig, name, value, errors) for name, value in lists.items()}
    if errors:
        raise InputErrors(errors)
    new, after, known = (
        {name: item for name, item in found.items() if item is not None},
        present.copy(),
        tunables_of(rig),
    )
    for where, numbers in new.values():
        after[where] = numbers
    for number in {known[name].number for name in new}:
        names = [name for name in new if known[name].number == number]
        place = SourceLocation(
            f"parameter '{names[0]}'" if len(names) == 1 else f"controller '{known[names[0]].loop.name}'"
        )
        errors += refusals(rig, number, after, place)
    if errors:
        raise InputErrors(errors)
    return new


def refusals(rig: WiredRig, number: int, parameters: np.ndarray, place: SourceLocation) -> list[InputError]:
    """Why the controller of this number refuses these parameters (np,) of the tick model: it may check them against one
    another, its joints and its period."""
    spec, loop = rig.spec.controllers[number], rig.tick_model.loops[number]
    context = controller_context(spec, rig.spec, rig.plant, rig.limits, loop.trajectory)
    reading = Reading(lambda path: place, [], rig.spec.path.parent)
    given = parameters[loop.parameter_slice]

    def load() -> None:
        params, filters, schedules = loop.tunables.checked(given), (), ()
        if isinstance(params, FilteredParameters):
            params, filters = params.own, params.filters
        if isinstance(params, ScheduledParameters):
            params, schedules = params.own, params.schedules
        for point in at_points(params, schedules):
            spec.plugin.module.load(point, context)
        filters = filters or tuple(one.params for one in spec.filters)
        check_filters(
            [replace(one, params=new) for one, new in zip(spec.filters, filters, strict=True)], context.period
        )

    call_checked(load, (), reading)
    return reading.errors


@contextmanager
def set_for_a_run(rig: WiredRig, values: Mapping[str, ParameterValue]) -> Iterator[None]:
    """Within this block the parameters have these values."""
    before = rig.tick_model.parameters.copy()
    try:
        set_values(rig, values)
        yield
    finally:
        rig.tick_model.parameters[:] = before


def _with_elements(
    rig: WiredRig, values: Mapping[str, ParameterValue], present: np.ndarray, errors: list[InputError]
) -> dict[str, Any]:
    """Name -> value, with elements such as `arm.kp/elbow` set in the list `present` of their parameter."""
    known, found = tunables_of(rig), dict[str, Any]()
    for name, value in values.items():
        whole, sign, label = str(name).partition("/")
        if not sign or whole not in known:
            found[name] = value
            continue
        labels = labels_of(rig, whole)
        if label not in labels:
            what = f"it has no element for '{label}'{did_you_mean(label, labels)}"
        elif whole in values:
            what = f"'{whole}' is given as a whole too; give one of the two"
        elif isinstance(_plain(value), list):
            what = "expected one number, got a list"
        else:
            found.setdefault(whole, present[known[whole].where].tolist())[labels.index(label)] = value
            continue
        errors.append(InputError(what, SourceLocation(f"parameter '{name}'")))
    return found


def _read(
    rig: WiredRig, name: str, value: ParameterValue, errors: list[InputError]
) -> tuple[slice, list[float]] | None:
    """(place, numbers) of a parameter; None after an error, which is recorded."""
    known = tunables_of(rig)
    if name not in known:
        errors.append(InputError(unknown_parameter(rig, name, list(known)), SourceLocation(f"parameter '{name}'")))
        return None
    plain = _plain(value)
    if isinstance(plain, list) and any(isinstance(item, list) for item in plain):
        what = "expected one number, or a list with one per joint, got a list of lists"
        errors.append(InputError(what, SourceLocation(f"parameter '{name}'")))
        return None
    tunable, reading = known[name], reading_of(rig, name)
    numbers = read_number(rig, tunable, value, reading)
    errors += reading.errors
    if numbers is None or reading.errors:
        return None
    return tunable.where, list(numbers) if isinstance(numbers, tuple) else [numbers]


def reading_of(rig: WiredRig, name: str) -> Reading:
    place = SourceLocation(f"parameter '{name}'")
    return Reading(lambda path: place, [], rig.spec.path.parent)


class _Place(NamedTuple):
    """Where a file has a parameter: as the key of a section at a path, read into a class, for these joints."""

    cls: type
    section: dict[str, Any]
    at: tuple
    key: str
    joints: tuple[str, ...]
    besides: tuple[str, ...]


def _place_of(rig: WiredRig, tunable: Tunable) -> _Place:
    """A gain of a schedule is read as the parameter itself."""
    spec, at = rig.spec.controllers[tunable.number], ("controllers", tunable.number)
    section, (key, *inside) = rig.spec.source.data["controllers"][tunable.number], tunable.field.split(".")
    if key != "filters":
        return _Place(type(spec.plugin.params), unscheduled(section), at, key, spec.joints, ("type", *KEYS))
    k = int(inside[0])
    one = spec.filters[k]
    return _Place(type(one.params), section["filters"][k], (*at, "filters", k), inside[1], one.joints, ("type",))


def read_number(
    rig: WiredRig, tunable: Tunable, value: ParameterValue, reading: Reading
) -> float | tuple[float, ...] | None:
    """A value of a parameter in SI, checked as in the file; None after an error."""
    place = _place_of(rig, tunable)
    section = {**place.section, place.key: _plain(value)}
    params = schema.read(place.cls, section, place.at, _of_joints(rig, place, reading), besides=place.besides)
    return None if params is None else getattr(params, place.key)


def unit_of(rig: WiredRig, name: str) -> str:
    """The unit of a parameter, resolved where its joints are all of one kind."""
    tunable = tunables_of(rig)[name]
    declared = tunable.loop.tunables.leaves[tunable.field].declared.get("unit", "1")
    return _of_joints(rig, _place_of(rig, tunable), reading_of(rig, name)).unit(declared, None)


def joints_of(rig: WiredRig, name: str) -> tuple[str, ...]:
    """The joints of a parameter with one value for each, in their order; none of another one."""
    tunable = tunables_of(rig)[name]
    joints, count = _place_of(rig, tunable).joints, tunable.where.stop - tunable.where.start
    return () if tunable.loop.tunables.is_single(tunable.field) or count != len(joints) else joints


def labels_of(rig: WiredRig, name: str) -> tuple[str, ...]:
    """What the elements of a parameter are called, as in `arm.kp/elbow`: after its joints, else by their numbers; none
    of one that is a single number."""
    tunable = tunables_of(rig)[name]
    if tunable.loop.tunables.is_single(tunable.field):
        return ()
    return joints_of(rig, name) or tuple(map(str, range(tunable.where.stop - tunable.where.start)))


def _of_joints(rig: WiredRig, place: _Place, reading: Reading) -> Reading:
    """For values of these joints."""
    units = dict(zip(rig.joints, rig.plant.model.dof_units, strict=True))
    kinds: dict[str, str | None] = {joint: "prismatic" if units[joint] == "m" else "revolute" for joint in place.joints}
    return reading.of(kinds, len(place.joints))


def unknown_parameter(rig: WiredRig, name: str, known: list[str]) -> str:
    controller, _, field = name.partition(".")
    if any(spec.name == controller and hasattr(spec.plugin.params, field) for spec in rig.spec.controllers):
        return f"is a part of the machine code; load the rig with the override 'controllers.{name}=…'"
    short = name.removeprefix("controllers.")  # as in overrides of a file
    near = f"; did you mean '{short}'?" if short in known else did_you_mean(name, known)
    return f"there is no such parameter{near}"


def _plain(value: Any) -> Any:
    """Lists and numbers of Python, as in a file."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
