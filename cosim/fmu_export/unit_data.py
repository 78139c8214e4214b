"""The data of a rig for the C code of an FMU, as a C source file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence

import numpy as np

from cosim.control.limits import LIMITS, NOT_FINITE, STALE
from cosim.fmu_export.variables import UnitVariable
from cosim.plant.event_stepper import PlantFault
from cosim.tick.coupled_plant import CouplingFault
from cosim.tick.tick_model import TickModel

# s; duration of a `BumplessStart` whose offset stays; its square is finite
NEVER_FADED = 1e150
# why the whole mechanism cannot continue, by its fault
FAULTS = {
    PlantFault.CONSTRAINT_VIOLATED: "a constraint is violated; try a smaller schedule.step",
    PlantFault.ENDLESS_EVENTS: "events trigger each other without end; change their conditions",
    PlantFault.NO_STEP: "no step keeps the schedule.tolerance; raise it",
    len(PlantFault) + CouplingFault.RESIDUAL_ENERGY: "a bond has more residual energy than its limit",
    len(PlantFault) + CouplingFault.NOT_FINITE: "an output of a part is not finite",
}


def data_text(model: TickModel, variables: Sequence[UnitVariable], token: str) -> str:
    """The definitions of what `unit.h` declares as generated data."""
    place, memory = model.layout.place, start_memory(model, variables)
    faults = joint_faults(model)
    sizes = {
        "memory_size": memory.size,
        "row_size": model.row.size,
        "early_size": model.program.early,
        "signal_count": len(model.signals.names),
        "variable_count": len(variables),
        "time_place": model.program.time,
        "start_place": place("bumpless_start").where.start,
        "fault_place": model.program.fault,
        "guard_fault_place": place("guard_fault").where.start,
        "stop_reason_place": place("controlled_stop", "reason").where.start,
        "first_guard_fault_place": place("controlled_stop", "first_guard_fault").where.start,
        "joint_count": model.nv,
        "joint_fault_count": len(faults),
        "fault_count": len(faults) + len(FAULTS),
    }
    rows = (f"{{{v.kind}, {v.place}, {v.partner}, {_number(v.least)}, {_number(v.greatest)}}}" for v in variables)
    lines = [
        '#include "unit.h"',
        "#include <math.h>",
        f"const char *const unit_token = {_text(token)};",
        f"const double unit_step = {_number(model.step)};",
        *(f"const size_t unit_{name} = {value};" for name, value in sizes.items()),
        _array("double unit_initial", map(_number, memory.tolist())),
        _array("Variable unit_variables", rows),
        _array("char *const unit_joint_faults", (_text(text) for row in faults for text in row)),
        _array("char *const unit_faults", (_text(FAULTS[fault]) for fault in sorted(FAULTS))),
    ]
    return "\n".join(lines) + "\n"


def start_memory(model: TickModel, variables: Sequence[UnitVariable]) -> np.ndarray:
    """The memory at t = 0, with references that are given as offsets that do not fade out."""
    memory, references = model.memory(), [v for v in variables if v.kind == "REFERENCE"]
    if references:
        memory[model.layout.place("bumpless_start").where.start + 1] = NEVER_FADED
    for reference in references:
        memory[reference.place] = reference.start
    return memory


def joint_faults(model: TickModel) -> list[list[str]]:
    """By fault code from 0 to NOT_FINITE, for each joint, why it stops the rig."""
    dofs, units = model.plant.model.dof_names, model.plant.model.dof_units
    reasons = [["a stop was requested"] * len(dofs)]
    for row in LIMITS:
        bounds = [[float(model.guard.bounds[key][k]) for key in row.bound_keys] for k in range(len(dofs))]
        shown = [row.show(values, unit) for values, unit in zip(bounds, units, strict=True)]
        reasons.append(
            [f"joint '{dof}' is beyond its {row.key} limit of {limit}" for dof, limit in zip(dofs, shown, strict=True)]
        )
    assert len(reasons) == STALE and STALE + 1 == NOT_FINITE
    reasons.append([f"joint '{dof}' has sent no feedback" for dof in dofs])
    return [*reasons, [f"joint '{dof}' has a motion or a command that is not finite" for dof in dofs]]


def _array(declaration: str, elements: Iterable[str]) -> str:
    return f"const {declaration}[] = {{{', '.join(elements)}}};"


def _number(value: float) -> str:
    """A C literal, exact to the bit."""
    if math.isnan(value):
        return "NAN"
    return value.hex() if math.isfinite(value) else "INFINITY" if value > 0.0 else "-INFINITY"


def _text(text: str) -> str:
    """A C string literal of UTF-8 bytes."""
    plain = json.dumps(text, ensure_ascii=False)  # the escapes of ASCII are those of C
    return "".join(c if c.isascii() else "".join(f"\\{byte:03o}" for byte in c.encode()) for c in plain)
