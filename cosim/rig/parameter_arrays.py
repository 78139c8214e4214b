"""The tunable parameters of many runs of one rig: arrays by name, checked as in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cosim.core.errors import InputError, InputErrors, SourceLocation
from cosim.core.types import Array
from cosim.rig.parameters import read_number, reading_of, refusals, tunables_of, unknown_parameter
from cosim.rig.plant_parameters import PlantParameter, plant_parameters_of
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
    """name -> one number or one row per run, (k,) or (k, n), in SI.

    Raises InputErrors for names that do not exist, arrays of unlike length, and values that the rig file could not
    have.
    """
    tunables, errors = tunables_of(rig), list[InputError]()
    numbers = {} if set(values) <= set(tunables) else plant_parameters_of(rig)
    sizes = {name: item.where.stop - item.where.start for name, item in tunables.items()}
    sizes |= {name: number.values.size for name, number in numbers.items()}
    arrays: dict[str, Array] = {}
    for name, value in values.items():
        if name not in sizes:
            what = unknown_parameter(rig, name, list(sizes))
            errors.append(InputError(what, SourceLocation(f"parameter '{name}'")))
        else:
            arrays[name] = _numbers_per_run(name, value, sizes[name], errors)
    lengths = {name: len(array) for name, array in arrays.items()}
    if not errors and len(set(lengths.values())) > 1:
        counts = " and ".join(f"{count} for '{name}'" for name, count in lengths.items())
        errors.append(InputError(f"give as many values for each, got {counts}", "parameters"))
    if errors:
        raise InputErrors(errors)
    k = next(iter(lengths.values()), None)
    gains = np.repeat(rig.tick_model.parameters[None], k or 1, axis=0)
    for name, array in arrays.items():
        if name in tunables:
            gains[:, tunables[name].where] = array
        else:
            _check_number(name, numbers[name], array)
    _check_gains(rig, gains, {name: array for name, array in arrays.items() if name in tunables})
    of_plant = tuple(name for name in arrays if name not in tunables)
    return ParameterArrays(gains, of_plant, np.hstack([np.zeros((k or 1, 0)), *(arrays[name] for name in of_plant)]), k)


def _check_number(name: str, number: PlantParameter, array: Array) -> None:
    """Raises InputErrors for the first run whose value the rig file could not have."""
    if wrong := number.first_wrong(array):
        k, what = wrong
        raise InputErrors([InputError(what, f"parameter '{name}' of run {k}")])


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


def _check_gains(rig: WiredRig, rows: Array, arrays: Mapping[str, Array]) -> None:
    """Raises InputErrors for the first run whose parameters its file could not have. Bounds are checked on the extreme
    values, what a controller itself requires on every run."""
    known = tunables_of(rig)
    for name, array in arrays.items():
        # NaN passes neither as the smallest nor as the largest value
        extremes = {int(pick(array[:, j])) for j in range(array.shape[1]) for pick in (np.argmin, np.argmax)}
        for k in sorted(extremes):
            reading = reading_of(rig, name)
            single = known[name].loop.tunables.is_single(known[name].field)
            read_number(rig, known[name], array[k, 0] if single else array[k], reading)
            _raise_for_run(reading.errors, k)
    for number in {known[name].number for name in arrays}:
        _check_controller(rig, number, rows)


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
