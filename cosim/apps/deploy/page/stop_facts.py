"""What a page needs to say why a run was stopped, as `execution.stop_reason` does: templates, and names and bounds to
fill in. What it does not do is look for a cause of a divergence: it names the usual fix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cosim.control.bumpless_start import BumplessStart
from cosim.control.limits import BITS, CODES, LIMIT_OF, NOT_FINITE, STALE
from cosim.core.units import JOINT_DIMENSIONS
from cosim.execution.rig_state import PLAUSIBLE
from cosim.execution.stop_reason import OVERFLOWING
from cosim.output.events import alarm_texts
from cosim.simulation.plant.event_stepper import PlantFault
from cosim.simulation.plant.integration import MAX_STEPS
from cosim.simulation.tick.coupled_plant import CouplingFault
from cosim.simulation.tick.tick_functions import FIRST_OF_PARTS
from cosim.simulation.tick.tick_model import TickModel


def stop_facts(model: TickModel) -> dict[str, Any]:
    names, units, guard = model.plant.model.dof_names, model.plant.model.dof_units, model.guard
    joints = [
        {
            "name": name,
            "unit": unit,
            "effort_unit": JOINT_DIMENSIONS["joint effort"][unit == "m"],
            "diverged": _fix_of_divergence(model, name),
            "controller": _controller(model, k),
        }
        for k, (name, unit) in enumerate(zip(names, units, strict=True))
    ]
    return {
        "joints": joints,
        "begun_at": BumplessStart.size(len(names)),  # of `bumpless_start`: the time of the controlled stop behind it
        "stale": [f"{1e3 * float(limit):.6g}" for limit in guard.stale],
        "limits": {str(code): _limit(model, key) for key, code in CODES.items() if _bounded(model, key)},
        "alarms": [{"joint": k, "bit": BITS[key], "text": text} for (k, key), text in alarm_texts(model).items()],
        "codes": {"stale": STALE, "not_finite": NOT_FINITE},
        "parts_from": FIRST_OF_PARTS,
        "others": {f"{code:g}": text for code, text in _other_faults(model).items()},
        **_names(model),
        "overflowing": OVERFLOWING,
        "plausible": PLAUSIBLE,
    }


def _controller(model: TickModel, k: int) -> dict[str, Any] | None:
    """Which controller commands joint k, and as which of its joints."""
    for loop in model.loops:
        for place in np.flatnonzero(loop.index == k):
            return {"name": loop.name, "place": int(place)}
    return None


def _bounded(model: TickModel, key: str) -> bool:
    return any(np.isfinite(model.guard.bounds[name]).any() for name in LIMIT_OF[key].bound_keys)


def _limit(model: TickModel, key: str) -> dict[str, Any]:
    row, bounds = LIMIT_OF[key], model.guard.bounds
    units = model.plant.model.dof_units
    shown = [row.show([float(bounds[name][k]) for name in row.bound_keys], unit) for k, unit in enumerate(units)]
    return {"reason": row.reason, "controlled_stop": row.controlled_stop, "bounds": shown}


def _other_faults(model: TickModel) -> Mapping[float, str]:
    """Templates by fault, of the plant and of parts."""
    control, step = model.plant.control, "a smaller schedule.step"
    projection = "mechanism.loop_closure.drift: projection"
    faults = {
        PlantFault.CONSTRAINT_VIOLATED: f"a constraint is violated; try {step}, or {projection}",
        PlantFault.ENDLESS_EVENTS: "events trigger each other without end at t = {endless} s: {events}; change their"
        " conditions so that none triggers the others again",
    }
    if control is not None:
        faults[PlantFault.NO_STEP] = (
            f"{MAX_STEPS} steps did not take {model.integrator} from t = {{refused}} s to the end of the tick within a"
            f" schedule.tolerance of {control.tolerance:g}; raise the tolerance, or look for a force or a gain that"
            " changes abruptly"
        )
    found = {NOT_FINITE + float(fault): text for fault, text in faults.items()}
    if model.coupling is not None:
        found |= {FIRST_OF_PARTS + float(fault): text for fault, text in _part_faults(model).items()}
    return found


def _part_faults(model: TickModel) -> Mapping[CouplingFault, str]:
    assert model.coupling is not None
    controlled = model.coupling.scheme.control is not None
    shorter = "a smaller schedule.step" if model.coupling.first_step is None else "a smaller couplings.step"
    shorter = "smaller tolerances of couplings.step_control" if controlled else shorter
    correction = "" if controlled else ", a couplings.correction"
    return {
        CouplingFault.RESIDUAL_ENERGY: "the residual energy of bond '{bond}' is {bond_energy} J, beyond its limit of"
        f" {{bond_limit}} J; try {shorter}{correction} or another couplings.order",
        CouplingFault.NOT_FINITE: f"output '{{output}}' is not finite; try {shorter}, or a smaller step of the part",
    }


def _names(model: TickModel) -> dict[str, Any]:
    """Of what these templates name, in the order of the memory."""
    events = [trigger.name for trigger in model.plant.modes.indicators]
    if (coupling := model.coupling) is None:
        return {"events": events, "bonds": [], "outputs": []}
    bonds = [
        {"name": bond.name, "limit": float(limit) if np.isfinite(limit) else None}
        for bond, limit in zip(coupling.couplings.bonds, coupling.residual_limits, strict=True)
    ]
    outputs = [
        {"name": "/".join(path), "at": where.start, "size": where.stop - where.start}
        for path, (where, _) in model.coupled_step.master.outputs.places.items()
    ]
    return {"events": events, "bonds": bonds, "outputs": outputs}


def _fix_of_divergence(model: TickModel, name: str) -> str:
    if name in model.plant.periods:
        return f"try lower gains in joints.{name}.actuator.loops"
    parts_too = "" if model.coupling is None else "a smaller step of the parts, "
    return f"try {parts_too}a smaller schedule.step, more schedule.substeps or schedule.integrator: rosenbrock"
