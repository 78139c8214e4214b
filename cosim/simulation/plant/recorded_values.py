"""The values and declarations of recorded signals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cosim.core.types import Numeric, Signal, Signals, State
from cosim.core.units import quantity_unit


class ReactionNames(NamedTuple):
    """The signals of a reaction. rows: its components, without owner; sizes: full names of those that say how large it
    is: resultants, a single component, an effort."""

    rows: tuple[str, ...]
    sizes: tuple[str, ...]


@dataclass
class RecordedSignals:
    """Values and declarations by name, `<owner>/<what>`, in the order of recording; the declared units are SI."""

    values: State = field(default_factory=dict)
    declared: dict[str, Signal] = field(default_factory=dict)
    reactions: dict[str, ReactionNames] = field(default_factory=dict)  # by constraint or joint

    def add(self, owner: str, values: Mapping[str, Numeric], declared: Signals, unit: str = "rad") -> None:
        """unit: of the positions of the owner, rad or m. Raises LookupError for a value without a declaration."""
        for what, value in values.items():
            name = f"{owner}/{what}"
            if what not in declared:
                raise LookupError(f"the signal '{name}' is not declared; give its unit and meaning where it is made")
            self.values[name] = value
            self.declared[name] = in_si(declared[what], unit)


def in_si(declared: Signal, unit: str) -> Signal:
    """A declaration with a unit instead of a quantity of a joint; unit: of the positions of the joint, rad or m."""
    return replace(declared, unit=quantity_unit(declared.unit, unit))
