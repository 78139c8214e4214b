"""What a program needs to know of the code of a rig, as JSON: its places, its signals, parameters and fault codes.

Parameters are single numbers at places of the memory; a fault code, which the guard leaves there, has a template of
what it means.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from typing import Any, NamedTuple

from cosim.apps.deploy.stages import NOT_ARMED, STOPPED
from cosim.apps.deploy.tick_code import TickCode
from cosim.control.limits import CODES, LIMITS, NOT_FINITE, STALE
from cosim.core.compile.object_code import CodeTarget
from cosim.core.units import JOINT_DIMENSIONS
from cosim.rig.parameters import joints_of, labels_of, tunables_of, unit_of
from cosim.rig.run.run_metadata import signal_units
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.plant.event_stepper import PlantFault
from cosim.simulation.tick.coupled_plant import CouplingFault
from cosim.simulation.tick.tick_functions import FIRST_OF_PARTS

# why the whole mechanism cannot continue, by its fault
FAULTS = {
    PlantFault.CONSTRAINT_VIOLATED: "a constraint is violated; try a smaller schedule.step",
    PlantFault.ENDLESS_EVENTS: "events trigger each other without end; change their conditions",
    PlantFault.NO_STEP: "no step keeps the schedule.tolerance; raise it",
}
# … and its parts
PART_FAULTS = {
    CouplingFault.RESIDUAL_ENERGY: "a bond has more residual energy than its limit",
    CouplingFault.NOT_FINITE: "an output of a part is not finite",
}
OF_JOINT = "joint '{joint}'"
_STALE = "has sent no feedback for {age}; check its power, its cable and its bus"
_NOT_FINITE = "has a motion or a command that is not finite; check its controller"


def description_of(rig: WiredRig, code: TickCode, target: CodeTarget, functions: Sequence[str]) -> dict[str, Any]:
    """functions: names of those that the file has. Places are indices of doubles in the memory."""
    model = rig.tick_model
    return {
        "rig": rig.spec.name,
        "name": code.name,
        "cosim": version("cosim"),
        "hash": sha256(code.ir.encode()).hexdigest(),
        "target": {"triple": target.triple, "cpu": target.cpu, "features": target.features},
        "step": model.step,
        "memory": code.size,
        "bodies": code.bodies,
        "functions": list(functions),
        "places": {
            ".".join(path): {"at": where.start, "shape": list(shape)}
            for path, (where, shape) in model.layout.places.items()
        },
        "signals": [{"name": name, "unit": unit} for name, unit in signal_units(rig).items()],
        "parameters": [_parameter(parameter) for parameter in parameters_of(rig)],
        "faults": [fault._asdict() for fault in fault_codes()],
    }


def as_text(description: Mapping[str, Any]) -> str:
    """JSON has no numbers that are not finite."""
    return json.dumps(description, indent=1, allow_nan=False) + "\n"


def _parameter(parameter: DeployedParameter) -> dict[str, Any]:
    """null for what is not bounded."""
    return {k: v if isinstance(v, str) or math.isfinite(v) else None for k, v in parameter._asdict().items()}


class FaultCode(NamedTuple):
    """code: of a fault, below 0 if it is no fault; about: what it means; text: of a run that it stops, a template with
    the fields of `stop_reason.figures`, of the joint whose `guard_fault` has the code."""

    code: int
    key: str
    about: str
    text: str


def fault_codes() -> Sequence[FaultCode]:
    """In the order of their codes, and so of precedence."""
    parts = {int(FIRST_OF_PARTS) + fault: (f"part_{fault.name}", text) for fault, text in PART_FAULTS.items()}
    whole = {NOT_FINITE + fault: (fault.name, text) for fault, text in FAULTS.items()} | parts
    of_limits = [(CODES[row.key], row.key, f"beyond the {row.meaning}", f"{OF_JOINT} {row.reason}") for row in LIMITS]
    return [
        FaultCode(NOT_ARMED, "not_armed", "not armed", "the motors are not armed"),
        FaultCode(STOPPED, "stopped", "stopped as requested", "stopped as requested"),
        *(FaultCode(*row) for row in of_limits),
        FaultCode(STALE, "stale", "feedback older than guard.stale", f"{OF_JOINT} {_STALE}"),
        FaultCode(NOT_FINITE, "not_finite", "a motion or a command that is not finite", f"{OF_JOINT} {_NOT_FINITE}"),
        *(FaultCode(code, key.lower(), text.partition(";")[0], text) for code, (key, text) in whole.items()),
    ]


class DeployedParameter(NamedTuple):
    """place: in the memory; least, greatest: inclusive bounds."""

    name: str
    unit: str
    place: int
    value: float
    least: float
    greatest: float
    about: str


def parameters_of(rig: WiredRig) -> Iterator[DeployedParameter]:
    """`arm.kp`, of one with a list `arm.kp/<joint>`, or `arm.kp/<index>` where its elements are not of joints."""
    model = rig.tick_model
    first = model.layout.place("parameters").where.start
    units = dict(zip(rig.joints, rig.plant.model.dof_units, strict=True))
    for name, item in tunables_of(rig).items():
        declared, joints = item.loop.tunables.leaves[item.field].declared, joints_of(rig, name)
        names = [f"{name}/{label}" for label in labels_of(rig, name)] or [name]
        for k, place in enumerate(range(item.where.start, item.where.stop)):
            unit = unit_of(rig, name)
            if joints and (dimensions := JOINT_DIMENSIONS.get(declared.get("unit", "1"))):
                unit = dimensions[units[joints[k]] == "m"]
            yield DeployedParameter(
                names[k],
                unit,
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
