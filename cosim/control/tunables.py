"""The parameters of a block that may change while it runs, as one vector.

They are inputs of the compiled code, so a tuner or a slider changes them without compiling anything again.
Whatever is not a number (a choice, a switch, a file) shapes the code and stays as it is.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np


class Tunables:
    """The fields of a parameter dataclass that are floats or tuples of floats."""

    def __init__(self, params: Any) -> None:
        self.params = params
        self.fields: dict[str, slice] = {}
        parts: list[float] = []
        for field in dataclasses.fields(params):
            value = getattr(params, field.name)
            numbers = value if isinstance(value, tuple) else (value,)
            if numbers and all(type(x) is float for x in numbers):
                self.fields[field.name] = slice(len(parts), len(parts) + len(numbers))
                parts += numbers
        self.values = np.array(parts, dtype=float)

    def apply(self, values: Any) -> Any:
        """The parameters with the tunable ones replaced by `values` (numbers or symbols)."""
        changed = copy.copy(self.params)
        for name, place in self.fields.items():
            # past the checks on purpose: symbols are no floats, and bounds were checked when the rig was read
            single = not isinstance(getattr(self.params, name), tuple)
            object.__setattr__(changed, name, values[place][0] if single else values[place])
        return changed
