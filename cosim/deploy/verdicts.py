"""Why a rig is stopped, by the code that its guard leaves in the memory: templates and what stands for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cosim.control.limits import CODES, LIMITS, NOT_FINITE, STALE
from cosim.deploy.stages import NOT_ARMED, STOPPED
from cosim.plant.event_stepper import PlantFault
from cosim.tick.coupled_plant import CouplingFault
from cosim.tick.tick_functions import FIRST_OF_PARTS

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


class Verdict(NamedTuple):
    """code: of a fault, below 0 of what is no fault; text: a template with the fields of `stop_reason.figures`, of the
    joint whose `guard_fault` has the code."""

    code: int
    key: str
    text: str


def verdicts() -> Sequence[Verdict]:
    """In the order of their codes, which is that of precedence."""
    limits = [Verdict(CODES[row.key], row.key, f"joint '{{joint}}' {row.reason}") for row in LIMITS]
    stale = "joint '{joint}' has sent no feedback for {age}; check its power, its cable and its bus"
    not_finite = "joint '{joint}' has a motion or a command that is not finite; check its controller"
    plant = [Verdict(NOT_FINITE + fault, fault.name.lower(), text) for fault, text in FAULTS.items()]
    parts = [
        Verdict(int(FIRST_OF_PARTS) + fault, f"part_{fault.name}".lower(), text) for fault, text in PART_FAULTS.items()
    ]
    return [
        Verdict(NOT_ARMED, "not_armed", "not armed"),
        Verdict(STOPPED, "stopped", "stopped as requested"),
        *limits,
        Verdict(STALE, "stale", stale),
        Verdict(NOT_FINITE, "not_finite", not_finite),
        *plant,
        *parts,
    ]
