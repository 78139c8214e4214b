"""The live parameters of a rig: set by name, checked as in the file. What they are: `parameter_table`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from cosim.control.controller_wrappers import FilteredParameters, ScheduledParameters, at_points
from cosim.core.errors import InputError, InputErrors, SourceLocation
from cosim.rig.parameter_table import LiveParameter, plain, table_of
from cosim.rig.reading import schema
from cosim.rig.reading.plugins import call_checked
from cosim.rig.reading.schema import Reading
from cosim.rig.sections.filters import check_filters
from cosim.rig.wiring.cached_parts import WARNINGS
from cosim.rig.wiring.control_loops import controller_context
from cosim.rig.wiring.wired_rig import WiredRig

ParameterValue = float | str | list[float] | tuple[float, ...] | np.ndarray


def set_values(rig: WiredRig, values: Mapping[str, ParameterValue]) -> None:
    """Set parameters, as numbers in SI or as text with a unit; `arm.kp/elbow` is one element of a list. Nothing
    compiled changes.

    Raises InputErrors for names that do not exist and values that the rig file could not have; then none is set.
    """
    if not isinstance(values, Mapping):
        example = next(iter(table_of(rig).live), "arm.kp")
        what = f"expected a mapping such as {{'{example}': 3}}, got {schema.show(values)}"
        raise InputError(what, "parameters")
    new = read_values(rig, values, rig.tick_model.parameters)
    rig.cached.forget()
    for where, numbers in new.values():
        rig.tick_model.parameters[where] = numbers
    rig.cached.drop(WARNINGS)


def read_values(
    rig: WiredRig, values: Mapping[str, ParameterValue], present: np.ndarray
) -> dict[str, tuple[slice, list[float]]]:
    """Name -> (place in the parameters of the tick model, numbers in SI) of values that are to replace `present` ones.

    Raises InputErrors for names that do not exist and values that the rig file could not have.
    """
    errors, known = list[InputError](), table_of(rig).live
    given = _with_elements(rig, values, present, errors)
    new = {name: found for name, value in given.items() if (found := _read(known[name], value, errors)) is not None}
    if errors:
        raise InputErrors(errors)
    after = present.copy()
    for name, numbers in new.items():
        after[known[name].where] = numbers
    for number in {known[name].number for name in new}:
        names = [name for name in new if known[name].number == number]
        place = SourceLocation(
            f"parameter '{names[0]}'" if len(names) == 1 else f"controller '{known[names[0]].loop.name}'"
        )
        errors += refusals(rig, number, after, place)
    if errors:
        raise InputErrors(errors)
    return {name: (known[name].where, numbers) for name, numbers in new.items()}


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
        rig.cached.drop(WARNINGS)


def _with_elements(
    rig: WiredRig, values: Mapping[str, ParameterValue], present: np.ndarray, errors: list[InputError]
) -> dict[str, Any]:
    """Name -> value, with elements such as `arm.kp/elbow` set in the list `present` of their parameter."""
    table, found = table_of(rig), dict[str, Any]()
    given = {str(name): value for name, value in values.items()}
    for name, (parameter, element) in table.find_all(given, errors, per_run=False).items():
        if element is None:
            found[name] = given[name]
        elif isinstance(plain(given[name]), list):
            errors.append(InputError("expected one number, got a list", SourceLocation(f"parameter '{name}'")))
        else:
            numbers = present[table.live[parameter.name].where].tolist()
            found.setdefault(parameter.name, numbers)[element] = given[name]
    return found


def _read(parameter: LiveParameter, value: ParameterValue, errors: list[InputError]) -> list[float] | None:
    """The numbers of a parameter; None after an error, which is recorded."""
    simple, reading = plain(value), parameter.reading(SourceLocation(f"parameter '{parameter.name}'"))
    if isinstance(simple, list) and any(isinstance(item, list) for item in simple):
        reading.fail((), "expected one number, or a list with one per joint, got a list of lists")
        numbers = None
    else:
        numbers = parameter.read(simple, reading)
    errors += reading.errors
    return None if reading.errors else numbers
