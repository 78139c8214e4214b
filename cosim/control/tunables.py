"""The parameters of a block that may change while it runs, as one vector.

They are inputs of the compiled code, so that a tuner or a slider changes them without recompilation. Other parameters
(choices, files, and numbers declared as constant) are constants of the code.
"""

from __future__ import annotations

import copy
import dataclasses

import numpy as np

from cosim.types import Numeric, Parameters


class Tunables:
    """The fields of a parameter dataclass that are floats or tuples of floats, but for those declared as constant."""

    def __init__(self, params: Parameters) -> None:
        self.params = params
        self.fields: dict[str, slice] = {}
        parts: list[float] = []
        for field in dataclasses.fields(params):
            value = getattr(params, field.name)
            numbers = value if isinstance(value, tuple) else (value,)
            constant = field.metadata.get("constant", False)
            if numbers and not constant and all(type(x) is float for x in numbers):
                self.fields[field.name] = slice(len(parts), len(parts) + len(numbers))
                parts += numbers
        self.values = np.array(parts, dtype=float)

    def apply(self, values: Numeric) -> Parameters:
        """The parameters with the tunable ones replaced by `values`, numbers or symbols."""
        changed = copy.copy(self.params)
        for name, place in self.fields.items():
            # without the checks of the class: symbols are no floats, and bounds were checked when the rig was read
            single = not isinstance(getattr(self.params, name), tuple)
            object.__setattr__(changed, name, values[place][0] if single else values[place])
        return changed

    def checked(self, values: np.ndarray, params: Parameters | None = None) -> Parameters:
        """The parameters with the tunable ones replaced by these numbers. params: what the others are, by default as
        they are. Raises what their class raises."""
        numbers = {name: values[place].tolist() for name, place in self.fields.items()}
        single = {name: not isinstance(getattr(self.params, name), tuple) for name in self.fields}
        changes = {name: given[0] if single[name] else tuple(given) for name, given in numbers.items()}
        return dataclasses.replace(self.params if params is None else params, **changes)
