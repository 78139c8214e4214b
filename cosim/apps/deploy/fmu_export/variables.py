"""The variables of an FMU: of a rig the time, and what its interface has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from cosim.apps.deploy.description import DeployedNumber, RigInterface

PlaceKind = Literal["TIME", "SIGNAL", "MEMORY"]


class UnitVariable(NamedTuple):
    """A variable of an FMU, with the place of its values in the memory. kind, place: see `Variable` in `unit.h`; start:
    of what can be set, of each element; least, greatest: inclusive bounds; depends_on: names of the inputs on which an
    output depends at the same time; length: of an array."""

    name: str
    causality: Literal["independent", "output", "parameter", "input"]
    unit: str
    kind: PlaceKind
    place: int
    start: float = 0.0
    least: float = -math.inf
    greatest: float = math.inf
    about: str = ""
    depends_on: tuple[str, ...] = ()
    length: int | None = None

    @property
    def size(self) -> int:
        return 1 if self.length is None else self.length

    @property
    def can_be_set(self) -> bool:
        return self.causality in ("parameter", "input")


def time_variable() -> UnitVariable:
    return UnitVariable("time", "independent", "s", "TIME", 0, about="time")


def variables_of(interface: RigInterface, dependencies: Sequence[Sequence[int]]) -> tuple[UnitVariable, ...]:
    """In the order of their value references; inputs stand for the signals of their names. dependencies: of each signal
    the numbers of inputs."""
    given = [number.name for number in interface.inputs]
    outputs = (
        UnitVariable(
            name, "output", unit, "SIGNAL", k, about=about, depends_on=tuple(given[i] for i in dependencies[k])
        )
        for k, (name, unit, about) in enumerate(interface.signals)
        if name not in given
    )
    inputs = (_variable("input", number) for number in interface.inputs)
    return time_variable(), *outputs, *inputs, *map(parameter_variable, interface.parameters)


def parameter_variable(number: DeployedNumber) -> UnitVariable:
    return _variable("parameter", number)


def _variable(causality: Literal["input", "parameter"], number: DeployedNumber) -> UnitVariable:
    name, unit, place, start, least, greatest, about = number
    return UnitVariable(name, causality, unit, "MEMORY", place, start, least, greatest, about)
