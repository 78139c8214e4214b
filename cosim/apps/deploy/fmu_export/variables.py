"""The variables of the FMU of a rig: the time, its signals, inputs, and the parameters of its controllers and parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from cosim.apps.deploy.description import DeployedParameter, parameters_of
from cosim.rig.run.run_metadata import signal_units
from cosim.rig.wiring.wired_rig import WiredRig

PlaceKind = Literal["TIME", "SIGNAL", "MEMORY"]


class UnitVariable(NamedTuple):
    """kind, place: see `Variable` in `unit.h`; start: of what can be set, of each element; least, greatest: inclusive
    bounds; depends_on: names of the inputs on which an output depends at the same time; length: of an array."""

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


def variables_of(
    rig: WiredRig,
    inputs: Sequence[UnitVariable],
    of_parts: Sequence[UnitVariable],
    dependencies: Sequence[Sequence[int]],
) -> tuple[UnitVariable, ...]:
    """In the order of their value references. inputs: stand for the signals of these names; of_parts: parameters;
    dependencies: of each signal the numbers of inputs."""
    signals = signal_units(rig).items()
    given = {variable.name for variable in inputs}
    outputs = (
        UnitVariable(name, "output", unit, "SIGNAL", k, depends_on=tuple(inputs[i].name for i in dependencies[k]))
        for k, (name, unit) in enumerate(signals)
        if name not in given
    )
    return time_variable(), *outputs, *inputs, *map(_variable, parameters_of(rig)), *of_parts


def _variable(parameter: DeployedParameter) -> UnitVariable:
    return UnitVariable(
        parameter.name,
        "parameter",
        parameter.unit,
        "MEMORY",
        parameter.place,
        parameter.value,
        parameter.least,
        parameter.greatest,
        parameter.about,
    )
