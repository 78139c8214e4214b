"""Inputs and outputs of an FMU as named arrays in SI."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cosim.core.errors import RunError
from cosim.core.types import Array
from cosim.simulation.fmi.library import FmuLibrary, VariableGroup, groups
from cosim.simulation.fmi.variables import FmuVariable

SMALL_GROUP = 64  # numbers that Python adds faster than numpy


class GroupPlan(NamedTuple):
    """How the values of a group are taken from inputs. simple: real scalars in SI; whole: whole numbers."""

    names: tuple[str, ...]
    simple: bool
    factors: Array
    offsets: Array
    whole: bool


class InputPorts:
    """Writes inputs to an FMU; those that are not among the variables keep their start values."""

    def __init__(self, library: FmuLibrary, variables: Iterable[FmuVariable]) -> None:
        self._plans = [(group, _plan(group)) for group in groups(library, variables)]

    def write(self, inputs: Mapping[str, Array], s: float = 0.0) -> None:
        """Set the inputs to their polynomials s after the beginning of the step; whole numbers do not change in it."""
        for group, plan in self._plans:
            buffer, held = group.buffer, s == 0.0 or plan.whole
            if plan.simple:  # element by element: an array of the values takes longer
                for i, name in enumerate(plan.names):
                    buffer[i] = inputs[name][0] if held else horner(inputs[name], s)
            else:
                rows = [inputs[name][0] if held else horner(inputs[name], s) for name in plan.names]
                values = (np.concatenate([np.ravel(row) for row in rows]) - plan.offsets) / plan.factors
                group.values[:] = np.rint(values) if plan.whole else values
            group.set()


class OutputPorts:
    """Reads outputs of an FMU."""

    def __init__(self, library: FmuLibrary, variables: Iterable[FmuVariable]) -> None:
        self._library = library
        self._plans = [
            (group, *_conversion(group), _in_si(*_conversion(group)), _places(group))
            for group in groups(library, variables)
        ]

    def read(self) -> dict[str, Array]:
        """The outputs in SI. Raises RunError for values that are not finite."""
        outputs = {}
        for group, factors, offsets, in_si, places in self._plans:
            values = group.get().astype(float)
            if not in_si:
                values = values * factors + offsets
            # a sum is finite faster than its terms are; it may overflow
            if not math.isfinite(sum(values.tolist()) if len(values) < SMALL_GROUP else values.sum()):
                self._check(group, values)
            for name, where, shape in places:
                outputs[name] = values[where] if shape is None else values[where].reshape(shape)
        return outputs

    def _check(self, group: VariableGroup, values: Array) -> None:
        """Raises RunError for values that are not finite, with the first variable that has one."""
        for variable, where in zip(group.variables, group.slices, strict=True):
            wrong = values[where][~np.isfinite(values[where])]
            if len(wrong):
                what = f"its output '{variable.name}' is {wrong[0]} at t = {self._library.time:.9g} s"
                raise RunError(f"{what}; check its inputs and parameters, or use a shorter step", self._library.place)


def _plan(group: VariableGroup) -> GroupPlan:
    factors, offsets = _conversion(group)
    whole = not group.variables[0].is_real
    simple = not whole and _in_si(factors, offsets) and not any(v.shape for v in group.variables)
    return GroupPlan(tuple(v.name for v in group.variables), simple, factors, offsets, whole)


def _conversion(group: VariableGroup) -> tuple[Array, Array]:
    """(factors, offsets), (n,) each."""
    factors, offsets = (
        np.concatenate([np.full(v.size, getattr(v.conversion, name)) for v in group.variables])
        for name in ("factor", "offset")
    )
    return factors, offsets


def _in_si(factors: Array, offsets: Array) -> bool:
    return not offsets.any() and bool((factors == 1.0).all())


def _places(group: VariableGroup) -> list[tuple[str, Any, tuple[int, ...] | None]]:
    """(name, index in the values, shape of an array with several indices)."""
    return [
        (v.name, where if v.shape else (where.start, ...), v.shape if len(v.shape) > 1 else None)
        for v, where in zip(group.variables, group.slices, strict=True)
    ]


def horner(coefficients: Array, s: float) -> Array:
    """The polynomial of coefficients (k + 1, ...) at s."""
    value = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = value * s + coefficient
    return value
