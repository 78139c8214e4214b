"""Inputs and outputs of an FMU as named arrays in SI."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from cosim.errors import RunError
from cosim.fmi.library import FmuLibrary, VariableGroup, groups
from cosim.fmi.variables import FmuVariable
from cosim.types import Array


class InputPorts:
    """Writes inputs to an FMU. names: the inputs that are given; the others keep their start values."""

    def __init__(self, library: FmuLibrary, variables: Iterable[FmuVariable]) -> None:
        self._groups = groups(library, variables)
        self._plans = [_plan(group) for group in self._groups]
        self.continuous = [group for group in self._groups if all(v.is_real for v in group.variables)]

    def write(self, inputs: Mapping[str, Array], s: float = 0.0) -> None:
        """Set the inputs to their polynomials s after the beginning of the step."""
        for group, plan in zip(self._groups, self._plans, strict=True):
            values = group.values
            for name, where, shift, scale, whole in plan:
                coefficients = inputs[name]
                value = coefficients[0]
                if s and not whole and len(coefficients) > 1:
                    value = horner(coefficients, s)
                if scale is not None:
                    value = (value - shift) * scale
                values[where] = np.rint(value) if whole else np.reshape(value, -1) if value.ndim else value
            group.set()


class OutputPorts:
    """Reads outputs of an FMU."""

    def __init__(self, library: FmuLibrary, variables: Iterable[FmuVariable]) -> None:
        self._library = library
        self._plans = [(group, *_conversion(group), _places(group)) for group in groups(library, variables)]

    def read(self) -> dict[str, Array]:
        """The outputs in SI. Raises RunError for values that are not finite."""
        outputs = {}
        for group, factors, offsets, zeros, places in self._plans:
            values = group.get().astype(float)
            if factors is not None:
                values = values * factors + offsets
            if not math.isfinite(values.dot(zeros)):
                self._diverged(group, values)
            for name, where, shape in places:
                outputs[name] = values[where] if shape is None else values[where].reshape(shape)
        return outputs

    def _diverged(self, group: VariableGroup, values: Array) -> None:
        named = zip(group.variables, group.slices, strict=True)
        variable, value = next((v, values[w]) for v, w in named if not np.isfinite(values[w]).all())
        bad = value[~np.isfinite(value)][0]
        what = f"its output '{variable.name}' is {bad} at t = {self._library.time:.9g} s"
        raise RunError(f"{what}; check its inputs and parameters, or use a shorter step", self._library.place)


def _conversion(group: VariableGroup) -> tuple[Array | None, Array, Array]:
    """(factors, offsets, zeros), (n,) each; no factors for values in SI."""
    factors, offsets = (
        np.concatenate([np.full(v.size, getattr(v.conversion, name)) for v in group.variables])
        for name in ("factor", "offset")
    )
    in_si = not offsets.any() and (factors == 1.0).all()
    return None if in_si else factors, offsets, np.zeros(len(offsets))


def _places(group: VariableGroup) -> list[tuple[str, Any, tuple[int, ...] | None]]:
    """(name, index in the values, shape of an array with several indices)."""
    return [
        (v.name, where if v.shape else (where.start, ...), v.shape if len(v.shape) > 1 else None)
        for v, where in zip(group.variables, group.slices, strict=True)
    ]


def _plan(group: VariableGroup) -> list[tuple[str, Any, float, float | None, bool]]:
    """(name, index in the values, offset, 1 / factor or None for values in SI, whether they are whole numbers)."""
    plan = []
    for v, where in zip(group.variables, group.slices, strict=True):
        c = v.conversion
        scale = None if (c.factor, c.offset) == (1.0, 0.0) else 1.0 / c.factor
        plan.append((v.name, where if v.shape else where.start, c.offset, scale, not v.is_real))
    return plan


def horner(coefficients: Array, s: float) -> Array:
    """The polynomial of coefficients (k + 1, ...) at s."""
    value = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = value * s + coefficient
    return value
