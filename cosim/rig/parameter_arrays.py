"""The tunable parameters of many runs of one rig: arrays by name, checked as in the file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from cosim.errors import InputError, InputErrors, SourceLocation
from cosim.rig.build.control_loops import controller_context
from cosim.rig.build.wired_rig import WiredRig
from cosim.rig.parameters import reading_of, tunables_of, unknown_parameter, with_field
from cosim.rig.reading.plugins import call_checked
from cosim.rig.reading.schema import Reading
from cosim.types import Array, Controller


def rows_of(rig: WiredRig, values: Mapping[str, ArrayLike]) -> Array:
    """(k, np) parameters of the tick model for k runs: one number or one row per run, (k,) or (k, n), in SI.

    Raises InputErrors for names that do not exist, arrays of unlike length, and values that the rig file could not
    have.
    """
    known, errors = tunables_of(rig), list[InputError]()
    arrays: dict[str, Array] = {}
    for name, value in values.items():
        place = SourceLocation(f"parameter '{name}'")
        if name not in known:
            errors.append(InputError(unknown_parameter(rig, name, list(known)), place))
            continue
        arrays[name] = _numbers_per_run(name, value, known[name].where, errors)
    lengths = {name: len(array) for name, array in arrays.items()}
    if not errors and len(set(lengths.values())) > 1:
        counts = " and ".join(f"{count} for '{name}'" for name, count in lengths.items())
        errors.append(InputError(f"give as many values for each, got {counts}", "parameters"))
    if errors:
        raise InputErrors(errors)
    rows = np.repeat(rig.tick_model.parameters[None], next(iter(lengths.values()), 1), axis=0)
    for name, array in arrays.items():
        rows[:, known[name].where] = array
    _check_rows(rig, rows, arrays)
    return rows


def _numbers_per_run(name: str, value: ArrayLike, where: slice, errors: list[InputError]) -> Array:
    """value as (k, n); an empty array after an error, which is recorded."""
    place, n = SourceLocation(f"parameter '{name}'"), where.stop - where.start
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


def _check_rows(rig: WiredRig, rows: Array, arrays: Mapping[str, Array]) -> None:
    """Raises InputErrors for the first run whose parameters its file could not have. Bounds are checked on the extreme
    values, what a controller itself requires on every run."""
    known = tunables_of(rig)
    for name, array in arrays.items():
        # NaN passes neither as the smallest nor as the largest value
        extremes = {int(pick(array[:, j])) for j in range(array.shape[1]) for pick in (np.argmin, np.argmax)}
        for k in sorted(extremes):
            reading = reading_of(rig, name)
            single = isinstance(getattr(known[name].loop.tunables.params, known[name].field), float)
            with_field(rig, known[name], array[k, 0] if single else array[k], reading)
            _raise_for_run(reading.errors, k)
    for number in {known[name].number for name in arrays}:
        _check_controller(rig, number, rows)


def _check_controller(rig: WiredRig, number: int, rows: Array) -> None:
    """Raises InputErrors for the first run whose parameters a controller refuses."""
    spec, loop = rig.spec.controllers[number], rig.tick_model.loops[number]
    context = controller_context(spec, rig.spec, rig.plant, rig.limits)
    place = SourceLocation(f"controller '{loop.name}'")

    def load(values: Array) -> Controller:
        return spec.plugin.module.load(loop.tunables.checked(values), context)

    for k, row in enumerate(rows[:, loop.parameter_slice]):
        reading = Reading(lambda path: place, [], rig.spec.path.parent)
        call_checked(partial(load, row), (), reading)
        _raise_for_run(reading.errors, k)


def _raise_for_run(errors: list[InputError], k: int) -> None:
    if errors:
        texts = dict.fromkeys((error.what, f"{error.place} of run {k}") for error in errors)
        raise InputErrors([InputError(*text) for text in texts])
