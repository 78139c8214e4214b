"""The data of a rig for the C code of an FMU."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.apps.deploy.fault_codes import FAULTS as WHOLE_FAULTS
from cosim.apps.deploy.fault_codes import PART_FAULTS
from cosim.apps.deploy.fmu_export.c_data import array, data_text, number, text
from cosim.apps.deploy.fmu_export.variables import UnitVariable
from cosim.control.limits import LIMITS, NOT_FINITE, STALE
from cosim.simulation.plant.event_stepper import PlantFault
from cosim.simulation.tick.tick_model import TickModel

# why the whole mechanism cannot continue, by what its fault exceeds NOT_FINITE
FAULTS = {**WHOLE_FAULTS, **{len(PlantFault) + fault: text for fault, text in PART_FAULTS.items()}}


def rig_data(model: TickModel, variables: Sequence[UnitVariable], moving: int) -> str:
    """The definitions of what `rig.h` declares. moving: how many references the importer gives."""
    place, faults = model.layout.place, joint_faults(model)
    sizes = {
        "row_size": model.row.size,
        "early_size": model.program.early,
        "signal_count": len(model.signals.names),
        "time_place": model.program.time,
        "start_place": place("bumpless_start").where.start,
        "numbers_place": place("numbers").where.start,
        "fault_place": model.program.fault,
        "guard_fault_place": place("guard_fault").where.start,
        "stop_reason_place": place("controlled_stop", "reason").where.start,
        "first_guard_fault_place": place("controlled_stop", "first_guard_fault").where.start,
        "joint_count": model.nv,
        "joint_fault_count": len(faults),
        "fault_count": len(faults) + len(FAULTS),
    }
    return data_text(
        "rig.h",
        variables,
        model.memory(),
        (sizes["numbers_place"], moving),
        sizes,
        f"const double unit_step = {number(model.step)};",
        "const int unit_follows = 0;",
        array("char *const unit_joint_faults", (text(reason) for row in faults for reason in row)),
        array("char *const unit_faults", (text(FAULTS[fault]) for fault in sorted(FAULTS))),
    )


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
