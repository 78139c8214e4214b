"""Why a rig is stopped, by the code that its guard leaves in the memory: templates and what stands for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cosim.apps.deploy.stages import NOT_ARMED, STOPPED
from cosim.control.limits import CODES, LIMITS, NOT_FINITE, STALE
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
