"""The tunable parameters of many runs of one rig: arrays by name, checked as in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cosim.core.errors import InputError, InputErrors, SourceLocation
from cosim.core.types import Array
from cosim.rig.parameter_table import LiveParameter, table_of
from cosim.rig.parameters import refusals
from cosim.rig.plant_parameters import PlantParameter
from cosim.rig.wiring.wired_rig import WiredRig


@dataclass(frozen=True)
class ParameterArrays:
    """Of k runs: gains (k, np), the parameters of all controllers; numbers: names of the plant's, and their values
    (k, n), side by side. k is None where none are given."""

    gains: Array
    numbers: tuple[str, ...]
    values: Array
    k: int | None


def read_arrays(rig: WiredRig, values: Mapping[str, ArrayLike]) -> ParameterArrays:
    """name -> one number or one row per run, (k,) or (k, n), in SI; of an element such as `arm.kp/elbow` (k,).

    Raises InputErrors for names that do not exist, arrays of unlike length, and values that the rig file could not
    have.
    """
    table, errors = table_of(rig), list[InputError]()
    given, arrays = {str(name): value for name, value in values.items()}, dict[str, Array]()
    found = table.find_all(given, errors)
    for name, (parameter, element) in found.items():
        arrays[name] = _numbers_per_run(name, given[name], parameter.size if element is None else 1, errors)
    lengths = {name: len(array) for name, array in arrays.items()}
    if not errors and len(set(lengths.values())) > 1:
        counts = " and ".join(f"{count} for '{name}'" for name, count in lengths.items())
        errors.append(InputError(f"give as many values for each, got {counts}", "parameters"))
    if errors:
        raise InputErrors(errors)
    k = next(iter(lengths.values()), None)
    rows = dict[str, Array]()  # of whole parameters
    for name, (parameter, element) in found.items():
        if element is None:
            rows[parameter.name] = arrays[name]
        else:
            present = np.repeat(table.numbers(parameter.name)[None], lengths[name], axis=0)
            rows.setdefault(parameter.name, present)[:, element] = arrays[name][:, 0]
    live = {name: table.live[name] for name in rows if name in table.live}
    of_plant = tuple(name for name in rows if name not in live)
    for name, array in rows.items():
        _check(live.get(name) or table.per_run[name], array)
    gains = np.repeat(rig.tick_model.parameters[None], k or 1, axis=0)
    for name, parameter in live.items():
        gains[:, parameter.where] = rows[name]
    for number in {parameter.number for parameter in live.values()}:
        _check_controller(rig, number, gains)
    return ParameterArrays(gains, of_plant, np.hstack([np.zeros((k or 1, 0)), *(rows[name] for name in of_plant)]), k)


def _check(parameter: LiveParameter | PlantParameter, rows: Array) -> None:
    """Raises InputErrors for the first of k runs whose numbers (k, n) the rig file could not have. Where the values
    between two that are right are right, the extreme ones are looked at."""
    looked_at = range(len(rows))
    if parameter.bounded and np.isfinite(rows).all():
        looked_at = sorted({int(pick(column)) for column in rows.T for pick in (np.argmin, np.argmax)})
    for k in looked_at:
        if what := parameter.wrong(rows[k]):
            raise InputErrors([InputError(what, f"parameter '{parameter.name}' of run {k}")])


def _numbers_per_run(name: str, value: ArrayLike, n: int, errors: list[InputError]) -> Array:
    """value as (k, n); an empty array after an error, which is recorded."""
    place = SourceLocation(f"parameter '{name}'")
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        errors.append(InputError("expected an array of numbers in SI", place))
        return np.zeros((0, n))
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] not in (1, n) or not len(array):
        shapes = "(k,)" if n == 1 else f"(k,) or (k, {n})"
        errors.append(InputError(f"has the shape {np.shape(value)}; give {shapes} for k runs", place))
        return np.zeros((0, n))
    return np.broadcast_to(array, (len(array), n))


def _check_controller(rig: WiredRig, number: int, rows: Array) -> None:
    """Raises InputErrors for the first run whose parameters a controller refuses."""
    loop, checked = rig.tick_model.loops[number], set[bytes]()
    place = SourceLocation(f"controller '{loop.name}'")
    for k, row in enumerate(rows):
        if (values := row[loop.parameter_slice].tobytes()) not in checked:
            checked.add(values)
            _raise_for_run(refusals(rig, number, row, place), k)


def _raise_for_run(errors: list[InputError], k: int) -> None:
    if errors:
        texts = dict.fromkeys((error.what, f"{error.place} of run {k}") for error in errors)
        raise InputErrors([InputError(*text) for text in texts])
