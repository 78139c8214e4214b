"""What a program needs to know of the code of a rig, as JSON, and what everything that is made of it has in common: its
signals, parameters and inputs.

Parameters and inputs are single numbers at places of the memory; a fault code, which the guard leaves there, has a
template of what it means.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from typing import Any, NamedTuple

from cosim.apps.deploy.stages import IN_CONTACT, NOT_ARMED, STOPPED
from cosim.apps.deploy.tick_code import TickCode
from cosim.control.limits import CODES, LIMITS, NOT_FINITE, STALE
from cosim.core.compile.object_code import CodeTarget
from cosim.rig.parameter_table import table_of
from cosim.rig.rig_parameter import RigParameter, facts_of
from cosim.rig.wiring.wired_rig import WiredRig
from cosim.simulation.plant.event_stepper import PlantFault
from cosim.simulation.tick.coupled_plant import CouplingFault
from cosim.simulation.tick.tick_functions import FIRST_OF_PARTS

# why the whole mechanism cannot continue, by its fault
FAULTS = {
    PlantFault.CONSTRAINT_VIOLATED: "a constraint is violated; try a smaller schedule.step",
    PlantFault.ENDLESS_EVENTS: "events trigger each other without end; change their conditions",
    PlantFault.NO_STEP: "no step keeps the schedule.tolerance; raise it",
    PlantFault.TRIPPED: "the voltage of a link is beyond a bound at which it trips",
    PlantFault.CONTACT_LIMIT: "a contact is beyond one of its limits",
    PlantFault.CONTACTS_UNSOLVED: "the contacts are not solved; give them a stiffness, or try a smaller schedule.step",
}
# … and its parts
PART_FAULTS = {
    CouplingFault.RESIDUAL_ENERGY: "a bond has more residual energy than its limit",
    CouplingFault.NOT_FINITE: "an output of a part is not finite",
}
OF_JOINT = "joint '{joint}'"
_STALE = "has sent no feedback for {age}; check its power, its cable and its bus"
_IN_CONTACT = "a real joint is inside of a virtual contact, whose force would be a blow; move it out by hand"
_NOT_FINITE = "has a motion or a command that is not finite; check its controller"


def description_of(rig: WiredRig, code: TickCode, target: CodeTarget, functions: Sequence[str]) -> dict[str, Any]:
    """functions: names of those that the file has. Places are indices of doubles in the memory."""
    model, interface = rig.tick_model, interface_of(rig)
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
        "signals": [signal._asdict() for signal in interface.signals],
        "parameters": [as_data(parameter) for parameter in interface.parameters],
        "faults": [fault._asdict() for fault in fault_codes()],
    }


def as_text(description: Mapping[str, Any]) -> str:
    """JSON has no numbers that are not finite."""
    return json.dumps(description, indent=1, allow_nan=False) + "\n"


def as_data(number: DeployedNumber) -> dict[str, Any]:
    name, unit, place, value, least, greatest, about = number
    return {"name": name, "place": place, **facts_of(unit, value, least, greatest, about)}


class FaultCode(NamedTuple):
    """A number that stands for a reason why motors are off, with its texts. code: below 0 if it is no fault; about:
    what it means; text: of a run that it stops, a template with the fields of `stop_reason.figures`, of the joint whose
    `guard_fault` has the code."""

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
        FaultCode(IN_CONTACT, "in_contact", "a real joint is inside of a virtual contact", _IN_CONTACT),
        FaultCode(STOPPED, "stopped", "stopped as requested", "stopped as requested"),
        *(FaultCode(*row) for row in of_limits),
        FaultCode(STALE, "stale", "feedback older than guard.stale", f"{OF_JOINT} {_STALE}"),
        FaultCode(NOT_FINITE, "not_finite", "a motion or a command that is not finite", f"{OF_JOINT} {_NOT_FINITE}"),
        *(FaultCode(code, key.lower(), text.partition(";")[0], text) for code, (key, text) in whole.items()),
    ]


class DeployedSignal(NamedTuple):
    """A signal of a tick as files for other programs describe it. about: its meaning."""

    name: str
    unit: str
    about: str


class DeployedNumber(NamedTuple):
    """A number that can be set. place: in the memory; value: at the start; least, greatest: inclusive bounds."""

    name: str
    unit: str
    place: int
    value: float
    least: float = -math.inf
    greatest: float = math.inf
    about: str = ""


class RigInterface(NamedTuple):
    """What the ticks of a rig give and take. signals: in their order; parameters: that may be set at any time; inputs:
    that are given in every step."""

    signals: tuple[DeployedSignal, ...]
    parameters: tuple[DeployedNumber, ...]
    inputs: tuple[DeployedNumber, ...] = ()


def interface_of(
    rig: WiredRig, inputs: Iterable[DeployedNumber] = (), of_parts: Iterable[DeployedNumber] = ()
) -> RigInterface:
    """inputs; of_parts: further parameters, of ticks that have places for them."""
    model, table = rig.tick_model, table_of(rig)
    first = model.layout.place("parameters").where.start
    signals = (DeployedSignal(name, one.unit, one.meaning) for name, one in model.signals.declared.items())
    own = (
        number
        for name, parameter in table.live.items()
        for number in placed(parameter, table.numbers(name), first + parameter.where.start)
    )
    return RigInterface(tuple(signals), (*own, *of_parts), tuple(inputs))


def placed(parameter: RigParameter, values: Iterable[float], first: int) -> Iterator[DeployedNumber]:
    """The elements of a parameter with these values, from the place `first` on."""
    for place, (name, unit, value, least, greatest, about) in enumerate(parameter.elements(values), first):
        yield DeployedNumber(name, unit, place, value, least, greatest, about)
