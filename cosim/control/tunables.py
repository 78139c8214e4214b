"""The parameters of a block that may change while it runs, as one vector.

They are inputs of the compiled code, so that a tuner or a slider changes them without recompilation. Other parameters
(choices, files, and numbers declared as constant) are constants of the code.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from cosim.core.types import Numeric, Parameters


class Leaf(NamedTuple):
    """A tunable parameter: its value, one number or one per joint, and what its class declares, such as its unit."""

    value: float | tuple[float, ...]
    declared: Mapping[str, Any]


class ParameterTree:
    """Parameters with parts that have tunable parameters of their own, by paths with dots such as
    `filters.0.frequency`. A subclass defines which."""

    def leaves(self) -> dict[str, Leaf]:
        raise NotImplementedError

    def replaced(self, values: Mapping[str, Any], checked: bool) -> Any:
        """The same with other values by path; checked: by the classes of the parameters, which is for numbers."""
        raise NotImplementedError


def leaves_of(params: Parameters | ParameterTree) -> dict[str, Leaf]:
    """The tunable values of a dataclass: its floats and tuples of floats, except those declared as constant."""
    if isinstance(params, ParameterTree):
        return params.leaves()
    found = {}
    for field in dataclasses.fields(params):
        value = getattr(params, field.name)
        numbers = value if isinstance(value, tuple) else (value,)
        if numbers and not field.metadata.get("constant", False) and all(type(x) is float for x in numbers):
            found[field.name] = Leaf(value, field.metadata)
    return found


def replaced(params: Any, values: Mapping[str, Any], checked: bool) -> Any:
    """The parameters with other values; see `ParameterTree.replaced`. Raises what their class raises."""
    if isinstance(params, ParameterTree):
        return params.replaced(values, checked)
    if checked:
        return dataclasses.replace(params, **values)
    changed = copy.copy(params)
    for name, value in values.items():
        # without the checks of the class: symbols are no floats, and bounds were checked when the rig was read
        object.__setattr__(changed, name, value)
    return changed


def of_part(values: Mapping[str, Any], part: str) -> dict[str, Any]:
    """The values of a part, by their paths inside it."""
    return {path.removeprefix(f"{part}."): value for path, value in values.items() if path.startswith(f"{part}.")}


class Tunables:
    """The tunable parameters of a parameter dataclass or of a `ParameterTree`, by name."""

    def __init__(self, params: Parameters | ParameterTree) -> None:
        self.params, self.leaves = params, leaves_of(params)
        self.fields: dict[str, slice] = {}
        parts: list[float] = []
        for name, leaf in self.leaves.items():
            numbers = leaf.value if isinstance(leaf.value, tuple) else (leaf.value,)
            self.fields[name] = slice(len(parts), len(parts) + len(numbers))
            parts += numbers
        self.values = np.array(parts, dtype=float)

    def is_single(self, name: str) -> bool:
        """Whether a parameter is one number, not a list."""
        return not isinstance(self.leaves[name].value, tuple)

    def apply(self, values: Numeric) -> Any:
        """The parameters with the tunable ones replaced by `values`, numbers or symbols."""
        found = {name: values[place] for name, place in self.fields.items()}
        return replaced(self.params, {k: v[0] if self.is_single(k) else v for k, v in found.items()}, checked=False)

    def checked(self, values: np.ndarray) -> Any:
        """The parameters with the tunable ones replaced by these numbers. Raises what their class raises."""
        found = {name: values[place].tolist() for name, place in self.fields.items()}
        given = {k: v[0] if self.is_single(k) else tuple(v) for k, v in found.items()}
        return replaced(self.params, given, checked=True)
