"""The variables of the FMU of a rig: the time, its signals, inputs, and the parameters of its controllers and parts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from cosim.rig.build.wired_rig import WiredRig
from cosim.rig.outline import signal_units
from cosim.rig.parameters import joints_of, tunables_of, unit_of
from cosim.units import JOINT_DIMENSIONS

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
    return time_variable(), *outputs, *inputs, *_parameters(rig), *of_parts


def _parameters(rig: WiredRig) -> Iterator[UnitVariable]:
    """`arm.kp`, of one with a list `arm.kp/<joint>`, or `arm.kp/<index>` where its elements are not of joints."""
    model = rig.tick_model
    first = model.layout.place("parameters").where.start
    units = dict(zip(rig.joints, rig.plant.model.dof_units, strict=True))
    for name, item in tunables_of(rig).items():
        declared, joints = item.loop.tunables.leaves[item.field].declared, joints_of(rig, name)
        single = item.loop.tunables.is_single(item.field)
        for k, place in enumerate(range(item.where.start, item.where.stop)):
            label = joints[k] if joints else str(k)
            unit = unit_of(rig, name)
            if joints and (dimensions := JOINT_DIMENSIONS.get(declared.get("unit", "1"))):
                unit = dimensions[units[joints[k]] == "m"]
            yield UnitVariable(
                name if single else f"{name}/{label}",
                "parameter",
                unit,
                "MEMORY",
                first + place,
                float(model.parameters[place]),
                *bounds_of(declared),
                declared.get("doc") or "",
            )


def bounds_of(declared: Mapping[str, Any]) -> tuple[float, float]:
    """Inclusive bounds of what a parameter declares; an exclusive one begins with the next number."""
    least, above, greatest = (declared.get(key) for key in ("min", "above", "max"))
    lowest = -math.inf if least is None else float(least)
    if above is not None:
        lowest = max(lowest, math.nextafter(float(above), math.inf))
    return lowest, math.inf if greatest is None else float(greatest)
